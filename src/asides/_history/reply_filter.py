"""Which replies are meant: by time, model, source, agent, conversation, client; and times as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta

import msgspec

from ..errors import UsageError
from .records import label, microseconds

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
AGO = re.compile(r"(\d{1,9})\s*([smhdw])")
EXPECTED = "write 90s, 30m, 12h, 2d or 3w for a time ago, today, yesterday, or a date as 2026-11-01 or 2026-11-01T15:30"


class ReplyFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of replies. Empty: all of them."""

    since: datetime | None = None
    until: datetime | None = None
    """Before this moment."""
    models: tuple[str, ...] = ()
    """Any of these, without case; `*` and `?` stand for other characters."""
    sources: tuple[str, ...] = ()
    agent: str = ""
    """Without case, with `*` and `?`."""
    conversation: str = ""
    client: str = ""
    """The whole fingerprint."""

    def conditions(self) -> tuple[str, list[str | int]]:
        """SQL that says so of the table `replies AS r`, beginning with AND; and its values."""
        found: list[str] = []
        values: list[str | int] = []
        if self.since is not None:
            found.append("r.time >= ?")
            values.append(microseconds(self.since))
        if self.until is not None:
            found.append("r.time < ?")
            values.append(microseconds(self.until))
        if self.models:
            found.append("(" + " OR ".join("lower(r.model) LIKE ? ESCAPE '!'" for _ in self.models) + ")")
            values += map(_like, self.models)
        if self.sources:
            found.append("r.source IN (" + ", ".join("?" for _ in self.sources) + ")")
            values += map(label, self.sources)
        if self.agent:
            found.append("lower(r.agent) LIKE ? ESCAPE '!'")
            values.append(_like(self.agent))
        if self.conversation:
            found.append("r.conversation = ?")
            values.append(label(self.conversation))
        if self.client:
            found.append("r.client = ?")
            values.append(label(self.client))
        return "".join(f" AND {condition}" for condition in found), values


def _like(pattern: str) -> str:
    plain = re.sub(r"[!%_]", r"!\g<0>", label(pattern).lower())
    return plain.replace("*", "%").replace("?", "_")


def read_time(text: str, now: datetime | None = None) -> datetime:
    """A moment as people write it: `2d` ago, `today`, a date. Without a time zone it is local time."""
    now = now or datetime.now(UTC)
    words = text.strip().lower()
    if ago := AGO.fullmatch(words):
        try:
            return now - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        except OverflowError:
            raise UsageError(f"{text!r} is longer ago than dates reach; {EXPECTED}") from None
    if words in ("today", "yesterday"):
        day = now.astimezone().date() - timedelta(days=int(words == "yesterday"))
        return datetime.combine(day, time()).astimezone(UTC)
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is no time; {EXPECTED}") from None
