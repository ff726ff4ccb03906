"""`asides view` before a person: keys, clicks, search, live input, on a pseudo-terminal; and plain text on a pipe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, OnScreen, environment, run

REPLY = (
    "<think>The first thought,\nin two lines.</think>An answer.\n\n"
    '<think>The second thought.</think>More of it.<tool_call>{"name": "find", "arguments": {"q": 1}}</tool_call>'
)
CLOSED = [
    "▸ Thinking 1 (32 characters) [show]",
    "",
    "An answer.",
    "",
    "▸ Thinking 2 (19 characters) [show]",
    "",
    "More of it.",
    "",
    'call find {"q": 1}',
]


@pytest.fixture
def reply(tmp_path: Path) -> Path:
    path = tmp_path / "reply.txt"
    path.write_text(REPLY)
    return path


def test_keys_show_and_hide(reply: Path) -> None:
    """Enter and Space act on the thought that n, Tab and p lead to; `a` on all; q leaves the screen as it was."""
    with OnScreen("view", "-f", "qwen3", reply, columns=60, rows=16) as asides:
        assert asides.until_shows("q quit").lines[:9] == CLOSED
        asides.press("\r")
        assert asides.until_shows("in two lines").lines[:3] == [
            "▾ Thinking 1 (32 characters) [hide]",
            "  The first thought,",
            "  in two lines.",
        ]
        asides.press("\t ")
        asides.until_shows("The second thought.")
        asides.press("p\r")
        asides.until(lambda screen: "in two lines" not in screen.text)
        asides.press("a")
        asides.until_shows("in two lines")
        asides.press("a")
        asides.until(lambda screen: screen.lines[:9] == CLOSED)
        asides.press("q")
        assert asides.end() == 0
        assert asides.emulator.text == ""


def test_a_click_shows_and_hides(reply: Path) -> None:
    """On the heading, wherever in it."""
    with OnScreen("view", "-f", "qwen3", reply, columns=60, rows=16) as asides:
        asides.until_shows("q quit")
        asides.click(5, 4)
        asides.until_shows("The second thought.")
        asides.click(30, 4)
        asides.until(lambda screen: screen.lines[:9] == CLOSED)
        asides.press("\x03")
        assert asides.end() == 130


def test_help_copying_writing_and_keeping(reply: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`?` lists the keys; y and Y copy by the terminal's own clipboard; w writes what came; --keep leaves it there."""
    monkeypatch.chdir(reply.parent)
    with (
        reply.open("rb") as file,
        OnScreen("view", "-", "-f", "qwen3", "--keep", columns=60, rows=16, stdin=file.fileno()) as asides,
    ):
        asides.until_shows("q quit")
        asides.press("?")
        assert "write the raw output to a new file" in asides.until_shows("search, also in closed thoughts").text
        asides.press("q")  # away with the help, and not with all
        asides.until(lambda screen: screen.lines[:9] == CLOSED)
        asides.press("y")
        asides.until_shows("copied the answer (23 characters)")
        asides.press("\tY")
        asides.until_shows("copied the thought (19 characters)")
        clipboard = [b64decode(data).decode() for data in re.findall(r"\x1b]52;c;([^\x07]*)\x07", asides.emulator.raw)]
        assert clipboard == ["An answer.\n\nMore of it.", "The second thought."]
        for message in ("written to copy.txt", "copy.txt: File exists"):
            asides.press("wcopy.txt\r")
            asides.until_shows(message)
        asides.press("q")
        assert asides.end() == 0
        assert asides.emulator.lines[0] == "Thinking 1 (32 characters)"
        assert "More of it." in asides.emulator.lines
    assert (reply.parent / "copy.txt").read_text() == REPLY


def test_moving_and_searching(tmp_path: Path) -> None:
    """Keys that move, the wheel, and a search that opens the thought it finds something in."""
    path = tmp_path / "long.txt"
    path.write_text("<think>a needle in it</think>" + "".join(f"line {number}\n" for number in range(1, 101)))
    with OnScreen("view", "-f", "qwen3", path, columns=60, rows=11) as asides:
        asides.until_shows("q quit")
        for keys, first in [
            ("G", "line 92"),
            ("g", "▸ Thinking (14 characters) [show]"),
            ("jj", "line 1"),
            ("\x1b[B", "line 2"),
            ("k", "line 1"),
            ("\x1b[6~", "line 10"),
            ("\x1b[5~", "line 1"),
            ("\x1b[F", "line 92"),
            ("\x1b[H", "▸ Thinking (14 characters) [show]"),
            ("\x1b[<65;1;1M", "line 2"),
            ("/line 50\r", "line 50"),
            ("/needle\r", "  a needle in it"),
        ]:
            asides.press(keys)
            asides.until(lambda screen, first=first: screen.lines[0] == first)  # type: ignore[misc]  # it is bound
        assert "7" in asides.emulator.look_of("needle")
        asides.press("/nothing like it\r")
        asides.until_shows("not found: nothing like it")
        asides.press("q")
        assert asides.end() == 0


def test_a_long_reply_opens_at_its_beginning(tmp_path: Path) -> None:
    """The first row is the heading of the first thought, in a file as in a pipe."""
    path = tmp_path / "long.txt"
    path.write_text("<think>first of all</think>" + "line\n" * 100)
    for source in (path, "-"):
        with path.open() as file, OnScreen("view", source, columns=60, rows=11, stdin=file.fileno()) as asides:
            screen = asides.until_shows("q quit")
            assert screen.lines[0] == "▸ Thinking (12 characters) [show]"
    reading, writing = os.pipe()
    with OnScreen("view", "-", columns=60, rows=11, stdin=reading) as asides:
        os.close(reading)
        asides.until_shows("nothing yet")
        os.write(writing, path.read_bytes())
        os.close(writing)
        asides.until(lambda screen: "reading" not in screen.lines[-1])
        assert asides.emulator.lines[0] == "▸ Thinking (12 characters) [show]"


def test_a_resize_lays_it_out_anew(tmp_path: Path) -> None:
    """The same text in fewer columns."""
    path = tmp_path / "reply.txt"
    path.write_text("one two three four five six seven eight nine")
    with OnScreen("view", path, columns=60, rows=10) as asides:
        asides.until_shows("one two three four five six seven eight nine")
        asides.resize(30, 10)
        asides.until(lambda screen: screen.lines[:2] == ["one two three four five six", "seven eight nine"])
        asides.press("q")
        assert asides.end() == 0


def test_standard_input_is_shown_as_it_comes() -> None:
    """Keys come from the terminal while the reply comes from a pipe."""
    reading, writing = os.pipe()
    with OnScreen("view", "-f", "qwen3", "-", columns=70, rows=10, stdin=reading) as asides:
        os.close(reading)
        os.write(writing, b"<think>first")
        asides.until_shows("Thinking (5 characters) [show]")
        assert "reading" in asides.emulator.lines[-1]
        asides.press("\r")
        asides.until_shows("  first")
        os.write(writing, b" and more</think>The answer")
        os.close(writing)
        asides.until_shows("The answer")
        asides.until(lambda screen: "reading" not in screen.lines[-1])
        asides.press("q")
        assert asides.end() == 0


def test_a_large_file_opens_at_once(tmp_path: Path) -> None:
    """Only what is on the screen is laid out, so ten megabytes scroll like ten lines."""
    path = tmp_path / "large.txt"
    line = "The quick brown fox jumps over the lazy dog, again and again. " * 3 + "\n"
    path.write_text("<think>" + line * 25_000 + "</think>" + line * 28_000 + "the end")
    assert path.stat().st_size > 9_000_000
    with OnScreen("view", "-f", "qwen3", path, columns=60, rows=10) as asides:
        asides.until_shows("q quit")
        asides.press("aG")
        asides.until_shows("the end")
        asides.press("q")
        assert asides.end() == 0


def test_plain_text_where_there_is_no_terminal(reply: Path) -> None:
    """A line for each thought, or all of it; nothing to press."""
    done = run("view", "-f", "qwen3", reply)
    plain = [line.removeprefix("▸ ").removesuffix(" [show]") for line in CLOSED]
    assert (done.returncode, done.stdout.decode().splitlines(), done.stderr) == (0, plain, b"")
    done = run("view", "-f", "qwen3", "--expand", "-", given=REPLY.encode())
    assert "  in two lines.\n\nAn answer.\n" in done.stdout.decode()


def test_a_dumb_terminal_gets_plain_text(reply: Path) -> None:
    """No screen is taken over that cannot be given back."""
    with OnScreen("view", "-f", "qwen3", reply, TERM="dumb") as asides:
        assert asides.end() == 0
        assert asides.emulator.lines[0] == "Thinking 1 (32 characters)"
        assert "\x1b" not in asides.emulator.raw


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """`asides view FILE | head -1` ends quietly."""
    path = tmp_path / "long.txt"
    path.write_text("line\n" * 200_000)
    with subprocess.Popen(
        [*COMMAND, "view", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_wrong_usage(tmp_path: Path) -> None:
    """No file, a missing file, a bad style: one line, exit code 2."""
    for arguments in ([], [tmp_path / "none.txt"], [tmp_path], ["-", "--style", "purpel"], ["-", "-f", "qwne3"]):
        done = run("view", *arguments)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"Traceback" not in done.stderr


def test_without_prompt_toolkit_it_says_what_to_install(reply: Path, tmp_path: Path) -> None:
    """The package is named, and the file can still be read as plain text."""
    (tmp_path / "prompt_toolkit.py").write_text("raise ModuleNotFoundError(name='prompt_toolkit')")
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    with OnScreen("view", reply, PYTHONPATH=path) as asides:
        assert asides.end() == 2
        assert "pip install prompt-toolkit" in asides.emulator.text


def test_help_teaches() -> None:
    """Keys, examples and exit codes, in lines that fit."""
    text = run("view", "--help").stdout.decode()
    for word in ("keys:", "examples:", "exit codes:", "Space"):
        assert word in text
    assert max(map(len, text.splitlines())) < 80


def test_importing_the_command_line_does_not_import_the_viewer() -> None:
    """prompt_toolkit is for those who look, not for the filter."""
    script = (
        "import sys, asides._cli.filter, asides._cli.display, asides.terminal\nprint('prompt_toolkit' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"False\n"
