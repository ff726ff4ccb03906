"""Budgets that the gateway keeps to itself: the thought is counted as it comes, and ended where its budget is spent.

When that is, the server is asked to go on from a message of the assistant that holds the thought, closed, and the reply
carries on with that second answer; the first is let go of as soon as the second has begun, so that a server that cannot
go on loses nothing: then the thought runs on, and the log and the metrics report it. With `enforce: cut` the reply
ends instead. A thought is only ever ended between two words of it, never inside a call that was begun in it.

    enforced = EnforcedBudget(state, record, plan, ask)
    async with enforced as answer:
        watch = enforced.watch(splitter)
        out = watch.feed(pipeline, chunk)                            # until watch.thought is there; then
        answer, out = await enforced.end_thought(answer, pipeline)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from math import ceil
from types import TracebackType
from typing import Any, Final

import msgspec

from ..dialects._base import Frames, StreamReader
from ..dialects._framing import to_json
from ..reply._items import Begin, Chunk, OpenThought, Usage
from ..reply._splitter import Splitter
from .bodies import off_loop
from .budgets import CONTINUED, BudgetPlan, tokenizer_of
from .http_request import HttpRequest
from .pipeline import Pipeline
from .plan import RequestPlan
from .record import RequestRecord
from .refusals import Refusal
from .state import State
from .token_count import count_text
from .upstreams import UpstreamLost, UpstreamResponse

log = logging.getLogger("asides.gateway")

BYTES_PER_TOKEN: Final = 4
"""How many bytes count as a token where no tokenizer is configured and no server has counted."""
SMALLEST_RATIO, LARGEST_RATIO = 1.0, 16.0
"""Bytes of a token that are believed."""
LEAST_MEASURED, MOST_MEASURED = 256, 16 * 1024
"""Characters of a thought that a server is asked to count."""
LONGEST_REFUSAL: Final = 16 * 1024
"""Bytes that are read of an answer by which a server refuses to go on."""
LIMITS = ("max_tokens", "max_completion_tokens")


def report_budget(http: HttpRequest, budget: BudgetPlan) -> None:
    """Tell the client who keeps to its budget, and the log what became of it."""
    http.record.budget = {"server": "server", "gateway": "within", "nobody": "not_enforced"}[budget.by]
    http.set_header(b"x-asides-budget", budget.header)
    if budget.by == "nobody":
        log.info("request %s: nobody keeps to its budget of %d tokens", http.record.id, budget.tokens)


def refuse_budget(state: State, plan: RequestPlan, what: str) -> None:
    """Remember what of a budget the upstream would not take."""
    key = (plan.target.upstream.name, plan.request.model)
    state.budget_refusals[key] = state.budget_refusals.get(key, frozenset()) | {what}


class EnforcedBudget:
    """A reply whose thought may have to be ended; entering it asks the upstream for its first answer."""

    def __init__(
        self,
        state: State,
        record: RequestRecord,
        plan: RequestPlan,
        ask: Callable[[bytes], AbstractAsyncContextManager[UpstreamResponse]],
        budget: BudgetPlan,
        key: str = "",
    ) -> None:
        """`ask` sends the upstream a body, in the way of the first; `key` is the client's, where that goes on."""
        self._budget = budget
        self._state = state
        self._key = key
        self._record = record
        self._plan = plan
        self._ask = ask
        self._answers = AsyncExitStack()

    async def __aenter__(self) -> UpstreamResponse:
        return await self._answers.enter_async_context(self._ask(self._plan.body))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._answers.__aexit__(kind, error, trace)

    def watch(self, splitter: Splitter) -> ThoughtWatch:
        """What counts the reply's thinking."""
        self._watch = ThoughtWatch(self._budget, splitter)
        return self._watch

    async def end_thought(self, answer: UpstreamResponse, pipeline: Pipeline) -> tuple[UpstreamResponse, bytes]:
        """The budget is spent: end the thought, or the reply. Returns what is read from now on, and bytes to send.

        The first thought of a model may be here only to be counted by the server. If it may go on, `watch.thought` is
        None again.
        """
        watch, before = self._watch, b""
        if watch.is_to_be_measured:
            before = await self._measure(pipeline)
            if watch.thought is None:
                return answer, before
        answer, out = await self._end(answer, pipeline)
        return answer, before + out

    async def _measure(self, pipeline: Pipeline) -> bytes:
        """Let the server count the thought so far, so that all thoughts of this model can be estimated by that."""
        upstream, watch, plan = self._plan.target.upstream, self._watch, self._plan
        assert watch.thought is not None
        text = watch.own_text(watch.thought)[:MOST_MEASURED]
        model = plan.target.settings.name or plan.request.model
        counted = await count_text(upstream, text, model, self._key)
        ratio = len(text.encode("utf-8", "replace")) / counted if counted else 0.0
        ratio = ratio if SMALLEST_RATIO <= ratio <= LARGEST_RATIO else 0.0
        self._state.token_ratios[upstream.name, plan.request.model] = ratio
        return watch.go_on(ratio, pipeline)

    async def _end(self, answer: UpstreamResponse, pipeline: Pipeline) -> tuple[UpstreamResponse, bytes]:
        plan, watch = self._plan, self._watch
        budget, counted, thought = watch.budget, watch.counted, watch.thought
        assert thought is not None
        if budget.cut:
            self._record.budget = "cut"
            return answer, pipeline.cut(Usage(output_tokens=counted, reasoning_tokens=counted, estimated=True))
        opening, closing = (thought.opening, thought.closing) if thought.closing else (budget.opening, budget.closing)
        second = AsyncExitStack()
        next_answer, error = answer, b"its thoughts have no markers that are known"
        if closing:
            thought = thought._replace(opening=opening, closing=closing)
            body = await off_loop(len(plan.body), continued_body, plan.body, budget, thought, counted)
            try:
                next_answer = await second.enter_async_context(self._ask(body))
                error = b"" if next_answer.status == 200 else await next_answer.read(LONGEST_REFUSAL)
            except (Refusal, UpstreamLost) as lost:
                next_answer, error = answer, str(lost).encode()
        whole = "application/json" in next_answer.headers.get("content-type", "")
        if next_answer is answer or next_answer.status != 200 or whole:
            self._record.budget = "not_enforced"
            refuse_budget(self._state, plan, CONTINUED)
            shown = error[:200].decode("utf-8", "replace")
            log.warning("request %s: %s cannot go on: %s", self._record.id, plan.target.upstream.name, shown)
            await second.aclose()
            return answer, pipeline.feed(watch.unread) if watch.unread else b""
        first = self._answers.pop_all()
        await self._answers.enter_async_context(second)
        await first.aclose()
        self._record.budget = "continued"
        reader = ContinuedReader(plan.upstream_dialect.ReplyReader(), counted)
        return next_answer, pipeline.continue_with(reader, "" if thought.split else budget.closing_text(closing))


class ThoughtWatch:
    """Counts what a reply thinks, until the budget is spent."""

    def __init__(self, budget: BudgetPlan, splitter: Splitter) -> None:
        self.budget = budget
        self._splitter = splitter
        self._exact = tokenizer_of(budget.tokenizer) if budget.tokenizer else None
        self._ratio = budget.ratio or BYTES_PER_TOKEN
        self.measures = budget.ratio is None and self._exact is None
        """Whether the server is still to be asked how many tokens a thought of this model has."""
        # No token is shorter than a byte, and no character longer than four.
        self._next = -(-budget.tokens // 4)
        self._demanded = False
        self.counted = 0
        """Tokens of thinking, when it was last counted."""
        self.thought: OpenThought | None = None
        """The thought that has spent the budget."""
        self.unread = b""
        """What came behind it in the same chunk."""

    def demand(self) -> None:
        """End the thought that is open as soon as that can be done, whatever is left of the budget."""
        self._demanded, self._next = True, 0

    def feed(self, pipeline: Pipeline, chunk: bytes) -> bytes:
        """Read bytes of the upstream, up to the line that spends the budget."""
        lines = chunk.splitlines(keepends=True)
        out: list[bytes] = []
        for number, line in enumerate(lines):
            out.append(pipeline.feed(line))
            if self.spent():
                self.unread = b"".join(lines[number + 1 :])
                break
        return b"".join(out)

    def spent(self) -> bool:
        """Whether the thought that is open has spent the budget, and can be ended here. Cheap until it may have."""
        thinking = self._splitter.thinking_characters
        if thinking < self._next:
            return False
        thought = self._splitter.thought(0)
        if thought is None:
            return False
        text = self.own_text(thought)
        self.counted = self._count(text)
        left = self.budget.tokens - self.counted
        if self.measures and len(text) >= LEAST_MEASURED:
            # Not only when it is spent by the usual estimate: it may hold twice as many tokens.
            left -= self.budget.tokens // 2
        if left > 0 and not self._demanded:
            # So few characters cannot be more tokens than are left; the nearer the end, the more often it is counted.
            self._next = thinking + max(1, left // 4 if self._exact is not None else int(left * self._ratio / 4))
            return False
        self.thought = thought
        return True

    @property
    def is_to_be_measured(self) -> bool:
        """Whether the server shall count the thought before it is ended: it shows how long this model's tokens are."""
        if self.thought is None or self._demanded or not self.measures:
            return False
        return len(self.own_text(self.thought)) >= LEAST_MEASURED

    def own_text(self, thought: OpenThought) -> str:
        """What was thought, without the marker before it."""
        opening = thought.opening or self.budget.opening
        return thought.text.rpartition(opening)[2] if opening and not thought.split else thought.text

    def _count(self, text: str) -> int:
        if self._exact is not None:
            return self._exact(text)
        return ceil(len(text.encode("utf-8", "replace")) / self._ratio)

    def go_on(self, ratio: float, pipeline: Pipeline) -> bytes:
        """Read on, with tokens of so many bytes (0: nobody knows), unless the budget is spent by that count."""
        self.measures, self._ratio = False, ratio or self._ratio
        assert self.thought is not None
        self.counted = self._count(self.own_text(self.thought))
        if self.counted >= self.budget.tokens:
            return b""
        self.thought, unread, self.unread = None, self.unread, b""
        return self.feed(pipeline, unread) if unread else b""


def continued_body(body: bytes, budget: BudgetPlan, thought: OpenThought, counted: int) -> bytes:
    """The request for the rest of a reply, behind the thought that has spent its budget."""
    asked: dict[str, Any] = msgspec.json.decode(body)
    written = thought.text.rstrip() + budget.closing_text(thought.closing)
    if "prompt" in asked:
        asked["prompt"] += written
    else:
        # What opened the thought may have stood in the prompt, which is not written for a message that goes on.
        if thought.split or thought.opening not in thought.text:
            written = thought.opening + budget.framing[0] + written.lstrip()
        asked["messages"] = [*asked["messages"], {"role": "assistant", "content": written}]
    for name in LIMITS:
        if isinstance(asked.get(name), int):
            asked[name] = max(1, asked[name] - counted)
    if budget.field:
        asked.pop(budget.field.partition(".")[0], None)
    return to_json({**asked, **budget.continues})


class ContinuedReader:
    """Reads the second reply as the rest of the first: its beginning is left out, and its usage is that of both."""

    def __init__(self, reader: StreamReader, counted: int) -> None:
        self._reader = reader
        self._counted = counted
        self.text_frame = reader.text_frame

    @property
    def frames(self) -> Frames:
        """What cuts the bytes into frames."""
        return self._reader.frames

    def feed(self, chunk: bytes) -> list[Chunk]:
        """Read bytes."""
        return self._joined(self._reader.feed(chunk))

    def finish(self) -> list[Chunk]:
        """The stream is over."""
        return self._joined(self._reader.finish())

    def _joined(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        return [
            self._both(chunk) if isinstance(chunk, Usage) else chunk for chunk in chunks if not isinstance(chunk, Begin)
        ]

    def _both(self, usage: Usage) -> Usage:
        # The first reply was stopped before it could say what it cost: its prompt is the second's without the thought.
        thought = self._counted
        return Usage(
            input_tokens=max(0, usage.input_tokens - thought),
            output_tokens=usage.output_tokens + thought,
            reasoning_tokens=thought + (usage.reasoning_tokens or 0),
            estimated=True,
            cached_tokens=usage.cached_tokens,
            durations=usage.durations,
        )
