"""Requests that are watched or looked into: what the page shows of one, while it is answered and afterwards.

An `InspectedRequest` goes along with the record of a request (`RequestRecord.inspected`) where the client asked for it
(`X-Asides-Inspect`) or `page.watch` is on; other requests have none, and pay for one look whether there is. It is told
the plan, stands between the pipeline and the writer of the reply (`tee`), and reads everything else off the record:

    request -> inspected.planned(plan) -> inspected.tee(writer) -> inspected.finish()
                      |                          |                        |
                traffic: begin             traffic: delta       traffic: end; kept as JSON

What the model was sent back of its earlier thoughts is found by comparing the client's turns with those that the
upstream is sent, so it holds whatever decided it: the client, the replay cache, or a setting.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from .._page.splitting import markers_between, thoughts_in, write_notice, write_parts
from .._page.traffic import RecentRequest, RecentRequests, Traffic, encode
from ..dialects._base import StreamWriter
from ..dialects._request import Request, RequestError, RequestTurn, ThinkingPiece
from ..events import Event, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..parts import Thinking
from ..reply._items import ReplyEvent, ReplyItem
from ..reply._reply import Reply
from .bodies import off_loop
from .budgets import BudgetPlan, plan_on_demand
from .enforcement import ThoughtWatch
from .http_request import HttpRequest
from .plan import INSPECT, RequestPlan
from .record import RequestRecord

MOST_CHARACTERS = 4 * 1024 * 1024
"""Of a reply that is kept for a look inside."""
SHOWN = 200
"""Characters of a question, of the name of a model, or of a thought that was sent back."""
LONGEST_REASON = 2000
"""Characters of an upstream's error."""
KINDS: dict[type, str] = {ThinkingDelta: "thinking", TextDelta: "text", ToolCallDelta: "tool_call"}


class Registry(NamedTuple):
    """Where requests are seen while they are answered, and kept afterwards."""

    traffic: Traffic
    recent: RecentRequests
    running: dict[int, InspectedRequest]
    """By their identity: clients choose the ids."""
    tasks: set[asyncio.Task[None]]
    """What is written down of requests that are just over."""


class InspectedRequest:
    """What the page shows of one request."""

    def __init__(self, http: HttpRequest, credential: str, name: str, registry: Registry) -> None:
        """`name`: what the configuration calls the client."""
        self.credential = credential
        self.record: RequestRecord = http.record
        self.asked_for = INSPECT in http.headers
        """Whether the client itself wants to look into it; then it may also end its thought."""
        self.private = False
        """Whether the client does not want it kept."""
        self.reason = ""
        """Why the upstream refused it. For the page alone: the log has no text that an upstream wrote."""
        self.watch: ThoughtWatch | None = None
        """What can end its thought here."""
        self._name = name
        self._agent = http.headers.get("user-agent", "").split(" ")[0][:100]
        self._time = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        self._registry = registry
        self._plan: RequestPlan | None = None
        self._question = ""
        self._begun = False
        """Whether those who watch have heard of it."""
        self._over = False
        registry.running[id(self)] = self

    def planned(self, plan: RequestPlan) -> RequestPlan:
        """Take note of the plan, which comes back with what lets its thought be ended on demand."""
        again = self._plan is not None
        engine = plan.target.engine
        if self.asked_for and engine is not None and engine.control and plan.request.stream:
            body = {**msgspec.json.decode(plan.body), engine.control: True}
            plan = msgspec.structs.replace(plan, body=msgspec.json.encode(body))
        self._plan = plan
        if not again:
            self._begin(plan.request)
        return plan

    def passed(self, read: Callable[[], Request]) -> None:
        """Take note of a request whose reply passes as it comes; `read` reads it."""
        with contextlib.suppress(RequestError):  # the upstream's to refuse
            self._begin(read())

    def _begin(self, request: Request) -> None:
        turns = (turn.text for turn in reversed(request.turns) if turn.role == "user")
        self._question, self._begun = next(turns, request.prompt or "")[:SHOWN], True
        self._publish("begin", self.summary())

    def on_demand(self, plan: RequestPlan, refused: Collection[str]) -> BudgetPlan | None:
        """What lets the gateway end the reply's thought when the client asks for it; None where it cannot.

        `refused`: what of a budget the upstream would not take before.
        """
        if not self.asked_for or not plan.request.stream:
            return None
        target = plan.target
        return plan_on_demand(plan.request, target.settings, target.profile, target.engine, refused)

    def tee(self, writer: StreamWriter) -> StreamWriter:
        """A writer that shows every item to those who watch, and has it written by this one."""
        return _Tee(writer, self)

    def show(self, items: list[ReplyItem]) -> None:
        """Show items of a reply that came in one piece."""
        for item in items:
            self.show_item(item)

    def show_item(self, item: ReplyItem) -> None:
        """Show an item, if somebody watches."""
        if not self._registry.traffic.watchers or type(item) is not ReplyEvent:
            return
        event: Event = item.event
        place = {"id": self.record.id, "client": self.credential, "choice": item.choice}
        if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            self._publish("delta", {**place, "part": event.index, "kind": KINDS[type(event)], "text": event.text})
        elif isinstance(event, PartStart) and event.kind == "tool_call":
            self._publish("delta", {**place, "part": event.index, "kind": event.kind, "text": "", "name": event.name})

    def finish(self) -> None:
        """The request is over: those who watch learn how it ended, and it is kept."""
        self._over = True
        if not self._begun:  # refused
            self._publish("begin", self.summary())
        self._publish("end", self.summary())
        if self.private:
            self._registry.running.pop(id(self), None)
            return
        task = asyncio.create_task(self._keep())
        self._registry.tasks.add(task)
        task.add_done_callback(self._registry.tasks.discard)

    async def _keep(self) -> None:
        """Write it down; until that is done it is found among those that run."""
        try:
            size = self.record.thinking_characters + self.record.answer_characters + self._size
            detail = await off_loop(size, lambda: encode(self.detail()))
            self._registry.recent.put(self.record.id, RecentRequest(self.credential, self.summary(), detail))
        finally:
            self._registry.running.pop(id(self), None)

    @property
    def _size(self) -> int:
        return len(self._plan.body) if self._plan is not None else 0

    def _publish(self, name: str, data: dict[str, Any]) -> None:
        self._registry.traffic.publish(self.credential, name, data)

    # What is shown of it.

    def summary(self) -> dict[str, Any]:
        """A line of a list."""
        record, splitter = self.record, self.record.splitter
        ended = self._over and bool(record.folds)
        return {
            "id": record.id,
            "time": self._time,
            "model": record.model[:SHOWN],
            "client": self.credential,
            "name": self._name,
            "agent": self._agent,
            "dialect": record.dialect,
            "question": self._question,
            "status": record.status,
            "seconds": record.seconds if self._over else time.monotonic() - record.started,
            "running": not self._over,
            "cancelled": record.cancelled,
            "termination": self._replies()[0].termination if ended else None,
            "thinking_characters": splitter.thinking_characters if splitter is not None else 0,
            "answer_characters": splitter.answer_characters if splitter is not None else 0,
            "usage": _usage(record),
            "error": record.error or self.reason[:LONGEST_REASON],
        }

    def _replies(self) -> list[Reply]:
        return [fold.reply for _, fold in sorted(self.record.folds.items())]

    def detail(self) -> dict[str, Any]:
        """All that is known of it."""
        record, plan, replies = self.record, self._plan, self._replies()
        found = {
            **self.summary(),
            "upstream": record.upstream,
            "stream": record.stream,
            "first_thought": _earliest(reply.times.first_thought for reply in replies),
            "first_answer": _earliest(reply.times.first_answer for reply in replies),
        }
        if plan is None:
            return {**found, "format": None, "format_source": None, "raw": None, "choices": [], "sent": []}
        raw = self._raw()
        budget = plan.budget
        return {
            **found,
            "format": plan.format.name,
            "format_source": plan.target.profile.format_source,
            "begins": plan.reading.begins._asdict(),
            "effort": plan.effort,
            "budget": None if budget is None else {"tokens": budget.tokens, "by": budget.by, "outcome": record.budget},
            "raw": raw,
            "truncated": record.truncated,
            "choices": [
                _choice(reply, raw[number] if raw is not None and number < len(raw) else None)
                for number, reply in enumerate(replies)
            ],
            "sent": list(_sent_back(plan)),
            "thoughts": record.thoughts,
        }

    def _raw(self) -> list[str] | None:
        """What the model wrote, by choice; None where the upstream took it apart itself, or it was too much to keep."""
        splitter = self.record.splitter
        if splitter is None or splitter.fields:
            return None
        texts = [splitter.written(number) for number in sorted(self.record.folds)]
        return texts if any(texts) else None

    # Ending its thought.

    def end_thought(self, *, by_server: bool) -> dict[str, str]:
        """End the thought that is open: where the server has a request for that, what to send it; else here.

        Returns `control` (the id that the server knows the reply by), `continued`, or `refused` with the reason.
        """
        plan, parts = self._plan, [part for reply in self._replies()[:1] for part in reply.parts]
        thinking = bool(parts) and isinstance(parts[-1], Thinking) and not parts[-1].complete
        if self._over or plan is None:
            return {"refused": "the reply is over" if self._over else "the reply has not begun"}
        if not thinking:
            return {"refused": "the model is not thinking now"}
        engine = plan.target.engine
        if by_server and self.asked_for and engine is not None and engine.control and self.record.reply_id:
            return {"control": self.record.reply_id, "upstream": plan.target.upstream.name}
        if self.watch is None:
            return {"refused": "this server cannot go on with its answer from a thought that was ended"}
        self.watch.demand()
        return {"continued": ""}


class _Tee:
    """A writer that shows what another one writes. It has no fast path: every delta comes as an item."""

    delta: Callable[[int, Event], bytes] | None = None

    def __init__(self, writer: StreamWriter, inspected: InspectedRequest) -> None:
        self._writer = writer
        self._show = inspected.show_item
        self.finish = writer.finish

    def feed(self, item: ReplyItem) -> bytes:
        """The bytes that an item adds to the stream."""
        self._show(item)
        return self._writer.feed(item)

    @property
    def written(self) -> dict[str, Any] | None:
        """The reply as it would be in one piece."""
        return self._writer.written


def _earliest(moments: Iterable[float | None]) -> float | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _usage(record: RequestRecord) -> dict[str, Any] | None:
    usage = record.usage
    if usage is None:
        return None
    names = ("input_tokens", "output_tokens", "reasoning_tokens", "estimated", "cached_tokens")
    return {name: getattr(usage, name) for name in names}


def _choice(reply: Reply, raw: str | None) -> dict[str, Any]:
    """A choice, its parts with their places where the raw text is there to have them in."""
    placed = reply.parts if raw else tuple(msgspec.structs.replace(part, span=(0, 0)) for part in reply.parts)
    parts = write_parts(placed, reply.times.thoughts)
    return {
        "parts": parts,
        "markers": list(markers_between(len(raw), parts, reply.notices)) if raw else [],
        "notices": [write_notice(notice) for notice in reply.notices],
        "termination": reply.termination,
        "reason": reply.reason,
    }


def _sent_back(plan: RequestPlan) -> Iterator[dict[str, Any]]:
    """What became of each thought of earlier turns: the client's turns beside those that the upstream is sent."""
    own = [(number, turn) for number, turn in enumerate(plan.request.turns) if turn.role == "assistant"]
    sent: list[RequestTurn] = []
    if own:
        with contextlib.suppress(RequestError):  # what the operator adds (`extra_body`) may be no field of the dialect
            read = plan.upstream_dialect.read_request
            path = next(iter(plan.upstream_dialect.PATHS))
            sent = [turn for turn in read(msgspec.json.decode(plan.body), path).turns if turn.role == "assistant"]
    if len(sent) != len(own):
        return
    for (number, turn), other in zip(own, sent, strict=True):
        brought, gone = _thoughts(turn, plan), _thoughts(other, plan)
        for thought in brought:
            outcome = "sent back" if thought in gone else "not sent back"
            yield {"turn": number, "thought": thought[:SHOWN], "outcome": outcome}
        for thought in gone:
            if thought not in brought:
                yield {"turn": number, "thought": thought[:SHOWN], "outcome": "put back by the gateway"}


def _thoughts(turn: RequestTurn, plan: RequestPlan) -> list[str]:
    """The thoughts of a turn, in fields of their own or between markers in its text."""
    found = [piece.text for piece in turn.pieces if isinstance(piece, ThinkingPiece)]
    if plan.target.profile.format is not None and turn.text:
        found += thoughts_in(turn.text, plan.format)
    return [text for text in map(str.strip, found) if text]
