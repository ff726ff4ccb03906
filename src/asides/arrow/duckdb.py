"""DuckDB: `select asides_split(text).thinking from 'traces.parquet'`, after `register(connection)`.

The functions take the text, and after it the format and the prompt, if they differ from row to row:

    asides_split(text)      asides_split(text, 'qwen3')      asides_split(text, model, prompt)

DuckDB calls them with 2,048 rows at a time. Python's lock lets one thread split at a time; reading, filtering and
writing go on beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Unpack

import pyarrow as pa  # type: ignore[import-untyped]

from ..errors import UsageError
from ._engines import require
from ._kernel import clean, figures, split, thinking
from ._tables import SplitOptions

_ARGUMENTS = ("array", "format", "prompt")


def register(
    connection: Any, *, format: Any = "auto", prompt: str | None = None, **options: Unpack[SplitOptions]
) -> None:
    """Create `asides_split`, `asides_clean`, `asides_thinking` and `asides_figures` on a connection, or replace them.

    `format` and `prompt` hold where a query names none. Other keywords are those of `asides.arrow.split`; `clean`,
    `thinking` and `figures` take those that they have.
    """
    require("duckdb")
    from duckdb import Error

    given: dict[str, Any] = {"format": format, "prompt": prompt, **options}
    text = {name: value for name, value in given.items() if name not in ("parts", "tokenizer")}
    counted = {name: value for name, value in given.items() if name != "parts"}
    keywords = {split: given, clean: text, thinking: text, figures: counted}
    # All types before the first function: arguments that cannot work leave earlier functions as they are.
    types = {function: _type(connection, function, keywords[function]) for function in keywords}
    for function, type in types.items():
        name = f"asides_{function.__name__}"
        with suppress(Error):  # there is none yet; DuckDB has no "create or replace" for these
            connection.remove_function(name)
        # Without a list of parameters a function takes any number. With its own handling of nulls, a null format does
        # not make the row null.
        call = _call(name, function, keywords[function])
        connection.create_function(name, call, None, type, type="arrow", null_handling="special")


def _type(connection: Any, function: Callable[..., Any], keywords: dict[str, Any]) -> Any:
    """DuckDB's own reading of the type of a result: what it makes of an empty one."""
    empty = pa.table({"result": function(pa.chunked_array([], pa.string()), **keywords)})
    (type,) = connection.from_arrow(empty).types
    return type


def _call(name: str, function: Callable[..., Any], keywords: dict[str, Any]) -> Callable[..., Any]:
    def call(*columns: Any) -> Any:
        if len(columns) > len(_ARGUMENTS):
            raise UsageError(f"{name} takes a text, and perhaps a format and a prompt, not {len(columns)} arguments")
        return function(**{**keywords, **dict(zip(_ARGUMENTS, columns, strict=False))})

    return call
