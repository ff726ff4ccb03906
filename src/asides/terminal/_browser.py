"""A list on the whole screen: one item to a line, one of them selected, more of them read when they are needed.

`Browser` is the state and what each key does to it, and can be driven without a terminal; `bindings` are its keys for
prompt_toolkit. Where items come from is a `Listing`, which reads them page by page: a list of a million items opens as
fast as one of ten. A search makes another listing, which is left again for the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import Keys

from ..errors import Error
from ._answer import definitions
from ._document import Document
from ._table import fitted, pad
from ._viewer import ENTER, bind_ending, bind_typing
from ._viewer_keys import BROWSER_KEYS

HINTS = ("Enter open", "/ search", "c conversations", "? help")


class ListItem(NamedTuple):
    """A line of a list."""

    cells: tuple[str, ...]
    name: str
    open: Callable[[], Document]
    """What it shows when it is opened."""
    find: str
    """What to look for in it once it is open."""


class Listing(Protocol):
    """Items in their order, read page by page."""

    name: str
    """What they are, for the status line."""
    empty: str
    """What to write where there are none."""
    heads: tuple[str, ...]
    spare: tuple[str, ...]
    """The heads of columns that narrow screens do without, the first one first."""

    page: int
    """Items that are read at once."""

    def more(self) -> list[ListItem]:
        """The next items. Fewer than a page are the last."""


class LoadedList:
    """A listing as far as it was read, and where in it the person is."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.items: list[ListItem] = []
        self.ended: bool = False
        """Whether no more will come."""
        self.selected: int = 0
        self.top: int = 0

    def load(self, count: int) -> None:
        """Read until there are so many items, or no more."""
        while len(self.items) < count and not self.ended:
            found = self.listing.more()
            self.items += found
            self.ended = len(found) < self.listing.page


class Browser:
    """What is on the screen, and what keys do to it."""

    def __init__(self, listings: Sequence[Listing], search: Callable[[str], Listing]) -> None:
        """`listings`: what a key goes through, the first of them first. `search` makes a listing of what was found."""
        self.typed: str | None = None
        """The search while it is being typed."""
        self.helping = False
        """Whether the help is on the screen."""
        self.chosen: ListItem | None = None
        """The item that is to be opened."""
        self._lists = [LoadedList(listing) for listing in listings]
        self._shown = self._lists[0]
        self._kind = 0
        self._search = search
        self.message: str = ""
        """What the status line says until the next key."""
        self._width, self._height = 80, 24

    @property
    def listing(self) -> Listing:
        """What the items on the screen are of."""
        return self._shown.listing

    def _load(self, count: int) -> None:
        try:
            self._shown.load(count)
        except Error as error:  # out of here it would take the screen down with it
            self.message, self._shown.ended = str(error), True

    def draw(self, width: int, height: int) -> list[StyleAndTextTuples]:
        """The rows of a screen of this size: the heads, and the items around the selected one."""
        self._width, self._height = max(width, 1), max(height, 2)
        if self.helping:
            rows: list[StyleAndTextTuples] = [[("", line)] for line in definitions(BROWSER_KEYS, self._width)]
            return rows[: self._height]
        shown, visible = self._shown, self._height - 1
        self._load(shown.selected + visible + 1)
        shown.top = min(max(shown.top, shown.selected - visible + 1, 0), shown.selected)
        items = shown.items[shown.top : shown.top + visible]
        if not items:
            return [[("", self.listing.empty)]]
        table = list(zip(self.listing.heads, *(item.cells for item in items), strict=True))
        head, *lines = (pad(line, self._width) for line in fitted(table, self._width, self.listing.spare))
        selected = shown.selected - shown.top
        rows = [[("class:heading", head)]]
        rows += [[("reverse" if place == selected else "", line)] for place, line in enumerate(lines)]
        return rows

    def status(self) -> StyleAndTextTuples:
        """The last line of the screen."""
        if self.typed is not None:
            return [("", f"/{self.typed}█")]
        line = self.message or f"{self.listing.name}  {self._where()}"
        if not self.message:
            back = "q quit" if self._shown in self._lists else "q back"
            for place, hint in enumerate((back, *HINTS)):
                if len(line) + 3 + len(hint) <= self._width:
                    line += (", " if place else "   ") + hint
        return [("reverse", line[: self._width].ljust(self._width))]

    def _where(self) -> str:
        shown = self._shown
        if not shown.items:
            return "0"
        return f"{shown.selected + 1:,}/{len(shown.items):,}{'' if shown.ended else '+'}"

    def scroll(self, rows: int) -> None:
        """Select the item so many rows further down, or up."""
        self.message = ""
        shown = self._shown
        self._load(shown.selected + rows + 1)
        shown.selected = max(min(shown.selected + rows, len(shown.items) - 1), 0)

    def page(self, pages: int) -> None:
        """Go down so many screens, or up."""
        self.scroll(pages * max(self._height - 2, 1))

    def home(self) -> None:
        """Go to the first item."""
        self.scroll(-self._shown.selected)

    def end(self) -> None:
        """Go to the last item of those that were read, and of the next page."""
        # Not to the last of all: there may be a million.
        self.message = ""
        self._load(len(self._shown.items) + 1)
        self._shown.selected = max(len(self._shown.items) - 1, 0)

    def switch(self) -> None:
        """Show the next kind of list."""
        self.message = ""
        self._kind = (self._kind + 1) % len(self._lists)
        self._shown = self._lists[self._kind]

    def enter(self) -> None:
        """What was typed is whole: look for it."""
        words, self.typed = (self.typed or "").strip(), None
        if not words:
            return
        try:
            self.message, self._shown = "", LoadedList(self._search(words))
        except Error as error:
            self.message = str(error)

    def leave(self) -> bool:
        """From what was found, back to the list; False where that is shown already."""
        found, self.message, self._shown = self._shown, "", self._lists[self._kind]
        return found is not self._shown

    def open(self, place: int | None = None) -> None:
        """Choose an item, the selected one or another, and leave the screen to whoever shows it."""
        shown = self._shown
        place = shown.selected if place is None else place
        if place < len(shown.items):
            shown.selected = place
            self.chosen = shown.items[place]
            get_app().exit(result=False)

    def click(self, row: int) -> None:
        """A click on an item opens it."""
        if row:
            self.open(self._shown.top + row - 1)


def bindings(browser: Browser) -> KeyBindings:
    """Which key does what."""
    keys = KeyBindings()
    typing = Condition(lambda: browser.typed is not None)
    helping = Condition(lambda: browser.helping)
    looking = ~typing & ~helping

    def bind(*names: str, do: Callable[[], object]) -> None:
        for name in names:
            keys.add(name, filter=looking, eager=name == "escape")(lambda event: do() and None)

    def leave() -> None:
        if not browser.leave():
            browser.chosen = None
            get_app().exit(result=False)

    def help(shown: bool) -> None:
        browser.helping = shown

    def begin() -> None:
        browser.typed = ""

    bind("down", "j", do=lambda: browser.scroll(1))
    bind("up", "k", do=lambda: browser.scroll(-1))
    bind("pagedown", "space", "c-f", do=lambda: browser.page(1))
    bind("pageup", "c-b", do=lambda: browser.page(-1))
    bind("home", "g", do=browser.home)
    bind("end", "G", do=browser.end)
    bind(*ENTER, "right", do=browser.open)
    bind("c", "tab", do=browser.switch)
    bind("/", do=begin)
    bind("?", do=lambda: help(True))
    bind("q", "escape", do=leave)
    keys.add(Keys.Any, filter=helping)(lambda event: help(False))
    bind_ending(keys, typing)
    bind_typing(keys, browser, typing)
    return keys
