"""`TokenParser`: token ids in, the same events out, and every part knows its place in the ids.

Where the tokenizer has a token for a marker, only that token is the marker: the same characters typed with ordinary
tokens are words. To say so to the machine, the format is rewritten: each such token becomes one lone surrogate, a
character that no decoder ever produces, and what the machine tells is translated back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

import msgspec

from ..errors import UsageError
from ..events import Event, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..parts import Part, Span
from .calls.syntax import CallSyntax
from .format import Format
from .message import Message
from .parser import Parser, ParserState
from .vocabulary import Vocabulary

FIRST, LAST = 0xD800, 0xDBFF
"""The surrogates that stand for tokens."""


class Disguise(msgspec.Struct, frozen=True, eq=False):
    """A format whose marker tokens are written as surrogates, and the way back."""

    format: Format
    tokens: dict[int, str]
    """For each id that is a marker or a piece of one: its surrogate."""
    texts: dict[int, str]
    """For `str.translate`: each surrogate's own text."""


def disguise(format: Format, added: dict[str, int]) -> Disguise:
    """Rewrite a format for a tokenizer that has these tokens."""
    markers = "\0".join(_strings(format))
    wanted = sorted((text for text in added if text in markers and text.strip()), key=len, reverse=True)
    if len(wanted) > LAST - FIRST:
        raise UsageError("the tokenizer has more marker tokens than can be told apart")
    letters = {text: chr(FIRST + number) for number, text in enumerate(wanted)}
    return Disguise(
        _Swap(letters).format(format),
        {added[text]: letter for text, letter in letters.items()},
        {ord(letter): text for text, letter in letters.items()},
    )


def _strings(value: object) -> Iterable[str]:
    """Every string in a format and its call syntaxes, but for its names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Format):
        yield from _strings((value.states, value.calls, value.header, value.leading))
        if value.settle is not None:
            yield from _strings(tuple(_settled(value)))
    elif isinstance(value, dict):
        yield from _strings((*value.keys(), *value.values()))
    elif isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, msgspec.Struct):
        yield from _strings(tuple(getattr(value, name) for name in value.__struct_fields__))


def _settled(format: Format) -> Iterable[Format]:
    """The formats that `auto` may become by its markers."""
    assert format.settle is not None
    seen: dict[int, Format] = {}
    for markers in format.states.values():
        for marker in markers:
            found = format.settle(marker)
            seen.setdefault(id(found), found)
    return [found.but(settle=None) for found in seen.values() if found is not format]


class _Swap:
    """Puts surrogates in the place of token texts, everywhere in a format."""

    def __init__(self, letters: dict[str, str]) -> None:
        self._letters = letters
        self._formats: dict[int, tuple[Format, Format]] = {}
        self._values: dict[int, tuple[object, Any]] = {}
        self._originals: dict[int, Any] = {}

    def format(self, format: Format) -> Format:
        known = self._formats.get(id(format))
        if known is None:
            changes = {name: self._value(getattr(format, name)) for name in ("states", "calls", "header", "leading")}
            settle = self._settle(format.settle) if format.settle is not None else None
            swapped = msgspec.structs.replace(format, **changes, settle=settle)
            known = self._formats[id(format)] = (format, swapped)
        return known[1]

    def _settle(self, settle: Callable[[str | CallSyntax], Format]) -> Callable[[str | CallSyntax], Format]:
        def swapped(met: str | CallSyntax) -> Format:
            return self.format(settle(self._original(met)))

        return swapped

    def _original(self, met: str | CallSyntax) -> str | CallSyntax:
        if isinstance(met, str):
            for text, letter in self._letters.items():
                met = met.replace(letter, text)
            return met
        original: CallSyntax = self._originals.get(id(met), met)
        return original

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            for text, letter in self._letters.items():
                value = value.replace(text, letter)
            return value
        if isinstance(value, dict):
            return {self._value(key): self._value(item) for key, item in value.items()}
        if isinstance(value, tuple | list | frozenset):
            return type(value)(map(self._value, value))
        if isinstance(value, msgspec.Struct):
            known = self._values.get(id(value))
            if known is None:
                names = value.__struct_fields__
                swapped = msgspec.structs.replace(value, **{name: self._value(getattr(value, name)) for name in names})
                known = self._values[id(value)] = (value, swapped)
                self._originals[id(swapped)] = value
            return known[1]
        return value


@lru_cache(maxsize=64)
def _vocabulary(tokenizer: Any) -> Vocabulary:
    return Vocabulary(tokenizer)


@lru_cache(maxsize=256)
def _disguise(format: Format, vocabulary: Vocabulary) -> Disguise:
    return disguise(format, dict(vocabulary.added))


class TokenParser:
    """Takes a model's token ids apart as they come. `feed` ids, then `finish`; both return a list of events."""

    __slots__ = (
        "_decoder",
        "_disguise",
        "_lengths",
        "_marked",
        "_parser",
        "_places",
        "_shifts",
        "_size",
        "_vocabulary",
        "ids",
    )

    def __init__(
        self, tokenizer: Any, format: Format, *, prompt_ids: Sequence[int] | None = None, **policies: Any
    ) -> None:
        try:
            self._vocabulary = _vocabulary(tokenizer)
        except TypeError:  # a tokenizer that cannot be hashed
            self._vocabulary = Vocabulary(tokenizer)
        self._disguise = _disguise(format, self._vocabulary)
        if prompt_ids is not None:
            policies = {**policies, "prompt": "".join(self._texts(prompt_ids, self._vocabulary.decoder()))}
        self._parser = Parser(self._disguise.format, **policies)
        self._decoder = self._vocabulary.decoder()
        self.ids: list[int] = []
        """Every id that was fed."""
        self._lengths: list[int] = []
        self._size = 0
        self._places: list[int] = []
        self._shifts: list[int] = [0]
        self._marked = False

    def feed(self, ids: int | Iterable[int]) -> list[Event]:
        """Read one id or several and return what they tell."""
        if isinstance(ids, int):
            ids = (ids,)
        tokens, bytes_of = self._disguise.tokens, self._vocabulary.bytes_of
        decode, lengths = self._decoder.decode, self._lengths
        pieces: list[str] = []
        for id in ids:
            self.ids.append(id)
            letter = tokens.get(id)
            if letter is None:
                piece = decode(bytes_of(id))
                pieces.append(piece)
                lengths.append(len(piece))
                self._size += len(piece)
                continue
            self._marked = True
            piece = decode(b"", True)  # half a character before a marker never becomes a whole one
            self._decoder.reset()
            if piece:
                pieces.append(piece)
                lengths[-1] += len(piece)
                self._size += len(piece)
            pieces.append(letter)
            lengths.append(1)
            self._places.append(self._size)
            self._shifts.append(self._shifts[-1] + len(self._disguise.texts[ord(letter)]) - 1)
            self._size += 1
        return self._translate(self._parser.feed("".join(pieces)))

    def finish(self) -> list[Event]:
        """The input is over: return what was held back and how it ends. A second call returns nothing."""
        rest = self._decoder.decode(b"", True)
        if rest:
            self._lengths[-1] += len(rest)
            self._size += len(rest)
            events = self._parser.feed(rest)
        else:
            events = []
        return self._translate(events + self._parser.finish())

    @property
    def state(self) -> ParserState:
        """Where the parser stands: what the next token would be part of."""
        return self._parser.state

    @property
    def held(self) -> int:
        """How many characters are held back."""
        return self._parser.held

    @property
    def message(self) -> Message:
        """The message so far; the whole of it after `finish`. Its parts know their tokens."""
        told = self._parser.message
        starts = list(accumulate(self._lengths, initial=0))
        spans = [part.span for part in told.parts]
        parts = [self._part(part, _tokens_of(starts, part.span)) for part in told.parts]
        notices = [self._notice(notice) for notice in told.notices]
        return msgspec.structs.replace(
            told,
            parts=tuple(parts),
            raw=self._text(told.raw),
            notices=tuple(notices),
            thinking=self._text(told.thinking),
            text=self._text(told.text),
            roles=tuple(_roles(told, starts, spans)),
        )

    def _texts(self, ids: Iterable[int], decoder: Any) -> Iterable[str]:
        for id in ids:
            letter = self._disguise.tokens.get(id)
            if letter is None:
                yield decoder.decode(self._vocabulary.bytes_of(id))
            else:
                yield decoder.decode(b"", True) + letter
                decoder.reset()

    # Back from surrogates to texts, and from the machine's offsets to the raw text's.

    def _text(self, text: str) -> str:
        return text.translate(self._disguise.texts) if self._places else text

    def _offset(self, offset: int) -> int:
        return offset + self._shifts[bisect_left(self._places, offset)]

    def _span(self, span: Span) -> Span:
        return self._offset(span[0]), self._offset(span[1])

    def _notice(self, notice: Notice) -> Notice:
        return Notice(notice.code, self._text(notice.message), self._offset(notice.offset))

    def _part(self, part: Part, tokens: Span) -> Part:
        changes: dict[str, Any] = {"span": self._span(part.span), "tokens": tokens}
        for name in ("text", "arguments", "raw", "name", "id", "error_message"):
            if hasattr(part, name):
                changes[name] = self._text(getattr(part, name))
        return msgspec.structs.replace(part, **changes)

    def _translate(self, events: list[Event]) -> list[Event]:
        if not self._places:
            return events
        translated = [self._event(event) for event in events]
        self._marked = self._marked and self._parser.held > 0
        return translated

    def _event(self, event: Event) -> Event:
        if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            return type(event)(event.index, self._text(event.text)) if self._marked else event
        if isinstance(event, PartEnd):
            return msgspec.structs.replace(
                event, span=self._span(event.span), error_message=self._text(event.error_message)
            )
        if isinstance(event, PartStart):
            return msgspec.structs.replace(event, name=self._text(event.name), id=self._text(event.id))
        return self._notice(event)


def _tokens_of(starts: list[int], span: Span) -> Span:
    """The tokens that hold any character of a span. `starts` has the offset of every token, and of the end."""
    first = bisect_right(starts, span[0]) - 1
    while first > 0 and starts[first - 1] == starts[first]:
        first -= 1  # it holds the first bytes of a character that a later token completes
    last = bisect_left(starts, span[1])
    return min(first, last), last


def _roles(message: Message, starts: list[int], spans: list[Span]) -> list[str]:
    """A label for every id."""
    kinds = {"Thinking": "thinking", "Text": "text", "ToolCall": "call"}
    roles = [""] * (len(starts) - 1)
    for part, span in zip(message.parts, spans, strict=True):
        first, last = _tokens_of(starts, span)
        for number in range(first, last):
            roles[number] = roles[number] or kinds[type(part).__name__]
    for number, role in enumerate(roles):
        if not role:
            text = message.raw[starts[number] : starts[number + 1]]
            roles[number] = "other" if not text or text.isspace() else "marker"
    return roles
