"""Which files are meant: paths, folders, globs, fsspec addresses and standard input, each with what it is.

A file is known by its name, else by its first bytes, else by what the caller says. Standard input cannot be read twice
nor from the end, so a command that needs either copies it into a file first. Reading rows of the files is in `rows`,
for all that is no table, and in `tables`.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from tempfile import NamedTemporaryFile
from typing import IO

import msgspec

from ...errors import UsageError
from .addresses import file_system, is_remote, open_remote, protocol_of, remote_errors
from .kinds import ENDINGS, Compression, InputKind, compression_of, json_kind, kind_of, table_kind

READ = 1 << 20
FIRST = 64
"""Bytes by which a file is known whose name does not tell."""
STANDARD_INPUT = STANDARD_OUTPUT = "-"


class BatchInput(msgspec.Struct, frozen=True):
    """A file, and what shows that it has not changed."""

    path: str
    kind: InputKind
    compression: Compression = ""
    size: int = 0
    changed: str = ""
    """When it was last written: nanoseconds, or whatever a remote file system has."""
    name: str = ""
    """What a person knows it by, where that is not its path."""

    @property
    def shown(self) -> str:
        """What a person knows it by."""
        return self.name or self.path


def find_inputs(
    given: list[str], output: str = "", reads: InputKind | None = None, standard_input: str = ""
) -> list[BatchInput]:
    """Every file that is meant, each once: those of a folder and of a glob sorted, and never the output itself.

    `reads` is what files are whose names do not tell; `standard_input` the file that has what came there, for `-`.
    """
    own = output if is_remote(output) else os.path.abspath(output) if output else ""
    found: dict[str, BatchInput] = {}
    for path in given:
        if path == STANDARD_INPUT:
            about = describe(standard_input, reads, "standard input")
            found[path] = msgspec.structs.replace(about, name="standard input")
            continue
        for file in expand(path):
            where = file if is_remote(file) else os.path.abspath(file)
            if own and (where == own or where.startswith(own + ".partial" + os.sep)):
                if file in given:
                    raise UsageError(f"{file}: the output cannot be an input too")
                continue
            found.setdefault(where, describe(file, reads))
    return list(found.values())


def expand(path: str) -> list[str]:
    """The files of a path, a folder, a glob or an address."""
    if is_remote(path):
        return _expand_remote(path)
    if os.path.isdir(path):
        files = sorted(
            os.path.join(folder, name)
            for folder, _, names in os.walk(path)
            for name in names
            if _in_folder(name) and not name.startswith(".")
        )
        if not files:
            raise UsageError(f"{path}: no file here ends in {', '.join(filter(_in_folder, ENDINGS))}")
        return files
    if os.path.exists(path):
        return [path]
    files = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not files:
        raise UsageError(f"{path}: no such file")
    return [file for each in files for file in expand(each)]


def _in_folder(name: str) -> bool:
    """Whether a file of a folder is meant. A .json there is mostly about the others (`dataset_info.json`)."""
    found = kind_of(name)
    return found is not None and found[0] != "json"


def _expand_remote(path: str) -> list[str]:
    system, inside = file_system(path)
    protocol = protocol_of(path)
    with remote_errors(path):
        if glob.has_magic(inside):
            files = sorted(system.glob(inside))
        elif system.isdir(inside):
            files = sorted(file for file in system.find(inside) if _in_folder(file))
        else:
            return [path]
    if not files:
        raise UsageError(f"{path}: no such file")
    return [f"{protocol}://{file.split('://')[-1]}" for file in files]


def describe(path: str, reads: InputKind | None = None, name: str = "") -> BatchInput:
    """What a file is."""
    found = kind_of(path) or _sniff(path, reads)
    if found is None:
        raise UsageError(
            f"{name or path}: neither Parquet nor Arrow nor JSON nor CSV; "
            f"the name must end in one of {', '.join(ENDINGS)}, or --as must tell"
        )
    kind, compression = found
    if is_remote(path):
        system, inside = file_system(path)
        with remote_errors(path):
            about = system.info(inside)
        changed = next((about[key] for key in ("ETag", "etag", "mtime", "LastModified", "created") if key in about), "")
        return BatchInput(path, kind, compression, about.get("size") or 0, str(changed))
    about = os.stat(path)
    return BatchInput(path, kind, compression, about.st_size, str(about.st_mtime_ns))


def _sniff(path: str, reads: InputKind | None) -> tuple[InputKind, Compression] | None:
    """What a file is, by its first bytes."""
    with closing(open_file(path)) as file:
        first = file.read(FIRST)
    if kind := table_kind(first):
        return kind, ""
    compression = compression_of(first)
    if compression:  # of what is inside, the name says nothing either
        return reads or "jsonl", compression
    kind = reads or json_kind(first)
    return (kind, "") if kind is not None else None


def open_file(path: str, ahead: int = 0) -> IO[bytes]:
    """A file, here or at an address, where `ahead` bytes are fetched before they are read."""
    return open_remote(path, ahead) if is_remote(path) else open(path, "rb")


def file_chunks(path: str, start: int = 0, stop: int | None = None, ahead: int = 0) -> Iterator[bytes]:
    """The bytes of a file from `start` to `stop`."""
    with closing(open_file(path, ahead)) as file:
        if start:
            file.seek(start)
        left = sys.maxsize if stop is None else stop - start
        while left > 0 and (chunk := file.read(min(READ, left))):
            left -= len(chunk)
            yield chunk


def copy_standard_input(folder: str | None = None) -> str:
    """Standard input as a file that can be read in any order, and twice. Whoever asked for it removes it."""
    with NamedTemporaryFile("wb", prefix="asides-input-", dir=folder, delete=False) as file:
        try:
            shutil.copyfileobj(sys.stdin.buffer, file, READ)
        except BaseException:
            os.unlink(file.name)
            raise
        return file.name
