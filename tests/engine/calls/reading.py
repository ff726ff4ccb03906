"""What the tests of the call grammars share: a format made of syntaxes, and reading a text however it is cut."""

from __future__ import annotations

import json
import time
from typing import Any

import asides
from asides import Format, Message, ToolCall
from asides.engine.calls.syntax import CallSyntax
from tests.support import characters, check_chunking, check_kept, two_way_splits

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "g")]
"""Two tools that take anything."""


def format_of(*syntaxes: CallSyntax) -> Format:
    """A format that writes calls in these syntaxes."""
    return Format.tags("<think>", "</think>", name="calls", stops=("<|im_end|>",), calls=syntaxes)


def read(text: str, *syntaxes: CallSyntax, **policies: Any) -> Message:
    """What a text means, whole and however it is cut in two or into characters."""
    format = format_of(*syntaxes)
    outcome = check_chunking(format, text, [*two_way_splits(text), characters(text)], policies)
    check_kept(format, text, outcome, policies)
    assert outcome.message is not None
    return outcome.message


def call_of(text: str, *syntaxes: CallSyntax, **policies: Any) -> ToolCall:
    """The one part of a text: a call."""
    message = read(text, *syntaxes, **policies)
    assert [type(part) for part in message.parts] == [ToolCall], message.parts
    return message.tool_calls[0]


def shown(message: Message) -> list[object]:
    """Parts as short values: texts as they are, calls as name and arguments, broken ones with their error."""
    found: list[object] = []
    for part in message.parts:
        if not isinstance(part, ToolCall):
            found.append(part.text)
        elif part.error is None:
            found.append((part.name, json.loads(part.arguments)))
        else:
            found.append((part.name, part.arguments, part.error))
    return found


def codes(message: Message) -> list[str]:
    """The codes of a message's notices."""
    return [notice.code for notice in message.notices]


def deltas(text: str, *syntaxes: CallSyntax) -> list[str]:
    """The argument text as it is told when a text comes character by character, without `finish`."""
    parser = asides.Parser(format_of(*syntaxes))
    events = [event for character in text for event in parser.feed(character)]
    return [event.text for event in events if isinstance(event, asides.ToolCallDelta)]


def seconds(format: Format, text: str, size: int) -> float:
    """How long a text takes in chunks of this size."""
    parser = asides.Parser(format)
    start = time.process_time()
    for place in range(0, len(text), size):
        parser.feed(text[place : place + size])
    parser.finish()
    return time.process_time() - start


def check_linear(small: str, large: str, *syntaxes: CallSyntax, size: int = 1) -> None:
    """Twenty times the text must not cost forty times the time for each character."""
    format = format_of(*syntaxes)
    seconds(format, small, size)
    cheap = min(seconds(format, small, size) for _ in range(3)) / len(small)
    dear = seconds(format, large, size) / len(large)
    assert dear < 6 * cheap + 2e-5, (cheap, dear)
