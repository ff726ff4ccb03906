"""The fast path: chunks that are answered without the machine.

Most chunks of a stream hold nothing that could matter. Three kinds are known by one glance and cost one record each:
words of an open part (no character in the chunk can begin a marker, or all that do turn out not to), more
of a string in a call's arguments (no character can end it), and whitespace behind a great deal of held whitespace.
Everything else goes to the machine, which gives the same answer: the fast path is a shortcut and knows no rule of its
own. After each step the machine says which of the three may come next (`write_prose`, `write_string`, or neither).

`Parser.feed` reads the fields of the commonest case itself, because a call costs as much as all of them together;
`TokenParser` does the same with ids, whose texts it has looked at before. Both write only through the methods.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from ..events import Event, TextDelta, ThinkingDelta, ToolCallDelta
from ..message import Collector
from .calls.strings import StringBody
from .cursor import NON_SPACE, NOWHERE, Tape
from .markers import Few, Table
from .open_part import DELTA

LONG_SPACE = 256
"""From this length on, held whitespace is no longer joined with every chunk."""
SHORT = 512
"""Chunks longer than this do not take the fast path: searching them marker by marker is faster."""
ALWAYS = re.compile("").search
"""A glance that says of every chunk that it may matter."""
MANY = 512
"""Where nothing is collected, the machine is asked after so many chunks what can be forgotten."""

Search = Callable[[str], re.Match[str] | None]


@lru_cache(maxsize=256)
def string_search(ends: tuple[str, ...], markers: tuple[str, ...]) -> Search:
    """Finds what cannot stand in a JSON string as it is, or may end it: a beginning of one of its ends or of a marker
    (one or two characters; or the first of two, as the group, where the text ends)."""
    certain = '\\x00-\\x1f"\\\\\ud800-\udfff'
    beginnings = (*ends, *markers)
    firsts = re.escape("".join({text[0] for text in beginnings}))
    behind = [f"(?<={re.escape(text[0])}){re.escape(text[1:])}" for text in beginnings]
    # One set of characters in front, because only such a pattern is searched for fast.
    return re.compile(f"[{certain}{firsts}](?:{'|'.join([f'(?<=[{certain}])', *behind])}|(\\Z))").search


class OpenString(NamedTuple):
    """A string of a call's arguments that goes on."""

    search: Search
    """Finds what is not simply more of it."""
    body: StringBody | None
    """Tells what that is, where the reader need not."""
    markers: Table
    """What may end the call."""
    into: list[Any] | None = None
    """Where the string goes if it waits as a whole."""
    room: int = 0
    """How many characters may wait there."""


class FastPath:
    """What the next chunk may be without anything else happening, and what is held back before it."""

    __slots__ = (
        "_armed",
        "_limit",
        "_string_body",
        "_string_markers",
        "_string_room",
        "_tape",
        "_waiting_size",
        "arguments",
        "delta",
        "few",
        "glance",
        "held",
        "index",
        "inline",
        "most",
        "pieces",
        "string",
        "string_into",
        "suspect",
        "table",
        "tidy",
        "waiting",
    )

    def __init__(self, tape: Tape, table: Table, *, tidy: bool, limit: int, collector: Collector | None) -> None:
        self._tape = tape
        self.pieces = tape.pieces
        """Every chunk is appended to it first."""
        self.most = NOWHERE
        """How many pieces there may be before the machine is asked what can be forgotten."""
        self.arguments: list[Event] | None = collector.pending if collector is not None else None
        """Where the arguments of calls go for the message; None where nothing is collected."""
        self._limit = limit
        self.tidy = tidy
        """Whether whitespace at a chunk's end is held."""
        self.held = ""
        """What was read and is held back: whitespace, or what may be the beginning of a marker."""
        self.table = table
        """The markers that can act on words in the open part."""
        self.index = 0
        """The open part."""
        self.delta: type[TextDelta] | type[ThinkingDelta] | None = None
        """What words become; None when words must go to the machine."""
        self.inline: type[TextDelta] | type[ThinkingDelta] | None = None
        """The same while nothing is held and nothing must be done but appending the chunk to `pieces`."""
        self._armed: type[TextDelta] | type[ThinkingDelta] | None = None  # what `inline` is when nothing is held
        self.few: Few | None = None
        """The characters that matter, where they are few; else None, and `glance` finds them."""
        self.glance: Search = ALWAYS
        self.suspect: Search = ALWAYS
        """Finds what may be, or become, a marker: asked where a glance has found something."""
        self.string: Search | None = None
        """In a string of a call: finds what is not simply more of it."""
        self.string_into: list[str] | None = None
        """Where the string goes if it waits as a whole; None where it is emitted."""
        self._string_body: StringBody | None = None
        self._string_markers = table
        self._string_room = 0
        self.waiting: list[str] | None = None
        """Chunks behind long whitespace that is held; None while there is none."""
        self._waiting_size = 0

    # What the machine says.

    def hold(self, text: str, for_words: bool) -> None:
        """The machine has come as far as it can. `for_words`: nothing but a word can change what is held."""
        self.held = text
        self.delta = self.inline = self._armed = self.string = None
        if self.arguments is None:
            self.most = len(self.pieces) + MANY
        if for_words and len(text) >= LONG_SPACE:
            self.waiting = []
            self._waiting_size = len(text)

    def write_prose(self, table: Table, index: int) -> None:
        """Words may be emitted as they come, if what is held is whitespace or the beginning of a marker."""
        held = self.held
        stop = table.begins(held, 0, len(held)) if held else 0
        self.table = table
        self.suspect = table.suspect
        self.index = index
        # While the beginning of a marker is held, every chunk is looked at.
        self.few, self.glance = (table.few, table.glance) if stop == len(held) else (None, ALWAYS)
        if not stop or (self.tidy and held[:stop].isspace()):
            self.delta = DELTA[table.state]
            self._armed = self.delta if self.tidy else None
            self.inline = None if held else self._armed

    def write_string(self, index: int, string: OpenString) -> None:
        """A string of a call goes on."""
        self.index = index
        self._string_body = string.body
        self._string_markers = string.markers
        self.string = string.search
        self.string_into = string.into
        self._string_room = string.room

    def close(self) -> None:
        """Every chunk goes to the machine."""
        self.delta = self.inline = self._armed = self.string = None

    # Chunks.

    @property
    def size(self) -> int:
        """How many characters are held here."""
        return self._waiting_size if self.waiting is not None else len(self.held)

    def resume(self, chunk: str, final: bool) -> str | None:
        """The long whitespace that is held and a chunk, for the machine; None when that is still only whitespace."""
        waiting = self.waiting
        assert waiting is not None
        waiting.append(chunk)
        self._waiting_size += len(chunk)
        if not final and self._waiting_size <= self._limit and NON_SPACE.search(chunk) is None:
            return None
        self.waiting = None
        return self.held + "".join(waiting)

    def length(self) -> int:
        """How many characters have come."""
        return self._tape.sync()

    def keep(self, chunk: str) -> None:
        """Append a chunk to the raw text."""
        pieces = self.pieces
        pieces.append(chunk)
        if len(pieces) > self.most:
            self.close()

    def take(self, chunk: str) -> list[Event] | None:
        """Words of the open part behind what is held; None when the machine must read."""
        delta = self.delta
        if delta is None:
            return None
        few = self.few
        matters: object
        if few is not None:
            one, two, three, four = few
            matters = one in chunk or (two is not None and (two in chunk or three in chunk or four in chunk))
        else:
            matters = self.glance(chunk)
        held = self.held
        # Whitespace behind what was no beginning of a marker is held, and the beginning is not.
        if matters and (
            self.suspect(held + chunk if held else chunk) is not None or (self.glance is ALWAYS and chunk.isspace())
        ):
            return self.take_doubtful(chunk)
        words = chunk.rstrip() if self.tidy else chunk
        if self.glance is ALWAYS:
            self.few, self.glance = self.table.few, self.table.glance
        if words is chunk and chunk:
            self.held = ""
            self.inline = self._armed
            words = held + chunk
        elif words:
            self.held = chunk[len(words) :]
            words = held + words
        elif chunk and len(held) < LONG_SPACE:
            self.held = held + chunk
        else:
            return None
        pieces = self.pieces
        pieces.append(chunk)
        if len(pieces) > self.most:
            self.close()
        return [delta(self.index, words)] if words else []

    def take_spaced(self, chunk: str, words: str) -> list[Event]:
        """A chunk of words and whitespace behind them, while nothing is held."""
        self.inline = None
        self.held = chunk[len(words) :]
        delta = self.delta
        self.keep(chunk)
        return [delta(self.index, words)] if words and delta is not None else []

    def take_doubtful(self, chunk: str) -> list[Event] | None:
        """Words in which something may be, or become, a marker; None when the machine must read."""
        delta = self.delta
        text = self.held + chunk
        stop = -1 if delta is None or len(text) >= SHORT else self.table.unmarked(text)
        if stop < 0 or delta is None:
            return None
        self.few, self.glance = (self.table.few, self.table.glance) if stop == len(text) else (None, ALWAYS)
        words = text[:stop].rstrip() if self.tidy else text[:stop]
        self.held = held = text[len(words) :]
        self.inline = self._armed if not held else None
        pieces = self.pieces
        pieces.append(chunk)
        if len(pieces) > self.most:
            self.close()
        return [delta(self.index, words)] if words else []

    def take_cut(self, words: str, space: str) -> list[Event]:
        """Words and the whitespace behind them, of which it is known that they do not matter."""
        delta, held = self.delta, self.held
        assert delta is not None
        self.keep(words + space)
        self.held = space if words else held + space
        self.inline = None if self.held else self._armed
        return [delta(self.index, held + words)] if words else []

    def take_held(self) -> str:
        """What is held, which is about to be emitted."""
        held, self.held = self.held, ""
        self.inline = self._armed
        return held

    def take_string(self, chunk: str) -> list[Event] | None:
        """More of a string; None when the machine must read."""
        if self.string is None or not chunk:
            return None
        text = self.held + chunk
        met = self.string(text)
        waiting = self.string_into
        if waiting is not None:
            self._string_room -= len(chunk)
            if met is not None or self._string_room < 0:
                return None
            self.keep(chunk)
            waiting.append(chunk)
            return []
        words, held = text, ""
        if met is not None and met.lastindex:
            # Plain up to its last character, with which something may begin that ends it.
            words, held = text[: met.start()], text[met.start() :]
        elif met is not None:
            body, markers = self._string_body, self._string_markers
            stop = len(text)
            if body is None or stop >= SHORT:
                return None
            if markers.suspect(text) is not None:
                stop = markers.unmarked(text)
                if stop < 0:
                    return None
            found = body.split(text, stop)
            if found is None:
                return None
            words, held = found[0], text[found[1] :]
        pieces = self.pieces
        pieces.append(chunk)
        if len(pieces) > self.most:
            self.close()
        self.held = held
        if not words:
            return []
        event = ToolCallDelta(self.index, words)
        if self.arguments is not None:
            self.arguments.append(event)
        return [event]
