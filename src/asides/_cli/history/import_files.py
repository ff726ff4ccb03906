"""`asides history import`: files of replies into the store, a batch at a time.

Files are read as by `asides stats` and `asides batch`: the same kinds, the same field is taken for the output. A row
that cannot be read is named and the others are saved; so is what was read of a file that is damaged further on.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ..._history import History, KeptReply
from ..._history.imports import is_own, keep_found, read_own
from ...analysis._traces import find_replies
from ...errors import Error, UsageError
from ...reading import Reading
from ...terminal._table import amount
from .. import FAILED, INTERRUPTED, OK
from ..filter import chosen_reading
from ..inputs.addresses import changed_at, is_remote
from ..inputs.files import STANDARD_INPUT, expand
from ..inputs.kinds import InputKind
from ..inputs.reader import ReplyFile
from ..inputs.rows import InputRow, decoded
from ..streams import Interrupt, complain
from .common import open_store, progress, replies
from .import_asked import find_asked

BATCH = 200
BATCH_CHARACTERS = 4 * 1024 * 1024
MOST_COMPLAINTS = 20
"""Rows of a file that are complained about one by one."""


def import_files(options: argparse.Namespace) -> int:
    """Files of replies into the store."""
    reading = chosen_reading(options, collect=True)
    read = partial(read_record, reading=reading, field=options.field, model=options.model)
    code = OK
    with open_store(options, create=True) as history, Interrupt() as interrupt:
        for given in options.files or [STANDARD_INPUT]:
            try:
                paths = [given] if given == STANDARD_INPUT else expand(given)
            except Error as error:
                complain(str(error))
                code = FAILED
                continue
            for path in paths:
                if not _Import(history, path, options, read).run(interrupt):
                    code = FAILED
                if interrupt.came:
                    complain("stopped; what was read is saved, and the same command continues")
                    return INTERRUPTED
    return code


def read_record(record: Any, reading: Reading, *, time: datetime, field: str = "", model: str = "") -> list[KeptReply]:
    """The replies of a record: of our own export, or with raw outputs. `UsageError` where it holds none.

    `time` and `model` are for records without; `field` names the field with the output.
    """
    if is_own(record) and not field:
        return [read_own(record)]
    if not isinstance(record, dict | str):
        raise UsageError("not a JSON object")
    found = find_replies(record, reading.row_parser(), field)
    if not found.replies:
        where = f"in the field {field!r}" if field else "found; --field names its field"
        raise UsageError(f"no model output {where}")
    labels = record if isinstance(record, dict) else {}
    asked = find_asked(record, found)
    return keep_found(found.replies, labels, asked=asked, format=reading.format.name, time=time, model=model)


class _Import:
    """One file into the store."""

    def __init__(
        self, history: History, path: str, options: argparse.Namespace, read: Callable[..., list[KeptReply]]
    ) -> None:
        self._history = history
        self._path = path
        self._options = options
        self._read = read
        self._failure: OSError | Error | None = None
        self._batch: list[KeptReply] = []
        self._characters = 0
        self._bytes = self._new = self._seen = self._problems = 0

    def run(self, interrupt: Interrupt) -> bool:
        """Read the file to its end or to Ctrl-C; whether all of it could be read."""
        file = ReplyFile(self._path, interrupt, self._options.reads, self._note)
        self._name = file.name
        time, size = _about(self._path)
        self._progress = progress(f"{os.path.basename(self._name)}: imported", size)
        for row, kind in self._rows(file):
            self._take(row, "line" if kind == "jsonl" else "row", time)
            self._progress.show(self._bytes, replies(self._seen))
        self._flush()
        self._progress.clear()
        if self._failure is not None:
            reason = str(self._failure)
            if isinstance(self._failure, OSError):
                reason = self._failure.strerror or reason
            complain(reason if reason.startswith(self._name) else f"{self._name}: {reason}")
        if self._failure is None or self._seen or self._problems:
            there = self._seen - self._new
            complain(
                f"{self._name}: {replies(self._new)} saved"
                + (f", {there:,} already there" if there else "")
                + (f", {amount(self._problems, self._unit, f'{self._unit}s')} skipped" if self._problems else "")
            )
        return self._failure is None and not self._problems

    def _rows(self, file: ReplyFile) -> Iterator[tuple[InputRow, InputKind]]:
        """The rows until the end, or until the file cannot be read any further."""
        try:
            with file:
                kind = file.kind() or ("json" if file.is_array() else "jsonl")
                for row in file.rows(kind, self._options.field):
                    yield row, kind
        except (OSError, Error) as error:
            self._failure = error

    def _note(self, size: int) -> None:
        self._bytes += size

    def _take(self, row: InputRow, unit: str, time: datetime) -> None:
        self._unit = unit
        try:
            record, problem = decoded(row)
            if problem is not None:
                raise UsageError(problem[1])
            found = self._read(record, time=time)
        except UsageError as error:
            self._problems += 1
            if self._problems <= MOST_COMPLAINTS:
                self._progress.clear()
                complain(f"{self._name}, {unit} {row.number + 1}: {error}")
            return
        self._seen += len(found)
        self._batch += found
        self._characters += sum(reply.size for reply in found)
        if len(self._batch) >= BATCH or self._characters >= BATCH_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        if self._batch:
            self._new += self._history.add(self._batch)
        self._batch, self._characters = [], 0


def _about(path: str) -> tuple[datetime, int]:
    """When a file was written, for replies without a time of their own, and its size, 0 where nobody knows.

    The time is the same for every run over the same file, so that such a reply is kept only once.
    """
    if is_remote(path):
        return changed_at(path) or datetime.now(UTC), 0
    if path == STANDARD_INPUT or not os.path.isfile(path):
        return datetime.now(UTC), 0
    about = os.stat(path)
    return datetime.fromtimestamp(about.st_mtime, UTC), about.st_size
