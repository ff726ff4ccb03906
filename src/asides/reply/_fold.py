"""`Fold`: the one place where the events of a reply become a `Reply`.

It takes what comes, one item after another, and gives the reply as far as it has come at any time. The parts are built
by `message.Collector`, as the parser's own `Message` is; here are added what a server says (why it ended, what it cost)
and when things came. A reply with several choices has one fold for each. A gateway calls `delta` for every chunk of a
stream, so that method and `add` do as little as they can; a fold that shall not hold text (`collect=False`, or when its
`Budget` is used up) keeps its counts and times.

    fold = Fold(clock=time.monotonic)
    for item in client.talk("Why is the sky blue?", model="qwen3"):
        fold.add(item)
    fold.reply.text, fold.reply.termination, fold.reply.times.first_thought
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import msgspec

from ..events import Delta, Event, Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ..message import Collector, Termination
from ..parts import Part, Text
from ._items import Begin, Ended, PlacedProof, Proof, ReplyEvent, ReplyItem, Usage
from ._reply import Reply, Times

_DELTAS = (TextDelta, ThinkingDelta, ToolCallDelta)
_EVENTS = (*_DELTAS, PartStart, PartEnd, Retyped, Notice)
_NO_BEGIN = Begin()
MOST_HEAD = 8
"""Events that are kept for how a reply began: its first part, what was odd about it, and where the next begins."""


class Budget(msgspec.Struct):
    """How many more characters may be held, by one fold or by several that share it."""

    left: int = sys.maxsize
    """Characters that may still be held; below 0 when more came than could be held."""

    @property
    def truncated(self) -> bool:
        """Whether there was more than could be held, so that replies are not whole."""
        return self.left < 0


class Fold:
    """Takes the items or events of one choice; `reply` is what has come so far."""

    __slots__ = (
        "_beyond",
        "_budget",
        "_clock",
        "_collector",
        "_ended_at",
        "_outcome",
        "_reason",
        "_seconds",
        "_started",
        "_texts",
        "_thinking_since",
        "_thought",
        "answered",
        "begin",
        "calls",
        "choice",
        "collect",
        "first_answer",
        "first_thought",
        "head",
        "next_index",
        "notices",
        "proofs",
        "texts",
        "usage",
    )

    def __init__(
        self,
        *,
        choice: int = 0,
        collect: bool = True,
        budget: Budget | None = None,
        clock: Callable[[], float] | None = None,
        started: float | None = None,
    ) -> None:
        """`started`: when the reply was asked for, by `clock`; now, unless given. Without a clock, no times."""
        self.choice: int = choice
        """The number of the choice whose events are taken; those of other choices are left out."""
        self.collect: bool = collect
        """Whether text is stored; becomes False when the budget is used up."""
        self._budget = budget or Budget()
        self._clock = clock
        self._started = clock() if clock is not None and started is None else started
        self._ended_at: float | None = None
        self._thinking_since: dict[int, float] = {}
        self._seconds: dict[int, float] = {}
        self.first_thought: float | None = None
        """When the first text of a thought came, by the clock."""
        self.first_answer: float | None = None
        """When the first text or call came, by the clock."""
        self._thought = False
        self.answered: bool = False
        """Whether any text or call has come."""
        self.calls: int = 0
        """How many calls have begun."""
        self.texts: int = 0
        """How many texts have begun."""
        self.proofs: list[PlacedProof] = []
        """What the server wants back with its thoughts and calls, in order."""
        self.next_index: int = 0
        """The index that the next new part would have."""
        self.head: list[Event] = []
        """The first events that are no text, whether or not text is stored: how the reply began."""
        self.notices: dict[str, int] = {}
        """How many notices of each code have come."""
        self._collector = Collector()
        # `delta` runs once for each chunk of a stream and appends here itself: one call less than `Collector.add`.
        self._texts = self._collector.texts
        self.begin: Begin = _NO_BEGIN
        """The id, the model and the time that the server sent with the reply; empty fields until then."""
        self.usage: Usage | None = None
        """The tokens that the server counted; None until it has sent them."""
        self._reason = ""
        self._outcome: Termination | None = None
        self._beyond = 0

    @property
    def truncated(self) -> bool:
        """Whether there was more than the budget allows, so that the reply is not whole."""
        return self._budget.truncated

    def delta(self, event: Delta) -> None:
        """Take more of a part, whose start has been taken."""
        if type(event) is ThinkingDelta:
            # The clock is read once, not for every delta.
            if not self._thought:
                self._thought = True
                self.first_thought = self._clock() if self._clock is not None else None
        elif not self.answered:
            self._answer()
        if self.collect:
            budget = self._budget
            budget.left -= len(event.text)
            if budget.left < 0:
                # For good, and for all folds that share the budget as they come here: a reply with a hole in it would
                # pass for whole.
                self.collect = False
            else:
                self._texts[event.index].append(event.text)

    def _answer(self) -> None:
        self.answered = True
        self.first_answer = self._clock() if self._clock is not None else None

    def add(self, item: ReplyItem | Event) -> None:
        """Take an item of the splitter, or an event of a parser."""
        if type(item) is ReplyEvent:
            if item.choice == self.choice:
                self.event(item.event, item.raw)
        elif isinstance(item, _EVENTS):
            self.event(item)
        elif isinstance(item, Begin):
            self.begin = item
        elif isinstance(item, Usage):
            self.usage = item
        elif isinstance(item, Proof) and item.choice == self.choice:
            self._prove(item)
        elif isinstance(item, Ended) and item.choice == self.choice:
            self._reason = item.reason
            # Not every item comes from a splitter, which asks the parser: a stop marker outranks a limit of tokens.
            unsaid = item.reason != "stop" and item.termination == "end"
            self.end("cut" if unsaid else item.termination, item.beyond)

    def _prove(self, proof: Proof) -> None:
        if self.collect:
            self._budget.left -= len(msgspec.json.encode(proof.data))
            self.collect = self._budget.left >= 0
        if self.collect:
            self.proofs.append(self.placed(proof))

    def placed(self, proof: Proof) -> PlacedProof:
        """A proof that has just come, with its place in the reply."""
        calls = max(self.calls - 1, 0) if proof.call else self.calls
        return PlacedProof(self.texts, calls, proof.dialect, proof.data, proof.call)

    def end(self, termination: Termination, beyond: int = 0) -> None:
        """End the reply. For callers who add the events of a parser; a server's items hold an `Ended`."""
        self._outcome, self._beyond = termination, beyond
        self._ended_at = self._clock() if self._clock is not None else None

    def event(self, event: Event, raw: str = "") -> None:
        """Take an event of a parser; `raw` is what the model wrote of a call that ends with it and may not be run.

        With a `Retyped` it is the words of the part, which had gone out without the whitespace before them.
        """
        # By type: even a whole reply of a few words passes here six times.
        if type(event) is PartStart:
            if event.index >= self.next_index:
                self.next_index = event.index + 1
            if self.collect:
                self._texts[event.index] = []
            if event.kind == "tool_call":
                self.calls += 1
                if not self.answered:
                    self._answer()
            elif event.kind == "text":
                self.texts += 1
            elif self._clock is not None:
                self._thinking_since[event.index] = self._clock()
        elif type(event) is PartEnd:
            if self._clock is not None and event.index in self._thinking_since:
                self._seconds[event.index] = self._clock() - self._thinking_since.pop(event.index)
            if raw and self.collect:
                self._collector.raw[event.index] = raw
        elif isinstance(event, _DELTAS):
            self.delta(event)
            return
        else:
            self._rare(event, raw)
        if len(self.head) < MOST_HEAD:
            self.head.append(event)
        if self.collect:
            self._collector.add(event)

    def _rare(self, event: Event, raw: str) -> None:
        if isinstance(event, Notice):
            self.notices[event.code] = self.notices.get(event.code, 0) + 1
            self._budget.left -= len(event.message)  # an endless stream of oddities must end here too
            self.collect = self.collect and self._budget.left >= 0
        elif isinstance(event, Retyped):
            self._retype(event, raw)

    def _retype(self, event: Retyped, raw: str) -> None:
        """The only part so far is of the other kind: what came first was of that kind too."""
        thought = event.kind == "thinking"
        first = self.first_answer if thought else self.first_thought
        self._thought, self.answered = thought, not thought
        self.first_thought, self.first_answer = (first, None) if thought else (None, first)
        if raw and self.collect:
            self._texts[event.index] = [raw]
        if not thought:
            self._thinking_since.pop(event.index, None)
        elif first is not None:
            self._thinking_since[event.index] = first

    @property
    def reason(self) -> str:
        """The server's own reason for the end; empty until it has said one."""
        return self._reason

    @property
    def reply(self) -> Reply:
        """What has come so far. A part that has not ended is incomplete."""
        parts, thinking, text = self._collector.parts()
        return Reply(
            parts=parts,
            thinking=thinking,
            text=text,
            notices=tuple(self._collector.notices),
            proofs=tuple(self.proofs),
            termination=self._termination(parts),
            beyond=self._beyond,
            reason=self._reason,
            usage=self.usage,
            times=self._times(),
            model=self.begin.model,
            id=self.begin.id,
        )

    def _termination(self, parts: tuple[Part, ...]) -> Termination:
        # Where nobody knows how it ended, an open thought or call shows that it was cut off. Without any `Ended` the
        # reply never came to its end.
        if self._outcome == "end" and parts and not isinstance(parts[-1], Text) and not parts[-1].complete:
            return "cut"
        return self._outcome or "cut"

    def _times(self) -> Times:
        if self._clock is None or self._started is None:
            return Times()
        started, ended = self._started, self._ended_at if self._ended_at is not None else self._clock()
        return Times(
            first_thought=None if self.first_thought is None else self.first_thought - started,
            first_answer=None if self.first_answer is None else self.first_answer - started,
            seconds=ended - started,
            thoughts=tuple(
                self._seconds.get(start.index) for start in self._collector.starts if start.kind == "thinking"
            ),
        )
