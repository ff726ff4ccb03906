"""The one loop over the rows of a column, and what each row is read with.

Everything that is the same for many rows is worked out once: the format, the policies, the shortcut for whole outputs
of the ordinary shape. A row of that shape is only cut, and its texts never become a `Message`; any other is read by
the machine, as `asides.parse` does. What is written of a row is the business of a `RowWriter`.

    formats and prompts (columns or single values) -> RowReader for each row -> cut or message -> RowWriter
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from typing import Any, Literal, Protocol, get_args

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from .._api import read_whole
from .._engine.format import TEXT, THINKING, Format
from .._engine.parser import Opening, format_of, read_prompt
from .._engine.shortcut import OrdinaryCut, log, shortcut_of
from ..errors import StrictError, UnknownFormatError, UsageError
from ..families import get_format
from ..message import Message
from ..policies import Policies, Start
from .columns import Column, UnreadableRowError, strings, too_long

OnError = Literal["raise", "null"]
Formats = Mapping[str, str | Format]
_STARTS: dict[Opening, Start] = {Opening(TEXT): "text", Opening(THINKING, fresh=True): "thinking"}
"""Where prompts mostly leave the model, and the policy that has the same meaning."""


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


class RowReader:
    """Reads rows of one format, under the same policies."""

    __slots__ = ("_policies", "cut", "format", "limit")

    def __init__(self, format: Format, policies: Policies) -> None:
        self.format: Format = format
        self._policies = policies
        shortcut = None if log.isEnabledFor(logging.DEBUG) else shortcut_of(format, policies)
        self.cut: Callable[[str], OrdinaryCut | None] = _never if shortcut is None else shortcut.cut
        """The cut of a row of the ordinary shape that is no longer than `limit`."""
        self.limit: int = policies.limit

    def read(self, text: str) -> tuple[Message, Format]:
        """What the machine makes of a row."""
        parser = read_whole(text, self.format, self._policies)
        return parser.message, format_of(parser)


def _never(text: str) -> None:
    """No cut: the machine must read."""


class RowReaders:
    """The readers of a column's rows: one for all, or one for each by its format and its prompt."""

    def __init__(self, format: Any, formats: Formats | None, prompt: Any, policies: Policies, rows: int) -> None:
        if not policies.collect:
            raise UsageError("collect=False keeps no text, so there would be nothing in the columns")
        self._formats = formats or {}
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
            start = _STARTS.get(read_prompt(format, prompt))
            if start is None:
                return RowReader(format, self._policies.but(prompt=prompt))
        found = self._readers.get((name, start))
        if found is None:
            policies = self._policies if start is None else self._policies.but(start=start)
            found = self._readers[name, start] = RowReader(self._resolve(name), policies)
        return found

    def _resolve(self, name: str | Format) -> Format:
        return get_format(name if isinstance(name, Format) else self._formats.get(name, name))


def _is_column(value: Any) -> bool:
    return value is not None and not isinstance(value, str | Format)


def read_rows(
    column: Column, readers: RowReaders, writer: RowWriter, *, errors: OnError = "raise", row_limit: int
) -> Iterator[Any]:
    """What the writer makes of the column, slice by slice."""
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
        if long:  # these never become strings
            piece = pc.if_else(pa.array([at in long for at in range(len(piece))]), None, piece)
        texts = strings(piece)
        # The texts first: where they end, no reader is taken in vain.
        for at, (text, reader) in enumerate(zip(texts, chosen, strict=False)):
            if text.__class__ is str and reader.__class__ is RowReader and len(text) <= reader.limit:
                cut = reader.cut(text)
                if cut is not None:
                    add_cut(text, cut, reader.format)
                    continue
            error = _too_long(row + at, long[at], row_limit) if at in long else _read(text, reader, row + at, writer)
            if error is None:
                continue
            if errors == "raise":
                raise error
            writer.add_null(error)
        row += len(piece)
        yield writer.finish()


def _read(
    text: str | UnicodeDecodeError | None, reader: RowReader | UnknownFormatError, row: int, writer: RowWriter
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
            writer.add_message(*reader.read(text), reader.format)
        except StrictError as error:
            return UnreadableRowError(row, "strict", str(error))
    return None


def _too_long(row: int, size: int, most: int) -> UnreadableRowError:
    return UnreadableRowError(row, "too_long", f"{size:,} bytes, more than row_limit={most:,}")
