"""Columns in: what may be given as one, and its rows as Python strings, a slice at a time.

A column is a pyarrow array of `string`, `large_string`, `string_view`, a dictionary of these, or null; a chunked array
of such; or whatever offers Arrow's C interface (a Polars series, a pandas one). It is read in slices of at most
`SLICE_BYTES`, so that the strings in Python's memory stay few however long the column is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ..errors import Error, UsageError

SLICE_ROWS = 1024
SLICE_BYTES = 4 << 20
ROW_LIMIT = 64 << 20
"""Bytes of a row at most, where the caller says nothing."""


class UnreadableRowError(Error, ValueError):
    """A row that cannot be read."""

    def __init__(self, row: int, code: str, reason: str) -> None:
        self.row = row
        """The number of the row in the column, from 0."""
        self.code = code
        """What is wrong with it: `unknown_format`, `strict`, `too_long` or `invalid_utf8`."""
        self.reason = reason
        """The error as a sentence."""
        super().__init__(f"row {row}: {reason}")

    def __reduce__(self) -> tuple[type[UnreadableRowError], tuple[int, str, str]]:
        """What it is made of: it comes out of another process as it went in."""
        return type(self), (self.row, self.code, self.reason)


class Column:
    """A column of strings."""

    def __init__(self, value: Any, name: str) -> None:
        chunked, self._chunks = _chunks(value, name)
        self.chunked: bool = chunked
        self.type: Any = value.type if hasattr(value, "type") else self._chunks[0].type
        for type in {_value_type(chunk.type) for chunk in self._chunks}:
            if not _is_text(type):
                hint = "; cast it to string" if pa.types.is_binary(type) or pa.types.is_large_binary(type) else ""
                raise UsageError(f"{name} must be a column of strings, not of {type}{hint}")
        self._chunks = [_decodable(chunk) for chunk in self._chunks]

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    @property
    def large(self) -> bool:
        """Whether its strings are `large_string`."""
        return bool(pa.types.is_large_string(_value_type(self.type)))

    def slices(self) -> Iterator[Any]:
        """Its rows in arrays of few bytes."""
        for chunk in self._chunks:
            for start in range(0, len(chunk), SLICE_ROWS):
                yield from _halves(chunk.slice(start, SLICE_ROWS))

    def rows(self) -> Iterator[str | None]:
        """Every row. For columns beside the texts: what cannot be decoded has U+FFFD in it."""
        for piece in self.slices():
            for row, text in enumerate(strings(piece)):
                yield text if isinstance(text, str | None) else bytes_at(piece, row).decode("utf-8", "replace")


def _chunks(value: Any, name: str) -> tuple[bool, list[Any]]:
    if isinstance(value, pa.Array):
        return False, [value]
    if isinstance(value, pa.ChunkedArray):
        return True, value.chunks or [pa.array([], value.type)]
    if isinstance(value, pa.Table | pa.RecordBatch):
        names = ", ".join(value.schema.names) or "none"
        raise UsageError(f"{name} must be one column, not a table; its columns: {names}")
    try:
        if hasattr(value, "__arrow_c_array__"):
            return False, [pa.array(value)]
        if hasattr(value, "__arrow_c_stream__"):
            return True, pa.chunked_array(value).chunks or [pa.array([], pa.string())]
    except (pa.ArrowException, TypeError) as error:
        raise UsageError(f"{name} is no column of strings: {error}") from error
    raise UsageError(f"{name} must be an Arrow array, not a {type(value).__name__}; pyarrow.array(...) makes one")


def _value_type(type: Any) -> Any:
    return type.value_type if pa.types.is_dictionary(type) else type


def is_text(type: Any) -> bool:
    """Whether a column of this type is one of strings."""
    return _is_text(_value_type(type))


def _is_text(type: Any) -> bool:
    types = pa.types
    return any(test(type) for test in (types.is_string, types.is_large_string, types.is_string_view, types.is_null))


def _decodable(array: Any) -> Any:
    """The array; a dictionary of views (a category of Polars), which Arrow cannot decode, as one of strings."""
    if not pa.types.is_dictionary(array.type) or not pa.types.is_string_view(array.type.value_type):
        return array
    return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))


def _halves(array: Any) -> Iterator[Any]:
    """An array, in halves of halves until each is small; without its dictionary."""
    if len(array) > 1 and _size(array) > SLICE_BYTES:
        middle = len(array) // 2
        yield from _halves(array.slice(0, middle))
        yield from _halves(array.slice(middle))
    else:
        yield array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _size(array: Any) -> int:
    """How many bytes the rows have, each counted where a dictionary has it once."""
    if not pa.types.is_dictionary(array.type):
        return int(array.nbytes)
    if array.dictionary.nbytes * len(array) <= SLICE_BYTES:
        return 0
    return pc.sum(pc.binary_length(array.dictionary).take(array.indices)).as_py() or 0


def strings(array: Any) -> list[Any]:
    """The rows as strings, None for nulls, and an exception in the place of what is no UTF-8."""
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        return [_string(array, row) for row in range(len(array))]


def _string(array: Any, row: int) -> Any:
    try:
        return array[row].as_py()
    except UnicodeDecodeError as error:
        return error


def bytes_at(array: Any, row: int) -> bytes:
    """The bytes of a row that is not null."""
    return bytes(array[row].as_buffer())


def too_long(array: Any, most: int) -> dict[int, int]:
    """The rows with more bytes than these, and how many they have."""
    if array.nbytes <= most:
        return {}
    sizes = enumerate(pc.binary_length(array).to_pylist())
    return {row: size for row, size in sizes if size is not None and size > most}
