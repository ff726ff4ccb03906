"""Outputs that begin as one JSON value or as one element: documents, in which `auto` takes markers for words.

Where nobody says what format an output has, `{"text": "<think>"}` and `<example><think>…</think></example>` are answers
that hold markers. Whether a place stands in a string of that value, or in that element, follows from the characters
before it alone: nothing waits, and an element that never closes goes on to the end.

    {"a": "<think>"}          in a string of the JSON value that the output is so far
    <doc><think>a</think>     in an element that is the first thing of the output, until it closes
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .calls.json_scan import JsonScanner

_LONGEST = 1024
"""A tag is no longer than this behind its name, in characters."""
_TAG = re.compile(rf"<([A-Za-z][\w:.\-]{{0,63}}+)((?:\s[^<>]{{0,{_LONGEST}}}+)?/?)>")
_BEGUN = re.compile(rf"<(?:[!?][^<>]{{0,{_LONGEST}}}+|[A-Za-z][\w:.\-]{{0,63}}+(?:\s[^<>]{{0,{_LONGEST}}}+)?/?)?")
_PREFACE = re.compile(rf"<[!?][^<>]{{0,{_LONGEST}}}+>")
"""`<!DOCTYPE html>` and `<?xml version="1.0"?>`."""
_NEVER_CLOSED = frozenset(
    # Elements that have no end, or need none; and tokens that begin a sequence.
    [
        "area",
        "base",
        "br",
        "col",
        "dd",
        "dt",
        "embed",
        "hr",
        "img",
        "input",
        "li",
        "link",
        "meta",
        "option",
        "p",
        "source",
        "td",
        "th",
        "tr",
        "track",
        "wbr",
        "bos",
        "eos",
        "pad",
        "s",
        "sos",
    ]
)


class WholeDocument:
    """Follows an output from its first character, a stretch at a time."""

    __slots__ = ("_depth", "_is_marker", "_read", "_scanner", "_tags", "_tail", "at")

    def __init__(self, is_marker: Callable[[str], bool]) -> None:
        """`is_marker`: whether a tag of this name is a marker in one of its spellings."""
        self.at = 0
        """How far the output has been followed."""
        self._is_marker = is_marker
        self._read: Callable[[str], str] | None = self._begin
        self._scanner: JsonScanner | None = None
        self._tags: re.Pattern[str] | None = None
        self._depth = 0
        self._tail = ""  # what may become a tag, or half of an escape

    @property
    def over(self) -> bool:
        """Whether it has ended, or the output is none."""
        return self._read is None

    @property
    def in_string(self) -> bool:
        """Whether the place that was reached stands in a string of JSON."""
        return self._scanner is not None and self._scanner.in_string

    @property
    def in_element(self) -> bool:
        """Whether it stands in the element."""
        return self._depth > 0

    def advance(self, text: str) -> None:
        """More of the output."""
        self.at += len(text)
        text, self._tail = self._tail + text, ""
        while text and self._read is not None:
            text = self._read(text)

    def _end(self) -> str:
        self._read = self._scanner = None
        self._depth = 0
        return ""

    def _begin(self, text: str) -> str:
        text = text.lstrip()
        if text[:1] in ("{", "["):
            self._scanner = JsonScanner()
            self._read = self._json
        elif text[:1] == "<":
            self._read = self._opening
        elif text:
            self._end()
        return text

    def _json(self, text: str) -> str:
        scanner = self._scanner
        assert scanner is not None
        stop = scanner.scan(text, 0, len(text))
        if scanner.done or scanner.error is not None:
            return self._end()
        self._tail = text[stop:]
        return ""

    def _opening(self, text: str) -> str:
        """At the tag that the output begins with."""
        preface = _PREFACE.match(text)
        if preface is not None:
            self._read = self._begin
            return text[preface.end() :]
        tag = _TAG.match(text)
        if tag is None and _BEGUN.fullmatch(text):
            self._tail = text
            return ""
        name = tag[1] if tag is not None else ""
        if tag is None or tag[2].endswith("/") or name.lower() in _NEVER_CLOSED or self._is_marker(name):
            return self._end()
        self._depth = 1
        self._tags = re.compile(rf"<(/?){re.escape(name)}((?:\s[^<>]{{0,{_LONGEST}}}+)?/?)>", re.IGNORECASE)
        self._read = self._inside
        return text[tag.end() :]

    def _inside(self, text: str) -> str:
        """In the element: elements of its name may stand in it."""
        assert self._tags is not None
        at = 0
        for tag in self._tags.finditer(text):
            at = tag.end()
            if not tag[2].endswith("/"):
                self._depth += -1 if tag[1] else 1
            if not self._depth:
                return self._end()
        begun = text.find("<", max(at, text.rfind(">") + 1, len(text) - 2 * _LONGEST))
        self._tail = text[begun:] if begun >= 0 else ""
        return ""
