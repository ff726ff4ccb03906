"""The progress line: when it is drawn, what stands in it, and that nothing of it is left."""

from __future__ import annotations

import pytest

from asides.terminal import _progress as module
from asides.terminal._progress import Progress


class Terminal:
    """Keeps what is drawn."""

    def __init__(self, *, terminal: bool = True) -> None:
        self.terminal = terminal
        self.at_line_start = True
        self.drawn = ""

    def draw(self, text: str) -> None:
        """Add a text."""
        self.drawn += text
        self.at_line_start = text.endswith("\n")

    def flush(self) -> None:
        """All is there already."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every drawing is due."""
    monkeypatch.setattr(module, "SECONDS_PER_DRAWING", -1.0)


def test_the_line_is_drawn_over_itself_and_taken_away() -> None:
    """With the share where the total is known."""
    screen = Terminal()
    with Progress(screen, "imported", total=200) as progress:
        progress.show(50, "1 reply")
        progress.show(300, "9 replies")
    assert screen.drawn == "\rimported 1 reply (25 %)\x1b[K\rimported 9 replies (100 %)\x1b[K\r\x1b[K"
    assert screen.at_line_start


def test_without_a_total_there_is_no_share() -> None:
    """The amount alone; as a bar, megabytes."""
    screen = Terminal()
    Progress(screen, "read").show(7, "7 replies")
    Progress(screen, bar=True).show(2_500_000, "7 replies")
    assert screen.drawn == "\rread 7 replies\x1b[K\r2.5 MB  7 replies \x1b[K"


def test_a_bar_fills_with_the_share() -> None:
    """In twenty-four steps."""
    screen = Terminal()
    Progress(screen, total=100, bar=True).show(50, "3 replies")
    assert screen.drawn == f"\r[{'#' * 12}{' ' * 12}]  50%  3 replies \x1b[K"


def test_nothing_is_drawn_where_nobody_looks_or_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither into a pipe, nor hidden, nor before a tenth of a second has passed."""
    pipe, screen = Terminal(terminal=False), Terminal()
    for progress in (Progress(pipe, "read"), Progress(screen, "read", hidden=True)):
        progress.show(1, "1 reply")
        progress.clear()
    monkeypatch.setattr(module, "SECONDS_PER_DRAWING", 1000.0)
    Progress(screen, "read").show(1, "1 reply")
    assert pipe.drawn == screen.drawn == ""
