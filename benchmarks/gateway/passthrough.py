"""The least that a gateway in Python can do: hand bytes on. A bare ASGI application with aiohttp's client behind it.

`python -m benchmarks.gateway.passthrough UPSTREAM PORT`. What it costs is the server, the client and the sockets.
"""

from __future__ import annotations

import sys
from typing import Any

import aiohttp
import uvicorn


class PassThrough:
    """The application."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """What the server calls."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {"content-type": "application/json"}
        request = self._session.request(scope["method"], self._upstream + scope["path"], data=body, headers=headers)
        async with request as reply:
            kind = (b"content-type", reply.headers["content-type"].encode())
            await send({"type": "http.response.start", "status": reply.status, "headers": [kind]})
            async for chunk in reply.content.iter_any():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    async def _lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        connector = aiohttp.TCPConnector(limit=0)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._session.close()
        await send({"type": "lifespan.shutdown.complete"})


if __name__ == "__main__":
    uvicorn.run(
        PassThrough(sys.argv[1]),
        host="127.0.0.1",
        port=int(sys.argv[2]),
        http="httptools",
        loop="uvloop",
        log_level="warning",
        access_log=False,
        backlog=4096,
    )
