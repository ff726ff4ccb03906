"""Makes kept replies of records: of our own export, or of replies that somebody found in one. Knows no file.

A record is decoded already, wherever it came from: so a time may be a text, a number of seconds or a date, and a field
of a table that a row has no value for is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec

from ..dialects._request import RequestTurn
from ..errors import UsageError
from ..message import Message
from .records import KeptReply, from_record

TIME_FIELDS = ("time", "timestamp", "created", "created_at", "date")
MOST_PARTS = 2**31
LONGEST_TIME = 253_402_300_799
"""The last second of the year 9999."""
DAY = len("20261101")
"""Digits of a date without dashes; other digits alone are seconds."""


def is_own(record: Any) -> bool:
    """Whether a record looks like one of `asides history export`."""
    return isinstance(record, dict) and record.get("thoughts") is not None and record.get("time") is not None


def read_own(record: dict[str, Any]) -> KeptReply:
    """The reply of a record of ours."""
    try:
        kept = from_record(_without_nulls(record))
    except (msgspec.ValidationError, LookupError, OverflowError, ValueError, RecursionError) as error:
        raise UsageError(f"not a record of `asides history export`: {error}") from None
    places = [thought.index for thought in kept.thoughts]
    if places != sorted(set(places)) or (places and not 0 <= places[0] <= places[-1] < MOST_PARTS):
        raise UsageError("not a record of `asides history export`: the indexes of its thoughts do not rise")
    return kept.named()


def keep_found(
    messages: Sequence[Message],
    record: dict[str, Any],
    *,
    asked: Sequence[Sequence[RequestTurn]],
    format: str,
    time: datetime,
    model: str = "",
) -> list[KeptReply]:
    """The replies of a record of somebody else's. `time` and `model` are for records that name none.

    `asked`: for each reply what led to it. Replies that follow each other are one conversation.
    """
    first = _time(record) or time
    labels: dict[str, Any] = {
        "model": _label(record, "model") or model,
        # In a collection of traces `source` says where each came from; here that is the agent.
        "agent": _label(record, "agent") or _label(record, "name") or _label(record, "source"),
        "conversation": _label(record, "conversation") or _label(record, "conversation_id"),
    }
    found: list[KeptReply] = []
    for number, (message, turns) in enumerate(zip(messages, asked, strict=True)):
        kept = KeptReply.of(
            message, source="import", format=format, time=_after(first, number), asked=turns, **labels
        ).named()
        if len(messages) > 1 and turns and not labels["conversation"]:
            # By its first reply, so that it is the same for every import.
            labels["conversation"] = kept.id
            kept = msgspec.structs.replace(kept, conversation=kept.id).named()
        found.append(kept)
    return found


def _after(time: datetime, number: int) -> datetime:
    """So many microseconds later: turns of one record stay in order, and the same words twice are two replies."""
    try:
        return time + timedelta(microseconds=number)
    except OverflowError:
        return time


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _label(record: dict[str, Any], name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _time(record: dict[str, Any]) -> datetime | None:
    for name in TIME_FIELDS:
        try:
            found = _read_time(record.get(name))
        except (ValueError, OverflowError):
            continue
        if found is not None:
            return found
    return None


def _read_time(value: Any) -> datetime | None:
    if isinstance(value, str):
        digits = value.strip().replace(".", "", 1)
        if not digits.isdecimal() or len(digits) == DAY:
            return datetime.fromisoformat(value.strip()).astimezone(UTC)
        value = float(value)  # as CSV writes a number
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_TIME:
        return datetime.fromtimestamp(value, UTC)
    return None
