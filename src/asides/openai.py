"""Replies of OpenAI's SDK taken apart: chat completions, plain completions and Responses, of any server.

    stream = client.chat.completions.create(model="qwen3", messages=messages, stream=True)
    events = asides.openai.split(stream)
    for event in events:
        if isinstance(event, asides.TextDelta):
            print(event.text, end="")
    messages.append(events.reply.message.to_openai())

The SDK is not imported: its objects will do, and so will the same as plain dictionaries.
"""

from __future__ import annotations

from ._sdk import AsyncSplitStream, SplitStream, asplit, read, read_choices, split
from ._sdk.wrapping import wrap

__all__ = ["AsyncSplitStream", "SplitStream", "asplit", "read", "read_choices", "split", "wrap"]
