"""A table in, the same table with one more column out: what Ray, Spark and `datasets` call for each batch.

A `TableSplitter` knows which column holds the outputs and how they are read, checks both when it is made (on the
machine that writes the query, before a job starts), and can be pickled, so an engine can send it to other processes.
It holds no state: each batch is read by itself, in any order, any number of times, with the same result.

    splitter = TableSplitter("output", format="qwen3")
    splitter(table)["split"]          # a struct for each row; the other columns are as they were

A table is a pyarrow `Table` or `RecordBatch`, or the batch that `datasets` hands to the function of `map`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import pyarrow as pa  # type: ignore[import-untyped]

from .._engine.format import Format
from ..errors import UsageError
from ..families import get_format
from ..policies import Policies, SharedPolicyOptions
from ._kernel import Tools, split
from ._rows import Formats, OnError

INTO = "split"
"""What the new column is named, where the caller does not say."""


class ReadOptions(SharedPolicyOptions, total=False):
    """The keywords that `split`, `clean` and `thinking` have in common, but for `format` and `prompt`."""

    model: str | None
    formats: Formats | None
    tools: Tools | None
    errors: OnError
    row_limit: int
    policies: Policies


class SplitOptions(ReadOptions, total=False):
    """The keywords of `split`, but for `format` and `prompt`."""

    tokenizer: Any
    parts: bool


class TableSplitter:
    """Adds to a table what `split` makes of one of its columns.

    `column`: the column of raw outputs. `into`: the name of the new one. `format`: for all rows; `format_column`: the
    column that has one for each. `prompt` and `prompt_column` likewise. Other keywords are those of `split`.

    Examples:
        >>> import pyarrow
        >>> from asides import arrow
        >>> table = pyarrow.table({"output": ["<think>2+2</think>It is 4."]})
        >>> arrow.TableSplitter("output")(table).column_names
        ['output', 'split']
    """

    def __init__(
        self,
        column: str = "text",
        *,
        into: str = INTO,
        format: str | Format = "auto",
        format_column: str | None = None,
        prompt: str | None = None,
        prompt_column: str | None = None,
        **options: Unpack[SplitOptions],
    ) -> None:
        self.column = column
        """The name of the column with the raw outputs."""
        self.into = into
        """The name of the column that is added."""
        self._columns = {"format": format_column, "prompt": prompt_column}
        # `auto` is made from the families that are registered where it is used, so it travels as a name.
        self._values = {"format": "auto" if format is get_format("auto") else format, "prompt": prompt}
        self._options = options
        self.type: Any = self._split(pa.array([], pa.string())).type
        """The type of the new column; with `large_string` inside where the column that is read has it."""

    def __call__(self, table: Any) -> Any:
        """The table with the new column; of a batch of lists, the new column alone, which `datasets` adds itself."""
        if isinstance(table, Mapping):
            return {self.into: TypedRows(self._mapped(table))}
        names = table.schema.names
        if self.into in names:
            raise UsageError(f"there is a column {self.into!r} already; name another with into=")
        columns = {
            name: table[_existing(column, names)] for name, column in self._columns.items() if column is not None
        }
        return table.append_column(self.into, self._split(table[_existing(self.column, names)], columns))

    def batches(self, tables: Iterable[Any]) -> Iterator[Any]:
        """Each table with the new column."""
        return map(self, tables)

    def check(self, names: Sequence[str]) -> None:
        """Raise `UsageError` if a table with columns of these names cannot be split."""
        self(pa.table({name: pa.array([], pa.string()) for name in names}))

    def _mapped(self, batch: Mapping[str, Any]) -> Any:
        lists = {name: batch[_existing(name, list(batch))] for name in (self.column, *self._columns.values()) if name}
        table = pa.table({name: pa.array(values, pa.string()) for name, values in lists.items()})
        return self(table)[self.into].combine_chunks()

    def _split(self, texts: Any, columns: Mapping[str, Any] | None = None) -> Any:
        return split(texts, **{**self._values, **(columns or {})}, **self._options)


class TypedRows(list[Any]):
    """Rows that know their Arrow type.

    `datasets` takes lists, and guesses a column's type from the first thousand rows: where none has a call, a call in
    a later one is an error. It makes its arrays with `pyarrow.array`, which asks a value for its own array first.
    """

    def __init__(self, column: Any) -> None:
        super().__init__(column.to_pylist())
        self._column = column

    def __arrow_array__(self, type: Any = None) -> Any:
        """The rows as an array."""
        return self._column if type is None else self._column.cast(type)


def mapper(column: str = "text", **options: Any) -> TableSplitter:
    """The function for `map` of `datasets`: `dataset.map(mapper("output"), batched=True)`.

    Arguments as for `TableSplitter`.

    Examples:
        >>> from asides import arrow
        >>> split = arrow.mapper("output")
        >>> split({"output": ["<think>2+2</think>It is 4."]}).keys()
        dict_keys(['split'])
    """
    return TableSplitter(column, **options)


def _existing(name: str, names: Sequence[str]) -> str:
    if name in names:
        return name
    from difflib import get_close_matches  # here, because it is needed only to explain a mistake

    near = get_close_matches(name, names, n=1)
    hint = f", did you mean {near[0]!r}" if near else ""
    raise UsageError(f"there is no column {name!r}{hint}; the columns: {', '.join(names) or 'none'}")
