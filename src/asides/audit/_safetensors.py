"""Writes safetensors files (https://github.com/huggingface/safetensors): a header in JSON, then the tensors' bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import IO, Any

import msgspec

from ._gguf import Tensor


def write_safetensors(file: IO[bytes], tensors: Sequence[Tensor], wrote: Callable[[int], object]) -> None:
    """Write a whole file. `wrote` gets the number of bytes of each piece."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}  # transformers wants to know whose layout it is
    place = 0
    for tensor in tensors:
        offsets = [place, place + tensor.size]
        header[tensor.name] = {"dtype": tensor.type, "shape": list(tensor.shape), "data_offsets": offsets}
        place += tensor.size
    encoded = msgspec.json.encode(header)
    encoded += b" " * (-len(encoded) % 8)  # the tensors' bytes are aligned to 8
    file.write(struct.pack("<Q", len(encoded)) + encoded)
    wrote(len(encoded))
    for tensor in tensors:
        for piece in tensor.pieces():
            file.write(piece)
            wrote(len(piece))
