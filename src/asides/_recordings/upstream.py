"""An upstream inside the process: replays recordings as an OpenAI-compatible server that does not split thinking.

It answers `/v1/chat/completions`, `/v1/completions` and `/v1/models` with raw markers, token by token at a person's
reading speed, and checks the request fields that it honours (`stop`, `max_tokens`, `n`, `stream_options`; `pace` is its
own). It opens no socket and runs no model: the gateway calls `Recorded.answer` in place of an HTTP client.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncGenerator
from typing import Any, ClassVar, NamedTuple

import msgspec

from ..dialects._framing import DONE, sse, to_json
from .replies import RecordedModel, RecordedOutput, compose, recordings

JSON = "application/json"
EVENTS = "text/event-stream"
SECONDS_PER_TOKEN = 1 / 30
"""About as fast as a person reads along."""
SLOWEST = 10
OWNER = "asides recordings"

_TOKEN = re.compile(r"\s?\w{1,6}|\s+|[^\w\s]")


class ReplayedResponse(msgspec.Struct, frozen=True):
    """An HTTP response: status, type and body."""

    status: int
    content_type: str
    chunks: AsyncGenerator[bytes, None]
    """The body, chunk by chunk. Closing it early ends the replay."""


class _BadRequest(Exception):
    """A request with a mistake, and the status of its response."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


class _Replay(NamedTuple):
    """What one request gets, in tokens."""

    tokens: list[str]
    finish_reason: str
    usage: dict[str, int]


class Recorded:
    """Replays recordings. `pace` is the seconds between two tokens; a request may bring its own."""

    def __init__(self, pace: float = SECONDS_PER_TOKEN) -> None:
        self.models = tuple(recordings().models)
        self._pace = pace
        self._created = int(time.time())

    def settings(self, model: str) -> tuple[str, None]:
        """A model's format, and its start: None, so that a request that turns thinking off may still set another."""
        return recordings().models[model].format, None

    async def answer(self, path: str, body: dict[str, Any]) -> ReplayedResponse:
        """RecordedResponse a request for `/v1/chat/completions`, `/v1/completions` or `/v1/models`."""
        route = path.partition("?")[0].rstrip("/").removeprefix("/v1").lstrip("/")
        try:
            if route == "models":
                return _whole(200, {"object": "list", "data": [self._entry(model) for model in self.models]})
            if route.startswith("models/"):
                return _whole(200, self._entry(_model(route.removeprefix("models/")).name))
            if route in _REQUESTS:
                return self._reply(_REQUESTS[route](body))
            raise _BadRequest(404, f"the recordings answer chat/completions, completions and models, not {path}")
        except _BadRequest as refusal:
            return _whole(refusal.status, refusal.body)

    def _entry(self, model: str) -> dict[str, Any]:
        return {"id": model, "object": "model", "created": self._created, "owned_by": OWNER}

    def _reply(self, request: _ChatRequest | _CompletionRequest) -> ReplayedResponse:
        replay = request.replay()
        pace = self._pace if request.pace is None else request.pace
        if request.body.get("stream"):
            return ReplayedResponse(200, EVENTS, _stream(request, replay, pace))
        return ReplayedResponse(200, JSON, _at_once(request, replay, pace))


async def _at_once(
    request: _ChatRequest | _CompletionRequest, replay: _Replay, pace: float
) -> AsyncGenerator[bytes, None]:
    await asyncio.sleep(pace * len(replay.tokens))
    choice = {"index": 0, **request.whole("".join(replay.tokens)), "finish_reason": replay.finish_reason}
    yield to_json({**request.head(request.object), "choices": [choice], "usage": replay.usage})


async def _stream(
    request: _ChatRequest | _CompletionRequest, replay: _Replay, pace: float
) -> AsyncGenerator[bytes, None]:
    head = request.head(request.object_streamed)
    wants_usage = (request.body.get("stream_options") or {}).get("include_usage")
    if wants_usage:
        head["usage"] = None

    def frame(piece: dict[str, Any], finish_reason: str | None = None) -> bytes:
        return sse(to_json({**head, "choices": [{"index": 0, **piece, "finish_reason": finish_reason}]}))

    for piece in request.opening:
        yield frame(piece)
    for token in replay.tokens:
        await asyncio.sleep(pace)
        yield frame(request.piece(token))
    yield frame(request.closing, replay.finish_reason)
    if wants_usage:
        yield sse(to_json({**head, "choices": [], "usage": replay.usage}))
    yield DONE


class _ReplayRequest:
    """What both kinds of request have in common: the checks, and the fields of every reply."""

    prefix = ""
    object = ""
    object_streamed = ""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.model = _model(body.get("model"))
        if body.get("n") not in (None, 1):
            raise _BadRequest(400, "the recordings give one choice: leave out `n` or set it to 1", param="n")
        if not isinstance(body.get("stream_options") or {}, dict):
            raise _BadRequest(400, "`stream_options` must be an object", param="stream_options")
        self.pace = body.get("pace")
        if self.pace is not None and not (isinstance(self.pace, int | float) and 0 <= self.pace <= SLOWEST):
            raise _BadRequest(400, f"`pace` must be a number of seconds, at most {SLOWEST}", param="pace")

    def head(self, kind: str) -> dict[str, Any]:
        """The fields that begin a reply and each of its frames."""
        return {
            "id": f"{self.prefix}{secrets.token_hex(12)}",
            "object": kind,
            "created": int(time.time()),
            "model": self.model.name,
            "system_fingerprint": "recording",
        }

    def cut(self, output: RecordedOutput, prompt: str) -> _Replay:
        """The output in tokens, cut at the request's `stop` and token limit."""
        written = _before_stop(output.raw, self.body.get("stop"))
        tokens = _TOKEN.findall(written)
        most = _most_tokens(self.body)
        finish_reason = "length" if output.cut and written == output.raw else "stop"
        if most is not None and most < len(tokens):
            tokens, finish_reason = tokens[:most], "length"
        read, count = len(_TOKEN.findall(prompt)), len(tokens)
        usage = {"prompt_tokens": read, "completion_tokens": count, "total_tokens": read + count}
        return _Replay(tokens, finish_reason, usage)


class _ChatRequest(_ReplayRequest):
    """A request for a chat completion."""

    prefix = "chatcmpl-"
    object = "chat.completion"
    object_streamed = "chat.completion.chunk"
    opening: ClassVar[tuple[dict[str, Any], ...]] = ({"delta": {"role": "assistant", "content": ""}},)
    closing: ClassVar[dict[str, Any]] = {"delta": {}}

    def replay(self) -> _Replay:
        """What it gets."""
        messages = self.body.get("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
            raise _BadRequest(400, "`messages` must be a list of at least one message", param="messages")
        tools = self.body.get("tools") if self.body.get("tool_choice") != "none" else None
        output = compose(self.model, messages, tools if isinstance(tools, list) else [], thinks=_thinks(self.body))
        return self.cut(output, to_json(messages).decode())

    def whole(self, text: str) -> dict[str, Any]:
        """A choice with the whole text."""
        return {"message": {"role": "assistant", "content": text}}

    def piece(self, text: str) -> dict[str, Any]:
        """A choice with a piece of it."""
        return {"delta": {"content": text}}


class _CompletionRequest(_ReplayRequest):
    """A request to continue a prompt."""

    prefix = "cmpl-"
    object = object_streamed = "text_completion"
    opening: ClassVar[tuple[dict[str, Any], ...]] = ()
    closing: ClassVar[dict[str, Any]] = {"text": "", "logprobs": None}

    def replay(self) -> _Replay:
        """What it gets."""
        prompt = self.body.get("prompt")
        if isinstance(prompt, list) and len(prompt) == 1:
            prompt = prompt[0]
        if not isinstance(prompt, str):
            raise _BadRequest(400, "`prompt` must be one text; the recordings know no ids", param="prompt")
        asked = [{"role": "user", "content": prompt}]
        return self.cut(compose(self.model, asked, [], thinks=_thinks(self.body)), prompt)

    def whole(self, text: str) -> dict[str, Any]:
        """A choice with the whole text."""
        return {"text": text, "logprobs": None}

    def piece(self, text: str) -> dict[str, Any]:
        """A choice with a piece of it."""
        return self.whole(text)


_REQUESTS: dict[str, type[_ChatRequest | _CompletionRequest]] = {
    "chat/completions": _ChatRequest,
    "completions": _CompletionRequest,
}
"""What the recordings can be asked for, by path."""


def _model(name: Any) -> RecordedModel:
    models = recordings().models
    if not isinstance(name, str) or name not in models:
        reason = f"there is no recorded model {str(name)[:100]!r}; there are {', '.join(models)}"
        raise _BadRequest(404, reason, param="model", code="model_not_found")
    return models[name]


def _thinks(body: dict[str, Any]) -> bool:
    """Whether the request leaves thinking on; servers know several ways to turn it off."""
    keywords = body.get("chat_template_kwargs")
    if isinstance(keywords, dict) and (keywords.get("enable_thinking") is False or keywords.get("thinking") is False):
        return False
    return body.get("reasoning_effort") != "none"


def _most_tokens(body: dict[str, Any]) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        most = body.get(name)
        if most is None:
            continue
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise _BadRequest(400, f"`{name}` must be a whole number of at least 1", param=name)
        return most
    return None


def _before_stop(output: str, stop: Any) -> str:
    """The output up to where the first of the stop sequences begins."""
    sequences = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(sequences, list) or not all(isinstance(each, str) for each in sequences):
        raise _BadRequest(400, "`stop` must be a text or a list of texts", param="stop")
    found = [at for at in (output.find(each) for each in sequences if each) if at >= 0]
    return output[: min(found)] if found else output


def _whole(status: int, body: dict[str, Any]) -> ReplayedResponse:
    return ReplayedResponse(status, JSON, _once(to_json(body)))


async def _once(data: bytes) -> AsyncGenerator[bytes, None]:
    yield data
