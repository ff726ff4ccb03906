"""Joining Parquet files without decoding them: their bytes one behind the other, and one footer for all.

A Parquet file is `PAR1`, the pages of its row groups, a footer (a Thrift record in the compact protocol), the length of
the footer, `PAR1`. The footer says where in the file each column of each row group stands. So files with the same
columns are joined by copying what stands before their footers and by moving those places along. The workers of a job
encode their ranges, and the one process that joins them only copies: encoding is a third of the work, and would
otherwise be done by one process however many there are.

    join = ParquetJoin(file)
    join.add("range-000000.rows") ...
    join.finish()

Only places are known here; every other field of a footer is carried over as it was read,
also one that a later version of Parquet adds. See `parquet.thrift` of the Parquet format for the numbers.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from typing import IO, Any

from ...errors import Error

MAGIC = b"PAR1"
_TAIL = struct.Struct("<I4s")
"""The end of a file: the length of its footer, and the magic."""

# Types of the compact protocol. A field holds (type, value); a record is a dictionary of fields by number.
_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _RECORD, _UUID = range(1, 14)
_BIG = 32_767
"""The largest number that a row group can have; the field is optional and is left out beyond it."""

_ROWS, _GROUPS = 3, 4
"""Fields of a footer."""
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
"""Fields of a row group."""
_METADATA = 3
"""The field of a column that says what its pages are."""
_COLUMN_OFFSETS = (2, 4, 6)
"""Places in a column: of its metadata, of two indexes of its pages."""
_METADATA_OFFSETS = (9, 10, 11, 14)
"""Places in a column's metadata: of its first page, of an index, of its dictionary, of a Bloom filter."""

_Record = dict[int, tuple[int, Any]]


class ParquetJoin:
    """A Parquet file that grows by other files, all with the same columns."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._footer: _Record = {}
        self._groups: list[bytes] = []
        self._rows = 0
        self._at = 0

    def add(self, path: str) -> None:
        """Add a file's row groups."""
        with open(path, "rb") as source:
            length, footer = _read_footer(source, path)
            if not self._footer:
                self._footer = footer
                self._at += self._file.write(MAGIC)
            moved = self._at - len(MAGIC)
            for group in footer[_GROUPS][1][1]:
                _move_group(group, moved, len(self._groups))
                written = bytearray()
                _write_record(written, group)
                self._groups.append(bytes(written))  # as bytes: a footer of many files is large as objects
            self._rows += footer[_ROWS][1]
            source.seek(len(MAGIC))
            self._copy(source, length - len(MAGIC))

    def _copy(self, source: IO[bytes], left: int) -> None:
        self._at += left
        while left:
            piece = source.read(min(left, 1 << 20))
            self._file.write(piece)
            left -= len(piece)

    @property
    def empty(self) -> bool:
        """Whether no file was added, so that nothing is known of the columns."""
        return not self._footer

    def finish(self) -> None:
        """Write the footer. There must have been a file."""
        written = bytearray()
        self._footer[_ROWS] = (_LONG, self._rows)
        self._footer[_GROUPS] = (_LIST, (_RECORD, self._groups))
        _write_record(written, self._footer)
        self._file.write(written + _TAIL.pack(len(written), MAGIC))


def _read_footer(source: IO[bytes], path: str) -> tuple[int, _Record]:
    """The length of what stands before a file's footer, and the footer."""
    size = source.seek(0, os.SEEK_END)
    if size >= len(MAGIC) + _TAIL.size:
        source.seek(size - _TAIL.size)
        length, magic = _TAIL.unpack(source.read(_TAIL.size))
        start = size - _TAIL.size - length
        if magic == MAGIC and start >= len(MAGIC):
            source.seek(start)
            with suppress(IndexError, ValueError):
                return start, _FooterReader(source.read(length)).record()
    raise Error(f"{path}: is damaged; --force begins anew")


def _move_group(group: _Record, by: int, number: int) -> None:
    """Move a row group along its file."""
    _move(group, (_GROUP_OFFSET,), by)
    if group.pop(_ORDINAL, None) and number <= _BIG:
        group[_ORDINAL] = (_SHORT, number)
    for column in group[_COLUMNS][1][1]:
        _move(column, _COLUMN_OFFSETS, by)
        _move(column[_METADATA][1], _METADATA_OFFSETS, by)


def _move(record: _Record, fields: tuple[int, ...], by: int) -> None:
    for field in fields:
        if field in record and record[field][1]:  # 0 is written for a place that there is none of
            record[field] = (_LONG, record[field][1] + by)


class _FooterReader:
    """Reads the compact protocol."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def record(self) -> _Record:
        """The fields of a record, by their numbers."""
        found: _Record = {}
        number = 0
        while kind := self._byte():
            step, kind = kind >> 4, kind & 15
            number = number + step if step else self._signed()
            found[number] = (_TRUE, kind == _TRUE) if kind in (_TRUE, _FALSE) else (kind, self._value(kind))
        return found

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 128:
            value |= (byte & 127) << shift
            shift += 7
        return value | byte << shift

    def _signed(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _value(self, kind: int) -> Any:
        if kind in (_SHORT, _INT, _LONG):
            return self._signed()
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind == _RECORD:
            return self.record()
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._unsigned()
            return head & 15, [self._value(head & 15) for _ in range(count)]
        if kind in (_TRUE, _FALSE, _BYTE):  # truth values in a list are bytes
            return self._byte()
        if kind in (_DOUBLE, _UUID):
            return self._bytes(8 if kind == _DOUBLE else 16)
        raise ValueError(f"a footer with a field of the type {kind}")


def _write_record(out: bytearray, record: _Record) -> None:
    before = 0
    for number in sorted(record):
        kind, value = record[number]
        shown = kind if kind != _TRUE else _TRUE if value else _FALSE
        if 0 < number - before < 16:
            out.append((number - before) << 4 | shown)
        else:
            out.append(shown)
            _write_signed(out, number)
        if kind != _TRUE:
            _write_value(out, kind, value)
        before = number
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (_SHORT, _INT, _LONG):
        _write_signed(out, value)
    elif kind == _BINARY:
        _write_unsigned(out, len(value))
        out += value
    elif kind == _RECORD and isinstance(value, dict):
        _write_record(out, value)
    elif kind in (_LIST, _SET):
        each, values = value
        if len(values) < 15:
            out.append(len(values) << 4 | each)
        else:
            out.append(0xF0 | each)
            _write_unsigned(out, len(values))
        for item in values:
            _write_value(out, each, item)
    elif kind in (_TRUE, _FALSE, _BYTE):
        out.append(value)
    else:  # a number that is no integer, or a record that is written already
        out += value


def _write_signed(out: bytearray, value: int) -> None:
    _write_unsigned(out, value << 1 ^ value >> 63)


def _write_unsigned(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
