"""Keep-alive bytes for idle streams, as the client's dialect has them (none for JSON lines). One timer per stream."""

from __future__ import annotations

import asyncio

from .._config.schema import Config
from ..dialects import Dialect
from ..dialects._request import Request
from .http_request import HttpRequest


class KeepAlive:
    """Sends keep-alive bytes whenever a stream was idle for a while. One timer, however many frames pass."""

    def __init__(self, http: HttpRequest, dialect: Dialect, request: Request, config: Config) -> None:
        self.busy = False
        """To be set whenever something is written to the stream; reset by the timer."""
        self._http = http
        style = config.keep_alive
        self._bytes = b"" if style == "off" else dialect.keep_alive(request, style)
        self._seconds = config.limits.keep_alive
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        if self._bytes:
            self._again()

    def stop(self) -> None:
        """Stop the timer. Nothing is written afterwards."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._tick)

    def _tick(self) -> None:
        # The last one may still wait for a client that does not read: another would only queue up behind it.
        if not self.busy and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._http.write(self._bytes))
        # Looked at once per interval instead of a timer that every frame sets anew: a frame costs one assignment.
        self.busy = False
        self._again()
