"""Text wrapped to a terminal, word by word, while it comes; and how many columns characters take.

A word that is not whole is shown at once and taken back when it outgrows its line, so that a reader never waits for
the next space. For that, `Wrapped` keeps what is settled in a line (`_column`), the spaces behind it, and the pieces of
the word with how many of them are on the screen. `Cells` cuts words into pieces that are never torn apart (an emoji
with its joiners, a letter with its accents) and tells how many columns each adds, whatever chunks they come in.

    layout = Wrapped(lambda: 20, cursor=False)
    layout.feed("a thought that is longer ")     "  a thought that is\\n  longer"

Knows no colours and no events.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from ._layout import INDENT

NARROW = 12
"""Below this many columns nothing is indented."""
TAB = 8
_TOKEN = re.compile(r"\n+|[ \t]+|[^ \t\n]+")
# What must not begin a line, and what must not end one, in scripts that break between any two characters.
_NO_START = frozenset(".,:;?!)]}\"'%、。，．・：；？！）］｝〉》」』】〕…‥ーぁぃぅぇぉっゃゅょァィゥェォッャュョ")
_NO_END = frozenset("([{（［｛〈《「『【〔")
# Letters of one column each that never join with what stands before them; for these nothing is looked up.
_LETTERS = "!-~\u00a1-\u00ac\u00ae-\u02ff\u0391-\u0482\u048a-\u0556\u2010-\u2027\u2030-\u205e\u2200-\u22ff\u2500-\u257f"
SIMPLE = re.compile(f"[{_LETTERS}]+")
_REST = re.compile(f"[^{_LETTERS}]+")
_LIST_MARK = re.compile(r"[-*+•]|\d{1,4}[.)]")
JOINER = "\u200d"
PLAIN_LOOK = "\x1b[0m"
LONGEST_CLUSTER = 32
"""Marks beyond this are taken as nothing wide, so that a heap of them costs no more than its length."""


class Wrapped:
    """Lines no wider than the terminal. A word that outgrows its line is taken back and set on the next one.

    Where the cursor cannot be moved a word waits until it is whole. Nothing waits longer than a line is wide.
    """

    def __init__(self, width: Callable[[], int], *, cursor: bool, indent: str = INDENT, whole: bool = False) -> None:
        """`whole`: every line end is written, and at once, also those at the beginning and at the end; and the lines
        that a line is broken into are indented as it is, behind the mark of a list item too."""
        self._full_indent = indent
        self._whole = whole
        self._hang = 0  # columns before the rows that a line is broken into
        self._line_fresh = whole  # no word of the line has been set
        self._resumes = False  # the line goes on behind what others wrote: spaces there are no indent
        self._cells = Cells()
        self._ask_width = width
        self._cursor = cursor
        self._out: list[str] = []
        self.line_open: bool = False
        """Whether something was set in the line that the cursor stands in."""
        self._breaks = 0  # line ends not yet written
        self._column = 0  # behind the settled words of the line, indent not counted
        self._spaces = 0  # between these and the word
        self._word: list[str] = []  # the word so far
        self._word_width = 0
        self._shown = 0  # how many of its pieces are on the screen
        self._shown_width = 0
        self._last = ""
        self._wide = False  # whether the last piece was a wide one, behind which a line may end
        self._looks = False  # whether there are pieces that are looks
        self._look = ""  # what the word begins with, where there are
        self._measure()

    def feed(self, text: str, look: str = "") -> str:
        """What to write for the next piece; `look` is the escape code that says all of how it looks."""
        self._respect_resize()
        if look:
            # A piece of the word that takes no column: a word that moves to the next line takes it along.
            self._word.append(look)
            self._looks = True
        for token in _TOKEN.findall(text):
            first = token[0]
            if first == "\n":
                self._end_word()
                self._spaces = 0
                if self._whole:
                    self._end_lines(len(token))
                    continue
                # Only counted: line ends are written with the next word, so that blank lines at the end of a thought
                # never show.
                self._breaks += len(token) if self.line_open else 0
            elif first in " \t":
                self._end_word()
                self._add_spaces(token)
            # Nearly all words: no widths are looked up.
            elif SIMPLE.fullmatch(token):
                self._cells.follow(token[-1])
                self._add_letters(token)
            else:
                self._add_pieces(token)
        if look:
            self._word.append(PLAIN_LOOK)
        if self._cursor:
            self._show()
        return self._take()

    def finish(self) -> str:
        """The word that waited."""
        self._settle()
        return self._take()

    def interrupt(self) -> None:
        """Go on with a new line."""
        self._resumes = self._whole
        self._freeze()
        self.line_open = False
        self._breaks = self._column = self._spaces = 0

    def _end_lines(self, count: int) -> None:
        """The line ends; what follows may have another indent."""
        self._out.append("\n" * (self._breaks + count))
        self.line_open, self._line_fresh, self._resumes = False, True, False
        self._breaks = self._column = self._hang = 0

    def _measure(self) -> None:
        self._width = self._ask_width()
        self._indent = self._full_indent if self._width >= NARROW else ""
        # The last column stays free: there terminals differ in where the cursor stands.
        self._usable = max(self._width - 1 - len(self._indent), 1)

    def _respect_resize(self) -> None:
        if self._ask_width() == self._width:
            return
        # What is on the screen may have been laid out anew by the terminal, so it is not taken back any more.
        self._freeze()
        self._measure()

    def _freeze(self) -> None:
        if self._shown:
            self._column += self._spaces + self._shown_width
            self._spaces = 0
            self._note_look(self._word[: self._shown])
            del self._word[: self._shown]
            self._word_width -= self._shown_width
            self._shown = self._shown_width = 0

    def _add_spaces(self, blank: str) -> None:
        if self._resumes and not self.line_open:
            return
        for character in blank:
            at = 0 if self._breaks else self._column
            self._spaces += 1 if character == " " else TAB - (at + self._spaces) % TAB

    def _add_letters(self, letters: str) -> None:
        """Letters of one column each, which belong to the word before them unless a wide character ended it."""
        # A line may end behind a wide character, so what was a word up to here is put in its place.
        if self._wide and letters[0] not in _NO_START and self._last not in _NO_END:
            self._settle()
        self._wide = False
        self._last = letters[-1]
        at = 0
        while len(letters) - at > self._usable - self._word_width:
            room = max(self._usable - self._word_width, 0)
            if room:
                self._word.append(letters[at : at + room])
                self._word_width += room
            at += room
            self._break_word()
        self._word.append(letters[at:])
        self._word_width += len(letters) - at

    def _add_pieces(self, word: str) -> None:
        for text, columns, joins in self._cells.pieces(word):
            if joins or columns == 0:
                # Part of what already stands there: it is never set on another line, even where it widens it.
                self._word.append(text)
                self._word_width += columns
            elif columns == len(text):
                self._add_letters(text)
            else:
                self._add_wide(text, columns)

    def _add_wide(self, character: str, columns: int) -> None:
        """A line may end before it and behind it, as is the custom of its script."""
        if character not in _NO_START and self._last not in _NO_END:
            self._settle()
        elif self._word_width + columns > self._usable and self._word:
            self._break_word()
        self._wide = True
        self._last = character
        self._word.append(character)
        self._word_width += columns

    def _end_word(self) -> None:
        self._settle()
        self._cells.follow("")
        self._last = ""

    def _break_word(self) -> None:
        """The word fills a line and goes on: it gets lines of its own."""
        self._settle()
        self._breaks += 1

    def _settle(self) -> None:
        """The word is whole: put it where it stays."""
        if not self._word:
            return
        if self._line_fresh:
            self._line_fresh = False
            mark = self._word_width + 1 if _LIST_MARK.fullmatch("".join(self._word)) else 0
            self._hang = min(self._spaces + mark, self._usable // 2)
        self._place()
        self._column += self._spaces + self._word_width
        self._spaces = self._word_width = self._shown = self._shown_width = 0
        self._note_look(self._word)
        self._word.clear()

    def _note_look(self, pieces: list[str]) -> None:
        """What follows these pieces looks as they end."""
        if self._looks:
            self._look = next((piece for piece in reversed(pieces) if piece[:1] == "\x1b"), self._look)

    def _show(self) -> None:
        """The word may go on, but let it be seen."""
        if not self._word:
            return
        # A joiner waits for what it joins: terminals do not join what is written apart.
        held = self._word.pop() if self._word[-1] == JOINER else ""
        if self._shown < len(self._word):
            self._place()
            self._shown, self._shown_width = len(self._word), self._word_width
        if held:
            self._word.append(held)

    def _place(self) -> None:
        """Write what of the word is not on the screen, on the next line if this one is full."""
        out = self._out
        if self._breaks or not self.line_open:
            out.append("\n" * self._breaks + self._indent)
            self.line_open = True
            self._breaks = self._column = 0
        if self._column + self._spaces + self._word_width > self._usable:
            # An indent of the model's own gives way; otherwise the word begins a line.
            taken_back = self._shown_width + (0 if self._column else self._spaces)
            if self._shown:
                # A word never reaches over the end of its row, so going left and erasing takes all of it back.
                out.append((f"\x1b[{taken_back}D\x1b[K" if taken_back else "") + self._look)
            if self._column:
                out.append("\n" + self._indent)
                self._column, self._spaces = 0, self._hang
            # For a word that needs them, spaces before it are fewer: it is never cut to keep an indent.
            self._spaces = min(self._spaces, max(self._usable - self._word_width, 0))
            self._shown = self._shown_width = 0
        if not self._shown:
            out.append(" " * self._spaces)
        out.extend(self._word[self._shown :])

    def _take(self) -> str:
        written = "".join(self._out)
        self._out.clear()
        return written


class Cells:
    """Cuts words into pieces that are never torn apart, each with the columns that it adds."""

    def __init__(self) -> None:
        self._cluster = ""
        self._width = 0

    def follow(self, character: str) -> None:
        """What comes next stands behind this simple letter, or at the beginning where it is empty."""
        self._cluster, self._width = character, len(character)

    def pieces(self, word: str) -> Iterator[tuple[str, int, bool]]:
        """(text, columns, whether it goes on with the cluster before it). Simple letters come as long as they go."""
        at = 0
        while at < len(word):
            match = SIMPLE.match(word, at)
            if match is not None:
                at = match.end()
                text = match.group()
                self.follow(text[-1])
                yield text, len(text), False
                continue
            match = _REST.match(word, at)
            assert match is not None, "a character is simple or it is not"
            at = match.end()
            for character in match.group():
                yield self._add(character)

    def _add(self, character: str) -> tuple[str, int, bool]:
        alone = _width(character)
        joins = bool(self._cluster) and (
            alone == 0
            or self._cluster[-1] == JOINER
            or "\U0001f3fb" <= character <= "\U0001f3ff"
            or (_is_flag_letter(character) and _is_flag_letter(self._cluster))
        )
        if not joins:
            self._cluster, self._width = character, alone
            return character, alone, False
        if len(self._cluster) >= LONGEST_CLUSTER:
            return character, 0, True
        self._cluster += character
        # Never narrower than it was: what is on the screen has been counted.
        before, self._width = self._width, max(_width(self._cluster), self._width)
        return character, self._width - before, True


@lru_cache(maxsize=4096)
def _width(cluster: str) -> int:
    from wcwidth import wcswidth  # here, because its tables cost milliseconds and few words need them

    return max(wcswidth(cluster), 0)


def _is_flag_letter(text: str) -> bool:
    return len(text) == 1 and "\U0001f1e6" <= text <= "\U0001f1ff"
