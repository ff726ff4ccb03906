"""What becomes of the record of a request: a line in the log, figures in the metrics."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..._config.schema import Config
from ..finished import Finished
from ..http_request import HttpRequest
from ..pipeline import Noted
from ..record import Record
from ..refusals import Refusal
from . import logs
from .metrics import Metrics

REASONS = {"upstream_down": "connect", "upstream_timeout": "idle", "upstream_lost": "lost"}
"""By the code of a refusal: what the metrics call it."""
FAILURES = {"malformed_frame": "malformed", "upstream_ended": "lost", "stopped": ""}
"""The same, by the code of a reply that failed; that we were stopped is not the upstream's fault."""
QUIET = frozenset({"health", "metrics", "home", "options"})
"""What is asked all the time by machines; counted, but not worth a line."""


class Reporter:
    """Counts and logs requests."""

    def __init__(self, config: Config, requests: Callable[[], int]) -> None:
        self._bodies = config.log.bodies
        self._open: set[Record] = set()
        self.metrics = Metrics(upstream.name for upstream in config.upstreams)
        self.metrics.watch(requests, lambda: sum(record.stream for record in self._open))

    def began(self, record: Record) -> None:
        """A request has begun."""
        self._open.add(record)

    def refused(self, record: Record, refusal: Refusal) -> None:
        """A request was refused, by the gateway or for want of an upstream."""
        record.error = record.error or refusal.message
        record.upstream_error = record.upstream_error or REASONS.get(refusal.code or "", "")

    def finished(self, http: HttpRequest, record: Record) -> None:
        """A request is over."""
        self._open.discard(record)
        noted = record.noted or Noted(keep=False)
        failed = noted.failed
        if failed is not None:
            record.error = record.error or failed.message
            record.upstream_error = record.upstream_error or FAILURES.get(failed.code or "", "status_5xx")
        usage = noted.usage
        thinking = (usage.reasoning_tokens or 0) if usage is not None else 0
        finished = Finished(
            id=http.id,
            method=http.method,
            path=http.path,
            route=record.route,
            dialect=record.dialect,
            status=http.status,
            seconds=time.monotonic() - http.started,
            model=record.model,
            upstream=record.upstream,
            upstream_status=record.upstream_status,
            upstream_error=record.upstream_error,
            stream=record.stream,
            cancelled=http.gone,
            first_byte=_since(http, record.answered),
            first_thought=_since(http, noted.first_thought),
            first_answer=_since(http, noted.first_answer),
            input_tokens=usage.input_tokens if usage is not None else 0,
            thinking_tokens=thinking,
            answer_tokens=usage.output_tokens - thinking if usage is not None else 0,
            thinking_characters=record.splitter.thought_characters if record.splitter is not None else 0,
            answer_characters=record.splitter.said_characters if record.splitter is not None else 0,
            notices=noted.notices,
            empty_answers=0 if http.gone or failed is not None else noted.empty_answers,
            cache_hits=record.cache_hits,
            cache_misses=record.cache_misses,
            error=record.error,
            request_body=record.request_body.decode("utf-8", "replace"),
            reply_body=noted.words() if self._bodies else "",
        )
        self.metrics.finished(finished)
        if record.route not in QUIET:
            logs.log_finished(finished)


def _since(http: HttpRequest, moment: float | None) -> float | None:
    return None if moment is None else moment - http.started
