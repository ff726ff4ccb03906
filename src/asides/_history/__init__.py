"""A store of replies with their thoughts: SQLite in a file, or PostgreSQL. Nothing is written until one is opened."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..errors import UsageError
from .background_writer import BackgroundWriter
from .errors import DamagedError, HistoryError
from .records import KeptReply, chat_message, text_turn
from .reply_filter import ReplyFilter, read_time
from .results import (
    AnswerHit,
    AnswerSearch,
    CheckProgress,
    ConversationSummary,
    ModelShare,
    PurgeProgress,
    ReplyLabels,
    ReplyOverview,
    ReplySummary,
    SearchHit,
    SearchResult,
    StoreCounts,
)
from .store import History

__all__ = [
    "AnswerHit",
    "AnswerSearch",
    "BackgroundWriter",
    "CheckProgress",
    "ConversationSummary",
    "DamagedError",
    "History",
    "HistoryError",
    "KeptReply",
    "ModelShare",
    "PurgeProgress",
    "ReplyFilter",
    "ReplyLabels",
    "ReplyOverview",
    "ReplySummary",
    "SearchHit",
    "SearchResult",
    "StoreCounts",
    "chat_message",
    "default_store",
    "open",
    "read_time",
    "text_turn",
]

POSTGRES = ("postgresql://", "postgres://")


def open(store: str = "", *, create: bool = True) -> History:
    """Open a history: a file, a `postgresql://` address, or the default store. Without `create` it must exist.

    Examples:
        >>> import tempfile
        >>> from asides import history
        >>> folder = tempfile.TemporaryDirectory()
        >>> with history.open(f"{folder.name}/history.db") as store:
        ...     id = store.keep(asides.parse("<think>2+2</think>It is 4."))
        ...     print(store.reply(id).reply.text)
        It is 4.
        >>> folder.cleanup()
    """
    store = store or default_store()
    if store.startswith(POSTGRES):
        from .postgres import PostgresHistory

        return PostgresHistory(store, create=create)
    if other := re.match(r"[\w+.-]+://", store):
        # Only the scheme is shown: the rest may hold a password.
        raise UsageError(f"{other[0]}… is not a store; name a file or a postgresql:// address")
    from .sqlite import SqliteHistory

    return SqliteHistory(Path(store).expanduser(), create=create)


def default_store() -> str:
    """`$ASIDES_HISTORY`, or a file in the user's data directory.

    Examples:
        >>> from asides.history import default_store
        >>> default_store().rpartition(".")[2]
        'db'
    """
    if named := os.environ.get("ASIDES_HISTORY"):
        return named
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data, "asides", "history.db")
