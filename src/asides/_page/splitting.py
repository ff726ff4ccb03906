"""Raw output taken apart for the page: parts with their places, the markers between them, notices, and why so.

take_apart("<think>2+2</think>4", "auto", DEFAULTS)["parts"]
# [{"kind": "thinking", "text": "2+2", "start": 7, "end": 10, "complete": True}, {"kind": "text", ...}]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .._engine.format import Format, thinking_pair
from .._recordings.replies import compose, recordings
from ..events import Notice
from ..families import formats, get_format
from ..parts import Part, Thinking, ToolCall
from ..policies import Policies
from ..reading import Reading

MOST_CHARACTERS = 1_000_000
"""Of a text that is taken apart for the page."""
EXAMPLE_TOOL = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}}}},
}
"""What the recorded model that calls is offered."""


def take_apart(text: str, format: str, policies: Policies) -> dict[str, Any]:
    """A whole output as the page shows it. `UnknownFormatError` where there is no such format."""
    chosen = get_format(format)
    message, settled = Reading.of(format=chosen, policies=policies).rows().read(text)
    parts = [write_part(part) for part in message.parts]
    return {
        "format": settled.name,
        "why": explain(chosen, settled),
        "parts": parts,
        "markers": list(markers_between(len(text), parts, message.notices)),
        "notices": [write_notice(notice) for notice in message.notices],
        "termination": message.termination,
    }


def thoughts_in(text: str, format: Format) -> list[str]:
    """The thoughts between markers in a text."""
    message = Reading.of(format=format, policies=Policies(calls=False)).parse(text)
    return [part.text for part in message.parts if isinstance(part, Thinking)]


def write_part(part: Part) -> dict[str, Any]:
    """A part as plain data, with its place in the raw text where it has one."""
    place = {"start": part.span[0], "end": part.span[1]} if part.span != (0, 0) else {}
    if isinstance(part, ToolCall):
        return {
            "kind": "tool_call",
            "name": part.name,
            "arguments": part.arguments,
            "id": part.id,
            "complete": part.complete,
            "error": part.error,
            "text": part.raw,
            **place,
        }
    thinking = isinstance(part, Thinking)
    complete = part.complete if isinstance(part, Thinking) else True
    return {"kind": "thinking" if thinking else "text", "text": part.text, "complete": complete, **place}


def write_parts(parts: Iterable[Part], seconds: Iterable[float | None]) -> list[dict[str, Any]]:
    """Parts of a reply in order; `seconds`: how long each thought took, as far as that is known."""
    took, written = iter(seconds), []
    for part in parts:
        shown = write_part(part)
        if isinstance(part, Thinking):
            shown["seconds"] = next(took, None)
        written.append(shown)
    return written


def write_notice(notice: Notice) -> dict[str, Any]:
    """A notice as plain data."""
    return {"code": notice.code, "message": notice.message, "at": notice.offset}


def markers_between(
    length: int, parts: Iterable[dict[str, Any]], notices: Iterable[Notice] = ()
) -> Iterator[dict[str, Any]]:
    """The stretches of a text that are in no part: markers, headers, and whitespace beside them; and, of the kind
    `beyond`, what another turn wrote, which is not read."""
    reached = 0
    turn_end = next((notice.offset for notice in notices if notice.code == "after_turn"), length)
    for part in parts:
        if "start" in part:
            if part["start"] > reached:
                yield {"start": reached, "end": part["start"]}
            reached = part["end"]
    if reached < turn_end:
        yield {"start": reached, "end": turn_end}
    if turn_end < length:
        yield {"start": turn_end, "end": length, "kind": "beyond"}


def explain(chosen: Format, settled: Format) -> str:
    """Why a text was read so, in a sentence."""
    if chosen.settle is None:
        return f"The format {chosen.name} was chosen."
    if settled.name != chosen.name:
        return f"A marker that only {settled.name} writes settled the format."
    opener, closer = thinking_pair(settled)
    if settled is chosen or not opener:
        return "No marker of a thought was met, so nothing settled how thinking is written."
    return f"Thinking stands between {opener} and {closer}: that is what the first marker settled."


def list_examples() -> list[dict[str, str]]:
    """A raw output of each recorded model, to be taken apart as an example."""
    question = [{"role": "user", "content": "What is 17 times 23?"}]
    return [
        {
            "name": model.name,
            "format": get_format(model.format).name,
            "text": compose(model, question, [EXAMPLE_TOOL], thinks=True).raw,
        }
        for model in recordings().model
    ]


def list_formats() -> list[dict[str, Any]]:
    """Every format with its names and its pair of markers, empty where a header or nothing says what is thinking."""
    found = []
    for format in map(get_format, formats()):
        opener, closer = thinking_pair(format) if format.settle is None else ("", "")
        names = list(format.aliases)
        found.append({"name": format.name, "aliases": names, "open": opener, "close": closer, "start": format.start})
    return found
