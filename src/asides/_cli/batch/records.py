"""Replies in the records of a batch: which texts have to be split, and the columns that come of them.

A record holds one reply or several: a text under some name, a conversation, the choices of a server's response
(`asides.analysis._traces` has the shapes). Each reply is a list of parts in which a `Text` is raw output; thinking and
calls that stand beside it in fields of their own are parts already. All raw texts of a batch go through the kernel in
one call, and what it gives is put back in their places.

    records -> replies (parts) -> texts -> asides.arrow.split -> a struct for each reply
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from ...analysis._traces import GAP, OUTPUT_FIELDS, find_replies
from ...message import Message
from ...parts import Part, Text, Thinking, ToolCall

Reply = tuple[Part, ...]


class FoundRecord(msgspec.Struct):
    """What a record holds."""

    replies: list[Reply] = []
    field: str = ""
    """The field that was taken."""
    error: tuple[str, str] | None = None
    """A code and a message where it cannot be read."""
    null: bool = False
    """The field is there and null."""


def _unread(text: str) -> Message:
    return Message((Text(text),), text)


def find_record(record: Any, field: str) -> FoundRecord:
    """The replies of a record, their texts not yet split."""
    found = find_replies(record, _unread, field)
    if found.replies:
        return FoundRecord([message.parts for message in found.replies], found.field)
    names = [name for name in ([field] if field else OUTPUT_FIELDS) if isinstance(record, dict) and name in record]
    if names and all(record[name] is None for name in names):
        return FoundRecord(field=names[0], null=True)
    where = f"nothing in the field {field!r} is a model's output" if field else "no field holds a model's output"
    return FoundRecord(error=("no_output", where))


def is_replaced(value: Any) -> bool:
    """Whether the value of the field with the output is raw text, in whose place its columns come."""
    return value is None or isinstance(value, str)


def raw_texts(replies: Sequence[Reply]) -> list[str]:
    """The texts that have to be split, in order."""
    return [part.text for reply in replies for part in reply if isinstance(part, Text)]


def places_of(owners: Sequence[int], texts: Sequence[str]) -> list[int]:
    """Where each text stands among those of its record, as `Reading.row_parser` counts them."""
    counts: dict[int, int] = {}
    places = []
    for owner, text in zip(owners, texts, strict=True):
        place = counts.get(owner, 0)
        places.append(place if text else 0)
        counts[owner] = place + bool(text)
    return places


def is_plain(reply: Reply) -> bool:
    """Whether a reply is one text and nothing else, so that what the kernel gives is all there is."""
    return len(reply) == 1 and isinstance(reply[0], Text)


def compose(reply: Reply, read: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The struct of a reply, from its parts and from what the kernel made of its texts."""
    if is_plain(reply):
        return read[0]
    failed = next((row for row in read if row["error"] is not None), None)
    if failed is not None:
        return failed
    thoughts: list[str] = []
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    rows = iter(read)
    for part in reply:
        if isinstance(part, Thinking):
            thoughts.append(part.text)
        elif isinstance(part, ToolCall):
            calls.append({name: getattr(part, name) for name in ("name", "arguments", "id", "error")})
        else:
            row = next(rows)
            thoughts.append(row["thinking"])
            texts.append(row["text"])
            calls += row["calls"]
    return {
        "thinking": GAP.join(filter(None, thoughts)),
        "text": GAP.join(filter(None, texts)),
        "calls": calls,
        "termination": read[-1]["termination"] if read else "end",
        "notices": [code for row in read for code in row["notices"]],
        "format": read[-1]["format"] if read else None,
        "error": None,
        "beyond": sum(row["beyond"] for row in read),
    }


def to_array(values: Sequence[Any], type: Any = None) -> Any:
    """The values as an array, with U+FFFD for half a surrogate pair, which JSON can spell and Arrow cannot hold."""
    try:
        return pa.array(values, type)
    except UnicodeEncodeError:
        return pa.array([storable(value) for value in values], type)


def storable(value: Any) -> Any:
    """The value with no half of a surrogate pair in it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value
