"""`asides history list`, `show`, `search` and `stats`: looking at kept thoughts without changing them."""

from __future__ import annotations

import argparse
import shlex
import shutil

import msgspec

from ..._history import ModelShare, Reply, ReplySummary, SearchHit, Turn
from ..._history.records import encode_line
from .. import ODD, OK
from ..streams import STDOUT, Output, complain
from .common import PLAIN, SHORT, Page, first_line, moment, open_store, where

NARROWEST = 20
WIDEST = 30
"""Columns of a model's name."""


def list_replies(options: argparse.Namespace) -> int:
    """The newest replies, one to a line."""
    page = Page(Output(STDOUT))
    chosen = where(options)
    with open_store(options) as history:
        if options.json:
            for reply in history.newest(chosen, limit=options.number):
                page.data(encode_line(reply) + b"\n")
        elif replies := history.listed(chosen, limit=options.number):
            _table(page, replies)
        elif page.seen:
            complain("no such replies")
    page.flush()
    return OK


def _table(page: Page, replies: list[ReplySummary]) -> None:
    head = ("ID", "TIME", "MODEL", "SOURCE", "THOUGHTS")
    rows = [
        (
            reply.id[:SHORT],
            moment(reply.time),
            first_line(reply.model, WIDEST) or "-",
            reply.source,
            str(reply.thoughts),
        )
        for reply in replies
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    left = max(NARROWEST, shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths)) if page.seen else None
    page.line("  ".join(cell.ljust(width) for cell, width in zip(head, widths, strict=True)) + "  ANSWER", page.dim)
    for row, reply in zip(rows, replies, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        page.line(f"{cells}  {first_line(reply.text, left)}")


def show(options: argparse.Namespace) -> int:
    """Whole replies, or a conversation's memory."""
    page = Page(Output(STDOUT, raw=options.raw))
    with open_store(options) as history:
        if options.conversation:
            turns = history.conversation(options.conversation)
            _show_conversation(page, turns, as_json=options.json)
            page.flush()
            return OK if turns else ODD
        ids = options.ids or [reply.id for reply in history.listed(limit=1)]
        for place, id in enumerate(ids):
            reply = history.reply(id.partition(":")[0])
            if options.json:
                page.data(encode_line(reply) + b"\n")
            elif options.only:
                _show_only(page, reply, options.only)
            else:
                if place:
                    page.line()
                _show_reply(page, reply)
    page.flush()
    return OK if ids else ODD


def _show_only(page: Page, reply: Reply, part: str) -> None:
    if part == "text":
        page.lines(reply.text)
    elif part == "thinking":
        page.lines("\n\n".join(thought.text for thought in reply.thoughts))
    else:
        for call in reply.calls:
            page.data(encode_line(call) + b"\n")


def _show_reply(page: Page, reply: Reply) -> None:
    facts = {
        "reply": reply.id,
        "time": moment(reply.time),
        "model": reply.model,
        "source": reply.source,
        "agent": reply.agent,
        "conversation": reply.conversation,
        "client": reply.client,
        "format": reply.format,
        "took": f"{reply.seconds:.1f} s" if reply.seconds is not None else "",
        "ended": "cut off" if reply.termination == "cut" else "",
        "odd": ", ".join(notice.code for notice in reply.notices),
    }
    for name, value in facts.items():
        if value:
            page.line(f"{name:<14}{value}")
    for turn in reply.asked:
        page.line()
        page.line(f"{turn.role}:", page.bold)
        page.lines(turn.text, "  ")
    for number, thought in enumerate(reply.thoughts, 1):
        page.line()
        took = f", {thought.seconds:.1f} s" if thought.seconds is not None else ""
        page.line(f"thinking {number}{took}{'' if thought.complete else ', cut off'}:", page.bold)
        page.lines(thought.text, "  ", page.dim)
    if reply.text:
        page.line()
        page.line("answer:", page.bold)
        page.lines(reply.text, "  ")
    for call in reply.calls:
        page.line()
        page.line(f"call {call.name}{f' ({call.error})' if call.error else ''}:", page.bold)
        page.lines(call.arguments, "  ")


def _show_conversation(page: Page, turns: list[Turn], *, as_json: bool) -> None:
    for place, turn in enumerate(turns):
        if as_json:
            page.data(encode_line(turn.to_dict()) + b"\n")
            continue
        if place:
            page.line()
        page.line(f"{turn.role}:", page.bold)
        page.lines(turn.text, "  ")
        for call in turn.calls:
            page.lines(f"{call.name} {call.arguments}", "  ")


def search(options: argparse.Namespace) -> int:
    """Thoughts that hold words, best first."""
    page = Page(Output(STDOUT, raw=options.raw))
    with open_store(options) as history:
        found = history.search(" ".join(options.words), where(options), limit=options.number)
    for hit in found.hits:
        if options.json:
            page.data(encode_line(_hit(hit)) + b"\n")
        else:
            facts = "  ".join(fact for fact in (moment(hit.time), hit.model, hit.agent) if fact)
            page.line(f"{hit.reply[:SHORT]}:{hit.thought}:{hit.snippet.line}  {facts}")
            page.raw(f"    {_marked(page, hit)}\n")
    if found.hits and not found.ranked and not options.json:
        page.line("(these words are in very many thoughts, so the newest come first)", page.dim)
    page.flush()
    if not found.hits and page.seen:
        # As a shell takes it back, should someone copy it.
        complain(f"nothing found; `asides history grep -i {shlex.quote(options.words[0])}` looks inside words too")
    return OK if found.hits else ODD


def _hit(hit: SearchHit) -> dict[str, object]:
    return {
        "reply": hit.reply,
        "thought": hit.thought,
        "line": hit.snippet.line,
        "time": hit.time,
        "model": hit.model,
        "source": hit.source,
        "agent": hit.agent,
        "snippet": hit.snippet.text,
        "marks": hit.snippet.marks,
    }


def _marked(page: Page, hit: SearchHit) -> str:
    shown, place = [], 0
    text = hit.snippet.text
    for start, end in hit.snippet.marks:
        shown += [page.safe(text[place:start]), page.bold[0], page.safe(text[start:end]), page.bold[1]]
        place = end
    return "".join([*shown, page.safe(text[place:])])


def stats(options: argparse.Namespace) -> int:
    """How much there is, by model and source."""
    page = Page(Output(STDOUT))
    with open_store(options) as history:
        shares = history.stats(where(options))
        size = history.size()
        name = history.name
    if options.json:
        whole = {"store": name, "bytes": size, "shares": shares}
        page.data(msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n")
    else:
        _show_stats(page, shares, f"{name}, {size / 1e6:,.1f} MB")
    page.flush()
    return OK


def _show_stats(page: Page, shares: list[ModelShare], store: str) -> None:
    head = ("MODEL", "SOURCE", "REPLIES", "THOUGHTS", "CHARACTERS", "FIRST", "LAST")
    rows = [
        (
            page.safe(share.model) or "-",
            share.source,
            f"{share.replies:,}",
            f"{share.thoughts:,}",
            f"{share.characters:,}",
            moment(share.first),
            moment(share.last),
        )
        for share in shares
    ]
    replies, thoughts, characters = (
        sum(getattr(share, name) for share in shares) for name in ("replies", "thoughts", "characters")
    )
    rows.append(("all", "", f"{replies:,}", f"{thoughts:,}", f"{characters:,}", "", ""))
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for place, row in enumerate((head, *rows)):
        cells = (
            cell.rjust(width) if 2 <= column <= 4 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        page.line("  ".join(cells).rstrip(), page.dim if place == 0 else PLAIN)
    page.line(store)
