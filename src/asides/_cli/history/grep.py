"""`asides history grep`: lines of kept thoughts that match, written and answered for as grep does."""

from __future__ import annotations

import argparse
import re

from ..._history import Reply
from ..._history.grep import compile_pattern, matching_lines
from .. import INTERRUPTED, ODD, OK
from ..streams import STDOUT, Interrupt, Output
from .common import SHORT, Page, Progress, open_store, replies, where


def grep(options: argparse.Namespace) -> int:
    """Lines of thoughts that match a regular expression."""
    finding = _Finding(options, Page(Output(STDOUT, raw=options.raw)))
    chosen = where(options)
    with open_store(options) as history, Interrupt() as interrupt:
        # Between lines of a result on the same screen there is no place for it.
        progress = None if finding.page.seen else Progress("looked through", history.count(chosen).replies)
        for done, reply in enumerate(history.replies(chosen), 1):
            finding.look(reply)
            if progress is not None:
                progress.show(done, replies(done))
            if interrupt.came or (options.max_count and finding.found >= options.max_count):
                break
        if progress is not None:
            progress.end()
        finding.page.flush()
        if interrupt.came:
            return INTERRUPTED
    return OK if finding.found else ODD


class _Finding:
    """What was found in one reply after another."""

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

    def look(self, reply: Reply) -> None:
        """Write what of this reply is asked for."""
        texts = [(str(number), thought.text) for number, thought in enumerate(reply.thoughts, 1)]
        if self._options.answers:
            texts.append(("answer", reply.text))
        if self._plain:
            # One search through a whole text is far cheaper than one for each of its lines. Plain text that is in no
            # text is in no line; of other patterns that cannot be said, because they may look around.
            texts = [(place, text) for place, text in texts if self._pattern.search(text)]
        if self._options.count or self._options.files_with_matches:
            self._count(reply, texts)
            return
        for place, text in texts:
            self._show(reply, place, text)

    def _count(self, reply: Reply, texts: list[tuple[str, str]]) -> None:
        count = sum(1 for _, text in texts for _ in matching_lines(text, self._pattern))
        if count:
            self.found += 1 if self._options.files_with_matches else count
            self.page.line(reply.id[:SHORT] + ("" if self._options.files_with_matches else f":{count}"))

    def _show(self, reply: Reply, where: str, text: str) -> None:
        first = True
        for line in matching_lines(text, self._pattern, self._before, self._after):
            if (line.gap or (first and self._shown)) and (self._before or self._after):
                self.page.line("--", self.page.dim)
            mark = ":" if line.matches else "-"
            place = f"{reply.id[:SHORT]}{mark}{where}{mark}{line.number}{mark}"
            self.page.raw(f"{self.page.dim[0]}{place}{self.page.dim[1]}{self._highlight(line.text, line.matches)}\n")
            self.found += line.matches
            first, self._shown = False, True

    def _highlight(self, line: str, matches: bool) -> str:
        if not matches or not self.page.bold[0]:
            return self.page.safe(line)
        pieces, place = [], 0
        for found in self._pattern.finditer(line):
            pieces += [self.page.safe(line[place : found.start()]), self.page.bold[0]]
            pieces += [self.page.safe(found[0]), self.page.bold[1]]
            place = found.end()
        return "".join([*pieces, self.page.safe(line[place:])])
