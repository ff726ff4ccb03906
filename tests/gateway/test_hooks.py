"""The parts of the web server and of the HTTP client that the gateway uses beyond what they promise.

A release that no longer calls one of these would silently lift a limit, so it must fail here, loudly.
"""

from __future__ import annotations

import inspect
import socket
import threading
from collections import Counter
from typing import Any

import httpx
import uvicorn
from aiohttp.client_proto import ResponseHandler
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import Server

from asides._gateway.protocol import Connection
from tests.waiting import eventually

HOOKS = (
    *("connection_made", "connection_lost", "data_received", "on_message_begin", "on_url", "on_header"),
    *("on_headers_complete", "on_body", "on_message_complete"),
)


def test_every_method_that_is_replaced_is_there() -> None:
    """What `Connection` overrides, the server's own class still has, with the same arguments."""
    for name, own in vars(Connection).items():
        if inspect.isfunction(own) and not name.startswith("_"):
            theirs = getattr(HttpToolsProtocol, name, None)
            assert theirs is not None, f"uvicorn's connection has no {name} any more"
            assert list(inspect.signature(own).parameters) == list(inspect.signature(theirs).parameters), name
    for name in ("handle_exit", "startup"):
        assert callable(getattr(Server, name, None)), f"uvicorn's server has no {name} any more"


def test_every_hook_is_called() -> None:
    """A request with a body goes through each of them, and through the fields that they read."""
    called: Counter[str] = Counter()

    def counting(name: str) -> Any:
        real = getattr(Connection, name)

        def hook(self: Connection, *arguments: Any) -> Any:
            called[name] += 1
            return real(self, *arguments)

        return hook

    counted = type("Counted", (Connection,), {name: counting(name) for name in HOOKS})

    async def application(scope: Any, receive: Any, send: Any) -> None:
        assert (await receive())["body"] == b"hello"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hi"})

    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, http=counted, lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        assert httpx.post(url, content=b"hello", verify=False).text == "hi"
        eventually(lambda: called["connection_lost"], "the end of the connection was not told")
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
    assert [name for name in HOOKS if not called[name]] == []
    assert "response_complete" in inspect.getsource(RequestResponseCycle)


def test_the_clients_own_timer_can_be_stopped() -> None:
    """Silence is watched by the gateway's own timer: the client's would be set anew with every read."""
    assert isinstance(inspect.getattr_static(ResponseHandler, "read_timeout"), property)
