"""What `asides` makes of a case, in the words of the cases: parts, events, notices, and what each API shows.

`answer_case` takes a case as a runner sends it and returns what a runner compares. The cases that are shipped are
made by it (`python -m tools.case_data`), and `python -m asides.audit.answer` answers runners with it. Events are joined
and neutral: no numbers of parts, no spans, no whitespace that an API puts between two texts but as `gap`.

    answer_case({"format": "qwen3", "chunks": ["<think>a</think>b"], "start": "undecided"})["events"]
    # [{"thinking": "a"}, {"text": "b"}]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from .. import dialects
from ..dialects._request import Request
from ..errors import UsageError
from ..events import Event, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ..families import get_format
from ..parts import Part, Text, Thinking
from ..policies import DEFAULTS, CallsInThinking, Mentions, Policies, Whitespace
from ..reading import Reading
from ..reply import Begin, Ended, RawText

APIS = ("openai_chat", "openai_responses", "anthropic", "ollama")
"""The APIs whose replies are compared."""
COMPARED = frozenset({
    *("choices", "message", "content", "reasoning_content", "thinking", "tool_calls", "function"),
    *("name", "arguments", "input", "output", "type", "summary", "text", "status"),
    *("finish_reason", "stop_reason", "done_reason"),
})  # fmt: skip
"""The keys of a reply that say what the model thought, said and called, and how it ended. All others are a server's
own: ids, times, usage."""


class _ChosenPolicies(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The policies that a case may choose, beside where it begins and its tools."""

    calls: bool = True
    calls_in_thinking: CallsInThinking | None = None
    limit: int = DEFAULTS.limit
    mentions: Mentions = "literal"
    repair: bool = False
    whitespace: Whitespace = "tidy"


class SentCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a runner sends of a case."""

    format: str
    chunks: list[str]
    id: str = ""
    start: Literal["text", "thinking", "undecided", "header", "stream"] | None = None
    prompt: str | None = None
    tools: list[dict[str, Any]] | None = None
    policies: _ChosenPolicies = _ChosenPolicies()
    ended: Literal["stop", "length"] | None = None

    def reading(self, seed: int = 0) -> Reading:
        """How it is to be read."""
        # The other two mean that the format itself says it.
        given = {"start": self.start} if self.start in ("text", "thinking", "undecided") else {}
        chosen: dict[str, Any] = msgspec.to_builtins(self.policies) | given
        return Reading(
            format=get_format(self.format),
            policies=Policies(seed=seed, prompt=self.prompt, tools=self.tools, **chosen),
            sure=True,
            evidence="option",
            reason="the case says it",
        )


def answer_case(case: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """What is compared with the case. A `UsageError` says what is wrong with what was sent.

    `seed` is for the ids of calls that the model did not write, which are no part of an answer.
    """
    try:
        sent = msgspec.convert(case, SentCase)
    except msgspec.ValidationError as error:
        raise UsageError(f"this is no case: {error}") from error
    reading = sent.reading(seed)
    parser = reading.parser()
    events = [event for chunk in sent.chunks for event in parser.feed(chunk)]
    events += parser.finish(sent.ended)
    message = parser.message
    return {
        "parts": [part_of(part, message.raw) for part in message.parts],
        "events": neutral(events, message.raw),
        "notices": [notice.code for notice in message.notices],
        "termination": message.termination,
        "beyond": message.raw[slice(*message.beyond)] if message.beyond is not None else "",
        "apis": _apis(reading, sent),
    }


def part_of(part: Part, raw: str) -> dict[str, Any]:
    """A part in the words of the cases. An id that is not in the raw text was made by us, and is left out."""
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Thinking):
        return {"thinking": part.text} | ({} if part.complete else {"complete": False})
    found: dict[str, Any] = {"call": part.name, "arguments": part.arguments}
    if part.id and part.id in raw:
        found["id"] = part.id
    if part.error is not None:
        found["error"] = part.error
    return found if part.complete else found | {"complete": False}


def neutral(events: Iterable[Event], raw: str) -> list[dict[str, Any]]:
    """Events as any program could emit them, neighbouring deltas of one part joined."""
    found: list[dict[str, Any]] = []
    kinds: dict[int, str] = {}
    calls: dict[int, int] = {}
    gap, opened = "", -1
    for event in events:
        if isinstance(event, PartStart):
            kinds[event.index] = event.kind
            gap, opened = event.gap, event.index
            if event.kind == "tool_call":
                number = calls[event.index] = len(calls)
                written = {"id": event.id} if event.id and event.id in raw else {}
                found.append({"call": number, "name": event.name, **written})
        elif isinstance(event, ToolCallDelta):
            _extend(found, {"call": calls[event.index], "arguments": event.text}, "arguments")
        elif isinstance(event, TextDelta | ThinkingDelta):
            kind = "text" if isinstance(event, TextDelta) else "thinking"
            if opened == event.index:
                found.append({kind: event.text} | ({"gap": gap} if gap else {}))
                opened = -1
            else:
                _extend(found, {kind: event.text}, kind)
        elif isinstance(event, Retyped):
            found.append({"retyped": event.kind})
        elif isinstance(event, PartEnd) and kinds.get(event.index) == "tool_call":
            found.append({"call": calls[event.index], "end": event.error or "ok"})
    return found


def _extend(events: list[dict[str, Any]], more: dict[str, Any], key: str) -> None:
    """Put a delta to the events, or to the last of them where it is of the same part."""
    last = events[-1] if events else {}
    if key in last and last.get("call") == more.get("call"):
        last[key] += more[key]
    else:
        events.append(more)


def _apis(reading: Reading, sent: SentCase) -> dict[str, Any]:
    """The reply that each API's client gets, as far as it is compared."""
    found = {}
    for name in APIS:
        splitter = reading.splitter(whole=True)
        items = [
            *splitter.feed(Begin()),
            *(item for chunk in sent.chunks for item in splitter.feed(RawText(0, chunk))),
            *splitter.finish(sent.ended),
            *splitter.feed(Ended(0, sent.ended or "stop")),
        ]
        found[name] = compared(dialects.get(name).write_reply(items, Request(dialect=name)))
    return found


def compared(value: Any) -> Any:
    """What is compared of an API's reply: the keys of `COMPARED`, and of these those that hold something."""
    if isinstance(value, list):
        return [compared(item) for item in value]
    if not isinstance(value, dict):
        return value
    # The arguments of a call are the model's own, whatever their keys are.
    kept = {
        key: item if key in ("arguments", "input") else compared(item) for key, item in value.items() if key in COMPARED
    }
    return {key: item for key, item in kept.items() if item not in (None, "", [], {}) or key in ("arguments", "input")}
