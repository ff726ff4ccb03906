"""Words are not torn at the edge of a terminal, wherever the command writes; pipes get every byte as it came."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.running import OnScreen, run
from tests.terminal.test_answer import ANSWER, CODE, shown

REPLY = f"<think>a thought</think>{ANSWER}"
LINE = (
    "An answer with words that go beyond forty columns, and beyond eighty of them too, and in the end even beyond 120."
)


def on_screen(columns: int, *arguments: str | Path, given: bytes = b"", **changes: str) -> OnScreen:
    reading, writing = os.pipe()
    os.write(writing, given)
    os.close(writing)
    with OnScreen(*arguments, columns=columns, rows=60, stdin=reading, **changes) as asides:
        os.close(reading)
        asides.end()
        return asides


def whole_words(rows: list[str], text: str) -> bool:
    """Whether each word of the text stands whole in a row."""
    return " ".join(" ".join(rows).split()) == " ".join(text.split())


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_the_filter(columns: int) -> None:
    """The answer has the rows of its layout; code is written as it came."""
    asides = on_screen(columns, "-f", "qwen3", "--hide", "--no-markdown", given=REPLY.encode())
    assert asides.emulator.lines == shown(ANSWER.lstrip("\n"), columns, len(ANSWER)).lines
    assert CODE in asides.emulator.raw


def test_not_where_it_is_not_wanted() -> None:
    """`--nowordwrap` leaves lines to the terminal; a pipe gets them byte for byte."""
    for arguments in (["--nowordwrap"], ["--raw"]):
        assert LINE in on_screen(40, "-f", "qwen3", *arguments, given=LINE.encode()).emulator.raw
    assert LINE not in on_screen(40, "-f", "qwen3", given=LINE.encode()).emulator.raw
    assert on_screen(40, "-f", "qwen3", given=LINE.encode(), TERM="dumb").emulator.lines[0] == LINE[:35].rstrip()
    assert run("-f", "qwen3", "--only", "text", given=REPLY.encode()).stdout.decode() == ANSWER.lstrip("\n")


@pytest.mark.parametrize("columns", [40, 80])
def test_the_history(tmp_path: Path, columns: int) -> None:
    """`show` and `search` break nothing but at words, matches in bold included."""
    store = tmp_path / "history.db"
    assert run("--save", "--store", store, given=f"<think>{LINE}</think>{LINE}".encode()).returncode == 0
    rows = on_screen(columns, "history", "show", "--store", store).emulator.lines
    thought = rows.index("Thinking") + 1
    answer = rows.index("", thought) + 1
    assert whole_words(rows[thought : answer - 1], LINE)
    assert all(row.startswith("  ") for row in rows[thought : answer - 1])
    assert whole_words(rows[answer:], LINE)
    found = on_screen(columns, "history", "search", "beyond", "--store", store).emulator
    assert whole_words(found.lines[1:], LINE)
    assert found.look_of("beyond eighty") == "1"
    cut = on_screen(columns, "history", "search", "beyond", "--store", store, "--nowordwrap", NO_COLOR="1")
    assert LINE in cut.emulator.raw


def test_own_messages() -> None:
    """An error message is broken at words, and so is a help; its lines keep their indents."""
    rows = on_screen(40, "--style", "purpel").emulator.lines
    assert whole_words(rows, run("--style", "purpel").stderr.decode())
    assert len(rows) > 1
    rows = on_screen(40, "run", "--help").emulator.text.split("\n")
    assert max(map(len, rows)) < 40
    assert "".join("".join(rows).split()) == "".join(run("run", "--help").stdout.decode().split())


def test_markdown() -> None:
    """Drawn on a terminal with colours, wrapped or not; elsewhere the text is as it came."""
    given = f"**{LINE}**\n- `code`\n"
    shown = on_screen(40, "-f", "qwen3", "--markdown", given=given.encode()).emulator
    assert whole_words(shown.lines, f"{LINE} • code")
    assert (shown.look_of("beyond eighty"), shown.look_of("code")) == ("0;1", "0;33")
    unbroken = on_screen(40, "-f", "qwen3", "--markdown", "--nowordwrap", given=given.encode()).emulator
    assert f"\x1b[0;1m{LINE}\x1b[0m" in unbroken.raw
    by_default = on_screen(40, "-f", "qwen3", given=given.encode()).emulator
    assert by_default.lines == shown.lines
    written = on_screen(200, "-f", "qwen3", "--no-markdown", given=given.encode()).emulator
    assert written.lines == [f"**{LINE}**", "- `code`"]
    plain = on_screen(200, "-f", "qwen3", "--markdown", given=given.encode(), NO_COLOR="1").emulator
    assert plain.lines == [f"**{LINE}**", "- `code`"]
    assert run("-f", "qwen3", "--markdown", given=given.encode()).stdout == given.encode()
    assert run("-f", "qwen3", "--markdown", "-n", given=given.encode()).returncode == 2
