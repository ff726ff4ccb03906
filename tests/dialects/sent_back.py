"""Messages that go back to a server, in conversations that go on from them: for tests with servers' own readers, and
with the SDKs' own types."""

from __future__ import annotations

from typing import Any, NamedTuple

from pydantic import TypeAdapter

import asides
from asides.dialects._sent_back import write_turn

CALL = '<tool_call>\n{{"name": "add", "arguments": {{"a": {}}}}}\n</tool_call>'
OUTPUTS = {
    "an answer": "<think>\nTwo and two.\n</think>\n\nIt is 4.",
    "a call": f"<think>\nAdd them.\n</think>\n\nOne moment.\n{CALL.format(2)}",
    "a call alone": f"<think>\nAdd them.\n</think>\n\n{CALL.format(2)}",
    "two calls": f"<think>\nAdd them.\n</think>\n\nBoth.\n{CALL.format(2)}\n{CALL.format(3)}",
    "a second thought": f"<think>\nAdd.\n</think>\n\nOne.\n\n<think>\nOr two.\n</think>\n\nTwo.\n{CALL.format(2)}",
    "a broken call": '<think>\nAdd.\n</think>\n\nWell.\n<tool_call>\n{"name": "add", "arguments": [}\n</tool_call>',
    "a marker in the answer": "<think>\nHow do I say it?\n</think>\n\nWrite `<think>` before it.",
}
"""What Qwen3 writes."""
USER = {"role": "user", "content": "2+2?"}
RESULT = "4"


class SentBack(NamedTuple):
    """A message that goes back to one API in one of its ways."""

    message: asides.Message
    written: list[dict[str, Any]]
    """All of the conversation: the question, the message as it was written, and what follows it."""
    thought: bool
    """Whether the thought is in it."""

    @property
    def calls(self) -> list[asides.ToolCall]:
        """Those that may be run."""
        return [call for call in self.message.tool_calls if call.error is None]


def sent_back(output: str, api: str, thinking: str) -> SentBack:
    """A conversation in which a model's output goes back."""
    message = asides.parse(output, model="Qwen/Qwen3-8B")
    write: dict[str, Any] = {
        "chat": message.to_openai,
        "ollama": message.to_ollama,
        "messages": message.to_anthropic,
        "responses": message.to_responses,
    }
    written = write[api](thinking)
    written = written if isinstance(written, list) else [written]
    calls = [call for call in message.tool_calls if call.error is None]
    after: list[dict[str, Any]]
    if not calls:
        after = [USER]
    elif api == "chat":
        after = [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in calls]
    elif api == "ollama":
        after = [{"role": "tool", "tool_name": call.name, "content": RESULT} for call in calls]
    elif api == "messages":
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": RESULT} for call in calls]
        after = [{"role": "user", "content": results}]
    else:
        after = [{"type": "function_call_output", "call_id": call.id, "output": RESULT} for call in calls]
    goes = bool(calls) if thinking == "auto" else thinking != "drop"
    return SentBack(message, [USER, *written, *after], goes)


NAMELESS = 'Well.\n<tool_call>\n{"arguments": {"a": 2}}\n</tool_call>'
"""A call of nobody knows what."""


def sent_turn(output: str, api: str) -> tuple[asides.Message, list[dict[str, Any]]]:
    """A conversation that goes on as `asides.turn` says: broken calls go back too, with what was wrong with them."""
    message = asides.parse(output, model="Qwen/Qwen3-8B")
    results = {call.id: RESULT for call in message.tool_calls if call.error is None}
    dialect = {"chat": "openai_chat", "messages": "anthropic", "ollama": "ollama"}[api]
    written = write_turn(dialect, message, results, earlier=None, field="reasoning_content", proofs={})
    return message, [USER, *written, *([] if message.tool_calls else [USER])]


def take(types: TypeAdapter[Any], given: Any) -> Any:
    """What the types make of it; lists too, which pydantic checks only when they are looked at."""
    return _looked_at(types.validate_python(given))


def _looked_at(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _looked_at(inner) for name, inner in value.items()}
    return value if isinstance(value, str) or not hasattr(value, "__iter__") else [_looked_at(each) for each in value]
