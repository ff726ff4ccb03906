"""The pages of a SQLite file, read without SQLite, which gives up where one of them is damaged.

A file is a sequence of pages of one size. The rows of a table are in its leaf pages, one cell for each: the number of
the row and its record, whose end may be in a chain of overflow pages. A leaf page that is whole can be read whatever
became of the pages around it. Pages that were written last are in the write-ahead log beside the file (`-wal`) until
SQLite copies them; of these only committed ones count. The format is documented at sqlite.org/fileformat2.html.

Nothing is written, and whatever is in the file, the worst that happens is that a row is not found (`Unreadable`).

    with Pages(path) as pages:
        rows = [pages.row(2, cell) for cell in pages.cells(2) if pages.kind(2) == TABLE_LEAF]
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

MAGIC = b"SQLite format 3\0"
HEADER = 100
"""Bytes of the file header, which begins the first page."""
SIZES = (4096, 1024, 2048, 8192, 16384, 32768, 65536, 512)
"""Possible sizes of a page; the default first."""
INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 0x02, 0x05, 0x0A, 0x0D
LOG_MAGICS = {0x377F0682: "<", 0x377F0683: ">"}
"""How a write-ahead log begins, and the byte order of its checksums."""
LOG_HEADER, FRAME_HEADER = 32, 24
LONGEST = 1_000_000_000
"""SQLite's limit for the bytes of a record."""
WIDTHS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 7: 8}
"""Bytes of a column by its serial type: integers, and 7 for a float."""

Row = tuple[Any, ...]


class Unreadable(Exception):
    """What should be in these bytes is not there, or not whole."""


class Pages:
    """A file and its write-ahead log, page by page, counted from 1."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("rb")
        self._length = path.stat().st_size
        begin = self._read(0, HEADER).ljust(HEADER, b"\0")
        size = int.from_bytes(begin[16:18])
        # The field has two bytes; 1 stands for the size that does not fit.
        size = 65536 if size == 1 else size
        self.has_header = begin.startswith(MAGIC) and size in SIZES
        """Whether the file begins with a header of SQLite."""
        self.size = size if self.has_header else SIZES[0]
        """Bytes of a page."""
        self._reserved = begin[20] if self.has_header else 0
        self.header_count = int.from_bytes(begin[28:32]) if self.has_header else 0
        """The number of pages according to the header."""
        self._logged: dict[int, int] = {}
        self._counted = 0
        self._log: BinaryIO | None = None
        log = path.with_name(path.name + "-wal")
        if log.is_file():
            self._log = log.open("rb")
            self._read_log(self._log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        if self._log is not None:
            self._log.close()

    @property
    def count(self) -> int:
        """The number of pages, a last one that is cut off included."""
        # The log is newer than the file, and may have grown or shrunk it.
        return self._counted or -(-self._length // self.size)

    @property
    def has_size(self) -> bool:
        """Whether the header or the log gives the size of a page."""
        return self.has_header or bool(self._counted)

    @property
    def usable(self) -> int:
        """Bytes of a page without its reserved end."""
        return self.size - self._reserved

    def page(self, number: int) -> bytes:
        """The bytes of a page; zeros for what is missing of it."""
        if self._log is not None and number in self._logged:
            self._log.seek(self._logged[number])
            return self._log.read(self.size).ljust(self.size, b"\0")
        if not 1 <= number <= self.count:
            raise Unreadable
        return self._read((number - 1) * self.size, self.size).ljust(self.size, b"\0")

    def kind(self, number: int) -> int:
        """The type of a page: a table's or an index's, leaf or interior; any other number for what is none."""
        return self.page(number)[_start(number)]

    def cells(self, number: int) -> list[int]:
        """The offsets of the cells of a page."""
        page, start = self.page(number), _start(number)
        width = {TABLE_LEAF: 8, INDEX_LEAF: 8, TABLE_INTERIOR: 12, INDEX_INTERIOR: 12}.get(page[start])
        if width is None:
            return []
        count = int.from_bytes(page[start + 3 : start + 5])
        first, end = start + width, start + width + 2 * count
        if end > self.usable:
            return []
        places = struct.unpack(f">{count}H", page[first:end])
        # In a damaged page any offset may stand here; each cell is judged by itself, so that one bad one costs one row.
        return [place for place in places if end <= place < self.usable]

    def children(self, number: int) -> list[int]:
        """The pages under an interior page."""
        page, start = self.page(number), _start(number)
        if page[start] not in (TABLE_INTERIOR, INDEX_INTERIOR):
            return []
        below = [int.from_bytes(page[place : place + 4]) for place in self.cells(number)]
        return [*below, int.from_bytes(page[start + 8 : start + 12])]

    def row(self, number: int, place: int) -> tuple[int, Row]:
        """The number and the columns of the row in a table's cell. Bytes that are no UTF-8 become lone surrogates."""
        page = self.page(number)
        length, place = _varint(page, place)
        rowid, place = _varint(page, place)
        # A varint is unsigned; row numbers are signed 64-bit.
        return rowid - ((rowid >> 63) << 64), _columns(self._payload(page, place, length, self.usable - 35))

    def key(self, number: int, place: int) -> Row:
        """The columns of an index's cell."""
        page = self.page(number)
        if page[_start(number)] == INDEX_INTERIOR:
            place += 4
        length, place = _varint(page, place)
        return _columns(self._payload(page, place, length, (self.usable - 12) * 64 // 255 - 23))

    def overflow(self, number: int, place: int) -> Iterator[int]:
        """The overflow pages of the row in a table's cell, as far as the chain can be followed."""
        page = self.page(number)
        length, place = _varint(page, place)
        _, place = _varint(page, place)
        local = self._local(length, self.usable - 35)
        return self._chain(page, place + local, length - local)

    def free(self) -> set[int]:
        """The pages of the freelist, as far as it can be read."""
        following, found = int.from_bytes(self.page(1)[32:36]) if self.has_header else 0, set[int]()
        while 1 <= following <= self.count and following not in found:
            page = self.page(following)
            found.add(following)
            count = min(int.from_bytes(page[4:8]), self.usable // 4 - 2)
            found.update(struct.unpack(f">{count}I", page[8 : 8 + 4 * count]))
            following = int.from_bytes(page[:4])
        return found

    def _payload(self, page: bytes, place: int, length: int, most: int) -> bytes:
        """The record of a cell, with its end in overflow pages. `most`: the bytes that the cell's own page may hold."""
        local = self._local(length, most)
        # No record is longer than its file: a damaged length must not make this read and join for ever.
        if length > min(LONGEST, self.count * self.size) or place + local > self.usable:
            raise Unreadable
        further = [self.page(number)[4 : self.usable] for number in self._chain(page, place + local, length - local)]
        payload = b"".join([page[place : place + local], *further])[:length]
        if len(payload) < length:
            raise Unreadable
        return payload

    def _local(self, length: int, most: int) -> int:
        """How many bytes of a record are in the cell's own page."""
        if length <= most:
            return length
        least = (self.usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (self.usable - 4)
        return local if local <= most else least

    def _chain(self, page: bytes, place: int, left: int) -> Iterator[int]:
        """The pages that hold so many more bytes; the number of the first is at `place`."""
        # Bounded by `left`, so that a chain that leads back to itself ends.
        while left > 0:
            number = int.from_bytes(page[place : place + 4])
            if not 1 <= number <= self.count:
                return
            yield number
            page, place, left = self.page(number), 0, left - (self.usable - 4)

    def _read(self, place: int, size: int) -> bytes:
        self._file.seek(place)
        return self._file.read(size)

    def _read_log(self, log: BinaryIO) -> None:
        """Find the newest version of each page in the log, up to the last commit whose checksum is right."""
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
            # Other salts are frames of an earlier log, which SQLite overwrites from the beginning.
            if frame[8:16] != header[16:24] or sums != struct.unpack(">II", frame[16:24]):
                return
            pending[number] = place + FRAME_HEADER
            place += len(frame)
            if committed:
                # Frames behind the last commit belong to a transaction that never was.
                self._counted = committed
                self._logged.update(pending)
                pending.clear()


def _start(number: int) -> int:
    """Where the content of a page begins: the first page begins with the file header."""
    return HEADER if number == 1 else 0


def _checksum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    numbers = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for even, odd in zip(numbers, numbers, strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number of one to nine bytes, and the offset behind it."""
    value = 0
    for count in range(9):
        if place >= len(data):
            raise Unreadable
        byte = data[place]
        place += 1
        # The ninth byte counts with all its eight bits.
        if count == 8:
            return value << 8 | byte, place
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value, place


def _columns(record: bytes) -> Row:
    """The columns of a record, whose header has the serial type of each."""
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
        width = WIDTHS.get(kind, (kind - 12) // 2 if kind >= 12 else 0)
        data = record[place : place + width]
        # Types 10 and 11 are reserved: what has them is no record.
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
