"""An upstream inside the process that replays recordings as an OpenAI-compatible server would that knows nothing of
thinking: raw markers, token by token. Opens no socket and runs no model."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncGenerator
from typing import Any, ClassVar, NamedTuple

import msgspec

from ..dialects.framing import DONE, sse, to_json
from .replies import VOICES, Voice, compose

JSON = "application/json"
EVENTS = "text/event-stream"
SECONDS_PER_TOKEN = 1 / 30
"""About as fast as a person reads along."""
SLOWEST = 10
OWNER = "asides recordings"

_TOKEN = re.compile(r"\s?\w{1,6}|\s+|[^\w\s]")


class Answer(msgspec.Struct, frozen=True):
    """A reply as a server gives it."""

    status: int
    content_type: str
    chunks: AsyncGenerator[bytes, None]
    """The body as it comes. Closing it early ends the replay."""


class _Refusal(Exception):
    """A request that cannot be answered, with the status that says so."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


class _Turn(NamedTuple):
    """What is replayed, once a request is understood."""

    tokens: list[str]
    finish_reason: str
    usage: dict[str, int]


class Recorded:
    """Replays recordings. `pace` is the seconds between two tokens; a request may bring its own."""

    models: tuple[str, ...] = tuple(VOICES)

    def __init__(self, pace: float = SECONDS_PER_TOKEN) -> None:
        self._pace = pace
        self._created = int(time.time())

    def settings(self, model: str) -> tuple[str, None]:
        """The format in which a model writes, and where its output begins: as the format says, so that a request
        without thinking may still say otherwise."""
        return VOICES[model].format, None

    async def answer(self, path: str, body: dict[str, Any]) -> Answer:
        """Answer a request for `/v1/chat/completions`, `/v1/completions` or `/v1/models`."""
        route = path.partition("?")[0].rstrip("/").removeprefix("/v1").lstrip("/")
        try:
            if route == "models":
                return _whole(200, {"object": "list", "data": [self._entry(model) for model in self.models]})
            if route.startswith("models/"):
                return _whole(200, self._entry(_voice(route.removeprefix("models/")).model))
            if route == "chat/completions":
                return self._reply(_Chat(body))
            if route == "completions":
                return self._reply(_Completion(body))
            raise _Refusal(404, f"the recordings answer chat/completions, completions and models, not {path}")
        except _Refusal as refusal:
            return _whole(refusal.status, refusal.body)

    def _entry(self, model: str) -> dict[str, Any]:
        return {"id": model, "object": "model", "created": self._created, "owned_by": OWNER}

    def _pace_of(self, request: _Request) -> float:
        return self._pace if request.pace is None else request.pace

    def _reply(self, request: _Chat | _Completion) -> Answer:
        turn = request.turn()
        if request.body.get("stream"):
            return Answer(200, EVENTS, self._stream(request, turn))
        return Answer(200, JSON, self._at_once(request, turn))

    async def _at_once(self, request: _Chat | _Completion, turn: _Turn) -> AsyncGenerator[bytes, None]:
        await asyncio.sleep(self._pace_of(request) * len(turn.tokens))
        choice = {"index": 0, **request.whole("".join(turn.tokens)), "finish_reason": turn.finish_reason}
        yield to_json({**request.head(request.object), "choices": [choice], "usage": turn.usage})

    async def _stream(self, request: _Chat | _Completion, turn: _Turn) -> AsyncGenerator[bytes, None]:
        head = request.head(request.object_streamed)
        pace = self._pace_of(request)
        wants_usage = (request.body.get("stream_options") or {}).get("include_usage")
        if wants_usage:
            head["usage"] = None

        def frame(piece: dict[str, Any], finish_reason: str | None = None) -> bytes:
            return sse(to_json({**head, "choices": [{"index": 0, **piece, "finish_reason": finish_reason}]}))

        for piece in request.opening:
            yield frame(piece)
        for token in turn.tokens:
            await asyncio.sleep(pace)
            yield frame(request.piece(token))
        yield frame(request.closing, turn.finish_reason)
        if wants_usage:
            yield sse(to_json({**head, "choices": [], "usage": turn.usage}))
        yield DONE


class _Request:
    """What both kinds of request have in common."""

    prefix = ""
    object = ""
    object_streamed = ""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.voice = _voice(body.get("model"))
        if body.get("n") not in (None, 1):
            raise _Refusal(400, "the recordings give one choice: leave out `n` or set it to 1", param="n")
        if not isinstance(body.get("stream_options") or {}, dict):
            raise _Refusal(400, "`stream_options` must be an object", param="stream_options")
        self.pace = body.get("pace")
        if self.pace is not None and not (isinstance(self.pace, int | float) and 0 <= self.pace <= SLOWEST):
            raise _Refusal(400, f"`pace` must be a number of seconds, at most {SLOWEST}", param="pace")

    def head(self, kind: str) -> dict[str, Any]:
        """The fields that begin a reply and each of its frames."""
        return {
            "id": f"{self.prefix}{secrets.token_hex(12)}",
            "object": kind,
            "created": int(time.time()),
            "model": self.voice.model,
            "system_fingerprint": "recording",
        }

    def replay(self, output: str, prompt: str) -> _Turn:
        """The output cut as the request asks, in tokens."""
        output = _before_stop(output, self.body.get("stop"))
        tokens = _TOKEN.findall(output)
        most = _most_tokens(self.body)
        finish_reason = "stop"
        if most is not None and most < len(tokens):
            tokens, finish_reason = tokens[:most], "length"
        read, written = len(_TOKEN.findall(prompt)), len(tokens)
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        return _Turn(tokens, finish_reason, usage)


class _Chat(_Request):
    """A request for a chat completion."""

    prefix = "chatcmpl-"
    object = "chat.completion"
    object_streamed = "chat.completion.chunk"
    opening: ClassVar[tuple[dict[str, Any], ...]] = ({"delta": {"role": "assistant", "content": ""}},)
    closing: ClassVar[dict[str, Any]] = {"delta": {}}

    def turn(self) -> _Turn:
        """What is replayed."""
        messages = self.body.get("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
            raise _Refusal(400, "`messages` must be a list of at least one message", param="messages")
        tools = self.body.get("tools") if self.body.get("tool_choice") != "none" else None
        output = compose(self.voice, messages, tools if isinstance(tools, list) else [], thinks=_thinks(self.body))
        return self.replay(output, to_json(messages).decode())

    def whole(self, text: str) -> dict[str, Any]:
        """A choice that holds the whole text."""
        return {"message": {"role": "assistant", "content": text}}

    def piece(self, text: str) -> dict[str, Any]:
        """A choice that holds a piece of it."""
        return {"delta": {"content": text}}


class _Completion(_Request):
    """A request to continue a prompt."""

    prefix = "cmpl-"
    object = object_streamed = "text_completion"
    opening: ClassVar[tuple[dict[str, Any], ...]] = ()
    closing: ClassVar[dict[str, Any]] = {"text": "", "logprobs": None}

    def turn(self) -> _Turn:
        """What is replayed."""
        prompt = self.body.get("prompt")
        if isinstance(prompt, list) and len(prompt) == 1:
            prompt = prompt[0]
        if not isinstance(prompt, str):
            raise _Refusal(400, "`prompt` must be one text; the recordings know no ids", param="prompt")
        asked = [{"role": "user", "content": prompt}]
        return self.replay(compose(self.voice, asked, [], thinks=_thinks(self.body)), prompt)

    def whole(self, text: str) -> dict[str, Any]:
        """A choice that holds the whole text."""
        return {"text": text, "logprobs": None}

    def piece(self, text: str) -> dict[str, Any]:
        """A choice that holds a piece of it."""
        return self.whole(text)


def _voice(model: Any) -> Voice:
    voice = VOICES.get(model) if isinstance(model, str) else None
    if voice is None:
        said = f"there is no recorded model {str(model)[:100]!r}; there are {', '.join(VOICES)}"
        raise _Refusal(404, said, param="model", code="model_not_found")
    return voice


def _thinks(body: dict[str, Any]) -> bool:
    """Whether the request leaves thinking on, said in any way that servers know."""
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
            raise _Refusal(400, f"`{name}` must be a whole number of at least 1", param=name)
        return most
    return None


def _before_stop(output: str, stop: Any) -> str:
    """The output up to where the first of the stop sequences begins."""
    sequences = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(sequences, list) or not all(isinstance(each, str) for each in sequences):
        raise _Refusal(400, "`stop` must be a text or a list of texts", param="stop")
    found = [at for at in (output.find(each) for each in sequences if each) if at >= 0]
    return output[: min(found)] if found else output


def _whole(status: int, body: dict[str, Any]) -> Answer:
    return Answer(status, JSON, _once(to_json(body)))


async def _once(data: bytes) -> AsyncGenerator[bytes, None]:
    yield data
