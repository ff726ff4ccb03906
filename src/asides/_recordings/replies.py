"""The recorded replies: which one answers a conversation, and how each recorded model writes it. Knows no wire format.

`replies.toml` holds both: recordings (a thought and an answer, chosen by words of the question) and models (format and
templates of raw output); `long.toml` holds long recordings. `compose` joins them: the raw output of one model for one
conversation, markers included. That it is a recording is said by the model's name, not in the answer.

    compose(recordings().models["recorded-qwen3"], [{"role": "user", "content": "17 times 23?"}], [], thinks=True)
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

LONGEST_RESULT = 2000
"""Characters of a tool's result that are repeated."""


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thought and an answer."""

    thinking: str
    answer: str
    asked: tuple[str, ...] = ()
    """Words of the questions that it answers; they must stand together."""
    question: str = ""
    """A question in full, for those that are offered."""
    source: str = ""
    """Where it is from, where it was not written with the others."""
    cut: bool = False
    """Whether it was cut off in its thought."""
    place: str = ""
    """Of the recording that calls the weather tool: the value of its parameter."""


class RecordedOutput(NamedTuple):
    """What a recorded model writes."""

    raw: str
    cut: bool = False
    """Whether its tokens ran out there."""


class RecordedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one recorded model writes: templates with `{thinking}` and `{answer}`."""

    name: str
    format: str
    thought: str
    plain: str = "{answer}"
    """With thinking turned off."""
    call: str = ""
    """What follows the answer where it calls, with `{name}` and `{arguments}`; empty for one that never does."""

    def write(self, recording: Recording, *, thinks: bool, **values: str) -> RecordedOutput:
        """The raw output, with markers. `values` fill the answer's own names."""
        template = self.thought if thinks else self.plain
        if recording.cut and "{thinking}" in template:
            return RecordedOutput(template.partition("{thinking}")[0] + recording.thinking, cut=True)
        answer = _fill(recording.answer, **values) if values else recording.answer
        return RecordedOutput(_fill(template, thinking=recording.thinking, answer=answer))


class Recordings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `replies.toml`."""

    model: tuple[RecordedModel, ...]
    recording: tuple[Recording, ...]
    fallback: Recording
    """For a question that no recording answers."""
    call: Recording
    result: Recording
    toolless: Recording
    """For a model that calls, where the request has no weather tool."""

    @property
    def models(self) -> dict[str, RecordedModel]:
        """The recorded models by name."""
        return {model.name: model for model in self.model}


@cache
def recordings() -> Recordings:
    """What there is to replay, read once."""
    found, more = (
        tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))
        for name in ("replies.toml", "long.toml")
    )
    return msgspec.convert(found | {"recording": found["recording"] + more["recording"]}, Recordings)


def compose(
    model: RecordedModel, messages: Sequence[dict[str, Any]], tools: Sequence[Any], *, thinks: bool
) -> RecordedOutput:
    """What this model answers next in a conversation, as raw output."""
    known = recordings()
    if not model.call:
        asked = next((_text(message) for message in reversed(messages) if message.get("role") == "user"), "")
        return model.write(_recording_for(asked), thinks=thinks)
    if results := _results(messages):
        return model.write(known.result, thinks=thinks, result=" ".join(results)[:LONGEST_RESULT])
    tool = _weather_tool(tools)
    if tool is None:
        return model.write(known.toolless, thinks=thinks)
    name, parameter = tool
    arguments = {parameter: known.call.place} if parameter else {}
    called = _fill(model.call, name=_json(name), arguments=_json(arguments))
    return RecordedOutput(model.write(known.call, thinks=thinks).raw + called)


def _recording_for(question: str) -> Recording:
    words = _words(question)
    for recording in recordings().recording:
        if any(_words(asked) in words for asked in recording.asked):
            return recording
    return recordings().fallback


def _words(text: str) -> str:
    """The words with spaces around them, so that `in` finds whole words only."""
    return f" {' '.join(re.findall(r'[a-z0-9]+', text.lower()))} "


def _results(messages: Sequence[dict[str, Any]]) -> list[str]:
    """The results of tools since the last assistant message."""
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
