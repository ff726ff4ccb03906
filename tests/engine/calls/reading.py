"""What the tests of the call grammars share: a format made of syntaxes, and reading a text however it is cut."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import asides
from asides import Format, Message, ToolCall
from asides._engine.calls.syntax import CallSyntax
from tests.support import characters, check_chunking, check_kept, every_place

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "g")]
"""Two tools that take anything."""


@cache
def format_of(*syntaxes: CallSyntax) -> Format:
    """A format that writes calls in these syntaxes: made once, because what is compiled of it is kept with it."""
    return Format.tags("<think>", "</think>", name="calls", stops=("<|im_end|>",), calls=syntaxes)


def read(text: str, *syntaxes: CallSyntax, **policies: Any) -> Message:
    """What a text means, whole, wherever it is cut, and by characters."""
    format = format_of(*syntaxes)
    outcome = check_chunking(format, text, [*every_place(text), characters(text)], policies)
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


def check_linear(make: Callable[[int], str], *syntaxes: CallSyntax) -> None:
    """Character by character, a character of a long text must cost no more than one of a short text."""
    format = format_of(*syntaxes)
    short, long = make(2_000), make(40_000)
    cheap = min(_seconds(format, short) for _ in range(3)) / len(short)
    dear = _seconds(format, long) / len(long)
    # Generous, because other work on the machine disturbs it; what is quadratic is twenty times dearer.
    assert dear < 6 * cheap + 2e-5, (cheap, dear)


def _seconds(format: Format, text: str) -> float:
    parser = asides.Parser(format)
    start = time.process_time()
    for character in text:
        parser.feed(character)
    parser.finish()
    return time.process_time() - start
