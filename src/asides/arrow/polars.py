"""Polars: `pl.col("text").asides.split()`. Importing this module registers the namespace.

    import polars as pl
    import asides.arrow.polars

    frame.with_columns(split=pl.col("text").asides.split("qwen3"))

Each expression works on rows one by one, in eager frames, lazy ones and the streaming engine, and has its type before
it runs. `format` and `prompt` may be expressions: `split(pl.col("model"), formats={...})`. Python's lock lets one
thread split at a time, so a query's other parts run beside it, but not a second split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import pyarrow as pa  # type: ignore[import-untyped]

from ..errors import Error
from ._engines import require
from ._kernel import clean, figures, split, thinking
from ._tables import ReadOptions, SplitOptions

require("polars")
import polars as pl  # noqa: E402  # behind the line that says which version is needed


@pl.api.register_expr_namespace("asides")
class AsidesExpressions:
    """What `.asides` has on an expression of strings. Arguments as for the functions of `asides.arrow`."""

    def __init__(self, expression: Any) -> None:
        self._expression = expression

    def split(self, format: Any = "auto", *, prompt: Any = None, **options: Unpack[SplitOptions]) -> Any:
        """Every row taken apart: a struct."""
        return self._map(split, format, prompt, options)

    def clean(self, format: Any = "auto", *, prompt: Any = None, **options: Unpack[ReadOptions]) -> Any:
        """The answer of every row."""
        return self._map(clean, format, prompt, options)

    def thinking(self, format: Any = "auto", *, prompt: Any = None, **options: Unpack[ReadOptions]) -> Any:
        """The thinking of every row."""
        return self._map(thinking, format, prompt, options)

    def figures(
        self, format: Any = "auto", *, prompt: Any = None, tokenizer: Any = None, **options: Unpack[ReadOptions]
    ) -> Any:
        """What `asides stats` counts, for every row: a struct."""
        return self._map(figures, format, prompt, {**options, "tokenizer": tokenizer})

    def _map(self, function: Callable[..., Any], format: Any, prompt: Any, options: Any) -> Any:
        given = {"format": format, "prompt": prompt}
        columns = {name: value for name, value in given.items() if isinstance(value, pl.Expr)}
        fixed = {**options, **{name: value for name, value in given.items() if name not in columns}}

        def apply(series: Sequence[Any]) -> Any:
            texts, *others = series
            # A literal is one row, whatever the others have.
            others = [other.new_from_index(0, len(texts)) if len(other) == 1 else other for other in others]
            try:
                return pl.Series(texts.name, function(texts, **dict(zip(columns, others, strict=True)), **fixed))
            except Error as error:  # Polars makes a new exception to say where, of the same class: it must be its own
                raise pl.exceptions.ComputeError(str(error)) from error

        # What an empty column becomes has the type of every other, and shows what is wrong with the arguments now.
        type = pl.Series(function(pa.chunked_array([], pa.string()), **fixed)).dtype
        return pl.map_batches([self._expression, *columns.values()], apply, return_dtype=type, is_elementwise=True)
