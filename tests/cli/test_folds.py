"""Folding on a screen, in sessions made up at random: what is seen is always what would be seen without any folding."""

from __future__ import annotations

import random

import pytest

from asides._cli.run.folds import FoldedThought, ScreenFolds
from asides._cli.streams import OutputStream
from asides.terminal import Style
from tests.terminal.emulator import Emulator

TEXTS = (
    "An answer.\n",
    "\n",
    "several words that go on and on, so that a terminal has to break them somewhere, as it does\n",
    "日本語の文章は幅が広い\n\n",
    "moved\x1b[5D\x1b[K\nmoved on\n",
)
THOUGHTS = ("short", "a thought\nof three lines\nin all", "many words " * 30, "\n".join(f"line {n}" for n in range(30)))


class Session:
    """A screen that is no real one, and the folds on it."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.emulator = Emulator(columns, rows)
        self.written: list[str | FoldedThought] = []
        self.folds = ScreenFolds(self, Style())  # type: ignore[arg-type]  # it writes to itself
        self.folds._screen = self  # type: ignore[assignment]

    # As `Streams`, as its streams, and as `Screen`.

    one_screen, colour, at_line_start, sanitizes = True, False, True, True

    @property
    def err(self) -> Session:
        return self

    out = err

    def aside(self) -> Session:
        return self

    def width(self) -> int:
        return self.columns

    def height(self) -> int:
        return self.rows

    def flush(self) -> None:
        """All is written at once."""

    end_line = flush

    def draw(self, text: str) -> None:
        self.emulator.write(text.replace("\n", "\r\n"))

    def write_line(self, text: str) -> None:
        self.write(f"{text}\n")

    # What happens.

    def write(self, text: str) -> None:
        self.draw(text)
        self.folds._follow(text)
        self.written.append(text)

    def think(self, text: str, *, opened: bool) -> None:
        self.folds.begin()
        place = len(self.written)
        shown = FoldedThought(text, f"Thought of {len(text)}", opened, 0)
        for line in self.folds._lines(shown):
            self.write(line)
        self.folds.end(text, shown.summary, opened=opened)
        self.written[place:] = [self.folds.thoughts[-1]]

    def expected(self) -> str:
        """What a screen would show that was written to once, with the thoughts as they are now."""
        fresh = Emulator(self.columns, self.rows)
        for item in self.written:
            for line in self.folds._lines(item):
                fresh.write(line.replace("\n", "\r\n"))
        return fresh.text


@pytest.fixture(autouse=True)
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests write to terminals too."""
    monkeypatch.setattr(OutputStream, "watch", None)


def test_any_session() -> None:
    """Texts, thoughts folded and not, and clicks on any of them that is on the screen, in any order."""
    assert sum(map(play, range(60))) > 100


def test_not_where_models_may_move_the_cursor() -> None:
    """With --raw nobody knows what stands where."""
    session = Session(40, 24)
    session.sanitizes = False
    session.think("hm", opened=False)
    assert not session.folds.toggle_at(1)
    session.sanitizes = True
    session.think("hm", opened=False)
    assert session.folds.toggle_at(1)


def play(seed: int) -> int:
    """A session; how often a thought was folded or unfolded in it."""
    chosen = random.Random(seed)
    session = Session(chosen.choice([20, 40, 80]), chosen.choice([8, 24]))
    toggled = 0
    for _ in range(40):
        act = chosen.random()
        if act < 0.4:
            session.write(chosen.choice(TEXTS))
        elif act < 0.6:
            session.think(chosen.choice(THOUGHTS), opened=chosen.random() < 0.3)
        elif act < 0.65:
            session.folds.typed(None) if chosen.random() < 0.2 else session.write(">>> typed\n")
        else:
            row = session.folds._counter.row
            lines = [row - item.row for item in session.folds._written if isinstance(item, FoldedThought)]
            session.folds.prompt_drawn(1)
            toggled += session.folds.toggle_at(chosen.choice([*lines, chosen.randint(1, session.rows)]))
        assert session.emulator.text.rstrip() == session.expected().rstrip()
    return toggled
