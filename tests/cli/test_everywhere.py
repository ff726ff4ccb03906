"""The filter on every system: nothing here needs a terminal, a fork or a signal, so that Windows runs it too.

Where the system is a POSIX one, each test is also run as on one that is none (`tests/posix.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import asides
from tests.posix import needs_posix
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
COMMANDS = {"here": ["-m", "asides"], "without posix": ["-m", "tests.posix", "-m", "asides"]}
FAMILIES = [pytest.param(name, marks=needs_posix if name != "here" else ()) for name in COMMANDS]
REPLY = "<think>2 + 2 é\r\nsums</think>It is 4. ü\r\n".encode()


@pytest.fixture(params=FAMILIES)
def start(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """How the command is started."""
    return [sys.executable, *COMMANDS[request.param]]


def _run(start: list[str], *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*start, *arguments], input=given, capture_output=True, cwd=ROOT, timeout=PATIENCE)


def test_bytes_pass_as_they_are(start: list[str]) -> None:
    """Line ends and letters beyond ASCII come out as they went in, whatever the system writes by itself."""
    done = _run(start, given=REPLY)
    assert (done.returncode, done.stdout) == (0, "It is 4. ü\r\n".encode())
    assert done.stderr.splitlines(keepends=True) == [b"Thinking\n", "  2 + 2 é\r\n".encode(), b"  sums\n"]


def test_bytes_that_are_no_utf_8_pass(start: list[str]) -> None:
    """Nor does the encoding of the system matter."""
    assert _run(start, "--hide", given=b"<think>a</think>\xff\xfe\x1a\x00b").stdout == b"\xff\xfe\x1a\x00b"


def test_a_large_input_is_whole(start: list[str]) -> None:
    """More than any pipe holds, so that both sides have to wait for each other."""
    answer = "".join(f"line {number}: äöü €\n" for number in range(60_000)).encode()
    assert _run(start, "--hide", given=b"<think>a</think>" + answer).stdout == answer


def test_the_answer_comes_while_the_model_writes(start: list[str]) -> None:
    """What has come is written before more comes."""
    with subprocess.Popen([*start, "--hide"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"<think>x</think>")
        for piece in (b"one.", b"two.", b"three."):
            process.stdin.write(piece)
            process.stdin.flush()
            assert process.stdout.read(len(piece)) == piece
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_a_reader_that_has_gone_is_no_failure(start: list[str]) -> None:
    """The exit code says so, and no traceback is written."""
    with subprocess.Popen(
        [*start, "--hide"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        try:
            process.stdin.write(b"a line of the answer\n" * 100_000)
            process.stdin.close()
        except OSError:
            pass
        assert process.stderr.read() == b""
        assert process.wait(PATIENCE) == 141


def test_files_are_read_as_they_are(start: list[str], tmp_path: Path) -> None:
    """A file's line ends stay, Ctrl-Z does not end it, and what is not there is named."""
    path = tmp_path / "reply.txt"
    path.write_bytes(b"thought</think>one\r\ntwo\x1athree")
    done = _run(start, "split", "--hide", str(path), str(tmp_path / "missing"))
    assert (done.returncode, done.stdout) == (2, b"one\r\ntwo\x1athree")
    assert b"missing: " in done.stderr


def test_events_as_lines(start: list[str]) -> None:
    """`--json` writes one object per line, with no line end but \\n."""
    lines = _run(start, "--json", given=REPLY).stdout
    assert b"\r" not in lines.replace(b"\\r", b"")
    assert json.loads(lines.splitlines()[0])["type"] == "part_start"


def test_help_and_version(start: list[str]) -> None:
    """In UTF-8, also where the system's own encoding lacks a letter."""
    assert _run(start, "--version").stdout == f"asides {asides.__version__}\n".encode()
    assert b"usage: asides" in _run(start, "--help").stdout
    assert "<｜".encode() in _run(start, "formats", "deepseek_r1").stdout


def test_history_keeps_replies(start: list[str], tmp_path: Path) -> None:
    """A store is made and read, with no complaint about modes that the system does not have."""
    store = str(tmp_path / "history.db")
    assert _run(start, "--hide", "--save", "--store", store, given=REPLY).stderr == b""
    listed = _run(start, "history", "list", "--store", store)
    assert listed.returncode == 0
    assert b"It is 4." in listed.stdout


@pytest.mark.parametrize("start", ["without posix"] if sys.platform != "win32" else ["here"], indirect=True)
def test_what_needs_posix_says_so(start: list[str], tmp_path: Path) -> None:
    """A command that cannot work is refused in one line."""
    pytest.importorskip("pyarrow")
    given = tmp_path / "given.jsonl"
    given.write_text('{"text": "a"}\n')
    done = _run(start, "batch", str(given), "-o", str(tmp_path / "made.parquet"), "--field", "text")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"needs a POSIX system" in done.stderr


@needs_posix
def test_the_simulation_takes_posix_away() -> None:
    """Otherwise the tests above would show nothing."""
    code = "import select, sys; print(sys.platform, hasattr(__import__('os'), 'fork')); select.select([0], [], [], 0)"
    done = subprocess.run(
        [sys.executable, "-c", f"from tests.posix import leave_posix; leave_posix(); {code}"],
        capture_output=True,
        cwd=ROOT,
        timeout=PATIENCE,
    )
    assert done.stdout == b"win32 False\n"
    assert b"not a socket" in done.stderr
