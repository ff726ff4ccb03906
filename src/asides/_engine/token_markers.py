r"""A format for one tokenizer: each marker that is a token of its own is written as a lone surrogate.

Where the tokenizer has a token for a marker, only that token is the marker: the same characters typed with ordinary
tokens are words. To say so to the machine, the format is rewritten: each such token becomes its first character and a
lone surrogate, which no decoder ever produces, and what the machine emits is translated back. (The first character
stays because grammars end a name before a `<`.)

    <think>        "<\ud8c0"        in the format's markers and in the text that the machine reads
    "<\ud8c0"      "<think>"        in what it emits: `Disguise.reveal`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import msgspec

from ..errors import UsageError
from .calls.json_calls import JsonCalls
from .calls.named_calls import NamedCalls
from .calls.syntax import CallSyntax
from .format import Format
from .markers import Table
from .plain_pieces import PlainPieces
from .token_text import FIRST, LAST, TOKEN, TokenTexts
from .vocabulary import Pieces, Vocabulary

_ESCAPED = re.compile(r"(.)\\u(d[89ab][0-9a-f]{2})(?!\\u[dD][c-fC-F])", re.DOTALL)
"""What stands for a token, its surrogate written as an escape. Half of a pair only the model can have written."""
_REST = re.compile(f"[{chr(FIRST)}-{chr(LAST)}]")
_WRITTEN = (
    "states",
    "calls",
    "header",
    "ignored",
    "strays",
    "partial",
    "tag_rules",
    "leading",
    "behind_calls",
    "goes_on",
    "last_stops",
    "other_turns",
    "other_turns_after",
    "assistant",
)
"""The fields of a format that hold what models write."""


class Disguise(msgspec.Struct, frozen=True, eq=False):
    """A format whose marker tokens are written as surrogates, and the way back."""

    format: Format
    letters: dict[int, str]
    """For each id that is a marker or a piece of one: what stands for it."""
    rests: dict[int, str]
    """What each surrogate stands for."""
    pieces: Pieces
    """For each other id its text; None for markers, and where its bytes alone are no whole characters."""
    texts: TokenTexts
    """For each id what the machine reads for it: what stands for a marker, or its text."""
    encodes: bool
    """Whether a call syntax writes arguments anew, so that a surrogate in one may come back as an escape."""
    plain: dict[tuple[Table, bool], PlainPieces] = {}
    """For each state, with tidy whitespace or without: what can be told at once there."""

    def reveal(self, text: str) -> str:
        """Text with the tokens' own texts in it."""
        return text if text.isascii() else _REST.sub(self._rest, text)

    def reveal_arguments(self, text: str) -> str:
        """The same in JSON that may have been written anew."""
        if self.encodes and "\\u" in text:
            text = _ESCAPED.sub(lambda match: self._escaped(match, True), text)
        return self.reveal(text)

    def reveal_words(self, text: str) -> str:
        """The same in a message of ours, which may quote what the model wrote."""
        if "\\u" in text:
            text = _ESCAPED.sub(lambda match: self._escaped(match, False), text)
        return self.reveal(text)

    def _rest(self, match: re.Match[str]) -> str:
        return self.rests.get(ord(match[0]), match[0])

    def _escaped(self, match: re.Match[str], quote: bool) -> str:
        surrogate = int(match[2], 16)
        if match[1] + chr(surrogate) not in self.letters.values():
            return match[0]
        rest = self.rests[surrogate]
        import json  # here, because it is seldom needed, and the filter imports this module

        return match[1] + (json.dumps(rest, ensure_ascii=False)[1:-1] if quote else rest)


@lru_cache(maxsize=256)
def disguise(format: Format, vocabulary: Vocabulary) -> Disguise:
    """Rewrite a format for a tokenizer. Always the same object for both."""
    format = format.for_tokens(vocabulary.added)
    markers = "\0".join(_strings(format))
    wanted = sorted((text for text in vocabulary.added if text in markers and text.strip()), key=len, reverse=True)
    if len(wanted) > LAST - FIRST:
        raise UsageError("the tokenizer has more marker tokens than can be told apart")
    surrogates = {text: chr(FIRST + number) for number, text in enumerate(wanted)}
    letters = {text: text[0] + surrogate for text, surrogate in surrogates.items()}
    pieces = Pieces(vocabulary.bytes_of)
    pieces.update({vocabulary.added[text]: None for text in wanted})
    texts = TokenTexts(vocabulary.texts.__getitem__)
    texts.update({vocabulary.added[text]: letter for text, letter in letters.items()})
    return Disguise(
        _Swap(letters).format(format),
        {vocabulary.added[text]: letter for text, letter in letters.items()},
        {ord(surrogate): text[1:] for text, surrogate in surrogates.items()},
        pieces,
        texts,
        any(not isinstance(syntax, JsonCalls | NamedCalls) for syntax in _syntaxes(format)),
    )


def _syntaxes(format: Format) -> Iterable[CallSyntax]:
    formats = (format, *_settled(format)) if format.settle is not None else (format,)
    for found in formats:
        yield from found.calls
        if found.header is not None:
            yield from (*found.header.calls, *found.header.tools.values())


def _strings(value: object) -> Iterable[str]:
    """Every string in a format and its call syntaxes, but for its names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Format):
        yield from _strings(tuple(getattr(value, name) for name in _WRITTEN))
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


def _sure_of_calls(format: Format) -> Format:
    """The format with what it says of calls in thinking where their openers are tokens, if they all are."""
    said = format.calls_in_thinking_ids
    openers = (opener for syntax in format.calls for opener in syntax.openers)
    if said is None or not all(TOKEN.search(opener) for opener in openers):
        return format
    return msgspec.structs.replace(format, calls_in_thinking=said)


class _Swap:
    """Puts what stands for tokens in the place of their texts, everywhere in a format."""

    def __init__(self, letters: dict[str, str]) -> None:
        self._letters = letters
        self._formats: dict[int, tuple[Format, Format]] = {}
        self._values: dict[int, tuple[object, Any]] = {}
        self._originals: dict[int, Any] = {}

    def format(self, format: Format) -> Format:
        known = self._formats.get(id(format))
        if known is None:
            changes = {name: self._value(getattr(format, name)) for name in _WRITTEN}
            settle = self._settle(format.settle) if format.settle is not None else None
            # In ids a marker is a token; what is typed with others is words, and no reason to look at every `<`.
            swapped = _sure_of_calls(
                msgspec.structs.replace(format, **changes, settle=settle, suffixed=None, foreign=False)
            )
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
