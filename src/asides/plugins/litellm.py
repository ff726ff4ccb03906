"""LiteLLM: what an OpenAI-compatible provider leaves unsplit, as `reasoning_content`, `content` and `tool_calls`.

In the proxy, a callback (`litellm_settings: callbacks: asides.plugins.litellm.handler`) takes replies apart, whole and
streamed. `model_info: asides:` of a model in its configuration names the format and the policies, or turns it off:

    model_info: {asides: {format: qwen3, start: thinking}}     # or `asides: false`

In a program, `completion` and `acompletion` are LiteLLM's own, split. LiteLLM's callbacks do not suffice there: none is
called for a synchronous reply, and for a stream only with its last chunk.

    response = completion(model="openai/qwen3", messages=messages, api_base=url)
    response.choices[0].message.reasoning_content
"""

from __future__ import annotations

from ._hosts import require_host

require_host("litellm")

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Unpack

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import ModelResponse

from .._engine.format import Format
from ..errors import UsageError
from ..families import get_format
from ..policies import DEFAULTS, Policies, PolicyOptions
from ..reading import Reading
from ._litellm import ChunkSplitter, choose_reading, split_reply
from ._streams import aread_stream, read_stream

__all__ = ["AsidesHandler", "acompletion", "completion", "handler"]

FIELDS = frozenset(PolicyOptions.__annotations__) | {"format"}
"""What `model_info: asides:` may hold."""


class AsidesHandler(CustomLogger):
    """A callback of LiteLLM that takes replies apart; `handler` is one with every default."""

    def __init__(
        self, format: str | Format = "auto", policies: Policies = DEFAULTS, **options: Unpack[PolicyOptions]
    ) -> None:
        """The format of models whose `model_info` names none: by the name of each model, unless given."""
        super().__init__()
        get_format(format)  # an unknown one ends the proxy when it starts, not a request
        self._format = format
        self._policies = policies.but(**options)

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Refuse a request whose model is configured wrongly, before it costs anything."""
        model = str(kwargs.get("model", ""))
        try:
            self._reading(kwargs, model)
        except (UsageError, ValueError, TypeError) as error:
            message = f"model_info: asides: of {model}: {error}"
            raise litellm.BadRequestError(message=message, model=model, llm_provider="") from error
        return None

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: Any
    ) -> Any:
        """A whole reply, in the proxy and of `litellm.acompletion`: before it is logged, and before it is translated
        for clients of other APIs."""
        return self._split(request_data, response)

    async def async_post_call_success_hook(self, data: dict[str, Any], user_api_key_dict: Any, response: Any) -> Any:
        """A whole reply of the proxy that came from no deployment: from its cache."""
        return self._split(data, response)

    def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """A stream of the proxy."""
        return asplit_stream(response, lambda model: self._reading(request_data, model))

    def _split(self, data: Mapping[str, Any], response: Any) -> Any:
        if isinstance(response, ModelResponse):
            reading = self._reading(data, response.model or "")
            if reading is not None:
                details = getattr(data.get("litellm_logging_obj"), "model_call_details", {})
                split_reply(response, reading, details.get("original_response"))
        return response

    def _reading(self, data: Mapping[str, Any], model: str) -> Reading | None:
        """How replies to a request are read; None where the model's configuration turns it off."""
        info = data.get("model_info") or (data.get("metadata") or data.get("litellm_metadata") or {}).get("model_info")
        settings = (info or {}).get("asides", {})
        if settings is False:
            return None
        if not isinstance(settings, Mapping) or not settings.keys() <= FIELDS:
            raise UsageError(f"{settings!r} is neither false nor a mapping of {', '.join(sorted(FIELDS))}")
        options: Any = {name: value for name, value in settings.items() if name != "format"}
        return choose_reading(settings.get("format", self._format), self._policies.but(**options), model, data)


handler: AsidesHandler = AsidesHandler()
"""The callback to name in the proxy's configuration."""


def completion(*args: Any, format: str | Format = "auto", policies: Policies = DEFAULTS, **keywords: Any) -> Any:
    """`litellm.completion`, with its reply taken apart: a `ModelResponse`, or with `stream=True` an iterator of chunks.

    Tools and seed are those of the request; what else asides may be asked for goes into `policies`.
    """
    get_format(format)
    call = _Completion(format, policies, keywords)
    response = litellm.completion(*args, **keywords)
    return call.split(response) if isinstance(response, ModelResponse) else split_stream(response, call.reading)


async def acompletion(*args: Any, format: str | Format = "auto", policies: Policies = DEFAULTS, **keywords: Any) -> Any:
    """`litellm.acompletion`, as `completion`: with `stream=True` an asynchronous iterator of chunks."""
    get_format(format)
    call = _Completion(format, policies, keywords)
    response = await litellm.acompletion(*args, **keywords)
    return call.split(response) if isinstance(response, ModelResponse) else asplit_stream(response, call.reading)


class _Completion:
    """A call of `completion`: how its reply is read, and what the server answered."""

    def __init__(self, format: str | Format, policies: Policies, keywords: dict[str, Any]) -> None:
        self._format = format
        self._policies = policies
        self._keywords = keywords
        self._original: object = None
        self._log: Callable[[dict[str, Any]], object] | None = keywords.get("logger_fn")
        keywords["logger_fn"] = self._take

    def _take(self, details: dict[str, Any]) -> None:
        self._original = details.get("original_response")
        if self._log is not None:
            self._log(details)

    def reading(self, model: str) -> Reading:
        return choose_reading(self._format, self._policies, model, self._keywords)

    def split(self, response: ModelResponse) -> ModelResponse:
        split_reply(response, self.reading(response.model or ""), self._original)
        return response


def split_stream(response: Any, choose: Callable[[str], Reading | None]) -> Iterator[Any]:
    """The chunks of a stream, taken apart; `choose`: how a model's output is read. None: as it is."""
    splitter = ChunkSplitter(choose)
    return read_stream(response, splitter.feed, splitter.release)


def asplit_stream(response: Any, choose: Callable[[str], Reading | None]) -> AsyncIterator[Any]:
    """The chunks of an asynchronous stream, as `split_stream`."""
    splitter = ChunkSplitter(choose)
    return aread_stream(response, splitter.feed, splitter.release)
