"""The parser layers of vLLM and SGLang, called as their servers call them, without a GPU: `make test-peers`.

Their Python sources are unpacked from the newest wheels (`tools.peer_sources`). What the model says is ids of a
stand-in tokenizer, and every marker is in the text that is decoded from them: which tokens a server leaves out depends
on flags of the real tokenizer, which a stand-in does not have. Nothing here judges. What a parser raises is an answer
with an error, as a client gets one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, NamedTuple

from asides import Format, dialects
from asides.audit._manifest import ParrotScript
from asides.audit._tokenizer import ParrotTokenizer
from asides.audit._wire import Answer, AnsweredCall, Arrival
from asides.families import switch_of
from tests.plugins.sglang_server import Completion, Handler, ScriptedModel

QUESTION = [{"role": "user", "content": "?"}]


class Flags(NamedTuple):
    """The parsers that a server is started with: `--reasoning-parser` and `--tool-call-parser`; empty: none."""

    reasoning: str
    calls: str


class Turn(NamedTuple):
    """What a model says after a prompt, and with which tokenizer."""

    format: Format
    tokenizer: ParrotTokenizer
    script: ParrotScript
    prompt: str
    """The end of the prompt: the assistant's header, and what the template writes after it."""
    thinks: bool | None
    """Whether the client has thinking on or off; None where it says nothing."""

    @property
    def keywords(self) -> dict[str, Any]:
        """What a client sends for the chat template."""
        switch = switch_of(self.format)
        if switch is None or not switch.keyword or self.thinks is None:
            return {}
        return {switch.keyword: switch.on if self.thinks else switch.off}

    @property
    def tools(self) -> dict[str, Any]:
        """The fields of the request about tools."""
        return {"tools": self.script.tools} if self.script.tools else {}

    def pieces(self) -> Iterator[tuple[list[int], str]]:
        """The ids with their text, a token at a time; a character of several tokens comes with the last of them."""
        held: list[int] = []
        tokenizer = self.tokenizer.vocabulary.tokenizer
        for number in self.script.ids:
            held.append(number)
            text = tokenizer.decode(held, skip_special_tokens=False)
            if not text.endswith("\N{REPLACEMENT CHARACTER}"):
                yield held, text
                held = []
        if held:
            yield held, tokenizer.decode(held, skip_special_tokens=False)


@cache
def loaded(content: bytes, prompt: str) -> Any:
    """A tokenizer of transformers out of a `tokenizer.json`, whose chat template ends a prompt like this."""
    made = import_module("tokenizers").Tokenizer.from_str(content.decode())
    template = (
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
        f"{{% if add_generation_prompt %}}{{{{ {json.dumps(prompt)} }}}}{{% endif %}}"
    )
    fast: Any = import_module("transformers").PreTrainedTokenizerFast
    return fast(tokenizer_object=made, chat_template=template, clean_up_tokenization_spaces=False)


def answer_of(thinking: str, text: str, calls: list[tuple[str, str]], streamed: bool) -> Answer:
    """An answer as the audit judges it."""
    found = [AnsweredCall(f"call_{number}", name, arguments) for number, (name, arguments) in enumerate(calls)]
    return Answer(
        api=dialects.get("openai_chat"),
        streamed=streamed,
        body={},
        arrival=Arrival(status=200),
        thinking=thinking,
        text=text,
        calls=found,
    )


def failure(error: Exception, streamed: bool) -> Answer:
    """What a client gets where the parser raises."""
    words = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return Answer(api=dialects.get("openai_chat"), streamed=streamed, body={}, arrival=Arrival(status=500, error=words))


class VllmPeer:
    """vLLM: one parser, composed of the two that the flags name."""

    name = "vLLM"
    package = "vllm"
    flag_names = (
        ("vllm.reasoning", "_REASONING_PARSERS_TO_REGISTER"),
        ("vllm.tool_parsers", "_TOOL_PARSERS_TO_REGISTER"),
    )

    def read(self, flags: Flags, turn: Turn, streamed: bool) -> Answer:
        """A turn as its server reads it."""
        try:
            return self._read(flags, turn, streamed)
        except Exception as error:  # a parser of others may raise anything, and its client sees an error
            return failure(error, streamed)

    def _read(self, flags: Flags, turn: Turn, streamed: bool) -> Answer:
        protocol = import_module("vllm.entrypoints.openai.chat_completion.protocol")
        manager = import_module("vllm.parser").ParserManager
        tokenizer = loaded(turn.tokenizer.json, turn.prompt)
        made = manager.get_parser(
            tool_parser_name=flags.calls or None,
            reasoning_parser_name=flags.reasoning or None,
            enable_auto_tools=True,
            tokenizer=tokenizer,
        )
        body = {"model": "m", "messages": QUESTION, "chat_template_kwargs": turn.keywords, "stream": streamed}
        request = protocol.ChatCompletionRequest.model_validate(body | turn.tools)
        parser = made(tokenizer, request.tools, model_config=None, chat_template_kwargs=turn.keywords)
        request = parser.adjust_request(request)
        prompt = tokenizer.encode(turn.prompt, add_special_tokens=False)
        pieces = list(turn.pieces())
        if not streamed:
            parser.set_prompt_token_ids(prompt)
            request.resolve_reasoning_ended(parser, prompt)
            thinking, answer, calls = parser.parse(
                turn.script.raw, request, enable_auto_tools=True, model_output_token_ids=turn.script.ids
            )
            return answer_of(thinking or "", answer or "", [(each.name, each.arguments) for each in calls or ()], False)
        thoughts, texts = [], []
        found: dict[int, list[str]] = {}
        for number, (ids, text) in enumerate(pieces, 1):
            delta = parser.parse_delta(text, ids, request, prompt, finished=number == len(pieces))
            if delta is not None:
                thoughts.append(delta.reasoning or "")
                texts.append(delta.content or "")
                for call in delta.tool_calls:
                    held = found.setdefault(call.index, ["", ""])
                    held[0] += (call.function and call.function.name) or ""
                    held[1] += (call.function and call.function.arguments) or ""
        return answer_of("".join(thoughts), "".join(texts), [(name, given) for name, given in found.values()], True)


class SglangPeer:
    """SGLang: its handler of chat completions, over a model that says the turn."""

    name = "SGLang"
    package = "sglang"
    flag_names = (
        ("sglang.srt.parser.reasoning_parser_names", "REASONING_PARSER_NAMES"),
        ("sglang.srt.function_call.parser_names", "TOOL_CALL_PARSER_NAMES"),
    )

    def read(self, flags: Flags, turn: Turn, streamed: bool) -> Answer:
        """A turn as its server reads it."""
        model = TurnModel(flags, turn)
        try:
            handler = Handler.of(model)
            fields = {"chat_template_kwargs": turn.keywords, **turn.tools}
            done: Completion = asyncio.run(handler.answer(stream=streamed, **fields))
        except Exception as error:  # as above
            return failure(error, streamed)
        return answer_of(done.thinking, done.text, done.calls, streamed)


class TurnModel(ScriptedModel):
    """A model that says a turn's ids."""

    def __init__(self, flags: Flags, turn: Turn) -> None:
        tokenizer = loaded(turn.tokenizer.json, turn.prompt)
        super().__init__(turn.script.raw, flags.reasoning, tokenizer, turn.script.ended)
        self.flags = flags
        self.turn = turn

    def config_value(self, name: str) -> str | None:
        """A setting of the server."""
        return {"reasoning_parser": self.flags.reasoning, "tool_call_parser": self.flags.calls}.get(name) or None

    async def generate_request(self, asked: Any, _raw: Any = None) -> AsyncIterator[dict[str, Any]]:
        """All of the text so far, again and again."""
        self.asked = asked
        pieces = list(self.turn.pieces())
        text = ""
        ids: list[int] = []
        for number, (some, more) in enumerate(pieces, 1):
            text, ids = text + more, [*ids, *some]
            if asked.stream or number == len(pieces):
                yield self._frame(text, ids, number == len(pieces))


PEERS = (VllmPeer(), SglangPeer())
Peer = VllmPeer | SglangPeer


def version_of(peer: Peer) -> str:
    """The version of the unpacked wheel."""
    return version(peer.package)


def flags_known(peer: Peer) -> tuple[list[str], list[str]]:
    """The names that the peer's two flags take."""
    first, second = (list(getattr(import_module(module), name)) for module, name in peer.flag_names)
    return first, second
