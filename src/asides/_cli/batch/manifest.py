"""The folder `OUT.partial`: what a job has finished, so that another can go on where it was killed.

`manifest.jsonl` begins with what the job is: its inputs, each with size and time, and the options that its rows depend
on. Then comes a line for each finished range, written when the range's file is whole, on the disk and has its name. A
line that a kill cut off is dropped, and its range is split again. Who works in the folder holds a lock on it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from typing import IO, Any

import msgspec

from ... import __version__
from ...errors import UsageError
from ..inputs.files import BatchInput
from .inputs import RowRange
from .output import sync_folder
from .summary import BatchSummary

NAME = "manifest.jsonl"


class JobHeader(msgspec.Struct, frozen=True):
    """What a job is."""

    asides: str
    inputs: list[BatchInput]
    options: dict[str, Any]
    ranges: int


class FinishedRange(msgspec.Struct, frozen=True):
    """A range whose file is whole."""

    range: int
    input: str
    row_groups: tuple[int, int]
    """Row groups, record batches or, for JSON Lines, bytes; half open."""
    lines: int
    """Lines of JSON Lines that it has, blank ones too."""
    summary: BatchSummary


class PartialFolder:
    """The folder of an unfinished job, locked."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.finished: dict[int, FinishedRange] = {}
        self._manifest: IO[bytes] | None = None
        self._lock: int | None = None

    def file(self, number: int, ending: str = "rows") -> str:
        """The path of a range's file, or of another file beside it."""
        return os.path.join(self.path, f"range-{number:06d}.{ending}")

    def begin(self, header: JobHeader, *, resume: bool, force: bool) -> None:
        """Make the folder, or go on in it."""
        exists = os.path.isdir(self.path)
        if exists and not resume and not force:
            raise UsageError(
                f"{self.path} is left from a job that was stopped; --resume continues it, --force starts again"
            )
        os.makedirs(self.path, exist_ok=True)
        self._take_lock()
        if exists and resume:
            self._read(header)
        elif exists:
            for name in os.listdir(self.path):
                if name != "lock":
                    os.unlink(os.path.join(self.path, name))
        for name in os.listdir(self.path):
            if name.endswith(".tmp"):
                os.unlink(os.path.join(self.path, name))
        self._manifest = open(os.path.join(self.path, NAME), "ab")  # noqa: SIM115  # closed by `close`
        if not self._manifest.tell():
            self._append(header)
            sync_folder(self.path)

    def add(self, number: int, done: RowRange, input: BatchInput, lines: int, summary: BatchSummary) -> None:
        """Note that a range is finished."""
        entry = FinishedRange(number, input.path, (done.start, done.stop), lines, summary)
        self._append(entry)
        self.finished[number] = entry

    def _append(self, entry: msgspec.Struct) -> None:
        assert self._manifest is not None
        before = self._manifest.tell()
        try:
            self._manifest.write(msgspec.json.encode(entry) + b"\n")
            self._manifest.flush()
            os.fsync(self._manifest.fileno())
        except OSError as error:
            os.truncate(self._manifest.fileno(), before)
            error.filename = error.filename or self._manifest.name
            raise

    def _take_lock(self) -> None:
        if sys.platform == "win32":
            raise NotImplementedError  # nor has it an fcntl to import
        self._lock = os.open(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{self.path}: another job is writing this output") from None

    def _read(self, header: JobHeader) -> None:
        """What is finished; refuses a job that is another one."""
        path = os.path.join(self.path, NAME)
        if not os.path.exists(path):
            return
        with open(path, "rb") as file:
            *lines, rest = file.read().split(b"\n")
        if rest:
            os.truncate(path, os.path.getsize(path) - len(rest))
        if not lines:
            return
        try:
            _compare(msgspec.json.decode(lines[0], type=JobHeader), header)
            entries = [msgspec.json.decode(line, type=FinishedRange) for line in lines[1:]]
        except msgspec.DecodeError as error:
            raise UsageError(f"{path}: cannot be read ({error}); --force starts again") from error
        self.finished = {entry.range: entry for entry in entries if os.path.exists(self.file(entry.range))}

    def close(self) -> None:
        """Leave the folder to whoever comes next."""
        if self._manifest is not None:
            self._manifest.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def remove(self) -> None:
        """Take the folder away: the output is complete."""
        shutil.rmtree(self.path)


def _compare(old: JobHeader, new: JobHeader) -> None:
    differences = [*_differences(old, new)]
    if differences:
        raise UsageError(
            f"--resume: this is not the job that was stopped: {'; '.join(differences)}. "
            "Run the same command as before, or start again with --force"
        )


def _differences(old: JobHeader, new: JobHeader) -> Iterator[str]:
    if old.asides != new.asides:
        yield f"asides was {old.asides}, is {new.asides}"
    for name in sorted(old.options.keys() | new.options.keys()):
        before, now = old.options.get(name), new.options.get(name)
        if before != now:
            yield f"{name} was {_shown(before)}, is {_shown(now)}"
    had, has = ({input.path: input for input in header.inputs} for header in (old, new))
    for path in had.keys() | has.keys():
        if path not in has:
            yield f"{path} is no input any more"
        elif path not in had:
            yield f"{path} was no input"
        elif had[path] != has[path]:
            yield f"{path} has changed"
    if list(had) != list(has) and had.keys() == has.keys():
        yield "the inputs have another order"


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."


def header_of(inputs: list[BatchInput], options: dict[str, Any], ranges: int) -> JobHeader:
    """The header of a job, as it would be read from the disk."""
    made = JobHeader(__version__, inputs, options, ranges)
    return msgspec.json.decode(msgspec.json.encode(made), type=JobHeader)
