"""Columns in, columns out: an Arrow array of raw outputs, split, cleaned or counted. Needs the extra `arrow`.

    import pyarrow as pa
    from asides.arrow import split

    column = split(pa.array(["<think>2+2</think>It is 4.", None]), "qwen3")
    column.field("thinking").to_pylist()     # ['2+2', None]

What a row becomes is exactly what `asides.parse` makes of it. A null stays null, a chunked array becomes a chunked
array, and `format` and `prompt` may be columns themselves, so that a file of many models is one call.
"""

from __future__ import annotations

from .._extras import install_command as _install_command

try:
    import pyarrow as _pyarrow  # type: ignore[import-untyped]  # noqa: F401
except ImportError as _error:
    raise ImportError(f"asides.arrow needs pyarrow: {_install_command('arrow')}") from _error

from ._columns import ROW_LIMIT, UnreadableRowError
from ._kernel import clean, figures, split, thinking
from ._schema import CALL, FIGURES, PART, ROW_ERROR, SCHEMA_VERSION, SPLIT, TOKEN_PART, TOKENS, split_type
from ._tables import TableSplitter, mapper

__all__ = [
    "CALL",
    "FIGURES",
    "PART",
    "ROW_ERROR",
    "ROW_LIMIT",
    "SCHEMA_VERSION",
    "SPLIT",
    "TOKENS",
    "TOKEN_PART",
    "TableSplitter",
    "UnreadableRowError",
    "clean",
    "figures",
    "mapper",
    "split",
    "split_type",
    "thinking",
]
