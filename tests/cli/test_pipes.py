"""The filter among other programs: bytes, cuts, closed pipes, Ctrl-C, size."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import subprocess
import termios
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, Running, environment, run
from tests.waiting import PATIENCE, eventually


def test_output_flows_as_it_comes() -> None:
    with Running("-f", "qwen3") as asides:
        asides.write(b"<think>hm")
        assert asides.read_until(asides.stderr, b"hm") == b"Thinking\n  hm"
        asides.write(b"</think>Hello")
        assert asides.read_until(asides.stdout, b"Hello") == b"Hello"
        asides.write(b" world <th")
        assert asides.read_until(asides.stdout, b"world") == b" world"
        asides.close(asides.stdin)
        assert asides.read_rest(asides.stdout) == b" <th"
        assert asides.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "given", "expected"),
    [
        ([], "<think>a</think>b<think>c</think>d", "Thinking\n  a\n\nb\n\nThinking 2\n  c\n\nd"),
        (["-n"], "<think>a</think>b<think>c</think>d", "thinking 1:1:a\n\n1:b\nthinking 2:1:c\n\nd"),
        (["--start", "text"], "x</think>y", "xy\nasides: </think> closes a thought that was not opened here: "),
    ],
)
def test_one_pipe_for_both_is_one_screen(arguments: list[str], given: str, expected: str) -> None:
    """`2>&1 | less`: a line of one stream never goes on in a line of the other."""
    command = [*COMMAND, *arguments]
    done = subprocess.run(
        command, input=given.encode(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE,
        env=environment(), check=False,
    )  # fmt: skip
    assert done.stdout.decode().startswith(expected)


def test_json_flows_as_it_comes() -> None:
    with Running("-f", "qwen3", "--json") as asides:
        asides.write(b"Hello")
        assert asides.read_until(asides.stdout, b"Hello").endswith(b"\n")


def test_chunks_may_split_characters() -> None:
    with Running("-f", "qwen3") as asides:
        for byte in "<think>äß</think>日本 🎭.".encode():
            asides.write(bytes([byte]))
        asides.close(asides.stdin)
        assert asides.read_rest(asides.stdout).decode() == "日本 🎭."
        assert asides.read_rest(asides.stderr).decode() == "Thinking\n  äß\n"


def test_bytes_that_are_not_utf8_pass_unchanged() -> None:
    odd = bytes(range(128, 256)) + b"\xed\xa0\x80\x00\xe2\x82"
    done = run("-f", "qwen3", given=b"<think>" + odd + b"</think>" + odd)
    assert (done.stdout, done.stderr) == (odd, b"Thinking\n  " + odd + b"\n")


def test_bytes_that_are_not_utf8_in_json() -> None:
    done = run("-f", "qwen3", "--json", given=b"a\xff")
    assert b'"a\\udcff"' in done.stdout
    call = b'<tool_call>{"name": "f", "arguments": {"a": "\xff"}}</tool_call>'
    done = run("-f", "qwen3", "--only", "calls", given=call)
    assert done.returncode == 0
    assert b"\\udcff" in done.stdout
    assert run("-f", "qwen3", given=call).returncode == 0


def test_interrupt_writes_what_was_held() -> None:
    with Running("-f", "qwen3") as asides:
        asides.write(b"<think>hm</think>Hello <thi\xe2\x82")
        written = asides.read_until(asides.stdout, b"Hello")
        asides.process.send_signal(signal.SIGINT)
        assert written + asides.read_rest(asides.stdout) == b"Hello <thi\xe2\x82"
        assert asides.wait() == 130
        assert asides.read_rest(asides.stderr) == b"Thinking\n  hm\n"


def test_interrupt_reads_what_was_already_in_the_pipe() -> None:
    with Running("-f", "qwen3", "--start", "undecided") as asides:
        asides.write(b"held back")
        # The process must be reading before the signal, or Python itself would answer it.
        wait_until_reading(asides)
        os.kill(asides.process.pid, signal.SIGSTOP)
        asides.write(b" and its last words")
        asides.process.send_signal(signal.SIGINT)
        os.kill(asides.process.pid, signal.SIGCONT)
        assert asides.read_rest(asides.stdout) == b"held back and its last words"
        assert asides.wait() == 130


def wait_until_reading(asides: Running) -> None:
    """Until the pipe to the process is empty."""

    def is_empty() -> bool:
        waiting = array.array("i", [0])
        fcntl.ioctl(asides.stdin, termios.FIONREAD, waiting)
        return not waiting[0]

    eventually(is_empty, "the process does not read")


def test_interrupt_ends_a_thought_with_its_line() -> None:
    with Running("-f", "qwen3") as asides:
        asides.write(b"<think>half a thou")
        asides.read_until(asides.stderr, b"half a thou")
        asides.process.send_signal(signal.SIGINT)
        assert asides.read_rest(asides.stderr) == b"\n  (cut off)\n"
        assert asides.wait() == 130


def test_an_ignored_interrupt_stays_ignored() -> None:
    script = 'trap "" INT; exec "$@"'
    with subprocess.Popen(
        ["sh", "-c", script, "sh", *COMMAND, "-f", "qwen3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Hello")
        process.stdin.flush()
        assert process.stdout.read(5) == b"Hello"
        process.send_signal(signal.SIGINT)
        process.stdin.write(b" world")
        process.stdin.close()
        assert process.stdout.read() == b" world"
    assert process.returncode == 0


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--only", "thinking"]])
def test_a_closed_pipe_is_no_error(arguments: list[str]) -> None:
    given = b"<think>" + b"thought\n" * 50_000 + b"</think>" + b"line\n" * 200_000
    with subprocess.Popen(
        [*COMMAND, "-f", "qwen3", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if not arguments else subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.close()
        try:
            process.stdin.write(given)
            process.stdin.close()
        except BrokenPipeError:
            pass
        told = process.stderr.read() if process.stderr else b""
    assert (process.returncode, told) == (141, b"")


def test_the_answer_goes_on_when_nobody_reads_the_thoughts() -> None:
    with Running("-f", "qwen3") as asides:
        asides.close(asides.stderr)
        asides.write(b"<think>hm</think>Hello<think>more</think> you")
        asides.close(asides.stdin)
        assert asides.read_rest(asides.stdout) == b"Hello you"
        assert asides.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_told() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "-f", "qwen3"], input=b"Hello", stdout=full, stderr=subprocess.PIPE, env=environment()
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"asides: standard output: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("arguments", "given", "answer"),
    [
        (["-f", "qwen3"], b"<think>hm</think>Hello<think>more</think> you", b"Hello you"),
        (["-f", "qwen3", "--strict"], b"<think>hm</think>Hello</think>", b"Hello"),
        (["-f", "qwen3", "--hide", "--verbose"], b"Hello</think>", b"Hello"),
        (["split", "-f", "qwen3", "-"], b"<think>hm</think>Hello", b"Hello"),
    ],
)
def test_a_full_disk_under_the_thoughts_is_an_error(arguments: list[str], given: bytes, answer: bytes) -> None:
    """There is no place for a message, so the exit code is all that says it. The answer is whole."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], input=given, stdout=subprocess.PIPE, stderr=full, env=environment()
        )
    assert (done.returncode, done.stdout) == (2, answer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_under_thoughts_that_nobody_asked_for() -> None:
    """Nothing was written there, so nothing is lost."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "--hide"],
            input=b"<think>hm</think>Hello",
            stdout=subprocess.PIPE,
            stderr=full,
            env=environment(),
        )
    assert (done.returncode, done.stdout) == (0, b"Hello")


@pytest.mark.parametrize(("closed", "code"), [("<&-", 2), (">&-", 2), ("2>&-", 0)])
def test_streams_that_were_closed_from_the_start(closed: str, code: int) -> None:
    script = f'exec "$@" {closed}'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *COMMAND, "-f", "qwen3"],
        input=b"<think>hm</think>Hello",
        capture_output=True,
        timeout=PATIENCE,
        env=environment(),
    )
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_a_large_input_in_constant_memory() -> None:
    """Almost thirty megabytes pass through a process that stays below eighty, Python itself included."""
    # Not getrusage: its maximum begins with what the process that started this one held.
    script = (
        "import re, sys\n"
        "from asides._cli import main\n"
        "code = main(['-f', 'qwen3'])\n"
        "most = re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())\n"
        "sys.exit(code or int(most.group(1)) // 1024)\n"
    )
    block = b"<think>" + b"thought " * 4000 + b"</think>" + b"words and more " * 4000
    with subprocess.Popen(
        [COMMAND[0], "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert process.stdin is not None
        for _ in range(300):
            process.stdin.write(block)
        process.stdin.close()
    megabytes = process.returncode
    assert 0 < megabytes < 80
