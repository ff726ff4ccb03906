"""What `asides batch` reads: files, folders, globs and fsspec addresses, as ranges of rows that are worked on alone.

A range is a few row groups of a Parquet file, a few record batches of an Arrow file, or a stretch of a file of JSON
Lines from one line's start to another's; a compressed file of JSON Lines cannot be entered in the middle and is one
range. Ranges are planned before anything is split, from the files' own tables of contents, so that the same inputs and
options always give the same ranges: `--resume` relies on that. Reading a range never holds more than a batch of it.

    inputs = find_inputs(["traces/", "s3://bucket/more-*.parquet"])
    ranges = plan_ranges(inputs, size=32 << 20)
    for batch in read_tables(inputs[0], ranges[0]): ...       or read_lines, for JSON Lines
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from random import Random
from typing import IO, Any, Literal

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from ..._extras import install_command
from ...errors import Error, UsageError
from ..stats.read import TRACES
from ..streams import packed_kind
from .addresses import file_system, is_remote, open_remote, protocol_of, remote_errors

InputKind = Literal["parquet", "jsonl", "arrow"]
Compression = Literal["", "gzip", "zstd"]
ENDINGS: dict[str, InputKind] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    **dict.fromkeys(TRACES, "jsonl"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}
COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
BATCH_ROWS = 2048
BATCH_BYTES = 8 << 20
"""Rows, and bytes of JSON Lines, that are in memory at once."""
CHUNK = 1 << 20
AHEAD = 8 << 20
"""Bytes of JSON Lines at an address that are fetched at once."""
LINE_END = 1 << 16
"""Bytes in which the end of a line is looked for."""


class BatchInput(msgspec.Struct, frozen=True):
    """A file, and what shows that it has not changed."""

    path: str
    kind: InputKind
    compression: Compression = ""
    size: int = 0
    changed: str = ""
    """When it was last written: nanoseconds, or whatever a remote file system has."""


class RowRange(msgspec.Struct, frozen=True):
    """Rows of one input that are split together."""

    input: int
    """The input's number."""
    start: int
    stop: int
    """Row groups, record batches or, for JSON Lines, bytes; half open."""
    size: int
    """How much work it is, roughly in bytes."""
    first: int | None = None
    """Rows (JSON Lines: lines) of the input before it, where that is known beforehand."""
    take: list[int] | None = None
    """Only these of its rows, from 0 on; None for all."""


class Line(msgspec.Struct, frozen=True):
    """A line of JSON Lines that is not blank."""

    number: int
    """From 0 on, in its range."""
    data: bytes
    size: int
    """Its bytes; more than `data` has where it is too long to be read."""


def kind_of(path: str) -> tuple[InputKind, Compression] | None:
    """What a file is, by its name."""
    name = path.lower()
    compression: Compression = ""
    for ending, found in COMPRESSIONS.items():
        if name.endswith(ending):
            name, compression = name[: -len(ending)], found
            break
    kind = next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), None)
    return None if kind is None or (compression and kind != "jsonl") else (kind, compression)


def find_inputs(given: list[str], output: str = "") -> list[BatchInput]:
    """Every file that is meant, each once: those of a folder and of a glob sorted, and never the output itself."""
    own = output if is_remote(output) else os.path.abspath(output) if output else ""
    found: dict[str, BatchInput] = {}
    for path in given:
        if path == "-":
            raise UsageError(
                "batch cannot read standard input, because --resume may have to read it again; name a file"
            )
        for file in _expand_remote(path) if is_remote(path) else _expand(path):
            where = file if is_remote(file) else os.path.abspath(file)
            if own and (where == own or where.startswith(own + ".partial" + os.sep)):
                if file in given:
                    raise UsageError(f"{file}: the output cannot be an input too")
                continue
            found.setdefault(where, _describe(file))
    return list(found.values())


def _expand(path: str) -> list[str]:
    if os.path.isdir(path):
        files = sorted(
            os.path.join(folder, name)
            for folder, _, names in os.walk(path)
            for name in names
            if kind_of(name) is not None and not name.startswith(".")
        )
        if not files:
            raise UsageError(f"{path}: no file here ends in {', '.join(ENDINGS)}")
        return files
    if os.path.exists(path):
        return [path]
    files = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not files:
        raise UsageError(f"{path}: no such file")
    return [file for each in files for file in _expand(each)]


def _expand_remote(path: str) -> list[str]:
    system, inside = file_system(path)
    protocol = protocol_of(path)
    with remote_errors(path):
        if glob.has_magic(inside):
            files = sorted(system.glob(inside))
        elif system.isdir(inside):
            files = sorted(file for file in system.find(inside) if kind_of(file) is not None)
        else:
            return [path]
    if not files:
        raise UsageError(f"{path}: no such file")
    return [f"{protocol}://{file.split('://')[-1]}" for file in files]


def _describe(path: str) -> BatchInput:
    found = kind_of(path) or _sniff(path)
    if found is None:
        raise UsageError(
            f"{path}: neither Parquet nor Arrow nor JSON Lines; the name must end in one of {', '.join(ENDINGS)}"
        )
    kind, compression = found
    if compression and not pa.Codec.is_available(compression):
        raise UsageError(f"{path}: this pyarrow was built without {compression}: {install_command('pyarrow')}")
    if is_remote(path):
        system, inside = file_system(path)
        with remote_errors(path):
            about = system.info(inside)
        changed = next((about[key] for key in ("ETag", "etag", "mtime", "LastModified", "created") if key in about), "")
        return BatchInput(path, kind, compression, about.get("size") or 0, str(changed))
    about = os.stat(path)
    return BatchInput(path, kind, compression, about.st_size, str(about.st_mtime_ns))


def _sniff(path: str) -> tuple[InputKind, Compression] | None:
    """What a file is, by its first bytes."""
    with closing(open_file(path)) as file:
        first = file.read(64)
    packed = packed_kind(first)
    if packed == "Parquet":
        return "parquet", ""
    if packed == "Arrow":
        return "arrow", ""
    return ("jsonl", "") if first.lstrip().startswith((b"{", b'"')) else None


def open_file(path: str, ahead: int = 0) -> IO[bytes]:
    """A file, here or at an address, where `ahead` bytes are fetched before they are read."""
    return open_remote(path, ahead) if is_remote(path) else open(path, "rb")


class _ParquetTable:
    """A Parquet file, by row groups."""

    def __init__(self, file: Any, remote: bool) -> None:
        # With a buffer, a row group is read as it is needed; without, each of its columns is in memory as a whole. At
        # an address that is better: few requests for long stretches.
        self._file = pq.ParquetFile(file, pre_buffer=remote, buffer_size=0 if remote else CHUNK)
        self.schema = self._file.schema_arrow

    def groups(self) -> Iterator[tuple[int, int]]:
        """Bytes and rows of each row group."""
        about = self._file.metadata
        for number in range(about.num_row_groups):
            yield about.row_group(number).total_byte_size, about.row_group(number).num_rows

    def batches(self, rows: int, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        """Batches of so many rows at most, of the groups from `start` to `stop`."""
        groups = list(range(start, self._file.metadata.num_row_groups if stop is None else stop))
        yield from self._file.iter_batches(rows, row_groups=groups, use_threads=False)


class _ArrowTable:
    """An Arrow file, by record batches, whether it has a table of contents or is a stream (as `datasets` writes)."""

    def __init__(self, file: Any) -> None:
        try:
            self._file = pa.ipc.open_file(file)
        except pa.ArrowInvalid:
            file.seek(0)
            self._file = None
            self._stream = pa.ipc.open_stream(file)
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
    parquet = input.kind == "parquet"
    mapped = not parquet and not is_remote(input.path) and input.size
    with closing(pa.memory_map(input.path) if mapped else open_file(input.path)) as file:
        try:
            opened = _ParquetTable(file, is_remote(input.path)) if parquet else _ArrowTable(file)
        except (pa.ArrowException, OSError) as error:
            raise UsageError(
                f"{input.path}: not {'a Parquet' if parquet else 'an Arrow'} file: {_brief(error)}"
            ) from error
        yield opened


def _brief(error: BaseException) -> str:
    return str(error).partition("\n")[0].strip() or type(error).__name__


def schema_of(input: BatchInput) -> Any:
    """The columns of a Parquet or Arrow file."""
    with open_table(input) as table:
        return table.schema.remove_metadata()


def plan_ranges(
    inputs: list[BatchInput],
    size: int,
    limit: int | None = None,
    sample: int | None = None,
    *,
    numbered: bool = False,
) -> list[RowRange]:
    """The ranges of all inputs, in their order; with `limit` of the first rows, with `sample` of rows drawn at random.

    `numbered`: what stands before each range must be known, so lines of JSON are counted.
    """
    planned: list[RowRange] = []
    counts: list[int] = []
    left = limit
    for number, input in enumerate(inputs):
        if left is not None and left <= 0:
            break
        rows_before = 0
        for found, rows in _ranges(number, input, size):
            lines = rows
            if rows is None and (numbered or limit is not None or sample is not None):
                rows, lines = _count_lines(input, found, left)
            first = rows_before if lines is not None else None
            rows_before += lines or 0
            take = None
            if left is not None and rows is not None:
                take = list(range(left)) if rows > left else None
                left -= rows
            planned.append(msgspec.structs.replace(found, first=first, take=take))
            counts.append(rows or 0)
            if left is not None and left <= 0:
                break
    return planned if sample is None else _sampled(planned, counts, sample)


def _sampled(planned: list[RowRange], counts: list[int], sample: int) -> list[RowRange]:
    total = sum(counts)
    # Always the same draw: a job that goes on must find the same rows.
    chosen = sorted(Random(0).sample(range(total), min(sample, total)))
    ranges = []
    at = before = 0
    for found, count in zip(planned, counts, strict=True):
        begin = at
        while at < len(chosen) and chosen[at] < before + count:
            at += 1
        if at > begin:
            take = [row - before for row in chosen[begin:at]]
            ranges.append(msgspec.structs.replace(found, take=take))
        before += count
    return ranges


def _ranges(number: int, input: BatchInput, size: int) -> Iterator[tuple[RowRange, int | None]]:
    """The ranges of an input, each with its rows where these are known."""
    if input.kind == "jsonl":
        for start, stop in _stretches(input, size):
            yield RowRange(number, start, stop, stop - start), None
        return
    with open_table(input) as table:
        start = weight = rows = at = 0
        for at, (heavy, count) in enumerate(table.groups()):
            if at > start and weight + heavy > size:
                yield RowRange(number, start, at, weight), rows
                start, weight, rows = at, 0, 0
            weight += heavy
            rows += count
        if rows:
            yield RowRange(number, start, at + 1, weight), rows


def _stretches(input: BatchInput, size: int) -> Iterator[tuple[int, int]]:
    """Bytes of JSON Lines from one line's start to another's."""
    if input.compression:
        yield 0, input.size
        return
    with closing(open_file(input.path)) as file:
        start = 0
        while start < input.size:
            stop = min(input.size, start + max(1, size))
            if stop < input.size:
                stop = _line_start(file, stop)
            yield start, stop
            start = stop


def _line_start(file: IO[bytes], at: int) -> int:
    """Where the first line begins that does not begin before `at`; the end of the file where none does."""
    at -= 1  # a line that ends just before it
    file.seek(at)
    while piece := file.read(LINE_END):
        place = piece.find(b"\n")
        if place >= 0:
            return at + place + 1
        at += len(piece)
    return at


def _count_lines(input: BatchInput, found: RowRange, most: int | None) -> tuple[int, int]:
    """How many lines of a range are not blank, and how many there are in all; reading ends behind `most`."""
    rows = lines = 0
    for line in _lines(input, found, CHUNK):
        lines += 1
        rows += bool(line.data.strip())
        if most is not None and rows > most:
            break
    return rows, lines


def read_tables(input: BatchInput, wanted: RowRange) -> Iterator[tuple[list[int] | range, Any]]:
    """Record batches of a range, each with the numbers of its rows in the range."""
    before = 0
    take = wanted.take
    for batch in _tables(input, wanted):
        numbers: list[int] | range = range(before, before + batch.num_rows)
        before += batch.num_rows
        if take is not None:
            chosen = set(take)
            numbers = [number for number in numbers if number in chosen]
            batch = batch.take(pa.array([number - (before - batch.num_rows) for number in numbers], pa.int64()))
        if batch.num_rows:
            yield numbers, batch
        if take is not None and before > take[-1]:
            return


def _tables(input: BatchInput, wanted: RowRange) -> Iterator[Any]:
    where = f"{'row groups' if input.kind == 'parquet' else 'record batches'} {wanted.start} to {wanted.stop - 1}"
    with _reading(input, f"{where} cannot be read"), open_table(input) as table:
        yield from table.batches(BATCH_ROWS, wanted.start, wanted.stop)


@contextmanager
def _reading(input: BatchInput, what: str) -> Iterator[None]:
    """What goes wrong while a file is read, as an error with a reason."""
    expected = Exception if is_remote(input.path) else (pa.ArrowException, OSError)
    try:
        yield
    except Error:
        raise
    except expected as error:
        raise Error(f"{input.path}: {what}: {_brief(error)}") from error


def read_lines(input: BatchInput, wanted: RowRange, longest: int) -> Iterator[tuple[list[Line], int]]:
    """Lines of a range that are not blank, in batches, each with how many lines were read until then."""
    chosen = None if wanted.take is None else set(wanted.take)
    lines: list[Line] = []
    size = rows = count = 0
    with _reading(input, "cannot be read"):
        for line in _lines(input, wanted, longest):
            count += 1
            if not line.data.strip():
                continue
            rows += 1
            if chosen is None or rows - 1 in chosen:
                lines.append(line)
                size += len(line.data)
            if size >= BATCH_BYTES or len(lines) >= BATCH_ROWS:
                yield lines, count
                lines, size = [], 0
            if wanted.take is not None and rows > wanted.take[-1]:
                break
    yield lines, count


def _lines(input: BatchInput, wanted: RowRange, longest: int) -> Iterator[Line]:
    """Lines without their ends. Of one that is longer than `longest`, only the beginning."""
    with closing(open_file(input.path, AHEAD)) as file:
        source: Any = file
        if input.compression:
            source = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), input.compression)
            left = None
        else:
            file.seek(wanted.start)
            left = wanted.stop - wanted.start
        number = 0
        rest = bytearray()
        skipped = 0
        while True:
            chunk = source.read(CHUNK if left is None else min(CHUNK, left))
            if left is not None:
                left -= len(chunk)
            *whole, last = chunk.split(b"\n")
            for piece in whole:
                if rest or skipped:
                    piece = bytes(rest) + piece
                    rest.clear()
                data = piece.removesuffix(b"\r")
                yield Line(number, data[:longest], len(data) + skipped)
                number, skipped = number + 1, 0
            rest += last
            if len(rest) > longest:
                skipped += len(rest) - longest
                del rest[longest:]
            if not chunk:
                break
        if rest:
            yield Line(number, bytes(rest), len(rest) + skipped)
        with suppress(AttributeError):
            source.close()
