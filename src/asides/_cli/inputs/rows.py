"""From the bytes of a file to rows: lines of JSON, elements of a JSON array, records of CSV. Opens no file.

Bytes come in chunks, wherever from, and only the row that is being read is held. A row of JSON is the bytes of it, not
yet decoded, so that it can be handed to another process; a row of CSV is its record. Of a row that is longer than
`longest`, only the beginning is kept. What is wrong with a row is said by `decoded`, and the rows after it go on.

    for row in rows_of("csv", chunks): record, problem = decoded(row)
"""

from __future__ import annotations

import codecs
import csv
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ...analysis._traces import decode
from ...errors import Error
from .kinds import MARK, Compression, InputKind

KEPT = 1_000_000
"""Bytes that are kept of a row that is too long."""
MOST_FIELD = 2**31 - 1
DELIMITERS = ",;\t|"
"""What may stand between the values of CSV: the one that the first line has most of."""
Problem = tuple[str, str]
"""A code, and words."""


class InputRow(msgspec.Struct, frozen=True):
    """One row."""

    number: int
    """From 0 on; of JSON Lines the line, and blank ones count too."""
    data: bytes | bytearray = b""
    """Its JSON."""
    size: int = 0
    """Its bytes; more than `data` has where it is too long to be read."""
    value: Any = None
    """Its record, where it did not come as JSON."""
    problem: Problem | None = None
    """Why it cannot be read, where that is known already."""

    @property
    def blank(self) -> bool:
        """Whether it is an empty line."""
        return self.value is None and self.problem is None and not self.data.strip()


def rows_of(kind: InputKind, chunks: Iterable[bytes], longest: int = sys.maxsize) -> Iterator[InputRow]:
    """The rows of a file that is no table."""
    if kind == "csv":
        return _csv_rows(chunks, longest)
    return _json_rows(chunks, longest) if kind == "json" else _lines(chunks, longest)


def decoded(row: InputRow) -> tuple[Any, Problem | None]:
    """The record of a row, or why there is none."""
    if row.problem is not None or row.value is not None:
        return row.value, row.problem
    if row.size > len(row.data):
        return None, ("too_long", f"a row of {row.size:,} bytes; --row-limit allows more")
    try:
        return msgspec.json.decode(row.data), None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        row.data.decode()
    except UnicodeDecodeError as error:
        return None, ("invalid_utf8", f"no UTF-8: byte {error.start} of the row cannot be decoded")
    try:
        return decode(bytes(row.data)), None
    except json.JSONDecodeError as error:
        return None, ("no_json", f"not valid JSON: {error.msg}, at character {error.pos + 1} of the row")
    except ValueError as error:
        return None, ("no_json", f"not valid JSON: {error}")


class _RowBytes:
    """The row that is being read. Its bytes are never copied, however many chunks it comes in."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._data = bytearray()
        self._size = 0

    def add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._longest:
            self._data += piece
        else:
            most = min(KEPT, self._longest)
            del self._data[most:]
            self._data += piece[: most - len(self._data)]

    def take(self, number: int) -> InputRow:
        data, size = self._data, self._size
        self._data, self._size = bytearray(), 0
        if size <= self._longest and data.endswith(b"\r"):
            del data[-1:]
            size -= 1
        return InputRow(number, data, size)

    def __bool__(self) -> bool:
        return self._size > 0


def _lines(chunks: Iterable[bytes], longest: int) -> Iterator[InputRow]:
    number = 0
    rest = _RowBytes(longest)
    for chunk in chunks:
        if not number and not rest:
            chunk = chunk.removeprefix(MARK)
        *whole, last = chunk.split(b"\n")
        for piece in whole:
            if rest or len(piece) > longest:
                rest.add(piece)
                yield rest.take(number)
            else:
                data = piece.removesuffix(b"\r")
                yield InputRow(number, data, len(data))
            number += 1
        if last:
            rest.add(last)
    if rest:
        yield rest.take(number)


_OUTSIDE = re.compile(rb'["\[\]{},]')
_INSIDE = re.compile(rb'["\\]')


def _json_rows(chunks: Iterable[bytes], longest: int) -> Iterator[InputRow]:
    scanner = _ElementScanner(longest)
    for chunk in chunks:
        yield from scanner.feed(chunk)
    yield from scanner.finish()


class _ElementScanner:
    """Finds the elements of an array; where the file is no array, each value that it holds, one after another.

    Only strings and brackets are looked at, so that an element that is not valid JSON costs itself alone.
    """

    def __init__(self, longest: int) -> None:
        self._row = _RowBytes(longest)
        self._number = 0
        self._level = -1
        """How deep the values are: 1 in an array, else 0; -1 before anything came."""
        self._depth = 0
        self._string = self._escaped = False

    def feed(self, chunk: bytes) -> Iterator[InputRow]:
        """The values that end in a chunk."""
        begin = 0
        if self._level < 0:
            chunk = chunk.lstrip(MARK + b" \t\r\n")
            if not chunk:
                return
            self._level = self._depth = begin = int(chunk.startswith(b"["))
        for stop, after in self._ends(chunk, begin):
            self._row.add(chunk[begin:stop])
            begin = after
            if not (made := self._row.take(self._number)).blank:
                self._number += 1
                yield made
        self._row.add(chunk[begin:])

    def finish(self) -> Iterator[InputRow]:
        """A last value, or what is wrong with the end."""
        made = self._row.take(self._number)
        if self._level > 0 and self._depth:
            yield InputRow(self._number, problem=("no_json", "not valid JSON: the array has no end"))
        elif self._level > 0 and not made.blank:
            yield InputRow(self._number, problem=("no_json", "not valid JSON: something follows the array"))
        elif not made.blank:
            yield made

    def _ends(self, chunk: bytes, at: int) -> Iterator[tuple[int, int]]:
        """Where values end, and where the next may begin. Nothing ends after the array."""
        if self._escaped:
            at, self._escaped = at + 1, False
        while self._depth >= self._level:
            found = (_INSIDE if self._string else _OUTSIDE).search(chunk, at)
            if found is None:
                return
            at, mark = found.end(), found[0]
            if mark == b"\\":
                self._escaped = at == len(chunk)
                at += 1
                continue
            if mark == b'"':
                self._string = not self._string
            elif mark in b"[{":
                self._depth += 1
            elif mark in b"]}":
                self._depth = max(0, self._depth - 1)
            if self._level and (not self._depth or (mark == b"," and self._depth == 1)):
                yield found.start(), at  # before the comma or the bracket of the array
            elif not self._level and not self._depth and not self._string and mark != b",":
                yield at, at  # with its own last mark


def _csv_rows(chunks: Iterable[bytes], longest: int) -> Iterator[InputRow]:
    """Records by the names in the first line. A value may hold line ends, so a row is many lines of the file."""
    csv.field_size_limit(min(longest, MOST_FIELD))
    lines = _text_lines(chunks)
    first = next(lines, "")
    names: list[str] = []
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(_with(first, lines), delimiter=delimiter, strict=True)
    number = 0
    while True:
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if not names:
                raise Error(f"not valid CSV: {error}") from error
            yield InputRow(number, problem=("no_csv", f"not valid CSV: {error}, in or before line {reader.line_num}"))
            number += 1
            if "limit" in str(error):
                return  # in the middle of a value nobody knows where the next row begins
            continue
        if not names:
            names = values
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise Error(f"several columns are named {', '.join(twice)}")
        elif values:
            yield _record(number, names, values)
            number += 1


def _record(number: int, names: list[str], values: list[str]) -> InputRow:
    if len(values) > len(names):
        many = f"the row has {len(values):,} values, the first line names {len(names):,}"
        return InputRow(number, problem=("no_csv", f"not valid CSV: {many}"))
    for value in values:
        if not value.isascii() and any("\udc80" <= character <= "\udcff" for character in value):
            return InputRow(number, problem=("invalid_utf8", "no UTF-8: a value of the row cannot be decoded"))
    record = dict.fromkeys(names) | dict(zip(names, values, strict=False))
    return InputRow(number, size=sum(map(len, values)), value=record)


def _text_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines of text with their ends. Bytes that are no UTF-8 stay in them as halves of surrogate pairs."""
    decoder: codecs.IncrementalDecoder | None = None
    rest: list[str] = []
    for chunk in chunks:
        if decoder is None:
            utf16 = chunk.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            decoder = codecs.getincrementaldecoder("utf-16" if utf16 else "utf-8-sig")("surrogateescape")
        first, *others = decoder.decode(chunk).split("\n")
        rest.append(first)
        if others:
            yield "".join(rest) + "\n"
            yield from (f"{line}\n" for line in others[:-1])
            rest = others[-1:]
    if last := "".join(rest):
        yield last


def _with(first: str, others: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from others


def unpacked(chunks: Iterable[bytes], compression: Compression) -> Iterator[bytes]:
    """What compressed chunks hold. A stream that ends in the middle is an `OSError`, when what there is was given."""
    if not compression:
        return iter(chunks)
    return _unzipped(chunks) if compression == "gzip" else _unpacked_zstd(chunks)


def _unzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    member: Any = None
    for chunk in chunks:
        while chunk:
            member = member or zlib.decompressobj(wbits=31)
            try:
                made = member.decompress(chunk, CHUNK)
                while made:
                    yield made
                    made = member.decompress(member.unconsumed_tail, CHUNK) if member.unconsumed_tail else b""
            except zlib.error as error:
                raise OSError(f"the compressed data is damaged: {error}") from error
            chunk = b""
            if member.eof:  # several files may stand one behind the other
                chunk, member = member.unused_data.lstrip(b"\0"), None
    if member is not None:
        raise OSError("the compressed data ends in the middle")


CHUNK = 1 << 20


class _ChunkFile:
    """Chunks as the file that Arrow wants."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._rest = b""
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes."""
        rest = self._rest or next(self._chunks, b"")
        self._rest = rest[size:]
        return rest[:size]

    def readable(self) -> bool:
        """It is."""
        return True

    def writable(self) -> bool:
        """It is not."""
        return False

    def seekable(self) -> bool:
        """It is not."""
        return False

    def close(self) -> None:
        """Nothing more is read."""
        self.closed = True


def _unpacked_zstd(chunks: Iterable[bytes]) -> Iterator[bytes]:
    from .tables import pyarrow  # here, because little else of a row needs it

    arrow = pyarrow("zstd files need pyarrow")
    source = arrow.CompressedInputStream(arrow.PythonFile(_ChunkFile(chunks), mode="r"), "zstd")
    while piece := source.read(CHUNK):
        yield piece
