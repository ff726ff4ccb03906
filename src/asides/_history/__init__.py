"""Kept thoughts: replies with their thoughts beside them, written once, found again. Off until a store is opened."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..errors import UsageError
from .background_writer import Keeper
from .errors import DamagedError, HistoryError
from .records import Call, Notice, Reply, Thought, Turn
from .results import Checked, Counts, Found, Hit, Listed, Purged, Share
from .store import History
from .where import Where, read_time

__all__ = [
    "Call",
    "Checked",
    "Counts",
    "DamagedError",
    "Found",
    "History",
    "HistoryError",
    "Hit",
    "Keeper",
    "Listed",
    "Notice",
    "Purged",
    "Reply",
    "Share",
    "Thought",
    "Turn",
    "Where",
    "open",
    "read_time",
    "usual_place",
]

POSTGRES = ("postgresql://", "postgres://")


def open(store: str = "", *, create: bool = True) -> History:
    """Open a history: a file, a `postgresql://` address, or where it usually is. Without `create` it must be there."""
    store = store or usual_place()
    if store.startswith(POSTGRES):
        from .postgres import PostgresHistory

        return PostgresHistory(store, create=create)
    if other := re.match(r"[\w+.-]+://", store):
        # Not as it stands: there may be a password in it.
        raise UsageError(f"{other[0]}… cannot be kept in; a store is a file or a postgresql:// address")
    from .sqlite import SqliteHistory

    return SqliteHistory(Path(store).expanduser(), create=create)


def usual_place() -> str:
    """`$ASIDES_HISTORY`, or a file in the data directory of the user."""
    if named := os.environ.get("ASIDES_HISTORY"):
        return named
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data, "asides", "history.db")
