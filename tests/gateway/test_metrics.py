"""What Prometheus is told: figures from finished requests, and labels that no client can choose."""

from __future__ import annotations

from typing import Any

from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from asides._gateway.observe.metrics import Metrics
from asides._gateway.record import RequestRecord
from asides.reply._fold import Fold
from asides.reply._items import Usage
from tests.gateway import records

THOUGHT = f"<think>{'x' * 119}</think>"
ANSWER = f"{'y' * 10}</think>{'y' * 5}</think>{'y' * 5}"
EMPTY = "<think>x</think>"
"""A choice that never answers."""


def finished(**fields: Any) -> RequestRecord:
    """A request whose reply thought, had two oddities, and left a second choice empty."""
    usage = Usage(input_tokens=7, output_tokens=35, reasoning_tokens=30)
    cache = {"replay_cache_hits": 1, "replay_cache_misses": 3}
    return records.finished(THOUGHT + ANSWER, EMPTY, **{"usage": usage, **cache, **fields})


def told(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """The samples as Prometheus reads them, by name and labels' values."""
    body, content_type = metrics.render()
    assert content_type.startswith("text/plain; version=")
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def test_a_finished_request_is_counted() -> None:
    """Every figure of the record is in the metric of its name."""
    metrics = Metrics(["gpu"])
    metrics.count(finished())
    metrics.count(finished())
    samples = told(metrics)
    assert samples["asides_requests_total", "openai_chat", "generate", "200"] == 2
    assert samples["asides_tokens_total", "input"] == 14
    assert samples["asides_tokens_total", "thinking"] == 60
    assert samples["asides_tokens_total", "answer"] == 10
    assert samples["asides_characters_total", "thinking"] == 240
    assert samples["asides_characters_total", "answer"] == 40
    assert samples["asides_notices_total", "stray_close"] == 4
    assert samples["asides_empty_answers_total",] == 2
    assert samples["asides_replay_cache_hits_total",] == 2
    assert samples["asides_replay_cache_misses_total",] == 6
    assert samples["asides_cancelled_total",] == 0
    assert samples["asides_request_seconds_sum",] == 8
    assert samples["asides_first_thought_seconds_bucket", "0.1"] == 0
    assert samples["asides_first_thought_seconds_bucket", "0.25"] == 2
    assert samples["asides_first_answer_seconds_bucket", "2.5"] == 2
    assert samples["asides_start_time_seconds",] > 1e9


def test_what_never_came_is_not_timed() -> None:
    """A reply without thoughts leaves the time to the first thought alone, and only replies are timed."""
    metrics = Metrics()
    metrics.count(records.finished(ANSWER))
    metrics.count(finished(route="models"))
    samples = told(metrics)
    assert samples["asides_first_thought_seconds_count",] == 0
    assert samples["asides_first_answer_seconds_count",] == 1
    assert samples["asides_request_seconds_count",] == 1
    assert samples["asides_requests_total", "openai_chat", "models", "200"] == 1


def test_an_upstream_that_failed_and_a_client_that_left_are_counted() -> None:
    """By the upstream's configured name and a reason; a client that was told nothing counts as 499."""
    metrics = Metrics(["gpu"])
    metrics.count(finished(status=502, upstream_error="connect"))
    metrics.count(finished(status=0, cancelled=True))
    samples = told(metrics)
    assert samples["asides_upstream_errors_total", "connect", "gpu"] == 1
    assert samples["asides_requests_total", "openai_chat", "generate", "502"] == 1
    assert samples["asides_requests_total", "openai_chat", "generate", "499"] == 1
    assert samples["asides_cancelled_total",] == 1


def test_labels_do_not_grow_with_what_clients_send() -> None:
    """A thousand strange requests add one series where ordinary ones would add one."""
    metrics = Metrics(["gpu"])
    for number in range(1000):
        odd = f"odd{number}"
        record = records.finished("", model=odd, path=odd, dialect=odd, status=1000 + number)
        record.folds[0] = Fold()
        record.folds[0].notices[odd] = 1
        record.finish()
        metrics.count(record)
        metrics.count(records.finished(route=odd, upstream=odd, upstream_error=odd))
    body, _ = metrics.render()
    assert b"odd" not in body
    samples = told(metrics)
    assert samples["asides_requests_total", "other", "generate", "499"] == 1000
    assert samples["asides_requests_total", "openai_chat", "other", "200"] == 1000
    assert samples["asides_notices_total", "other"] == 1000
    assert samples["asides_upstream_errors_total", "other", "other"] == 1000


def test_figures_below_zero_are_borne() -> None:
    """An upstream that counts badly costs its figure, not the request."""
    metrics = Metrics()
    metrics.count(finished(usage=Usage(input_tokens=-1, output_tokens=-8, reasoning_tokens=-5)))
    assert told(metrics)["asides_tokens_total", "thinking"] == 0


def test_what_is_in_flight_is_asked_for_when_it_is_told() -> None:
    """The gauges are what their holder says at that moment."""
    metrics = Metrics()
    flying = [0, 0]
    metrics.watch(requests=lambda: flying[0], streams=lambda: flying[1])
    flying[:] = [3, 2]
    samples = told(metrics)
    assert (samples["asides_requests_in_flight",], samples["asides_streams_in_flight",]) == (3, 2)


def test_two_gateways_do_not_share_figures() -> None:
    """Each has a registry of its own and the global one stays as it was."""
    one, other = Metrics(), Metrics()
    one.count(finished())
    assert told(one)["asides_request_seconds_count",] == 1
    assert told(other)["asides_request_seconds_count",] == 0
    assert not [family for family in REGISTRY.collect() if family.name.startswith("asides")]


def test_series_are_told_without_the_time_they_began() -> None:
    """No sample ends in `_created`."""
    metrics = Metrics()
    metrics.count(finished())
    assert not [name for name, *_ in told(metrics) if name.endswith("_created")]
