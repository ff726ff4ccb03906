"""Keeping a quiet stream open: what a client may be sent while nothing comes from the model."""

from __future__ import annotations

import asyncio
from types import ModuleType

from .._config.schema import Config
from ..dialects import anthropic, ollama, openai_chat
from ..dialects.framing import KEEP_ALIVE, sse, to_json
from ..dialects.request import Request
from .http_request import HttpRequest


class KeepAlive:
    """Sends keep-alive bytes whenever a stream was quiet for a while. One timer, however many frames pass."""

    def __init__(self, http: HttpRequest, dialect: ModuleType, request: Request, config: Config) -> None:
        self.busy = False
        """Set by whoever writes to the stream."""
        self._http = http
        self._bytes = keep_alive_bytes(dialect, request, config)
        self._seconds = config.limits.keep_alive
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        if self._bytes:
            self._again()

    def stop(self) -> None:
        """The stream is over."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._tick)

    def _tick(self) -> None:
        if not self.busy and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._http.write(self._bytes))
        self.busy = False
        self._again()


def keep_alive_bytes(dialect: ModuleType, request: Request, config: Config) -> bytes:
    """What every client of a dialect passes over; empty where there is nothing such."""
    if config.keep_alive == "off" or dialect is ollama:  # JSON lines know no comment
        return b""
    if dialect is anthropic:
        return anthropic.PING
    if config.keep_alive == "empty" and dialect is openai_chat:
        choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": None}
        frame = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": request.model, "choices": [choice]}
        return sse(to_json(frame))
    return KEEP_ALIVE
