"""Markers that are tags which people ask for in prompts: how else they may be spelled, and where they are only code.

A model that was asked for `<think>` also writes `<Think>`, `<THINK>` or `<think id="1">`. The same characters stand in
code: `List<Thought>`, `collect::<Thought>()`, `(?P<thinking>.+)`, `<Thinking/>`. Both are told apart by the tag itself
and by the few characters before it, so that the answer never depends on what follows.

    <Think>  <THINK >  <think id="1">  </Think>   the marker
    List<Think>  (?<think>  <think/>  <think a>   words
"""

from __future__ import annotations

import re

import msgspec

LONGEST_TAG = 200
"""A tag with its attributes is no longer than this, in characters."""

_SPACE = r"[^\S\r\n]"
_NAME = r"[A-Za-z_:][\w:.\-]*"
_PAIR = rf"""{_SPACE}+{_NAME}=(?:"[^"<>\r\n]*"|'[^'<>\r\n]*')"""
_PAIRS = rf"(?>(?:{_PAIR})*)"
_UNFINISHED = rf"""(?:{_SPACE}*|{_SPACE}+{_NAME}=?|{_SPACE}+{_NAME}="[^"<>\r\n]*|{_SPACE}+{_NAME}='[^'<>\r\n]*)"""


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


def tag_source(marker: str, rule: TagRule) -> str:
    """A pattern for what follows the marker's `<`. It looks back before the `<`, at most three characters."""
    name = marker[1:-1]
    room = LONGEST_TAG - len(marker)
    first, rest = name[0], re.escape(name[1:])
    if first == "/":
        return rf"/(?ai:{rest}){_SPACE}{{0,{room}}}>"
    size = len(name)
    # The name stands first, so that the search leaves at once where another tag begins; what stands before the tag is
    # looked at from behind the name.
    spelled = rf"[{first.lower()}{first.upper()}](?ai:{rest})"
    no_group = rf"(?<!\(\?<.{{{size}}})(?<!\(\?P<.{{{size}}})"
    behind_letter = "" if rule.glued else rf"(?<![^\W\d_]<.{{{size}}})"
    exactly = rf"(?<={re.escape(name)}){behind_letter}{_SPACE}{{0,{room}}}>"
    otherwise = rf"(?<![\w.:]<.{{{size}}})(?=[^<>\r\n]{{0,{room}}}>){_PAIRS}{_SPACE}*>"
    return rf"{spelled}{no_group}(?:{exactly}|{otherwise})"


def tag_beginning(marker: str) -> str:
    """A pattern for the marker's beginning from the end of its name on: what may still become a whole tag."""
    name = re.escape(marker[:-1])
    return rf"(?ai:{name})" + (rf"{_SPACE}*" if marker[1] == "/" else _PAIRS + _UNFINISHED)


def closing_tag(marker: str) -> re.Pattern[str]:
    """Finds a closing tag in any of its spellings."""
    return re.compile("<" + tag_source(marker, TagRule()))
