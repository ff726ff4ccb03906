"""Tables of replies: Parquet files by row groups, Arrow files by record batches. Imports Arrow when one is opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from typing import Any

from ..._extras import install_command
from ...errors import UsageError
from .addresses import is_remote
from .files import BatchInput, open_file

CHUNK = 1 << 20
BATCH_ROWS = 2048
BATCH_BYTES = 8 << 20
"""Rows, and bytes, of which as many are in memory at once as the smaller of the two allows."""


def pyarrow(why: str = "files of Parquet and Arrow need pyarrow") -> Any:
    """The package, or an error that says how to get it."""
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise UsageError(f"{why}, which is not installed: {install_command('pyarrow')}") from error


class _ParquetTable:
    """A Parquet file, by row groups."""

    def __init__(self, file: Any, remote: bool) -> None:
        # With a buffer, a row group is read as it is needed; without, each of its columns is in memory as a whole. At
        # an address that is better: few requests for long stretches.
        self._file = import_module("pyarrow.parquet").ParquetFile(
            file, pre_buffer=remote, buffer_size=0 if remote else CHUNK
        )
        self.schema = self._file.schema_arrow

    def groups(self) -> Iterator[tuple[int, int]]:
        """Bytes and rows of each row group."""
        about = self._file.metadata
        for number in range(about.num_row_groups):
            yield about.row_group(number).total_byte_size, about.row_group(number).num_rows

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        """Batches of so many rows at most, of the groups from `start` to `stop`; fewer where rows are long."""
        sizes = list(self.groups())[start:stop]
        longest = max((size / count for size, count in sizes if count), default=0)
        if longest:
            rows = max(1, min(rows, int(BATCH_BYTES // longest)))
        yield from self._file.iter_batches(rows, row_groups=range(start, start + len(sizes)), use_threads=False)


class _ArrowTable:
    """An Arrow file, by record batches, whether it has a table of contents or is a stream (as `datasets` writes)."""

    def __init__(self, file: Any) -> None:
        arrow = pyarrow()
        try:
            self._file = arrow.ipc.open_file(file)
        except arrow.ArrowInvalid:
            file.seek(0)
            self._file = None
            self._stream = arrow.ipc.open_stream(file)
        self.schema = (self._file or self._stream).schema

    def groups(self) -> Iterator[tuple[int, int]]:
        """Bytes and rows of each record batch."""
        for batch in self._read(0, None):
            yield batch.nbytes, batch.num_rows

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        """Batches of so many rows at most, of the record batches from `start` to `stop`."""
        for batch in self._read(start, stop):
            for at in range(0, batch.num_rows, rows):
                yield batch.slice(at, rows)

    def _read(self, start: int, stop: int | None) -> Iterator[Any]:
        if self._file is not None:
            for number in range(start, self._file.num_record_batches if stop is None else stop):
                yield self._file.get_batch(number)
            return
        for number, batch in enumerate(self._stream):
            if number == stop:
                return
            if number >= start:
                yield batch


@contextmanager
def open_table(input: BatchInput) -> Iterator[_ParquetTable | _ArrowTable]:
    """A file in columns. An Arrow file is mapped into memory, so that batches that are passed over cost nothing."""
    arrow = pyarrow()
    parquet = input.kind == "parquet"
    mapped = not parquet and not is_remote(input.path) and input.size
    with closing(arrow.memory_map(input.path) if mapped else open_file(input.path)) as file:
        try:
            opened = _ParquetTable(file, is_remote(input.path)) if parquet else _ArrowTable(file)
        except (arrow.ArrowException, OSError) as error:
            raise UsageError(
                f"{input.shown}: not {'a Parquet' if parquet else 'an Arrow'} file: {brief(error)}"
            ) from error
        yield opened


def brief(error: BaseException) -> str:
    """The first line of what an error says."""
    return str(error).partition("\n")[0].strip() or type(error).__name__
