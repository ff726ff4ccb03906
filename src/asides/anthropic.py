"""Replies of Anthropic's SDK taken apart: Messages, of any server that speaks them.

    stream = client.messages.create(model="qwen3", messages=messages, max_tokens=1000, stream=True)
    for event in asides.anthropic.split(stream):
        ...

A server that does not separate sends thoughts as text between its blocks; they are found there.
The SDK is not imported.
"""

from __future__ import annotations

from ._sdk import AsyncSplitStream, SplitStream, asplit, read, read_choices, split
from ._sdk.wrapping import wrap

__all__ = ["AsyncSplitStream", "SplitStream", "asplit", "read", "read_choices", "split", "wrap"]
