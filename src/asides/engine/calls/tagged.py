"""What the grammars that write arguments between tags have in common: where a value ends, and a reader's steps.

Knows text, not tags by name: `xml_calls.py`, `nested_calls.py` and `keyed_calls.py` say which there are.

Where a value ends is the hard part, because a value may be code that holds the very tag that closes it. The rule: a
closing tag ends the value only if what follows it, after whitespace, is what the grammar expects there (another
parameter, the end of the call, a closing marker of the region) or the end of input. Otherwise it is part of the value.
"""

from __future__ import annotations

import re

from .reader import Sink, Status
from .steps import SPACE, StepReader, begins, skip, wait
from .syntax import CallSyntax
from .values import Kind, Schema, ValueWriter, quote

LONGEST_TAG = 1024
"""A tag, with a name and attributes, is no longer than this, in characters."""

LONGEST_INDENT = 64
"""How much whitespace may stand before CDATA."""

CDATA = "<![CDATA["
CDATA_CLOSE = "]]>"


def literal_at(literals: tuple[str, ...], text: str, at: int, end: int) -> str | None:
    """Which of the literals stands at `at`: the empty string when none does, None when more must be seen."""
    cut = False
    for literal in literals:
        stop = at + len(literal)
        if text.startswith(literal, at, end):
            return literal
        cut = cut or (stop > end and literal.startswith(text[at:end]))
    return None if cut else ""


def skip_gap(gap: re.Pattern[str], text: str, at: int, end: int) -> int:
    """Behind what may stand between two tags."""
    match = gap.match(text, at, end)
    return match.end() if match else at


class TaggedValue:
    """Reads a value up to the closing tag that ends it."""

    __slots__ = (
        "_cdata",
        "_close",
        "_closed",
        "_framed",
        "_gap",
        "_limit",
        "_newline",
        "_next",
        "_pending",
        "_size",
        "_step",
        "_writer",
        "done",
        "space",
    )

    def __init__(
        self,
        writer: ValueWriter,
        close: str,
        next: tuple[str, ...],
        limit: int,
        *,
        framed: bool = False,
        cdata: bool = False,
        gap: re.Pattern[str] = SPACE,
    ) -> None:
        self._writer = writer
        self._close = close
        self._next = next
        self._limit = limit
        self._framed = framed
        self._gap = gap
        self._cdata = False
        self._newline = False
        self._closed = False
        self._pending: list[str] = []
        self._size = 0
        self._step = self._lead if framed else self._open_cdata if cdata else self._body
        self.done = False
        """Whether the value has ended. The position is then behind the whitespace that follows its closing tag."""
        self.space = 0
        """How much of that whitespace there was."""

    def read(self, text: str, at: int, end: int, final: bool) -> int:
        """Read `text[at:end]`; return where reading stopped."""
        while not self.done:
            stop = self._step(text, at, end, final)
            if stop < 0:
                return -1 - stop
            at = stop
        return at

    @property
    def calm(self) -> str | None:
        """What ends the value, while it is a string that is written as it comes."""
        if self.done or self._step != self._body or self._newline or not self._writer.flows:
            return None
        return (CDATA_CLOSE if self._cdata else self._close)[0]

    def _lead(self, text: str, at: int, end: int, final: bool) -> int:
        """One newline directly behind the opening tag is not part of the value."""
        if at == end:
            return wait(at)
        self._step = self._body
        return at + (text[at] == "\n")

    def _open_cdata(self, text: str, at: int, end: int, final: bool) -> int:
        place = skip(text, at, min(end, at + LONGEST_INDENT))
        found = literal_at((CDATA,), text, place, end) if place < at + LONGEST_INDENT else ""
        if found is None:
            return wait(at)
        self._step = self._body
        if not found:
            return at
        self._cdata = True
        return place + len(CDATA)

    def _body(self, text: str, at: int, end: int, final: bool) -> int:
        close = CDATA_CLOSE if self._cdata else self._close
        place = text.find(close, at, end)
        if place < 0:
            stop = begins(text, at, end, (close,))
            self._put(text[at:stop])
            return wait(stop)
        self._put(text[at:place])
        self._pending = ["\n" + close if self._newline else close]
        self._newline = False
        self._closed = not self._cdata
        self._size = len(close)
        self._step = self._behind
        return place + len(close)

    def _put(self, words: str) -> None:
        """Give words to the value; a newline at their end is kept back, for it may frame the closing tag."""
        if not words:
            return
        if self._newline:
            words = "\n" + words
        self._newline = self._framed and words.endswith("\n")
        self._writer.add(words[:-1] if self._newline else words)

    def _behind(self, text: str, at: int, end: int, final: bool) -> int:
        """Behind a closing tag: does the value end here?"""
        stop = skip_gap(self._gap, text, at, end)
        if stop > at:
            self._pending.append(text[at:stop])
            self._size += stop - at
            self.space += stop - at
            at = stop
        found = self._expected(text, at, end) if self._closed else literal_at((self._close,), text, at, end)
        if self._size > self._limit:
            found = ""
        elif found is None and not (final and self._closed):
            return wait(at)
        if found == "":
            words = "".join(self._pending)
            self._step = self._body
            self.space = 0
            self._put(words)
            return at
        if found and not self._closed:
            self._closed = True
            self._pending.append(found)
            self._size += len(found)
            self.space = 0
            return at + len(found)
        self._writer.close()
        self.done = True
        return at

    def _expected(self, text: str, at: int, end: int) -> str | None:
        """Which of the things that may follow a value stands here; as `literal_at`."""
        return literal_at(self._next, text, at, end)


class TaggedReader(StepReader):
    """The steps that every tagged grammar takes. Subclasses say what stands between a call's opener and its end."""

    def __init__(self, syntax: CallSyntax, sink: Sink, opener: str, calls: tuple[str, ...]) -> None:
        super().__init__(sink)
        self._markers = syntax
        self._begins_call = calls
        self._section = opener in syntax.section
        self._calls = 0
        self._ended_at = 0
        self._value: TaggedValue | None = None
        if self._section:
            self._step = self._item
        self._clear()

    def _clear(self) -> None:
        """Before another call."""
        self._name = ""
        self._headed = False
        self._members = 0
        self._schema: Schema | None = None

    @property
    def calm(self) -> str | None:
        """Inside a value."""
        inside = self._value is not None and self._step == self._in_value
        return self._value.calm if inside and self._value is not None else None

    def recover(self, marker: str) -> None:
        """The closing marker of one call in a section does not end the section."""
        self.status = Status.DONE
        if self._section and marker in self._markers.close:
            self.status = Status.READING
            self._next_item()

    def _item(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where a call of a section, or the section's end, is expected."""
        at = skip(text, at, end)
        if at == end and not (final and self._calls):
            return wait(at)
        if at == end:
            self._sink.missing_close(base + at)
            return self._done(at)
        section_close = self._markers.section_close
        found = literal_at((*self._begins_call, *section_close), text, at, end)
        if found is None and not final:
            return wait(at)
        if found is None and literal_at(self._begins_call, text, at, end) is None:
            self._sink.begin(base + at)
            return wait(at)
        if not found:
            return self._reject(at, "a call is expected")
        if found in section_close:
            return self._done(at + len(found))
        self._sink.begin(base + at)
        return self._enter(found, at)

    def _enter(self, found: str, at: int) -> int:
        """A call of a section begins here with one of `calls`: choose the next step and return where it starts."""
        raise NotImplementedError

    def _in_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        value = self._value
        assert value is not None
        at = value.read(text, at, end, final)
        if not value.done:
            return wait(at)
        self._ended_at = base + at - value.space
        self._step = self._behind_a_value
        return at

    def _behind_a_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where another value, or the end of the call, is expected."""
        raise NotImplementedError

    def _end(self, at: int, alone: bool) -> int:
        """The call is over, and with it the region unless that is a section."""
        self._sink.end(self._ended_at, alone=alone)
        self._next_item()
        return at if self._section else self._done(at)

    def _next_item(self) -> None:
        self._calls += 1
        self._clear()
        self._step = self._item

    def _head(self) -> None:
        """The arguments begin."""
        if not self._headed:
            self._headed = True
            self._sink.head(self._name)
            tools = self._sink.tools
            parameters = tools.parameters(self._name) if tools is not None else None
            self._schema = Schema(parameters) if parameters is not None else None

    def _key(self, key: str) -> None:
        """A member of the arguments begins."""
        self._head()
        self._sink.arguments(f"{', ' if self._members else '{'}{quote(key)}: ")
        self._members += 1

    def _writer(self, key: str, kind: Kind) -> ValueWriter:
        schema = self._schema.member(key) if self._schema is not None else None
        return ValueWriter(self._sink, schema, kind, key)

    def _close_arguments(self) -> None:
        self._head()
        self._sink.arguments("}" if self._members else "{}")
