"""What a history answers: counts, hits, figures, and how far long work has come. Plain records."""

from __future__ import annotations

from datetime import datetime

import msgspec

from .text_search import Snippet


class StoreCounts(msgspec.Struct, frozen=True):
    """How many."""

    replies: int = 0
    thoughts: int = 0


class ReplySummary(msgspec.Struct, frozen=True):
    """What a list shows of a reply."""

    id: str
    time: datetime
    model: str
    source: str
    client: str
    text: str
    """The answer."""
    thoughts: int
    """How many."""


class SearchHit(msgspec.Struct, frozen=True):
    """A thought that was found."""

    reply: str
    """The id of the reply."""
    thought: int
    """Which of the reply's thoughts, counted from 1."""
    time: datetime
    model: str
    source: str
    agent: str
    snippet: Snippet


class SearchResult(msgspec.Struct, frozen=True):
    """What a search found."""

    hits: tuple[SearchHit, ...] = ()
    ranked: bool = True
    """Best first. False: there were too many to rank, so the newest first."""


class ModelShare(msgspec.Struct, frozen=True, kw_only=True):
    """What one model's replies from one source amount to."""

    model: str
    source: str
    replies: int
    thoughts: int
    characters: int
    """Of the thoughts."""
    first: datetime
    last: datetime


class PurgeProgress(msgspec.Struct, frozen=True):
    """How far a purge has come."""

    seen: int = 0
    """Replies that were looked at."""
    replies: int = 0
    """Replies that were deleted, or would be."""
    thoughts: int = 0


class CheckProgress(msgspec.Struct, frozen=True):
    """How far a check has come, and what was wrong on the way since the last one."""

    replies: int
    problems: tuple[str, ...] = ()
    damaged: bool = False
    """Whether it is the file itself that is damaged."""
