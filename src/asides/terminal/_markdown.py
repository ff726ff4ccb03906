"""An answer in Markdown, drawn for a terminal as it comes: bold, italics, code in a colour, bullets for list items.

What is no Markdown, or never closed, is written as it is.

A line is written as far as it is certain what it is. A mark that may open something waits for its other end; at the end
of its line, or after `LONGEST_SPAN` characters, it is what it looks like. So nothing is lost, and only what stands
between two marks comes late. Code blocks are coloured, their fences left out, and their lines are never broken.
Formulas (`\\(x\\)`, `$x$`, lines between `\\[` and `\\]` or `$$`) are written as they are: a star in one is no mark.

    lines = MarkdownLines(lambda: 80, cursor=True)
    lines.feed("- a **bold** word")            "• a \x1b[0;1mbold\x1b[0m word"

The same interface as `answer.AnswerLines`, which draws the same text plainly.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ._answer import LINE, CodeBlocks
from ._wrap import Wrapped

LONGEST_SPAN = 400
"""A mark whose other end does not come within so many characters is none."""
BOLD, ITALIC, CODE = "1", "3", "33"
BULLET, RULE, QUOTE = "•", "─", "│"

_OPENERS = re.compile(r"[`*_$\\]")
_FORMULA = re.compile(
    r"\\\(.+?\\\)|\\\[.+?\\\]|\$\$[^$]+\$\$(?!\$)|\$(?![\s$])(?:\\.|[^$\\])+(?<!\s)\$(?!\d)"  # `$6 to $7` is money
)
_SPANS = (
    (re.compile(r"(`+)(?!`)(?P<text>.+?)(?<!`)\1(?!`)"), CODE),
    (re.compile(r"\*\*(?=[^\s*])(?P<text>.+?)(?<=\S)\*\*(?!\*)"), BOLD),
    # Two underlines are no mark here: in answers they are mostly names, such as `__init__`.
    (re.compile(r"\*(?=[^\s*])(?P<text>[^*]+?)(?<=\S)\*(?!\*)"), ITALIC),
    (re.compile(r"_(?=[^\s_])(?P<text>[^_]+?)(?<=\S)_(?!\w)"), ITALIC),
)
_OPENS = re.compile(r"`+(?!`)|(?:\*\*?|_)(?=[^\s*_]|$)|\\(?=[(\[]|$)|\$(?=[^\s$]|$)|\$\$(?!\$)")
"""A mark that may open something; at the end of what has come, it may."""
_UNDECIDED = re.compile(r"[ \t]*(?:#{1,6}|[-*+_]{1,3}|>|`{1,2}|~{1,2}|(?:`{3}|~{3}).*|[-*_]{3,}[ \t]*)?")
"""The beginning of a line that may still become another kind of line."""
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+")
_ITEM = re.compile(r"([ \t]*)[-*+]([ \t]+)")
_QUOTED = re.compile(r"[ \t]*> ?")
_FORMULA_CLOSERS = {"\\[": "\\]", "$$": "$$"}
_LONGEST_LINE = 4000
"""As much of a line as is looked at to see whether a formula of several lines ends there."""
_RULE = re.compile(r" {0,3}(?:-{3,}|\*{3,}|_{3,})[ \t]*")


class FormulaLines:
    """Follows formulas of several lines through a text in pieces. A blank line ends one, as it does in TeX."""

    def __init__(self) -> None:
        self._closer = ""
        self._line = ""

    @property
    def inside(self) -> bool:
        """Whether the line that is being written stands in a formula, or is the one that ends it."""
        return bool(self._closer)

    def feed(self, piece: str) -> None:
        """Take more of a line; at most its last character is a line end."""
        self._line += piece[: _LONGEST_LINE - len(self._line)]
        if not piece.endswith("\n"):
            return
        line, self._line = self._line.strip(), ""
        if not self._closer:
            closer = _FORMULA_CLOSERS.get(line[:2], "")
            self._closer = closer if closer not in line[2:] else ""
        elif not line or self._closer in line:
            self._closer = ""


class MarkdownLines:
    """Lines no wider than the terminal, but for those of code blocks, with the looks that Markdown gives them."""

    def __init__(self, width: Callable[[], int], *, cursor: bool) -> None:
        """`width` and `cursor` are those of `AnswerLines`."""
        self._wrapped = Wrapped(width, cursor=cursor, indent="", whole=True)
        self._blocks = CodeBlocks()
        self._formulas = FormulaLines()
        self._width = width
        self._held = ""  # what is not certain yet
        self._begun = False  # whether it is certain what kind of line this is
        self._look = ""  # of the line
        self._before = ""  # the character before what is held

    def feed(self, text: str) -> str:
        """What to write for the next piece of the answer."""
        return "".join(self._add(piece) for piece in LINE.findall(text))

    def finish(self) -> str:
        """What was held is what it looks like."""
        return self._end_line("") + self._wrapped.finish()

    def interrupt(self) -> None:
        """Someone else has ended the line; what follows begins a new one."""
        if self._wrapped.line_open:
            self._wrapped.interrupt()

    def _add(self, piece: str) -> str:
        inside, formula = self._blocks.inside, self._formulas.inside
        self._blocks.feed(piece)
        if not inside:
            self._formulas.feed(piece)
            if formula:
                return self._wrapped.feed(piece)
        self._held += piece.rstrip("\n")
        ends = piece.endswith("\n")
        if inside:
            return self._add_code(ends=ends)
        if ends and self._blocks.inside:
            self._held, self._begun = "", False  # a fence
            return ""
        if ends:
            return self._end_line("\n")
        if not self._begun and (_UNDECIDED.fullmatch(self._held) or not self._held):
            return ""
        return self._begin_line() + self._spans(final=False)

    def _add_code(self, *, ends: bool) -> str:
        """A line of a code block, whole: it may be the fence that ends the block."""
        if not ends:
            return ""
        line, self._held = self._held, ""
        if not self._blocks.inside:
            return ""
        return (_coded(line, CODE) if line else "") + "\n"

    def _begin_line(self) -> str:
        """Write the mark of the line, if it has one."""
        if self._begun:
            return ""
        self._begun, self._before = True, ""
        if found := _HEADING.match(self._held):
            self._held, self._look = self._held[found.end() :], BOLD
        elif found := _ITEM.match(self._held):
            self._held = self._held[found.end() :]
            return self._wrapped.feed(f"{found[1]}{BULLET}{found[2]}")
        elif found := _QUOTED.match(self._held):
            self._held = self._held[found.end() :]
            return self._wrapped.feed(f"{QUOTE} ")
        return ""

    def _end_line(self, end: str) -> str:
        if not self._held and not end:
            return ""
        if not self._begun and end and _RULE.fullmatch(self._held):
            self._held = RULE * min(max(self._width() - 1, 1), 40)
        if self._blocks.inside:  # someone else writes, or the output ends, in a code block
            line, self._held = self._held, ""
            return _coded(line, CODE) if line else ""
        written = self._begin_line() + self._spans(final=True) + (self._wrapped.feed(end) if end else "")
        if end:
            self._begun, self._look = False, ""
        return written

    def _spans(self, *, final: bool) -> str:
        """Write what is certain of the line."""
        written: list[str] = []
        while self._held:
            opener = _OPENERS.search(self._held)
            if opener is None:
                written.append(self._write(self._held, self._look))
                self._held = ""
                break
            if opener.start():
                written.append(self._write(self._held[: opener.start()], self._look))
                self._held = self._held[opener.start() :]
            span = self._span(final=final)
            if span is None:
                break
            written.append(span)
        return "".join(written)

    def _span(self, *, final: bool) -> str | None:
        """What begins with a mark; None while it is not certain what it is."""
        mark = self._held[0]
        literal = (mark == "_" and self._before.isalnum()) or (mark == "$" and self._before == "\\")
        if not literal and _OPENS.match(self._held):
            if formula := _FORMULA.match(self._held):
                if formula.end() == len(self._held) and not final:
                    return None
                self._held = self._held[formula.end() :]
                return self._write(formula[0], self._look)
            for pattern, look in _SPANS:
                found = pattern.match(self._held)
                if found is None:
                    continue
                if found.end() == len(self._held) and not final:
                    return None  # what follows may belong to its end
                self._held = self._held[found.end() :]
                return self._write_span(found["text"], look)
            if not final and len(self._held) < LONGEST_SPAN:
                return None
        run = len(self._held) - len(self._held.lstrip(mark))
        if run == len(self._held) and not final:
            return None
        written, self._held = self._held[:run], self._held[run:]
        return self._write(written, self._look)

    def _write_span(self, text: str, look: str) -> str:
        looks = ";".join(each for each in (self._look, look) if each)
        if look == CODE:
            return self._write(text, looks)
        inner = _SPANS[0][0]  # code inside bold or emphasis; deeper nesting is rare and shown as it is
        written, at = [], 0
        for found in inner.finditer(text):
            written.append(self._write(text[at : found.start()], looks))
            written.append(self._write(found["text"], f"{looks};{CODE}"))
            at = found.end()
        return "".join([*written, self._write(text[at:], looks)])

    def _write(self, text: str, look: str) -> str:
        if not text:
            return ""
        self._before = text[-1]
        return self._wrapped.feed(text, f"\x1b[0;{look}m" if look else "")


def _coded(text: str, look: str) -> str:
    return f"\x1b[0;{look}m{text}\x1b[0m"
