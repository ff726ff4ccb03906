"""What a file of replies is: by its name, or by its first bytes. Opens nothing."""

from __future__ import annotations

import re
from typing import Literal

InputKind = Literal["parquet", "arrow", "jsonl", "json", "csv"]
Compression = Literal["", "gzip", "zstd"]
TABLES: tuple[InputKind, ...] = ("parquet", "arrow")
"""Files in columns, which Arrow reads. The others are rows of bytes."""
ENDINGS: dict[str, InputKind] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    **dict.fromkeys((".jsonl", ".ndjson", ".jsonlines"), "jsonl"),
    ".json": "json",
    **dict.fromkeys((".csv", ".tsv"), "csv"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
}
COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_TABLE_BEGINNINGS: dict[bytes, InputKind] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # a stream, as `datasets` writes
}
_COMPRESSED_BEGINNINGS: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
MARK = b"\xef\xbb\xbf"
"""What some programs write before UTF-8."""


def kind_of(path: str) -> tuple[InputKind, Compression] | None:
    """What a file is, by its name."""
    name = path.lower()
    compression: Compression = ""
    for ending, found in COMPRESSIONS.items():
        if name.endswith(ending):
            name, compression = name[: -len(ending)], found
            break
    kind = next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), None)
    return None if kind is None or (compression and kind in TABLES) else (kind, compression)


def table_kind(first: bytes) -> InputKind | None:
    """Which kind of table begins so."""
    return next((kind for magic, kind in _TABLE_BEGINNINGS.items() if first.startswith(magic)), None)


def compression_of(first: bytes) -> Compression:
    """How a file is compressed that begins so."""
    return next((kind for magic, kind in _COMPRESSED_BEGINNINGS.items() if first.startswith(magic)), "")


def json_kind(first: bytes) -> InputKind | None:
    """Whether what begins so is JSON Lines; or an array, or values of several lines. CSV looks like any text."""
    start = first.removeprefix(MARK).lstrip()
    if start.startswith(b"[") or re.match(rb"\{[ \t\r]*\n", start):
        return "json"
    return "jsonl" if start[:1] in (b"{", b'"') else None
