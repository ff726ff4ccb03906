"""An answer on a terminal: wrapped at words as it comes, nothing of it left out, code blocks as they are.

Blank lines, indents and line ends stay where the model wrote them. A line that is too long is broken at a space; the
rows that it is broken into are indented as it is. In a fenced code block no line is broken, so that what is copied from
there is what was written; the terminal breaks it where it must.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ._wrap import Wrapped

LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)", re.DOTALL)
_LONGEST_FENCE = 200
"""As much of a line as is looked at to see whether it is a fence."""

NARROWEST_MEANING = 26


class CodeBlocks:
    """Follows the fences of code blocks through a text in pieces."""

    def __init__(self) -> None:
        self._mark = ""
        self._line = ""

    @property
    def inside(self) -> bool:
        """Whether the line that is being written stands in a code block, or is the fence that ends one."""
        return bool(self._mark)

    @property
    def at_line_start(self) -> bool:
        """Whether nothing of the line has come."""
        return not self._line

    def feed(self, piece: str) -> None:
        """Take more of a line; at most its last character is a line end."""
        self._line += piece[: _LONGEST_FENCE - len(self._line)]
        if piece.endswith("\n"):
            self._end_line()

    def _end_line(self) -> None:
        line, self._line = self._line.rstrip("\n"), ""
        found = _FENCE.match(line)
        if found is None:
            return
        if not self._mark:
            self._mark = found[1] if "`" not in found[2] else ""
        elif found[1].startswith(self._mark) and not found[2].strip():
            self._mark = ""


class AnswerLines:
    """Lines no wider than the terminal, but for those of code blocks."""

    def __init__(self, width: Callable[[], int], *, cursor: bool, indent: str = "") -> None:
        """`width` is asked again and again, so that a resize is respected. `cursor`: a word that comes in pieces shows
        at once and moves when it outgrows its line; else it waits until it is whole."""
        self._wrapped = Wrapped(width, cursor=cursor, indent=indent, whole=True)
        self._indent = indent
        self._blocks = CodeBlocks()

    def feed(self, text: str) -> str:
        """What to write for the next piece of the answer."""
        written: list[str] = []
        for piece in LINE.findall(text):
            if not self._blocks.inside:
                written.append(self._wrapped.feed(piece))
            elif self._blocks.at_line_start and piece != "\n":
                written.append(self._indent + piece)
            else:
                written.append(piece)
            self._blocks.feed(piece)
        return "".join(written)

    def finish(self) -> str:
        """The word that waited."""
        return self._wrapped.finish()

    def interrupt(self) -> None:
        """Someone else has ended the line; what follows begins a new one."""
        if self._wrapped.line_open:
            self._wrapped.interrupt()


def fit(text: str, width: int, indent: str = "") -> str:
    """A whole text, wrapped at words behind an indent."""
    layout = AnswerLines(lambda: width, cursor=False, indent=indent)
    return layout.feed(text) + layout.finish()


def definitions(pairs: Sequence[tuple[str, str]], width: int, indent: str = "") -> list[str]:
    """A line for each name with its meaning beside it, or below it where lines are too short for both."""
    widest = max(len(name) for name, _ in pairs)
    lines: list[str] = []
    for name, meaning in pairs:
        left = width - len(indent) - widest - 2
        if left >= NARROWEST_MEANING:
            first, *others = fit(meaning, left + 1).split("\n")
            lines += [f"{indent}{name:<{widest}}  {first}", *(f"{indent}{'':<{widest}}  {other}" for other in others)]
        else:
            lines += [*fit(name, width + 1, indent).split("\n"), *fit(meaning, width + 1, f"{indent}    ").split("\n")]
    return lines
