"""History as the page reads it: filters from a query, lists, kept replies, exports as text. Opens no store itself.

Who may read what is settled by the filter: `read_filter` puts the owner into it, and every function here takes one. So
a question about a single reply is a filter too, and finds nothing where the reply is somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from .._history import ConversationSummary, History, HistoryError, KeptReply, ReplyFilter, ReplyOverview, read_time
from .._history.records import encode_line
from .._history.text_search import Snippet
from ..errors import UsageError
from ..parts import Thinking
from ..reply._reply import Times
from .splitting import write_parts

QUESTION, ANSWER = 200, 300
"""Characters of what was asked and answered that a list shows."""
MOST_LISTED = 200
MOST_REPLIES, MOST_CHARACTERS = 2000, 16_000_000
"""Of a conversation that is read at once."""
FILTERS = ("model", "since", "until", "client", "source", "conversation", "reply")
"""What a query may narrow replies down by."""
_BACKTICKS = re.compile(r"`{3,}")


def read_filter(query: Mapping[str, str], owner: str | None) -> ReplyFilter:
    """The filter that a query names, for replies of this owner; None: of everybody. `UsageError` for a wrong time."""
    given = {name: query[name] for name in FILTERS if query.get(name)}
    return ReplyFilter(
        since=read_time(given["since"]) if "since" in given else None,
        until=read_time(given["until"]) if "until" in given else None,
        models=(given["model"],) if "model" in given else (),
        sources=(given["source"],) if "source" in given else (),
        conversation=given.get("conversation", ""),
        client=given.get("client", "") if owner is None else owner,
        id=given.get("reply", ""),
    )


def read_limit(query: Mapping[str, str]) -> int:
    """How many a list shall have."""
    limit = query.get("limit", "50")
    if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit[:9]) <= MOST_LISTED:
        raise UsageError(f"limit must be a whole number from 1 to {MOST_LISTED}")
    return int(limit)


def read_cursor(query: Mapping[str, str]) -> tuple[int, int] | None:
    """Behind which row a list goes on: the `next` of the page before."""
    text = query.get("before", "")
    found = re.fullmatch(r"(-?[0-9]{1,18})\.([0-9]{1,18})", text)
    if text and found is None:
        raise UsageError("before must be the `next` of another page")
    return (int(found[1]), int(found[2])) if found is not None else None


def list_history(store: History, where: ReplyFilter, query: Mapping[str, str]) -> dict[str, Any]:
    """A page of replies, newest first; or with `search` those in whose thoughts or answers it is found."""
    limit = read_limit(query)
    if query.get("search", "").strip():
        return _search(store, where, query["search"], limit)
    replies = store.overview(where, before=read_cursor(query), limit=limit + 1)
    return {"replies": [write_overview(reply) for reply in replies[:limit]], "next": _next(replies, limit)}


def _search(store: History, where: ReplyFilter, search: str, limit: int) -> dict[str, Any]:
    thoughts = store.search(search, where, limit=limit)
    answers = store.search_answers(search, where, limit=limit)
    hits: list[dict[str, Any]] = [
        *({"reply": hit.reply, "thought": hit.thought, "snippet": _marked(hit.snippet)} for hit in thoughts.hits),
        *({"reply": hit.reply, "thought": None, "snippet": _marked(hit.snippet)} for hit in answers.hits),
    ]
    ids = list(dict.fromkeys(hit["reply"] for hit in hits))
    return {
        "replies": [write_overview(reply) for reply in store.overview_of(ids, where)],
        "hits": hits,
        "next": None,
        "ranked": thoughts.ranked,
        "partial": not answers.whole,
    }


def _marked(snippet: Snippet) -> list[tuple[str, bool]]:
    """A snippet as stretches that match and stretches that do not, in order."""
    pieces: list[tuple[str, bool]] = []
    reached = 0
    for start, end in snippet.marks:
        pieces += [(snippet.text[reached:start], False), (snippet.text[start:end], True)]
        reached = end
    pieces.append((snippet.text[reached:], False))
    return [piece for piece in pieces if piece[0]]


def _next(found: list[ReplyOverview] | list[ConversationSummary], limit: int) -> str | None:
    """Where the next page begins: one more than wanted was read, to see whether there is one."""
    if len(found) <= limit:
        return None
    return "{}.{}".format(*found[limit - 1].place)


def write_overview(reply: ReplyOverview) -> dict[str, Any]:
    """A reply in a list."""
    shown = msgspec.structs.asdict(reply)
    del shown["place"]
    return {**shown, "question": reply.question[:QUESTION], "text": reply.text[:ANSWER]}


def list_labels(store: History, where: ReplyFilter, names: Mapping[str, str]) -> dict[str, Any]:
    """What there is to choose from; `names` are what clients are called, by their fingerprints."""
    found = store.labels(where)
    known = {client: names[client] for client in found.clients if client in names}
    return {**msgspec.structs.asdict(found), "names": known}


def list_conversations(store: History, where: ReplyFilter, query: Mapping[str, str]) -> dict[str, Any]:
    """A page of conversations, the latest first."""
    limit = read_limit(query)
    found = store.conversations(where, before=read_cursor(query), limit=limit + 1)
    listed = []
    for each in found[:limit]:
        shown = msgspec.structs.asdict(each)
        del shown["place"]
        listed.append({**shown, "question": each.question[:QUESTION]})
    return {"conversations": listed, "next": _next(found, limit)}


def read_conversation(store: History, where: ReplyFilter) -> dict[str, Any]:
    """The replies of a conversation, in order."""
    replies: list[KeptReply] = []
    characters = 0
    for reply in store.replies(where):
        if len(replies) == MOST_REPLIES or characters > MOST_CHARACTERS:
            break
        replies.append(reply)
        characters += reply.size
    if not replies:
        raise HistoryError(f"there is no conversation {where.conversation} that this key may read")
    return {
        "id": where.conversation,
        "model": replies[-1].reply.model,
        "replies": [write_kept(reply) for reply in replies],
        "truncated": store.count(where).replies > len(replies),
    }


def read_reply(store: History, where: ReplyFilter) -> dict[str, Any]:
    """One reply."""
    found = store.newest(where, limit=1)
    if not found:
        raise HistoryError(f"there is no reply {where.id} that this key may read")
    return write_kept(found[0])


def write_kept(kept: KeptReply) -> dict[str, Any]:
    """A kept reply as an export has it, and its parts in order."""
    return {**kept.to_record(), "parts": write_parts(kept.reply.parts, kept.reply.times.thoughts)}


def purge(store: History, where: ReplyFilter, *, dry_run: bool) -> dict[str, Any]:
    """Delete replies, or count those that would be."""
    replies = thoughts = 0
    for progress in store.purge(where, dry_run=dry_run):
        replies, thoughts = progress.replies, progress.thoughts
    warning = ""
    if not dry_run:
        try:
            store.compact()
        except HistoryError as error:  # deleted it is; that the file still holds traces is worth saying
            warning = str(error)
    return {"replies": replies, "thoughts": thoughts, **({"warning": warning} if warning else {})}


# Exports.


def json_lines(replies: Iterable[KeptReply], *, thoughts: bool) -> Iterator[bytes]:
    """A line for each reply, as `asides history export` writes it."""
    for reply in replies:
        yield encode_line((reply if thoughts else without_thoughts(reply)).to_record()) + b"\n"


def markdown(replies: Iterable[KeptReply], *, thoughts: bool) -> Iterator[bytes]:
    """A document: what was asked, thoughts as quotations, answers as they are, calls as blocks of code."""
    for reply in replies:
        yield _section(reply if thoughts else without_thoughts(reply)).encode("utf-8", "replace")


def without_thoughts(kept: KeptReply) -> KeptReply:
    """The reply without anything that was thought."""
    reply = kept.reply
    bare = msgspec.structs.replace(
        reply,
        parts=tuple(part for part in reply.parts if not isinstance(part, Thinking)),
        thinking="",
        times=Times(None, reply.times.first_answer, reply.times.seconds),
    )
    return msgspec.structs.replace(kept, reply=bare, places=())


def _section(kept: KeptReply) -> str:
    pieces = [f"# {kept.reply.model or 'reply'}, {kept.time:%Y-%m-%d %H:%M} UTC"]
    pieces += [f"## {turn.role.capitalize()}\n\n{turn.text}" for turn in kept.asked if turn.text]
    pieces.append("## Assistant")
    for part in write_kept(kept)["parts"]:
        if part["kind"] == "thinking":
            took = f", {part['seconds']:.1f} s" if part["seconds"] is not None else ""
            cut = "" if part["complete"] else ", cut off"
            quoted = "\n".join(f"> {line}" for line in part["text"].split("\n"))
            pieces.append(f"> **Thinking{took}{cut}**\n>\n{quoted}")
        elif part["kind"] == "tool_call":
            # A fence must be longer than any inside it.
            fence = max(_BACKTICKS.findall(part["arguments"]), key=len, default="``") + "`"
            pieces.append(f"**Call** `{part['name']}`\n\n{fence}json\n{part['arguments']}\n{fence}")
        else:
            pieces.append(part["text"])
    return "\n\n".join(pieces) + "\n\n"
