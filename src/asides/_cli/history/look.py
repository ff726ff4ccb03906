"""`asides history list`, `conversations`, `show`, `search`, `grep`, `stats`: looking at what is kept, changing nothing.

Each command takes the options that `command.py` parsed, writes through a `Page` and returns an exit code; `search`,
`grep` and `show` return 1 where nothing was found, as grep does. With `--json` the same facts are lines of JSON. `grep`
goes through all chosen replies and can be stopped by Ctrl-C between two; what was found until then is written.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from ..._history import History, KeptReply, ModelShare, ReplyFilter, SearchHit, chat_message
from ..._history.errors import UnknownIdError
from ..._history.grep import compile_pattern, matching_lines
from ..._history.records import ThoughtRow, call_record, calls_of, encode_line
from ..._history.results import ReplyOverview
from ...errors import UsageError
from ...parts import Text, Thinking
from ...terminal._layout import INDENT, PROMPT, elapsed, heading
from ...terminal._table import GAP, LEAST, aligned, amount, clean, columns, fitted, shorten
from .. import INTERRUPTED, ODD, OK
from ..display import call_line
from ..options import check_style
from ..streams import PLAIN, Interrupt, complain
from .common import SHORT, Page, first_line, moment, open_store, progress, replies, where

T = TypeVar("T")
NARROWEST = 12
"""Columns of a model's name, at least, where it has to be shortened."""
MODEL = "MODEL"
"""The head of the column that is shortened first."""
ARROW = "→ "
"""Between a question and its answer."""
NO_REPLIES = "no replies are saved yet; `asides --save` and `asides run --save` save them"


def list_replies(options: argparse.Namespace) -> int:
    """The newest replies, one to a line."""
    page = Page()
    chosen = where(options)
    with open_store(options) as history:
        if options.json:
            for reply in history.newest(chosen, limit=options.number):
                page.json(encode_line(reply.to_record()))
        elif listed := history.overview(chosen, limit=options.number):
            _show_list(page, listed)
        elif page.terminal:
            complain(NO_REPLIES if chosen == ReplyFilter() else "no reply matches these options")
    page.flush()
    return OK


def _show_list(page: Page, listed: list[ReplyOverview]) -> None:
    _show_table(
        page,
        ["ID", *(reply.id[:SHORT] for reply in listed)],
        ["TIME", *(moment(reply.time) for reply in listed)],
        [MODEL, *(clean(reply.model) or "-" for reply in listed)],
        ["SOURCE", *(reply.source for reply in listed)],
        ["THOUGHTS", *(str(reply.thoughts) for reply in listed)],
        [f"QUESTION {ARROW}ANSWER", *(question_and_answer(reply.question, reply.text) for reply in listed)],
    )


def _show_table(page: Page, *table: list[str]) -> None:
    if page.width is not None:
        table = _with_models(table, page.width)
    lines = fitted(table, page.width, spare=("SOURCE", "THOUGHTS", MODEL, "TIME", "REPLIES"))
    page.line(lines[0], page.dim)
    for line in lines[1:]:
        page.line(line)


def _with_models(table: tuple[list[str], ...], width: int) -> tuple[list[str], ...]:
    """The columns with models' names that fit: whole where the last column needs no more than is left, else in half of
    what the two may share."""
    *others, last = table
    taken = sum(max(map(columns, column)) + len(GAP) for column in others if column[0] != MODEL)
    shared = width - taken - len(GAP)
    wanted = max(columns(clean(cell[:width])) for cell in last)
    most = max(NARROWEST, shared - min(wanted, max(LEAST, shared // 2)))
    return (*([shorten(cell, most) for cell in column] if column[0] == MODEL else column for column in others), last)


def question_and_answer(question: str, answer: str) -> str:
    """Both in a line; the answer alone where nobody asked, as in the filter."""
    asked, answered = first_line(question), first_line(answer)
    return f"{asked} {ARROW}{answered}".strip() if answered else asked


def list_conversations(options: argparse.Namespace) -> int:
    """The newest conversations, one to a line."""
    page = Page()
    with open_store(options) as history:
        listed = history.conversations(where(options), limit=options.number)
    if options.json:
        for conversation in listed:
            record = msgspec.structs.asdict(conversation)
            del record["place"]
            page.json(encode_line(record))
    elif listed:
        ids = [each.id for each in listed]
        if page.width is not None:
            # Cut so far that they still differ: other programs make them, and may count them up.
            longest = max(map(len, ids))
            length = next(
                (many for many in range(SHORT, longest) if len({id[:many] for id in ids}) == len(ids)), longest
            )
            ids = [id[:length] for id in ids]
        _show_table(
            page,
            ["ID", *map(clean, ids)],
            ["TIME", *(moment(each.last) for each in listed)],
            [MODEL, *(clean(each.model) or "-" for each in listed)],
            ["REPLIES", *(str(each.replies) for each in listed)],
            ["FIRST QUESTION", *(first_line(each.question) for each in listed)],
        )
    elif page.terminal:
        complain("no conversation was found; `asides run --save` and `asides serve --save` save them")
    page.flush()
    return OK


def show(options: argparse.Namespace) -> int:
    """Whole replies, or a conversation."""
    check_style(options)
    if options.conversation and (options.ids or options.only):
        raise UsageError("--conversation shows a whole conversation; it cannot be used with an ID or --only")
    if options.thoughts and not options.conversation:
        raise UsageError("--thoughts needs --conversation; a single reply is shown with its thoughts anyway")
    page = Page(raw=options.raw, wrap=options.wordwrap, style=options.style)
    with open_store(options) as history:
        if options.conversation:
            conversation = _find(history.find_conversation, options.conversation)
            if conversation is None:
                return ODD
            _show_conversation(page, history, conversation, options)
            page.flush()
            return OK
        ids = options.ids or [reply.id for reply in history.listed(limit=1)]
        # All are read before the first is shown, so that an error comes in place of the output, not in its middle.
        found = [reply for id in ids if (reply := _find(history.reply, id.partition(":")[0])) is not None]
        for place, reply in enumerate(found):
            if options.json:
                page.json(encode_line(reply.to_record()))
            elif options.only:
                _show_only(page, reply, options.only)
            else:
                if place:
                    page.line()
                _show_facts(page, reply)
                page.line()
                _show_exchange(page, reply)
        if not ids:
            complain(f"{history.name}: {NO_REPLIES}")
    page.flush()
    return OK if ids and len(found) == len(ids) else ODD


def _find(find: Callable[[str], T], id: str) -> T | None:
    """What has this id; None, with a message, where nothing has."""
    try:
        return find(id)
    except UnknownIdError as error:
        complain(str(error))
        return None


def _show_only(page: Page, kept: KeptReply, part: str) -> None:
    if part == "text":
        page.lines(kept.reply.text)
    elif part == "thinking":
        page.lines("\n\n".join(thought.text for thought in kept.thoughts))
    else:
        for call in kept.reply.tool_calls:
            page.json(encode_line(call_record(call)))


def _show_facts(page: Page, kept: KeptReply) -> None:
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
        "ended": "" if kept.reply.complete else "cut off",
        "beyond": f"{amount(kept.reply.beyond, 'character', 'characters')} after its turn, not read"
        if kept.reply.beyond
        else "",
        "odd": ", ".join(notice.code for notice in kept.reply.notices),
    }
    for name, value in facts.items():
        if value:
            page.line(f"{name:<14}{value}", page.dim)


def _show_exchange(page: Page, kept: KeptReply) -> None:
    """What was asked, and the reply as the filter shows one: its parts in their order, a blank line between them."""
    pieces: list[Callable[[], None]] = [
        partial(page.lines, f"{PROMPT if turn.role == 'user' else f'{turn.role}: '}{turn.text}", style=page.bold)
        for turn in kept.asked
    ]
    thoughts = kept.thoughts
    numbered = iter(enumerate(thoughts, 1))
    for part in kept.reply.parts:
        if isinstance(part, Thinking):
            pieces.append(partial(_show_thought, page, *next(numbered), several=len(thoughts) > 1))
        elif isinstance(part, Text):
            pieces.append(partial(page.lines, part.text.strip("\n")))
        else:
            pieces.append(partial(page.lines, call_line(part)))
    for place, write in enumerate(pieces):
        if place:
            page.line()
        write()


def _show_thought(page: Page, number: int, thought: ThoughtRow, *, several: bool) -> None:
    took = f", {elapsed(thought.seconds)}" if thought.seconds is not None and thought.seconds >= 1 else ""
    page.line(f"{heading(number, several=several)}{took}{'' if thought.complete else ', cut off'}", page.heading)
    page.lines(thought.text.strip("\n"), INDENT, page.thought)


def _show_conversation(page: Page, history: History, id: str, options: argparse.Namespace) -> None:
    if options.thoughts:
        for place, reply in enumerate(list(history.latest(ReplyFilter(conversation=id)))[::-1]):
            if options.json:
                page.json(encode_line(reply.to_record()))
                continue
            if place:
                page.line()
            _show_exchange(page, reply)
        return
    for place, turn in enumerate(history.conversation(id)):
        if options.json:
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
        complain(f"nothing found; `asides history grep -i {shlex.quote(options.words[0])}` searches inside words too")
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
