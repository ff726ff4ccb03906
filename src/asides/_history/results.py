"""What a history returns besides replies: counts, search results, figures by model, and the progress of long work."""

from __future__ import annotations

from datetime import datetime

import msgspec

from .text_search import Snippet


class StoreCounts(msgspec.Struct, frozen=True):
    """How many replies there are, and how many thoughts in them."""

    replies: int = 0
    thoughts: int = 0


class ReplySummary(msgspec.Struct, frozen=True):
    """What a list shows of a reply. Its thoughts are counted, not read."""

    id: str
    time: datetime
    model: str
    source: str
    client: str
    text: str
    """The answer."""
    thoughts: int
    """The number of its thoughts."""


class ReplyOverview(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows of a reply beside what was asked. Its thoughts are counted, not read."""

    id: str
    time: datetime
    model: str
    source: str
    client: str
    conversation: str
    question: str
    """The last message of the user before it."""
    text: str
    """The answer."""
    thoughts: int
    """The number of its thoughts."""
    seconds: float | None
    place: tuple[int, int]
    """Where the list goes on behind it."""


class ConversationSummary(msgspec.Struct, frozen=True):
    """What a list shows of a conversation."""

    id: str
    model: str
    """Of its last reply."""
    client: str
    question: str
    """The first that was asked in it."""
    replies: int
    first: datetime
    last: datetime
    place: tuple[int, int]
    """Where the list goes on behind it."""


class ReplyLabels(msgspec.Struct, frozen=True):
    """Which models, sources and clients there are replies of, how many in all, and from when to when."""

    models: tuple[str, ...]
    sources: tuple[str, ...]
    clients: tuple[str, ...]
    replies: int
    first: datetime | None
    last: datetime | None


class AnswerHit(msgspec.Struct, frozen=True):
    """A reply whose answer matches a search."""

    reply: str
    """Its id."""
    snippet: Snippet


class AnswerSearch(msgspec.Struct, frozen=True):
    """The answers that match a search, newest first."""

    hits: tuple[AnswerHit, ...] = ()
    whole: bool = True
    """False: time ran out before all answers were read."""


class SearchHit(msgspec.Struct, frozen=True):
    """A thought that matches a search."""

    reply: str
    """The id of its reply."""
    thought: int
    """Which of the reply's thoughts, counted from 1."""
    time: datetime
    model: str
    source: str
    agent: str
    snippet: Snippet


class SearchResult(msgspec.Struct, frozen=True):
    """The thoughts that match a search."""

    hits: tuple[SearchHit, ...] = ()
    ranked: bool = True
    """Best first. False: there were too many to rank, so the newest come first."""


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
    """How far a purge has come, from its beginning."""

    seen: int = 0
    """Replies that were looked at."""
    replies: int = 0
    """Replies that were deleted, or would be."""
    thoughts: int = 0
    entries: int = 0
    """What a gateway keeps for clients (`entries`) and was deleted with them, or would be."""


class CheckProgress(msgspec.Struct, frozen=True):
    """How far a check has come, and the problems that were found since the step before."""

    replies: int
    problems: tuple[str, ...] = ()
    damaged: bool = False
    """Whether it is the file itself that is damaged."""
