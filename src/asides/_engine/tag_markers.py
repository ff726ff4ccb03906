"""Markers that are tags which people ask for in prompts: how else they may be spelled, and where they are only code.

A model that was asked for `<think>` also writes `<Think>`, `<THINK>` or `<think id="1">`. The same characters stand in
code: `List<Thought>`, `collect::<Thought>()`, `(?P<thinking>.+)`, `<Thinking/>`. Both are told apart by the tag itself
and by the few characters before it, so that the answer never depends on what follows.

    <Think>  <THINK >  <think id="1">  </Think>   the marker
    List<Think>  (?<think>  <think/>  <think a>   words
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

LONGEST_TAG = 200
"""A tag with its attributes is no longer than this, in characters."""

_SPACE = r"[^\S\r\n]"
_NAME = r"[A-Za-z_:][\w:.\-]*"
_PAIRS = rf"""(?>(?:{_SPACE}+{_NAME}=(?:"[^"<>\r\n]*"|'[^'<>\r\n]*'))*)"""
_UNFINISHED = rf"""{_SPACE}*(?:{_SPACE}{_NAME}(?:=(?:"[^"<>\r\n]*|'[^'<>\r\n]*)?)?)?"""


class TagRule(msgspec.Struct, frozen=True, kw_only=True):
    """How a marker that is a tag may be spelled. Any case, whitespace before its end; openers take attributes."""

    glued: bool = True
    """Whether the opener acts directly behind a letter when it is exactly lower case and has no attributes."""
    weak: bool = False
    """Whether the opener acts only as the first thing of the output, or as the next thing behind a thought that it
    opened. What closes it is no stray where nothing is open, because the name is a word of everybody's."""


def is_tag(marker: str) -> bool:
    """Whether a marker can have other spellings at all."""
    return marker.startswith("<") and marker.endswith(">") and len(marker) > 3


def at_a_glance(markers: Iterable[str]) -> str:
    """Looks whether what follows the first character of these markers, in any case, may stand here.

    In front of alternatives that ignore case or look around themselves, each of which takes long to try.
    """
    names = list(markers)
    if any(len(name) < 4 for name in names):
        return ""
    pair = ("".join(sorted({name[at] for name in names})) for at in (1, 2))
    return "(?=" + "".join(f"[{re.escape(each + each.swapcase())}]" for each in pair) + ")"


def tag_source(rules: Mapping[str, TagRule]) -> str:
    """A pattern for what follows the `<` of any of these tags. It looks back at most three characters."""
    closers = [marker[2:-1] for marker in rules if marker[1] == "/"]
    openers = {marker[1:-1]: rule for marker, rule in rules.items() if marker[1] != "/"}
    glued = [name for name, rule in openers.items() if rule.glued]
    apart = [name for name, rule in openers.items() if not rule.glued]
    room = rf"(?=[^<>\r\n]{{0,{LONGEST_TAG - 2}}}>)"
    exactly = rf"(?:{_any_of(glued)}|(?<![^\W\d_]<){_any_of(apart)}){_SPACE}*>"
    otherwise = rf"(?<![\w.:]<)(?ai:{_any_of(openers)}){_PAIRS}{_SPACE}*>"
    # The name stands first, so that a search leaves at once where another tag begins.
    names = [*closers, *openers]
    named = rf"{at_a_glance(rules)}(?=/?(?ai:{_any_of(names)})[\s>])"
    opening = rf"(?<!\(\?<)(?<!\(\?P<)(?:{exactly}|{otherwise})"
    return rf"{named}{room}(?:/(?ai:{_any_of(closers)}){_SPACE}*>|{opening})"


def tag_beginning(markers: Iterable[str]) -> re.Pattern[str]:
    """For what may still become one of these tags, from the end of its name on."""
    names = list(markers)
    closers = _any_of([marker[2:-1] for marker in names if marker[1] == "/"])
    openers = _any_of([marker[1:-1] for marker in names if marker[1] != "/"])
    return re.compile(rf"<(?:/(?ai:{closers}){_SPACE}*|(?ai:{openers}){_PAIRS}{_UNFINISHED})")


def closing_tags(markers: Iterable[str]) -> re.Pattern[str]:
    """Finds any of these closing tags in any of its spellings."""
    names = _any_of([marker[2:-1] for marker in markers])
    return re.compile(rf"</(?ai:{names}){_SPACE}{{0,{LONGEST_TAG}}}>")


def _any_of(names: Iterable[str]) -> str:
    return "(?:" + ("|".join(map(re.escape, names)) or "(?!)") + ")"
