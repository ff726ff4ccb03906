"""The pages of a SQLite file, read without SQLite, which gives up where one of them is damaged.

A file is a row of pages. Rows of a table stand in its leaf pages, each in a cell: its number and its columns, whose end
may be in a chain of other pages. A leaf that is whole can be read whatever became of the pages around it. Pages that a
program has written last stand in the log beside the file (`-wal`) until they are copied into it; of them only those
count whose transaction was ended.

Nothing is written, and whatever is in the file, the worst that happens is that a row is not found.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

MAGIC = b"SQLite format 3\0"
HEADER = 100
"""Bytes at the beginning of the first page that are the file's own."""
SIZES = (4096, 1024, 2048, 8192, 16384, 32768, 65536, 512)
"""How long a page may be; the usual first."""
INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 0x02, 0x05, 0x0A, 0x0D
LOG_MAGICS = {0x377F0682: "<", 0x377F0683: ">"}
"""How a log begins, and in which order its checksums count bytes."""
LOG_HEADER, FRAME_HEADER = 32, 24
LONGEST = 1_000_000_000
"""Bytes of a row at most, as SQLite has it."""
WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Row = tuple[Any, ...]


class Unreadable(Exception):
    """There is no such thing in these bytes."""


class Pages:
    """A file and its log, page by page, counted from 1."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("rb")
        self._length = path.stat().st_size
        begin = self._read(0, HEADER).ljust(HEADER, b"\0")
        self.has_header = begin.startswith(MAGIC)
        """Whether the file begins as one of SQLite does."""
        size = int.from_bytes(begin[16:18])
        size = 65536 if size == 1 else size
        self.has_header = self.has_header and size in SIZES
        self.size = size if self.has_header else SIZES[0]
        """Bytes of a page."""
        self._reserved = begin[20] if self.has_header else 0
        self.said = int.from_bytes(begin[28:32]) if self.has_header else 0
        """How many pages the header says that there are."""
        self._logged: dict[int, int] = {}
        self._counted = 0
        self._log: BinaryIO | None = None
        log = path.with_name(path.name + "-wal")
        if log.is_file():
            self._log = log.open("rb")
            self._read_log(self._log)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if self._log is not None:
            self._log.close()

    @property
    def count(self) -> int:
        """How many pages there are, a last one that is cut off included."""
        return self._counted or -(-self._length // self.size)

    @property
    def has_size(self) -> bool:
        """Whether anything says how long a page is."""
        return self.has_header or bool(self._counted)

    @property
    def usable(self) -> int:
        """Bytes of a page that hold something."""
        return self.size - self._reserved

    def page(self, number: int) -> bytes:
        """The bytes of a page; what is missing of it is zero."""
        if self._log is not None and number in self._logged:
            self._log.seek(self._logged[number])
            return self._log.read(self.size).ljust(self.size, b"\0")
        if not 1 <= number <= self.count:
            raise Unreadable
        return self._read((number - 1) * self.size, self.size).ljust(self.size, b"\0")

    def kind(self, number: int) -> int:
        """What a page says that it is."""
        return self.page(number)[HEADER if number == 1 else 0]

    def cells(self, number: int) -> list[int]:
        """Where the cells of a page begin."""
        page, start = self.page(number), HEADER if number == 1 else 0
        width = {TABLE_LEAF: 8, INDEX_LEAF: 8, TABLE_INTERIOR: 12, INDEX_INTERIOR: 12}.get(page[start])
        if width is None:
            return []
        count = int.from_bytes(page[start + 3 : start + 5])
        first, end = start + width, start + width + 2 * count
        if end > self.usable:
            return []
        places = struct.unpack(f">{count}H", page[first:end])
        return [place for place in places if end <= place < self.usable]

    def children(self, number: int) -> list[int]:
        """The pages under an interior page."""
        page, start = self.page(number), HEADER if number == 1 else 0
        if page[start] not in (TABLE_INTERIOR, INDEX_INTERIOR):
            return []
        below = [int.from_bytes(page[place : place + 4]) for place in self.cells(number)]
        return [*below, int.from_bytes(page[start + 8 : start + 12])]

    def row(self, number: int, place: int) -> tuple[int, Row]:
        """The number of the row in a cell of a table, and its columns. A text that is no UTF-8 keeps its bytes."""
        page = self.page(number)
        length, place = _varint(page, place)
        rowid, place = _varint(page, place)
        rowid -= (rowid >> 63) << 64
        most = self.usable - 35
        return rowid, _columns(self._payload(page, place, length, most))

    def key(self, number: int, place: int) -> Row:
        """The columns in a cell of an index."""
        page = self.page(number)
        if page[HEADER if number == 1 else 0] == INDEX_INTERIOR:
            place += 4
        length, place = _varint(page, place)
        most = (self.usable - 12) * 64 // 255 - 23
        return _columns(self._payload(page, place, length, most))

    def chain(self, number: int, place: int) -> Iterator[int]:
        """The further pages that hold the end of a table's row."""
        page = self.page(number)
        length, place = _varint(page, place)
        _, place = _varint(page, place)
        here = self._here(length, self.usable - 35)
        following = int.from_bytes(page[place + here : place + here + 4]) if here < length else 0
        for _ in range(-(-(length - here) // max(1, self.usable - 4))):
            if not 1 <= following <= self.count:
                return
            yield following
            following = int.from_bytes(self.page(following)[:4])

    def free(self) -> set[int]:
        """The pages that hold nothing, as far as their list can be read."""
        following, found = int.from_bytes(self.page(1)[32:36]) if self.has_header else 0, set[int]()
        while 1 <= following <= self.count and following not in found:
            page = self.page(following)
            found.add(following)
            count = min(int.from_bytes(page[4:8]), self.usable // 4 - 2)
            found.update(struct.unpack(f">{count}I", page[8 : 8 + 4 * count]))
            following = int.from_bytes(page[:4])
        return found

    def _payload(self, page: bytes, place: int, length: int, most: int) -> bytes:
        """The bytes of a cell, those in other pages with them."""
        here = self._here(length, most)
        if length > min(LONGEST, self.count * self.size) or place + here > self.usable:
            raise Unreadable
        pieces, left = [page[place : place + here]], length - here
        following = int.from_bytes(page[place + here : place + here + 4]) if left else 0
        while left > 0:
            further = self.page(following)
            pieces.append(further[4 : min(self.usable, 4 + left)])
            left -= len(pieces[-1])
            following = int.from_bytes(further[:4])
        return b"".join(pieces)

    def _here(self, length: int, most: int) -> int:
        """How many bytes of a cell stand in its own page."""
        if length <= most:
            return length
        least = (self.usable - 12) * 32 // 255 - 23
        here = least + (length - least) % (self.usable - 4)
        return here if here <= most else least

    def _read(self, place: int, size: int) -> bytes:
        self._file.seek(place)
        return self._file.read(size)

    def _read_log(self, log: BinaryIO) -> None:
        """Find the newest of each page in the log, up to the last transaction that was ended."""
        header = log.read(LOG_HEADER)
        order = LOG_MAGICS.get(int.from_bytes(header[:4]))
        size = int.from_bytes(header[8:12])
        if len(header) < LOG_HEADER or order is None or (self.has_header and size != self.size) or size not in SIZES:
            return
        sums = _checksum(order, header[:24], (0, 0))
        if sums != struct.unpack(">II", header[24:32]):
            return
        self.size = size
        pending: dict[int, int] = {}
        place = LOG_HEADER
        while len(frame := log.read(FRAME_HEADER + size)) == FRAME_HEADER + size:
            number, committed = struct.unpack(">II", frame[:8])
            sums = _checksum(order, frame[FRAME_HEADER:], _checksum(order, frame[:8], sums))
            if frame[8:16] != header[16:24] or sums != struct.unpack(">II", frame[16:24]):
                return
            pending[number] = place + FRAME_HEADER
            place += len(frame)
            if committed:
                self._counted = committed
                self._logged.update(pending)
                pending.clear()


def _checksum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for even, odd in zip(words, words, strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of one to nine bytes, and where it ends."""
    value = 0
    for count in range(9):
        if place >= len(data):
            raise Unreadable
        byte = data[place]
        place += 1
        if count == 8:
            return value << 8 | byte, place
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value, place


def _columns(record: bytes) -> Row:
    """The columns of a row, which begins with the kind of each."""
    end, place = _varint(record, 0)
    if end > len(record):
        raise Unreadable
    kinds = []
    while place < end:
        kind, place = _varint(record, place)
        kinds.append(kind)
    columns: list[Any] = []
    place = end
    for kind in kinds:
        width = WIDTHS.get(kind, 8 if kind == 7 else (kind - 12) // 2 if kind >= 12 else 0)
        data = record[place : place + width]
        if len(data) != width or kind in (10, 11):
            raise Unreadable
        columns.append(_column(kind, data))
        place += width
    return tuple(columns)


def _column(kind: int, data: bytes) -> Any:
    if kind == 0:
        return None
    if kind in (8, 9):
        return kind - 8
    if kind == 7:
        return struct.unpack(">d", data)[0]
    if kind in WIDTHS:
        return int.from_bytes(data, signed=True)
    return data if kind % 2 == 0 else data.decode("utf-8", "surrogateescape")
