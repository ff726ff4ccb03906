"""What every engine is given, and what must come out: rows of many shapes, as the kernel splits them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from asides.arrow import split

CALL = '<think>Look.</think><tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
SHAPES = ["<think>2+2</think>It is 4.", None, "", "Plain.", "<think>cut", CALL, "a</think>b", "<think>é\n🙂</think>ö"]
MODELS = ["qwen3", None, "org/mine"]
FORMATS = {"org/mine": "qwen3"}


def table(rows: int) -> Any:
    """A table of `id`, `text` and `model`; the first calls come late, so that no type can be guessed from the start."""
    texts = [None if row < rows // 2 and SHAPES[row % 8] == CALL else SHAPES[row % 8] for row in range(rows)]
    numbered = [text and text.replace("2+2", f"{row}+2") for row, text in enumerate(texts)]
    return pa.table({"id": range(rows), "text": numbered, "model": [MODELS[row % 3] for row in range(rows)]})


def expected(rows: int, **options: Any) -> list[Any]:
    """The rows of the column that the kernel makes of that table, its formats in the column `model`."""
    whole = table(rows)
    return list(split(whole["text"], whole["model"], formats=FORMATS, **options).to_pylist())
