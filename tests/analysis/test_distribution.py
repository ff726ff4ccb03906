"""Spreads in buckets: exact where it can be, near everywhere, and the same in whatever order they are merged."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from asides.analysis._distribution import Distribution

NUMBERS = st.lists(st.integers(0, 10**7), max_size=60)


def of(numbers: list[int]) -> Distribution:
    spread = Distribution()
    for number in numbers:
        spread.add(number)
    return spread


@given(NUMBERS, NUMBERS)
def test_merging_is_counting_all(first: list[int], second: list[int]) -> None:
    """In either order."""
    merged, other = of(first), of(second)
    merged.merge(of(second))
    other.merge(of(first))
    assert merged == other == of(first + second)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.floats(0, 1))
def test_a_quantile_is_near_the_true_one(numbers: list[int], share: float) -> None:
    """Exact below 1,024, within a thousandth above, and never outside what was counted."""
    true = sorted(numbers)[max(1, min(len(numbers), ceil(share * len(numbers)))) - 1]
    found = of(numbers).quantile(share)
    assert min(numbers) <= found <= max(numbers)
    assert abs(found - true) <= (true / 1000 if true >= 1024 else 0)


@given(NUMBERS)
def test_bins_hold_every_number_once(numbers: list[int]) -> None:
    """With edges that have few bits, each in its own bin."""
    edges = (0, 8, 64, 1024, 4096, 1 << 20)
    counts = of(numbers).bins(edges)
    ends = (*edges[1:], 1 << 60)
    assert counts == [sum(start <= number < end for number in numbers) for start, end in zip(edges, ends, strict=True)]


def test_nothing_is_nought() -> None:
    """An empty spread has figures too."""
    assert (of([]).mean, of([]).quantile(0.5), of([]).bins((0, 10))) == (0.0, 0, [0, 0])


def test_memory_does_not_grow_with_the_count() -> None:
    """However many numbers there are, there are few buckets."""
    spread = of(list(range(0, 2_000_000, 37)))
    assert len(spread.buckets) < 8000
