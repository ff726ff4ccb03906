"""What a template writes as the assistant's turns: thoughts, words, one call and two, as a model would write them.

A turn counts where it goes on from the generation prompt, so that what follows the prompt is an output. The prompt may
be the plain one, or that of the switch which detection found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import asides
from asides.detect import Detection, detect
from asides.detect._evidence import FIELDS
from asides.detect._sandbox import Rendering, SampleChat, render

QUESTION, THOUGHT, ANSWER = "Qwhatzuq", "Wa thought uw", "Zan answer ez"
NAMES = ("zlookupz", "zfindz")
ARGUMENTS = ({"place": "Ulm", "why": "so that it is"}, {"place": "Bad Tölz", "why": "a\nb"})


class Output(NamedTuple):
    """What a model would have written, what it would have begun in, and what it holds."""

    text: str
    start: Any
    thinking: str
    said: str
    calls: int


class Counts(NamedTuple):
    """How many outputs were read rightly."""

    outputs: int
    detected: int
    auto: int
    wrong: list[Output]
    """Those that detection's format and start read wrongly."""


@cache
def detection_of(template: str) -> Detection:
    """What detection says of a template; several tests ask."""
    return detect(chat_template=template)


def count(template: str) -> Counts:
    """Read every turn that a template writes with what detection says of it, and with `auto`."""
    found = detection_of(template)
    outputs = sorted(set(_outputs(template, found)), key=str)
    # The recipe of docs/how-to/detection.md.
    detected = [_right(asides.Parser(found.format, start=output.start), output) for output in outputs]
    auto = [_right(asides.Parser("auto", start="undecided"), output) for output in outputs]
    wrong = [output for output, right in zip(outputs, detected, strict=True) if not right]
    return Counts(len(outputs), sum(detected), sum(auto), wrong)


def _right(parser: asides.Parser, output: Output) -> bool:
    parser.feed(output.text)
    parser.finish()
    message = parser.message
    calls = [(call.name, call.error or json.loads(call.arguments)) for call in message.tool_calls]
    expected = list(zip(NAMES, ARGUMENTS, strict=True))[: output.calls]
    return (message.thinking.strip(), message.text.strip(), calls) == (output.thinking, output.said, expected)


def _outputs(template: str, found: Detection) -> Iterable[Output]:
    rendered = render(template, list(_conversations()), {"bos_token": "", "eos_token": "</s>"}).rendered
    prompts = {_key(rendering): rendering.text for rendering in rendered if rendering.conversation.startswith("prompt")}
    starts = {
        "{}": found.start,
        json.dumps({found.switch: found.off}): found.start_off,
        json.dumps({found.switch: found.on}): found.start_on,
    }
    for rendering in rendered:
        prompt, switches = prompts.get(_key(rendering)), json.dumps(rendering.switches)
        text = rendering.text
        if not rendering.conversation.startswith("turn") or not prompt or text is None or not text.startswith(prompt):
            continue
        text = text[len(prompt) :]
        calls = sum(name in text for name in NAMES)
        # A list that was written as it is, and a call that was left out, are no turns of a model.
        if switches in starts and "'type'" not in text and f"calls={calls}" in rendering.conversation and text.strip():
            thinking, said = (word if word in text else "" for word in (THOUGHT, ANSWER))
            yield Output(text, starts[switches], thinking, said, calls)


def _key(rendering: Rendering) -> tuple[str, str]:
    return rendering.conversation.rpartition(" ")[2], json.dumps(rendering.switches)


def _conversations() -> Iterable[SampleChat]:
    user = {"role": "user", "content": QUESTION}

    def ask(name: str, tools: bool, *messages: dict[str, Any]) -> SampleChat:
        variables: dict[str, Any] = {"messages": [user, *messages], "add_generation_prompt": name == "prompt"}
        if tools:
            variables["tools"] = [_tool(name) for name in NAMES]
        return SampleChat(name=f"{name} {tools}", variables=variables, switched=True)

    for tools in (False, True):
        yield ask("prompt", tools)
    for calls in range(3):
        for said in (ANSWER, "")[: 1 + bool(calls)]:
            for field in ("", *FIELDS):
                turn: dict[str, Any] = {"role": "assistant", "content": said}
                if calls:
                    turn["tool_calls"] = [_call(number) for number in range(calls)]
                if field:
                    turn[field] = THOUGHT
                yield ask(f"turn calls={calls}", bool(calls), turn)
    for kind in ("thinking", "reasoning"):
        content = [{"type": kind, kind: THOUGHT}, {"type": "text", "text": ANSWER}]
        yield ask("turn calls=0", False, {"role": "assistant", "content": content})


def _call(number: int) -> dict[str, Any]:
    function = {"name": NAMES[number], "arguments": ARGUMENTS[number]}
    return {"id": f"functions.{NAMES[number]}:{number}", "type": "function", "function": function}


def _tool(name: str) -> dict[str, Any]:
    properties = {argument: {"type": "string"} for argument in ARGUMENTS[0]}
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": "finds", "parameters": parameters}}
