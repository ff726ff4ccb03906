"""Reading a model's files within bounds: regular files, of a size that such files have, JSON that is JSON.

Knows sizes and failures. What the files mean is for others.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from ..errors import UsageError

Shape = TypeVar("Shape")

MOST_JSON = 128 << 20
"""Bytes of a `tokenizer.json`. The largest in use have some forty million."""
MOST_TEMPLATE = 4 << 20
"""Bytes of a template."""


def open_file(path: Path) -> BinaryIO:
    """Open a regular file. A pipe or a device would keep us waiting, or never end."""
    try:
        # Without blocking, because opening a pipe waits for its writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UsageError(f"{path}: not a regular file")
    return os.fdopen(descriptor, "rb", buffering=1 << 20)


def read_bytes(path: Path, most: int) -> bytes:
    """A whole file of at most so many bytes."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise UsageError(f"{path}: {size:,} bytes; at most {most:,} are read of such a file")
        try:
            # Bounded here too: the file may be growing.
            return file.read(most + 1)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error


def read_text(path: Path) -> str:
    """A template."""
    try:
        return read_bytes(path, MOST_TEMPLATE).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 (byte {error.start})") from error


def read_json(path: Path, shape: type[Shape]) -> Shape:
    """A JSON file, of which only the fields of `shape` are kept."""
    # Decoded into a shape, not into dicts: a vocabulary of many megabytes is passed over without making an object of a
    # word.
    data = read_bytes(path, MOST_JSON)
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: JSON, but not of the expected kind: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid JSON: {error}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: nested too deeply") from error
