"""How figures are spread, in little memory: whole numbers counted in buckets. Knows nothing of what they measure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import msgspec

BITS = 10
"""Leading bits of a number that are kept: below 1,024 every number has a bucket of its own, above it a bucket is at
most 1/512 of the number wide. Numbers up to a billion fill at most some 11,000 buckets."""

EXACT = 1 << BITS
"""Below it every number has a bucket of its own."""


class Distribution(msgspec.Struct):
    """Whole numbers, not below zero, counted in buckets. Merging in any order gives the same."""

    count: int = 0
    total: int = 0
    lowest: int = 0
    highest: int = 0
    buckets: dict[int, int] = {}
    """How many numbers lie in each bucket, by the least number that it holds."""

    def add(self, number: int) -> None:
        """Count one number in."""
        # Compared in place: a dozen of these are called for every reply.
        if number < self.lowest or not self.count:
            self.lowest = number
        if number > self.highest:
            self.highest = number
        self.count += 1
        self.total += number
        bucket = number if number < EXACT else _bucket(number)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def merge(self, other: Distribution) -> None:
        """Count in all that another has counted."""
        if not other.count:
            return
        self.lowest = min(self.lowest, other.lowest) if self.count else other.lowest
        self.highest = max(self.highest, other.highest)
        self.count += other.count
        self.total += other.total
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count

    @property
    def mean(self) -> float:
        """The exact mean; 0 of nothing."""
        return self.total / self.count if self.count else 0.0

    def quantile(self, share: float) -> int:
        """The number that this share of all lies at or below: exact below 1,024, else within 0.1%. 0 of nothing."""
        wanted = max(1, min(self.count, ceil(share * self.count)))
        passed = 0
        for bucket in sorted(self.buckets):
            passed += self.buckets[bucket]
            if passed >= wanted:
                return max(self.lowest, min(self.highest, bucket + _width(bucket) // 2))
        return 0

    def bins(self, edges: Sequence[int]) -> list[int]:
        """How many numbers lie from each edge up to the next; the last bin is open. Exact where an edge has at most
        10 significant bits."""
        counts = [0] * len(edges)
        at = 0
        for bucket in sorted(self.buckets):
            while at + 1 < len(edges) and bucket >= edges[at + 1]:
                at += 1
            counts[at] += self.buckets[bucket]
        return counts


def _width(number: int) -> int:
    return 1 << max(0, number.bit_length() - BITS)


def _bucket(number: int) -> int:
    shift = max(0, number.bit_length() - BITS)
    return number >> shift << shift
