"""The filter before a person: colour, lines, Ctrl-C, on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from wcwidth import wcswidth

from tests.cli.running import COMMAND, OnScreen, Running, environment, run
from tests.terminal.emulator import Emulator
from tests.waiting import PATIENCE, eventually

HEADING = b"\x1b[1mThinking\x1b[0m\r\n"
SLOW = b"<think>twelve signs"


def stderr_of(terminals: str, given: bytes, *arguments: str, **changes: str) -> bytes:
    with Running("-f", "qwen3", *arguments, terminals=terminals, **changes) as asides:
        asides.write(given)
        asides.close(asides.stdin)
        return asides.read_rest(asides.stderr)


def test_thoughts_are_headed_and_coloured_on_a_terminal() -> None:
    """A bold heading, dim text."""
    assert stderr_of("stderr", b"<think>hm</think>Hi") == HEADING + b"\x1b[2m  hm\x1b[0m\r\n"


@pytest.mark.parametrize(
    ("arguments", "changes"),
    [
        (["--style", "heading=bold,text=208"], {}),
        ([], {"ASIDES_STYLE": "heading=bold,text=208"}),
        ([], {"ASIDES_TERMINAL_HEADING": "bold", "ASIDES_TERMINAL_TEXT": "208"}),
    ],
)
def test_the_style_may_be_chosen(arguments: list[str], changes: dict[str, str]) -> None:
    """By an option or by the environment."""
    shown = stderr_of("stderr", b"<think>hm</think>Hi", *arguments, **changes)
    assert shown == b"\x1b[1mThinking\x1b[0m\r\n\x1b[38;5;208m  hm\x1b[0m\r\n"


def test_numbered_thoughts_are_coloured_too() -> None:
    """With -n each line has its label instead of a heading, and nothing in it acts."""
    shown = stderr_of("stderr", b"<think>a\x1b[5mb</think>Hi", "-n")
    assert shown.decode() == "\x1b[2mthinking 1:1:a␛[5mb\x1b[0m\r\n"


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(changes: dict[str, str]) -> None:
    """The same lines, without a single escape code."""
    assert stderr_of("stderr", b"<think>hm</think>Hi", **changes) == b"Thinking\r\n  hm\r\n"


def test_a_bad_style_is_refused() -> None:
    """With words that say how to write one, and no traceback."""
    done = run("--style", "purpel", given=b"x")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"'purpel' is no colour" in done.stderr


@pytest.mark.parametrize("columns", [9, 20, 33])
def test_thoughts_fit_the_terminal(columns: int) -> None:
    """Lines are wrapped to its width, wide characters counted, before the terminal would do it."""
    given = "<think>Some words and 日本語のテキスト、 with emoji 👩\u200d👩\u200d👧 too</think>Hi"
    reading, writing = os.pipe()
    with OnScreen("-f", "qwen3", columns=columns, stdin=reading) as asides:
        os.close(reading)
        for at in range(0, len(given), 3):
            os.write(writing, given[at : at + 3].encode())
        os.close(writing)
        assert asides.end() == 0
        lines = asides.emulator.text.split("\n")
    indent = "  " if columns >= 12 else ""
    assert lines[0] == "Thinking"
    assert lines[-2:] == ["", "Hi"]
    assert all(line.startswith(indent) and wcswidth(line) < columns for line in lines[1:-2])
    thought = "".join("".join(lines[1:-2]).split())
    assert thought == "Somewordsand日本語のテキスト、withemoji👩\u200d👩\u200d👧too"


def test_a_resize_while_a_thought_comes() -> None:
    """The lines that follow have the new width."""
    reading, writing = os.pipe()
    with OnScreen("-f", "qwen3", columns=60, stdin=reading) as asides:
        os.close(reading)
        os.write(writing, b"<think>one two three four five six ")
        asides.until_shows("six")
        asides.resize(14)
        os.write(writing, b"seven eight nine</think>Hi")
        os.close(writing)
        assert asides.end() == 0
        assert asides.emulator.lines[1:5] == ["  one two three four five six", "  seven eight", "  nine", ""]


def spins(screen: Emulator, characters: int) -> bool:
    """Whether a hidden thought of so many characters is shown, for however many seconds."""
    return any(re.search(rf"Thinking \d+ s, {characters} characters", line) for line in screen.lines)


def test_a_hidden_thought_spins_and_leaves_no_trace() -> None:
    """While nothing comes the spinner moves by itself; the answer begins where it stood."""
    reading, writing = os.pipe()
    with OnScreen("-f", "qwen3", "--hide", stdin=reading) as asides:
        os.close(reading)
        os.write(writing, SLOW)
        frames = {asides.until(lambda screen: spins(screen, 12)).lines[0][0]}
        asides.until(lambda screen: screen.lines[:1] != [] and screen.lines[0][0] not in frames)
        os.write(writing, b"</think>Hi <think>more")
        asides.until(lambda screen: spins(screen, 4))
        os.write(writing, b"</think>you")
        os.close(writing)
        assert asides.end() == 0
        assert asides.emulator.text == "Hi you"


def test_ctrl_c_takes_the_spinner_away() -> None:
    """Nothing half drawn is left on the screen."""
    reading, writing = os.pipe()
    with OnScreen("-f", "qwen3", "--hide", stdin=reading) as asides:
        os.close(reading)
        os.write(writing, SLOW)
        asides.until_shows("12 characters")
        asides.press("\x03")
        assert asides.end() == 130
        assert asides.emulator.text in ("", "^C")
    os.close(writing)


def test_collapsed_thoughts() -> None:
    """One line for each with its length, on a terminal and on a pipe."""
    given = b"<think>hm</think>Hi<think>more\nof it</think> you"
    shown = stderr_of("stderr", given, "--collapse", NO_COLOR="1", TERM="dumb")
    assert shown == b"Thinking (2 characters)\r\nThinking 2 (10 characters)\r\n"
    done = run("-f", "qwen3", "--collapse", given=given)
    assert (done.stdout, done.stderr) == (b"Hi you", b"Thinking (2 characters)\nThinking 2 (10 characters)\n")


def test_what_a_model_writes_cannot_act() -> None:
    """No escape sequence of a thought or a call reaches the terminal."""
    given = b'<think>\x1b[2J\x1b]0;x\x07</think><tool_call>{"name": "f", "arguments": {"q": "\x1b[5m"}}</tool_call>'
    shown = stderr_of("stderr", given, NO_COLOR="1")
    assert b"\x1b" not in shown
    assert "␛[2J␛]0;x␇".encode() in shown
    assert "␛[5m".encode() in shown


HOSTILE = "<think>t\x1b[2J\u202e</think>\x1b]52;c;aGk=\x07 \x9b6n \u202egpj.exe\r\nmore\r".encode() + b"\x9b"
"""An answer that writes the clipboard, asks the terminal for a report, turns a name around, and ends in bad UTF-8."""
SHOWN = "␛]52;c;aGk=␇ \ufffd6n \ufffdgpj.exe\r\nmore␍\ufffd".encode()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--only", "text"],
        ["--hide"],
        ["-n"],
        ["--json"],
        ["split"],
        ["split", "-n"],
        ["split", "--only", "thinking"],
    ],
)
def test_an_answer_cannot_act_on_a_terminal(arguments: list[str], tmp_path: Path) -> None:
    """However it is shown; with --raw it may, and a pipe gets every byte."""
    files: list[str | Path] = []
    if "split" in arguments:
        (tmp_path / "a\x1b[31m.txt").write_bytes(HOSTILE)
        (tmp_path / "b").write_bytes(HOSTILE)
        files = [tmp_path / "a\x1b[31m.txt", tmp_path / "b"]
    flags = ["-f", "qwen3", "--start", "text"]
    written: dict[str, bytes] = {}
    for way in ("safe", "raw"):
        raw = ["--raw"] if way == "raw" else []
        with Running(*arguments, *flags, *raw, *files, terminals="stdout stderr", NO_COLOR="1", TERM="dumb") as asides:
            if not files:  # one that reads files may have ended by now
                asides.write(HOSTILE)
            asides.close(asides.stdin)
            written[way] = asides.read_rest(asides.stdout)
    safe = written["safe"].decode()  # as UTF-8: no byte that was none is left
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(safe)
    if not {"--json", "thinking", "-n"} & set(arguments):
        assert SHOWN in written["safe"]
        assert HOSTILE.rpartition(b"</think>")[2].replace(b"\r\n", b"\r\r\n") in written["raw"]
        assert run(*arguments, *flags, *files, given=HOSTILE).stdout.startswith(HOSTILE.rpartition(b"</think>")[2])


def test_no_colour_in_a_pipe() -> None:
    assert b"\x1b" not in run("-f", "qwen3", given=b"<think>hm</think>Hi").stderr


def test_a_terminal_gets_a_last_newline() -> None:
    with Running("-f", "qwen3", terminals="stdout") as asides:
        asides.write(b"<think>hm</think>Hi")
        asides.close(asides.stdin)
        assert asides.read_rest(asides.stdout) == b"Hi\r\n"


def test_a_terminal_gets_no_second_newline() -> None:
    with Running("-f", "qwen3", terminals="stdout") as asides:
        asides.write(b"Hi\n")
        asides.close(asides.stdin)
        assert asides.read_rest(asides.stdout) == b"Hi\r\n"


def test_on_one_screen_everything_has_its_own_line() -> None:
    given = b'<think>a</think>One<think>b</think>\nTwo <tool_call>{"name": "f", "arguments": {}}</tool_call>'
    shown = stderr_of("stdout stderr", given, NO_COLOR="1")
    assert shown.replace(b"\r\n", b"\n") == (b"Thinking\n  a\n\nOne\n\nThinking 2\n  b\n\nTwo\ncall f {}\n")


def test_interrupt_from_the_keyboard() -> None:
    ours, theirs = pty.openpty()
    # A session of its own takes the terminal on its standard input, so that Ctrl-C there reaches it.
    take_terminal = (
        "import fcntl, os, sys, termios\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\nos.execv(sys.argv[1], sys.argv[1:])\n"
    )
    process = subprocess.Popen(
        [COMMAND[0], "-c", take_terminal, *COMMAND, "-f", "qwen3"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(),
        start_new_session=True,
    )
    os.close(theirs)
    assert process.stdout is not None
    os.write(ours, b"Hello <thi\n")
    assert process.stdout.read(5) == b"Hello"
    os.write(ours, b"\x03")
    assert process.stdout.read() == b" <thi\n"
    process.stdout.close()
    assert process.wait(PATIENCE) == 130
    told = os.read(ours, 65536)
    assert b"Ctrl-D" in told
    assert b"Traceback" not in told
    os.close(ours)


def test_the_table_of_formats_fits_the_terminal() -> None:
    with Running("formats", terminals="stdout", COLUMNS="60") as asides:
        lines = asides.read_rest(asides.stdout).decode().splitlines()
    assert lines
    assert max(map(len, lines)) <= 60


def test_the_demo_takes_its_time_on_a_terminal_and_ends_with_ctrl_c() -> None:
    with Running("demo", terminals="stdout") as asides:
        shown = asides.read_until(asides.stdout, b"thinking")
        assert b"recording" in shown
        asides.process.send_signal(signal.SIGINT)
        rest = asides.read_rest(asides.stdout)
        assert asides.wait() == 130
        assert rest.endswith(b"\r\n")
        assert asides.read_rest(asides.stderr) == b""


def screen_of(tmux: list[str]) -> list[str]:
    """The lines that tmux shows."""
    captured = subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, check=True)
    return [line.rstrip() for line in captured.stdout.decode().splitlines()]


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_a_real_terminal_shows_the_same(tmp_path: Path) -> None:
    """What tmux has on its screen is what our small terminal says is there."""
    text = "Some words, 日本語のテキスト、 and 👍 in between, " * 3
    reply = tmp_path / "reply.txt"
    reply.write_text(f"<think>{text}</think>The answer.")
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-f", os.devnull]
    command = f"{shlex.join(COMMAND)} -f qwen3 < {shlex.quote(str(reply))}; echo over; cat"
    subprocess.run([*tmux, "-u", "new-session", "-d", "-x", "40", "-y", "20", command], check=True, env=environment())
    try:
        eventually(lambda: "over" in screen_of(tmux), "the command did not end")
        shown = screen_of(tmux)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    with OnScreen("split", "-f", "qwen3", reply, columns=40, rows=20) as asides:
        assert asides.end() == 0
        assert shown[: shown.index("over")] == asides.emulator.lines
