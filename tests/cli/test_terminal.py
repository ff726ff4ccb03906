"""The filter before a person: colour, lines, Ctrl-C, on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess

import pytest

from tests.cli.running import COMMAND, PATIENCE, Running, environment, run

DIM = b"\x1b[2m"
PLAIN = b"\x1b[22m"


def stderr_of(terminals: str, given: bytes, *arguments: str, **changes: str) -> bytes:
    with Running("-f", "qwen3", *arguments, terminals=terminals, **changes) as asides:
        asides.write(given)
        asides.close(asides.stdin)
        return asides.read_rest(asides.stderr)


def test_thoughts_are_dim_on_a_terminal() -> None:
    assert stderr_of("stderr", b"<think>hm</think>Hi") == DIM + b"hm" + PLAIN + b"\r\n"


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(changes: dict[str, str]) -> None:
    assert stderr_of("stderr", b"<think>hm</think>Hi", **changes) == b"hm\r\n"


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
    assert shown.replace(b"\r\n", b"\n") == b"a\n\nOne\n\nb\n\n\nTwo\ncall f {}\n"


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
