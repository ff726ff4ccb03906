"""The record of one request: what its line in the log and its metrics say, written down by whoever finds it out.

It is made with the request and goes along with it (`HttpRequest.record`). While the model's reply passes, its items are
folded into `asides.reply.Reply`s, one for each choice; metrics, log, history and the replay cache all read these folds.
Once the request is over, `finish` stops the clock, and the log and the metrics read the record itself.

    record = RequestRecord("req-1", "POST", "/v1/chat/completions")
    record.begin_reply(splitter, collect=True, limit=1_000_000)
    record.add(item)                                  # each item of the reply
    record.finish()
    record.first_answer, record.notices, record.folds[0].reply.text
"""

from __future__ import annotations

import time
from typing import Any

from ..events import PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..reply.fold import Budget, Fold
from ..reply.items import Begin, Failed, ReplyEvent, ReplyItem, Usage
from ..reply.splitter import Splitter

LOGGED = (
    *("id", "method", "path", "route", "dialect", "status", "seconds", "model"),
    *("upstream", "upstream_status", "upstream_error", "stream", "cancelled"),
    *("first_byte", "first_thought", "first_answer"),
    *("input_tokens", "thinking_tokens", "answer_tokens", "thinking_characters", "answer_characters"),
    *(
        "notices",
        "empty_answers",
        "replay_cache_hits",
        "replay_cache_misses",
        "replay_cache_exact",
        "arranged",
        "effort",
        "budget",
        "left_out",
        "failovers",
        "error",
    ),
)
"""What a line of the log has, in this order."""
BODIES = ("request_body", "reply_body")
"""What it has besides where `log.bodies` is on."""
WITH_BODIES = LOGGED + BODIES
UPSTREAM_ERRORS = {
    "upstream_down": "connect",
    "upstream_timeout": "idle",
    "upstream_lost": "lost",
    "upstream_ended": "lost",
    "malformed_frame": "malformed",
    "stopped": "",  # by our operator: not the upstream's fault
}
"""By the code of a failure: the reason that the metrics name."""


class RequestRecord:
    """One request from its first byte to the end of its answer. Times are seconds since it came; None is never."""

    __slots__ = (
        "_begin",
        "_budget",
        "_collect",
        "answered",
        "arranged",
        "budget",
        "calls",
        "cancelled",
        "dialect",
        "effort",
        "error",
        "failed",
        "failovers",
        "folds",
        "id",
        "left_out",
        "method",
        "model",
        "path",
        "replay_cache_exact",
        "replay_cache_hits",
        "replay_cache_misses",
        "reply_id",
        "request_body",
        "route",
        "seconds",
        "span",
        "splitter",
        "started",
        "status",
        "stream",
        "upstream",
        "upstream_error",
        "upstream_status",
        "usage",
    )

    def __init__(self, id: str, method: str, path: str) -> None:
        self.id = id
        self.method = method
        self.path = path
        """Without its query, which may hold a key."""
        self.started = time.monotonic()
        self.seconds = 0.0
        self.route = ""
        """Which handler of the table of routes took it."""
        self.dialect = ""
        """The client's."""
        self.status = 0
        """The status of the answer; 0 until it has begun."""
        self.cancelled = False
        """Whether the client left before the answer was over."""
        self.model = ""
        """As the client wrote it."""
        self.stream = False
        self.upstream = ""
        """The configured name of the upstream that was asked; empty where none was."""
        self.failovers = 0
        """Upstreams that could not be reached before the one that was asked."""
        self.upstream_status = 0
        self.upstream_error = ""
        """Why the upstream failed, as `UPSTREAM_ERRORS` names it, or `status_4xx` or `status_5xx`."""
        self.answered: float | None = None
        """When the upstream began to answer, by the monotonic clock."""
        self.arranged: tuple[str, ...] = ()
        """What of the request was put in order for chat templates, by the names of `dialects.arrange.CHANGES`."""
        self.budget = ""
        """What became of a thinking budget, by the names of `budgets.OUTCOMES`; empty where there was none."""
        self.effort = ""
        """The effort that the upstream was asked for, where it is not the client's."""
        self.replay_cache_hits = 0
        """Thoughts that the client had dropped and the replay cache put back."""
        self.replay_cache_exact = 0
        """Turns that the client sent with their thinking, and that went back as the model wrote them."""
        self.replay_cache_misses = 0
        """Those that it did not have."""
        self.left_out = ""
        """The types of tools that only the server of the client's API could run, and that the model is not offered."""
        self.error = ""
        """What went wrong; the first of several."""
        self.request_body = b""
        """Kept only where the log may hold bodies."""
        self.folds: dict[int, Fold] = {}
        """The choices of the reply, by their numbers."""
        self.calls = 0
        """How many calls the reply has begun, in all its choices."""
        self.usage: Usage | None = None
        self.failed: Failed | None = None
        """Why the reply broke off."""
        self.splitter: Splitter | None = None
        """What takes the reply apart, and counts its characters."""
        self.span: Any = None
        """OpenTelemetry's record of it, where there is one."""
        self.reply_id = ""
        """The upstream's own id of the reply; empty until it has come."""
        self._begin = Begin()
        self._collect = False
        self._budget = Budget(0)

    def begin_reply(self, splitter: Splitter, *, collect: bool, limit: int) -> None:
        """A reply is about to come. `collect`: whether its text is kept, of all choices at most `limit` characters."""
        self.splitter = splitter
        self._collect = collect
        self._budget = Budget(limit)

    def add(self, item: ReplyItem) -> None:
        """Take an item of the reply. (For the deltas of a stream the pipeline calls the fold itself.)"""
        if type(item) is ReplyEvent:
            fold = self.folds.get(item.choice)
            if fold is None:
                fold = self._new_fold(item.choice)
            event = item.event
            # Every frame comes here, and a comparison of types is less than a call of `isinstance`.
            if type(event) is TextDelta or type(event) is ThinkingDelta or type(event) is ToolCallDelta:
                fold.delta(event)
            else:
                fold.add(item)
                if isinstance(event, PartStart) and event.kind == "tool_call":
                    self.calls += 1
        elif isinstance(item, Failed):
            self.failed = item
            self.fail(item.message, UPSTREAM_ERRORS.get(item.code or "", "status_5xx"))
        else:
            if isinstance(item, Begin):
                self._begin, self.reply_id = item, item.id
            elif isinstance(item, Usage):
                self.usage = item
            for fold in self.folds.values():
                fold.add(item)

    def _new_fold(self, choice: int) -> Fold:
        fold = self.folds[choice] = Fold(
            choice=choice, collect=self._collect, budget=self._budget, clock=time.monotonic, started=self.started
        )
        fold.begin = self._begin
        return fold

    def fail(self, error: str, upstream_error: str = "") -> None:
        """Something went wrong. What is known already is not replaced: the first failure causes the later ones."""
        self.error = self.error or error
        self.upstream_error = self.upstream_error or upstream_error

    def finish(self) -> None:
        """The request is over, however it ended."""
        self.seconds = time.monotonic() - self.started

    def fields(self, *, bodies: bool = False) -> dict[str, Any]:
        """What the log says of it, now: the texts of a reply are let go of before the line is written."""
        return {name: getattr(self, name) for name in (WITH_BODIES if bodies else LOGGED)}

    @property
    def truncated(self) -> bool:
        """Whether there was more text than may be kept, so that the folds are not whole."""
        return self._budget.truncated

    @property
    def first_byte(self) -> float | None:
        """The first byte of the upstream's answer."""
        return self.answered - self.started if self.answered is not None else None

    @property
    def first_thought(self) -> float | None:
        """The first text of a thought."""
        return self._since([fold.first_thought for fold in self.folds.values()])

    @property
    def first_answer(self) -> float | None:
        """The first text or call."""
        return self._since([fold.first_answer for fold in self.folds.values()])

    def _since(self, moments: list[float | None]) -> float | None:
        known = [moment for moment in moments if moment is not None]
        return min(known) - self.started if known else None

    @property
    def input_tokens(self) -> int:
        """Tokens of the request, as the upstream counts them."""
        return self.usage.input_tokens if self.usage is not None else 0

    @property
    def thinking_tokens(self) -> int:
        """Tokens of thinking, where the upstream says so."""
        return (self.usage.reasoning_tokens or 0) if self.usage is not None else 0

    @property
    def answer_tokens(self) -> int:
        """Tokens of the reply without those of thinking."""
        return self.usage.output_tokens - self.thinking_tokens if self.usage is not None else 0

    @property
    def thinking_characters(self) -> int:
        """Characters of thinking, also where its text is not kept."""
        return self.splitter.thinking_characters if self.splitter is not None else 0

    @property
    def answer_characters(self) -> int:
        """Characters of text and of the arguments of calls."""
        return self.splitter.answer_characters if self.splitter is not None else 0

    @property
    def notices(self) -> dict[str, int]:
        """How many notices of each code the reply gave."""
        counts: dict[str, int] = {}
        for fold in self.folds.values():
            for code, count in fold.notices.items():
                counts[code] = counts.get(code, 0) + count
        return counts

    @property
    def empty_answers(self) -> int:
        """Choices that came to their end with neither text nor call."""
        if self.cancelled or self.failed is not None:
            return 0
        return sum(not fold.answered for fold in self.folds.values())

    @property
    def reply_body(self) -> str:
        """The text of the reply, for a log that may hold it."""
        replies = [fold.reply for fold in self.folds.values()]
        return " ".join(f"[thinking] {reply.thinking} [text] {reply.text}" for reply in replies)
