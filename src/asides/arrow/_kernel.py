"""`split`, `clean`, `thinking`, `figures`: an Arrow column of raw outputs in, a column out.

The four share everything but what they write (`_writers.py`): which values are a column (`_columns.py`), how a row is
read and what an error does (`_rows.py`). A column is worked through in slices of at most 4 MiB or 1,024 rows, so beside
the column and its result only one slice is ever in Python's memory. The result of a chunked array is a chunked array
with a chunk for each slice, and needs no second copy; that of a single array is joined at the end, which does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa  # type: ignore[import-untyped]

from .._engine.vocabulary import vocabulary_of
from ..errors import UsageError
from ..policies import DEFAULTS, Policies, SharedPolicyOptions
from ._columns import ROW_LIMIT, Column
from ._rows import Formats, OnError, RowReaders, RowWriter, read_rows
from ._writers import FiguresWriter, SplitWriter, TextWriter

Tools = Sequence[Mapping[str, Any]]


def split(
    array: Any,
    format: Any = "auto",
    *,
    model: str | None = None,
    formats: Formats | None = None,
    tools: Tools | None = None,
    prompt: Any = None,
    tokenizer: Any = None,
    parts: bool = False,
    errors: OnError = "raise",
    row_limit: int = ROW_LIMIT,
    policies: Policies = DEFAULTS,
    **options: Unpack[SharedPolicyOptions],
) -> Any:
    """Take every row of a column apart: a struct array of `SPLIT`, chunked where `array` is.

    `array`: strings (`string`, `large_string`, `string_view`, a dictionary of these, chunked). Nulls stay null.
    `format`: a name, a `Format`, or a column of names, in which null means `auto`.
    `model`: the name of the model that wrote them: it says where outputs without a prompt begin, and with `auto` how
    they are written.
    `formats`: for names in that column that are none of a format (a model's, say): the format of each.
    `prompt`: the prompt's text, or a column of them: where each output begins is read off its end.
    `tokenizer`: adds `tokens`, and to each part its place in the ids; implies `parts`.
    `parts`: adds `parts`, each with its kind and its place in the text.
    `errors`: what a row that cannot be read does: raise an `UnreadableRowError`, or with `"null"` become null, with a
    field `error` that says why. `row_limit`: bytes that a row may have.
    Other keywords are policies, as in `asides.parse`; `policies` is a record of them that was made elsewhere. Without a
    `seed`, ids of calls that the model did not write depend on the row's text alone: they are the same in every run.

    Examples:
        >>> import pyarrow
        >>> from asides import arrow
        >>> column = arrow.split(pyarrow.array(["<think>2+2</think>It is 4.", None]))
        >>> column.field("thinking").to_pylist(), column.field("text").to_pylist()
        (['2+2', None], ['It is 4.', None])
    """
    column = Column(array, "array")
    vocabulary = None if tokenizer is None else vocabulary_of(tokenizer)
    writer = SplitWriter(parts=parts, vocabulary=vocabulary, errors=errors == "null", large=column.large)
    readers = _readers(column, format, model, formats, prompt, tools, policies, options)
    return _result(column, readers, writer, writer.type, errors, row_limit)


def clean(
    array: Any,
    format: Any = "auto",
    *,
    model: str | None = None,
    formats: Formats | None = None,
    tools: Tools | None = None,
    prompt: Any = None,
    errors: OnError = "raise",
    row_limit: int = ROW_LIMIT,
    policies: Policies = DEFAULTS,
    **options: Unpack[SharedPolicyOptions],
) -> Any:
    """The answer of every row, as a column of strings. Arguments as for `split`; a row with an error is null.

    Examples:
        >>> import pyarrow
        >>> from asides import arrow
        >>> arrow.clean(pyarrow.array(["<think>2+2</think>It is 4.", None])).to_pylist()
        ['It is 4.', None]
    """
    column = Column(array, "array")
    writer = TextWriter(thinking=False, large=column.large)
    readers = _readers(column, format, model, formats, prompt, tools, policies, options)
    return _result(column, readers, writer, writer.type, errors, row_limit)


def thinking(
    array: Any,
    format: Any = "auto",
    *,
    model: str | None = None,
    formats: Formats | None = None,
    tools: Tools | None = None,
    prompt: Any = None,
    errors: OnError = "raise",
    row_limit: int = ROW_LIMIT,
    policies: Policies = DEFAULTS,
    **options: Unpack[SharedPolicyOptions],
) -> Any:
    """The thinking of every row, as a column of strings. Arguments as for `split`; a row with an error is null.

    Examples:
        >>> import pyarrow
        >>> from asides import arrow
        >>> arrow.thinking(pyarrow.array(["<think>2+2</think>It is 4.", "Hi!"])).to_pylist()
        ['2+2', '']
    """
    column = Column(array, "array")
    writer = TextWriter(thinking=True, large=column.large)
    readers = _readers(column, format, model, formats, prompt, tools, policies, options)
    return _result(column, readers, writer, writer.type, errors, row_limit)


def figures(
    array: Any,
    format: Any = "auto",
    *,
    model: str | None = None,
    formats: Formats | None = None,
    tools: Tools | None = None,
    prompt: Any = None,
    tokenizer: Any = None,
    errors: OnError = "raise",
    row_limit: int = ROW_LIMIT,
    policies: Policies = DEFAULTS,
    **options: Unpack[SharedPolicyOptions],
) -> Any:
    """What `asides stats` counts, for every row: a struct array of `FIGURES`. Arguments as for `split`.

    Examples:
        >>> import pyarrow
        >>> from asides import arrow
        >>> arrow.figures(pyarrow.array(["<think>2+2</think>It is 4."])).field("thinking_characters").to_pylist()
        [3]
    """
    column = Column(array, "array")
    writer = FiguresWriter(None if tokenizer is None else vocabulary_of(tokenizer))
    readers = _readers(column, format, model, formats, prompt, tools, policies, options)
    return _result(column, readers, writer, writer.type, errors, row_limit)


def _readers(
    column: Column,
    format: Any,
    model: str | None,
    formats: Formats | None,
    prompt: Any,
    tools: Tools | None,
    policies: Policies,
    options: SharedPolicyOptions,
) -> RowReaders:
    if options:
        policies = policies.but(**options)
    if tools is not None:
        policies = policies.but(tools=tools)
    return RowReaders(format, formats, prompt, policies, len(column), model)


def _result(column: Column, readers: RowReaders, writer: RowWriter, type: Any, errors: OnError, row_limit: int) -> Any:
    pieces = list(read_rows(column, readers, writer, errors=errors, row_limit=row_limit))
    if column.chunked:
        return pa.chunked_array(pieces, type)
    if len(pieces) == 1:
        return pieces[0]
    try:
        return pa.concat_arrays(pieces) if pieces else pa.array([], type)
    except pa.ArrowInvalid as error:
        raise UsageError(f"the result is too large for one array of strings; pass a chunked array ({error})") from error
