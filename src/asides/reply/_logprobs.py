"""Which log probabilities belong to the text that a reader sees. Knows tokens and offsets; no dialect.

Tokens come with the raw text, markers and all; the parser's text is without them. A token is given out with
the part that holds its characters, trimmed to those where a marker or whitespace that frames one shares it, so that
the tokens of a text joined are the text. What is in no text (thinking, calls, markers) comes apart from it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from ..events import Event, Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta

Token = dict[str, Any]


class Alignment:
    """The tokens of a choice that have not been given out."""

    def __init__(self, size: int) -> None:
        self._size = size
        """How many characters have come."""
        self._tokens: deque[tuple[int, int, Token]] = deque()
        self._waiting: list[Token] = []
        """Tokens whose characters have not all come: the bytes of one character may be several tokens, and a server may
        cut a token's text in two."""
        self._seen = b""
        """What has come of the first of these, from where its first character begins."""
        self._place = 0
        """Where in that the first of these begins."""
        self._starts: dict[int, int] = {}
        self._at = 0
        self._from = 0
        self._in_text = False
        self._left: list[Token] = []

    def restart(self) -> None:
        """Another parser begins: offsets count from zero again."""
        self._left += [token for _, _, token in self._tokens] + self._waiting
        self._tokens.clear()
        self._waiting, self._seen, self._place = [], b"", 0
        self._starts.clear()
        self._size = 0

    def rest(self) -> list[Token]:
        """What was never given out."""
        self.restart()
        rest, self._left = self._left, []
        return rest

    def add(self, text: str, tokens: tuple[Token, ...]) -> None:
        """More text, and its tokens."""
        start, self._size = self._size, self._size + len(text)
        # Nearly always the tokens joined are the text: no encoding, no search.
        if not self._waiting and "".join(str(token.get("token")) for token in tokens) == text:
            for token in tokens:
                stop = start + len(token["token"])
                self._tokens.append((start, stop, token))
                start = stop
            return
        data = self._seen + text.encode("utf-8", "surrogatepass")
        self._add_bytes(start - _characters(self._seen, len(self._seen)), data, [*self._waiting, *tokens])

    def _add_bytes(self, base: int, data: bytes, tokens: list[Token]) -> None:
        """By bytes, because a token may be less than a character. `data` begins at the character `base`."""
        place = self._place
        self._waiting, self._seen, self._place = [], b"", 0
        for number, token in enumerate(tokens):
            written = _bytes_of(token)
            if data.startswith(written, place):
                stop = place + len(written)
                first, last = _characters(data, place), _characters(data, stop)
                # A token that ends inside a character counts as holding all of it, so that it is given out with that
                # character.
                cut = stop < len(data) and data[stop] & 0xC0 == 0x80
                self._tokens.append((base + first, base + last + cut, token))
                place = stop
            # Also where no text is left: a server may send the first tokens of a character with an empty text, because
            # the character is not whole yet.
            elif written.startswith(data[place:]):
                first = place
                while first < len(data) and data[first] & 0xC0 == 0x80:
                    first -= 1  # to where its character begins, because offsets count whole characters
                self._waiting, self._seen, self._place = tokens[number:], data[first:], place - first
                return
            else:  # a token that was not written, such as a stop token
                first = _characters(data, place)
                self._tokens.append((base + first, base + first, token))

    def place(self, open_start: Callable[[], int], events: list[Event]) -> None:
        """Note where the parts begin that the parser has just started; `open_start` says it of the one that is open."""
        ends = {event.index: event.span[0] for event in events if isinstance(event, PartEnd)}
        for event in events:
            if isinstance(event, PartStart):
                start = ends.get(event.index)
                self._starts[event.index] = open_start() if start is None else start

    def take(self, event: Event, first: int) -> tuple[list[Token], list[Token]]:
        """The tokens of an event: those of text, and the others. `first` is the number of the parser's first part."""
        others, self._left = self._left, []
        # A part that the upstream split off itself: its tokens came with its chunks and never passed the parser.
        if isinstance(event, Notice) or event.index - first not in self._starts:
            return [], others
        if isinstance(event, PartStart):
            self._in_text = event.kind == "text"
            self._at = self._from = self._starts[event.index - first]
            return [], others + self._pop(self._at)
        if isinstance(event, Retyped):
            self._in_text = event.kind == "text"
            return [], others
        if isinstance(event, PartEnd):
            if not self._in_text:
                return [], others + self._pop(event.span[1])
            claimed = self._claim(self._at)
            # One token may be the end of the text and the beginning of a marker.
            if self._tokens and self._tokens[0][0] < self._at:
                claimed[0].append(self._trimmed(self._tokens.popleft()))
        elif isinstance(event, TextDelta):
            self._at += len(event.text)
            claimed = self._claim(self._at)
        elif isinstance(event, ThinkingDelta):
            self._at += len(event.text)
            return [], others + self._pop(self._at)
        else:
            return [], others
        return claimed[0], others + claimed[1]

    def _pop(self, stop: int) -> list[Token]:
        popped = []
        while self._tokens and self._tokens[0][1] <= stop:
            popped.append(self._tokens.popleft()[2])
        return popped

    def _claim(self, stop: int) -> tuple[list[Token], list[Token]]:
        claimed: list[Token] = []
        others: list[Token] = []
        while self._tokens and self._tokens[0][1] <= stop:
            entry = self._tokens.popleft()
            if entry[0] == entry[1]:
                others.append(entry[2])
            else:
                claimed.append(self._trimmed(entry))
        return claimed, others

    def _trimmed(self, entry: tuple[int, int, Token]) -> Token:
        """The token with those of its characters that are in the text."""
        start, stop, token = entry
        # The second condition: a token of partial characters has no text that could be cut by characters.
        if (start >= self._from and stop <= self._at) or len(token["token"]) != stop - start:
            return token
        text = token["token"][max(self._from - start, 0) : self._at - start]
        trimmed = {**token, "token": text}
        if token.get("bytes") is not None:
            trimmed["bytes"] = list(text.encode("utf-8", "surrogatepass"))
        return trimmed


def _bytes_of(token: Token) -> bytes:
    written = token.get("bytes")
    if written is not None:
        return bytes(written)
    return str(token.get("token")).encode("utf-8", "surrogatepass")


def _characters(data: bytes, stop: int) -> int:
    """How many whole characters stand before a byte."""
    return len(data[:stop].decode("utf-8", "ignore"))
