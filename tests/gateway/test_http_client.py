"""The HTTP client of the gateway against a real socket: every way in which a server may answer, or fail to."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import struct
import sys
import threading
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from asides._config.schema import Limits, UpstreamSettings
from asides._gateway.http_client import (
    CannotConnect,
    ClientResponse,
    ConnectionBroken,
    ConnectTimeout,
    HttpClient,
    HttpClientError,
    SilentServer,
)
from asides._gateway.http_client import pool as pool_module
from asides._gateway.http_client.connection import FULL, LONGEST_HEAD, STEP, ClientConnection
from asides._gateway.refusals import Refusal
from asides._gateway.upstreams import HttpUpstream
from tests.waiting import PATIENCE

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
SHORT = HEAD + b"content-length: 2\r\n\r\nok"


class Peer:
    """The server's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self) -> tuple[bytes, bytes]:
        """The next request: its head and its body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next((line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b"0")
        return head, await self.reader.readexactly(int(length))

    async def send(self, *pieces: bytes) -> None:
        """Write each piece by itself, so that it is read by itself."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0.001)

    def reset(self) -> None:
        """Break the connection off."""
        linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()

    async def left(self) -> bool:
        """Whether the client has closed the connection, once it has."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True


Script = Callable[[Peer], Awaitable[object]]


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.002)


class Server:
    """A server that answers each connection with the next of its scripts, and the last again and again."""

    def __init__(self, *scripts: Script) -> None:
        self._scripts = scripts
        self.connections = 0
        self.open = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Play a script."""
        script = self._scripts[min(self.connections, len(self._scripts) - 1)]
        self.connections += 1
        self.open += 1
        try:
            await script(Peer(reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            self.open -= 1


@asynccontextmanager
async def serving(
    *scripts: Script,
    host: str = "127.0.0.1",
    idle: float = 60.0,
    tls: ssl.SSLContext | None = None,
    limit: int = 1 << 24,
) -> AsyncIterator[tuple[Server, HttpClient]]:
    """A server and a client of it."""
    server = Server(*scripts)
    listening = await asyncio.start_server(server.serve, host, 0, ssl=tls, limit=limit)
    server.port = listening.sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    client = HttpClient(f"http{'s' if tls else ''}://{shown}:{server.port}", connect=10.0, idle=idle)
    try:
        yield server, client
    finally:
        client.close()
        listening.close()


def says(*pieces: bytes, times: int = 1, close: bool = True) -> Script:
    """A script: answer so many requests with these pieces, then close."""

    async def script(peer: Peer) -> None:
        for _ in range(times):
            await peer.request()
            await peer.send(*pieces)
        if not close:
            await peer.left()

    return script


async def read(response: ClientResponse) -> bytes:
    """The whole body; the connection goes back."""
    parts = []
    try:
        while chunk := await response.read_chunk():
            parts.append(chunk)
    except BaseException:
        response.close()
        raise
    response.release()
    return b"".join(parts)


async def delivered(response: ClientResponse) -> bytes:
    """The same by the other way."""
    parts: list[bytes] = []

    def sink(piece: bytes) -> bool:
        assert 0 < len(piece) <= STEP
        parts.append(piece)
        return len(parts) % 3 != 0  # stop now and then

    try:
        while await response.deliver(sink):
            await asyncio.sleep(0)
    except BaseException:
        response.close()
        raise
    response.release()
    return b"".join(parts)


WAYS = pytest.mark.parametrize("way", [read, delivered], ids=["read", "delivered"])
Way = Callable[[ClientResponse], Coroutine[Any, Any, bytes]]


async def get(client: HttpClient, method: str = "GET", body: bytes | None = None, **headers: str) -> ClientResponse:
    """A response, with patience but not for ever."""
    async with asyncio.timeout(PATIENCE):
        return await client.request(method, "/x", headers, body)


@pytest.fixture(params=["uvloop", "asyncio"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a test in the loop that the gateway uses, and in Python's own."""
    factory = pytest.importorskip("uvloop").new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def runs(test: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(test, PATIENCE))

    return runs


Run = Callable[[Coroutine[Any, Any, None]], None]


# What is sent.


def test_a_request_as_it_is_written(run: Run) -> None:
    """Host and length are ours, all else is what was given; a body of any size arrives whole."""

    async def test() -> None:
        seen: list[tuple[bytes, bytes]] = []

        async def script(peer: Peer) -> None:
            while True:
                seen.append(await peer.request())
                await peer.send(SHORT)

        async with serving(script) as (server, client):
            for body in (b"{}", b"x" * 5_000_000, b""):
                assert await read(await get(client, "POST", body, accept="*/*")) == b"ok"
            assert await read(await get(client)) == b"ok"
            assert [body for _, body in seen] == [b"{}", b"x" * 5_000_000, b"", b""]
            host = f"host: 127.0.0.1:{server.port}\r\n".encode()
            assert seen[0][0] == b"POST /x HTTP/1.1\r\n" + host + b"accept: */*\r\ncontent-length: 2\r\n\r\n"
            assert seen[3][0] == b"GET /x HTTP/1.1\r\n" + host + b"\r\n"
            assert server.connections == 1

    run(test())


@pytest.mark.parametrize(
    ("target", "headers"),
    [("/a b", {}), ("/a\r\nx: y", {}), ("/", {"a": "b\r\nc: d"}), ("/", {"a": "b\0"}), ("/", {"a\n": "b"})],
)
def test_what_no_request_may_hold(run: Run, target: str, headers: dict[str, str]) -> None:
    """Nobody can smuggle a header, or a second request, into another's."""

    async def test() -> None:
        async with serving(says(SHORT)) as (server, client):
            with pytest.raises(ValueError, match="holds what no"):
                await client.request("GET", target, headers)
            assert server.connections == 0

    run(test())


# Bodies.


@WAYS
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_chunked_body_cut_anywhere(run: Run, way: Way, size: int) -> None:
    """Wherever the bytes of a response are cut, its body is the same; extensions and trailers are no part of it."""
    answer = CHUNKED + b'3\r\nabc\r\n4;name="va;lue"\r\ndefg\r\n1  \r\nh\r\n0\r\nx-late: yes\r\n\r\n'

    async def test() -> None:
        pieces = [answer[start : start + size] for start in range(0, len(answer), size)]
        async with serving(says(*pieces, times=2, close=False)) as (server, client):
            for _ in range(2):
                response = await get(client)
                assert (response.status, await way(response)) == (200, b"abcdefgh")
                assert "x-late" not in response.headers
            assert server.connections == 1

    run(test())


@WAYS
@pytest.mark.parametrize("coding", ["length", "chunks", "close"])
def test_a_huge_body_and_a_slow_reader(run: Run, way: Way, coding: str) -> None:
    """All of it comes, though a reader that waits holds the server back: little is kept meanwhile."""
    count, piece = 60, bytes(range(256)) * 1024

    async def test() -> None:
        sent = 0

        async def script(peer: Peer) -> None:
            nonlocal sent
            await peer.request()
            heads = {"length": HEAD + b"content-length: %d\r\n\r\n" % (count * len(piece)), "chunks": CHUNKED}
            await peer.send(heads.get(coding, HEAD + b"\r\n"))
            for _ in range(count):
                peer.writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if coding == "chunks" else piece)
                await peer.writer.drain()
                sent += len(piece)
            await peer.send(b"0\r\n\r\n" if coding == "chunks" else b"")

        async with serving(script) as (_, client):
            response = await get(client)
            await until(lambda: sent)
            before = -1
            while before != sent:  # until the server has to wait
                before = sent
                await asyncio.sleep(0.2)
            assert sent < count * len(piece)
            assert await way(response) == piece * count

    run(test())


def test_what_waits_is_bounded(run: Run) -> None:
    """A server that sends faster than anybody reads fills the queue and is paused then."""

    async def test() -> None:
        async with serving(says(HEAD + b"\r\n", *[b"x" * 100_000] * 200)) as (_, client):
            response = await get(client)
            await until(lambda: response._connection._queued > FULL)
            await asyncio.sleep(0.1)  # what comes although it is paused has come
            # What one read brings may come on top of it.
            assert FULL < response._connection._queued < FULL + 300_000
            assert len(await read(response)) == 20_000_000

    run(test())


@WAYS
@pytest.mark.parametrize("end", ["close", "reset"])
def test_a_body_until_the_connection_ends(run: Run, way: Way, end: str) -> None:
    """Without a length the end of the connection is that of the body; a broken connection is not."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"\r\n", b"some ", b"words")
        await asyncio.sleep(0.05)
        if end == "reset":
            peer.reset()

    async def test() -> None:
        async with serving(script) as (server, client):
            if end == "reset":
                with pytest.raises(ConnectionBroken):
                    await way(await get(client))
                return
            for number in (1, 2):
                assert await way(await get(client)) == b"some words"
                assert server.connections == number

    run(test())


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_responses_without_a_body(run: Run, status: bytes) -> None:
    """They end with their head, whatever length that names, and the connection is used again."""

    async def test() -> None:
        head = b"HTTP/1.1 " + status + b"\r\n\r\n"
        async with serving(says(head, times=3, close=False)) as (server, client):
            for _ in range(3):
                assert await read(await get(client)) == b""
            assert server.connections == 1

    run(test())


def test_head(run: Run) -> None:
    """The head of a response to HEAD names the length of a body that does not come."""

    async def test() -> None:
        async with serving(says(HEAD + b"content-length: 500\r\n\r\n", close=False), says(SHORT)) as (_, client):
            response = await get(client, "HEAD")
            assert (response.headers["content-length"], await read(response)) == ("500", b"")
            assert await read(await get(client)) == b"ok"

    run(test())


def test_a_body_that_head_does_not_have(run: Run) -> None:
    """Some servers send it all the same; it is not taken for anything."""

    async def test() -> None:
        async with serving(says(SHORT)) as (server, client):
            for _ in range(2):
                assert await read(await get(client, "HEAD")) == b""
            assert server.connections == 2

    run(test())


def test_a_host_of_its_own(run: Run) -> None:
    """Where the configuration names one, behind a proxy that needs it, the request has no other."""

    async def test() -> None:
        heads: list[bytes] = []

        async def script(peer: Peer) -> None:
            heads.append((await peer.request())[0])
            await peer.send(SHORT)

        async with serving(script) as (_, client):
            await read(await get(client, host="models.example"))
        assert [line for line in heads[0].lower().split(b"\r\n") if line.startswith(b"host:")] == [
            b"host: models.example"
        ]

    run(test())


def test_headers_of_one_name(run: Run) -> None:
    """They are joined, names in lower case; bytes that are no UTF-8 survive."""

    async def test() -> None:
        head = HEAD + b"X-A: 1\r\nx-a:  2 \r\nX-B: caf\xe9\r\ncontent-length: 0\r\n\r\n"
        async with serving(says(head)) as (_, client):
            headers = (await get(client)).headers
            assert headers["x-a"].split(", ") == ["1", "2"]
            assert headers["x-b"].encode("utf-8", "surrogateescape") == b"caf\xe9"

    run(test())


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("size", [1, 100, 1_000_000])
def test_compressed_though_nobody_asked(run: Run, coding: str, size: int) -> None:
    """An upstream's body is unpacked wherever it is cut, by either way of reading; in one that passes on it is not.

    Large ones are larger than a step of unpacking; byte by byte a small one is cut at every kind of place too.
    """
    body = b"".join(b"%d, " % number for number in range(30_000 if size > 1 else 3000))
    packed = gzip.compress(body) if coding == "gzip" else zlib.compress(body)

    async def test() -> None:
        head = HEAD + f"content-encoding: {coding}\r\ncontent-length: {len(packed)}\r\n\r\n".encode()

        async def script(peer: Peer) -> None:
            while True:
                await peer.request()
                await peer.send(head)
                for start in range(0, len(packed), size):
                    peer.writer.write(packed[start : start + size])
                    if start % 1000 == 0:
                        await asyncio.sleep(0)

        async with serving(script) as (server, _):
            upstream = HttpUpstream(UpstreamSettings(url=f"http://127.0.0.1:{server.port}"), Limits())
            parts: list[bytes] = []

            def sink(piece: bytes) -> bool:
                parts.append(piece)
                return len(piece) <= STEP and len(parts) % 2 == 0

            async with upstream.ask("POST", "/x", b"", {}) as response:
                assert await response.read(1_000_000) == body
            async with upstream.ask("POST", "/x", b"", {}) as response:
                while await response.deliver(sink):
                    pass
            assert b"".join(parts) == body
            async with upstream.ask("POST", "/x", b"", {}, raw=True) as response:
                assert await response.read(1_000_000) == packed
            with pytest.raises(Refusal, match="larger than 1000 bytes"):
                async with upstream.ask("POST", "/x", b"", {}) as response:
                    await response.read(1000)
            await upstream.close()

    run(test())


# Interim responses.


@pytest.mark.parametrize("interim", [b"100 Continue", b"102 Processing", b"103 Early Hints"])
def test_interim_responses(run: Run, interim: bytes) -> None:
    """They are passed over, with their headers, however many, in one piece with the response or before it."""
    early = b"HTTP/1.1 " + interim + b"\r\nx-early: 1\r\n\r\n"

    async def test() -> None:
        async with serving(says(early, early + early + SHORT, times=2)) as (server, client):
            for _ in range(2):
                response = await get(client)
                assert (response.status, dict(response.headers)) == (200, {"content-length": "2"})
                assert await read(response) == b"ok"
            assert server.connections == 1

    run(test())


def test_interim_responses_without_end(run: Run) -> None:
    """A server cannot keep a request waiting by them, nor fill memory."""

    async def script(peer: Peer) -> None:
        await peer.request()
        while True:
            await peer.send(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 100)

    async def test() -> None:
        async with serving(script) as (_, client):
            with pytest.raises(ConnectionBroken, match="no body"):
                await get(client)

    run(test())


def test_another_protocol(run: Run) -> None:
    """Nobody asked for it."""

    async def test() -> None:
        switch = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhi"
        async with serving(says(switch, close=False)) as (_, client):
            with pytest.raises(ConnectionBroken, match="another protocol"):
                await get(client)

    run(test())


# What is too large, or no HTTP.


@pytest.mark.parametrize(
    "answer",
    [
        HEAD + b"x-long: " + b"a" * (4 * LONGEST_HEAD),
        HEAD + b"a" * (4 * LONGEST_HEAD),
        HEAD + b"x-many: abcdefgh\r\n" * (LONGEST_HEAD // 10),
        HEAD + b"x-long: " + b"a" * (LONGEST_HEAD + 1) + b"\r\ncontent-length: 2\r\n\r\nok",
    ],
    ids=["a value", "a name", "many", "one read"],
)
def test_an_oversized_head(run: Run, answer: bytes) -> None:
    """It is refused as soon as it is too large, also where it never ends."""

    async def test() -> None:
        async with serving(says(answer, close=False)) as (_, client):
            with pytest.raises(ConnectionBroken, match="no body"):
                await read(await get(client))

    run(test())


@WAYS
@pytest.mark.parametrize("rest", [b"2;x=", b"0\r\nx-late: "], ids=["extension", "trailer"])
def test_oversized_parts_behind_the_head(run: Run, way: Way, rest: bytes) -> None:
    """The same for what else is no body."""

    async def test() -> None:
        async with serving(says(CHUNKED + b"2\r\nok\r\n", rest, *[b"a" * 10_000] * 30, close=False)) as (_, client):
            with pytest.raises(ConnectionBroken):
                await way(await get(client))

    run(test())


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"<html>no HTTP</html>",
        HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nok!",
        HEAD + b"content-length: -2\r\n\r\nok",
        HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        HEAD + b"transfer-encoding: gzip\r\n\r\nok",
    ],
)
def test_what_is_no_http(run: Run, answer: bytes) -> None:
    """A response whose length is doubtful is none: another's answer could be taken for a part of it."""

    async def test() -> None:
        async with serving(says(answer, close=False)) as (_, client):
            with pytest.raises(ConnectionBroken):
                await read(await get(client))

    run(test())


@WAYS
@pytest.mark.parametrize("pieces", [(CHUNKED + b"2\r\nok\r\nzz\r\n",), (CHUNKED, b"2\r\nok\r\nzz\r\n")])
def test_broken_chunks(run: Run, way: Way, pieces: tuple[bytes, ...]) -> None:
    """What came before the place that cannot be read is delivered."""

    async def test() -> None:
        parts: list[bytes] = []
        async with serving(says(*pieces, close=False)) as (_, client):
            response = await get(client)
            if way is read:
                parts.append(await response.read_chunk())
                with pytest.raises(ConnectionBroken, match="no HTTP"):
                    await response.read_chunk()
            else:
                with pytest.raises(ConnectionBroken, match="no HTTP"):
                    await response.deliver(lambda piece: bool(parts.append(piece) or True))  # type: ignore[func-returns-value]
            response.close()
            assert parts == [b"ok"]

    run(test())


# Connections that end.


@WAYS
@pytest.mark.parametrize("reset", [False, True], ids=["close", "reset"])
@pytest.mark.parametrize(
    "begun", [b"", b"HTTP/1.1 2", HEAD + b"x", HEAD + b"content-length: 9\r\n\r\nab", CHUNKED + b"2\r\nok\r\n"]
)
def test_an_early_end(run: Run, way: Way, begun: bytes, reset: bool) -> None:
    """A response that is cut is never taken for a whole one."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(begun)
        if reset:
            peer.reset()

    async def test() -> None:
        async with serving(script) as (server, client):
            with pytest.raises(ConnectionBroken):
                await way(await get(client, "POST", b"{}"))
            assert server.connections == 1  # no POST is repeated

    run(test())


def test_connection_close(run: Run) -> None:
    """A server that says so gets no other request on this connection, in HTTP/1.0 by default."""
    closing = HEAD + b"Connection: close\r\ncontent-length: 2\r\n\r\nok"
    old = b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"
    kept = b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok"

    async def test() -> None:
        async with serving(*(says(each, times=9) for each in (closing, old, kept))) as (server, client):
            for expected in (1, 2, 3, 3):
                assert await read(await get(client, "POST", b"{}")) == b"ok"
                assert server.connections == expected

    run(test())


def test_a_connection_that_was_closed_while_idle(run: Run) -> None:
    """It is noticed before the next request is sent, also one that may not be repeated."""

    async def test() -> None:
        async with serving(says(SHORT)) as (server, client):
            for number in range(1, 4):
                assert await read(await get(client, "POST", b"{}")) == b"ok"
                assert server.connections == number
                await until(lambda: not server.open)

    run(test())


def test_a_server_that_closes_after_streams(run: Run) -> None:
    """llama.cpp's server does, without a word: once seen, no request is sent on a connection that is about to end."""
    stream = HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    kept = says(stream, times=9, close=False)

    async def test(first: Script, expected: tuple[int, ...]) -> None:
        async with serving(first, kept, kept, says(SHORT, times=9, close=False)) as (server, client):
            for number in expected:
                assert await read(await get(client, "POST", b"{}")) == b"ok"
                assert server.connections == number
                if number == 1:
                    await until(lambda: not server.open or first is kept)

    run(test(says(stream), (1, 2, 3, 4, 4)))
    run(test(kept, (1, 1, 1, 1, 1)))


def test_a_connection_whose_end_the_loop_has_not_seen(run: Run) -> None:
    """The same where the end has reached the socket in the very moment of the next request."""
    listening = socket.create_server(("127.0.0.1", 0))
    may_close, closed = threading.Event(), threading.Event()

    def serve() -> None:
        for _ in range(2):
            connection, _ = listening.accept()
            connection.recv(65536)
            connection.sendall(SHORT)
            may_close.wait(PATIENCE)
            connection.close()
            closed.set()

    async def test() -> None:
        client = HttpClient(f"http://127.0.0.1:{listening.getsockname()[1]}", connect=10, idle=60)
        assert await read(await get(client, "POST", b"{}")) == b"ok"
        may_close.set()
        assert closed.wait(PATIENCE)  # without giving the loop a turn
        assert await read(await get(client, "POST", b"{}")) == b"ok"
        client.close()

    thread = threading.Thread(target=serve)
    thread.start()
    run(test())
    thread.join(PATIENCE)
    listening.close()


@pytest.mark.parametrize(("method", "repeated"), [("GET", True), ("PUT", True), ("POST", False), ("PATCH", False)])
@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 2"], ids=["nothing", "a part"])
@pytest.mark.parametrize("reset", [False, True], ids=["close", "reset"])
def test_a_connection_that_is_closed_while_it_is_reused(
    run: Run, method: str, repeated: bool, begun: bytes, reset: bool
) -> None:
    """A request is repeated once, on a new connection, where it may be and nothing of a response had come."""

    async def races(peer: Peer) -> None:
        await peer.request()
        await peer.send(SHORT)
        await peer.request()
        await peer.send(begun)
        if reset:
            peer.reset()

    async def test() -> None:
        async with serving(races, says(SHORT)) as (server, client):
            assert await read(await get(client)) == b"ok"
            if repeated and not begun:
                assert await read(await get(client, method, b"{}")) == b"ok"
                assert server.connections == 2
                return
            with pytest.raises(ConnectionBroken):
                await read(await get(client, method, b"{}"))
            assert server.connections == 1

    run(test())


def test_a_new_connection_is_not_tried_twice(run: Run) -> None:
    """A server that closes every connection is asked once, not for ever."""

    async def script(peer: Peer) -> None:
        await peer.request()

    async def test() -> None:
        async with serving(script) as (server, client):
            with pytest.raises(ConnectionBroken):
                await get(client)
            assert server.connections == 1

    run(test())


def test_what_nobody_asked_for(run: Run) -> None:
    """A second response, in one read with the first or while the connection is idle, answers no later request."""
    poison = HEAD + b"content-length: 6\r\n\r\npoison"

    async def test() -> None:
        for pieces in ((SHORT + poison,), (SHORT, poison), (SHORT + b"HT",), (SHORT, b"x")):
            async with serving(says(*pieces, close=False), says(SHORT)) as (server, client):
                assert await read(await get(client)) == b"ok"
                await until(lambda: not server.open)  # the server sees that the connection is given up
                assert await read(await get(client)) == b"ok"
                assert server.connections == 2

    run(test())


POISON = HEAD + b"content-length: 6\r\n\r\npoison"
LEAVES = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


@pytest.mark.parametrize("pieces", [(SHORT + POISON,), (SHORT, POISON), (SHORT, b"x")], ids=["at once", "late", "byte"])
def test_the_first_unasked_byte_ends_reuse(
    run: Run, pieces: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every connection to that server, for a while: the next one could come in the midst of a request."""
    monkeypatch.setattr(pool_module, "DISTRUST", 0.5)

    async def test() -> None:
        reported: list[bool] = []
        async with serving(says(SHORT, times=9), says(*pieces, close=False), says(SHORT, times=9)) as (server, client):
            client._on_unasked = reported.append
            held = await get(client)
            assert await read(await get(client)) == b"ok"  # on a second connection, which is then poisoned
            await until(lambda: reported == [True])
            assert await read(held) == b"ok"
            for expected in (3, 4):
                assert await read(await get(client)) == b"ok"
                assert server.connections == expected
            await until(lambda: not server.open)  # none waits to be used again

            async def reuses() -> bool:
                before = server.connections
                await read(await get(client))
                await read(await get(client))
                return server.connections == before + 1

            while not await reuses():
                await asyncio.sleep(0.05)

    run(test())


def test_unasked_bytes_that_the_loop_has_not_seen(run: Run) -> None:
    """A connection that can be read is not used, and what is in it is looked at all the same."""
    listening = socket.create_server(("127.0.0.1", 0))
    may_send, sent = threading.Event(), threading.Event()

    def serve() -> None:
        with listening.accept()[0] as first:
            first.recv(65536)
            first.sendall(SHORT)
            may_send.wait(PATIENCE)
            first.sendall(POISON)
            sent.set()
            with listening.accept()[0] as second:
                second.recv(65536)
                second.sendall(SHORT)

    async def test() -> None:
        reported: list[bool] = []
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        client = HttpClient(url, connect=10, idle=60, on_unasked=reported.append)
        assert await read(await get(client, "POST", b"{}")) == b"ok"
        may_send.set()
        assert sent.wait(PATIENCE)  # without giving the loop a turn
        assert await read(await get(client, "POST", b"{}")) == b"ok"
        await until(lambda: reported == [True])
        client.close()

    thread = threading.Thread(target=serve)
    thread.start()
    run(test())
    thread.join(PATIENCE)
    listening.close()


@pytest.mark.parametrize("farewell", [LEAVES, b"\r\n"], ids=["408", "empty line"])
def test_how_load_balancers_take_leave(run: Run, farewell: bytes) -> None:
    """It ends that one connection; the others are used again."""

    async def test() -> None:
        reported: list[bool] = []
        async with serving(says(SHORT, times=9), says(SHORT, farewell, close=False)) as (server, client):
            client._on_unasked = reported.append
            held = await get(client)
            assert await read(await get(client)) == b"ok"
            assert await read(held) == b"ok"
            await until(lambda: server.open == 1)
            assert await read(await get(client)) == b"ok"
            assert (server.connections, reported) == (2, [])

    run(test())


def test_a_connection_is_used_for_one_owner(run: Run) -> None:
    """What a faulty server sends twice is never read by another one."""

    async def test() -> None:
        async with serving(says(SHORT, times=9)) as (server, client):
            for owner, expected in (("a", 1), ("b", 2), ("a", 2), ("", 3), ("b", 3)):
                async with asyncio.timeout(PATIENCE):
                    response = await client.request("POST", "/x", {}, b"{}", owner)
                assert await read(response) == b"ok"
                assert server.connections == expected

    run(test())


def test_an_answer_before_the_request_was_taken(run: Run) -> None:
    """It is read; the connection, on which the rest of the request would follow, is not used again."""

    async def refuses(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.send(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
        await asyncio.sleep(PATIENCE)

    async def test() -> None:
        async with serving(refuses, says(SHORT), limit=1 << 16) as (server, client):
            # More than the reader of the server and the buffers of both sockets take.
            response = await get(client, "POST", b"x" * 30_000_000)
            assert (response.status, await read(response)) == (413, b"no")
            assert await read(await get(client)) == b"ok"
            assert server.connections == 2

    run(test())


def test_idle_connections_are_closed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is reused after a while, and none stays open."""
    monkeypatch.setattr(pool_module, "KEEP_IDLE", 0.1)

    async def test() -> None:
        async with serving(says(SHORT, times=9)) as (server, client):
            responses = [await get(client) for _ in range(3)]
            assert [await read(response) for response in responses] == [b"ok"] * 3
            await until(lambda: not server.open)
            assert await read(await get(client)) == b"ok"
            assert server.connections == 4

    run(test())


# Leaving.


@pytest.mark.parametrize("when", ["before the head", "in the body", "delivering"])
def test_a_cancelled_request_closes_its_connection(run: Run, when: str) -> None:
    """That is how a server learns that nobody wants the rest."""

    async def test() -> None:
        asked, left = asyncio.Event(), asyncio.Event()

        async def script(peer: Peer) -> None:
            await peer.request()
            if when != "before the head":
                await peer.send(CHUNKED + b"2\r\nok\r\n")
            asked.set()
            if await peer.left():
                left.set()

        async def work(client: HttpClient) -> None:
            response = await get(client)
            await (delivered if when == "delivering" else read)(response)

        async with serving(script) as (_, client):
            task = asyncio.create_task(work(client))
            await asyncio.wait_for(asked.wait(), PATIENCE)
            await asyncio.sleep(0.05)  # what was sent is read
            assert not left.is_set()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(left.wait(), PATIENCE)

    run(test())


@pytest.mark.parametrize("how", ["release", "close"])
def test_a_body_that_nobody_reads(run: Run, how: str) -> None:
    """Whoever gives a response back before its end loses the connection, not the next response."""

    async def test() -> None:
        async with serving(says(CHUNKED + b"2\r\nok\r\n", close=False), says(SHORT)) as (server, client):
            response = await get(client)
            getattr(response, how)()
            assert await read(await get(client)) == b"ok"
            assert server.connections == 2

    run(test())


def test_a_sink_that_fails(run: Run) -> None:
    """Its exception is raised where the delivery was asked for."""

    def fails(piece: bytes) -> bool:
        raise LookupError(piece)

    async def test() -> None:
        async with serving(says(CHUNKED, b"2\r\nok\r\n", close=False)) as (_, client):
            response = await get(client)
            with pytest.raises(LookupError, match="ok"):
                await response.deliver(fails)
            response.close()

    run(test())


# Servers that are slow, or not there.


@WAYS
@pytest.mark.parametrize("begun", [b"", CHUNKED + b"2\r\nok\r\n"], ids=["no head", "no end"])
def test_a_silent_server(run: Run, way: Way, begun: bytes) -> None:
    """It is given up once it was silent for as long as it may be."""

    async def test() -> None:
        order: list[str] = []
        async with serving(says(begun, close=False), idle=0.4) as (_, client):
            asyncio.get_running_loop().call_later(0.3, order.append, "three quarters of it")
            with pytest.raises(SilentServer):
                await way(await get(client))
            assert order == ["three quarters of it"]

    run(test())


@WAYS
def test_a_slow_server(run: Run, way: Way) -> None:
    """One that sends something now and then is none that is silent, however long all of it takes."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED)
        for _ in range(8):
            await asyncio.sleep(0.25)
            await peer.send(b"1\r\nx\r\n")
        await peer.send(b"0\r\n\r\n")

    async def test() -> None:
        # A busy machine may be late by much of it.
        async with serving(script, idle=1.5) as (_, client):
            assert await way(await get(client)) == b"x" * 8

    run(test())


def test_who_does_not_read_is_not_silent(run: Run) -> None:
    """Silence counts only while somebody waits: a slow client of ours is no fault of the server's."""

    async def test() -> None:
        async with serving(says(CHUNKED + b"2\r\nok\r\n", close=False), idle=1.0) as (_, client):
            response = await get(client)
            await until(lambda: response._connection._queued)
            await asyncio.sleep(1.2)
            assert await response.read_chunk() == b"ok"
            with pytest.raises(SilentServer):
                await response.read_chunk()
            response.close()

    run(test())


def test_nobody_there(run: Run) -> None:
    """A port without a server, and a name without an address."""

    async def test() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            client = HttpClient(f"http://127.0.0.1:{unused.getsockname()[1]}", connect=10, idle=10)
            with pytest.raises(CannotConnect):
                await get(client)
        with pytest.raises(CannotConnect):
            await get(HttpClient("http://nowhere.invalid", connect=10, idle=10))

    run(test())


def test_a_server_that_takes_no_connection(run: Run) -> None:
    """Its queue is full, so the kernel lets us wait; we do not wait longer than we may."""

    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
            waiting = []
            try:
                for _ in range(4):
                    each = socket.socket()
                    each.setblocking(False)
                    each.connect_ex(full.getsockname())
                    waiting.append(each)
                client = HttpClient(f"http://127.0.0.1:{full.getsockname()[1]}", connect=0.3, idle=10)
                with pytest.raises(ConnectTimeout):
                    await get(client)
            finally:
                for each in waiting:
                    each.close()

    run(test())


# Addresses.


def test_ipv6(run: Run) -> None:
    """An address in brackets, in the socket and in the header."""

    async def test() -> None:
        seen: list[bytes] = []

        async def script(peer: Peer) -> None:
            seen.append((await peer.request())[0])
            await peer.send(SHORT)

        try:
            async with serving(script, host="::1") as (server, client):
                assert await read(await get(client)) == b"ok"
                assert f"host: [::1]:{server.port}\r\n".encode() in seen[0]
        except OSError as error:
            pytest.skip(f"this machine has no IPv6: {error}")

    run(test())


def test_a_name_with_several_addresses(run: Run) -> None:
    """One that refuses, or does not answer, keeps nobody from the next."""

    async def test() -> None:
        full = socket.create_server(("127.0.0.1", 0), backlog=0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            for absent in (unused.getsockname(), full.getsockname()):
                async with serving(says(SHORT)) as (server, client):
                    places = (absent, ("127.0.0.1", server.port))
                    client._addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]
                    client._resolved = time.monotonic()
                    assert await read(await get(client)) == b"ok"
        for each in (full, *waiting):
            each.close()

    run(test())


def test_the_port_that_goes_without_saying() -> None:
    """A default port is not in the header, another is; names are written as the network has them."""
    for origin, host in {
        "http://a.example": "a.example",
        "http://a.example:80": "a.example",
        "https://a.example:443": "a.example",
        "https://a.example:80": "a.example:80",
        "http://user:word@a.example:8000": "a.example:8000",
        "http://bücher.example": "xn--bcher-kva.example",
    }.items():
        head = HttpClient(origin, connect=1, idle=1)._head("GET", "/", {}, None)
        assert head == f"GET / HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()


# TLS.


def test_tls(run: Run, certificate: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    """Encrypted by the loop: any size, connections that are reused; a certificate that nobody signed is refused."""
    server_side, client_side = certificate
    body = bytes(range(256)) * 8000

    async def test() -> None:
        answer = CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        async with serving(says(answer, times=3, close=False), host="localhost", tls=server_side) as (server, client):
            with pytest.raises(CannotConnect, match=r"CERTIFICATE_VERIFY_FAILED|certificate verify failed"):
                await get(client)
            client._tls = client_side
            for _ in range(3):
                assert await read(await get(client, "POST", body)) == body
            assert server.connections == 1

    run(test())


def test_no_tls_where_some_was_expected(run: Run) -> None:
    """A server that speaks plain HTTP at an https address cannot be reached."""

    async def test() -> None:
        async with serving(says(SHORT)) as (server, _):
            with pytest.raises(HttpClientError):
                await get(HttpClient(f"https://127.0.0.1:{server.port}", connect=0.5, idle=5))

    run(test())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The contexts of a server with a certificate of its own making, and of a client that trusts it."""
    import shutil
    import subprocess

    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not here")
    folder = tmp_path_factory.mktemp("tls")
    key, chain = folder / "key.pem", folder / "chain.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(chain)),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(chain, key)
    return server_side, ssl.create_default_context(cafile=str(chain))


def test_a_connection_that_is_closed_is_not_used(run: Run) -> None:
    """Neither one that was never made, nor one that was closed while it waited."""

    async def test() -> None:
        async with serving(says(SHORT, close=False)) as (_, client):
            never = ClientConnection(client, "")
            assert not never.is_fresh()
            with pytest.raises(ConnectionBroken):
                await never.send("GET", b"GET / HTTP/1.1\r\n\r\n", None)
            await read(await get(client))
            (waiting,) = client._idle[""]
            assert waiting.is_fresh()
            waiting.abort()
            assert not waiting.is_fresh()
            with pytest.raises(ConnectionBroken):
                await waiting.send("GET", b"GET / HTTP/1.1\r\n\r\n", None)

    run(test())


def test_a_server_of_several_addresses_that_speaks_no_tls(run: Run) -> None:
    """Cannot be connected to, and the socket that was chosen is closed."""

    async def test() -> None:
        closed = asyncio.Event()

        async def script(peer: Peer) -> None:
            await peer.send(b"no TLS\r\n")
            await peer.left()
            closed.set()

        async with serving(script) as (server, _):
            client = HttpClient(f"https://localhost:{server.port}", connect=10.0, idle=60.0)
            address = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))
            client._addresses, client._resolved = [address, address], time.monotonic()
            with pytest.raises(CannotConnect):
                await get(client)
            await closed.wait()
            client.close()

    run(test())
