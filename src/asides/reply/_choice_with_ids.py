"""One choice whose text may come with the ids of its tokens.

Text that is the first thing of the choice and whose ids agree with it is read by them (`_confirmed_ids.py`): a token is
a marker or is none, whatever its text. All other text is read as that of any choice. Spans and what is held are asked
of the parser of ids, because its machine counts a marker token as two characters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from .._engine.cursor import Tape
from .._engine.format import Format
from .._engine.parser import Parser
from .._engine.tokens import feed_ordinary
from ..events import Delta, Event, TextDelta, ThinkingDelta
from ..message import FinishReason
from ._choice import Choice, MakeParser
from ._confirmed_ids import ConfirmedIds
from ._items import CallChunk, RawText, ReplyItem, ThinkingChunk
from ._logprobs import Alignment

IdUse = Literal["none", "read", "disagree"]
"""What became of ids that came with text."""


class ChoiceWithIds(Choice):
    """One choice whose text may come with the ids of its tokens.

    Text that is the first thing of the choice and whose ids agree with it is read by them; any other as above.
    """

    def __init__(
        self,
        number: int,
        format: Format,
        make_parser: MakeParser,
        seed: int | None,
        keep: int,
        make_ids: Callable[[], ConfirmedIds],
        report: Callable[[IdUse], None],
    ) -> None:
        super().__init__(number, format, make_parser, seed, keep)
        self._make_ids = make_ids
        self._report = report
        self._confirmed: ConfirmedIds | None = None
        """What reads the ids, while these are read: `_parser` is then its machine."""
        self._early_chunks: list[RawText] = []
        """What `_early` is made of."""

    def raw_text(self, chunk: RawText) -> list[ReplyItem]:
        """Content, and its ids."""
        if self._ended:
            return []
        if self._confirmed is not None:
            return self._emit(self._read_ids(self._confirmed, chunk))
        if self._parser is not None or self._count:
            return super().raw_text(chunk)
        self._early_chunks.append(chunk)
        self._early += chunk.text
        if self._is_open_question(self._early.lstrip()):
            return []
        return self._emit(self._begin_text())

    def delta(self, piece: Any) -> Delta | list[ReplyItem]:
        """More text, or a text and its id or ids."""
        confirmed = self._confirmed
        if piece.__class__ is str:
            return super().delta(piece) if confirmed is None else self.raw_text(RawText(self.number, piece))
        text, ids = piece
        if confirmed is None or not self.plain or confirmed.waits:
            return self.raw_text(RawText(self.number, text, (), (ids,) if ids.__class__ is int else ids))
        # Nearly always one id, and its text. Else a few, which are compared together.
        one = ids.__class__ is int
        if confirmed.pieces[ids] != text if one else not self._agree(text, ids):
            return self.raw_text(RawText(self.number, text, (), (ids,) if one else ids))
        pieces = self._tape.pieces
        pieces.append(text)
        if len(pieces) > self._trim_at:
            self._trim(confirmed.machine, text)
        events = confirmed.feed_id(ids) if one else feed_ordinary(confirmed.tokens, ids, text)
        if len(events) == 1:
            event = events[0]
            if type(event) is TextDelta:
                self.answer_characters += len(event.text)
                return event
            if type(event) is ThinkingDelta:
                self.thinking_characters += len(event.text)
                return event
        return self._emit(self._counted(events)) if events else []

    def _agree(self, text: str, ids: tuple[int, ...]) -> bool:
        """Whether this is the text of these ids, each of which is whole characters and no marker."""
        assert self._confirmed is not None
        texts = [self._confirmed.ordinary[id] for id in ids]
        return None not in texts and "".join(texts) == text  # type: ignore[arg-type]  # there is no None

    def _begin_text(self) -> list[Event]:
        chunks, self._early_chunks = self._early_chunks, []
        ids = [id for chunk in chunks for id in chunk.ids]
        if ids and not self._count:
            whole = RawText(
                self.number, self._early, tuple(each for chunk in chunks for each in chunk.logprobs), tuple(ids)
            )
            confirmed = self._make_ids()
            events, raw = confirmed.feed(whole.text, whole.ids)
            # Where they do not agree from the first, all is read as text. Nothing has come of the ids yet.
            if not confirmed.by_text:
                self._report("read")
                self._early = ""
                self._confirmed, self._parser, self.plain = confirmed, confirmed.machine, True
                self._tape = Tape()
                return self._taken(confirmed, events, raw, whole.logprobs)
            self._report("disagree" if confirmed.disagreed else "read")
        self._early = ""
        for chunk in chunks:
            if chunk.logprobs or self._alignment is not None:
                self._align(chunk)
            self._early += chunk.text
        return super()._begin_text()

    def _read_ids(self, confirmed: ConfirmedIds, chunk: RawText) -> list[Event]:
        agreed = not confirmed.disagreed
        events, raw = confirmed.feed(chunk.text, chunk.ids)
        if agreed and confirmed.disagreed:
            self._report("disagree")
        return self._taken(confirmed, events, raw, chunk.logprobs)

    def _taken(
        self, confirmed: ConfirmedIds, events: list[Event], raw: str, logprobs: tuple[dict[str, Any], ...] = ()
    ) -> list[Event]:
        """Events of ids, whose raw text is not always what came: a server does not show every token."""
        if logprobs or self._alignment is not None:
            self.plain = False
            if self._alignment is None:
                self._alignment = Alignment(self._tape.sync())
            self._alignment.add(raw, logprobs)
        if raw:
            self._tape.pieces.append(raw)
            if len(self._tape.pieces) > self._trim_at:
                self._trim(confirmed.machine, raw)
        return self._shift(confirmed.machine, events)

    def thinking(self, chunk: ThinkingChunk) -> list[ReplyItem]:
        """Thinking that is already split off, so that ids whose text has not come are its own."""
        self._drop_ahead()
        items = super().thinking(chunk)
        self._early_chunks.clear()
        return items

    def call(self, chunk: CallChunk) -> list[ReplyItem]:
        """A call that is already read: likewise."""
        self._drop_ahead()
        items = super().call(chunk)
        self._early_chunks.clear()
        return items

    def _drop_ahead(self) -> None:
        if self._confirmed is not None:
            self._confirmed.drop_ahead()

    def _close_text(self, reason: FinishReason | None = None) -> list[Event]:
        confirmed = self._confirmed
        if confirmed is None:
            return super()._close_text(reason)
        events, raw = confirmed.finish(reason)
        closing = self._taken(confirmed, events, raw)
        self._confirmed, self._parser, self.plain = None, None, False
        return closing

    def _open_start(self, parser: Parser) -> int:
        return super()._open_start(parser) if self._confirmed is None else self._confirmed.open_start

    def _held(self, parser: Parser) -> int:
        return super()._held(parser) if self._confirmed is None else self._confirmed.held

    def _thinking_pair(self, parser: Parser) -> tuple[str, str]:
        return super()._thinking_pair(parser) if self._confirmed is None else self._confirmed.thinking_pair
