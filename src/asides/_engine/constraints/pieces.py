"""The pieces that structural tags are made of, as plain dictionaries. xgrammar's own words for each are their types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ...errors import UsageError

Piece = dict[str, Any]
"""A format of xgrammar's: `{"type": ...}`."""

MOST_SPACE = 32
"""How much whitespace may stand between two things in JSON: as much as indents need, and no endless row."""


def const(text: str) -> Piece:
    """This text and nothing else."""
    return {"type": "const_string", "value": text}


def regex(pattern: str) -> Piece:
    """Text that a pattern matches whole."""
    return {"type": "regex", "pattern": pattern}


def json_schema(schema: Any, excludes: Iterable[str] = ()) -> Piece:
    """JSON that a schema allows; no string in it holds one of `excludes`."""
    piece = {"type": "json_schema", "json_schema": schema, "max_whitespace_cnt": MOST_SPACE}
    return {**piece, "excludes": list(excludes)} if excludes else piece


def any_text(excludes: Iterable[str]) -> Piece:
    """Text that holds none of these."""
    return {"type": "any_text", "excludes": list(dict.fromkeys(excludes))}


def sequence(*pieces: Piece) -> Piece:
    """One behind the other. Neighbouring texts are joined, empty ones left out."""
    joined: list[Piece] = []
    for piece in pieces:
        for part in piece["elements"] if piece["type"] == "sequence" else (piece,):
            if part["type"] == "const_string" and joined and joined[-1]["type"] == "const_string":
                joined[-1] = const(joined[-1]["value"] + part["value"])
            elif part.get("value") != "":
                joined.append(part)
    return joined[0] if len(joined) == 1 else {"type": "sequence", "elements": joined} if joined else const("")


def either(pieces: Iterable[Piece]) -> Piece:
    """One of these. Where there is none, as with an enumeration whose every value holds a marker, none can be said."""
    options = list(pieces)
    if not options:
        raise UsageError("a parameter has no value that can be written")
    return options[0] if len(options) == 1 else {"type": "or", "elements": options}


def optional(piece: Piece) -> Piece:
    """This, or nothing."""
    return {"type": "optional", "content": piece}


def repeat(piece: Piece, least: int = 0, most: int = -1) -> Piece:
    """This, as often as that; -1 is without limit."""
    return {"type": "repeat", "min": least, "max": most, "content": piece}


def separated(piece: Piece, separator: Piece) -> Piece:
    """This once or more, with something between."""
    return sequence(piece, repeat(sequence(separator, piece)))


def tag(begin: str, content: Piece, end: str | list[str]) -> Piece:
    """Something between two markers."""
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(tags: list[Piece], excludes: Iterable[str]) -> Piece:
    """Free text without `excludes`, in which each of these tags must follow what it begins with."""
    without = list(dict.fromkeys(excludes))
    if not tags:
        return any_text(without)
    begins = list(dict.fromkeys(tag["begin"] for tag in tags))
    return {"type": "triggered_tags", "triggers": begins, "tags": tags, "excludes": without}


def literal(text: str) -> str:
    """The pattern of a text."""
    return re.sub(r"[\\^$.|?*+()\[\]{}/]", r"\\\g<0>", text).replace("\n", r"\n")


GAP = regex(r"\s?")
"""Whitespace as the families write it between markers: at most one character, so that no output is stuck in it."""
JSON_GAP = r"\s{0,8}"
"""Whitespace inside a call's own JSON, indents included."""
