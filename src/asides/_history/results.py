"""What a history answers with: counts, lists, hits of a search, and how far a long operation has come.

Plain records without methods, made by both stores and read by the commands, the page and callers of `asides.history`.
Lists carry no thoughts, only how many there are: thoughts are most of a store's bytes. Times are in UTC. A list is
continued by passing the `place` of its last row as `before`; replies that come meanwhile shift nothing.

    for each in history.overview(limit=20):
        print(each.time, each.model, each.question)
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from .text_search import Snippet


class StoreCounts(msgspec.Struct, frozen=True):
    """How many replies there are, and how many thoughts in them."""

    replies: int = 0
    """Replies that meet the filter."""
    thoughts: int = 0
    """Thoughts in these replies."""


class ReplySummary(msgspec.Struct, frozen=True):
    """What a list shows of a reply. Its thoughts are counted, not read."""

    id: str
    """The id of the reply, 32 hexadecimal digits."""
    time: datetime
    """When the reply was whole, in UTC."""
    model: str
    """The model's name, as the request wrote it."""
    source: str
    """What stored it: `filter`, `run`, `gateway` or `import`."""
    client: str
    """The fingerprint of the key that a gateway's client sent; empty where there was none."""
    text: str
    """The answer, without thoughts."""
    thoughts: int
    """How many thoughts the reply has."""


class ReplyOverview(msgspec.Struct, frozen=True, kw_only=True):
    """What a list shows of a reply beside what was asked. Its thoughts are counted, not read."""

    id: str
    """The id of the reply, 32 hexadecimal digits."""
    time: datetime
    """When the reply was whole, in UTC."""
    model: str
    """The model's name, as the request wrote it."""
    source: str
    """What stored it: `filter`, `run`, `gateway` or `import`."""
    client: str
    """The fingerprint of the key that a gateway's client sent; empty where there was none."""
    conversation: str
    """The id that all replies of one conversation share; empty for a reply on its own."""
    question: str
    """The last message of the user before the reply."""
    text: str
    """The answer, without thoughts."""
    thoughts: int
    """How many thoughts the reply has."""
    seconds: float | None
    """How long the whole reply took, in seconds; None where it was not measured."""
    place: tuple[int, int]
    """Its time and number: pass it as `before` to get the next page of the list."""


class ConversationSummary(msgspec.Struct, frozen=True):
    """What a list shows of a conversation."""

    id: str
    """The id that all replies of the conversation share."""
    model: str
    """The model's name in its last reply."""
    client: str
    """The fingerprint of the key that a gateway's client sent; empty where there was none."""
    question: str
    """The first message of the user in it."""
    replies: int
    """How many replies of it are stored."""
    first: datetime
    """The time of its first reply, in UTC."""
    last: datetime
    """The time of its last reply, in UTC."""
    place: tuple[int, int]
    """Its last time and number: pass it as `before` to get the next page of the list."""


class ReplyLabels(msgspec.Struct, frozen=True):
    """Which models, sources and clients there are replies of, how many in all, and from when to when."""

    models: tuple[str, ...]
    """The names of models that have replies, sorted."""
    sources: tuple[str, ...]
    """The sources that have replies, sorted: `filter`, `run`, `gateway`, `import`."""
    clients: tuple[str, ...]
    """The fingerprints of keys of a gateway's clients that have replies, sorted."""
    replies: int
    """How many replies there are in all."""
    first: datetime | None
    """The time of the oldest reply, in UTC; None where there are no replies."""
    last: datetime | None
    """The time of the newest reply, in UTC; None where there are no replies."""


class AnswerHit(msgspec.Struct, frozen=True):
    """A reply whose answer matches a search."""

    reply: str
    """The id of the reply."""
    snippet: Snippet
    """The passage of the answer that matches."""


class AnswerSearch(msgspec.Struct, frozen=True):
    """The answers that match a search, newest first."""

    hits: tuple[AnswerHit, ...] = ()
    """The replies that match, newest first."""
    whole: bool = True
    """Whether all answers were read; False when time ran out."""


class SearchHit(msgspec.Struct, frozen=True):
    """A thought that matches a search."""

    reply: str
    """The id of its reply."""
    thought: int
    """Which of the reply's thoughts, counted from 1."""
    time: datetime
    """When its reply was whole, in UTC."""
    model: str
    """The name of the model that wrote it, as the request wrote it."""
    source: str
    """What stored its reply: `filter`, `run`, `gateway` or `import`."""
    agent: str
    """The name that was given with `--agent` or by an import; empty where none was."""
    snippet: Snippet
    """The passage of the thought that matches."""


class SearchResult(msgspec.Struct, frozen=True):
    """The thoughts that match a search."""

    hits: tuple[SearchHit, ...] = ()
    """The thoughts that match, in the order that `ranked` says."""
    ranked: bool = True
    """Whether the best hits come first; False where there were too many to rank, and the newest come first."""


class ModelShare(msgspec.Struct, frozen=True, kw_only=True):
    """What one model's replies from one source amount to."""

    model: str
    """The model's name, as requests wrote it."""
    source: str
    """What stored the replies: `filter`, `run`, `gateway` or `import`."""
    replies: int
    """How many replies there are of this model from this source."""
    thoughts: int
    """How many thoughts are in them."""
    characters: int
    """Characters of these thoughts together."""
    first: datetime
    """The time of the oldest reply, in UTC."""
    last: datetime
    """The time of the newest reply, in UTC."""


class PurgeProgress(msgspec.Struct, frozen=True):
    """How far a purge has come, from its beginning."""

    seen: int = 0
    """Replies that were looked at so far."""
    replies: int = 0
    """Replies that were deleted, or would be."""
    thoughts: int = 0
    """Thoughts that were deleted with their replies, or would be."""
    entries: int = 0
    """Entries that a gateway stores for its clients and that were deleted with them, or would be."""


class CheckProgress(msgspec.Struct, frozen=True):
    """How far a check has come, and the problems that were found since the step before."""

    replies: int
    """Replies that were checked so far."""
    problems: tuple[str, ...] = ()
    """What is wrong, one sentence for each problem."""
    damaged: bool = False
    """Whether the file itself is damaged, not only a reply in it."""
