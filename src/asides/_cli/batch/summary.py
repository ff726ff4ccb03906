"""What a batch came to: rows, thoughts, calls, notices and errors by code, formats. Whole numbers that can be added."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ...analysis._summary import MOST_GROUPS, NAMELESS, OTHERS
from ...terminal._table import aligned, clean, percent


class BatchSummary(msgspec.Struct):
    """Counts of rows and replies."""

    rows: int = 0
    nulls: int = 0
    """Rows without a text, which stay as they are."""
    replies: int = 0
    thoughts: int = 0
    """Replies that think."""
    calls: int = 0
    broken_calls: int = 0
    beyond: int = 0
    """Replies that go on beyond their turn."""
    notices: dict[str, int] = {}
    formats: dict[str, int] = {}
    errors: dict[str, int] = {}
    """Rows that could not be read, by code."""
    groups: dict[str, BatchSummary] = {}
    """The same for each group of `--by`."""

    def count(self, rows: int, structs: Any, errors: Sequence[str], nulls: int = 0) -> None:
        """Count in the structs of all replies, and the codes of rows that have none."""
        self.rows += rows
        self.nulls += nulls
        read = structs.filter(pc.is_valid(structs.field("thinking"))) if len(structs) else structs
        self.replies += len(read)
        for code in errors:
            self.errors[code] = self.errors.get(code, 0) + 1
        if not len(read):
            return
        thinking, calls, notices, formats = (read.field(name) for name in ("thinking", "calls", "notices", "format"))
        self.thoughts += pc.sum(pc.not_equal(thinking, "")).as_py() or 0
        # `flatten` leaves out what stands behind the offsets of other rows.
        found = calls.flatten()
        self.calls += len(found)
        self.broken_calls += len(found) - found.field("error").null_count
        self.beyond += pc.sum(pc.greater(read.field("beyond"), 0)).as_py() or 0
        _add(self.notices, _counts(notices.flatten()))
        _add(self.formats, _counts(formats))

    def merge(self, other: BatchSummary) -> None:
        """Count in what another has counted."""
        for name in ("rows", "nulls", "replies", "thoughts", "calls", "broken_calls", "beyond"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("notices", "formats", "errors"):
            _add(getattr(self, name), getattr(other, name))
        for name, summary in other.groups.items():
            self.group(name, MOST_GROUPS).merge(summary)

    def group(self, name: str, most: int = sys.maxsize) -> BatchSummary:
        """The counts of a group. Which ones are kept apart where there are too many is decided when all are merged."""
        name = name or NAMELESS
        if name not in self.groups and len(self.groups) >= most:
            name = OTHERS
        return self.groups.setdefault(name, BatchSummary())

    @property
    def bad(self) -> int:
        """Rows that could not be read."""
        return sum(self.errors.values())

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; groups where there are some."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        groups = {name: group.to_dict() for name, group in self.groups.items()}
        return {
            **{name: value for name, value in data.items() if name != "groups"},
            **({"groups": groups} if groups else {}),
        }


def _counts(values: Any) -> dict[str, int]:
    counted = pc.value_counts(values)
    pairs = zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
    return {value: count for value, count in pairs if value is not None}


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def describe(summary: BatchSummary, by: str) -> str:
    """The summary for a person."""
    lines = aligned(
        [
            ("rows", f"{summary.rows:,}"),
            ("replies", f"{summary.replies:,}"),
            ("  that think", _share(summary.thoughts, summary.replies)),
            ("calls", f"{summary.calls:,}"),
            *([("  that may not be run", f"{summary.broken_calls:,}")] if summary.broken_calls else []),
            *([("replies that go on beyond the turn", f"{summary.beyond:,}")] if summary.beyond else []),
            *([("rows without a text", f"{summary.nulls:,}")] if summary.nulls else []),
            ("rows that could not be read", _share(summary.bad, summary.rows)),
        ],
        right={1},
    )
    for title, counts in (("formats", summary.formats), ("notices", summary.notices), ("errors", summary.errors)):
        if counts:
            lines += ["", title, *_listed(counts)]
    if by:
        head = (clean(by), "rows", "think", "calls", "notices", "errors")
        groups = sorted(summary.groups.items(), key=lambda item: (-item[1].rows, item[0]))
        rows = [
            (
                clean(name),
                f"{group.rows:,}",
                _share(group.thoughts, group.replies),
                f"{group.calls:,}",
                f"{sum(group.notices.values()):,}",
                f"{group.bad:,}",
            )
            for name, group in groups
        ]
        lines += ["", *aligned([head, *rows], right={1, 2, 3, 4, 5})]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _share(count: int, whole: int) -> str:
    return f"{count:,} ({percent(count / whole)})" if whole else f"{count:,}"


def _listed(counts: Mapping[str, int]) -> list[str]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [f"  {line}" for line in aligned([(clean(name), f"{count:,}") for name, count in ordered], right={1})]
