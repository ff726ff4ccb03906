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
from operator import attrgetter
from typing import Any

import msgspec

from ..events import PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..reply._fold import Budget, Fold
from ..reply._items import Begin, Failed, Proof, ReplyEvent, ReplyItem, Usage
from ..reply._splitter import Splitter

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
        "thoughts_restored",
        "thoughts_unopened",
        "thoughts_moved",
        "thoughts_refused",
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
_logged = attrgetter(*LOGGED)
UPSTREAM_ERRORS = {
    "upstream_down": "connect",
    "upstream_timeout": "idle",
    "upstream_lost": "lost",
    "upstream_ended": "lost",
    "malformed_frame": "malformed",
    "stopped": "",  # by our operator: not the upstream's fault
}
"""By the code of a failure: the reason that the metrics name."""


class RequestRecord(msgspec.Struct, eq=False):
    """One request from its first byte to the end of its answer. Times are seconds since it came; None is never."""

    id: str
    method: str
    path: str
    """Without its query, which may hold a key."""
    started: float = msgspec.field(default_factory=time.monotonic)
    seconds: float = 0.0
    route: str = ""
    """Which handler of the table of routes took it."""
    dialect: str = ""
    """The client's."""
    status: int = 0
    """The status of the answer; 0 until it has begun."""
    cancelled: bool = False
    """Whether the client left before the answer was over."""
    model: str = ""
    """As the client wrote it."""
    stream: bool = False
    upstream: str = ""
    """The configured name of the upstream that was asked; empty where none was."""
    failovers: int = 0
    """Upstreams that could not be reached before the one that was asked."""
    upstream_status: int = 0
    upstream_error: str = ""
    """Why the upstream failed, as `UPSTREAM_ERRORS` names it, or `status_4xx` or `status_5xx`."""
    answered: float | None = None
    """When the upstream began to answer, by the monotonic clock."""
    arranged: tuple[str, ...] = ()
    """What of the request was put in order for chat templates, by the names of `dialects.arrange.CHANGES`."""
    budget: str = ""
    """What became of a thinking budget, by the names of `budgets.OUTCOMES`; empty where there was none."""
    effort: str = ""
    """The effort that the upstream was asked for, where it is not the client's."""
    replay_cache_hits: int = 0
    """Thoughts that the client had dropped and the replay cache put back."""
    replay_cache_exact: int = 0
    """Turns that the client sent with their thinking, and that went back as the model wrote them."""
    replay_cache_misses: int = 0
    """Those that it did not have."""
    issuer: str = ""
    """Who makes the proofs of the reply: the kind of the upstream, its address and the model."""
    thoughts_restored: int = 0
    """Proofs that the client carried and that opened."""
    thoughts_unopened: int = 0
    """Those that did not open."""
    thoughts_moved: int = 0
    """Those of them before which the conversation is not what it was when they were made."""
    thoughts_refused: bool = False
    """Whether the provider refused a thought, and was asked again without any."""
    left_out: str = ""
    """What the upstream is not sent: fields without a counterpart in its API, and the types of tools that only the
    server of the client's API could run."""
    error: str = ""
    """What went wrong; the first of several."""
    request_body: bytes = b""
    """Kept only where the log may hold bodies."""
    folds: dict[int, Fold] = {}
    """The choices of the reply, by their numbers."""
    calls: int = 0
    """How many calls the reply has begun, in all its choices."""
    usage: Usage | None = None
    failed: Failed | None = None
    """Why the reply broke off."""
    splitter: Splitter | None = None
    """What takes the reply apart, and counts its characters."""
    inspected: Any = None
    """What the page shows of it (`inspection.InspectedRequest`), where it is watched or looked into."""
    span: Any = None
    """OpenTelemetry's record of it, where there is one."""
    reply_id: str = ""
    """The upstream's own id of the reply; empty until it has come."""
    first_byte: float | None = None
    """The first byte of the upstream's answer. This and the fields below are set by `finish`."""
    first_thought: float | None = None
    """The first text of a thought."""
    first_answer: float | None = None
    """The first text or call."""
    input_tokens: int = 0
    """Tokens of the request, as the upstream counts them."""
    thinking_tokens: int = 0
    """Tokens of thinking, where the upstream says so."""
    answer_tokens: int = 0
    """Tokens of the reply without those of thinking."""
    thinking_characters: int = 0
    """Characters of thinking, also where its text is not kept."""
    answer_characters: int = 0
    """Characters of text and of the arguments of calls."""
    notices: dict[str, int] = {}
    """How many notices of each code the reply gave."""
    empty_answers: int = 0
    """Choices that came to their end with neither text nor call."""
    _begin: Begin = Begin()
    _collect: bool = False
    _budget: Budget = msgspec.field(default_factory=Budget)

    def begin_reply(self, splitter: Splitter, *, collect: bool, limit: int) -> None:
        """A reply is about to come. `collect`: whether its text is kept, of all choices at most `limit` characters."""
        self.splitter = splitter
        self._collect = collect
        self._budget = Budget(limit)

    @property
    def thoughts(self) -> str:
        """What became of earlier thoughts, for a header; empty where there is nothing to say."""
        restored = self.thoughts_restored + self.replay_cache_hits
        reasons = [
            name
            for name, found in (
                ("unopened", self.thoughts_unopened),
                ("moved", self.thoughts_moved),
                ("refused", self.thoughts_refused),
            )
            if found
        ]
        if not restored and not reasons:
            return ""
        reason = f"; reason={'+'.join(reasons)}" if reasons else ""
        return f"restored={0 if self.thoughts_refused else restored}, dropped={self._dropped(restored)}{reason}"

    def _dropped(self, restored: int) -> int:
        return self.thoughts_unopened + (restored if self.thoughts_refused else 0)

    def add(self, *items: ReplyItem) -> None:
        """Take items of the reply. (For the deltas of a stream the pipeline calls the fold itself.)"""
        for item in items:
            if type(item) is ReplyEvent:
                fold = self.folds.get(item.choice) or self._new_fold(item.choice)
                event = item.event
                # Every frame comes here, and a comparison of types is less than a call of `isinstance`.
                if type(event) is TextDelta or type(event) is ThinkingDelta or type(event) is ToolCallDelta:
                    fold.delta(event)
                else:
                    fold.event(event, item.raw)
                    if type(event) is PartStart and event.kind == "tool_call":
                        self.calls += 1
                continue
            if isinstance(item, Failed):
                self.failed = item
                self.fail(item.message, UPSTREAM_ERRORS.get(item.code or "", "status_5xx"))
                continue
            if isinstance(item, Proof):
                (self.folds.get(item.choice) or self._new_fold(item.choice)).add(item)
                continue
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
        """The request is over, however it ended: what the log and the metrics read of it is settled."""
        self.seconds = time.monotonic() - self.started
        if self.answered is not None:
            self.first_byte = self.answered - self.started
        if self.usage is not None:
            self.input_tokens = self.usage.input_tokens
            self.thinking_tokens = self.usage.reasoning_tokens or 0
            self.answer_tokens = self.usage.output_tokens - self.thinking_tokens
        if self.splitter is not None:
            self.thinking_characters = self.splitter.thinking_characters
            self.answer_characters = self.splitter.answer_characters
        self.notices, self.empty_answers = {}, 0
        for fold in self.folds.values():
            self.first_thought = self._earlier(self.first_thought, fold.first_thought)
            self.first_answer = self._earlier(self.first_answer, fold.first_answer)
            for code, count in fold.notices.items():
                self.notices[code] = self.notices.get(code, 0) + count
            self.empty_answers += not (fold.answered or self.cancelled or self.failed is not None)

    def _earlier(self, known: float | None, moment: float | None) -> float | None:
        """The earlier of what is known and a moment by the monotonic clock."""
        if moment is None:
            return known
        since = moment - self.started
        return since if known is None or since < known else known

    def fields(self, *, bodies: bool = False) -> dict[str, Any]:
        """What the log says of it, now: the texts of a reply are let go of before the line is written."""
        found = dict(zip(LOGGED, _logged(self), strict=True))
        if bodies:
            found |= {name: getattr(self, name) for name in BODIES}
        return found

    @property
    def truncated(self) -> bool:
        """Whether there was more text than may be kept, so that the folds are not whole."""
        return self._budget.truncated

    @property
    def reply_body(self) -> str:
        """The text of the reply, for a log that may hold it."""
        replies = [fold.reply for fold in self.folds.values()]
        return " ".join(f"[thinking] {reply.thinking} [text] {reply.text}" for reply in replies)
