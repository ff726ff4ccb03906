"""How SelfAI shows thoughts on a terminal: `💭 [Thinking 1]`, the text indented by two, a blank line after each."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from ...errors import UsageError
from ...terminal._sanitize import sanitize
from ...terminal._style import codes

BUBBLE = "\N{THOUGHT BALLOON}"
INDENT = "  "


def show_think_tags(think_contents: Sequence[str], *, style: str = "blue", file: TextIO | None = None) -> None:
    """Print thoughts, numbered. Colour only on a terminal and without NO_COLOR."""
    TerminalUI(style=style, file=file).show_think_tags(think_contents)


class TerminalUI:
    """Shows thoughts to a person."""

    def __init__(self, style: str = "blue", *, file: TextIO | None = None, colour: bool | None = None) -> None:
        codes(style)  # an unknown colour is an error here, not at the first thought
        self.style = style
        """The colour of headings; `blue`, `cyan`, `grey` or any other that the terminal page names."""
        self._file = file
        self._colour = colour

    @property
    def file(self) -> TextIO:
        """Where it prints: standard output, unless another file was given."""
        return self._file if self._file is not None else sys.stdout

    def colorize(self, text: str, color: str) -> str:
        """The text in a colour, where colour is wanted."""
        before, after = codes(color) if self._wants_colour() else ("", "")
        return f"{before}{text}{after}"

    def show_think_tags(self, think_contents: Sequence[str]) -> None:
        """Print thoughts, numbered from 1."""
        if isinstance(think_contents, str):
            raise UsageError("show_think_tags takes a list of thoughts, not one string")
        lines: list[str] = []
        for number, thought in enumerate(think_contents, 1):
            lines.append(self.colorize(f"{BUBBLE} [Thinking {number}]", self.style))
            for line in sanitize(thought).strip("\n").split("\n"):
                lines.append(self.colorize(INDENT + line, "cyan") if line.strip() else "")
            lines.append("")
        if lines:
            encoding = getattr(self.file, "encoding", None) or "utf-8"
            # A terminal that cannot write the balloon shows a question mark; thoughts are no reason to fail.
            self.file.write(("\n".join(lines) + "\n").encode(encoding, "replace").decode(encoding))
            self.file.flush()

    def _wants_colour(self) -> bool:
        if self._colour is not None:
            return self._colour
        return self.file.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
