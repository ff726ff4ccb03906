"""Columns out: lists that grow row by row and become Arrow arrays, a slice at a time. No dictionary for any row.

Each writer holds one list per leaf column; lists of lists are offsets and one list of values, as in Arrow itself. A
row is added in one of three ways (see `RowWriter`): cut, where it had the ordinary shape and nothing but its two texts
is of interest; as a message, where the machine read it; as a null. `finish` makes the arrays and starts anew, so that
the lists never hold more than a slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from .._engine.format import TEXT, THINKING, Format
from .._engine.shortcut import UNCLOSED, OrdinaryCut, message_of
from .._engine.vocabulary import Vocabulary
from ..analysis._figures import Figures, analyze
from ..message import Message
from ..parts import Part, Text, Thinking, ToolCall
from ._columns import UnreadableRowError
from ._schema import FIGURES, ROW_ERROR, TOKENS, split_type

_KINDS = {Thinking: "thinking", Text: "text", ToolCall: "tool_call"}


class TextWriter:
    """One text of each row: the answer, or the thinking."""

    def __init__(self, *, thinking: bool, large: bool) -> None:
        self._thinking = thinking
        self.type: Any = pa.large_string() if large else pa.string()
        self._texts: list[str | None] = []

    def add_cut(self, text: str, cut: OrdinaryCut, given: Format) -> None:
        """A row of the ordinary shape."""
        self._texts.append(text[cut[0] : cut[1]] if self._thinking else text[cut[2] : cut[3]])

    def add_message(self, message: Message, format: Format, given: Format) -> None:
        """Any other row."""
        self._texts.append(message.thinking if self._thinking else message.text)

    def add_null(self, error: UnreadableRowError | None = None) -> None:
        """A row without a text."""
        self._texts.append(None)

    def finish(self) -> Any:
        """The texts so far."""
        texts, self._texts = self._texts, []
        return strings_array(texts, self.type)


class SplitWriter:
    """Everything that `split` returns."""

    def __init__(
        self, *, parts: bool = False, vocabulary: Vocabulary | None = None, errors: bool = False, large: bool = False
    ) -> None:
        self.type: Any = split_type(parts=parts, tokens=vocabulary is not None, errors=errors, large=large)
        self._large = large
        self._with_parts = parts or vocabulary is not None
        self._vocabulary = vocabulary
        self._with_errors = errors
        self._clear()

    def _clear(self) -> None:
        self._thinking: list[str | None] = []
        self._text: list[str | None] = []
        self._termination: list[str | None] = []
        self._format: list[str | None] = []
        self._calls: list[ToolCall] = []
        self._call_offsets: list[int] = [0]
        self._notices: list[str] = []
        self._notice_offsets: list[int] = [0]
        self._nulls: list[int] = []
        self._beyond: dict[int, int | None] = {}  # by row; there are few
        self._errors: dict[int, UnreadableRowError] = {}
        self._parts: list[Part] = []
        self._part_offsets: list[int] = [0]
        self._part_tokens: list[tuple[int | None, int | None]] = []
        self._tokens: list[tuple[int | None, ...]] = []

    def add_cut(self, text: str, cut: OrdinaryCut, given: Format) -> None:
        """A row of the ordinary shape."""
        first, last, start, end, termination, format = cut
        thinking, words = text[first:last], text[start:end]
        self._thinking.append(thinking)
        self._text.append(words)
        self._termination.append(termination)
        if termination == "cut":
            self._notices.append(UNCLOSED)
        self._format.append(taken(format))
        self._call_offsets.append(len(self._calls))
        self._notice_offsets.append(len(self._notices))
        if self._with_parts:
            self._add_parts(text, message_of(text, cut).parts)

    def add_message(self, message: Message, format: Format, given: Format) -> None:
        """Any other row."""
        if message.beyond is not None:
            self._beyond[len(self._thinking)] = message.beyond[1] - message.beyond[0]
        self._thinking.append(message.thinking)
        self._text.append(message.text)
        self._termination.append(message.termination)
        self._format.append(taken(format))
        self._calls += message.tool_calls
        self._call_offsets.append(len(self._calls))
        self._notices += [notice.code for notice in message.notices]
        self._notice_offsets.append(len(self._notices))
        if self._with_parts:
            self._add_parts(message.raw, message.parts)

    def add_null(self, error: UnreadableRowError | None = None) -> None:
        """A row that is null, or one that could not be read."""
        row = len(self._thinking)
        self._beyond[row] = None
        if error is None or not self._with_errors:
            self._nulls.append(row)
        else:
            self._errors[row] = error
        for column in (self._thinking, self._text, self._termination, self._format):
            column.append(None)
        for offsets in (self._call_offsets, self._notice_offsets, self._part_offsets):
            offsets.append(offsets[-1])
        self._tokens.append((None,) * 4)

    def _add_parts(self, text: str, parts: Sequence[Part]) -> None:
        self._parts += parts
        self._part_offsets.append(len(self._parts))
        if self._vocabulary is not None:
            spans, counts = token_spans(self._vocabulary, text, parts)
            self._part_tokens += spans
            self._tokens.append(counts)

    def finish(self) -> Any:
        """The rows so far."""
        rows = len(self._thinking)
        failed = pa.array([row in self._errors for row in range(rows)], pa.bool_()) if self._errors else None
        call = self.type.field("calls").type.value_type
        columns = [
            strings_array(self._thinking, self.type.field("thinking").type),
            strings_array(self._text, self.type.field("text").type),
            _list(self._call_offsets, _calls(self._calls, call), failed),
            pa.array(self._termination, pa.string()),
            _list(self._notice_offsets, pa.array(self._notices, pa.string()), failed),
            pa.array(self._format, pa.string()),
        ]
        if self._with_parts:
            columns.append(_list(self._part_offsets, self._part_array(), failed))
        if self._vocabulary is not None:
            counts = zip(*self._tokens, strict=True) if rows else [()] * len(TOKENS)
            columns.append(_struct([pa.array(each, pa.int64()) for each in counts], TOKENS, failed))
        if self._with_errors:
            columns.append(self._error_array(rows))
        columns.append(pa.array([self._beyond.get(row, 0) for row in range(rows)], pa.int64()))
        mask = None
        if self._nulls:
            nulls = set(self._nulls)
            mask = pa.array([row in nulls for row in range(rows)], pa.bool_())
        self._clear()
        return _struct(columns, self.type, mask)

    def _part_array(self) -> Any:
        part = self.type.field("parts").type.value_type
        parts = self._parts
        columns = [
            pa.array([_KINDS[type(each)] for each in parts], pa.string()),
            pa.array([each.span[0] for each in parts], pa.int64()),
            pa.array([each.span[1] for each in parts], pa.int64()),
            pa.array([isinstance(each, Text) or each.complete for each in parts], pa.bool_()),
        ]
        if self._vocabulary is not None:
            columns += [pa.array([span[end] for span in self._part_tokens], pa.int64()) for end in (0, 1)]
        return _struct(columns, part)

    def _error_array(self, rows: int) -> Any:
        found = [self._errors.get(row) for row in range(rows)]
        return pa.StructArray.from_arrays(
            [
                pa.array([None if error is None else error.code for error in found], pa.string()),
                strings_array([None if error is None else error.reason for error in found], pa.string()),
            ],
            fields=list(ROW_ERROR),
            mask=pa.array([error is None for error in found], pa.bool_()),
        )


def _struct(columns: list[Any], type: Any, nulls: Any = None) -> Any:
    return pa.StructArray.from_arrays(columns, fields=list(type), mask=nulls)


def _list(offsets: list[int], values: Any, nulls: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=nulls)


def _calls(calls: list[ToolCall], type: Any) -> Any:
    columns = [strings_array([getattr(call, field.name) for call in calls], field.type) for field in type]
    return _struct(columns, type)


def strings_array(texts: Sequence[str | None], type: Any) -> Any:
    """The texts as an array, with U+FFFD for half a surrogate pair, which JSON can spell and Arrow cannot hold."""
    try:
        return pa.array(texts, type)
    except UnicodeEncodeError:
        return pa.array([text if text is None else _storable(text) for text in texts], type)


def _storable(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@lru_cache(maxsize=1024)
def taken(format: Format) -> str:
    """What the column `format` says: the format's name, or `auto` with the opener of the pair that it settled on."""
    if format.name != "auto":
        return format.name
    openers = [marker for marker, state in format.states.get(TEXT, {}).items() if state == THINKING]
    return f"auto:{openers[0]}" if len(openers) == 1 else "auto"


_Counts = tuple[int | None, ...]


def token_spans(
    vocabulary: Vocabulary, text: str, parts: Sequence[Part]
) -> tuple[list[tuple[int | None, int | None]], _Counts]:
    """Where each part stands in the ids of the text, and how many tokens there are: in all, and for each kind."""
    ids = vocabulary.encode_output(text)
    places = vocabulary.places(ids)
    # Some vocabularies put a space before the first word; some rewrite characters, and then there are no places.
    shift = (places.stops[-1] if ids else 0) - len(text)
    if shift and not vocabulary.text(ids).endswith(text):
        return [(None, None)] * len(parts), (len(ids), None, None, None)
    spans: list[tuple[int | None, int | None]] = []
    counts = dict.fromkeys(_KINDS, 0)
    at = 0
    for part in parts:
        first, last = places.of((part.span[0] + shift, part.span[1] + shift))
        spans.append((first, last))
        # A token that holds characters of two parts is counted as the earlier one's.
        counts[type(part)] += max(0, last - max(first, at))
        at = max(at, last)
    return spans, (len(ids), *counts.values())


class FiguresWriter:
    """What `asides stats` counts, for each row."""

    def __init__(self, vocabulary: Vocabulary | None = None) -> None:
        self.type: Any = FIGURES
        self._tokens = None if vocabulary is None else lambda text: len(vocabulary.encode(text))
        self._figures: list[Figures | None] = []

    def add_cut(self, text: str, cut: OrdinaryCut, given: Format) -> None:
        """A row of the ordinary shape."""
        self.add_message(message_of(text, cut), cut[-1], given)

    def add_message(self, message: Message, format: Format, given: Format) -> None:
        """Any other row."""
        self._figures.append(analyze(message, format=given, tokens=self._tokens))

    def add_null(self, error: UnreadableRowError | None = None) -> None:
        """A row without figures."""
        self._figures.append(None)

    def finish(self) -> Any:
        """The figures so far."""
        return figure_array(self.take(), FIGURES)

    def take(self) -> list[Figures | None]:
        """The figures so far, as records. The writer is empty then."""
        figures, self._figures = self._figures, []
        return figures


def figure_array(values: Sequence[Any], type: Any) -> Any:
    """Records as a struct array, field by field."""
    columns = []
    for field in type:
        if pa.types.is_struct(field.type):
            columns.append(figure_array([_get(value, field.name) for value in values], field.type))
        else:
            columns.append(strings_array([_get(value, field.name) for value in values], field.type))
    mask = pa.array([value is None for value in values], pa.bool_())
    return _struct(columns, type, mask)


def _get(value: Any, name: str) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return value[name]
    found = getattr(value, name, None)
    return found if found is not None or not hasattr(value, "parts") else value.parts[name]
