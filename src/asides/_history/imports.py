"""Reads replies from JSON lines: our own export, or records with a model's raw output. Knows no store and no file."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..errors import UsageError
from ..message import Message
from .records import KeptReply, from_record

RAW_FIELDS = ("text", "raw", "output", "completion", "response", "content")
"""The fields that may have the model's output, in the order in which they are tried."""
TIME_FIELDS = ("time", "timestamp", "created", "created_at", "date")
MOST_PARTS = 2**31
LONGEST_TIME = 253_402_300_799
"""The last second of the year 9999."""


def read_line(
    line: bytes, parse: Callable[[str], Message], *, format: str, time: datetime, field: str = ""
) -> KeptReply:
    """The reply of a line. `time` is for records without one; `field` names the field with the raw output."""
    try:
        record = json.loads(line)
    except UnicodeDecodeError:
        raise UsageError("not valid JSON: it is not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"not valid JSON: {error}") from None
    if not isinstance(record, dict):
        raise UsageError("not a JSON object")
    if "thoughts" in record and "time" in record and not field:
        return _own(record)
    raw = _raw(record, field)
    kept = KeptReply.of(
        parse(raw),
        model=_label(record, "model"),
        source="import",
        # In a collection of traces `source` says where each came from; here that is the agent.
        agent=_label(record, "agent") or _label(record, "name") or _label(record, "source"),
        conversation=_label(record, "conversation") or _label(record, "conversation_id"),
        format=format,
        time=_time(record) or time,
    )
    return kept.named()


def _own(record: dict[str, Any]) -> KeptReply:
    try:
        kept = from_record(record)
    except (msgspec.ValidationError, LookupError, OverflowError, ValueError) as error:
        raise UsageError(f"not a record of `asides history export`: {error}") from None
    places = [thought.index for thought in kept.thoughts]
    if places != sorted(set(places)) or (places and not 0 <= places[0] <= places[-1] < MOST_PARTS):
        raise UsageError("not a record of `asides history export`: the indexes of its thoughts do not rise")
    return kept.named()


def _raw(record: dict[str, Any], field: str) -> str:
    names = (field,) if field else RAW_FIELDS
    for name in names:
        if isinstance(record.get(name), str):
            return str(record[name])
    raise UsageError(f"no model output in the field {' or '.join(names)}; name its field with --field")


def _label(record: dict[str, Any], name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _time(record: dict[str, Any]) -> datetime | None:
    for name in TIME_FIELDS:
        value = record.get(name)
        if isinstance(value, str):
            try:
                return datetime.fromisoformat(value).astimezone(UTC)
            except (ValueError, OverflowError):
                continue
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_TIME:
            return datetime.fromtimestamp(value, UTC)
    return None
