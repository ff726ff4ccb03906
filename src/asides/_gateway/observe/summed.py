"""The metrics of several workers as one page for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

EARLIEST = ("asides_start_time_seconds", "process_start_time_seconds")
"""Points in time: the earliest is shown, all else is added up."""
SHARED = ("asides_responses_entries",)
"""What all workers share, and each counts whole: the largest is shown."""


def summed(pages: Iterable[bytes]) -> bytes:
    """One page from those of all workers: each sample is the sum of those with its name and labels."""
    metrics: dict[str, Metric] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for page in pages:
        for family in text_string_to_metric_families(page.decode()):
            metrics.setdefault(family.name, family)
            found = values.setdefault(family.name, {})
            for sample in family.samples:
                key = (sample.name, tuple(sample.labels.items()))
                before = found.get(key)
                join = min if sample.name in EARLIEST else max if sample.name in SHARED else float.__add__
                found[key] = sample.value if before is None else join(before, sample.value)
    for name, metric in metrics.items():
        metric.samples = [Sample(sample, dict(labels), value) for (sample, labels), value in values[name].items()]
    registry = CollectorRegistry()
    registry.register(_Fixed(metrics.values()))
    return generate_latest(registry)


class _Fixed(Collector):
    """Metrics that are what they are."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        yield from self._metrics

    def describe(self) -> list[Metric]:
        """Nothing: the names were checked by the registry that they come from."""
        return []
