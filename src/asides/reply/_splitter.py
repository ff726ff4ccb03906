"""From chunks to items: what an upstream sent becomes one sequence of events for each choice.

The splitter knows the choices of a reply and gives each chunk to its own: `_choice.py` reads text and what the upstream
has separated, `_choice_with_ids.py` text that comes with ids, `_separated_calls.py` calls. Nothing is left out here for
a client that wants no thinking: its writer does that, so that the record of a reply is the same whoever asked for it.

    splitter = Splitter(get_format("qwen3"), asides.Parser)
    splitter.feed(RawText(0, "<think>2+2</think>It is 4."))    # ReplyEvent(0, PartStart(0, "thinking")), …
    splitter.feed(Ended(0))                                    # …, Ended(0)
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from .._engine.format import Format
from .._engine.tokens import TokenParser
from ..events import Delta
from ..message import FinishReason, Message
from ._choice import Choice, MakeParser
from ._choice_with_ids import ChoiceWithIds, IdUse
from ._confirmed_ids import ConfirmedIds
from ._corrected import corrected
from ._items import (
    Begin,
    CallChunk,
    Chunk,
    Ended,
    Failed,
    Foreign,
    OpenThought,
    Proof,
    RawText,
    Reason,
    ReplyItem,
    ThinkingChunk,
    Usage,
)

FINISH_REASONS: dict[Reason, FinishReason] = {"stop": "stop", "length": "length", "content_filter": "length"}
"""Why an upstream says that a reply ended, as `Parser.finish` takes it: a filter cuts as a limit does."""
MakeTokens = Callable[[Sequence[int] | None], TokenParser]
"""Makes the parser of a choice whose ids come with its text; of the prompt's ids where these came too."""
ParseOrdinary = Callable[[str], Message | None]
"""Takes a whole text of the ordinary shape apart as that parser would, without one; None for any other text."""
MOST_PROMPT_IDS = 1024
"""Ids from the end of a prompt that are looked at: what follows its last header."""


_thinking_characters = attrgetter("thinking_characters")
_answer_characters = attrgetter("answer_characters")


class _SurplusChoiceError(Exception):
    """A chunk of a choice that nobody asked for."""


class Splitter:
    """Turns the chunks of a reply into items."""

    def __init__(
        self,
        format: Format,
        make_parser: MakeParser,
        *,
        seed: int | None = None,
        choices: int | None = None,
        parse_ordinary: ParseOrdinary | None = None,
        keep: int = 0,
        make_tokens: MakeTokens | None = None,
    ) -> None:
        """`choices`: how many were asked for; chunks of more are left out and counted. None: any number.

        `parse_ordinary`: the shortcut for replies that come in one piece; without it every text has a parser.
        `keep`: characters of a choice's raw text that are kept for `written`. `make_tokens`: text that comes with ids
        is read by these.
        """
        self._make_tokens = make_tokens
        self._prompt_ids: list[int] | None = None
        self.id_use: IdUse = "none"
        """What became of ids: none came, or they were read, or they are not those of the text."""
        self._keep = keep
        self._most = sys.maxsize if choices is None else choices
        self.surplus: int = 0
        """How many chunks belonged to choices that nobody asked for."""
        self._format = format
        self._make_parser = make_parser
        self._parse_ordinary = parse_ordinary
        self._seed = seed
        self._choices: dict[int, Choice] = {}
        """By their numbers."""
        self._given: dict[int, Choice] = {}
        """By the numbers that the upstream gave them."""
        self.fields: set[str] = set()
        """The names under which the upstream has sent thinking."""
        self.calls_separated: bool = False
        """Whether the upstream has read calls by itself."""

    def feed(self, chunk: Chunk) -> list[ReplyItem]:
        """Read a chunk and return the items that it makes."""
        try:
            # By type, the most frequent first: a stream is nearly all text, and this runs for every chunk.
            if type(chunk) is RawText:
                return self._choice(chunk.choice).raw_text(chunk)
            if type(chunk) is ThinkingChunk:
                if chunk.field:
                    self.fields.add(chunk.field)
                return self._choice(chunk.choice).thinking(chunk)
            if type(chunk) is CallChunk:
                self.calls_separated = True
                return self._choice(chunk.choice).call(chunk)
            if type(chunk) is not Begin:
                return self._other(chunk)
            if self._make_tokens is not None:
                self._prompt_ids = _last_ids(chunk.extra.get("prompt_token_ids"))
            return [chunk]
        except _SurplusChoiceError:
            self.surplus += 1
            return []

    def feed_last(self, chunk: RawText) -> list[ReplyItem]:
        """Read text behind which its choice has nothing more than its end.

        Where it is also the first of its choice, so that it is all of it, and of the ordinary shape, no parser is made.
        """
        if self._parse_ordinary is not None and not chunk.logprobs and chunk.choice not in self._given:
            message = self._parse_ordinary(chunk.text) if self._make_tokens is None or not chunk.ids else None
            if message is not None:
                with contextlib.suppress(_SurplusChoiceError):
                    return self._choice(chunk.choice).ordinary(message)
        return self.feed(chunk)

    def _other(self, chunk: Chunk) -> list[ReplyItem]:
        """What comes only once or twice in a reply."""
        if isinstance(chunk, Ended):
            choice = self._choice(chunk.choice)
            items = choice.finish(FINISH_REASONS[chunk.reason])
            return [*items, choice.ended(chunk)]
        if isinstance(chunk, Usage):
            return [self._usage(chunk)]
        # What the parsers hold back is the model's: it goes out before the error, never after it or not at all.
        if isinstance(chunk, Failed):
            return [*self.finish("length"), chunk]
        if isinstance(chunk, Proof):
            choice = self._choice(chunk.choice)
            return [chunk if choice.number == chunk.choice else msgspec.structs.replace(chunk, choice=choice.number)]
        if not isinstance(chunk, Foreign):
            return []
        if chunk.choice is not None and (number := self._choice(chunk.choice).number) != chunk.choice:
            chunk = msgspec.structs.replace(chunk, choice=number)
        return [chunk]

    @property
    def thinking_characters(self) -> int:
        """Characters of thinking in all choices."""
        return sum(map(_thinking_characters, self._choices.values()))

    @property
    def found_parts(self) -> bool:
        """Whether a marker has acted in raw text: a thought or a call was found in it."""
        return any(choice.found_parts for choice in self._choices.values())

    @property
    def answer_characters(self) -> int:
        """Characters of text and of calls' arguments in all choices."""
        return sum(map(_answer_characters, self._choices.values()))

    def fast_path(self, number: int) -> tuple[int, Callable[[Any], Delta | list[ReplyItem]]]:
        """Our number of a choice, and a function that reads text of it without log probabilities, for a stream.

        It takes what the reader's `text_frame` gives: a text, or a text and its ids where such are read. It returns the
        event itself where all that comes of it is more of an open part, so that no item has to be made.
        """
        try:
            choice = self._choice(number)
            return choice.number, choice.delta
        except _SurplusChoiceError:
            return number, self._leave_out

    def _leave_out(self, text: object) -> list[ReplyItem]:
        self.surplus += 1
        return []

    def continue_with_another(self) -> None:
        """What follows is of another reply to the same request, which has numbers of its own for the same choices."""
        self._given.clear()

    def finish(self, finish_reason: FinishReason | None = None) -> list[ReplyItem]:
        """Nothing more will come: release what is held back of the choices that have not ended.

        `finish_reason` as in `Parser.finish`. A connection that was lost is a cut, `"length"`.
        """
        return [item for choice in self._choices.values() for item in choice.finish(finish_reason)]

    def end(self, number: int) -> list[ReplyItem]:
        """A choice has ended its turn, whatever the upstream goes on to send of it: its last items. Once for each."""
        choice = self._choices[number]
        items = choice.finish("stop")
        return [*items, choice.ended(Ended(number))]

    def written(self, number: int) -> str:
        """The raw text that the spans of a choice's parts count; empty where more came than is kept.

        Parts that the upstream split off by itself are not in it, and have no span.
        """
        choice = self._choices.get(number)
        return choice.written() if choice is not None else ""

    def thought(self, number: int) -> OpenThought | None:
        """What a choice has written, where it is inside a thought and nothing but whitespace is held back."""
        choice = self._choices.get(number)
        return choice.thought() if choice is not None else None

    def _choice(self, given: int) -> Choice:
        choice = self._given.get(given)
        if choice is None:
            number = self._number(given)
            choice = self._choices.get(number)
            if choice is None:
                choice = self._new_choice(number)
                self._choices[number] = choice
            self._given[given] = choice
        return choice

    def _new_choice(self, number: int) -> Choice:
        common = (number, self._format, self._make_parser, self._seed, self._keep)
        return Choice(*common) if self._make_tokens is None else ChoiceWithIds(*common, self._make_ids, self._use_ids)

    def _make_ids(self) -> ConfirmedIds:
        assert self._make_tokens is not None
        return ConfirmedIds(self._make_tokens(self._prompt_ids))

    def _use_ids(self, use: IdUse) -> None:
        if self.id_use != "disagree":
            self.id_use = use

    def _number(self, given: int) -> int:
        """Our number of a choice that is new. Not every server counts from zero, and its answer counts more than that.

        One that was not asked for takes the place of one that has not come; the last, because the first may still.
        """
        taken = {choice.number for choice in self._given.values()}
        if 0 <= given < self._most and given not in taken:
            return given
        # A parser is made for each choice, so an upstream that invents choices would buy one for a few bytes each:
        # 200,000 of them took minutes before there was this bound.
        if len(taken) >= self._most or self._most == sys.maxsize:
            raise _SurplusChoiceError
        return next(number for number in range(self._most - 1, -1, -1) if number not in taken)

    def _usage(self, usage: Usage) -> Usage:
        """Where the upstream does not count thinking, share the tokens out by characters."""
        thought, said = self.thinking_characters, self.answer_characters
        if usage.reasoning_tokens or not thought:
            return usage  # a count of none beside thinking is not a count
        share = round(usage.output_tokens * thought / (thought + said))
        return msgspec.structs.replace(usage, reasoning_tokens=share, estimated=True)


class WholeSplitter(Splitter):
    """Reads a reply that comes in one piece: a part that turns out to be of the other kind is so from its beginning."""

    _held: tuple[ReplyItem, ...] = ()

    def feed(self, chunk: Chunk) -> list[ReplyItem]:
        """Read a chunk. What text makes comes with what follows it: nothing has to go out before."""
        self._held = (*self._held, *super().feed(chunk))
        return [] if type(chunk) is RawText else self._released()

    def finish(self, finish_reason: FinishReason | None = None) -> list[ReplyItem]:
        """Nothing more will come: release what is held back."""
        self._held = (*self._held, *super().finish(finish_reason))
        return self._released()

    def _released(self) -> list[ReplyItem]:
        held, self._held = self._held, ()
        return corrected(held)


def _last_ids(sent: Any) -> list[int] | None:
    """The end of a list of ids; None where it is none."""
    last = sent[-MOST_PROMPT_IDS:] if isinstance(sent, list) else []
    return last if last and all(type(id) is int for id in last) else None
