"""The HTTP/1.1 client that upstreams are called with: a pool of connections to one server, on httptools.

`pool.HttpClient` connects, reuses and times; `connection.ClientConnection` reads one response at a time. Neither knows
of models, refusals or configuration. It follows no redirect, keeps no cookie, unpacks nothing.

    client = HttpClient("https://models.example:8443", connect=10, idle=600)
    response = await client.request("POST", "/v1/chat/completions", {"content-type": "application/json"}, b"{}")
    try:
        while chunk := await response.read_chunk(): ...
    except BaseException:
        response.close()
        raise
    response.release()
"""

from .connection import ClientResponse, ConnectionBroken, HttpClientError, SilentServer, Sink, deliver_steps
from .pool import DISTRUST, CannotConnect, ConnectTimeout, HttpClient

__all__ = [
    "DISTRUST",
    "CannotConnect",
    "ClientResponse",
    "ConnectTimeout",
    "ConnectionBroken",
    "HttpClient",
    "HttpClientError",
    "SilentServer",
    "Sink",
    "deliver_steps",
]
