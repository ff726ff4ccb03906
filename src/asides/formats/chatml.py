"""What families that write ChatML share. Data only; knows no family."""

from __future__ import annotations

STOPS = ("<|im_end|>", "<|endoftext|>")
"""What ends a turn."""
ASSISTANT = ("<|im_start|>assistant\n",)
"""What opens the assistant's turn."""
