"""`asides history` on a terminal: a list of what is kept, on the whole screen, and what opens from it.

The list is the `Browser` of the terminal package, what opens from it the `Viewer`: they take the screen in turn, until
the person leaves the list. Here is where items come from: replies, conversations, and what a search has found in
thoughts and, behind them, in answers. Each reads the store page by page, behind the last item that was read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from ..._history import History, KeptReply, ReplyFilter
from ..._history.listing import Cursor
from ..._history.records import local
from ..._history.text_search import Snippet
from ...errors import Error, UsageError
from ...terminal import Screen
from ...terminal._document import Document
from ...terminal._layout import PROMPT
from ...terminal._table import clean, pad, shorten
from .. import INTERRUPTED, OK
from ..display import read_style
from ..options import check_style
from ..streams import STDOUT
from ..view import open_keyboard, view_document, viewer_library
from .common import SHORT, first_line, open_store, where
from .look import question_and_answer

if TYPE_CHECKING:
    from ...terminal._browser import ListItem

AT_ONCE = 100
"""Items that are read at once."""
MOST_FOUND = 200
"""Thoughts that a search lists, and answers behind them."""
PATIENCE = 2.0
"""Seconds that a search through answers, which have no index, may take."""
MODEL, LENGTH = 16, 7
"""Columns of a model's name and of a length. The same on every screen, so that nothing moves while one scrolls."""
BEFORE = 12
"""Characters before what was found, so that it is to be seen in a short line."""


def browse(options: argparse.Namespace) -> int:
    """Show the list, and what is chosen from it, until the person leaves."""
    check_style(options)
    style, screen = read_style(options.style), Screen(STDOUT)
    if not screen.cursor:
        raise UsageError("browse needs a terminal; `asides history list` lists replies")
    viewer = viewer_library()
    from ...terminal._browser import Browser, bindings

    chosen = where(options)
    with open_store(options) as history, open_keyboard() as keyboard:
        listings = (
            StoredListing(
                "replies",
                "no replies are kept here; `model | asides --save` and `asides run --save` keep them",
                ("DATE", pad("MODEL", MODEL), pad("LENGTH", LENGTH, right=True), "QUESTION → ANSWER"),
                partial(_replies, history, chosen),
            ),
            StoredListing(
                "conversations",
                "no conversations are kept here; `asides run --save` and the gateway keep them",
                ("DATE", pad("MODEL", MODEL), "REPLIES", "FIRST QUESTION"),
                partial(_conversations, history, chosen),
            ),
        )
        browser = Browser(listings, partial(FoundListing, history, chosen))
        while True:
            browser.chosen = None
            application = viewer.on_whole_screen(
                browser, bindings(browser), keyboard=keyboard, style=style, colour=screen.colour
            )
            if application.run():
                return INTERRUPTED
            item = browser.chosen
            if item is None:
                return OK
            try:
                document = item.open()
            except Error as error:  # purged since it was listed, or damaged
                browser.message = str(error)
                continue
            if view_document(document, item.name, style, find=item.find, keyboard=keyboard):
                return INTERRUPTED


class StoredListing:
    """What is kept, page by page, the newest first."""

    page = AT_ONCE

    def __init__(
        self,
        name: str,
        empty: str,
        heads: tuple[str, ...],
        read: Callable[[Cursor | None], list[tuple[Cursor, ListItem]]],
    ) -> None:
        """`read`: the items of the page behind a place, each with its own."""
        self.name = name
        self.empty = empty
        self.heads = heads
        self.spare: tuple[str, ...] = heads[2:0:-1]
        self._read = read
        self._last: Cursor | None = None

    def more(self) -> list[ListItem]:
        """The next page."""
        found = self._read(self._last)
        self._last = found[-1][0] if found else self._last
        return [item for _, item in found]


def _replies(history: History, chosen: ReplyFilter, before: Cursor | None) -> list[tuple[Cursor, ListItem]]:
    found = history.overview(chosen, before=before, limit=AT_ONCE)
    lengths = history.thought_lengths([each.place[1] for each in found])
    items = []
    for each in found:
        length = pad(f"{lengths.get(each.place[1], 0):,}", LENGTH, right=True)
        cells = (_date(each.time), _model(each.model), length, question_and_answer(each.question, each.text))
        items.append((each.place, _item(partial(open_reply, history, each.id), each.id[:SHORT], cells)))
    return items


def _conversations(history: History, chosen: ReplyFilter, before: Cursor | None) -> list[tuple[Cursor, ListItem]]:
    items = []
    for each in history.conversations(chosen, before=before, limit=AT_ONCE):
        replies = pad(f"{each.replies:,}", len("REPLIES"), right=True)
        cells = (_date(each.last), _model(each.model), replies, first_line(each.question))
        items.append((each.place, _item(partial(open_conversation, history, each.id), clean(each.id), cells)))
    return items


class FoundListing:
    """Thoughts with the words of a search, the best first, and then answers with them, the newest first."""

    heads: tuple[str, ...] = ("DATE", pad("MODEL", MODEL), "IN", "FOUND")
    page = sys.maxsize
    spare: tuple[str, ...] = heads[2:0:-1]

    def __init__(self, history: History, chosen: ReplyFilter, query: str) -> None:
        self.name = f"found: {clean(query)}"
        self.empty = f"no thought and no answer has {clean(query)}; q leads back"
        self._items: list[ListItem] = []
        for hit in history.search(query, chosen, limit=MOST_FOUND).hits:
            self._add(history, hit.reply, hit.time, hit.model, "thought", hit.snippet)
        answers = history.search_answers(query, chosen, limit=MOST_FOUND, seconds=PATIENCE)
        snippets = {hit.reply: hit.snippet for hit in answers.hits}
        for each in history.overview_of(list(snippets), chosen):
            self._add(history, each.id, each.time, each.model, "answer", snippets[each.id])
        if not answers.whole:
            self.name += " (not all answers were read)"

    def _add(self, history: History, id: str, time: datetime, model: str, place: str, snippet: Snippet) -> None:
        start, end = snippet.marks[0] if snippet.marks else (0, 0)
        around = ("..." if start > BEFORE else "") + snippet.text[max(0, start - BEFORE) :]
        self._items.append(
            _item(
                partial(open_reply, history, id),
                id[:SHORT],
                (_date(time), _model(model), pad(place, len("thought")), around),
                find=snippet.text[start:end],
            )
        )

    def more(self) -> list[ListItem]:
        """All of it at once, and then nothing."""
        items, self._items = self._items, []
        return items


def _item(open: Callable[[], Document], name: str, cells: tuple[str, ...], find: str = "") -> ListItem:
    from ...terminal._browser import ListItem  # here, because it needs a package that not everyone has

    return ListItem(cells, name, open, find)


def open_reply(history: History, id: str) -> Document:
    """A reply, with what was asked."""
    return _document([history.reply(id)])


def open_conversation(history: History, id: str) -> Document:
    """A conversation, each thought in its place."""
    return _document(list(history.latest(ReplyFilter(conversation=id)))[::-1])


def _document(replies: Iterable[KeptReply]) -> Document:
    document = Document()
    for kept in replies:
        for turn in kept.asked:
            document.add(f"{PROMPT if turn.role == 'user' else f'{turn.role}: '}{turn.text}")
        document.add_parts(kept.reply.parts)
    return document


def _date(when: datetime) -> str:
    return f"{local(when):%Y-%m-%d %H:%M}"


def _model(name: str) -> str:
    return pad(shorten(clean(name), MODEL) or "-", MODEL)
