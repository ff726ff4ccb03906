"""What a chat template writes: prompts, turns, and thoughts put in as needles.

Decides which conversations the sandbox renders and sorts what comes back. What it means is decided by `from_template`;
no format is named here.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from ._sandbox import Rendered, SampleChat, render
from ._trial import RenderedTurn

USER, THOUGHT, ANSWER = "Qwhatzuq", "Wthoughtuw", "Zanswerez"
"""The needles. One word each and in no one's vocabulary, so that no template takes them for something else."""
FUNCTION, ARGUMENT, RESULT = "zlookupz", "Ulmzq", "Rfoundar"
BEGIN, STOP = "Vbegintextov", "Vendtextiv"
"""What `bos_token` and `eos_token` are while nobody says what they are."""

FIELDS = ("reasoning_content", "reasoning", "thinking", "thought")
"""Where templates look for the thoughts of a message."""
TYPED: dict[str, dict[str, str]] = {
    "content of type thinking": {"type": "thinking", "thinking": THOUGHT},
    "content of type reasoning": {"type": "reasoning", "reasoning": THOUGHT},
}
"""The same in messages whose content is a list."""

MOST_TURNS = 10
"""Turns that are kept, each different. Templates write the same for most conversations."""

MOST_WRITTEN, MOST_INSTRUCTIONS = 10_000, 100_000
"""Characters of a turn or a prompt, and of instructions, that are looked at: all formats read all turns."""

_CALL = {"id": "needle001", "type": "function", "function": {"name": FUNCTION, "arguments": {"place": ARGUMENT}}}
_CALL_AS_TEXT = {**_CALL, "function": {"name": FUNCTION, "arguments": f'{{"place": "{ARGUMENT}"}}'}}
_PARAMETERS = {
    "type": "object",
    "properties": {"place": {"type": "string", "description": "a place"}},
    "required": ["place"],
}
_TOOL = {
    "type": "function",
    "function": {"name": FUNCTION, "description": "finds a place", "parameters": _PARAMETERS},
}
_SELDOM = {"functions": json.dumps([_TOOL]), "datetime": "Jan 02 2026 12:00:00 UTC"}
"""What some templates do not work without: the functions as text, and the time."""
_RAW = re.compile(f"['\"]type['\"]|{THOUGHT}['\"]|{THOUGHT}\\s*{ANSWER}")
"""A thought that was not written as one: a list that was dumped as it is, or nothing between thought and answer."""


class Echo(msgspec.Struct, frozen=True):
    """A thought that the template wrote, and the field that it was put into."""

    field: str
    turn: RenderedTurn


class RenderedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt up to where the model begins."""

    switches: dict[str, Any]
    """The keywords that were given."""
    written: str
    """All that follows the user's words."""
    before: str
    """All that stands before them: the template's own instructions to the model."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that was seen of a template."""

    echoes: list[Echo]
    turns: list[RenderedTurn]
    """Turns with and without thoughts."""
    prompts: list[RenderedPrompt]
    """The generation prompts; the first has no switch set."""
    instructions: str
    """What the template puts before the user's text by itself, with and without tools, whatever is switched."""
    source: str
    """The strings in the template's source, with a NUL between them."""
    switches: dict[str, list[Any]]
    user_end: str = ""
    """What follows the user's text where no prompt for an answer does: the end of the user's turn."""
    failure: str = ""
    """Why the plainest conversation could not be rendered."""


def gather(template: str, *, begin: str = "", stop: str = "") -> Evidence:
    """Render every sample conversation with a template and sort what comes back.

    `begin` and `stop` are the tokenizer's own tokens, where they are known.
    """
    tokens = {"bos_token": begin or BEGIN, "eos_token": stop or STOP}
    found = sort_out(render(template, _conversations(), tokens))
    if "is undefined" in found.failure:
        # It may want what few templates do. Others ask whether these are defined, and do something else if so.
        more = sort_out(render(template, _conversations(), {**tokens, **_SELDOM}))
        return more if more.prompts else found
    return found


def _conversations() -> list[SampleChat]:
    user = {"role": "user", "content": USER}
    answer = {"role": "assistant", "content": ANSWER}
    call = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
    # Templates differ in whether arguments are an object or its JSON, and in what stands in the content beside a call;
    # what one does not take fails or is written in a way that no format reads.
    call_as_text = {**call, "content": None, "tool_calls": [_CALL_AS_TEXT]}
    result = {"role": "tool", "tool_call_id": "needle001", "name": FUNCTION, "content": RESULT}

    def conversation(name: str, *messages: dict[str, Any], prompt: bool = False, tools: bool = False) -> SampleChat:
        variables: dict[str, Any] = {"messages": messages, "add_generation_prompt": prompt}
        if tools:
            variables["tools"] = [_TOOL]
        return SampleChat(name=name, variables=variables, switched=prompt)

    conversations = [
        conversation("question", user),
        conversation("prompt", user, prompt=True),
        conversation("prompt with tools", user, prompt=True, tools=True),
        conversation("answer", user, answer),
        conversation("call", user, call, tools=True),
        conversation("call", user, call_as_text, tools=True),
        conversation("call", user, call, result, tools=True),
    ]
    for field in FIELDS:
        thought = {field: THOUGHT}
        conversations += [
            conversation(f"thought {field}", user, {**answer, **thought}),
            # Many templates leave the thoughts of earlier turns out, but not those before a call.
            conversation(f"thought {field}", user, {**call, **thought}, tools=True),
            conversation(f"thought {field}", user, {**call, **thought}, result, tools=True),
        ]
    for name, part in TYPED.items():
        conversations.append(
            conversation(f"thought {name}", user, {**answer, "content": [part, {"type": "text", "text": ANSWER}]})
        )
    return conversations


def sort_out(rendered: Rendered) -> Evidence:
    """The evidence in what was rendered."""
    echoes: dict[str, Echo] = {}
    turns: dict[str, RenderedTurn] = {}
    prompts: list[RenderedPrompt] = []
    instructions: dict[str, None] = {}
    user_end = failure = ""
    for rendering in rendered.rendered:
        text = rendering.text
        kind, _, field = rendering.conversation.partition(" ")
        if text is None:
            if rendering.conversation == "prompt" and not rendering.switches:
                failure = rendering.error or ""
            continue
        before, _, written = text.rpartition(USER)
        if kind == "question":
            user_end = user_end or written[:MOST_WRITTEN]
            continue
        if kind == "prompt":
            instructions[before[:MOST_INSTRUCTIONS]] = None
            if not field:
                prompts.append(
                    RenderedPrompt(
                        switches=rendering.switches, written=written[-MOST_WRITTEN:], before=before[:MOST_INSTRUCTIONS]
                    )
                )
            continue
        turn = _turn(written[:MOST_WRITTEN])
        if turn is None or (kind == "thought" and not turn.thought):
            continue
        # A turn with an answer is preferred: what stands between thought and answer is the closing marker.
        if turn.thought and (field not in echoes or (turn.answer and not echoes[field].turn.answer)):
            echoes[field] = Echo(field, turn)
        if len(turns) < MOST_TURNS:
            turns.setdefault(turn.written, turn)
    return Evidence(
        echoes=list(echoes.values()),
        turns=list(turns.values()),
        prompts=prompts,
        instructions="\0".join(instructions)[:MOST_INSTRUCTIONS],
        source="\0".join(rendered.literals),
        switches=rendered.switches,
        user_end=user_end,
        failure=failure,
    )


def _turn(written: str) -> RenderedTurn | None:
    """The needles that a turn holds. What follows it is cut off."""
    # Behind the end of the turn stands what the template writes next, which is no part of what the model wrote.
    written = written.partition(RESULT)[0].partition(STOP)[0]
    found = {
        "thought": THOUGHT if THOUGHT in written and not _RAW.search(written) else "",
        "answer": ANSWER if ANSWER in written else "",
        "function": FUNCTION if FUNCTION in written and ARGUMENT in written else "",
    }
    if not any(found.values()):
        return None
    return RenderedTurn(written=written, argument=ARGUMENT if found["function"] else "", **found)
