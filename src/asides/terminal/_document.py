"""A reply as rows: shown, hidden, searched, walked through. Wraps only what is looked at; draws nothing.

A document is blocks (parts), a block is lines, a line is one or more rows when it is wrapped to a width. A `Place` is
the three numbers of a row, so that places compare as they stand; the line -1 of a thought is its heading, and the line
behind a block's last is the blank row after it. Walking goes from place to place and wraps on the way, so that a reply
of any length opens at once and a change of width costs a screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..events import Event, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ..parts import Kind, Part, Thinking, ToolCall
from ._layout import INDENT, describe, heading
from ._sanitize import Sanitizer
from ._wrap import Wrapped

LONGEST_LINE = 4000
"""Longer lines are cut, so that wrapping one never takes long."""
REMEMBERED = 4000
"""How many wrapped lines are kept."""
HEADING = -1
"""The line above a thought's own."""

Place = tuple[int, int, int]
"""A row on the screen: the block, the line in it, the row of the wrapped line. Places compare as they stand."""


class Block:
    """A part of the reply."""

    def __init__(self, kind: Kind, *, longest: int, number: int = 0, shown: bool = True) -> None:
        self.kind = kind
        self.number = number
        """Which thought it is, counted from one."""
        self.shown = shown
        """Whether its lines are to be seen; only thoughts are ever hidden."""
        self.complete: bool = True
        self.length: int = 0
        """Characters, as the model wrote them."""
        self.lines: list[str] = [""]
        self._longest = longest
        self._sanitizer = Sanitizer()

    def grow(self, text: str) -> None:
        """More of it has come."""
        self.length += len(text)
        self._append(self._sanitizer.feed(text))

    def trim(self) -> None:
        """Whitespace at the start of a text is none of a thought."""
        while len(self.lines) > 1 and not self.lines[0].strip():
            self.length -= len(self.lines.pop(0)) + 1
        self.length -= len(self.lines[0]) - len(self.lines[0].lstrip())
        self.lines[0] = self.lines[0].lstrip()

    def end(self, event: PartEnd) -> None:
        """No more will come."""
        self._append(self._sanitizer.finish())
        self.complete = event.complete
        if event.error:
            self.lines[-1] = f"{self.lines[-1].rstrip()} [{event.error}: not to be run]"

    @property
    def first(self) -> int:
        """Its first line."""
        return HEADING if self.kind == "thinking" else 0

    @property
    def last(self) -> int:
        """Its last line that is to be seen; the blank one after it is no line of its own."""
        return len(self.lines) - 1 if self.shown else self.first

    def _append(self, text: str) -> None:
        first, *others = text.split("\n")
        # The line that was last is cut again with what has been added to it.
        for line in (self.lines.pop() + first, *others):
            self.lines.extend(_cut(line, self._longest))


def _cut(line: str, longest: int) -> Iterator[str]:
    while len(line) > longest:
        at = line.rfind(" ", longest // 2, longest) + 1 or longest
        yield line[:at]
        line = line[at:]
    yield line


class Document:
    """The parts of a reply, in order. Grows with the events of the engine."""

    def __init__(self, *, shown: bool = False, longest: int = LONGEST_LINE) -> None:
        """`shown`: whether thoughts are to be seen at first. `longest`: where lines are cut."""
        self.blocks: list[Block] = []
        self.thoughts: list[int] = []
        """Which blocks are thoughts."""
        self._shown = shown
        self._longest = longest
        self._wrapped: dict[tuple[int, int], list[str]] = {}
        self._width = 0

    def feed(self, events: Iterable[Event]) -> None:
        """The reply goes on."""
        for event in events:
            if isinstance(event, ThinkingDelta | TextDelta | ToolCallDelta):
                block = self.blocks[-1]
                # The last line is the only one that can change; all others stay wrapped.
                self._wrapped.pop((len(self.blocks) - 1, len(block.lines) - 1), None)
                block.grow(event.text)
            elif isinstance(event, PartStart):
                self._start(event)
            elif isinstance(event, PartEnd):
                self.blocks[-1].end(event)
            elif isinstance(event, Retyped):
                self._retype(event.kind)

    def _retype(self, kind: Kind) -> None:
        """The last block, which is open, is of the other kind."""
        block = self.blocks[-1]
        block.kind = kind
        self._wrapped.clear()
        if kind == "thinking":
            self.thoughts.append(len(self.blocks) - 1)
            block.number, block.shown = len(self.thoughts), self._shown
            block.trim()
        else:
            self.thoughts.pop()
            block.number, block.shown = 0, True

    def _start(self, event: PartStart) -> None:
        if event.kind == "thinking":
            self.thoughts.append(len(self.blocks))
            self.blocks.append(Block("thinking", longest=self._longest, number=len(self.thoughts), shown=self._shown))
        else:
            self.blocks.append(Block(event.kind, longest=self._longest))
            if event.kind == "tool_call":
                self.blocks[-1].grow(f"call {event.name or '(no name)'} ")

    def add(self, text: str) -> None:
        """A text that is no part of a reply, such as a question, stands behind all that has come."""
        self.feed([PartStart(0, "text"), TextDelta(0, text), PartEnd(0)])

    def add_parts(self, parts: Iterable[Part]) -> None:
        """A whole reply stands behind all that has come."""
        for part in parts:
            if isinstance(part, ToolCall):
                self.feed([PartStart(0, "tool_call", name=part.name), ToolCallDelta(0, part.arguments)])
                self.feed([PartEnd(0, complete=part.complete, error=part.error)])
            elif isinstance(part, Thinking):
                self.feed([PartStart(0, "thinking"), ThinkingDelta(0, part.text), PartEnd(0, complete=part.complete)])
            else:
                self.add(part.text)

    def plain(self, width: int | None, *, whole: bool = False) -> Iterator[str]:
        """All that is shown, or the `whole`, as lines of text; wrapped where there is a width."""
        for index, block in enumerate(self.blocks):
            if index:
                yield ""
            for line in range(block.first, len(block.lines) if whole else block.last + 1):
                if width is not None or line == HEADING:
                    yield from self.rows(index, line, width or 0)
                else:
                    indent = INDENT if block.kind == "thinking" and block.lines[line] else ""
                    yield indent + block.lines[line]

    def title(self, index: int) -> str:
        """The heading of a thought, with its length."""
        block = self.blocks[index]
        length = describe(block.length) + ("" if block.complete else ", cut off")
        return f"{heading(block.number, several=len(self.thoughts) > 1)} ({length})"

    def toggle(self, index: int) -> None:
        """Show a thought, or hide it."""
        self.blocks[index].shown = not self.blocks[index].shown

    def toggle_all(self) -> None:
        """Show all thoughts, or hide them if all are to be seen."""
        self._shown = not all(self.blocks[index].shown for index in self.thoughts)
        for index in self.thoughts:
            self.blocks[index].shown = self._shown

    def rows(self, block: int, line: int, width: int) -> list[str]:
        """One line as the rows that it takes; a heading is one row."""
        # All at once, because a screen needs few lines: what is lost is wrapped again with the next drawing.
        if width != self._width or len(self._wrapped) > REMEMBERED:
            self._wrapped.clear()
            self._width = width
        if line == HEADING:
            return [self.title(block)]
        found = self._wrapped.get((block, line))
        if found is None:
            found = self._wrap(self.blocks[block], line, width)
            self._wrapped[block, line] = found
        return found

    def _wrap(self, block: Block, line: int, width: int) -> list[str]:
        text = block.lines[line]
        indent = INDENT if block.kind == "thinking" else ""
        # The last column stays free while text is wrapped as it comes; here it need not.
        layout = Wrapped(lambda: width + 1, cursor=False, indent=indent)
        return (layout.feed(text) + layout.finish()).split("\n")

    def walk(self, place: Place, rows: int, width: int) -> Place:
        """The place so many rows further down, or up if negative; the blank row behind a block is its last line + 1."""
        block, line, row = place
        if not self.blocks:
            return place
        while rows > 0:
            left = self._height(block, line, width) - 1 - row
            if rows <= left:
                return block, line, row + rows
            following = self._after(block, line)
            if following is None:
                return block, line, row + left
            rows -= left + 1
            block, line, row = *following, 0
        while rows < 0:
            if -rows <= row:
                return block, line, row + rows
            before = self._before(block, line)
            if before is None:
                return block, line, 0
            rows += row + 1
            block, line = before
            row = self._height(block, line, width) - 1
        return block, line, row

    def start(self) -> Place:
        """The first row."""
        return 0, self.blocks[0].first if self.blocks else HEADING, 0

    def end(self, width: int) -> Place:
        """The last row."""
        if not self.blocks:
            return 0, 0, 0
        block = len(self.blocks) - 1
        line = self.blocks[block].last
        return block, line, self._height(block, line, width) - 1

    def settle(self, place: Place, width: int) -> Place:
        """The nearest place that is to be seen, after something came, was hidden, or the width changed."""
        block, line, row = place
        if not self.blocks:
            return self.start()
        line = max(line, self.blocks[block].first)
        last = self.blocks[block].last
        if line > last + 1 or (line == last + 1 and block == len(self.blocks) - 1):
            line, row = last, 0
        return block, line, min(row, self._height(block, line, width) - 1)

    def find(self, pattern: str, place: Place) -> Place | None:
        """The next line after this place that holds the pattern, also in hidden thoughts; from the start again after
        the end. Small letters stand for both."""
        fold = pattern == pattern.lower()
        count = len(self.blocks)
        # One more than there are: the first block is searched behind the place, and in the end once more from its
        # start.
        for step in range(count + 1):
            block = (place[0] + step) % count
            lines = self.blocks[block].lines
            first = place[1] + 1 if step == 0 else 0
            for line in range(max(first, 0), len(lines)):
                if pattern in (lines[line].lower() if fold else lines[line]):
                    return block, line, 0
        return None

    def share(self, place: Place) -> float:
        """How much stands above this place, from 0 to 1."""
        # In lines, not in rows: rows would mean to wrap all of the reply for a percentage.
        heights = [block.last - block.first + 2 for block in self.blocks]
        if not heights:
            return 1.0
        return (sum(heights[: place[0]]) + place[1] - self.blocks[place[0]].first) / sum(heights)

    def _height(self, block: int, line: int, width: int) -> int:
        return 1 if line > self.blocks[block].last else len(self.rows(block, line, width))

    def _after(self, block: int, line: int) -> tuple[int, int] | None:
        last = self.blocks[block].last
        if line < last:
            return block, line + 1
        if block + 1 == len(self.blocks):
            return None
        return (block, last + 1) if line == last else (block + 1, self.blocks[block + 1].first)

    def _before(self, block: int, line: int) -> tuple[int, int] | None:
        if line > self.blocks[block].first:
            return block, line - 1
        return (block - 1, self.blocks[block - 1].last + 1) if block else None
