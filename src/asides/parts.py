"""The parts of a message as values: what was thought, said and called. Knows no format and no parser."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Span = tuple[int, int]
"""Where something stands: first character and the one after the last."""

Kind = Literal["thinking", "text", "tool_call"]
"""The kinds of parts."""


class Thinking(msgspec.Struct, frozen=True, repr_omit_defaults=True, tag="thinking", tag_field="type"):
    """A stretch of thought.

    Examples:
        >>> asides.parse("<think>2+2</think>It is 4.").parts[0]
        Thinking(text='2+2', span=(7, 10))
    """

    text: str
    """The thought, without its markers."""
    complete: bool = True
    """False when a stop marker or the end of input cut it off."""
    span: Span = (0, 0)
    """Where it is in the raw text: `(start, end)` in characters, half open."""
    tokens: Span | None = None
    """Where it is in the token ids: `(start, end)`, half open; None where text was read."""


class Text(msgspec.Struct, frozen=True, repr_omit_defaults=True, tag="text", tag_field="type"):
    """A stretch of the answer.

    Examples:
        >>> asides.parse("<think>2+2</think>It is 4.").parts[1]
        Text(text='It is 4.', span=(18, 26))
    """

    text: str
    """A stretch of the answer, without markers."""
    span: Span = (0, 0)
    """Where it is in the raw text: `(start, end)` in characters, half open."""
    tokens: Span | None = None
    """Where it is in the token ids: `(start, end)`, half open; None where text was read."""


class ToolCall(msgspec.Struct, frozen=True, repr_omit_defaults=True, tag="tool_call", tag_field="type"):
    """A call that the model asks for.

    Examples:
        >>> (call,) = asides.parse('<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>', "qwen3").tool_calls
        >>> call.name, call.arguments, call.error
        ('add', '{"a": 2}', None)
    """

    name: str
    """The function's name; empty when it could not be read."""
    arguments: str
    """A JSON object as text; what was read of it when the call is broken."""
    id: str = ""
    """The model's own id where it wrote one in time, else a random one, or one made from the policy `seed`."""
    complete: bool = True
    """False when the end of input or a stop marker cut it off."""
    error: str | None = None
    """None exactly when the call may be run, else a documented code."""
    error_message: str = ""
    """The error as a sentence; empty when there is none."""
    raw: str = ""
    """The smallest stretch that is this call alone, with its own markers."""
    span: Span = (0, 0)
    """Where `raw` is in the raw text: `(start, end)` in characters, half open."""
    tokens: Span | None = None
    """Where it is in the token ids: `(start, end)`, half open; None where text was read."""

    def to_dict(self) -> dict[str, Any]:
        """The call in OpenAI's shape."""
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        }


Part = Thinking | Text | ToolCall
"""A part of a message."""
