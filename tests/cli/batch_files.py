"""Files of raw outputs for the tests of `asides batch`, and what is read back of what it writes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

CALL = '<think>look</think><tool_call>{"name": "find", "arguments": {"n": 1}}</tool_call>'


def rows(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Records with everything that occurs: thoughts, calls, plain texts, thoughts that never close, nulls."""
    choose = random.Random(seed)
    texts = [None, "plain", "<think>never closed", CALL, "<|channel|>analysis<|message|>a<|end|>b", "", "x</think>y"]
    found = []
    for number in range(count):
        ordinary = f"<think>thought {number} {'so we try ' * choose.randint(0, 30)}</think>Answer {number}. é🙂"
        text = choose.choice([*texts, *[ordinary] * 9])
        found.append({"id": number, "model": choose.choice("ab"), "text": text, "meta": {"k": [number, 2]}})
    return found


def write_parquet(path: Path, records: list[dict[str, Any]], group: int = 100) -> Path:
    """A Parquet file with so many rows to a row group."""
    pq.write_table(pa.Table.from_pylist(records), path, row_group_size=group)
    return path


def write_lines(path: Path, records: list[Any]) -> Path:
    """A file of JSON Lines; bytes are written as they are."""
    lines = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def read_parquet(path: Path) -> list[dict[str, Any]]:
    """The rows of a Parquet file."""
    found: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    return found


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of JSON Lines."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]
