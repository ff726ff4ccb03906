"""From a record of a trace file to the replies in it: which field holds the output, and what is beside it.

Trace files have no common shape: an output is a text, a message, a list of choices or turns, or typed blocks, under
one of many names, and its thinking may stand beside it in a field of its own. The known names are tried in order and
followed a few levels deep; raw text is parsed, what was taken apart already is put together. A shape that is not known
gives no reply.

    find_replies({"output": "<think>a</think>b"}, asides.parse)     FoundReplies([Message(...)], "output")

Takes decoded JSON and gives messages; reads no file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..message import Message
from ..parts import Text, Thinking, ToolCall

OUTPUT_FIELDS = (
    "raw_output",
    "model_output",
    "raw_response",
    "output",
    "outputs",
    "response",
    "responses",
    "completion",
    "completions",
    "generated_text",
    "generation",
    "generations",
    "resps",
    "prediction",
    "choices",
    "message",
    "messages",
    "conversations",
    "conversation",
    "text",
    "content",
    "answer",
    "raw",
)
"""Where an output is looked for, in this order; the first that holds one is taken."""
TURN_FIELDS = frozenset({"choices", "messages", "conversations", "conversation"})
"""Those of them that hold turns: a plain text there is the id of a conversation, and no output."""
REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "thought", "thoughts", "think")
"""Where the thinking of an output is looked for that was taken apart already."""
SECONDS_FIELDS = {
    "thinking_seconds": 1.0,
    "reasoning_seconds": 1.0,
    "thinking_time": 1.0,
    "reasoning_time": 1.0,
    "think_time": 1.0,
    "thinking_ms": 0.001,
    "reasoning_ms": 0.001,
}
"""Where the time spent thinking is looked for, and what a unit of it is in seconds."""
SPEAKERS = ("assistant", "gpt", "model", "bot")
"""What a conversation calls the model."""
Parse = Callable[[str], Message]
"""Takes raw output apart, as `asides.parse` does."""
GAP = "\n\n"
"""What stands between texts, and between thoughts, that came in blocks or fields of their own."""
DEEPEST = 8
"""How far a record's fields are followed into one another."""


class FoundReplies(msgspec.Struct, frozen=True):
    """What a record holds."""

    replies: list[Message]
    field: str
    """The field that was taken; empty where there was none."""


def decode(line: bytes) -> Any:
    """The value of a line of JSON. Raises a `ValueError` if it is none."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass  # NaN, half a surrogate pair and bytes that are not UTF-8 occur in real files, and json lets them pass.
    try:
        return json.loads(line.decode("utf-8-sig", "replace"))
    except RecursionError as error:
        raise ValueError("too deeply nested") from error


def find_replies(record: Any, parse: Parse, field: str = "") -> FoundReplies:
    """The replies of a record. With `field` (dots lead inside) only that one is looked at."""
    if isinstance(record, str) and not field:
        return FoundReplies([parse(record)], "the line itself")
    if not isinstance(record, dict):
        return FoundReplies([], "")
    if field:
        return FoundReplies(list(_replies(look_up(record, field), parse, 0)), field)
    for name in OUTPUT_FIELDS:
        if name in record and not (name in TURN_FIELDS and isinstance(record[name], str)):
            replies = list(_beside(record, name, parse, 0))
            if replies:
                return FoundReplies(replies, name)
    thinking = _reasoning(record)
    return FoundReplies([_joined(Message(), thinking)], "reasoning") if thinking else FoundReplies([], "")


def find_seconds(record: Any, field: str = "") -> float | None:
    """The time spent thinking, where the record says it."""
    if not isinstance(record, dict):
        return None
    if field:
        return _seconds(look_up(record, field), 1.0)
    found = (_seconds(record.get(name), unit) for name, unit in SECONDS_FIELDS.items())
    return next((seconds for seconds in found if seconds is not None), None)


def look_up(record: Mapping[str, Any], path: str) -> Any:
    """The value at a field's name, or at names joined by dots; None where there is none."""
    value: Any = record
    if path in record:
        return record[path]
    for name in path.split("."):
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value


def _seconds(value: Any, unit: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value * unit if 0 <= value < math.inf else None


def _beside(record: dict[str, Any], name: str, parse: Parse, depth: int) -> Iterator[Message]:
    """The replies in one field, with the thinking that stands beside it."""
    thinking = _reasoning(record)
    for message in _replies(record[name], parse, depth):
        yield _joined(message, thinking)


def _replies(value: Any, parse: Parse, depth: int) -> Iterator[Message]:
    if depth > DEEPEST:
        return
    if isinstance(value, str):
        yield parse(value)
    elif isinstance(value, dict):
        yield from _of_object(value, parse, depth)
    elif isinstance(value, list):
        if value and all(isinstance(item, dict) and "type" in item and "role" not in item for item in value):
            yield _of_content(value, parse)
            return
        for item in value:
            if not isinstance(item, dict) or is_of_model(item):
                yield from _replies(item, parse, depth + 1)


def _of_object(value: dict[str, Any], parse: Parse, depth: int) -> Iterator[Message]:
    """A message, a choice, or whatever else holds one."""
    calls = _calls(value.get("tool_calls"))
    for name in ("content", "value", "text", "message", "output", "generated_text", "choices", "body"):
        if value.get(name) is not None:
            found = list(_beside(value, name, parse, depth + 1))
            if found:
                yield from (_joined(message, calls=calls) for message in found)
                return
    thinking = _reasoning(value)
    if thinking or calls:
        yield _joined(Message(), thinking, calls)


def is_of_model(turn: dict[str, Any]) -> bool:
    """Whether a turn of a conversation is the model's; what names no speaker is."""
    speaker = turn.get("role", turn.get("from"))
    return speaker is None or speaker in SPEAKERS


def _of_content(blocks: list[dict[str, Any]], parse: Parse) -> Message:
    """A message whose content is a list of typed blocks."""
    found: list[Message] = []
    for block in blocks:
        text = block.get("text")
        thinking = _reasoning(block)
        if thinking:
            found.append(Message((Thinking(thinking),), thinking=thinking))
        elif isinstance(text, str):
            found.append(parse(text))
        elif block.get("type") in ("tool_use", "tool_call", "function_call"):
            arguments = block.get("input", block.get("arguments", {}))
            found.append(Message((_call(block.get("name"), arguments),)))
    return _put_together(found)


def _reasoning(value: dict[str, Any]) -> str:
    fields = (value.get(name) for name in REASONING_FIELDS)
    return next((thinking for thinking in fields if isinstance(thinking, str) and thinking), "")


def _joined(message: Message, thinking: str = "", calls: Sequence[ToolCall] = ()) -> Message:
    """A message with the thinking and the calls that came in fields of their own; itself where there are none."""
    if not thinking and not calls:
        return message
    before = [Message((Thinking(thinking),), thinking=thinking)] if thinking else []
    joined = _put_together([*before, message, Message(tuple(calls))])
    kept = {name: getattr(message, name) for name in ("notices", "termination", "beyond")}
    return msgspec.structs.replace(joined, **kept)


def _calls(value: Any) -> list[ToolCall]:
    """Calls in OpenAI's shape or Ollama's."""
    functions = (
        [item.get("function", item) for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    )
    return [_call(each.get("name"), each.get("arguments")) for each in functions if isinstance(each, dict)]


def _call(name: Any, arguments: Any) -> ToolCall:
    # Not msgspec, which refuses half a surrogate pair.
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(name=name if isinstance(name, str) else "", arguments=written)


def _put_together(messages: Sequence[Message]) -> Message:
    """What came from several places as one message: no part has a span any more. Text is never empty."""
    parts = [part for message in messages for part in message.parts if not isinstance(part, Text) or part.text]
    return Message(
        parts=tuple(msgspec.structs.replace(part, span=(0, 0)) for part in parts),
        thinking=GAP.join(message.thinking for message in messages if message.thinking),
        text=GAP.join(message.text for message in messages if message.text),
    )
