"""The metadata at the head of a GGUF file: tokens, chat template, names. The tensors behind it are never read.

Reads the few fields that detection needs and walks over the others. Written here rather than taken from the `gguf`
package because that maps the whole file, needs numpy, and has no bounds.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import UsageError
from ._files import open_file

MAGIC = b"GGUF"
MOST_BYTES = 96 << 20
"""Bytes of metadata that are read. The largest vocabularies take some twenty million."""
MOST_ITEMS = 1 << 22
"""Items that an array may have."""
MOST_FIELDS = 1 << 14
BLOCK = 1 << 20
"""Bytes that are read at a time."""

_SIZES = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9

WANTED = (
    "general.architecture",
    "general.basename",
    "general.name",
    "tokenizer.chat_template",
    "tokenizer.ggml.bos_token_id",
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.token_type",
    "tokenizer.ggml.tokens",
)


def is_gguf(path: Path) -> bool:
    """Whether a file begins as a GGUF does."""
    with open_file(path) as file:
        return file.read(4) == MAGIC


def read_metadata(path: Path) -> dict[str, Any]:
    """The fields that detection needs, as far as the file has them."""
    with open_file(path) as file:
        try:
            return _MetadataReader(file, path).read()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error


class _MetadataReader:
    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._buffer = b""
        self._at = 0
        self._left = MOST_BYTES  # what may still be read from the file

    def read(self) -> dict[str, Any]:
        if self._take(4) != MAGIC:
            raise self._error("not a GGUF file")
        version, _, count = struct.unpack("<IQQ", self._take(20))
        if version not in (2, 3):
            raise self._error("a GGUF of a version or byte order that is not read here")
        if count > MOST_FIELDS:
            raise self._error(f"{count:,} fields of metadata; at most {MOST_FIELDS:,} are read")
        found: dict[str, Any] = {}
        for _ in range(count):
            (length,) = struct.unpack("<Q", self._take(8))
            name = self._take(length).decode("utf-8", "replace")
            (kind,) = struct.unpack("<I", self._take(4))
            value = self._value(kind, keep=name in WANTED)
            if name in WANTED:
                found[name] = value
        return found

    def _value(self, kind: int, keep: bool) -> Any:
        if kind == _STRING:
            (length,) = struct.unpack("<Q", self._take(8))
            return self._take(length)
        if kind == _ARRAY:
            return self._array(keep)
        if kind not in _SIZES:
            raise self._error(f"a value of the unknown kind {kind}")
        form = "<" + _SIZES[kind]
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _array(self, keep: bool) -> list[Any]:
        kind, count = struct.unpack("<IQ", self._take(12))
        # Before anything is read: a broken count must not become an allocation.
        if count > MOST_ITEMS:
            raise self._error(f"an array of {count:,} items; at most {MOST_ITEMS:,} are read")
        if kind == _STRING:
            return self._strings(count, keep)
        if kind not in _SIZES:
            raise self._error(f"an array of the kind {kind}, which is not read here")
        form = f"<{count}{_SIZES[kind]}"
        data = self._take(struct.calcsize(form))
        return list(struct.unpack(form, data)) if keep else []

    def _strings(self, count: int, keep: bool) -> list[bytes]:
        """An array of strings. There may be a million of them, so they are walked over within the buffer."""
        found: list[bytes] = []
        length_at = struct.Struct("<Q").unpack_from
        while count:
            buffer, at, size = self._buffer, self._at, len(self._buffer)
            end = at
            while count and at + 8 <= size:
                end = at + 8 + length_at(buffer, at)[0]
                if end > size:
                    break
                if keep:
                    found.append(buffer[at + 8 : end])
                at = end
                count -= 1
            self._at = at
            if count:
                self._fill(max(end - at, 8))
        return found

    def _take(self, length: int) -> bytes:
        if self._at + length > len(self._buffer):
            self._fill(length)
        self._at += length
        return self._buffer[self._at - length : self._at]

    def _fill(self, needed: int) -> None:
        """Have at least so many bytes in the buffer."""
        rest = self._buffer[self._at :]
        missing = needed - len(rest)
        if missing > self._left:
            raise self._error(f"more than {MOST_BYTES:,} bytes of metadata, or a broken length")
        # A block at least, because fields are a few bytes each.
        more = self._file.read(min(max(missing, BLOCK), self._left))
        if len(more) < missing:
            raise self._error("cut off in its metadata")
        self._left -= len(more)
        self._buffer, self._at = rest + more, 0

    def _error(self, message: str) -> UsageError:
        return UsageError(f"{self._path}: {message}")
