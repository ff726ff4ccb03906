"""The one loop over the rows of a column, and what each row is read with.

Everything that is the same for many rows is worked out once: the format, the policies, the shortcut for whole outputs
of the ordinary shape. A row of that shape is only cut, and its texts never become a `Message`; any other is read by
the machine, as `asides.parse` does. What is written of a row is the business of a `RowWriter`.

    formats and prompts (columns or single values) -> RowReader for each row -> cut or message -> RowWriter
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Literal, Protocol, get_args

import pyarrow as pa  # type: ignore[import-untyped]

from .._engine.format import Format
from .._engine.shortcut import OrdinaryCut
from ..errors import StrictError, UnknownFormatError, UsageError
from ..families import get_format
from ..message import Message
from ..policies import Policies, Start
from ..reading import Reading, RowReader, start_after
from ._columns import Column, UnreadableRowError, strings, too_long

OnError = Literal["raise", "null"]
Formats = Mapping[str, str | Format]


class RowWriter(Protocol):
    """Takes the rows of a slice, in order."""

    def add_cut(self, text: str, cut: OrdinaryCut, given: Format) -> None:
        """A row of the ordinary shape, and the format that the caller gave."""

    def add_message(self, message: Message, format: Format, given: Format) -> None:
        """Any other row, the format that it was read with in the end, and the one that the caller gave."""

    def add_null(self, error: UnreadableRowError | None = None) -> None:
        """A row that is null, or one that could not be read."""

    def finish(self) -> Any:
        """The slice as an array. The writer is empty then."""


class RowReaders:
    """The readers of a column's rows: one for all, or one for each by its format and its prompt."""

    def __init__(
        self,
        format: Any,
        formats: Formats | None,
        prompt: Any,
        policies: Policies,
        rows: int,
        model: str | None = None,
    ) -> None:
        """`model` says the format of rows that have none of their own, and where those without a prompt begin."""
        if not policies.collect:
            raise UsageError("collect=False keeps no text, so there would be nothing in the columns")
        self._formats = formats or {}
        self._model = model
        self._found: dict[str | Format, Format] = {}
        self._policies = policies
        self._readers: dict[tuple[str | Format, Start | None], RowReader] = {}
        prompted = policies.start is None  # an explicit start wins over every prompt
        self._prompts = prompt if _is_column(prompt) and prompted else None
        if not _is_column(prompt) and prompt is not None:
            self._policies = policies.but(prompt=prompt)
        self._names = format if _is_column(format) else None
        self._only: RowReader | None = None
        for name, column in (("format", self._names), ("prompt", self._prompts)):
            if column is not None and (found := len(Column(column, name))) != rows:
                raise UsageError(f"{name} has {found:,} rows, the column of texts {rows:,}: they must be as many")
        if self._names is None:
            self._format = self._resolve(format)
            self._only = self._reader(self._format, None) if self._prompts is None else None

    def __iter__(self) -> Iterator[RowReader | UnknownFormatError]:
        """The reader of each row, or the error that it has."""
        if self._only is not None:
            return repeat(self._only)
        names: Iterator[str | Format | None] = (
            repeat(self._format) if self._names is None else Column(self._names, "format").rows()
        )
        prompts = repeat(None) if self._prompts is None else Column(self._prompts, "prompt").rows()
        return map(self._find, names, prompts)

    def _find(self, name: str | Format | None, prompt: str | None) -> RowReader | UnknownFormatError:
        try:
            return self._reader("auto" if name is None else name, prompt)
        except UnknownFormatError as error:
            return error

    def _reader(self, name: str | Format, prompt: str | None) -> RowReader:
        start = None
        if prompt is not None:
            format = self._resolve(name)
            start = start_after(format, prompt)
            if start is None:
                return Reading.of(self._model, format=format, prompt=prompt, policies=self._policies).rows()
        found = self._readers.get((name, start))
        if found is None:
            reading = Reading.of(self._model, format=self._resolve(name), prompt=prompt, policies=self._policies)
            found = self._readers[name, start] = reading.rows()
        return found

    def _resolve(self, name: str | Format) -> Format:
        found = self._found.get(name)
        if found is None:
            given = get_format(name if isinstance(name, Format) else self._formats.get(name, name))
            found = self._found[name] = Reading.of(self._model, format=given).format
        return found


def _is_column(value: Any) -> bool:
    return value is not None and not isinstance(value, str | Format)


def read_rows(
    column: Column,
    readers: RowReaders,
    writer: RowWriter,
    *,
    errors: OnError = "raise",
    row_limit: int,
    places: Sequence[int] | None = None,
) -> Iterator[Any]:
    """What the writer makes of the column, slice by slice.

    `places`: where each text stands in a row of which others are in the column too, as in `Reading.parse_row`.
    """
    if errors not in get_args(OnError):
        raise UsageError(f"errors must be one of {', '.join(map(repr, get_args(OnError)))}, not {errors!r}")
    chosen = iter(readers)
    add_cut = writer.add_cut
    row = 0
    for piece in column.slices():
        long = too_long(piece, row_limit)
        if long and errors == "raise":
            first, size = next(iter(long.items()))
            raise _too_long(row + first, size, row_limit)
        if long:  # these never become strings, nor are they copied
            piece = piece.take(pa.array([None if at in long else at for at in range(len(piece))], pa.int64()))
        texts = strings(piece)
        # The texts first: where they end, no reader is taken in vain.
        for at, (text, reader) in enumerate(zip(texts, chosen, strict=False)):
            if text.__class__ is str and reader.__class__ is RowReader and len(text) <= reader.limit:
                cut = reader.cut(text)
                if cut is not None:
                    add_cut(text, cut, reader.format)
                    continue
            number = row + at
            if at in long:
                error: UnreadableRowError | None = _too_long(number, long[at], row_limit)
            else:
                error = _read(text, reader, number, writer, places[number] if places is not None else 0)
            if error is None:
                continue
            if errors == "raise":
                raise error
            writer.add_null(error)
        row += len(piece)
        yield writer.finish()


def _read(
    text: str | UnicodeDecodeError | None,
    reader: RowReader | UnknownFormatError,
    row: int,
    writer: RowWriter,
    place: int,
) -> UnreadableRowError | None:
    """Write a row that is null or not of the ordinary shape, or return why it cannot be read."""
    if text is None:
        writer.add_null()
    elif isinstance(text, UnicodeDecodeError):
        return UnreadableRowError(row, "invalid_utf8", f"not UTF-8: {text}")
    elif isinstance(reader, UnknownFormatError):
        return UnreadableRowError(row, "unknown_format", str(reader))
    else:
        try:
            writer.add_message(*reader.read(text, place), reader.format)
        except StrictError as error:
            return UnreadableRowError(row, "strict", str(error))
    return None


def _too_long(row: int, size: int, most: int) -> UnreadableRowError:
    return UnreadableRowError(row, "too_long", f"{size:,} bytes, more than row_limit={most:,}")
