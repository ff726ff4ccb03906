"""The web server's connection, with limits that it lacks: the size of a request's head, and the time it may take."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

SECONDS_FOR_HEAD = 30.0


def limited(most: int) -> type[HttpToolsProtocol]:
    """A connection whose requests have heads of at most so many bytes."""

    class Limited(HttpToolsProtocol):
        """Counts the bytes of a head while it comes."""

        _head = 0
        _in_head = True
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer = self.loop.call_later(SECONDS_FOR_HEAD, self._late)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._in_head:
                self._head += len(data)
            super().data_received(data)
            if self._in_head and self._head > most and not self.transport.is_closing():
                body = b"the head of this request is too large (limits.header)\n"
                self.transport.write(
                    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\n"
                    b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
                )
                self.transport.close()

        def on_message_begin(self) -> None:
            self._head, self._in_head = 0, True
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._stop()
            super().on_headers_complete()

        def _late(self) -> None:
            """A head that does not come to its end."""
            if self._in_head and not self.transport.is_closing():
                self.transport.close()

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Limited
