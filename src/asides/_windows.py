"""What Windows does differently with the standard streams. Other systems import nothing of it.

    a pipe      cannot be waited for with `select`, so a thread reads it and a queue is waited for; when its reader has
                gone, writing fails as an invalid argument
    a console   has texts in UTF-16; the files that Python opens on one translate from and to UTF-8. It obeys escape
                codes once it is asked to

Nothing here is particular to Windows in how it runs, except `obeys_escape_codes`, so that tests run it everywhere.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from io import FileIO
from queue import Empty, Queue
from threading import Thread

TICK = 0.1
"""Seconds after which is looked whether Ctrl-C came: a signal does not end a wait there."""
AHEAD = 16
"""Chunks that are read before someone takes them."""
PIECE = 8192
"""Bytes that a console is given at once. It takes some 16,000 characters, and may tear the last of a longer text."""
VIRTUAL_TERMINAL = 0x0004
"""The bit of a console's mode with which it obeys escape codes."""


def read_chunks(
    descriptor: int, size: int, idle: Callable[[], float | None], stopped: Callable[[], bool]
) -> Iterator[bytes]:
    """What arrives at a descriptor, as it arrives, until its end or until it is stopped.

    When nothing arrives for as long as `idle` says, that is nothing: an empty chunk.
    """
    if stat.S_ISREG(os.fstat(descriptor).st_mode):  # nobody waits for a file
        while not stopped() and (data := os.read(descriptor, size)):
            yield data
        return
    chunks: Queue[bytes | OSError] = Queue(AHEAD)
    Thread(target=_read_ahead, args=(descriptor, size, chunks), daemon=True).start()
    while not stopped():
        seconds = idle()
        try:
            chunk = chunks.get(timeout=TICK if seconds is None else seconds)
        except Empty:
            if seconds is not None:
                yield b""
            continue
        if isinstance(chunk, OSError):
            raise chunk
        if not chunk:
            return
        yield chunk
    # What had come before Ctrl-C is the writer's last words. A writer that never stops must not keep us.
    for _ in range(min(AHEAD, chunks.qsize())):
        chunk = chunks.get()
        if isinstance(chunk, bytes):
            yield chunk


def _read_ahead(descriptor: int, size: int, chunks: Queue[bytes | OSError]) -> None:
    try:
        while data := _file(descriptor, "rb").read(size):
            chunks.put(data)
        chunks.put(b"")
    except OSError as error:
        chunks.put(error)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it, however often it takes; waits while nobody reads the other end."""
    file = _file(descriptor, "wb")
    try:
        while data:
            data = data[file.write(data[: _character_end(data, PIECE)]) :]
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
        raise


def _character_end(data: bytes, most: int) -> int:
    """Where to cut UTF-8 so that at most so many bytes stand before, and no character is torn."""
    if len(data) <= most:
        return len(data)
    end = most
    while end > most - 4 and data[end] & 0xC0 == 0x80:
        end -= 1
    return end


@cache
def _file(descriptor: int, mode: str) -> FileIO:
    """A file without a buffer; on a console one that translates. The descriptor stays whose it is."""
    file = open(descriptor, mode, buffering=0, closefd=False)  # noqa: SIM115
    assert hasattr(file, "read")  # of a console it is another class, with the same methods
    return file  # type: ignore[return-value]


def expand(paths: Iterable[str]) -> list[str]:
    """The files that are meant by `*.txt`, which shells there leave to the program; what names none stays as it is."""
    return [file for path in paths for file in (not os.path.exists(path) and sorted(glob.glob(path))) or [path]]


def obeys_escape_codes(descriptor: int) -> bool:
    """Ask a console to obey escape codes; False where it does not know them, or where it is none."""
    if sys.platform != "win32":
        return False
    import ctypes
    import msvcrt

    kernel = ctypes.windll.kernel32
    handle = ctypes.c_void_p(msvcrt.get_osfhandle(descriptor))
    mode = ctypes.c_ulong()
    if not kernel.GetConsoleMode(handle, ctypes.byref(mode)):
        return False
    return bool(mode.value & VIRTUAL_TERMINAL or kernel.SetConsoleMode(handle, mode.value | VIRTUAL_TERMINAL))
