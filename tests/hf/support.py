"""What the tests of response templates share: the cases of a format as a template's reader gets them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from asides import Format, get_format
from asides._engine.format import TEXT, THINKING
from asides.hf import ResponseParser
from tests.test_cases import ALL, Case

Event = dict[str, Any]

TRACES = Path(__file__).parents[3] / "shared" / "data" / "traces"
"""Real outputs of models, one to a line, where they are at hand; a fresh clone has none."""


def shared_traces() -> Iterator[dict[str, str]]:
    """Every real output that is at hand: its source, its model and its text."""
    for path in sorted(TRACES.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


class Reading(NamedTuple):
    """One case for a reader of templates."""

    format: Format
    text: str
    prefix: str
    tools: Any
    case: Case | None
    """The case that it is; None for another output."""


def readings(names: Sequence[str] = ()) -> Iterator[Reading]:
    """Every case of the formats that a template can be written for, with the prompt that goes before it."""
    for case in ALL:
        format = get_format(case.format)
        if format.settle is not None or (names and format.name not in names):
            continue
        text = "".join(case.chunks)
        tools = case.said.get("options", {}).get("tools")
        yield Reading(format, text, prompt_before(format, text, case.said.get("options", {})), tools, case)


def prompt_before(format: Format, text: str, options: dict[str, Any]) -> str:
    """The end of the prompt: the assistant's header, and the opener where the output begins in thinking."""
    if options.get("prompt") is not None:
        return str(options["prompt"])
    header = format.assistant[0] if format.assistant else ""
    openers = [marker for marker, leads in format.states.get(TEXT, {}).items() if leads == THINKING]
    begins = (options.get("start") or format.start) == THINKING
    if not begins or not openers or text.lstrip().startswith(tuple(openers)):
        return header
    return header + openers[0]


def read(template: Any, chunks: Iterable[str], prefix: str, tools: Any = None) -> tuple[dict[str, Any], list[Event]]:
    """The message and all events, neighbouring chunks joined."""
    parser = ResponseParser(template, prefix, tools=tools)
    events = list(parser.initial_events)
    for chunk in chunks:
        events += parser.feed(chunk)
    message, last = parser.finalize()
    return message, joined(events + last)


def joined(events: Iterable[Event]) -> list[Event]:
    """Events with neighbouring chunks of one region joined."""
    found: list[Event] = []
    for event in events:
        last = found[-1] if found else None
        if event["type"] == "region_chunk" and last is not None and last["type"] == "region_chunk":
            found[-1] = {**last, "text": last["text"] + event["text"]}
        else:
            found.append(dict(event))
    return found
