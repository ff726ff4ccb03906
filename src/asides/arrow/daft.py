"""Daft: `frame.with_column("split", asides.arrow.daft.split(frame["text"]))`, on a batch function over Arrow.

`format` and `prompt` may be expressions: `split(frame["text"], frame["model"], formats={...})`. Daft's strings and
lists are Arrow's large ones, so the types of the result are too.
"""

from __future__ import annotations

from typing import Any, Unpack

import pyarrow as pa  # type: ignore[import-untyped]

from ._engines import require
from ._kernel import split as split_column
from ._tables import SplitOptions


def split(text: Any, format: Any = "auto", *, prompt: Any = None, **options: Unpack[SplitOptions]) -> Any:
    """An expression: every row of `text` taken apart, a struct. Arguments as for `asides.arrow.split`."""
    require("daft")
    import daft

    given = {"format": format, "prompt": prompt}
    columns = {name: value for name, value in given.items() if isinstance(value, daft.Expression)}
    fixed: dict[str, Any] = {**options, **{name: value for name, value in given.items() if name not in columns}}

    def asides_split(texts: Any, *others: Any) -> Any:
        named = {name: other.to_arrow() for name, other in zip(columns, others, strict=True)}
        return split_column(texts.to_arrow(), **named, **fixed)

    # What an empty column becomes has the type of every other, and shows what is wrong with the arguments now.
    type = daft.DataType.from_arrow_type(split_column(pa.array([], pa.large_string()), **fixed).type)
    return daft.func.batch(return_dtype=type)(asides_split)(text, *columns.values())
