"""The recorded replies: which one answers a conversation, and how each model family writes it. Knows no wire."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

NOTE = "This is a recording; no model is running."
"""What every reply says first."""
LONGEST_RESULT = 2000
"""Characters of a tool's result that are repeated."""


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thought and an answer."""

    thinking: str
    answer: str
    asked: tuple[str, ...] = ()
    """Words of the questions that it answers; they must stand together."""


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thought, and a call of the client's own weather tool."""

    thinking: str
    answer: str
    place: str


class Recordings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All there is to replay."""

    recording: tuple[Recording, ...]
    fallback: Recording
    call: Call
    result: Recording
    toolless: Recording


class Voice(msgspec.Struct, frozen=True):
    """How one recorded model writes: templates with `{thinking}` and `{answer}`."""

    model: str
    format: str
    thought: str
    plain: str = "{answer}"
    """With thinking turned off."""
    call: str = ""
    """What follows the answer where it calls, with `{name}` and `{arguments}`; empty for one that never does."""

    def say(self, thinking: str, answer: str, *, thinks: bool) -> str:
        """The raw output, with markers."""
        return _fill(self.thought if thinks else self.plain, thinking=thinking, answer=f"{NOTE}\n\n{answer}")


VOICES = {
    voice.model: voice
    for voice in (
        Voice("recorded-qwen3", "qwen3", "<think>\n{thinking}\n</think>\n\n{answer}"),
        Voice("recorded-deepseek-r1", "deepseek_r1", "{thinking}\n</think>\n\n{answer}"),
        Voice(
            "recorded-gpt-oss",
            "gpt_oss",
            "<|channel|>analysis<|message|>{thinking}<|end|>"
            "<|start|>assistant<|channel|>final<|message|>{answer}<|return|>",
            "<|channel|>final<|message|>{answer}<|return|>",
        ),
        Voice("recorded-magistral", "magistral", "[THINK]{thinking}[/THINK]{answer}"),
        Voice(
            "recorded-tools",
            "qwen3",
            "<think>\n{thinking}\n</think>\n\n{answer}",
            call='\n<tool_call>\n{"name": {name}, "arguments": {arguments}}\n</tool_call>',
        ),
    )
}
"""The recorded models by name."""


@cache
def recordings() -> Recordings:
    """What there is to replay, read once."""
    text = files(__package__).joinpath("replies.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Recordings)


def compose(voice: Voice, messages: Sequence[dict[str, Any]], tools: Sequence[Any], *, thinks: bool) -> str:
    """What this model says next in a conversation, as raw output."""
    known = recordings()
    if voice.call:
        results = _results(messages)
        tool = _weather_tool(tools)
        if results:
            answer = _fill(known.result.answer, result=" ".join(results)[:LONGEST_RESULT])
            return voice.say(known.result.thinking, answer, thinks=thinks)
        if tool is None:
            return voice.say(known.toolless.thinking, known.toolless.answer, thinks=thinks)
        name, parameter = tool
        arguments = {parameter: known.call.place} if parameter else {}
        return voice.say(known.call.thinking, known.call.answer, thinks=thinks) + _fill(
            voice.call, name=_json(name), arguments=_json(arguments)
        )
    asked = next((_text(message) for message in reversed(messages) if message.get("role") == "user"), "")
    found = _recording_for(asked)
    return voice.say(found.thinking, found.answer, thinks=thinks)


def _recording_for(question: str) -> Recording:
    words = _words(question)
    for recording in recordings().recording:
        if any(_words(asked) in words for asked in recording.asked):
            return recording
    return recordings().fallback


def _words(text: str) -> str:
    """The words with a space around each, so that what stands in it stands there as whole words."""
    return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} "


def _results(messages: Sequence[dict[str, Any]]) -> list[str]:
    """What tools have said since the last assistant message."""
    results: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        results.insert(0, _text(message))
    return results


def _weather_tool(tools: Sequence[Any]) -> tuple[str, str] | None:
    """The name of the client's weather tool and of its first text parameter. No other tool is ever called:
    a recording cannot know what it would do."""
    for tool in tools:
        function = tool.get("function") if isinstance(tool, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(function, dict) and isinstance(name, str) and "weather" in name.lower():
            schema = function.get("parameters")
            properties = schema.get("properties") if isinstance(schema, dict) else None
            for key, value in properties.items() if isinstance(properties, dict) else ():
                if isinstance(value, dict) and value.get("type") == "string" and "enum" not in value:
                    return name, key
            return name, ""
    return None


def _text(message: dict[str, Any]) -> str:
    """The text of a message, whose content may be a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _fill(template: str, **values: str) -> str:
    """Put values in place of their names. Not `str.format`, because templates and values hold braces of their own."""
    names = "|".join(values)
    return re.sub(rf"\{{({names})\}}", lambda match: values[match[1]], template)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
