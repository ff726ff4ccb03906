"""What a row of `asides.arrow.split` must be, by way of `asides.parse`. A row is its own seed."""

from __future__ import annotations

from typing import Any

import asides
from asides import Text
from asides._engine.calls.ids import seed_of
from asides._engine.parser import format_of
from asides._engine.whole import read_whole
from asides.arrow._writers import taken
from asides.policies import DEFAULTS

KINDS = {"Thinking": "thinking", "Text": "text", "ToolCall": "tool_call"}


def expected_row(text: str, format: Any = "auto", **policies: Any) -> dict[str, Any]:
    """The row of a text, with its parts."""
    policies = {"seed": seed_of(storable(text)), **policies}
    message = asides.parse(text, format, **policies)
    machine = read_whole(text, asides.get_format(format), DEFAULTS.but(**policies))
    return {
        "thinking": storable(message.thinking),
        "text": storable(message.text),
        "calls": [
            {
                "name": storable(call.name),
                "arguments": storable(call.arguments),
                "id": storable(call.id),
                "error": call.error,
            }
            for call in message.tool_calls
        ],
        "termination": message.termination,
        "notices": [notice.code for notice in message.notices],
        "format": taken(format_of(machine)),
        "parts": [
            {
                "kind": KINDS[type(part).__name__],
                "start": part.span[0],
                "end": part.span[1],
                "complete": isinstance(part, Text) or part.complete,
            }
            for part in message.parts
        ],
        "beyond": 0 if message.beyond is None else message.beyond[1] - message.beyond[0],
    }


def storable(text: str) -> str:
    """A text that Arrow can hold: half a surrogate pair is replaced."""
    return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
