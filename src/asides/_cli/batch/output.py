"""What `asides batch` writes: a file for each range, and all of them joined into the output in the order of the input.

A file gets its name when it is complete and on the disk (`finished_file`): until then it is a `.tmp` that nobody reads.
Joining is the part that one process does alone, so it only copies: ranges of JSON Lines are put one behind the other,
compressed or not, and so are the row groups of Parquet (`parquet_join`). Ranges of an Arrow file are Arrow streams. So
are ranges of JSON Lines that become columns: a batch may have other columns than the one before, and begins a stream of
its own in the same file; when all have been seen, `RangeFile` encodes each range with the columns of all.

    RangeFile(...).write_table / write_records        in a worker, one range
    Joining(...).add(path) ... finish()               in the parent, range after range
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from ...errors import UsageError
from ..inputs.addresses import is_remote, upload
from ..inputs.files import STANDARD_OUTPUT
from ..inputs.kinds import COMPRESSIONS, ENDINGS, Compression, InputKind, kind_of
from ..streams import STDOUT, OutputStream
from .parquet_join import ParquetJoin
from .records import storable, to_array

OUTPUTS: tuple[InputKind, ...] = ("parquet", "arrow", "jsonl")
GROUP_BYTES = 32 << 20
"""Bytes of a row group that is written, before it is encoded."""
JSON_TEXT = {b"asides": b"json"}
"""On a column whose values had types that no column can hold together: each value is JSON as text."""


def output_kind(path: str) -> tuple[InputKind, Compression]:
    """What an output is, by its name."""
    if path == STANDARD_OUTPUT:
        return "jsonl", ""
    found = kind_of(path)
    if found is None or found[0] not in OUTPUTS:
        written = [ending for ending, kind in ENDINGS.items() if kind in OUTPUTS]
        endings = ", ".join([*written, *(f".jsonl{ending}" for ending in COMPRESSIONS)])
        raise UsageError(f"{path}: the name of the output must end in one of {endings}")
    return found


@contextmanager
def finished_file(path: str) -> Iterator[IO[bytes]]:
    """A file that has its name only when it is whole and on the disk. Fails with nothing left behind."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(os.path.dirname(path))
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def sync_folder(path: str) -> None:
    """Put the names in a folder on the disk."""
    descriptor = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def deliver(made: str, output: str) -> None:
    """Give a finished file the name of the output, here or at an address: all of it at once. `-` is standard output."""
    if output == STANDARD_OUTPUT:
        stream = OutputStream(STDOUT)
        with open(made, "rb") as lines:
            while piece := lines.readlines(1 << 20):
                stream.write_bytes(b"".join(piece))
                stream.flush()
        os.unlink(made)
        return
    if is_remote(output):
        upload(made, output)
        os.unlink(made)
        return
    try:
        os.replace(made, output)
        sync_folder(os.path.dirname(output))
    except OSError as error:
        if error.errno != errno.EXDEV:  # the working folder is on another disk
            raise
        with finished_file(output) as file, open(made, "rb") as source:
            shutil.copyfileobj(source, file, 1 << 20)
        os.unlink(made)


class RangeFile:
    """The file of one range."""

    def __init__(self, file: IO[bytes], kind: InputKind, compression: Compression, schema: Any) -> None:
        """`schema`: the columns of the output where they are known beforehand."""
        self._kind = kind
        self._schema = schema
        self._file: Any = file
        if kind == "jsonl" and compression:
            self._file = _compressed(file, compression)
        self._compressed = self._file is not file
        self._stream: Any = None
        self.schemas: list[Any] = []
        """The columns of the streams so far, each once."""
        self._stream_schema: Any = None
        self._parquet: Any = None
        if kind == "parquet" and schema is not None:
            self._parquet = pq.ParquetWriter(file, schema)
        self._group: list[Any] = []
        self._group_size = 0

    def write_table(self, batch: Any, fields: Sequence[str], columns: dict[str, Any]) -> None:
        """Rows of a table: these of its columns, and the new ones."""
        whole = {name: batch.column(name) for name in fields} | columns
        self._write_batch(pa.record_batch(list(whole.values()), names=list(whole)))

    def write_records(self, records: Sequence[dict[str, Any]], columns: dict[str, Any]) -> None:
        """Records and their new columns."""
        if self._kind == "jsonl":
            rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
            for record, row in zip(records, rows, strict=True):
                self._file.write(_encoded({**record, **dict(zip(columns, row, strict=True))}))
            return
        names = dict.fromkeys(name for record in records for name in record)
        fields, arrays = [], []
        for name in names:
            array, metadata = _inferred([record.get(name) for record in records])
            arrays.append(array)
            fields.append(pa.field(storable(name), array.type, metadata=metadata))
        fields += [pa.field(name, column.type) for name, column in columns.items()]
        self._write_batch(pa.record_batch([*arrays, *columns.values()], schema=pa.schema(fields)))

    def _write_batch(self, batch: Any) -> None:
        if self._kind == "jsonl":
            for row in batch.to_pylist():
                self._file.write(_encoded(row))
            return
        if self._schema is not None:
            batch = conform(batch, self._schema)
        if self._parquet is not None:
            self._group.append(batch)
            self._group_size += batch.nbytes
            if self._group_size >= GROUP_BYTES:
                self._write_group()
            return
        if self._stream is None or not self._stream_schema.equals(batch.schema, check_metadata=True):
            self._close_stream()
            self._stream, self._stream_schema = pa.ipc.new_stream(self._file, batch.schema), batch.schema
            if not any(schema.equals(batch.schema, check_metadata=True) for schema in self.schemas):
                self.schemas.append(batch.schema)
        self._stream.write_batch(batch)

    def write_ranges_file(self, path: str) -> None:
        """The streams of another range's file, in the columns of this one."""
        for stream in read_streams(path):
            for batch in stream:
                self._write_batch(batch)

    def _write_group(self) -> None:
        table = pa.Table.from_batches(self._group, self._schema)
        self._parquet.write_table(table, row_group_size=max(1, table.num_rows))
        self._group, self._group_size = [], 0

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def abandon(self) -> None:
        """Write no more: the file will not be used."""
        if self._parquet is not None:
            self._parquet.is_open = False  # else it would write the end when it is collected, into a closed file

    def close(self) -> None:
        """Write what is left. The file itself stays open."""
        self._close_stream()
        if self._parquet is not None:
            if self._group:
                self._write_group()
            self._parquet.close()
        if self._compressed:
            self._file.close()


class _Unclosed:
    """A file that a compressor may close without closing it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.flush = file.flush
        self.closed = False

    def write(self, data: bytes) -> int:
        # When writing failed, the compressor still writes its end as it is collected; the file is gone by then.
        return len(data) if self._file.closed else self._file.write(data)

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def _compressed(file: IO[bytes], compression: Compression) -> Any:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, filename="", mtime=0)
    return pa.CompressedOutputStream(pa.PythonFile(_Unclosed(file), mode="w"), compression)


def _encoded(record: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(record) + b"\n"
    except (UnicodeEncodeError, TypeError, ValueError):  # half a surrogate pair, which json writes as it was written
        return json.dumps(record, default=str).encode() + b"\n"


def _inferred(values: list[Any]) -> tuple[Any, dict[bytes, bytes] | None]:
    """An array of values from JSON, and what is special about it."""
    try:
        array = to_array(values)
        if _storable_type(array.type):
            return array, None
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    return _json_array(values), JSON_TEXT


def _storable_type(type: Any) -> bool:
    """Whether Parquet can hold it: a struct without fields it cannot."""
    if pa.types.is_struct(type):
        return type.num_fields > 0 and all(_storable_type(field.type) for field in type)
    return _storable_type(type.value_type) if pa.types.is_list(type) else True


def _json_array(values: Sequence[Any]) -> Any:
    return pa.array([None if value is None else json.dumps(value, default=str) for value in values], pa.string())


def conform(batch: Any, schema: Any) -> Any:
    """The batch with exactly these columns: missing ones are null, others are cast."""
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    arrays = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        if at < 0:
            arrays.append(pa.nulls(batch.num_rows, field.type))
            continue
        array = batch.column(at)
        if field.metadata == JSON_TEXT and batch.schema.field(at).metadata != JSON_TEXT:
            array = _json_array(array.to_pylist())
        arrays.append(array if array.type.equals(field.type) else array.cast(field.type))
    return pa.record_batch(arrays, schema=schema)


def unify(schemas: Sequence[Any], *, refuse: Callable[[str, list[Any]], Exception] | None = None) -> Any:
    """One schema for all. Types that do not go together become JSON as text, or are refused."""
    names = dict.fromkeys(name for schema in schemas for name in schema.names)
    fields = []
    for name in names:
        found = [schema.field(name) for schema in schemas if name in schema.names]
        plain = [field for field in found if not pa.types.is_null(field.type)]
        types: list[Any] = []
        for field in plain:
            if field.type not in types:
                types.append(field.type)
        if any(field.metadata == JSON_TEXT for field in plain):
            fields.append(pa.field(name, pa.string(), metadata=JSON_TEXT))
            continue
        try:
            merged = pa.unify_schemas(
                [pa.schema([(name, type)]) for type in types or [pa.null()]], promote_options="permissive"
            )
            fields.append(pa.field(name, merged.field(0).type))
        except (pa.ArrowException, TypeError):
            if refuse is not None:
                raise refuse(name, types) from None
            fields.append(pa.field(name, pa.string(), metadata=JSON_TEXT))
    return pa.schema(fields)


def read_streams(path: str) -> Iterator[Any]:
    """The Arrow streams of a range's file."""
    with pa.OSFile(path) as file:  # not mapped, so that a range of any length takes the memory of a batch
        while file.tell() < file.size():
            yield pa.ipc.open_stream(file)


def write_schemas(file: IO[bytes], schemas: Sequence[Any]) -> None:
    """Columns alone: streams without rows."""
    for schema in schemas:
        pa.ipc.new_stream(file, schema).close()


def read_schemas(path: str) -> Iterator[Any]:
    """The columns that `write_schemas` has written."""
    for stream in read_streams(path):
        yield stream.schema
        for _ in stream:  # the next one stands behind its end
            pass


class Joining:
    """The output while it grows. Memory does not, but for the footer of Parquet."""

    def __init__(self, file: IO[bytes], kind: InputKind, schema: Any) -> None:
        """`schema`: the columns; for JSON Lines none."""
        self._file = file
        self._kind = kind
        self._schema = schema
        self._parquet = ParquetJoin(file) if kind == "parquet" else None
        self._arrow = pa.ipc.new_file(file, schema) if kind == "arrow" else None

    def add(self, path: str) -> None:
        """Add a range."""
        if self._parquet is not None:
            self._parquet.add(path)
        elif self._arrow is not None:
            for stream in read_streams(path):
                for batch in stream:
                    self._arrow.write_batch(conform(batch, self._schema))
        else:
            with open(path, "rb") as file:
                shutil.copyfileobj(file, self._file, 1 << 20)

    def finish(self) -> None:
        """Write the end."""
        if self._parquet is not None and self._parquet.empty:
            pq.write_table(self._schema.empty_table(), self._file)
        elif self._parquet is not None:
            self._parquet.finish()
        elif self._arrow is not None:
            self._arrow.close()
