"""What a job will do, found out before anything is written: inputs, ranges, where the outputs are, the columns.

Everything that can be refused is refused here: a file that is no Parquet, a column that does not exist, columns of two
files that do not go together, a new column whose name is taken. A few records of the first inputs are looked at to find
the field with the output and to see whether records are conversations.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from ...analysis._traces import OUTPUT_FIELDS, look_up
from ...arrow._columns import is_text
from ...errors import UsageError
from ..inputs.files import BatchInput
from ..inputs.kinds import TABLES, Compression, InputKind
from ..inputs.rows import decoded
from ..inputs.tables import open_table
from .inputs import RowRange, plan_ranges, read_lines, schema_of
from .output import output_kind, unify
from .records import find_record, is_replaced
from .splitting import SplitSettings, new_fields

PEEK = 100
"""Records that are looked at beforehand."""
PEEK_BYTES = 64 << 20


class BatchPlan(msgspec.Struct, frozen=True):
    """A job."""

    inputs: list[BatchInput]
    ranges: list[RowRange]
    settings: SplitSettings
    kind: InputKind
    compression: Compression
    schema: Any
    """The columns of the output; None where only the records tell, or where it is JSON Lines."""


class PlanSizes(msgspec.Struct, frozen=True):
    """How much is read, and in what ranges."""

    range: int
    """Bytes of a range."""
    limit: int | None = None
    sample: int | None = None


def make_plan(inputs: list[BatchInput], output: str, settings: SplitSettings, sizes: PlanSizes) -> BatchPlan:
    """Look at the inputs and decide."""
    kind, compression = output_kind(output)
    schemas = {input.path: schema_of(input) for input in inputs if input.kind in TABLES}
    for path, schema in schemas.items():
        _check_names(path, schema)
    peeked = {input.path: _peek(input) for input in inputs[:PEEK]}
    settings = _find_field(settings, inputs, schemas, peeked)
    _check_beside(settings, schemas, peeked)
    if not settings.turns:
        settings = msgspec.structs.replace(settings, turns=_are_conversations(settings, schemas, peeked))
    _check_taken(settings, schemas, peeked)
    ranges = plan_ranges(inputs, sizes.range, sizes.limit, sizes.sample, numbered=settings.report)
    known = kind != "jsonl" and len(schemas) == len(inputs)
    schema = _output_schema(settings, schemas) if known else None
    return BatchPlan(inputs, ranges, settings, kind, compression, schema)


def _peek(input: BatchInput) -> list[Any]:
    """The first records of an input, as far as they can be read."""
    if input.kind not in TABLES:
        lines_alone = input.kind == "jsonl" and not input.compression
        whole = RowRange(0, 0, min(input.size, PEEK_BYTES) if lines_alone else input.size, 0)
        whole = msgspec.structs.replace(whole, take=list(range(PEEK)))
        lines = next(read_lines(input, whole, PEEK_BYTES), ([], 0))[0]
        return [record for record, problem in map(decoded, lines) if problem is None]
    with open_table(input) as table:
        try:
            first = next(table.batches(PEEK), None)
            return [] if first is None else list(first.slice(0, PEEK).to_pylist())
        except (ValueError, OSError):
            # Arrow does not check that strings are UTF-8; and what is damaged costs its rows alone. Both come later.
            return []


def _check_names(path: str, schema: Any) -> None:
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise UsageError(f"{path}: several columns are named {', '.join(twice)}")


def _find_field(
    settings: SplitSettings, inputs: list[BatchInput], schemas: dict[str, Any], peeked: dict[str, list[Any]]
) -> SplitSettings:
    field = settings.field
    if field:
        for path, schema in schemas.items():
            _check_column(path, schema, field)
        for path, records in peeked.items():
            if path not in schemas:
                _check_key(path, records, field)
            _check_text(path, records, field)
        return settings
    for input in inputs:
        records = peeked.get(input.path, [])
        found = next((name for record in records if (name := find_record(record, "").field)), "")
        if found and input.path in schemas:
            return msgspec.structs.replace(settings, field=found)
        if not found and records:
            raise UsageError(f"{input.path}: no output found; it has {_names(_keys(records))}; --field names the field")
    # Tables without rows still have columns.
    empty = (name for schema in schemas.values() for name in OUTPUT_FIELDS if name in schema.names)
    return msgspec.structs.replace(settings, field=next(empty, "")) if len(schemas) == len(inputs) else settings


def _check_column(path: str, schema: Any, field: str) -> None:
    root = field if field in schema.names else field.partition(".")[0]
    if root not in schema.names:
        raise UsageError(f"{path}: no column {field!r}; {_hint(field, schema.names)}")
    type = schema.field(root).type
    if root == field and not (is_text(type) or type.num_fields):
        raise UsageError(f"{path}: the column {field!r} holds {type}, no text; it has {_names(schema.names)}")


def _check_key(path: str, records: list[Any], field: str) -> None:
    keys = _keys(records)
    if keys and not any(isinstance(record, dict) and _has(record, field) for record in records):
        raise UsageError(f"{path}: no field {field!r}; {_hint(field, keys)}")


def _check_text(path: str, records: list[Any], field: str) -> None:
    """Refuse a field that holds something, and never a model's output."""
    values = [value for record in records if isinstance(record, dict) and (value := look_up(record, field)) is not None]
    if values and not any(find_record(record, field).replies for record in records):
        raise UsageError(
            f"{path}: the field {field!r} holds no text, but {type(values[0]).__name__} such as "
            f"{json.dumps(values[0], default=str)[:40]}; it has {_names(_keys(records))}"
        )


def _has(record: dict[str, Any], field: str) -> bool:
    return field in record or look_up(record, field) is not None


def _keys(records: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(name for record in records if isinstance(record, dict) for name in record))


def _names(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _hint(wanted: str, names: list[str]) -> str:
    near = difflib.get_close_matches(wanted, names, n=3)
    return (f"did you mean {' or '.join(near)}? " if near else "") + f"it has {_names(names)}"


def _check_beside(settings: SplitSettings, schemas: dict[str, Any], peeked: dict[str, list[Any]]) -> None:
    """The columns that other options name."""
    for name, text in ((settings.format_field, True), (settings.prompt_field, True), (settings.by, False)):
        if not name:
            continue
        for path, schema in schemas.items():
            root = name if name in schema.names or text else name.partition(".")[0]
            if root not in schema.names:
                raise UsageError(f"{path}: no column {name!r}; {_hint(name, schema.names)}")
            if text and not is_text(schema.field(name).type):
                raise UsageError(f"{path}: the column {name!r} holds {schema.field(name).type}, no text")
        for path, records in peeked.items():
            if path not in schemas:
                _check_key(path, records, name)


def _are_conversations(settings: SplitSettings, schemas: dict[str, Any], peeked: dict[str, list[Any]]) -> bool:
    """Whether any of the first records has turns, or several replies."""
    for path, records in peeked.items():
        schema = schemas.get(path)
        if schema is not None and settings.field in schema.names and is_text(schema.field(settings.field).type):
            continue
        for record in records:
            found = find_record(record, settings.field)
            value = look_up(record, found.field) if isinstance(record, dict) and found.field else None
            if len(found.replies) > 1 or (
                isinstance(value, list)
                and any(isinstance(turn, dict) and ("role" in turn or "from" in turn) for turn in value)
            ):
                return True
    return False


def _check_taken(settings: SplitSettings, schemas: dict[str, Any], peeked: dict[str, list[Any]]) -> None:
    """No new column takes the place of one that is kept."""
    new = {field.name for field in new_fields(settings)}
    for path, records in peeked.items():
        schema = schemas.get(path)
        if schema is not None:
            names = set(kept_columns(schema, settings.field))
        else:
            names = set()
            for record in records:
                if isinstance(record, dict):
                    field = find_record(record, settings.field).field
                    names |= {name for name, value in record.items() if name != field or not is_replaced(value)}
        taken = sorted(new & names)
        if taken:
            raise UsageError(
                f"{path}: has {_names(taken)} already, as new columns are called; --prefix split_ keeps them apart"
            )


def kept_columns(schema: Any, field: str) -> list[str]:
    """The columns of a table that stay: all but the raw text."""
    return [name for name in schema.names if name != field or not is_text(schema.field(name).type)]


def _output_schema(settings: SplitSettings, schemas: dict[str, Any]) -> Any:
    import pyarrow as pa  # type: ignore[import-untyped]

    def refuse(name: str, types: list[Any]) -> UsageError:
        paths = [
            path for path, schema in schemas.items() if name in schema.names and schema.field(name).type == types[-1]
        ]
        found = ", ".join(map(str, types))
        return UsageError(f"{paths[0]}: the column {name!r} has types that do not go together: {found}")

    kept = [
        pa.schema([schema.field(name) for name in kept_columns(schema, settings.field)]) for schema in schemas.values()
    ]
    large = any(
        settings.field in schema.names and pa.types.is_large_string(schema.field(settings.field).type)
        for schema in schemas.values()
    )
    return pa.schema([*unify(kept, refuse=refuse), *new_fields(settings, large)])
