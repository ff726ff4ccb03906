"""What several families share: ChatML's turns, stops that are also words. Data only; knows no family."""

from __future__ import annotations

STOPS = ("<|im_end|>", "<|endoftext|>")
"""What ends a turn."""
ASSISTANT = ("<|im_start|>assistant\n",)
"""What opens the assistant's turn."""

PLAIN_STOPS = {"</s>": "the end of HTML's tag for text that is struck out"}
"""Stops that are also common tags, for `Format.plain`."""
PLAIN_RESPONSE = dict.fromkeys(("<response>", "</response>"), "a tag of many prompts and of XML answers")
"""Wrappers that are also common tags."""
