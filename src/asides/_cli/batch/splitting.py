"""Batches of rows in, batches of rows with new columns out: what a range of `asides batch` is made of. Opens no file.

A row stays a row, and all its columns but the raw text stay with it. Where rows hold one reply each, the new columns
are the fields of what `asides.arrow.split` gives; where they hold conversations, there is one new column, `turns`, with
a struct for each reply. `row_error` says why a row could not be read. A column of strings goes through the kernel as it
is; records, of JSON Lines or of nested columns, go by way of their replies (`records`). On the way all is counted
(`BatchSummary`; with figures also the `Groups` of a report).

    splitter = RangeSplitter(settings, "traces.parquet", place)
    splitter.split_table(numbers, batch)       a RecordBatch
    splitter.split_lines(lines)                records and their new columns
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from ..._engine.vocabulary import vocabulary_of
from ...analysis import Figures, analyze
from ...analysis._summary import EXCERPT, Groups
from ...analysis._traces import look_up
from ...arrow._columns import Column
from ...arrow._columns import is_text as is_text_type
from ...arrow._rows import RowReaders, read_rows
from ...arrow._schema import FIGURES, ROW_ERROR, split_type
from ...arrow._writers import FiguresWriter, SplitWriter, figure_array, strings_array
from ...message import Message
from ...parts import Part, Text
from ...policies import Policies
from ..filter import reading_of
from ..inputs.rows import InputRow, decoded
from ..stats.read import open_tokenizer
from .records import FoundRecord, Reply, compose, find_record, is_plain, is_replaced, places_of, raw_texts, to_array
from .summary import BatchSummary

RAW_IN_ERRORS = 1_000_000
"""Characters of a text that could not be split that are repeated beside its error."""


class SplitSettings(msgspec.Struct, frozen=True):
    """How rows are split, and what is written of them."""

    field: str = ""
    """The column with the output; empty: looked for in every record."""
    format: str = "auto"
    tags: tuple[tuple[str, str], ...] = ()
    """Markers around thoughts, in place of a format."""
    model: str = ""
    format_field: str = ""
    prompt_field: str = ""
    policies: Policies = Policies()
    row_limit: int = 64 << 20
    turns: bool = False
    raw: bool = False
    parts: bool = False
    tokenizer: str = ""
    figures: bool = False
    report: bool = False
    by: str = ""
    prefix: str = ""


class RowProblem(msgspec.Struct, frozen=True):
    """A row that could not be read, or a reply of it."""

    row: int
    """In its range; the line for JSON Lines."""
    code: str
    message: str
    raw: str = ""
    turn: int | None = None


def reply_type(settings: SplitSettings, large: bool = False) -> Any:
    """The type of what is written for a reply."""
    tokens = bool(settings.tokenizer)
    fields = list(split_type(parts=settings.parts, tokens=tokens, errors=True, large=large))
    if settings.figures:
        fields.append(pa.field("figures", FIGURES))
    return pa.struct(fields)


def new_fields(settings: SplitSettings, large: bool = False) -> list[Any]:
    """The columns that are added."""
    type = reply_type(settings, large)
    fields = (
        [pa.field("turns", pa.list_(type))] if settings.turns else [field for field in type if field.name != "error"]
    )
    fields.append(pa.field("row_error", ROW_ERROR))
    if settings.raw and not settings.turns:
        fields.append(pa.field("raw", pa.large_string() if large else pa.string()))
    return [field.with_name(settings.prefix + field.name) for field in fields]


class _CountingWriter:
    """Writes what `split` writes, and keeps the figures of each row on the way: one pass for both."""

    def __init__(self, split: SplitWriter, figures: FiguresWriter) -> None:
        self._split = split
        self._figures = figures
        self.found: list[Figures | None] = []

    def add_cut(self, *row: Any) -> None:
        self._split.add_cut(*row)
        self._figures.add_cut(*row)

    def add_message(self, *row: Any) -> None:
        self._split.add_message(*row)
        self._figures.add_message(*row)

    def add_null(self, *row: Any) -> None:
        self._split.add_null(*row)
        self._figures.add_null(*row)

    def finish(self) -> Any:
        self.found += self._figures.take()
        return self._split.finish()


class RangeSplitter:
    """Splits the batches of one range, and counts."""

    def __init__(self, settings: SplitSettings, place: Callable[[int], str]) -> None:
        """`place` says to a person where a row stands."""
        self.summary = BatchSummary()
        self.groups = Groups(most=sys.maxsize)
        self.problems: list[RowProblem] = []
        self.damage: list[str] = []
        """What of the input is damaged, in words."""
        self._settings = settings
        self._place = place
        self._reading = reading_of(settings.format, settings.tags, settings.model, settings.policies)
        tokenizer = open_tokenizer(settings.tokenizer) if settings.tokenizer else None
        self._vocabulary = None if tokenizer is None else vocabulary_of(tokenizer)
        self._counts_figures = settings.figures or settings.report

    def split_table(self, numbers: Sequence[int], batch: Any) -> dict[str, Any]:
        """The new columns of a record batch."""
        settings = self._settings
        names = batch.schema.names
        root = settings.field if settings.field in names else settings.field.partition(".")[0]
        groups = self._groups_of(batch)
        column = batch.column(root)
        if root == settings.field and is_text_type(column.type):
            format = batch.column(settings.format_field) if settings.format_field else self._reading.format
            prompt = batch.column(settings.prompt_field) if settings.prompt_field else None
            structs, figures = self._read(column, format, prompt)
            return self._columns(numbers, structs, figures, None, {}, column.null_count, groups, column)
        beside = [name for name in (settings.format_field, settings.prompt_field) if name]
        records = [
            {root: value, **dict(zip(beside, others, strict=True))}
            for value, *others in zip(
                column.to_pylist(), *(batch.column(name).to_pylist() for name in beside), strict=True
            )
        ]
        found = [find_record(record, settings.field) for record in records]
        return self._split_found(numbers, records, found, groups)

    def split_lines(self, lines: Sequence[InputRow]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Records without their raw texts, and the new columns."""
        settings = self._settings
        records: list[Any] = []
        found: list[FoundRecord] = []
        for line in lines:
            record, problem = decoded(line)
            records.append(record)
            found.append(FoundRecord(error=problem) if problem else self._found(record))
        taken = {field.name for field in new_fields(settings)}
        kept = []
        for at, (record, reply) in enumerate(zip(records, found, strict=True)):
            others = record if isinstance(record, dict) else {}
            field = reply.field
            if field in others and is_replaced(others[field]):
                others = {name: value for name, value in others.items() if name != field}
            clashing = taken & others.keys()
            if clashing:
                names = ", ".join(sorted(clashing))
                found[at] = FoundRecord(
                    error=("name_taken", f"the record has {names} already; --prefix keeps them apart")
                )
                others = {name: value for name, value in others.items() if name not in taken}
            kept.append(others)
        groups = [_group(record, settings.by) for record in records] if settings.by else None
        raw = [line.data for line in lines]
        return kept, self._split_found([line.number for line in lines], records, found, groups, raw)

    def _found(self, record: Any) -> FoundRecord:
        found = find_record(record, self._settings.field)
        longest = max((len(text) for text in raw_texts(found.replies)), default=0)
        if longest > self._settings.row_limit:  # before anything is made of it: a column would hold it twice more
            reason = f"a text of at least {longest:,} bytes; --row-limit allows more"
            return FoundRecord(field=found.field, error=("too_long", reason))
        return found

    def split_damaged(self, numbers: Sequence[int], reason: str) -> dict[str, Any]:
        """The new columns of rows that cannot be read."""
        found = [FoundRecord(error=("damaged", reason)) for _ in numbers]
        groups = [""] * len(numbers) if self._settings.by else None
        return self._split_found(numbers, [None] * len(numbers), found, groups)

    def _split_found(
        self,
        numbers: Sequence[int],
        records: Sequence[Any],
        found: list[FoundRecord],
        groups: list[str] | None,
        raw: Sequence[bytes | bytearray] = (),
    ) -> dict[str, Any]:
        """The new columns of records."""
        settings = self._settings
        replies: list[Reply] = []
        owners: list[int] = []
        errors: dict[int, tuple[str, str]] = {}
        for row, each in enumerate(found):
            if each.error is None and len(each.replies) > 1 and not settings.turns:
                message = f"{len(each.replies)} replies in one record; --turns writes a list of them"
                errors[row] = ("several_replies", message)
                continue
            if each.error is not None:
                errors[row] = each.error
            replies += each.replies
            owners += [row] * len(each.replies)
        counts = [sum(isinstance(part, Text) for part in reply) for reply in replies]
        texts = raw_texts(replies)
        beside = [row for row, count in zip(owners, counts, strict=True) for _ in range(count)]
        format: Any = self._reading.format
        if settings.format_field:
            format = _strings([records[row] for row in beside], settings.format_field)
        prompt = _strings([records[row] for row in beside], settings.prompt_field) if settings.prompt_field else None
        column = strings_array(texts, pa.string())
        structs, figures = self._read(column, format, prompt, places_of(beside, texts))
        if not all(map(is_plain, replies)):
            structs, figures = self._compose(replies, counts, structs, figures)
            column = None
        nulls = sum(each.null for each in found)
        return self._columns(numbers, structs, figures, owners, errors, nulls, groups, column, raw)

    def _compose(
        self, replies: list[Reply], counts: list[int], structs: Any, figures: list[Figures | None]
    ) -> tuple[Any, list[Figures | None]]:
        """The structs of replies of which some are more than one text."""
        rows = structs.to_pylist()
        composed = []
        counted: list[Figures | None] = []
        at = 0
        for reply, count in zip(replies, counts, strict=True):
            composed.append(compose(reply, rows[at : at + count]))
            if figures:
                counted.append(figures[at] if is_plain(reply) else self._analyze(reply))
            at += count
        type = split_type(parts=self._settings.parts, tokens=bool(self._settings.tokenizer), errors=True)
        return to_array(composed, type), counted

    def _analyze(self, reply: Reply) -> Figures:
        parts: list[Part] = []
        beyond = 0
        for part in reply:
            if isinstance(part, Text):
                read = self._reading.parse(part.text)
                parts += read.parts
                beyond += read.beyond[1] - read.beyond[0] if read.beyond is not None else 0
            else:
                parts.append(part)
        return analyze(Message(tuple(parts), beyond=(0, beyond)), format=self._reading.format)

    def _read(
        self, column: Any, format: Any, prompt: Any, places: Sequence[int] | None = None
    ) -> tuple[Any, list[Figures | None]]:
        """What the kernel makes of a column: a struct for each row, and figures where they are wanted."""
        settings = self._settings
        texts = Column(column, "the column of texts")
        readers = RowReaders(format, None, prompt, settings.policies, len(texts), settings.model or None)
        split = SplitWriter(parts=settings.parts, vocabulary=self._vocabulary, errors=True, large=texts.large)
        if not self._counts_figures:
            pieces = list(read_rows(texts, readers, split, errors="null", row_limit=settings.row_limit, places=places))
            return _joined(pieces, split.type), []
        writer = _CountingWriter(split, FiguresWriter(self._vocabulary))
        pieces = list(read_rows(texts, readers, writer, errors="null", row_limit=settings.row_limit, places=places))
        return _joined(pieces, split.type), writer.found

    def _columns(
        self,
        numbers: Sequence[int],
        structs: Any,
        figures: list[Figures | None],
        owners: list[int] | None,
        errors: dict[int, tuple[str, str]],
        nulls: int,
        groups: list[str] | None,
        texts: Any,
        lines: Sequence[bytes | bytearray] = (),
    ) -> dict[str, Any]:
        """The new columns; `owners` has the row of each struct, None where each row has one."""
        settings = self._settings
        rows = len(numbers)
        if owners == list(range(rows)):
            owners = None
        self._note(numbers, structs, owners, errors, texts, lines)
        self._count(rows, structs, figures, owners, errors, nulls, groups, numbers)
        if settings.figures:
            structs = pa.StructArray.from_arrays(
                [*structs.flatten(), figure_array(figures, FIGURES)],
                fields=[*structs.type, pa.field("figures", FIGURES)],
                mask=structs.is_null(),
            )
        if settings.turns:
            columns = {"turns": _lists(structs, owners, rows, errors)}
            failed: dict[int, Any] = {}
        else:
            if owners is not None:
                places: list[int | None] = [None] * rows
                for at, row in enumerate(owners):
                    places[row] = at
                structs = structs.take(pa.array(places, pa.int64()))
                texts = texts if texts is None else texts.take(pa.array(places, pa.int64()))
            columns = dict(zip((field.name for field in structs.type), structs.flatten(), strict=True))
            error = columns.pop("error")
            failed = (
                {} if error.null_count == rows else {row: each for row, each in enumerate(error.to_pylist()) if each}
            )
        failed.update({row: {"code": code, "message": message} for row, (code, message) in errors.items()})
        columns["row_error"] = (
            to_array([failed.get(row) for row in range(rows)], ROW_ERROR) if failed else pa.nulls(rows, ROW_ERROR)
        )
        if settings.raw and not settings.turns:
            columns["raw"] = pa.nulls(rows, pa.string()) if texts is None else texts
        return {settings.prefix + name: column for name, column in columns.items()}

    def _note(
        self,
        numbers: Sequence[int],
        structs: Any,
        owners: list[int] | None,
        errors: dict[int, tuple[str, str]],
        texts: Any,
        lines: Sequence[bytes | bytearray],
    ) -> None:
        """Remember the rows that could not be read."""
        for row, (code, message) in errors.items():
            if code == "damaged" and message not in self.damage:
                self.damage.append(message)
            raw = lines[row][:RAW_IN_ERRORS].decode("utf-8", "backslashreplace") if lines else ""
            self.problems.append(RowProblem(numbers[row], code, message, raw))
        error = structs.field("error")
        if error.null_count == len(error):
            return
        turn = 0
        for at, each in enumerate(error.to_pylist()):
            row = at if owners is None else owners[at]
            turn = turn + 1 if owners is not None and at and owners[at - 1] == row else 0
            if each is not None:
                raw = "" if texts is None else _raw(texts, at)
                where = turn if self._settings.turns else None
                self.problems.append(RowProblem(numbers[row], each["code"], each["message"], raw, where))

    def _count(
        self,
        rows: int,
        structs: Any,
        figures: list[Figures | None],
        owners: list[int] | None,
        errors: dict[int, tuple[str, str]],
        nulls: int,
        groups: list[str] | None,
        numbers: Sequence[int],
    ) -> None:
        failed = {row: code for row, (code, _) in errors.items()}
        error = structs.field("error")
        if error.null_count < len(error):
            for at, code in enumerate(error.field("code").to_pylist()):
                if code is not None:
                    failed.setdefault(at if owners is None else owners[at], code)
        self.summary.count(rows, structs, list(failed.values()), nulls)
        if groups is not None:
            of_reply = groups if owners is None else [groups[row] for row in owners]
            for name in dict.fromkeys(groups):
                mask = pa.array([each == name for each in of_reply], pa.bool_())
                codes = [code for row, code in failed.items() if groups[row] == name]
                self.summary.group(name).count(groups.count(name), structs.filter(mask), codes)
        if self._settings.report:
            thoughts = structs.field("thinking").to_pylist()
            for at, each in enumerate(figures):
                if each is not None:
                    row = at if owners is None else owners[at]
                    excerpt = (thoughts[at] or "")[:EXCERPT]
                    self.groups.add(groups[row] if groups else "", each, self._place(numbers[row]), excerpt)

    def _groups_of(self, batch: Any) -> list[str] | None:
        by = self._settings.by
        if not by:
            return None
        root = by if by in batch.schema.names else by.partition(".")[0]
        return [_group({root: value}, by) for value in batch.column(root).to_pylist()]


def _group(record: Any, by: str) -> str:
    value = look_up(record, by) if isinstance(record, dict) else None
    return "" if value is None else value if isinstance(value, str) else str(value)


def _strings(records: Sequence[Any], field: str) -> Any:
    values = [look_up(record, field) if isinstance(record, dict) else None for record in records]
    return strings_array([None if value is None else str(value) for value in values], pa.string())


def _joined(pieces: list[Any], type: Any) -> Any:
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces) if pieces else pa.array([], type)


def _raw(texts: Any, row: int) -> str:
    """The beginning of a text. Its bytes are not copied, as Arrow does for a value of its own."""
    if texts[row : row + 1].null_count:
        return ""
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type):
        _, offsets, data = texts.buffers()
        wide = 8 if pa.types.is_large_string(texts.type) else 4
        place = (texts.offset + row) * wide
        start, stop = (int.from_bytes(offsets[at : at + wide], sys.byteorder) for at in (place, place + wide))
        found = bytes(data[start : min(stop, start + 4 * RAW_IN_ERRORS)])
    else:
        value = texts[row].value if pa.types.is_dictionary(texts.type) else texts[row]
        found = bytes(value.as_buffer()[: 4 * RAW_IN_ERRORS])
    return found.decode("utf-8", "backslashreplace")[:RAW_IN_ERRORS]


def _lists(structs: Any, owners: list[int] | None, rows: int, errors: dict[int, tuple[str, str]]) -> Any:
    """A list of structs for each row; null for a row that could not be read or has a null."""
    counts = [1] * rows if owners is None else [0] * rows
    for row in owners or ():
        counts[row] += 1
    offsets = [0]
    for count in counts:
        offsets.append(offsets[-1] + count)
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), structs, mask=pa.array([count == 0 for count in counts], pa.bool_())
    )
