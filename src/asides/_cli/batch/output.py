"""What `asides batch` writes: a file for each range, and all of them joined into the output in the order of the input.

A file gets its name when it is complete and on the disk (`finished_file`): until then it is a `.tmp` that nobody reads.
Ranges of an output in columns are Arrow streams, which cost little to write and to read; the join encodes them
once. Where the columns are known beforehand there is one stream to a range; from JSON Lines a batch may have other
columns than the one before, and begins a stream of its own in the same file. Ranges of JSON Lines are simply put one
behind the other, compressed or not.

    RangeFile(...).write_table / write_records        in a worker, one range
    Joining(...).add(path) ... finish()               in the parent, range after range
"""

from __future__ import annotations

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
from .inputs import COMPRESSIONS, ENDINGS, Compression, InputKind, kind_of
from .records import storable, to_array

GROUP_BYTES = 32 << 20
"""Bytes of a row group that is written, before it is encoded."""
JSON_TEXT = {b"asides": b"json"}
"""On a column whose values had types that no column can hold together: each value is JSON as text."""


def output_kind(path: str) -> tuple[InputKind, Compression]:
    """What an output is, by its name."""
    found = kind_of(path)
    if found is None:
        endings = ", ".join([*ENDINGS, *(f".jsonl{ending}" for ending in COMPRESSIONS)])
        raise UsageError(f"{path}: the name of the output says what it is: it ends in {endings}")
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
        self._stream_schema: Any = None

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
        if self._stream is None or not self._stream_schema.equals(batch.schema, check_metadata=True):
            self.close()
            self._stream, self._stream_schema = pa.ipc.new_stream(self._file, batch.schema), batch.schema
        self._stream.write_batch(batch)

    def close(self) -> None:
        """Write what is left. The file itself stays open."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
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


class Joining:
    """The output while it grows. Memory does not."""

    def __init__(self, file: IO[bytes], kind: InputKind, schema: Any) -> None:
        """`schema`: the columns; for JSON Lines none."""
        self._file = file
        self._kind = kind
        self._schema = schema
        self._writer: Any = None
        if kind == "parquet":
            self._writer = pq.ParquetWriter(file, schema)
        elif kind == "arrow":
            self._writer = pa.ipc.new_file(file, schema)

    def add(self, path: str) -> None:
        """Add a range."""
        if self._kind == "jsonl":
            with open(path, "rb") as file:
                shutil.copyfileobj(file, self._file, 1 << 20)
            return
        batches: list[Any] = []
        size = 0
        for stream in read_streams(path):
            for batch in stream:
                batches.append(conform(batch, self._schema))
                size += batch.nbytes
                if size >= GROUP_BYTES:
                    self._write(batches)
                    batches, size = [], 0
        if batches:
            self._write(batches)

    def _write(self, batches: list[Any]) -> None:
        table = pa.Table.from_batches(batches, self._schema)
        if self._kind == "parquet":
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        else:
            self._writer.write_table(table)

    def abandon(self) -> None:
        """Write no more: the file will not be used."""
        if self._kind == "parquet":
            self._writer.is_open = False  # else it would write the end when it is collected, into a closed file

    def finish(self) -> None:
        """Write the end."""
        if self._writer is not None:
            self._writer.close()
