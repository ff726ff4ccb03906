"""pydantic-ai: a model whose replies come as `ThinkingPart`, `TextPart` and `ToolCallPart`, whatever its server sends.

    agent = Agent(split(OpenAIChatModel("Qwen/Qwen3-8B", provider=...)), tools=[...])
    agent = Agent("ollama:qwen3", tools=[...], capabilities=[Split()])

`SplitModel` passes requests on and has the text of each reply taken apart (`_pydantic_ai`). What needs care here is
that the host splits `<think>` tags itself, and worse: in a stream only where a tag is a chunk of its own, and in a
whole reply an unclosed thought becomes the answer. It has one setting for the tags that it reads and the tags that it
writes into the next request, so they are switched off between the two (`_without_tags`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Unpack

from ._hosts import require_host

require_host("pydantic-ai-slim")

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import (
    CompletedStreamedResponse,
    KnownModelName,
    Model,
    ModelRequestParameters,
    StreamedResponse,
    infer_model,
)
from pydantic_ai.models.batch import BatchRequest, BatchResult
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.profiles import ModelProfile, merge_profile
from pydantic_ai.settings import ModelSettings

from .._engine.format import Format
from ..errors import UnknownFormatError
from ..policies import DEFAULTS, Policies, PolicyOptions
from ..reading import Reading
from ._pydantic_ai import SplitResponse

__all__ = ["Split", "SplitModel", "split"]

_NO_TAGS = ("\0\0think", "\0\0/think")
"""Tags that no model writes. Empty ones would be found everywhere."""


def split(
    model: Model | KnownModelName | str,
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    **options: Unpack[PolicyOptions],
) -> SplitModel:
    """The same model, whose text is taken apart into thinking, text and calls.

    With `format="auto"` the model's name decides where it says what the model writes. An unknown format is a
    `UserError`.
    """
    return SplitModel(model, format, policies, **options)


@dataclass(init=False)
class SplitModel(WrapperModel):
    """A model around another one, whose replies it takes apart."""

    format: str | Format
    """The format of the model's output: a name, a `Format`, or `auto`, which also looks at the model's name."""
    policies: Policies
    """How the output is read."""

    def __init__(
        self,
        wrapped: Model | KnownModelName | str,
        format: str | Format = "auto",
        policies: Policies = DEFAULTS,
        **options: Unpack[PolicyOptions],
    ) -> None:
        super().__init__(infer_model(wrapped))
        self.format = format
        self.policies = policies.but(**options)
        self._chosen: Reading = _choose(format, self.wrapped.model_name, self.policies)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One reply, whole."""
        model = _without_tags(self.wrapped)
        response = await model.request(messages, model_settings, model_request_parameters)
        return self._split(response, model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """One reply as it comes. Leaving the context closes the wrapped model's stream."""
        model = _without_tags(self.wrapped)
        async with model.request_stream(messages, model_settings, model_request_parameters, run_context) as inner:
            reading = self._reading(model_settings, model_request_parameters)
            response = SplitResponse(inner, model_request_parameters, reading)
            try:
                yield response
            finally:
                response.release()

    def batch_decode(self, result: BatchResult, request: BatchRequest) -> ModelResponse:
        """One reply of a batch."""
        response = _without_tags(self.wrapped).batch_decode(result, request)
        return self._split(response, request.model_settings, request.model_request_parameters)

    def _reading(self, settings: ModelSettings | None, parameters: ModelRequestParameters) -> Reading:
        """How a reply is read: where the request allows no calls, they stay text."""
        if (settings or {}).get("tool_choice") in ("none", []) and not parameters.output_tools:
            return self._chosen.but(calls=False)
        return self._chosen

    def _split(
        self, response: ModelResponse, settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> ModelResponse:
        # A job that the provider is still working on: its state has to go back as it came.
        if response.state == "suspended":
            return response
        inner = CompletedStreamedResponse(response, model_request_parameters=parameters)
        made = SplitResponse(inner, parameters, self._reading(settings, parameters), whole=True)
        made.read_whole(response.parts)
        return made.finished(response)


@dataclass(init=False)
class Split(AbstractCapability[Any]):
    """An agent's capability: whichever model serves a request, its replies are taken apart as by `split`."""

    format: str | Format
    """The format of the model's output: a name, a `Format`, or `auto`, which also looks at the model's name."""
    policies: Policies
    """How the output is read."""

    def __init__(
        self, format: str | Format = "auto", policies: Policies = DEFAULTS, **options: Unpack[PolicyOptions]
    ) -> None:
        self.format = format
        self.policies = policies.but(**options)
        _choose(format, None, self.policies)  # an unknown format is known here, not at the first request

    def get_wrapper_model(self, model: Model) -> Model | None:
        """The model that the host asks for; None where it is split already."""
        wrapped = model
        while isinstance(wrapped, WrapperModel):
            if isinstance(wrapped, SplitModel):
                return None
            wrapped = wrapped.wrapped
        return SplitModel(model, self.format, self.policies)


def _choose(format: str | Format, model: str | None, policies: Policies) -> Reading:
    try:
        return Reading.of(model, format=format, policies=policies)
    except UnknownFormatError as error:
        raise UserError(str(error)) from error


def _without_tags(model: Model) -> Model:
    """A copy of the model for one request, which reads no thinking tags.

    The host writes thoughts of earlier turns with the same tags, so they stay until the request is on its way: the copy
    lets go of them when a reply is about to be processed. The host's models that read tags all have these two methods.
    """
    if isinstance(model, WrapperModel):
        outer = copy(model)
        outer.wrapped = _without_tags(model.wrapped)
        return outer
    if isinstance(model, FallbackModel):
        several = copy(model)
        several.models = [_without_tags(each) for each in model.models]
        return several
    names = [name for name in ("_process_response", "_process_streamed_response") if hasattr(model, name)]
    if not names:
        return model
    twin = copy(model)
    for name in names:
        vars(twin)[name] = _after_sending(twin, getattr(twin, name))
    return twin


def _after_sending(model: Model, process: Callable[..., Any]) -> Callable[..., Any]:
    def process_without_tags(*arguments: Any, **options: Any) -> Any:
        vars(model)["profile"] = merge_profile(model.profile, ModelProfile(thinking_tags=_NO_TAGS))
        return process(*arguments, **options)

    return process_without_tags
