"""LangChain: a chat model around a chat model, whose thinking comes as standard `reasoning` blocks.

`split(model)` takes any chat model whose server leaves thinking and calls in the text, or thinking in
`reasoning_content`. What it returns is a chat model too: tools are bound, replies are streamed, cached and traced as
with the model inside, and only messages are different: thinking is in `reasoning` blocks, several in their order, calls
are in `tool_calls`, and `message.text` is the answer alone.

    model = split(ChatOpenAI(model="Qwen/Qwen3-8B", base_url="http://127.0.0.1:8000/v1"))
    message = model.invoke("What is 17 times 23?")
    message.text, [block for block in message.content_blocks if block["type"] == "reasoning"]

The model inside is called by `_generate` and `_stream`, not by `invoke` and `stream`: one request is one run for
callbacks and tracers, and nobody who listens gets the raw text beside the clean one. What it would have done around
them (cache, rate limiter, callbacks, tags) is taken over by the model outside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Unpack

import msgspec

from ._hosts import require_host

require_host("langchain-core")

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding, RunnableParallel, RunnableSequence
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field, model_validator

from .._engine.format import Format, thinking_pair
from ..errors import UsageError
from ..families import get_format
from ..policies import DEFAULTS, Policies, PolicyOptions
from ..reading import Reading
from ._langchain import EarlierThinking, ReplySplitter, SentBack, with_broken_calls
from ._streams import Feed, Release, aread_stream, read_stream

__all__ = ["EarlierThinking", "SplitChatModel", "split"]

_TAKEN_OVER = (
    "cache", "callbacks", "custom_get_token_ids", "disable_streaming", "metadata", "profile", "rate_limiter", "tags",
    "verbose",
)  # fmt: skip
"""Fields of a chat model that act around its requests."""


def split(
    model: BaseChatModel,
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    earlier_thinking: EarlierThinking = "drop",
    **options: Unpack[PolicyOptions],
) -> SplitChatModel:
    """A chat model that gives what `model` writes, taken apart.

    `format`, `policies` and `options` are those of `asides.parse`; with `format="auto"` the name of the model decides
    where it says what the model writes. A `seed` makes ids of calls repeat in every reply.
    `earlier_thinking`: what becomes of thinking in messages that are sent back. `"drop"` leaves it out, `"text"` writes
    it into the text between the format's markers, `"field"` into `additional_kwargs["reasoning_content"]`.
    """
    if not isinstance(model, BaseChatModel):
        raise UsageError(f"split takes a chat model, not a {type(model).__name__}; bind tools to what it returns")
    get_format(format)  # here, because pydantic would put its own error around this one
    policies = policies.but(**options) if options else policies
    return SplitChatModel(
        wrapped=model,
        format=format,
        options={name: value for name, value in _as_dict(policies) if value != getattr(DEFAULTS, name)},
        earlier_thinking=earlier_thinking,
        **{name: getattr(model, name) for name in _TAKEN_OVER},
    )


def _as_dict(policies: Policies) -> Iterable[tuple[str, Any]]:
    return msgspec.structs.asdict(policies).items()


class SplitChatModel(BaseChatModel):
    """A chat model whose replies are taken apart. Made by `split`."""

    wrapped: BaseChatModel
    """The model that writes."""
    format: Any = "auto"
    """How it writes: a name, a `Format`, or `"auto"`."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The policies that are not the defaults."""
    earlier_thinking: EarlierThinking = "drop"
    """What becomes of thinking in messages that are sent back."""

    @model_validator(mode="after")
    def _check(self) -> SplitChatModel:
        Policies(**self.options)
        self._markers(get_format(self.format))
        return self

    def _markers(self, format: Format) -> tuple[str, str]:
        """The markers between which thinking is sent back where a message does not say what stood around it."""
        found = thinking_pair(format) if format.settle is None else ("<think>", "</think>")
        if self.earlier_thinking == "text" and not all(found):
            raise UsageError(f"{format.name} has no markers around thinking to send it back in: take 'field' or 'drop'")
        return found

    # Requests.

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reading = self._reading(stop, kwargs)
        # Without the run manager: some models hand it the raw text.
        return self._result(self.wrapped._generate(self._sent(messages, reading), stop=stop, **kwargs), reading)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reading = self._reading(stop, kwargs)
        return self._result(await self.wrapped._agenerate(self._sent(messages, reading), stop=stop, **kwargs), reading)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reading = self._reading(stop, kwargs)
        chunks = self.wrapped._stream(self._sent(messages, reading), stop=stop, **kwargs)
        return read_stream(chunks, *_steps(ReplySplitter(reading, whole=False)))

    def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        reading = self._reading(stop, kwargs)
        chunks = self.wrapped._astream(self._sent(messages, reading), stop=stop, **kwargs)
        return aread_stream(chunks, *_steps(ReplySplitter(reading, whole=False)))

    def _should_stream(self, **choices: Any) -> bool:
        return not self._streaming_disabled(**choices) and self.wrapped._should_stream(**choices)

    def _should_use_protocol_streaming(self, **choices: Any) -> bool:
        # The model inside may have events of its own; these are made from its chunks, so it has to have chunks.
        return super()._should_use_protocol_streaming(**choices) and self.wrapped._should_stream(
            **{**choices, "stream": True}
        )

    def _reading(self, stop: list[str] | None, kwargs: dict[str, Any]) -> Reading:
        """How a reply is read: by the format of the model that is asked for, with the tools that it is given."""
        policies = Policies(**self.options)
        name = self.wrapped._get_ls_params(stop=stop, **kwargs).get("ls_model_name")
        tools = policies.tools
        if tools is None and kwargs.get("tools"):
            tools = list(_as_openai(kwargs["tools"]))
        calls = policies.calls and kwargs.get("tool_choice") != "none"
        policies = policies.but(tools=tools, calls=calls, collect=False)
        return Reading.of(name, format=self.format, policies=policies)

    def _sent(self, messages: list[BaseMessage], reading: Reading) -> list[BaseMessage]:
        """The messages as the wrapped model takes them."""
        exact = reading.policies.whitespace == "exact"
        back = SentBack(self.earlier_thinking, self._markers(reading.format), exact)
        answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
        return [back.message(each, answered) if isinstance(each, AIMessage) else each for each in messages]

    def _result(self, result: ChatResult, reading: Reading) -> ChatResult:
        split_ones = [_split_generation(generation, reading) for generation in result.generations]
        return ChatResult(generations=split_ones, llm_output=result.llm_output)

    # A call of `invoke` whose listeners want a stream is answered with chunks that LangChain has added.

    def _generate_with_cache(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return _with_broken_calls(super()._generate_with_cache(messages, *args, **kwargs))

    async def _agenerate_with_cache(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return _with_broken_calls(await super()._agenerate_with_cache(messages, *args, **kwargs))

    # What can be made of it.

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools as the wrapped model does."""
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        bound: Runnable[LanguageModelInput, AIMessage] = self._around(self.wrapped.bind_tools(tools, **kwargs))
        return bound

    def with_structured_output(
        self, schema: dict[str, Any] | type, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """Give structured output as the wrapped model does."""
        made: Runnable[LanguageModelInput, dict[str, Any] | BaseModel] = self._around(
            self.wrapped.with_structured_output(schema, include_raw=include_raw, **kwargs)
        )
        return made

    def _around(self, runnable: Any) -> Any:
        """What the wrapped model made of itself, with this model in its place."""
        if isinstance(runnable, BaseChatModel):
            if runnable is self.wrapped:
                return self
            return SplitChatModel(**{**dict(self), "wrapped": runnable})
        if isinstance(runnable, RunnableBinding):
            return runnable.model_copy(update={"bound": self._around(runnable.bound)})
        if isinstance(runnable, RunnableSequence):
            return RunnableSequence(self._around(runnable.first), *runnable.middle, runnable.last, name=runnable.name)
        if isinstance(runnable, RunnableParallel):
            return RunnableParallel({name: self._around(step) for name, step in runnable.steps__.items()})
        raise UsageError(f"a {type(runnable).__name__} of {type(self.wrapped).__name__} cannot be taken apart")

    def get_token_ids(self, text: str) -> list[int]:
        """The ids of a text, as the wrapped model counts them."""
        return self.wrapped.get_token_ids(text)

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Sequence[Any] | None = None) -> int:
        """The tokens of messages, as they are sent to the wrapped model."""
        sent = self._sent(messages, self._reading(None, {}))
        return self.wrapped.get_num_tokens_from_messages(sent, **({} if tools is None else {"tools": tools}))

    # How it is called in caches and traces.

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Whether LangChain can write it down."""
        return True

    @property
    def _llm_type(self) -> str:
        # Programs tell by it which provider a model is of.
        return self.wrapped._llm_type

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {**self.wrapped._identifying_params, "asides": self._own_choices()}

    def _own_choices(self) -> dict[str, Any]:
        name = get_format(self.format).name
        return {"format": name, "earlier_thinking": self.earlier_thinking, **self.options}

    def _get_invocation_params(self, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        return {**self.wrapped._get_invocation_params(stop=stop, **kwargs), "asides": self._own_choices()}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        return self.wrapped._get_ls_params(stop=stop, **kwargs)

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        own = sorted(self._own_choices().items())
        return f"{self.wrapped._get_llm_string(stop=stop, **kwargs)}---asides {own}"

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None], /) -> dict[str, Any]:
        return self.wrapped._combine_llm_outputs(llm_outputs)


def _steps(
    splitter: ReplySplitter,
) -> tuple[Feed[ChatGenerationChunk, ChatGenerationChunk], Release[ChatGenerationChunk]]:
    """How a stream is read: what is made of a chunk, and what the end releases."""

    def feed(chunk: ChatGenerationChunk) -> Iterator[ChatGenerationChunk]:
        if isinstance(chunk.message, AIMessageChunk):
            message = splitter.feed(chunk.message, chunk.generation_info)
            chunk = ChatGenerationChunk(message=message, generation_info=chunk.generation_info)
        yield chunk

    def release(cut: bool) -> Iterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=splitter.finish(cut=cut))

    return feed, release


def _split_generation(generation: ChatGeneration, reading: Reading) -> ChatGeneration:
    if not isinstance(generation.message, AIMessage):
        return generation
    splitter = ReplySplitter(reading, whole=True)
    chunk = splitter.feed(generation.message, generation.generation_info) + splitter.finish()
    message = with_broken_calls(message_chunk_to_message(chunk))
    return ChatGeneration(message=message, generation_info=generation.generation_info)


def _with_broken_calls(result: ChatResult) -> ChatResult:
    for generation in result.generations:
        generation.message = with_broken_calls(generation.message)
    return result


def _as_openai(tools: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """The tools of a request, whatever their shape; those that a server runs itself have none, and are left out."""
    for tool in tools:
        with suppress(Exception):
            yield convert_to_openai_tool(tool)
