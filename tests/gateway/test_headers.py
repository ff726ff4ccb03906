"""Which headers go on, in either direction, before a server that sends any bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import httpx
import pytest

from asides._gateway.headers import NO_TYPE
from asides._gateway.routes import EVERYWHERE, ROUTES, Route
from tests.gateway.clients import body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.sockets import connected, send


class Wire:
    """A server that says the same bytes to everyone, and keeps the heads of what it was asked."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.answer = b""
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.asked: list[bytes] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    more = connection.recv(65536)
                    if not more:
                        break
                    head += more
                if head.startswith(b"STOP"):
                    return
                self.asked.append(head)
                connection.sendall(self.answer)

    def close(self) -> None:
        """End it."""
        with connected(self.url) as client:
            client.socket.sendall(b"STOP\r\n\r\n")
            client.read_rest()
        self._thread.join()
        self._socket.close()


class Odd(NamedTuple):
    """A gateway before a server that says any bytes."""

    gateway: Gateway
    wire: Wire


@pytest.fixture(scope="module")
def odd() -> Iterator[Odd]:
    """One for all tests that need it."""
    wire = Wire()
    try:
        settings = {"pass_on": "all", "forward_headers": ["x-a", "X-Name", "x-mine"]}
        returned = ["Vary", "Content-Length", "Content-Type", "ETag"]
        upstreams = [{"url": wire.url, "kind": "openai"}]
        with gateway({"upstreams": upstreams, **settings, "return_headers": returned}) as running:
            yield Odd(running, wire)
    finally:
        wire.close()


def test_headers_that_are_for_the_next_hop_alone(odd: Odd) -> None:
    """What `Connection` names goes no further, in either direction; several of one name all pass."""
    odd.wire.answer = b"HTTP/1.1 200 OK\r\nVary: a\r\nVary: b\r\nConnection: close, X-Theirs\r\nX-Theirs: 1\r\n\r\nbody"
    with connected(odd.gateway.url) as client:
        lines = [
            b"GET /odd HTTP/1.1",
            b"Host: localhost",
            b"Connection: close, X-Mine",
            b"X-Mine: 1",
            b"X-A: 1",
            b"X-A: 2",
        ]
        client.socket.sendall(b"\r\n".join([*lines, b"", b""]))
        reply = client.read_rest().lower()
    assert b"\r\nvary: a, b\r\n" in reply
    assert b"x-theirs" not in reply
    asked = odd.wire.asked[-1].lower()
    assert b"\r\nx-a: 1, 2\r\n" in asked
    assert b"x-mine" not in asked
    assert b"content-type" not in asked  # nobody sent a body


def test_headers_keep_their_bytes(odd: Odd) -> None:
    """Characters beyond ASCII pass as the bytes that they are."""
    odd.wire.answer = "HTTP/1.1 200 OK\r\nX-Name: café\r\nConnection: close\r\n\r\n".encode()
    reply = send(odd.gateway.url, "GET /odd", "X-Name: thé".encode(), "Authorization: Bearer clé".encode())
    assert "\r\nx-name: café\r\n".encode() in reply
    assert "\r\nx-name: thé\r\n".encode() in odd.wire.asked[-1]
    assert "\r\nauthorization: Bearer clé\r\n".encode() in odd.wire.asked[-1]


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_a_length_without_a_body(odd: Odd, status: str) -> None:
    """An answer that has no body by its nature may speak of a length; it is no failure."""
    odd.wire.answer = f"HTTP/1.1 {status}\r\nContent-Length: 5\r\nETag: x\r\nConnection: close\r\n\r\n".encode()
    reply = send(odd.gateway.url, "GET /odd")
    assert reply.startswith(f"HTTP/1.1 {status}".encode())
    assert b"\r\netag: x\r\n" in reply
    assert b"\r\ncontent-type:" not in reply
    assert not [record for record in odd.gateway.records if "trace" in record]


BACK = {
    "Content-Type": "audio/mpeg",
    "Content-Disposition": "attachment",
    "Content-Range": "bytes 0-3/9",
    "Accept-Ranges": "bytes",
    "ETag": '"1"',
    "Last-Modified": "Tue, 17 Nov 2026 22:00:00 GMT",
    "Cache-Control": "max-age=9",
    "Retry-After": "3",
    "Retry-After-Ms": "3000",
    "Request-Id": "req_1",
    "OpenAI-Processing-Ms": "12",
    "Anthropic-Organization-Id": "o",
    "X-RateLimit-Remaining-Tokens": "7",
    "X-Model": "m",
    "Vary": "accept",
}
NOT_BACK = {
    "Set-Cookie": "asides-token=theirs",
    "Service-Worker-Allowed": "/",
    "Content-Security-Policy": "default-src *",
    "Content-Security-Policy-Report-Only": "default-src *",
    "X-Content-Type-Options": "sniff",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Cross-Origin-Opener-Policy": "unsafe-none",
    "Access-Control-Allow-Origin": "*",
    "Clear-Site-Data": '"*"',
    "Strict-Transport-Security": "max-age=9",
    "Refresh": "0; url=/x",
    "Link": "</x>; rel=preload",
    "Location": "/x",
    "Alt-Svc": 'h2=":1"',
    "Server": "theirs",
    "WWW-Authenticate": "Basic",
    "X-Accel-Redirect": "/x",
    "X-Accel-Buffering": "yes",
    "X-Sendfile": "/x",
    "X-Sendfile-Type": "x",
    "X-Frame-Options": "ALLOWALL",
    "X-Asides-Budget": "none",
    "X-Request-Id": "theirs",
}
OURS = {
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}


def answer_with(headers: Mapping[str, str], body: str = "body", status: str = "200 OK") -> bytes:
    """The bytes of an answer."""
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items()), "Connection: close"]
    return "\r\n".join([*lines, "", body]).encode()


def test_which_headers_of_an_upstream_come_back(odd: Odd) -> None:
    """Those of a list, and what `return_headers` names: an answer has the origin of the page."""
    odd.wire.answer = answer_with({**BACK, **NOT_BACK})
    found = get(odd.gateway.url, "/odd").headers
    assert {name: found.get(name) for name in BACK} == BACK
    assert {name for name in NOT_BACK if found.get(name) == NOT_BACK[name]} == set()
    assert {name: found.get(name) for name in OURS} == OURS


def test_a_reply_that_is_written_anew_has_no_headers_of_the_old_body(odd: Odd) -> None:
    """Nor what would be wrong of the page's origin; not even where the configuration names one that is of the body."""
    whole = '{"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}'
    of_old = {"Content-Type": "application/json", "Content-Length": str(len(whole))}
    odd.wire.answer = answer_with({**BACK, **NOT_BACK, **of_old}, whole)
    reply = post(odd.gateway.url, "/v1/chat/completions", body_of("chat"))
    found = reply.headers
    of_body = {"Content-Disposition", "Content-Range", "Accept-Ranges", "ETag", "Last-Modified", "Content-Type"}
    assert {name for name in BACK if name in found and name != "Content-Type"} == BACK.keys() - of_body
    assert {name for name in NOT_BACK if found.get(name) == NOT_BACK[name]} == set()
    assert (found["content-type"], found["content-length"]) == ("application/json", str(len(reply.content)))


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("text/html; charset=utf-8", NO_TYPE),
        ("TEXT/HTML", NO_TYPE),
        ("application/json, text/html", NO_TYPE),
        ("image/svg+xml", NO_TYPE),
        ("application/xhtml+xml", NO_TYPE),
        ("text/xsl", NO_TYPE),
        ("application/ecmascript", NO_TYPE),
        ("text/javascript", NO_TYPE),
        ("multipart/x-mixed-replace; boundary=x", NO_TYPE),
        ("", NO_TYPE),
        ("application/json", "application/json"),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("audio/mpeg", "audio/mpeg"),
        ("image/png", "image/png"),
        ("text/event-stream", "text/event-stream"),
    ],
)
def test_what_a_browser_would_run_becomes_bytes(odd: Odd, given: str, sent: str) -> None:
    odd.wire.answer = answer_with({"Content-Type": given} if given else {})
    assert get(odd.gateway.url, "/odd").headers["content-type"] == sent


def test_an_error_of_an_upstream_is_json_whatever_it_says(odd: Odd) -> None:
    """The body passes as it came, and a type that a browser would run does not."""
    for given, sent in (("text/html", "application/json"), ("application/problem+json", "application/problem+json")):
        odd.wire.answer = answer_with({"Content-Type": given}, '{"error": "<script>"}', "400 Bad Request")
        found = post(odd.gateway.url, "/v1/chat/completions", body_of("chat"))
        assert (found.status_code, found.headers["content-type"]) == (400, sent)
        assert found.text == '{"error": "<script>"}'


@pytest.mark.parametrize(
    ("given", "status", "passes"),
    [
        ("application/json", "200 OK", True),
        ("Application/JSON; charset=utf-8", "200 OK", True),
        ("audio/mpeg", "200 OK", True),
        ("application/json", "404 Not Found", True),
        ("text/html", "200 OK", False),
        ("text/plain", "200 OK", False),
        ("", "200 OK", False),
        ("text/html", "404 Not Found", False),
    ],
)
def test_what_is_got_of_audio_is_json_or_sound(odd: Odd, given: str, status: str, passes: bool) -> None:
    """Lists of voices, and speech; a page there would be read as one of ours. Whether it is there is still told."""
    odd.wire.answer = answer_with({"Content-Type": given} if given else {}, '{"voices": []}', status)
    found = get(odd.gateway.url, "/v1/audio/voices")
    assert (found.text == '{"voices": []}') is passes
    assert found.status_code == (int(status[:3]) if passes or status[0] == "4" else 502)
    if not passes:
        assert "application/json and audio/" in found.json()["error"]["message"]
    odd.wire.answer = answer_with({"Content-Type": "text/plain"}, "words")
    assert post(odd.gateway.url, "/v1/audio/transcriptions", {"model": "m"}).text == "words"


def test_a_redirect_is_not_handed_on(odd: Odd) -> None:
    """The header that says where to is not one that comes back."""
    odd.wire.answer = answer_with({"Location": "https://login.example/?token=hunter2"}, "", "302 Found")
    found = get(odd.gateway.url, "/odd")
    assert (found.status_code, "location" in found.headers) == (502, False)
    assert "a redirect to https://login.example/" in found.json()["error"]["message"]


@pytest.mark.parametrize("route", [*ROUTES, *EVERYWHERE], ids=lambda route: f"{route.handler} {route.path}")
def test_every_answer_but_a_file_of_the_page_is_sandboxed(odd: Odd, route: Route) -> None:
    """Whatever is added to the table, and whatever it answers: a browser that opens it runs nothing on this origin."""
    odd.wire.answer = answer_with({"Content-Type": "text/html"}, "<script>1</script>")
    path = route.path.replace("/*", "/x").replace("/+", "/x") or "/none/such"
    for method in (*route.methods, "HEAD", "PATCH"):
        body = body_of("chat") if method == "POST" else None
        found = httpx.request(method, odd.gateway.url + path, json=body, verify=False).headers
        assert {name: found.get(name) for name in OURS} == OURS, method


def test_what_is_no_http_is_answered_so_too(odd: Odd) -> None:
    """By what refuses a head that is none, or one that is too large."""
    with connected(odd.gateway.url) as client:
        client.socket.sendall(b"GET /x HTTP/1.1\r\nNonsense\r\n\r\n")
        refused = client.read_rest()
    assert b" 400 " in refused.splitlines()[0]
    assert all(f"\r\n{name}: {value}\r\n".encode() in refused for name, value in OURS.items())
