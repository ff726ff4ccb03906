"""Writes GGUF files (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): metadata, then tensors of f16 or f32.

A file is a header, the metadata as typed keys, a table of the tensors, and their bytes, each aligned to 32. Tensors
come as pieces of bytes, so that a large one is never whole in memory. The same input gives the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO

import msgspec

MAGIC = b"GGUF"
VERSION = 3
ALIGNMENT = 32

_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_TENSOR_TYPES = {"F32": 0, "F16": 1}
ITEM_SIZES = {"F32": 4, "F16": 2}
"""Bytes of a number of each type."""

Value = str | int | float | bool | Sequence[str] | Sequence[int]
"""A value of the metadata. An int is a uint32, in a list an int32."""


class Tensor(msgspec.Struct, frozen=True):
    """A tensor that is to be written: rows first, as in `numpy`."""

    name: str
    type: str
    """`F16` or `F32`."""
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[bytes]]
    """Its bytes, in order."""

    @property
    def size(self) -> int:
        """In bytes."""
        size = ITEM_SIZES[self.type]
        for length in self.shape:
            size *= length
        return size


def write_gguf(
    file: IO[bytes], metadata: Mapping[str, Value], tensors: Sequence[Tensor], wrote: Callable[[int], object]
) -> None:
    """Write a whole file. `wrote` gets the number of bytes of each piece."""
    head = [MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(metadata))]
    head += [_string(key) + _value(value) for key, value in metadata.items()]
    place = 0
    for tensor in tensors:
        # The innermost length comes first here.
        lengths = b"".join(struct.pack("<Q", length) for length in reversed(tensor.shape))
        head.append(_string(tensor.name) + struct.pack("<I", len(tensor.shape)) + lengths)
        head.append(struct.pack("<IQ", _TENSOR_TYPES[tensor.type], place))
        place += _aligned(tensor.size)
    written = b"".join(head)
    file.write(written + bytes(_aligned(len(written)) - len(written)))
    wrote(len(written))
    for tensor in tensors:
        for piece in tensor.pieces():
            file.write(piece)
            wrote(len(piece))
        file.write(bytes(_aligned(tensor.size) - tensor.size))


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _string(text: str) -> bytes:
    encoded = text.encode("utf-8")
    return struct.pack("<Q", len(encoded)) + encoded


def _value(value: Value) -> bytes:
    if isinstance(value, bool):  # before int, which it is
        return struct.pack("<I?", _BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", _UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", _FLOAT32, value)
    if isinstance(value, str):
        return struct.pack("<I", _STRING) + _string(value)
    texts = [item for item in value if isinstance(item, str)]
    if texts:
        return struct.pack("<IIQ", _ARRAY, _STRING, len(texts)) + b"".join(map(_string, texts))
    numbers = [item for item in value if isinstance(item, int)]
    return struct.pack(f"<IIQ{len(numbers)}i", _ARRAY, _INT32, len(numbers), *numbers)
