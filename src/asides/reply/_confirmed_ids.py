"""Ids that a server sends beside its text, each read when the text that it stands for has come.

The text says what was said: what a server holds back (at a stop string) or leaves out (a stop token) stays out. The ids
say which of it is a marker, one that the text does not show included. A server may send ids before their text: bytes of
a character that is not whole, letters that may begin a stop string. Where the two do not agree, or the ids cease, the
text alone is read from there on, and what is written like a marker is one.

    confirmed = ConfirmedIds(reading.token_parser(tokenizer))
    confirmed.feed("Hm", (71623,))         # events, and the raw text that they count
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from .._engine.format import thinking_pair
from .._engine.parser import format_of, open_span
from .._engine.tokens import (
    TokenParser,
    feed_spelled,
    machine_of,
    marker_tokens,
    ordinary_pieces,
    raw_span,
    revealed,
    vocabulary_in,
)
from ..events import Event
from ..message import FinishReason

MOST_AHEAD = 1024
"""Ids that may wait for their text. A server that never sends any must not be waited for with growing work."""
_REPLACEMENT = "\ufffd".encode()
"""What servers write for bytes that are no character."""


class ConfirmedIds:
    """Reads one choice by ids, as far as its text confirms them."""

    __slots__ = (
        "_ahead",
        "_markers",
        "_rest",
        "_vocabulary",
        "by_text",
        "disagreed",
        "feed_id",
        "machine",
        "ordinary",
        "pieces",
        "tokens",
        "waits",
    )

    def __init__(self, tokens: TokenParser) -> None:
        self.tokens = tokens
        self.feed_id = tokens.feed
        """Reads an id whose text has come with it, where nothing waits."""
        self.machine = machine_of(tokens)
        self._vocabulary = vocabulary_in(tokens)
        self.pieces = self._vocabulary.pieces
        """For each id its text, markers included."""
        self.ordinary = ordinary_pieces(tokens)
        """The same without markers."""
        self._markers = marker_tokens(tokens)
        self._ahead: list[int] = []
        """Ids whose text has not all come."""
        self._rest = b""
        """What has come of the text of the first of these; where text alone is read, what may begin a marker."""
        self.by_text = False
        """Whether the text alone is read from here on."""
        self.disagreed = ""
        """What the text says where the ids say something else; empty where they agree."""
        self.waits = False
        """Whether more is to be looked at than the next text and its id."""

    def feed(self, text: str, ids: Sequence[int]) -> tuple[list[Event], str]:
        """Read text and the ids that came with it: the events, and the raw text that they count."""
        if self.by_text:
            return self._spell(text)
        data = self._rest + text.encode("utf-8", "surrogatepass")
        ahead = [*self._ahead, *ids]
        bytes_of, added = self._vocabulary.bytes_of, self._vocabulary.added_ids
        at = place = 0
        read: list[int] = []
        # Up to the last id whose text has come, and with it a whole character: ids taken, bytes taken, ids read.
        whole = (0, 0, 0)
        while place < len(ahead):
            id = ahead[place]
            written = bytes_of(id)
            if written and data.startswith(written, at):
                read.append(id)
                at += len(written)
                if at == len(data) or data[at] & 0xC0 != 0x80:
                    whole = (place + 1, at, len(read))
            elif len(written) > len(data) - at and written.startswith(data[at:]):
                break
            elif id not in added or not written:
                return self._give_up(data, read[: whole[2]], whole[1])
            elif id in self._markers:  # a token that the server does not show, if what follows agrees again
                read.append(id)
            place += 1
        late = len(ahead) - whole[0] > MOST_AHEAD
        if late or (place == len(ahead) and whole[1] < len(data)):
            return self._give_up(data, read[: whole[2]], whole[1], silent=not ids)
        self._ahead, self._rest = ahead[whole[0] :], data[whole[1] :]
        self.waits = bool(self._ahead)
        return self._feed(read[: whole[2]])

    def _feed(self, ids: list[int]) -> tuple[list[Event], str]:
        return (self.tokens.feed(ids), self._vocabulary.text(ids)) if ids else ([], "")

    def _give_up(self, data: bytes, read: list[int], at: int, silent: bool = False) -> tuple[list[Event], str]:
        """Read the ids that are confirmed, and from there on the text alone."""
        # Bytes that are no character are the model's mistake, not another tokenizer's.
        if not silent and not data.startswith(_REPLACEMENT, at):
            self.disagreed = data[at : at + 64].decode("utf-8", "replace") or "(nothing)"
        self.by_text = self.waits = True
        self._ahead, self._rest = [], b""
        events, raw = self._feed(read)
        more, spelled = self._spell(data[at:].decode("utf-8", "surrogatepass"))
        return events + more, raw + spelled

    def _spell(self, text: str, final: bool = False) -> tuple[list[Event], str]:
        text = self._rest.decode("utf-8", "surrogatepass") + text
        kept = 0 if final else _begun(text, self._markers.values())
        ready = text[: len(text) - kept]
        self._rest = text[len(ready) :].encode("utf-8", "surrogatepass")
        return (feed_spelled(self.tokens, ready), ready) if ready else ([], "")

    def drop_ahead(self) -> None:
        """The text of the ids that wait comes otherwise: as something that the server has separated."""
        self._ahead.clear()

    def finish(self, reason: FinishReason | None) -> tuple[list[Event], str]:
        """No more comes: the last events, and their raw text."""
        if self._rest:
            self.by_text = True
            events, raw = self._spell("", final=True)
        else:
            # Text that has not come is text that the server has not said; tokens that it does not show come no more.
            shown = next((at for at, id in enumerate(self._ahead) if id not in self._vocabulary.added_ids), None)
            events, raw = self._feed([id for id in self._ahead[:shown] if id in self._markers])
        return events + self.tokens.finish(reason), raw

    # What the splitter asks of its parser, in offsets of the raw text.

    @property
    def held(self) -> int:
        """How many characters are held back, at most."""
        held = self.tokens.held  # first: it lets the machine see all that was read
        told = open_span(self.machine)[1]
        first, last = raw_span(self.tokens, (told, told + held))
        return last - first

    @property
    def open_start(self) -> int:
        """Where the open part begins."""
        return raw_span(self.tokens, open_span(self.machine))[0]

    @property
    def thinking_pair(self) -> tuple[str, str]:
        """The markers around a thought."""
        opening, closing = thinking_pair(format_of(self.machine))
        return revealed(self.tokens, opening), revealed(self.tokens, closing)


def _begun(text: str, markers: Collection[str]) -> int:
    """How many characters at the end of a text may be the beginning of a marker."""
    longest = max(map(len, markers), default=1) - 1
    lengths = range(min(len(text), longest), 0, -1)
    return next((length for length in lengths if any(each.startswith(text[-length:]) for each in markers)), 0)
