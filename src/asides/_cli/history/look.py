"""`asides history list`, `show`, `search`, `grep` and `stats`: looking at kept thoughts without changing them.

Each command takes the options that `command.py` parsed, writes through a `Page` and returns an exit code; `search` and
`grep` return 1 where nothing was found, as grep does. With `--json` the same facts are lines of JSON. `grep` goes
through all chosen replies and can be stopped by Ctrl-C between two; what was found until then is written.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil

import msgspec

from ..._history import KeptReply, ModelShare, ReplySummary, SearchHit, chat_message
from ..._history.grep import compile_pattern, matching_lines
from ..._history.records import call_record, calls_of, encode_line
from ...dialects.request import Turn
from ...terminal.table import aligned
from .. import INTERRUPTED, ODD, OK
from ..streams import PLAIN, Interrupt, complain
from .common import SHORT, Page, first_line, moment, open_store, progress, replies, where

NARROWEST = 20
WIDEST = 30
"""Columns of a model's name."""


def list_replies(options: argparse.Namespace) -> int:
    """The newest replies, one to a line."""
    page = Page()
    chosen = where(options)
    with open_store(options) as history:
        if options.json:
            for reply in history.newest(chosen, limit=options.number):
                page.json(encode_line(reply.to_record()))
        elif listed := history.listed(chosen, limit=options.number):
            _show_list(page, listed)
        elif page.terminal:
            complain("no such replies")
    page.flush()
    return OK


def _show_list(page: Page, listed: list[ReplySummary]) -> None:
    head = ("ID", "TIME", "MODEL", "SOURCE", "THOUGHTS")
    rows = [
        (
            reply.id[:SHORT],
            moment(reply.time),
            first_line(reply.model, WIDEST) or "-",
            reply.source,
            str(reply.thoughts),
        )
        for reply in listed
    ]
    lines = aligned([head, *rows])
    left = max(NARROWEST, shutil.get_terminal_size().columns - len(lines[0]) - 2) if page.terminal else None
    page.line(f"{lines[0]}  ANSWER", page.dim)
    for line, reply in zip(lines[1:], listed, strict=True):
        page.line(f"{line}  {first_line(reply.text, left)}")


def show(options: argparse.Namespace) -> int:
    """Whole replies, or a conversation's memory."""
    page = Page(raw=options.raw, wrap=options.wordwrap)
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
                page.json(encode_line(reply.to_record()))
            elif options.only:
                _show_only(page, reply, options.only)
            else:
                if place:
                    page.line()
                _show_reply(page, reply)
    page.flush()
    return OK if ids else ODD


def _show_only(page: Page, kept: KeptReply, part: str) -> None:
    if part == "text":
        page.lines(kept.reply.text)
    elif part == "thinking":
        page.lines("\n\n".join(thought.text for thought in kept.thoughts))
    else:
        for call in kept.reply.tool_calls:
            page.json(encode_line(call_record(call)))


def _show_reply(page: Page, kept: KeptReply) -> None:
    facts = {
        "reply": kept.id,
        "time": moment(kept.time),
        "model": kept.reply.model,
        "source": kept.source,
        "agent": kept.agent,
        "conversation": kept.conversation,
        "client": kept.client,
        "format": kept.format,
        "took": f"{kept.reply.times.seconds:.1f} s" if kept.reply.times.seconds is not None else "",
        "ended": "cut off" if kept.reply.termination == "cut" else "",
        "odd": ", ".join(notice.code for notice in kept.reply.notices),
    }
    for name, value in facts.items():
        if value:
            page.line(f"{name:<14}{value}")
    for turn in kept.asked:
        page.line()
        page.line(f"{turn.role}:", page.bold)
        page.lines(turn.text, "  ")
    for number, thought in enumerate(kept.thoughts, 1):
        page.line()
        took = f", {thought.seconds:.1f} s" if thought.seconds is not None else ""
        page.line(f"thinking {number}{took}{'' if thought.complete else ', cut off'}:", page.bold)
        page.lines(thought.text, "  ", page.dim)
    if kept.reply.text:
        page.line()
        page.line("answer:", page.bold)
        page.lines(kept.reply.text, "  ")
    for call in kept.reply.tool_calls:
        page.line()
        page.line(f"call {call.name}{f' ({call.error})' if call.error else ''}:", page.bold)
        page.lines(call.arguments, "  ")


def _show_conversation(page: Page, turns: list[Turn], *, as_json: bool) -> None:
    for place, turn in enumerate(turns):
        if as_json:
            page.json(encode_line(chat_message(turn)))
            continue
        if place:
            page.line()
        page.line(f"{turn.role}:", page.bold)
        page.lines(turn.text, "  ")
        for call in calls_of(turn):
            page.lines(f"{call.name} {call.arguments}", "  ")


def search(options: argparse.Namespace) -> int:
    """Thoughts that hold words, best first."""
    page = Page(raw=options.raw, wrap=options.wordwrap)
    with open_store(options) as history:
        found = history.search(" ".join(options.words), where(options), limit=options.number)
    for hit in found.hits:
        if options.json:
            page.json(encode_line(_hit(hit)))
        else:
            facts = "  ".join(fact for fact in (moment(hit.time), hit.model, hit.agent) if fact)
            page.line(f"{hit.reply[:SHORT]}:{hit.thought}:{hit.snippet.line}  {facts}")
            page.draw(page.marked(hit.snippet.text, hit.snippet.marks, "    ") + "\n")
    if found.hits and not found.ranked and not options.json:
        page.line("(these words are in very many thoughts, so the newest come first)", page.dim)
    page.flush()
    if not found.hits and page.terminal:
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


def grep(options: argparse.Namespace) -> int:
    """Lines of thoughts that match a regular expression, written as `grep -n` does."""
    matches = _Matches(options, Page(raw=options.raw))
    chosen = where(options)
    with open_store(options) as history, Interrupt() as interrupt:
        # Between lines of a result on the same screen there is no place for it.
        hidden = matches.page.terminal
        total = 0 if hidden else history.count(chosen).replies
        with progress("looked through", total, hidden=hidden) as shown:
            for done, reply in enumerate(history.replies(chosen), 1):
                matches.look(reply)
                shown.show(done, replies(done))
                if interrupt.came or (options.max_count and matches.found >= options.max_count):
                    break
        matches.page.flush()
        if interrupt.came:
            return INTERRUPTED
    return OK if matches.found else ODD


class _Matches:
    """Looks for the pattern in one reply after another, and writes what it finds."""

    def __init__(self, options: argparse.Namespace, page: Page) -> None:
        self.page = page
        self.found = 0
        """Lines that matched; with -l replies."""
        self._options = options
        self._pattern = compile_pattern(
            options.pattern, fixed=options.fixed_strings, ignore_case=options.ignore_case, word=options.word_regexp
        )
        self._plain = options.fixed_strings or re.escape(options.pattern) == options.pattern
        around = options.context or 0
        self._before = options.before_context if options.before_context is not None else around
        self._after = options.after_context if options.after_context is not None else around
        self._shown = False

    def look(self, reply: KeptReply) -> None:
        """Write what of this reply is asked for."""
        texts = [(str(number), thought.text) for number, thought in enumerate(reply.thoughts, 1)]
        if self._options.answers:
            texts.append(("answer", reply.reply.text))
        if self._plain:
            # One search through a whole text is far cheaper than one for each of its lines. Plain text that is in no
            # text is in no line; of other patterns that cannot be said, because they may look around.
            texts = [(place, text) for place, text in texts if self._pattern.search(text)]
        if self._options.count or self._options.files_with_matches:
            self._count(reply, texts)
            return
        for place, text in texts:
            self._show(reply, place, text)

    def _count(self, reply: KeptReply, texts: list[tuple[str, str]]) -> None:
        count = sum(1 for _, text in texts for _ in matching_lines(text, self._pattern))
        if count:
            self.found += 1 if self._options.files_with_matches else count
            self.page.line(reply.id[:SHORT] + ("" if self._options.files_with_matches else f":{count}"))

    def _show(self, reply: KeptReply, where: str, text: str) -> None:
        first, bold = True, self.page.bold != PLAIN
        for line in matching_lines(text, self._pattern, self._before, self._after):
            if (line.gap or (first and self._shown)) and (self._before or self._after):
                self.page.line("--", self.page.dim)
            mark = ":" if line.matches else "-"
            place = f"{reply.id[:SHORT]}{mark}{where}{mark}{line.number}{mark}"
            # Where nothing is bold, the matches need not be looked for again.
            marks = [found.span() for found in self._pattern.finditer(line.text)] if line.matches and bold else []
            self.page.draw(f"{place.join(self.page.dim)}{self.page.marked(line.text, marks)}\n")
            self.found += line.matches
            first, self._shown = False, True


def stats(options: argparse.Namespace) -> int:
    """How much there is, by model and source."""
    page = Page()
    with open_store(options) as history:
        shares = history.stats(where(options))
        size = history.size()
        name = history.name
    if options.json:
        whole = {"store": name, "bytes": size, "shares": shares}
        page.json(msgspec.json.format(msgspec.json.encode(whole), indent=2))
    else:
        _show_stats(page, shares, f"{name}, {size / 1e6:,.1f} MB")
    page.flush()
    return OK


def _show_stats(page: Page, shares: list[ModelShare], store: str) -> None:
    head = ("MODEL", "SOURCE", "REPLIES", "THOUGHTS", "CHARACTERS", "FIRST", "LAST")
    rows: list[tuple[str, ...]] = [
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
    total = [sum(getattr(share, name) for share in shares) for name in ("replies", "thoughts", "characters")]
    rows.append(("all", "", *(f"{count:,}" for count in total), "", ""))
    for place, line in enumerate(aligned([head, *rows], right={2, 3, 4})):
        page.line(line.rstrip(), page.dim if place == 0 else PLAIN)
    page.line(store)
