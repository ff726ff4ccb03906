"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from asides import UsageError
from asides._history import read_time

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("12 h", timedelta(hours=12)),
        ("2d", timedelta(days=2)),
        (" 3W ", timedelta(weeks=3)),
    ],
)
def test_a_time_ago(text: str, ago: timedelta) -> None:
    """A number and a unit."""
    assert read_time(text, NOW) == NOW - ago


def test_dates() -> None:
    """A date is local unless it names its zone."""
    assert read_time("2026-11-01T15:30Z") == datetime(2026, 11, 1, 15, 30, tzinfo=UTC)
    assert read_time("2026-11-01T15:30+02:00") == datetime(2026, 11, 1, 13, 30, tzinfo=UTC)
    assert read_time("2026-11-01") == datetime(2026, 11, 1).astimezone(UTC)
    assert read_time("yesterday", NOW) == read_time("today", NOW) - timedelta(days=1)


@pytest.mark.parametrize("text", ["", "soon", "2y", "-2d", "2026-13-01", "999999999w", "0001-01-01T00:00+23:59", "\0"])
def test_what_is_no_time(text: str) -> None:
    """The error says what would be one."""
    with pytest.raises(UsageError, match="2d or 3w"):
        read_time(text, NOW)
