"""The ranges of rows that `asides batch` works on alone, and reading them. `asides._cli.inputs` knows the files.

A range is a few row groups of a Parquet file, a few record batches of an Arrow file, or a stretch of a file of JSON
Lines from one line's start to another's; a compressed file, a JSON array and CSV cannot be entered in the middle and
are one range each. Ranges are planned before anything is split, from the files' own tables of contents, so that the
same inputs and options always give the same ranges: `--resume` relies on that. Reading a range never holds more than a
batch of it. What is damaged inside a file costs its own rows, and the rest is read.

    inputs = find_inputs(["traces/", "s3://bucket/more-*.parquet"])
    ranges = plan_ranges(inputs, size=32 << 20)
    for batch in read_tables(inputs[0], ranges[0]): ...       or read_lines, for all that is no table
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import Random
from typing import IO, Any

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from ...errors import Error
from ..inputs.addresses import is_remote
from ..inputs.files import BatchInput, file_chunks, open_file
from ..inputs.kinds import TABLES
from ..inputs.rows import InputRow, rows_of, unpacked
from ..inputs.tables import BATCH_BYTES, BATCH_ROWS, brief, open_table

CHUNK = 1 << 20
AHEAD = 8 << 20
"""Bytes of JSON Lines at an address that are fetched at once."""
LINE_END = 1 << 16
"""Bytes in which the end of a line is looked for."""


class RowRange(msgspec.Struct, frozen=True):
    """Rows of one input that are split together."""

    input: int
    """The input's number."""
    start: int
    stop: int
    """InputRow groups, record batches or, for all that is no table, bytes; half open."""
    size: int
    """How much work it is, roughly in bytes."""
    first: int | None = None
    """Rows (JSON Lines: lines) of the input before it, where that is known beforehand."""
    take: list[int] | None = None
    """Only these of its rows, from 0 on; None for all."""


class DamagedRows(msgspec.Struct, frozen=True):
    """Rows of a table that are damaged."""

    num_rows: int
    reason: str


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
    if input.kind not in TABLES:
        for start, stop in _stretches(input, size):
            yield RowRange(number, start, stop, stop - start), None
        return
    with _reading(input, "cannot be read"), open_table(input) as table:
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
    """Bytes of JSON Lines from one line's start to another's; whatever cannot be entered in the middle is one."""
    if input.compression or input.kind != "jsonl":
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
    for row in _rows(input, found, CHUNK):
        lines += 1
        rows += not row.blank
        if most is not None and rows > most:
            break
    return rows, lines


def read_tables(input: BatchInput, wanted: RowRange) -> Iterator[tuple[list[int] | range, Any]]:
    """Record batches of a range, each with the numbers of its rows there; `DamagedRows` for rows that are not."""
    before = 0
    take = wanted.take
    for batch in _tables(input, wanted):
        numbers: list[int] | range = range(before, before + batch.num_rows)
        before += batch.num_rows
        if take is not None:
            chosen = set(take)
            numbers = [number for number in numbers if number in chosen]
            if not isinstance(batch, DamagedRows):
                batch = batch.take(pa.array([number - (before - batch.num_rows) for number in numbers], pa.int64()))
        if numbers:
            yield numbers, batch
        if take is not None and before > take[-1]:
            return


def _tables(input: BatchInput, wanted: RowRange) -> Iterator[Any]:
    """Record batches; where one cannot be read, its row group is looked at alone."""
    where = f"{'row groups' if input.kind == 'parquet' else 'record batches'} {wanted.start} to {wanted.stop - 1}"
    with _reading(input, f"{where} cannot be read"), open_table(input) as table:
        given = 0
        try:
            for batch in table.batches(BATCH_ROWS, wanted.start, wanted.stop):
                given += batch.num_rows
                yield batch
            return
        except (pa.ArrowException, OSError) as error:
            if input.kind != "parquet" or not _is_damage(input, error):
                raise
        for group, (_, rows) in enumerate(table.groups()):
            if wanted.start <= group < wanted.stop:
                yield from _row_group(input, table, group, rows, min(rows, given))
                given -= min(rows, given)


def _row_group(input: BatchInput, table: Any, group: int, rows: int, given: int) -> Iterator[Any]:
    """The rows of a row group of which so many were read before, as far as they can be."""
    skip = given
    try:
        for batch in table.batches(BATCH_ROWS, group, group + 1):
            rest = batch.slice(min(skip, batch.num_rows))
            skip -= batch.num_rows - rest.num_rows
            if rest.num_rows:
                given += rest.num_rows
                yield rest
    except (pa.ArrowException, OSError) as error:
        if not _is_damage(input, error):
            raise
        yield DamagedRows(rows - given, f"{input.shown}: row group {group} is damaged: {brief(error)}")


def _is_damage(input: BatchInput, error: BaseException) -> bool:
    """Whether what is in a file is wrong, so that reading it again is of no use; not a network that failed."""
    if isinstance(error, OSError) and not isinstance(error, pa.ArrowException):
        return not is_remote(input.path) and error.errno in (None, errno.EIO)
    return isinstance(error, pa.ArrowException)


@contextmanager
def _reading(input: BatchInput, what: str) -> Iterator[None]:
    """What goes wrong while a file is read, as an error with a reason."""
    expected = Exception if is_remote(input.path) else (pa.ArrowException, OSError)
    try:
        yield
    except Error:
        raise
    except expected as error:
        raise Error(f"{input.shown}: {what}: {brief(error)}") from error


def read_lines(input: BatchInput, wanted: RowRange, longest: int) -> Iterator[tuple[list[InputRow], int]]:
    """Rows of a range that are not blank, in batches, each with how many lines were read until then."""
    chosen = None if wanted.take is None else set(wanted.take)
    batch: list[InputRow] = []
    size = rows = count = 0
    with _reading(input, "cannot be read"):
        for row in _rows(input, wanted, longest):
            count += 1
            if row.blank:
                continue
            rows += 1
            if chosen is None or rows - 1 in chosen:
                batch.append(row)
                size += len(row.data) or row.size
            if size >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
                yield batch, count
                batch, size = [], 0
            if wanted.take is not None and rows > wanted.take[-1]:
                break
    yield batch, count


def _rows(input: BatchInput, wanted: RowRange, longest: int) -> Iterator[InputRow]:
    """The rows of a range. Where what was compressed is damaged, the last one says so."""
    number = 0
    chunks = file_chunks(input.path, wanted.start, wanted.stop, AHEAD)
    try:
        for row in rows_of(input.kind, unpacked(chunks, input.compression), longest):
            number = row.number + 1
            yield row
    except OSError as error:
        if not input.compression or not _is_damage(input, error):
            raise
        reason = f"{input.shown}: damaged after {number:,} rows: {brief(error)}"
        yield InputRow(number, problem=("damaged", reason))
    except Error as error:
        raise Error(f"{input.shown}: {error}") from error
