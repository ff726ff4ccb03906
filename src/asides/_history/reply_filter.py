"""Which replies a command is about: `ReplyFilter`, as SQL conditions; and times as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

import msgspec

from ..errors import UsageError
from .records import label, microseconds

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
AGO = re.compile(r"(\d{1,9})\s*([smhdw])")
EXPECTED = "write 90s, 30m, 12h, 2d or 3w for a time ago, today, yesterday, or a date as 2026-11-01 or 2026-11-01T15:30"
LIKE = "lower(r.{}) LIKE ? ESCAPE '!'"


class ReplyFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions that a reply must meet, all of them. Empty: every reply does."""

    since: datetime | None = None
    """Replies from this moment on; None: no limit."""
    until: datetime | None = None
    """Replies before this moment; None: no limit."""
    models: tuple[str, ...] = ()
    """Replies of any of these models, compared without case; `*` and `?` stand for other characters."""
    sources: tuple[str, ...] = ()
    """Replies that any of these stored: `filter`, `run`, `gateway`, `import`."""
    agent: str = ""
    """Replies of this agent, compared without case; `*` and `?` stand for other characters."""
    conversation: str = ""
    """Replies of the conversation with this id, the whole of it."""
    client: str = ""
    """Replies to the client of a gateway whose key has this fingerprint, the whole of it."""
    id: str = ""
    """The whole id of one reply."""

    def conditions(self) -> tuple[str, list[str | int]]:
        """The filter as SQL about the table `replies AS r`, beginning with AND, and the values of its placeholders."""
        any_model = " OR ".join(LIKE.format("model") for _ in self.models)
        tests: list[tuple[str, list[str | int]]] = [
            ("r.time >= ?", [microseconds(self.since)] if self.since is not None else []),
            ("r.time < ?", [microseconds(self.until)] if self.until is not None else []),
            (f"({any_model})", [_like(model) for model in self.models]),
            (f"r.source IN ({placeholders(len(self.sources))})", [label(source) for source in self.sources]),
            (LIKE.format("agent"), [_like(self.agent)] if self.agent else []),
            ("r.conversation = ?", [label(self.conversation)] if self.conversation else []),
            ("r.client = ?", [label(self.client)] if self.client else []),
            ("r.id = ?", [label(self.id)] if self.id else []),
        ]
        used = [(test, values) for test, values in tests if values]
        return "".join(f" AND {test}" for test, _ in used), [value for _, values in used for value in values]


def placeholders(count: int) -> str:
    """So many `?` for a query, with commas."""
    return ", ".join("?" * count)


def _like(pattern: str) -> str:
    plain = re.sub(r"[!%_]", r"!\g<0>", label(pattern).lower())
    return plain.replace("*", "%").replace("?", "_")


def read_time(text: str, now: datetime | None = None) -> datetime:
    """A moment as people write it: `2d` ago, `today`, a date. A `UsageError` says what can be written.

    Without a time zone it is local time.

    Examples:
        >>> from datetime import UTC, datetime
        >>> from asides.history import read_time
        >>> read_time("2d", datetime(2026, 1, 9, tzinfo=UTC)).date()
        datetime.date(2026, 1, 7)
    """
    now = now or datetime.now(UTC)
    written = text.strip().lower()
    if ago := AGO.fullmatch(written):
        try:
            return now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        except OverflowError:
            raise UsageError(f"{text!r} is longer ago than dates reach; {EXPECTED}") from None
    if written in ("today", "yesterday"):
        day = now.astimezone().date() - timedelta(days=int(written == "yesterday"))
        return datetime.combine(day, time()).astimezone(UTC)
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is not a time; {EXPECTED}") from None
