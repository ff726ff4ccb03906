"""The full-screen viewer: keys and clicks in, rows of a document out. Needs prompt_toolkit; reads no input itself.

`Viewer` is the state and what each key does to it; it can be driven without a terminal. `application` binds it to
prompt_toolkit. A screen is always the rows from one `Place` of the document on, so that drawing costs what is seen and
not what was written; the place is settled anew for each drawing, because thoughts open and close and text still comes.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Protocol, TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import HSplit, Layout, UIContent, UIControl, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.mouse_events import MouseEvent, MouseEventType
from prompt_toolkit.output import ColorDepth, create_output
from prompt_toolkit.styles import Attrs
from prompt_toolkit.styles import Style as Sheet

from ..parts import Kind
from ._answer import definitions
from ._document import HEADING, Document, Place
from ._layout import CLOSED, OPEN, describe
from ._style import Style, sheet
from ._viewer_keys import KEYS

WHEEL_ROWS = 3
ENTER = ("enter", "c-j")
"""Pressed while nobody reads keys, as between two screens, Enter arrives as a line feed."""
SEARCH, WRITE = "/", "w "
HINTS = ("q quit", "Enter show/hide", "n p thoughts", "a all", "/ search", "? help")
# Characters that prompt_toolkit counts one by one and terminals join. A screen that holds some is drawn afresh each
# time, because what is drawn over them would land in the wrong column.
JOINING = re.compile("[\u200d\ufe0f\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")


class Viewer:
    """What is on the screen, and what keys do to it."""

    def __init__(self, document: Document, *, name: str, save: Callable[[str], None] | None = None) -> None:
        """`save` writes what is viewed to a file of this name; else it is written as plain text."""
        self.document = document
        self._save = save or self._save_plain
        self.helping = False
        """Whether the help is on the screen."""
        self.reading = False
        """Whether more of the reply is still to come."""
        self.typed: str | None = None
        """The pattern, or the name of a file, while it is being typed."""
        self.typed_for: str = SEARCH
        """What it is typed for: `SEARCH` or `WRITE`."""
        self._name = name
        self._pattern = ""
        self._message = ""
        self._found: Place = (-1, 0, 0)
        self._top: Place = document.start()
        self._selected = 0
        self._width, self._height = 80, 24
        self._drawn: list[Place] = []

    def draw(self, width: int, height: int) -> list[StyleAndTextTuples]:
        """The rows of a screen of this size."""
        self._width, self._height = max(width, 1), max(height, 1)
        if self.helping:
            rows: list[StyleAndTextTuples] = [[("", line)] for line in definitions(KEYS, self._width)]
            return rows[: self._height]
        if not self.document.blocks:
            return [[("", "nothing yet" if self.reading else "nothing in it")]]
        # With every drawing: text has come, thoughts were opened or closed, or the window has another size.
        self._top = self._within(self.document.settle(self._top, self._width))
        self._drawn = self._visible()
        self._select_visible()
        return [self._row(place) for place in self._drawn]

    def status(self) -> StyleAndTextTuples:
        """The last line of the screen."""
        if self.typed is not None:
            return [("", f"{self.typed_for}{self.typed}█")]
        thoughts = len(self.document.thoughts)
        at_end = bool(self._drawn) and self._drawn[-1] >= self.document.end(self._width)
        percent = 100 if at_end else round(100 * self.document.share(self._top))
        facts = [self._name, f"{thoughts} thought{'' if thoughts == 1 else 's'}", f"{percent}%"]
        if self.reading:
            facts.insert(1, "reading")
        left = "  ".join(facts)
        if self._message:
            beside = f"{left}  {self._message}"
            line = beside if len(beside) <= self._width else self._message
            return [("reverse", line[: self._width].ljust(self._width))]
        line = left
        for hint in HINTS:
            if len(line) + 3 + len(hint) <= self._width:
                line += ("   " if line == left else ", ") + hint
        return [("reverse", line[: self._width].ljust(self._width))]

    def scroll(self, rows: int) -> None:
        """Go down so many rows, or up."""
        self._message = ""
        if self.document.blocks:
            self._top = self._within(self.document.walk(self._top, rows, self._width))

    def page(self, pages: float) -> None:
        """Go down so many screens, or up."""
        self.scroll(int(pages * max(self._height - 1, 1)))

    def home(self) -> None:
        """Go to the beginning."""
        self._message = ""
        self._top = self.document.start()

    def end(self) -> None:
        """Go to the end."""
        self._message = ""
        self._top = self._lowest()

    def step(self, direction: int) -> None:
        """Go to the next thought, or the one before."""
        self._message = ""
        thoughts = self.document.thoughts
        if not thoughts:
            self._message = "no thoughts"
            return
        later = [index for index in thoughts if index > self._selected]
        earlier = [index for index in thoughts if index < self._selected]
        if self._selected not in thoughts:
            earlier = earlier or thoughts[:1]
        candidates = later[:1] if direction > 0 else earlier[-1:]
        if not candidates:
            self._message = "no thought after this" if direction > 0 else "no thought before this"
            return
        self._selected = candidates[0]
        if (self._selected, HEADING, 0) not in self._drawn:
            self._top = (self._selected, HEADING, 0)

    def toggle(self, index: int | None = None) -> None:
        """Show or hide a thought: this one or the selected one."""
        self._message = ""
        index = self._selected if index is None else index
        if index in self.document.thoughts:
            self._selected = index
            self.document.toggle(index)
            # Its lines are about to vanish from under the top of the screen.
            if self._top[0] == index and self._top[1] != HEADING:
                self._top = (index, HEADING, 0)

    def toggle_all(self) -> None:
        """Show or hide all."""
        self._message = ""
        self.document.toggle_all()
        if self._selected in self.document.thoughts:
            self._top = (self._selected, HEADING, 0)

    def enter(self) -> None:
        """What was typed is whole."""
        if self.typed_for == SEARCH:
            self.search()
        else:
            self.write()

    def write(self) -> None:
        """Write it to the file that was typed."""
        name, self.typed = (self.typed or "").strip(), None
        if not name:
            return
        try:
            self._save(name)
        except OSError as error:
            self._message = f"{name}: {error.strerror}"
        else:
            self._message = f"written to {name}"

    def _save_plain(self, name: str) -> None:
        with open(name, "x", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{line}\n" for line in self.document.plain(None, whole=True))

    def text_to_copy(self, kind: Kind) -> str:
        """The answer, or the selected thought; the status line says what it is."""
        blocks = self.document.blocks
        if kind == "thinking":
            chosen = [blocks[self._selected]] if self._selected in self.document.thoughts else []
        else:
            chosen = [block for block in blocks if block.kind == kind]
        text = "\n\n".join("\n".join(block.lines) for block in chosen)
        what = "the thought" if kind == "thinking" else "the answer"
        self._message = f"copied {what} ({describe(len(text))})" if text else f"there is no {what.split()[1]} to copy"
        return text

    def search(self) -> None:
        """Look for what was typed, or again for the last pattern."""
        block, line, _ = self._top
        # One line before the top, so that the top line itself can be found.
        after = (block, line - 1, 0)
        if not self.typed and self._found in self._drawn:
            after = self._found
        self._pattern, self.typed = self.typed or self._pattern, None
        self._message = ""
        if not self._pattern or not self.document.blocks:
            return
        found = self.document.find(self._pattern, after)
        if found is None:
            self._message = f"not found: {self._pattern}"
            return
        self.document.blocks[found[0]].shown = True
        self._top = self._found = found
        if found[0] in self.document.thoughts:
            self._selected = found[0]

    def click(self, row: int) -> None:
        """A click on a row: on a heading it shows or hides the thought."""
        if row < len(self._drawn):
            block, line, _ = self._drawn[row]
            if line == HEADING:
                self.toggle(block)

    def _visible(self) -> list[Place]:
        places = [self._top]
        while len(places) < self._height:
            following = self.document.walk(places[-1], 1, self._width)
            if following == places[-1]:
                break
            places.append(following)
        return places

    def _lowest(self) -> Place:
        return self.document.walk(self.document.end(self._width), 1 - self._height, self._width)

    def _within(self, place: Place) -> Place:
        return min(place, self._lowest())

    def _select_visible(self) -> None:
        """What Enter acts on is always to be seen: a heading on the screen, or the thought that fills it."""
        headings = [block for block, line, _ in self._drawn if line == HEADING]
        top = self._drawn[0][0]
        fills_screen = self._selected == top and top in self.document.thoughts
        if self._selected not in headings and not fills_screen:
            self._selected = headings[0] if headings else top

    def _row(self, place: Place) -> StyleAndTextTuples:
        index, line, row = place
        block = self.document.blocks[index]
        if line > block.last:
            return [("", "")]
        text = self.document.rows(index, line, self._width)[row]
        if line == HEADING:
            style = "class:heading reverse" if index == self._selected else "class:heading"
            action = "[hide]" if block.shown else "[show]"
            return [(style, (OPEN if block.shown else CLOSED) + text), ("", " "), ("class:heading", action)]
        style = "class:thought" if block.kind == "thinking" else "class:call" if block.kind == "tool_call" else ""
        return _marked(text, self._pattern, style)


def _marked(text: str, pattern: str, style: str) -> StyleAndTextTuples:
    """The text with the places that were looked for standing out."""
    if not pattern:
        return [(style, text)]
    searched = text.lower() if pattern == pattern.lower() else text
    if len(searched) != len(text):  # a letter whose small form is longer; then the places would not fit
        return [(style, text)]
    pieces: StyleAndTextTuples = []
    at = 0
    while (found := searched.find(pattern, at)) >= 0:
        pieces.append((style, text[at:found]))
        at = found + len(pattern)
        pieces.append((f"{style} reverse", text[found:at]))
    return [*pieces, (style, text[at:])]


class WholeScreen(Protocol):
    """What is drawn on the whole screen: a viewer, or a browser."""

    helping: bool

    def draw(self, width: int, height: int) -> list[StyleAndTextTuples]:
        """The rows of a screen of this size."""

    def status(self) -> StyleAndTextTuples:
        """The last line of the screen."""

    def scroll(self, rows: int) -> None:
        """The wheel was turned."""

    def click(self, row: int) -> None:
        """A row was clicked."""


class ViewerControl(UIControl):
    """The rows as prompt_toolkit wants them."""

    def __init__(self, viewer: WholeScreen) -> None:
        self._viewer = viewer
        self._size = (80, 24)
        self._joining = False
        """Whether the rows that were drawn last hold characters that terminals join."""

    def _draw(self) -> list[StyleAndTextTuples]:
        rows = self._viewer.draw(*self._size)
        self._joining = any(JOINING.search(fragment[1]) for row in rows for fragment in row)
        return rows

    def needs_clearing(self) -> bool:
        """Whether what is on the screen, or will be, cannot be drawn over."""
        # Both count: what is drawn over such characters lands in the wrong column, and so does what replaces them.
        before = self._joining
        self._draw()
        return before or self._joining

    def create_content(self, width: int, height: int) -> UIContent:
        """Just the rows that are to be seen, so that the length of the reply does not matter."""
        self._size = (width, height)
        rows = self._draw()
        return UIContent(get_line=rows.__getitem__, line_count=len(rows), show_cursor=False)

    def mouse_handler(self, mouse_event: MouseEvent) -> None:
        """Clicks and the wheel."""
        if self._viewer.helping:
            return
        if mouse_event.event_type == MouseEventType.MOUSE_UP:
            self._viewer.click(mouse_event.position.y)
        elif mouse_event.event_type == MouseEventType.SCROLL_DOWN:
            self._viewer.scroll(WHEEL_ROWS)
        elif mouse_event.event_type == MouseEventType.SCROLL_UP:
            self._viewer.scroll(-WHEEL_ROWS)

    def is_focusable(self) -> bool:
        """Keys are bound to the whole application."""
        return True


def application(viewer: Viewer, *, keyboard: TextIO, style: Style, colour: bool) -> Application[bool]:
    """The viewer as something to run. Its result is whether Ctrl-C ended it."""
    return on_whole_screen(viewer, bindings(viewer), keyboard=keyboard, style=style, colour=colour)


def on_whole_screen(
    viewer: WholeScreen, keys: KeyBindings, *, keyboard: TextIO, style: Style, colour: bool
) -> Application[bool]:
    """Something to look at, with its keys, as something to run. Its result is whether Ctrl-C ended it."""
    control = ViewerControl(viewer)
    made: Application[bool] = Application(
        layout=Layout(HSplit([Window(control), Window(FormattedTextControl(viewer.status), height=1)])),
        key_bindings=keys,
        style=Sheet.from_dict(sheet(style, dim="dim" in Attrs._fields)),
        color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
        full_screen=True,
        mouse_support=True,
        min_redraw_interval=0.05,
        input=create_input(keyboard),
        output=create_output(),
    )
    made.before_render += lambda app: app.renderer.clear() if control.needs_clearing() else None
    return made


def bindings(viewer: Viewer) -> KeyBindings:
    """Which key does what."""
    keys = KeyBindings()
    typing = Condition(lambda: viewer.typed is not None)
    helping = Condition(lambda: viewer.helping)

    def bind(*names: str, do: Callable[[], object]) -> None:
        for name in names:
            keys.add(name, filter=~typing & ~helping)(lambda event: do() and None)

    bind("down", "j", do=lambda: viewer.scroll(1))
    bind("up", "k", do=lambda: viewer.scroll(-1))
    bind("pagedown", "c-f", do=lambda: viewer.page(1))
    bind("pageup", "c-b", do=lambda: viewer.page(-1))
    bind("c-d", do=lambda: viewer.page(0.5))
    bind("c-u", do=lambda: viewer.page(-0.5))
    bind("home", "g", do=viewer.home)
    bind("end", "G", do=viewer.end)
    bind("tab", "n", do=lambda: viewer.step(1))
    bind("s-tab", "p", do=lambda: viewer.step(-1))
    bind(*ENTER, "space", do=viewer.toggle)
    bind("a", do=viewer.toggle_all)

    def begin(what: str) -> None:
        viewer.typed, viewer.typed_for = "", what

    def copy(kind: Kind, event: KeyPressEvent) -> None:
        # The terminal's own clipboard, wherever the terminal is.
        data = b64encode(viewer.text_to_copy(kind).encode("utf-8", "replace")).decode()
        if data:
            event.app.output.write_raw(f"\x1b]52;c;{data}\x07")
            event.app.output.flush()

    def help(shown: bool) -> None:
        viewer.helping = shown

    bind("/", do=lambda: begin(SEARCH))
    bind("w", do=lambda: begin(WRITE))
    bind("?", do=lambda: help(True))
    keys.add("y", filter=~typing & ~helping)(lambda event: copy("text", event))
    keys.add("Y", filter=~typing & ~helping)(lambda event: copy("thinking", event))
    keys.add("q", filter=~typing & ~helping)(lambda event: event.app.exit(result=False))
    keys.add(Keys.Any, filter=helping)(lambda event: help(False))
    bind_ending(keys, typing)
    bind_typing(keys, viewer, typing)
    return keys


def bind_ending(keys: KeyBindings, typing: Condition) -> None:
    """The keys that leave the screen whatever is on it."""
    keys.add("c-z", filter=~typing)(lambda event: event.app.suspend_to_background())
    for interrupt in ("c-c", "<sigint>"):
        keys.add(interrupt)(lambda event: event.app.exit(result=True))


class Typing(Protocol):
    """Takes a line that is typed in the status line."""

    typed: str | None
    """What was typed so far; None while nothing is."""

    def enter(self) -> None:
        """It is whole."""


def bind_typing(keys: KeyBindings, target: Typing, typing: Condition) -> None:
    """The keys while a line is typed."""

    def type_more(event: KeyPressEvent) -> None:
        if event.data.isprintable():
            target.typed = (target.typed or "") + event.data

    def type_less(event: KeyPressEvent) -> None:
        target.typed = target.typed[:-1] if target.typed else None

    def give_up(event: KeyPressEvent) -> None:
        target.typed = None

    # Eager, or it would wait to see whether an escape sequence follows.
    keys.add("escape", filter=typing, eager=True)(give_up)
    keys.add("backspace", filter=typing)(type_less)
    for enter in ENTER:
        keys.add(enter, filter=typing)(lambda event: target.enter())
    keys.add(Keys.Any, filter=typing)(type_more)
