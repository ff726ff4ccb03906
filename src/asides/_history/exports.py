"""Stored replies as files: JSON lines, Parquet, or one plain text file for each reply. Knows no store.

An export takes replies one by one, so memory does not grow with their number. A file gets its name when it is complete;
until then it ends in `.part`. All files have mode 0600: thoughts are private, here as in the store.

    with JsonLinesExport(path) as export:
        for reply in history.replies():
            export.write(reply)
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import msgspec

from .._extras import install_command
from ..errors import UsageError
from .records import KeptReply, encode_line, label, local

FOLDER = "thinks"
BATCH = 1000
"""The most replies of a Parquet row group."""
BATCH_CHARACTERS = 16 * 1024 * 1024


class Export:
    """Takes replies. Leaving its context without an error completes the result."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._close(complete=kind is None)

    def write(self, reply: KeptReply) -> None:
        """Add a reply."""
        raise NotImplementedError

    def _close(self, *, complete: bool) -> None:
        """End it; `complete` unless there was an error."""


class JsonLinesExport(Export):
    """A file of JSON lines. One that was stopped stays as `.part`, and `resume` continues it."""

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self._path = path
        self._part = _part(path)
        self.after: str = ""
        """The id of the last reply in a file that is continued; empty for a new one."""
        end = 0
        if resume and self._part.exists():
            # A process that was killed may have left half a line; everything before it is good.
            self.after, end = self._last_whole_line()
        self._file = self._part.open("r+b" if end else "w+b")
        # Half a line may follow the last whole one.
        self._file.seek(end)
        self._file.truncate()
        os.chmod(self._part, 0o600)

    def write(self, reply: KeptReply) -> None:
        """Add a line."""
        self._file.write(encode_line(reply.to_record()) + b"\n")

    def _close(self, *, complete: bool) -> None:
        self._file.close()
        if complete:
            os.replace(self._part, self._path)

    def _last_whole_line(self) -> tuple[str, int]:
        """The id of the reply in the last whole line, and the offset of that line's end."""
        end, last = 0, b'{"id": ""}'
        with self._part.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    end, last = end + len(line), line
        try:
            return str(msgspec.json.decode(last, type=dict[str, Any])["id"]), end
        except (msgspec.DecodeError, KeyError):
            raise UsageError(f"{self._part} is not a half-written export; remove it, or leave out --resume") from None


class ParquetExport(Export):
    """A Parquet file: a row for each reply, with its thoughts as a list. Without an error it is complete, else gone."""

    def __init__(self, path: Path) -> None:
        try:
            self._arrow = import_module("pyarrow")
            parquet = import_module("pyarrow.parquet")
        except ImportError:
            raise UsageError(f"Parquet needs pyarrow: {install_command('parquet')}") from None
        self._path = path
        self._part = _part(path)
        self._schema = _schema(self._arrow)
        self._part.touch(mode=0o600)
        self._writer = parquet.ParquetWriter(self._part, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._characters = 0

    def write(self, reply: KeptReply) -> None:
        """Add a row."""
        self._rows.append(_storable(reply.to_record()))
        self._characters += reply.size
        if len(self._rows) >= BATCH or self._characters >= BATCH_CHARACTERS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._arrow.Table.from_pylist(self._rows, schema=self._schema))
        self._rows, self._characters = [], 0

    def _close(self, *, complete: bool) -> None:
        try:
            if complete:
                self._flush()
            self._writer.close()
            if complete:
                os.replace(self._part, self._path)
        finally:
            self._part.unlink(missing_ok=True)


def _part(path: Path) -> Path:
    """The file that is written until it is complete."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
    return path.with_name(path.name + ".part")


def _schema(arrow: Any) -> Any:
    text = arrow.string()
    call = arrow.struct([("name", text), ("arguments", text), ("id", text), ("error", text)])
    notice = arrow.struct([("code", text), ("message", text), ("offset", arrow.int64())])
    turn = arrow.struct([("role", text), ("text", text), ("calls", arrow.list_(call)), ("call_id", text)])
    thought = arrow.struct(
        [("index", arrow.int32()), ("text", text), ("complete", arrow.bool_()), ("seconds", arrow.float64())]
    )
    names = ("model", "source", "agent", "conversation", "format", "text")
    return arrow.schema(
        [
            ("id", text),
            ("time", arrow.timestamp("us", tz="UTC")),
            *((name, text) for name in names),
            ("thoughts", arrow.list_(thought)),
            ("calls", arrow.list_(call)),
            ("notices", arrow.list_(notice)),
            ("termination", text),
            ("asked", arrow.list_(turn)),
            ("seconds", arrow.float64()),
            ("client", text),
        ]
    )


def _storable(value: Any) -> Any:
    """The value with U+FFFD for what Arrow cannot hold."""
    if isinstance(value, str):
        return label(value)
    if isinstance(value, dict):
        return {name: _storable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return value


class PlainFilesExport(Export):
    """`thinks/<agent>_<timestamp>_thinks.txt` for each reply with thoughts. Files that exist are left as they are."""

    def __init__(self, directory: Path) -> None:
        self.written = 0
        """How many files."""
        self._folder = directory / FOLDER
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(self, reply: KeptReply) -> None:
        """Write the thoughts of a reply into a file of their own."""
        if not reply.thoughts:
            return
        content = _plain(reply).encode("utf-8", "backslashreplace")
        path = self._free_path(reply, content)
        if path is None:
            return
        part = path.with_name(path.name + ".part")
        part.write_bytes(content)
        os.chmod(part, 0o600)
        os.replace(part, path)
        self.written += 1

    def _free_path(self, reply: KeptReply, content: bytes) -> Path | None:
        """The file for a reply; None when there is one with the same content."""
        who = re.sub(r"[^\w.-]+", "-", reply.agent or reply.reply.model or "model").strip(".-")[:80] or "model"
        stem = f"{who}_{local(reply.time):%Y%m%d-%H%M%S}"
        # Two replies of one second: the second has its id in its name.
        for name in (stem, f"{stem}-{reply.id[:12]}"):
            path = self._folder / f"{name}_{FOLDER}.txt"
            if not path.exists():
                return path
            if path.stat().st_size == len(content) and path.read_bytes() == content:
                return None
        return path


def _plain(reply: KeptReply) -> str:
    return "\n".join(
        f"[Thinking {number}]{'' if thought.complete else ' (cut off)'}\n{thought.text}\n"
        for number, thought in enumerate(reply.thoughts, 1)
    )
