"""SGLang's own handler of chat completions over a scripted model: all of its front end but HTTP and the scheduler.

`OpenAIServingChat` renders the prompt, makes sampling parameters and parsers, and writes the response. Where it asks
for text, at the tokenizer manager, stands the one thing that is not SGLang's: a model that says what the test gave it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

TOKENS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if enable_thinking is not defined or enable_thinking %}"
    "<think>\n{% else %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)


class Completion(NamedTuple):
    """What a client is sent."""

    thinking: str
    text: str
    calls: list[tuple[str, str]]
    finish_reason: str


class Handler:
    """The handler, with parsers by these names, a chat template, and a model that says one thing."""

    def __init__(self, reply: str, name: str, template: str = TEMPLATE, end: str = "stop") -> None:
        self._load(ScriptedModel(reply, name, byte_tokenizer(template), end))

    @classmethod
    def of(cls, model: ScriptedModel) -> Handler:
        """The handler over another model."""
        made = cls.__new__(cls)
        made._load(model)
        return made

    def _load(self, model: ScriptedModel) -> None:
        _leave_out_torchvision()
        serving = import_module("sglang.srt.entrypoints.openai.serving_chat")
        self._context = import_module("sglang.srt.runtime_context").get_context()
        self._templates = import_module("sglang.srt.parser.template_manager").TemplateManager()
        self._request = import_module("sglang.srt.entrypoints.openai.protocol").ChatCompletionRequest
        self.model = model
        with self._context.override_server_args():
            self._templates.load_chat_template(self.model, None, "m")
            self._chat = serving.OpenAIServingChat(self.model, self._templates)

    def complete(self, **fields: Any) -> Completion:
        """The completion, which streams to the same as it is whole."""
        streamed = asyncio.run(self.answer(stream=True, **fields))
        assert streamed == asyncio.run(self.answer(stream=False, **fields))
        return streamed

    def stream(self, **fields: Any) -> Completion:
        """The completion, streamed."""
        return asyncio.run(self.answer(stream=True, **fields))

    async def answer(self, stream: bool, **fields: Any) -> Completion:
        """The completion, in one of the two ways."""
        request = self._request(model="m", messages=[{"role": "user", "content": "hi"}], stream=stream, **fields)
        with self._context.override_server_args():
            response = await self._chat.handle_request(request, None)
            if not stream:
                return _read(response.model_dump()["choices"][0], "message")
            chunks = [chunk async for chunk in response.body_iterator]
        frames = [json.loads(chunk.removeprefix("data: ")) for chunk in chunks if "[DONE]" not in chunk]
        return _join([_read(frame["choices"][0], "delta") for frame in frames])


def _read(choice: dict[str, Any], field: str) -> Completion:
    said = choice[field]
    functions = [call["function"] for call in said.get("tool_calls") or ()]
    calls = [(function["name"] or "", function["arguments"]) for function in functions]
    return Completion(
        said.get("reasoning_content") or "", said.get("content") or "", calls, choice["finish_reason"] or ""
    )


def _join(chunks: list[Completion]) -> Completion:
    calls: list[tuple[str, str]] = []
    for name, arguments in (call for chunk in chunks for call in chunk.calls):
        if name:
            calls.append((name, arguments))
        else:
            calls[-1] = (calls[-1][0], calls[-1][1] + arguments)
    texts = ("".join(chunk.thinking for chunk in chunks), "".join(chunk.text for chunk in chunks))
    return Completion(*texts, calls, "".join(chunk.finish_reason for chunk in chunks))


class ScriptedModel:
    """What the handler knows of SGLang's tokenizer manager. `asked` is what it was asked for last."""

    def __init__(self, reply: str, parser: str, tokenizer: Any, end: str) -> None:
        self.tokenizer = tokenizer
        self.model_path = self.served_model_name = "m"
        self.server_args = self.processor = None
        self.request_logger = SimpleNamespace(log_requests=False)
        self.model_config = SimpleNamespace(
            hf_config=SimpleNamespace(model_type="m", architectures=["M"]),
            is_multimodal=False,
            get_default_sampling_params=dict,
        )
        self.asked: Any = None
        self._reply = reply
        self._parser = parser
        self._end = end

    def config_value(self, name: str) -> str | None:
        """A setting of the server."""
        ours = self._parser if self._parser.startswith("asides") else None
        return {"reasoning_parser": self._parser, "tool_call_parser": ours}.get(name)

    def create_abort_task(self, request: Any) -> None:
        """Nobody hangs up."""

    async def generate_request(self, asked: Any, _raw: Any = None) -> AsyncIterator[dict[str, Any]]:
        """All of the text so far, again and again, as SGLang's does; in a stream a character more each time."""
        self.asked = asked
        for size in range(1 if asked.stream else len(self._reply), len(self._reply) + 1):
            yield self._frame(self._reply[:size], [], size == len(self._reply))

    def _frame(self, text: str, ids: list[int], ends: bool) -> dict[str, Any]:
        end = {"type": self._end, "matched": None} if ends else None
        meta = {"id": "1", "prompt_tokens": 1, "completion_tokens": len(ids) or len(text), "finish_reason": end}
        meta |= {"weight_version": "1", "cached_tokens": 0}
        return {"text": text, "index": 0, "output_ids": ids, "meta_info": meta}


def byte_tokenizer(template: str) -> Any:
    """A tokenizer whose tokens are bytes and the markers, which are special."""
    tokenizers = import_module("tokenizers")
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    vocabulary = {letter: number for number, letter in enumerate(sorted(byte_level.alphabet()))}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = byte_level(add_prefix_space=False, use_regex=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in TOKENS])
    return import_module("transformers").PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", chat_template=template
    )


class _Absent(ModuleType):
    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Finder(MetaPathFinder, Loader):
    """Finds empty modules for torchvision: only what prepares images uses it, and there is none for the CPU on PyPI."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname.partition(".")[0] == "torchvision" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Absent(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing in it."""


def _leave_out_torchvision() -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        import_module("transformers.image_utils")  # before, so that it sees that there is none
        sys.meta_path.append(_Finder())
