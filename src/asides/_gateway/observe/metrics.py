"""The metrics for Prometheus.

A request is counted once, at its end, from its record: into plain numbers, because a counter of the client library
costs ten times as much as an addition, and there would be a dozen for each request. The numbers become families when
Prometheus asks, and what is open at the moment is asked for then. No label holds what a client chose: a value that is
not in a list of ours is `other`, so series cannot grow without end.

    metrics = Metrics(["vllm"])
    metrics.count(record)
    body, content_type = metrics.render()
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import accumulate
from operator import attrgetter
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ... import dialects
from ...events import NOTICES
from ..budgets import OUTCOMES
from ..record import UPSTREAM_ERRORS, RequestRecord
from ..routes import HANDLERS
from ..stored_responses import ResponseCounts
from .logs import dropped as lines_dropped

DIALECTS: Final = frozenset(dialect.NAME for dialect in dialects.ALL)
UNASKED: Final = "unasked"
"""The reason of an upstream that sent what nobody had asked for; no request fails by it."""
REASONS: Final = frozenset({*UPSTREAM_ERRORS.values(), "status_4xx", "status_5xx", UNASKED}) - {""}
"""Why an upstream failed."""
OTHER: Final = "other"
CLIENT_GONE: Final = "499"
"""The status of a request whose client left before one was sent."""
SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
COUNTERS: Final = {
    "asides_requests": ("Requests that are over.", ("dialect", "route", "status")),
    "asides_tokens": ("Tokens, as upstreams count them.", ("kind",)),
    "asides_characters": ("Characters of replies.", ("kind",)),
    "asides_notices": ("Oddities that were met in replies.", ("code",)),
    "asides_empty_answers": ("Replies with neither text nor calls.", ()),
    "asides_requests_arranged": ("Requests put in order for chat templates.", ("change",)),
    "asides_replay_cache_hits": ("Dropped thoughts that were put back.", ()),
    "asides_replay_cache_exact": ("Turns that went back as the model wrote them.", ()),
    "asides_replay_cache_misses": ("Dropped thoughts that were not known.", ()),
    "asides_thoughts": ("Thoughts that clients carried, by what became of them.", ("outcome",)),
    "asides_budgets": ("Thinking budgets, by what became of them.", ("outcome",)),
    "asides_upstream_errors": ("Upstreams that failed.", ("upstream", "reason")),
    "asides_failovers": ("Upstreams that could not be reached, so that another was asked.", ()),
    "asides_learned_starts": ("Models of which replies showed where their output begins.", ("start",)),
    "asides_cancelled": ("Requests whose client left early.", ()),
}
"""Each with its help and its labels."""
FIGURES: Final = {
    "input_tokens": ("asides_tokens", "input"),
    "thinking_tokens": ("asides_tokens", "thinking"),
    "answer_tokens": ("asides_tokens", "answer"),
    "thinking_characters": ("asides_characters", "thinking"),
    "answer_characters": ("asides_characters", "answer"),
    "empty_answers": ("asides_empty_answers",),
    "replay_cache_hits": ("asides_replay_cache_hits",),
    "replay_cache_exact": ("asides_replay_cache_exact",),
    "replay_cache_misses": ("asides_replay_cache_misses",),
    "thoughts_restored": ("asides_thoughts", "restored"),
    "thoughts_unopened": ("asides_thoughts", "unopened"),
    "thoughts_moved": ("asides_thoughts", "moved"),
    "thoughts_refused": ("asides_thoughts", "refused"),
}
"""What a record of a reply counts, and the series to which that is added: a counter and the values of its labels."""
_figures = attrgetter(*FIGURES)
_SERIES: Final = tuple(FIGURES.values())


class Metrics(Collector):
    """The metrics of one gateway, in a registry of their own. `count` takes requests, `/metrics` answers `render`."""

    def __init__(self, upstreams: Iterable[str] = ()) -> None:
        self.upstreams = frozenset(upstreams)
        """The names that the label `upstream` may have."""
        # Those without labels, and those of which all values are known, are shown from the start.
        without_labels = [(name,) for name, (_, labels) in COUNTERS.items() if not labels]
        self._counts: dict[tuple[str, ...], int] = dict.fromkeys((*_SERIES, *without_labels), 0)
        """By counter and the values of its labels."""
        self._seconds = _Seconds("asides_request_seconds", "From a request to the end of its answer.")
        self._first_thought = _Seconds("asides_first_thought_seconds", "From a request to its first thought.")
        self._first_answer = _Seconds(
            "asides_first_answer_seconds", "From a request to its answer's first character or call."
        )
        self._registry = registry = CollectorRegistry()
        self._requests_in_flight = Gauge(
            "asides_requests_in_flight", "Requests that are being answered.", registry=registry
        )
        self._streams_in_flight = Gauge("asides_streams_in_flight", "Streams that are open.", registry=registry)
        self._history: dict[str, Gauge] = {}
        Gauge("asides_log_lines_dropped", "Lines of the log that nobody read in time.", registry=registry).set_function(
            lines_dropped
        )
        started = Gauge("asides_start_time_seconds", "When the gateway started, in Unix time.", registry=registry)
        started.set(time.time())
        registry.register(self)
        ProcessCollector(registry=registry)

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
        # No labels of a client's choice; without `_add`, because every request comes here.
        route = _known(record.route, HANDLERS)
        dialect = _known(record.dialect, DIALECTS)
        status = str(record.status) if 100 <= record.status <= 599 else CLIENT_GONE
        series = ("asides_requests", dialect, route, status)
        self._counts[series] = self._counts.get(series, 0) + 1
        if record.cancelled:
            self._add(1, "asides_cancelled")
        if record.failovers:
            self._add(record.failovers, "asides_failovers")
        if record.upstream_error:
            reason = _known(record.upstream_error, REASONS)
            self._add(1, "asides_upstream_errors", _known(record.upstream, self.upstreams), reason)
        if route == "generate":
            self._count_reply(record)

    def count_unasked(self, upstream: str) -> None:
        """Count an upstream that sent what nobody had asked for."""
        self._add(1, "asides_upstream_errors", _known(upstream, self.upstreams), UNASKED)

    def count_learned(self, start: str) -> None:
        """Count a model of which replies have shown where its output begins."""
        self._add(1, "asides_learned_starts", start)

    def _add(self, count: int, *series: str) -> None:
        self._counts[series] = self._counts.get(series, 0) + count

    def _count_reply(self, record: RequestRecord) -> None:
        self._seconds.observe(record.seconds)
        if record.first_thought is not None:
            self._first_thought.observe(record.first_thought)
        if record.first_answer is not None:
            self._first_answer.observe(record.first_answer)
        counts = self._counts
        for series, count in zip(_SERIES, _figures(record), strict=True):
            if count > 0:  # an upstream may send any number, and a counter never sinks
                counts[series] += count
        for code, count in record.notices.items():
            self._add(count, "asides_notices", _known(code, NOTICES))
        for change in record.arranged:
            self._add(1, "asides_requests_arranged", change)
        if record.budget:
            self._add(1, "asides_budgets", _known(record.budget, OUTCOMES))

    def render(self) -> tuple[bytes, str]:
        """All metrics in Prometheus' text format, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def collect(self) -> Iterator[Metric]:
        """What was counted, for the registry."""
        families = {name: CounterMetricFamily(name, help, labels=labels) for name, (help, labels) in COUNTERS.items()}
        for (name, *values), count in self._counts.items():
            families[name].add_metric(values, count)
        yield from families.values()
        for seconds in (self._seconds, self._first_thought, self._first_answer):
            yield seconds.family()


class _Seconds:
    """A histogram of seconds."""

    def __init__(self, name: str, help: str) -> None:
        self._name = name
        self._help = help
        self._counts = [0] * (len(SECONDS) + 1)
        """How many took at most as long as the bound of the same place, and longer than that before it."""
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        """Add one."""
        self._counts[bisect_left(SECONDS, seconds)] += 1
        self._sum += seconds

    def family(self) -> Metric:
        """It, for the registry."""
        bounds = (*map(str, SECONDS), "+Inf")
        buckets = list(zip(bounds, accumulate(self._counts), strict=True))
        return HistogramMetricFamily(self._name, self._help, buckets=buckets, sum_value=self._sum)


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
        yield GaugeMetricFamily("asides_responses_waiting", "Stored Responses that wait for the store.", counts.waiting)

    def describe(self) -> list[Metric]:
        """Nothing: the names are written above."""
        return []
