"""Replies of Ollama's SDK taken apart: chat and generate.

    stream = ollama.chat(model="qwen3", messages=messages, stream=True)
    for event in asides.ollama.split(stream):
        ...

Ollama separates by itself where the model is known to it; where it is not, or `think` is false, thoughts stand in the
text, and they are found there. The SDK is not imported.
"""

from __future__ import annotations

from ._sdk import AsyncSplitStream, SplitStream, asplit, read, read_choices, split
from ._sdk.wrapping import wrap

__all__ = ["AsyncSplitStream", "SplitStream", "asplit", "read", "read_choices", "split", "wrap"]
