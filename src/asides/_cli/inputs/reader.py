"""A file of replies from its beginning to its end, as rows: for `stats` and `history import`. Decodes no record.

What a file is, its name says and its first bytes: a table, JSON Lines, a JSON array, CSV, compressed or not. It is read
once, so a pipe or an address is as good; a table, which has its contents at its end, is copied from a pipe first.
`batch`, which reads ranges in any order, has a reader of ranges over the same rows.

    with ReplyFile(path, interrupt) as file:
        for row in file.rows(file.kind() or "jsonl"): record, problem = decoded(row)

At Ctrl-C it ends after the last row that is whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, takewhile
from tempfile import NamedTemporaryFile
from typing import Any, Literal, Self

from ..._config.values import suggestion
from ..._descriptor import open_to_read
from ...errors import Error, UsageError
from ..streams import STDIN, Interrupt, split_lines
from .addresses import is_remote
from .files import STANDARD_INPUT, BatchInput, file_chunks
from .kinds import TABLES, InputKind, compression_of, json_kind, kind_of, table_kind
from .rows import InputRow, rows_of, unpacked

Reads = Literal["auto", "text", "traces", "csv"]
"""What somebody says that files are: by name and first bytes, one reply each, JSON, CSV."""
AHEAD = 8 << 20
"""Bytes of a file at an address that are fetched at once."""


class _StoppedError(Exception):
    """Ctrl-C: the input has not ended, and a row that is not whole is none."""


class ReplyFile:
    """One file, an address, or standard input."""

    def __init__(
        self, path: str, interrupt: Interrupt, reads: Reads = "auto", on_read: Callable[[int], object] = int
    ) -> None:
        """`on_read` is called with the size of each chunk."""
        self.path = path
        self.name = "standard input" if path == STANDARD_INPUT else path
        self._interrupt = interrupt
        self._reads = reads
        self._on_read = on_read

    def __enter__(self) -> Self:
        self._source = self._read()
        first = self._first = b""
        with suppress(_StoppedError):
            first = self._first = next(self._source, b"")
        chunks: Iterator[bytes] = chain([first], self._source)
        if self._reads != "text":
            chunks = unpacked(chunks, compression_of(first))
        self._chunks = _Kept(chunks)
        return self

    def __exit__(self, *error: object) -> None:
        self._source.close()

    def kind(self) -> InputKind | None:
        """What the rows are; None where nothing tells: then it is JSON Lines, or no rows but one text."""
        if self._reads == "text":
            return None
        found = kind_of(self.path)
        named = found[0] if found is not None else None
        told = self._reads != "auto"
        if (table := table_kind(self._first)) or (named in TABLES and not told):
            return table or named
        if self._reads == "csv" or (named == "csv" and not told):
            return "csv"
        if named is None and not told:
            return None
        return "json" if named == "json" or self.is_array() else "jsonl"

    def first_line(self) -> bytes:
        """The first line that is not blank, if it may be JSON: else nobody has to wait for its end."""
        first = self._chunks.first()
        if json_kind(first) != "jsonl" and first.strip():
            return b""
        with suppress(_StoppedError):
            return next((line for line in split_lines(self._chunks.look()) if line.strip()), b"")
        return b""

    def is_array(self) -> bool:
        """Whether it begins as a JSON array does, or as values of several lines."""
        return json_kind(self._chunks.first()) == "json"

    def read(self) -> bytes:
        """All of it, or what came until Ctrl-C."""
        pieces: list[bytes] = []
        with suppress(_StoppedError):
            pieces.extend(self._chunks)
        return b"".join(pieces)

    def rows(self, kind: InputKind, field: str = "") -> Iterator[InputRow]:
        """The rows that are not blank. A table must have a column for the field."""
        with suppress(_StoppedError):
            for row in self._table_rows(kind, field) if kind in TABLES else rows_of(kind, self._chunks):
                if not row.blank:
                    yield row

    def _read(self) -> Generator[bytes, None, None]:
        """The bytes, until Ctrl-C; what a pipe holds by then is read, because nobody could read it again."""
        interrupt = self._interrupt
        piped = self.path == STANDARD_INPUT
        descriptor = None
        if is_remote(self.path):
            source = file_chunks(self.path, ahead=AHEAD)
        else:
            descriptor = STDIN if piped else open_to_read(self.path)
            source = interrupt.read(descriptor)
        try:
            for chunk in source if piped else takewhile(lambda chunk: not interrupt.came, source):
                self._on_read(len(chunk))
                yield chunk
        finally:
            if descriptor is not None and not piped:
                os.close(descriptor)
        if interrupt.failure is not None:
            failure, interrupt.failure = interrupt.failure, None
            raise failure
        if interrupt.came:
            raise _StoppedError

    def _table_rows(self, kind: InputKind, field: str) -> Iterator[InputRow]:
        from .tables import BATCH_ROWS, brief, open_table, pyarrow  # here, because text needs no Arrow

        arrow = pyarrow()
        number = 0
        with self._file() as path:
            size = 0 if is_remote(path) else os.path.getsize(path)
            with open_table(BatchInput(path, kind, size=size, name=self.name)) as table:
                names = table.schema.names
                if field and field not in names and field.partition(".")[0] not in names:
                    raise UsageError(f"{self.name}: no column {field!r}{suggestion(field, names)}")
                batches = table.batches(BATCH_ROWS)
                while True:
                    try:
                        batch = next(batches, None)
                    except (arrow.ArrowException, OSError) as error:
                        raise Error(f"{self.name}: damaged after row {number:,}: {brief(error)}") from error
                    if batch is None:
                        return
                    for row in _records(arrow, batch, number):
                        yield row
                        if self._interrupt.came:
                            return
                    number += batch.num_rows

    @contextmanager
    def _file(self) -> Iterator[str]:
        """The path of a file that can be read from its end: a copy, where it is a pipe."""
        if is_remote(self.path) or os.path.isfile(self.path):
            yield self.path
            return
        with NamedTemporaryFile("wb", prefix="asides-input-", delete=False) as file:
            try:
                file.writelines(self._chunks)
                file.close()
                yield file.name
            finally:
                os.unlink(file.name)


def _records(arrow: Any, batch: Any, number: int) -> Iterator[InputRow]:
    """The rows of a batch. One that Python cannot hold, such as a text that is no UTF-8, costs itself alone."""
    for at, each in enumerate(batch.schema):
        if arrow.types.is_timestamp(each.type) and each.type.unit == "ns":  # which only pandas has a value for
            exact = batch.column(at).cast(arrow.timestamp("us", each.type.tz), safe=False)
            batch = batch.set_column(at, each.name, exact)
    try:
        yield from (InputRow(at, value=record) for at, record in enumerate(batch.to_pylist(), number))
        return
    except (ValueError, OverflowError):
        pass
    for at in range(batch.num_rows):
        try:
            yield InputRow(number + at, value=batch.slice(at, 1).to_pylist()[0])
        except UnicodeDecodeError:
            yield InputRow(number + at, problem=("invalid_utf8", "no UTF-8: a value of the row cannot be decoded"))
        except (ValueError, OverflowError) as error:
            yield InputRow(number + at, problem=("unreadable", str(error)))


class _Kept:
    """Chunks of which the first can be looked at, and are given again."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._seen: list[bytes] = []

    def first(self) -> bytes:
        """The first that will be given."""
        with suppress(_StoppedError):
            return next(self.look(), b"")
        return b""

    def look(self) -> Iterator[bytes]:
        """Those that will be given."""
        yield from self._seen
        for chunk in self._chunks:
            self._seen.append(chunk)
            yield chunk

    def __iter__(self) -> Iterator[bytes]:
        yield from self._seen
        self._seen = []
        yield from self._chunks
