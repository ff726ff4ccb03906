"""Replies in LiteLLM's own types, taken apart: chunk by chunk (`ChunkSplitter`), and whole (`split_reply`).

LiteLLM hands on what an OpenAI-compatible server sent, so its chunks and messages are read and written with the dialect
of chat completions: the same reader, splitter and writer that the gateway has. Only the wrapping differs.

    splitter = ChunkSplitter(lambda model: choose_reading(..., model, ...))
    splitter.feed(chunk), splitter.release()           # chunks of LiteLLM in, chunks of LiteLLM out

One thing is LiteLLM's own: of a whole reply that begins with `<think>` it has taken the first thought off, by a
pattern, before any hook sees it. What the server wrote is in its log of the call (`original_response`), and is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from litellm.types.utils import Delta, Message, ModelResponse, ModelResponseStream, StreamingChoices

from .._engine.format import Format
from ..dialects._request import Request
from ..dialects.openai_chat import read_reply, write_reply
from ..dialects.openai_chat._reader import ChoiceReader
from ..dialects.openai_chat._request import NAME, REASONING
from ..dialects.openai_chat._writer import ChoiceWriter
from ..policies import Policies
from ..reading import Reading
from ..reply._items import Ended, Foreign, ReplyEvent, ReplyItem
from ..reply._splitter import Splitter

SPLIT = "asides"
"""Stands in the hidden parameters of a reply that has been taken apart, so that no second hook does it again."""

Data = Mapping[str, Any]
"""What LiteLLM says of a request."""


def choose_reading(format: str | Format, policies: Policies, model: str, data: Data) -> Reading:
    """How replies to a request are read: by the model's name, with the types of arguments by the request's tools.

    A client that names no tools may be reading calls from the text by itself, so then they stay there.
    """
    tools = data.get("tools")
    messages = data.get("messages")
    called = isinstance(messages, Sequence) and any(
        isinstance(each, dict) and each.get("tool_calls") for each in messages
    )
    calls = policies.calls and bool(tools or called) and data.get("tool_choice") != "none"
    if policies.tools is None and isinstance(tools, list):
        policies = policies.but(tools=tools)
    policies = policies.but(calls=calls, collect=False)
    return Reading.of(model, format=format, policies=policies)


class ChunkSplitter:
    """Takes the chunks of one stream."""

    def __init__(self, choose: Callable[[str], Reading | None]) -> None:
        """`choose`: how the output of a model is read, by the name that the first chunk has; None: not at all."""
        self._choose = choose
        self._splitter: Splitter | None = None
        self._readers: dict[int, ChoiceReader] = {}
        self._writers: dict[int, ChoiceWriter] = {}
        self._last: ModelResponseStream | None = None
        self._passes = False
        """Whether chunks are handed on as they are."""

    def feed(self, chunk: Any) -> list[Any]:
        """The chunks that stand for one of the stream: any number of them. What has no choices is handed on."""
        if self._passes or not isinstance(chunk, ModelResponseStream) or not chunk.choices:
            return [chunk]
        if self._last is None:
            reading = self._choose(chunk.model or "")
            self._splitter = None if reading is None else reading.splitter(whole=False)
        if self._splitter is None or any(_passes(choice.delta) for choice in chunk.choices):
            self._passes = True
            return [*self.release(), chunk]
        out: list[ModelResponseStream] = []
        usage = _get(chunk, "usage")
        bare = self._last = chunk.model_copy()
        if usage is not None:
            del bare.usage
        for choice in chunk.choices:
            out += self._choice(self._splitter, choice, bare)
        if usage is not None:
            # In a chunk of its own, as LiteLLM sends it: with an empty delta, since programs look at its first choice.
            chunk.choices = [StreamingChoices(delta=Delta())]
            out.append(chunk)
        return out

    def release(self, failed: bool = True) -> list[ModelResponseStream]:
        """What was held back, where a stream ended without saying so."""
        if self._splitter is None or self._last is None:
            return []
        return list(self._written(self._splitter.finish("length" if failed else None), "", self._last))

    def _choice(
        self, splitter: Splitter, choice: StreamingChoices, chunk: ModelResponseStream
    ) -> Iterator[ModelResponseStream]:
        number = choice.index
        if number not in self._readers:
            self._readers[number] = ChoiceReader(number)
            self._writers[number] = ChoiceWriter("reasoning_content", True, {})
        data = choice.model_dump()
        delta = {name: value for name, value in data.pop("delta").items() if value is not None}
        role = delta.pop("role", "")
        read: list[Any] = []
        self._readers[number].read(data, delta, read)
        items = [item for each in read for item in splitter.feed(each)]
        written = list(self._written(items, role, chunk))
        yield from written
        if role and not written:
            yield _chunk(chunk, number, {"role": role, "content": ""})

    def _written(self, items: list[ReplyItem], role: str, chunk: ModelResponseStream) -> Iterator[ModelResponseStream]:
        for item in items:
            if isinstance(item, ReplyEvent):
                writer = self._writers[item.choice]
                deltas = writer.deltas_of(item)
                fields = writer.logprobs_of(item) if item.logprobs or item.other_logprobs else {}
                number = item.choice
            elif isinstance(item, Ended):
                number, deltas = item.choice, [{}]
                fields = self._writers[number].end(item)
            elif isinstance(item, Foreign):
                number, fields = item.choice or 0, {}
                deltas = self._writers[number].foreign(item)
            else:
                continue
            for delta in deltas or ([{}] if fields else ()):
                yield _chunk(chunk, number, {**({"role": role} if role else {}), **delta}, fields)
                role, fields = "", {}


def split_reply(response: ModelResponse, reading: Reading, original: object = None) -> None:
    """Take a whole reply apart, in place. `original`: what LiteLLM logged of the server's answer."""
    hidden = response._hidden_params
    if hidden.get(SPLIT) or any(_passes(choice.message) for choice in response.choices):
        return
    body = response.model_dump()
    texts = _raw_texts(original)
    for number, choice in enumerate(body["choices"]):
        choice["index"] = number
        message = choice["message"]
        if number in texts and message.get("reasoning_content"):
            message["content"] = texts[number]
            del message["reasoning_content"]
    splitter = reading.splitter(whole=True)
    items = [item for chunk in read_reply(body) for item in splitter.feed(chunk)]
    written = {choice["index"]: choice for choice in write_reply(items, Request(dialect=NAME))["choices"]}
    for own, choice in zip(response.choices, body["choices"], strict=True):
        # Where there is no text there is nothing to take apart.
        if choice["message"].get("content"):
            own.message = Message(**written[choice["index"]]["message"])
            own.finish_reason = written[choice["index"]]["finish_reason"]
    hidden[SPLIT] = True


def _raw_texts(original: object) -> dict[int, str]:
    """By its place: the content of a choice of the server's answer that has no thinking beside it."""
    try:
        body = msgspec.json.decode(original) if isinstance(original, str | bytes) else original
        return {
            number: choice["message"]["content"]
            for number, choice in enumerate(body["choices"])  # type: ignore[index]
            if isinstance(choice["message"]["content"], str)
            and not any(choice["message"].get(name) for name in REASONING)
        }
    except (msgspec.MsgspecError, UnicodeError, RecursionError, LookupError, TypeError, AttributeError):
        return {}  # not every provider answers in this shape


def _chunk(
    chunk: ModelResponseStream, number: int, delta: dict[str, Any], fields: dict[str, Any] | None = None
) -> ModelResponseStream:
    choice = StreamingChoices(index=number, delta=Delta(**delta), **(fields or {}))
    return chunk.model_copy(update={"choices": [choice]})


def _passes(fields: Message | Delta) -> bool:
    """Whether a reply is handed on as it is: its thoughts are signed, or its call is of the older kind.

    Who asked with `functions` waits for a `function_call`; it would be written as one of `tool_calls`.
    """
    return bool(_get(fields, "thinking_blocks") or _get(fields, "function_call"))


def _get(value: Any, name: str) -> Any:
    """A field that LiteLLM removes where it has no value."""
    return getattr(value, name, None)
