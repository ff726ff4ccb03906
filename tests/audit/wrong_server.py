"""A scripted server that says scripts as a parrot does, and can be made wrong in one way at a time.

Its prompts have `BASE` tokens, one more for each filler and `TOOL_TOKENS` with tools; the reply is the script at that
position, split as the manifest says. `wrong` changes the speech before it is sent, `patch` the bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from asides.audit._manifest import Manifest, ParrotScript, TokenizerSource
from tests.gateway import speech
from tests.gateway.speech import Speech
from tests.gateway.upstream import JSON, SSE, Asked, Reply, Upstream

BASE = 20
TOOL_TOKENS = 30
FILLER = " x"
TOOLS = [{"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object"}}}]


def script(position: int, name: str, raw: str, parts: list[dict[str, Any]], **fields: Any) -> ParrotScript:
    """A script of the format qwen3; its ids are made up, a token for three characters."""
    ids = list(range(max(1, len(raw) // 3)))
    fields = {"format": "qwen3", "case": name, "end_id": 1, **fields}
    return ParrotScript(name=name, position=position, ids=ids, raw=raw, parts=parts, **fields)


CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
CALL_PART = {"call": "add", "arguments": '{"a": 1}'}
SCRIPTS = [
    script(100, "plain", "It is four, and that is all.", [{"text": "It is four, and that is all."}]),
    script(
        140,
        "thought",
        "<think>two and two is four</think>It is four.",
        [{"thinking": "two and two is four"}, {"text": "It is four."}],
    ),
    script(180, "call", f"<think>use the tool</think>{CALL}", [{"thinking": "use the tool"}, CALL_PART], tools=TOOLS),
    script(
        220,
        "draft",
        f"<think>maybe {CALL} but no, I know it</think>It is two.",
        [{"thinking": f"maybe {CALL} but no, I know it"}, {"text": "It is two."}],
        tools=TOOLS,
    ),
    script(
        260,
        "quoted",
        'I say "</think>" here, and go on with the words.',
        [{"text": 'I say "</think>" here, and go on with the words.'}],
    ),
]


def manifest(scripts: list[ParrotScript] = SCRIPTS) -> Manifest:
    """The manifest of these scripts."""
    source = TokenizerSource(source="made up", sha256="0")
    return Manifest(
        asides="0",
        name="parrot",
        format="qwen3",
        tokenizer=source,
        vocabulary=10,
        context=2000,
        filler=FILLER,
        end_ids=[1],
        scripts=scripts,
    )


def right(said: ParrotScript) -> Speech:
    """How a script is split."""
    return Speech(
        "".join(part.get("text", "") for part in said.parts),
        thought="".join(part.get("thinking", "") for part in said.parts),
        calls=tuple((part["call"], part["arguments"]) for part in said.parts if "call" in part),
    )


@dataclass
class ParrotServer:
    """Answers chat completions."""

    upstream: Upstream
    wrong: Callable[[ParrotScript, Speech], Speech] = lambda said, speech: speech
    patch: Callable[[Asked, bytes], bytes] = lambda asked, data: data
    status: Callable[[ParrotScript | None], int] = lambda said: 200
    reply: Callable[[Asked], Reply] | None = None
    """What is sent instead of everything else."""
    counts: bool = True
    puts_back: bool = True
    lengths: list[int] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.upstream.send(self.answer, "/v1/chat/completions")

    def answer(self, asked: Asked) -> Reply:
        """The reply to a request."""
        if self.reply is not None:
            return self.reply(asked)
        body = asked.body
        if not isinstance(body["messages"], list):
            return Reply([b'{"error": {"message": "messages must be a list", "type": "x"}}'], 400, JSON, whole=True)
        length = self._length(body)
        self.lengths.append(length)
        said = next((each for each in SCRIPTS if each.position == length), None)
        self.number += 1
        spoken = Speech("") if said is None else self.wrong(said, right(said))
        most = body["max_tokens"]
        written = min(len(said.ids) + 1 if said else 1, most)
        spoken = replace(spoken, ids=f"call{self.number}" if spoken.ids == "call" else spoken.ids)
        spoken = replace(spoken, usage=(length, written) if self.counts else None)
        if said is not None and most < len(said.ids):
            spoken = replace(spoken, reason="length" if spoken.reason == "stop" else spoken.reason, calls=())
        streamed = body.get("stream")
        data = self.patch(asked, (speech.chat_stream if streamed else speech.chat_whole)(spoken, body))
        if not self.counts:
            data = data.replace(b'"usage": {', b'"costs": {')
        headers = SSE if streamed else JSON
        return Reply([data], self.status(said), headers, whole=not streamed)

    def _length(self, body: dict[str, Any]) -> int:
        written = json.dumps(body["messages"])
        thought = sum(len(each.get("reasoning_content", "")) for each in body["messages"]) if self.puts_back else 0
        turns = 10 * (len(body["messages"]) - 1)
        return BASE + TOOL_TOKENS * bool(body.get("tools")) + written.count(FILLER) + turns + thought // 4
