"""What stands in for `select` and for plain writing on Windows. Nothing here needs Windows, except a console."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Queue

import pytest

from asides import _windows
from tests.posix import needs_posix
from tests.waiting import PATIENCE, eventually


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe."""
    before = set(threading.enumerate())
    read, write = os.pipe()
    yield read, write
    with suppress(OSError):
        os.close(write)  # ends the thread that reads the other end
    # Waited for, because the next pipe gets the same numbers: a thread that is late would read that one.
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
    _windows._file.cache_clear()
    os.close(read)


def _never() -> None:
    return None


def test_chunks_come_as_they_arrive(pipe: tuple[int, int]) -> None:
    """One is there before the next is written; the end ends it."""
    chunks = _windows.read_chunks(pipe[0], 100, _never, lambda: False)
    for piece in (b"one", b"two"):
        os.write(pipe[1], piece)
        assert next(chunks) == piece
    os.close(pipe[1])
    assert list(chunks) == []


def test_silence_is_an_empty_chunk(pipe: tuple[int, int]) -> None:
    """So that a spinner turns while a model is silent."""
    chunks = _windows.read_chunks(pipe[0], 100, lambda: 0.001, lambda: False)
    assert next(chunks) == b""
    os.write(pipe[1], b"words")
    assert next(chunk for chunk in chunks if chunk) == b"words"


def test_what_had_come_before_the_stop_is_read(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C loses nothing that was there, and does not wait for more."""
    stops: list[bool] = []
    queues: list[Queue[bytes | OSError]] = []

    def kept(size: int) -> Queue[bytes | OSError]:
        queues.append(Queue(size))
        return queues[0]

    monkeypatch.setattr(_windows, "Queue", kept)
    chunks = _windows.read_chunks(pipe[0], 1, _never, lambda: bool(stops))
    os.write(pipe[1], b"abc")
    assert next(chunks) == b"a"
    eventually(lambda: queues[0].qsize() == 2, "the thread reads ahead")
    stops.append(True)
    assert list(chunks) == [b"b", b"c"]


def test_a_failure_to_read_is_raised_where_it_is_read(tmp_path: Path) -> None:
    """It comes from another thread."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    try:
        with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
            list(_windows.read_chunks(descriptor, 10, _never, lambda: False))
    finally:
        _windows._file.cache_clear()
        os.close(descriptor)


def test_a_file_is_read_without_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of files need no thousands of threads; a stop ends it between chunks."""
    monkeypatch.setattr(_windows, "Thread", None)
    path = tmp_path / "file"
    path.write_bytes(b"abcdef")
    with path.open("rb") as file:
        assert list(_windows.read_chunks(file.fileno(), 4, _never, lambda: False)) == [b"abcd", b"ef"]
        assert list(_windows.read_chunks(file.fileno(), 4, _never, lambda: True)) == []


@pytest.mark.parametrize("text", ["a" * 20_000, "é" * 9_000, "€a" * 9_000, "a" + "𝄞" * 9_000])
def test_no_character_is_torn(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece is UTF-8 by itself, and all together are the whole."""
    pieces: list[bytes] = []

    class Console:
        def write(self, data: bytes) -> int:
            assert len(data) <= _windows.PIECE
            pieces.append(data)
            return len(data)

    monkeypatch.setattr(_windows, "_file", lambda descriptor, mode: Console())
    _windows.write_all(1, text.encode())
    assert [piece.decode() for piece in pieces]
    assert b"".join(pieces) == text.encode()


def test_what_is_no_utf_8_is_written_too(tmp_path: Path) -> None:
    """Bytes that belong to no character do not stop the cutting."""
    data = b"\x80" * (2 * _windows.PIECE)
    with (tmp_path / "file").open("wb") as file:
        _windows.write_all(file.fileno(), data)
    _windows._file.cache_clear()
    assert (tmp_path / "file").read_bytes() == data


def test_writing_goes_on_where_a_console_took_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing all is our job."""
    taken: list[bytes] = []

    class Reluctant:
        def write(self, data: bytes) -> int:
            taken.append(data[:3])
            return min(3, len(data))

    monkeypatch.setattr(_windows, "_file", lambda descriptor, mode: Reluctant())
    _windows.write_all(1, b"abcdefgh")
    assert b"".join(taken) == b"abcdefgh"


@pytest.mark.parametrize(("number", "raised"), [(errno.EINVAL, errno.EPIPE), (errno.ENOSPC, errno.ENOSPC)])
def test_a_reader_that_has_gone(number: int, raised: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows calls it an invalid argument. Other failures stay what they are."""

    class Gone:
        def write(self, data: bytes) -> int:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(_windows, "_file", lambda descriptor, mode: Gone())
    with pytest.raises(OSError, match=os.strerror(raised)) as caught:
        _windows.write_all(1, b"a")
    assert isinstance(caught.value, BrokenPipeError) == (raised == errno.EPIPE)


def test_names_of_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern is the files that it names, in order; what names none, and a file with brackets in its name, stays."""
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "c[1].txt", "c1.txt"):
        Path(name).touch()
    assert _windows.expand(["?.txt", "-", "*.md", "c[1].txt"]) == ["a.txt", "b.txt", "-", "*.md", "c[1].txt"]


def test_a_pipe_obeys_no_escape_codes(pipe: tuple[int, int]) -> None:
    """Nor does anything that is no console."""
    assert not _windows.obeys_escape_codes(pipe[1])


@needs_posix
def test_systems_with_posix_import_none_of_it() -> None:
    """The filter starts fast."""
    code = "import asides._cli.filter, asides.terminal, sys; print('asides._windows' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"
