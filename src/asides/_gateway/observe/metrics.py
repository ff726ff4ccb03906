"""The metrics for Prometheus.

A request is counted once, at its end, from its record; what is open at the moment is asked for whenever Prometheus
asks. No label holds what a client chose: a value that is not in a list of ours is `other`, so series cannot grow
without end.

    metrics = Metrics(["vllm"])
    metrics.count(record)
    body, content_type = metrics.render()
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ... import dialects
from ...events import NOTICES
from ..budgets import OUTCOMES
from ..record import UPSTREAM_ERRORS, RequestRecord
from ..routes import HANDLERS
from ..stored_responses import ResponseCounts
from .logs import dropped as lines_dropped

DIALECTS: Final = frozenset(dialect.NAME for dialect in dialects.ALL)
REASONS: Final = frozenset({*UPSTREAM_ERRORS.values(), "status_4xx", "status_5xx"}) - {""}
"""Why an upstream failed."""
OTHER: Final = "other"
CLIENT_GONE: Final = "499"
"""The status of a request whose client left before one was sent."""
SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


class Metrics:
    """The metrics of one gateway, in a registry of their own. `count` takes requests, `/metrics` answers `render`."""

    def __init__(self, upstreams: Iterable[str] = ()) -> None:
        self.upstreams = frozenset(upstreams)
        """The names that the label `upstream` may have."""
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "asides_requests", "Requests that are over.", ("dialect", "route", "status"), registry=registry
        )
        self._requests_in_flight = Gauge(
            "asides_requests_in_flight", "Requests that are being answered.", registry=registry
        )
        self._streams_in_flight = Gauge("asides_streams_in_flight", "Streams that are open.", registry=registry)
        tokens = Counter("asides_tokens", "Tokens, as upstreams count them.", ("kind",), registry=registry)
        self._input_tokens = tokens.labels("input")
        self._thinking_tokens = tokens.labels("thinking")
        self._answer_tokens = tokens.labels("answer")
        characters = Counter("asides_characters", "Characters of replies.", ("kind",), registry=registry)
        self._thinking_characters = characters.labels("thinking")
        self._answer_characters = characters.labels("answer")
        self._seconds = self._histogram("asides_request_seconds", "From a request to the end of its answer.")
        self._first_thought = self._histogram("asides_first_thought_seconds", "From a request to its first thought.")
        self._first_answer = self._histogram(
            "asides_first_answer_seconds", "From a request to its answer's first character or call."
        )
        self._notices = Counter("asides_notices", "Oddities that were met in replies.", ("code",), registry=registry)
        self._empty = Counter("asides_empty_answers", "Replies with neither text nor calls.", registry=registry)
        self._arranged = Counter(
            "asides_requests_arranged", "Requests put in order for chat templates.", ("change",), registry=registry
        )
        self._hits = Counter("asides_replay_cache_hits", "Dropped thoughts that were put back.", registry=registry)
        self._budgets = Counter(
            "asides_budgets", "Thinking budgets, by what became of them.", ("outcome",), registry=registry
        )
        self._exact = Counter(
            "asides_replay_cache_exact", "Turns that went back as the model wrote them.", registry=registry
        )
        self._misses = Counter("asides_replay_cache_misses", "Dropped thoughts that were not known.", registry=registry)
        self._upstream_errors = Counter(
            "asides_upstream_errors", "Upstreams that failed.", ("upstream", "reason"), registry=registry
        )
        self._failovers = Counter(
            "asides_failovers", "Upstreams that could not be reached, so that another was asked.", registry=registry
        )
        self._history: dict[str, Gauge] = {}
        self._cancelled = Counter("asides_cancelled", "Requests whose client left early.", registry=registry)
        Gauge("asides_log_lines_dropped", "Lines of the log that nobody read in time.", registry=registry).set_function(
            lines_dropped
        )
        started = Gauge("asides_start_time_seconds", "When the gateway started, in Unix time.", registry=registry)
        started.set(time.time())
        ProcessCollector(registry=registry)
        self._shown = CollectorRegistry()
        self._shown.register(_WithoutCreated(registry))

    def watch(self, requests: Callable[[], int], streams: Callable[[], int]) -> None:
        """Set what counts the open requests and streams; it is called whenever Prometheus asks."""
        self._requests_in_flight.set_function(requests)
        self._streams_in_flight.set_function(streams)

    def watch_history(self, kept: Callable[[], int], dropped: Callable[[], int], waiting: Callable[[], int]) -> None:
        """Add what became of replies that history keeps; counted whenever Prometheus asks."""
        for name, help, count in (
            ("kept", "Replies written to history.", kept),
            ("dropped", "Replies that history could not take.", dropped),
            ("waiting", "Replies that wait to be written to history.", waiting),
        ):
            gauge = self._history.get(name)
            if gauge is None:
                gauge = self._history[name] = Gauge(f"asides_history_{name}", help, registry=self._registry)
            gauge.set_function(count)

    def watch_responses(self, counts: Callable[[], ResponseCounts]) -> None:
        """Add what became of stored Responses; `counts` is called whenever Prometheus asks."""
        self._registry.register(_Responses(counts))

    def count(self, record: RequestRecord) -> None:
        """Count a request that is over."""
        route = _known(record.route, HANDLERS)
        status = str(record.status) if 100 <= record.status <= 599 else CLIENT_GONE
        self._requests.labels(_known(record.dialect, DIALECTS), route, status).inc()
        if record.cancelled:
            self._cancelled.inc()
        if record.failovers:
            self._failovers.inc(record.failovers)
        if record.upstream_error:
            reason = _known(record.upstream_error, REASONS)
            self._upstream_errors.labels(_known(record.upstream, self.upstreams), reason).inc()
        if route == "generate":
            self._count_reply(record)

    def _count_reply(self, record: RequestRecord) -> None:
        self._seconds.observe(record.seconds)
        for first, histogram in (
            (record.first_thought, self._first_thought),
            (record.first_answer, self._first_answer),
        ):
            if first is not None:
                histogram.observe(first)
        for counter, count in (
            (self._input_tokens, record.input_tokens),
            (self._thinking_tokens, record.thinking_tokens),
            (self._answer_tokens, record.answer_tokens),
            (self._thinking_characters, record.thinking_characters),
            (self._answer_characters, record.answer_characters),
            (self._empty, record.empty_answers),
            (self._hits, record.replay_cache_hits),
            (self._exact, record.replay_cache_exact),
            (self._misses, record.replay_cache_misses),
        ):
            # An upstream may send any number, and a counter takes none below zero. Most are zero, and adding that
            # costs as much as adding anything.
            if count > 0:
                counter.inc(count)
        for code, count in record.notices.items():
            self._notices.labels(_known(code, NOTICES)).inc(count)
        for change in record.arranged:
            self._arranged.labels(change).inc()
        if record.budget:
            self._budgets.labels(_known(record.budget, OUTCOMES)).inc()

    def render(self) -> tuple[bytes, str]:
        """All metrics in Prometheus' text format, and its content type."""
        return generate_latest(self._shown), CONTENT_TYPE_LATEST

    def _histogram(self, name: str, help: str) -> Histogram:
        return Histogram(name, help, buckets=SECONDS, registry=self._registry)


def _known(value: str, known: Container[str]) -> str:
    """A label's value; `other` for any that is not known, so that series cannot grow without end."""
    return value if value in known else OTHER


class _Responses(Collector):
    """What became of stored Responses."""

    def __init__(self, counts: Callable[[], ResponseCounts]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """The counts as they are now."""
        counts = self._counts()
        for name, help, value in (
            ("hits", "Stored Responses that a request referred to.", counts.hits),
            ("misses", "Stored Responses that a request referred to and that are gone.", counts.misses),
            ("evictions", "Stored Responses that had to go.", counts.evictions),
        ):
            yield CounterMetricFamily(f"asides_responses_{name}", help, value)
        yield GaugeMetricFamily("asides_responses_entries", "Stored Responses that are there.", counts.entries)

    def describe(self) -> list[Metric]:
        """Nothing: the names are written above."""
        return []


class _WithoutCreated(Collector):
    """A registry without the `_created` samples, which double the series and are of no use here."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric

    def describe(self) -> list[Metric]:
        """Nothing: names were checked when they were registered."""
        return []
