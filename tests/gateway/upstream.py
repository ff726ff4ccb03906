"""A scripted model server in a thread of its own: what it sends, how it cuts it, and how it dies is told by a test.

It speaks OpenAI's paths or Ollama's, keeps every request, and notes which clients left before their reply was over.
"""

from __future__ import annotations

import asyncio
import json
import random
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from socket import SO_LINGER, SOL_SOCKET, socket
from typing import Any, Literal, TypeVar, cast

import httptools

from tests.gateway import speech
from tests.gateway.speech import Speech
from tests.waiting import PATIENCE, eventually

JSON = {"Content-Type": "application/json"}
SSE = {"Content-Type": "text/event-stream"}
NDJSON = {"Content-Type": "application/x-ndjson"}

Kind = Literal["openai", "ollama"]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Pause:
    """Wait this long."""

    seconds: float


@dataclass(frozen=True)
class Gate:
    """Wait until the test opens it."""

    opened: threading.Event = field(default_factory=threading.Event)

    def open(self) -> None:
        """Let the reply go on."""
        self.opened.set()


class Hang:
    """Send nothing more, and keep the connection."""


class Close:
    """Close the connection here."""


class Reset:
    """Reset the connection here."""


Step = bytes | Pause | Gate | Hang | Close | Reset


@dataclass(frozen=True)
class Reply:
    """What is sent back, step by step."""

    steps: Iterable[Step] = ()
    """Endless ones are made while they are sent."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: SSE)
    before: Sequence[Step] = ()
    """Steps before the first byte."""
    whole: bool = False
    """Sent with its length, in one piece."""


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    """By lower-case name."""
    raw: bytes
    left: threading.Event = field(default_factory=threading.Event)
    """The client has closed the connection before its reply was over."""
    answered: threading.Event = field(default_factory=threading.Event)
    """All of the reply was handed to the socket."""
    sent: int = 0
    """Bytes of the reply that were handed to the socket."""

    @property
    def body(self) -> Any:
        """The JSON that was sent."""
        return json.loads(self.raw) if self.raw else None


def cut(body: bytes, cuts: int | Sequence[int] | None = None, seed: int | None = None) -> list[bytes]:
    """The body in pieces: every so many bytes, at these offsets, at random ones, or whole."""
    if seed is not None:
        dice = random.Random(seed)
        cuts = [dice.randrange(len(body)) for _ in range(len(body) // 20 + 3)] if body else None
    if cuts is None:
        return [body] if body else []
    places = range(cuts, len(body), cuts) if isinstance(cuts, int) else sorted(set(cuts))
    edges = [0, *(place for place in places if 0 < place < len(body)), len(body)]
    return [body[start:stop] for start, stop in pairwise(edges) if start < stop]


def json_reply(body: Any, status: int = 200, **headers: str) -> Reply:
    """A whole reply; underscores in the names of headers are hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply([json.dumps(body).encode()], status, {**JSON, **named}, whole=True)


class Upstream:
    """The server while it runs."""

    def __init__(self, kind: Kind = "openai", models: Sequence[str] = ("m",), owner: str = "vllm") -> None:
        self.kind = kind
        self.owner = owner
        """What it says to be, in its list of models."""
        self.models = list(models)
        self.asked: list[Asked] = []
        """Every request, in order."""
        self.speech: Speech = Speech("It is 4.")
        """What the model says to everyone."""
        self.by_message: dict[str, Speech] = {}
        """What it says to this last user message instead."""
        self.replies: dict[str, Reply | Callable[[Asked], Reply]] = {}
        """By path, what is sent instead of a model's words."""
        self.url = ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def say(self, words: str | Sequence[str], **choices: Any) -> None:
        """From now on the model says this, to everyone."""
        for path in CHAT_PATHS:
            self.replies.pop(path, None)
        self.by_message.clear()
        self.speech = Speech(words if isinstance(words, str) else tuple(words), **choices)

    def send(self, reply: Reply | Callable[[Asked], Reply], path: str | None = None) -> None:
        """From now on every question to the model, or every request of this path, is answered with this."""
        for each in (path,) if path else CHAT_PATHS:
            self.replies[each] = reply

    def forget(self) -> None:
        """Forget what was asked, and say the usual."""
        self.asked.clear()
        self.say("It is 4.")

    @property
    def questions(self) -> list[Asked]:
        """The requests that were meant for the model."""
        return [asked for asked in list(self.asked) if asked.path in CHAT_PATHS]

    def question(self) -> Asked:
        """The latest request for the model, waiting for one if there was none."""
        return self.wait_for(lambda: self.questions[-1] if self.questions else None)

    def wait_for(self, look: Callable[[], Found | None]) -> Found:
        """What is looked for, as soon as it is there."""
        found: list[Found] = []

        def see() -> bool:
            if (seen := look()) is not None:
                found.append(seen)
            return bool(found)

        eventually(see, "it did not happen in time")
        return found[0]

    # The server.

    def start(self) -> None:
        """Start to listen."""
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    def stop(self) -> None:
        """Stop, and close every connection."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(PATIENCE)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self.connections: set[_Connection] = set()
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for connection in list(self.connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    def answer(self, asked: Asked) -> Reply:
        """What a request is answered with."""
        found = self.replies.get(asked.path)
        if found is not None:
            return found(asked) if callable(found) else found
        table = OLLAMA if self.kind == "ollama" else OPENAI
        make = table.get((asked.method, asked.path))
        if make is None:
            return json_reply({"error": {"message": f"no {asked.method} {asked.path} here"}}, 404)
        return make(self, asked)

    def chosen(self, body: dict[str, Any]) -> Speech:
        """What the model says to this request."""
        said = [m.get("content") for m in body.get("messages", ()) if m["role"] == "user"] or [body.get("prompt")]
        return self.by_message.get(str(said[-1]), self.speech)


def _spoken(make_stream: speech.Render, make_whole: speech.Render) -> Callable[[Upstream, Asked], Reply]:
    def answer(upstream: Upstream, asked: Asked) -> Reply:
        body = asked.body
        said = upstream.chosen(body)
        native = asked.path.startswith("/api/")
        if not body.get("stream", native):
            return Reply([make_whole(said, body)], headers=JSON, whole=True)
        pieces: list[Step] = []
        for piece in cut(make_stream(said, body), said.cuts, said.seed):
            pieces += [piece, Pause(said.pause)] if said.pause else [piece]
        return Reply(pieces, headers=NDJSON if native else SSE)

    return answer


def _models(upstream: Upstream, asked: Asked) -> Reply:
    data = [
        {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": upstream.owner}
        for name in upstream.models
    ]
    return json_reply({"object": "list", "data": data})


def _embeddings(upstream: Upstream, asked: Asked) -> Reply:
    return json_reply(
        {
            "object": "list",
            "model": asked.body["model"],
            "data": [{"object": "embedding", "index": 0, "embedding": [1.5]}],
        }
    )


def _tags(upstream: Upstream, asked: Asked) -> Reply:
    details = {"format": "gguf", "family": "qwen3", "parameter_size": "8B", "quantization_level": "Q4_K_M"}
    entry = {"modified_at": "2026-01-02T03:04:05Z", "size": 5, "digest": "abc", "details": details}
    return json_reply({"models": [{"name": name, "model": name, **entry} for name in upstream.models]})


def _show(upstream: Upstream, asked: Asked) -> Reply:
    if asked.body.get("model") not in upstream.models:
        return json_reply({"error": f"model '{asked.body.get('model')}' not found"}, 404)
    capabilities = ["completion", "tools", "thinking"]
    info = {"general.architecture": "qwen3", "qwen3.context_length": 40960}
    template = "{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}"
    return json_reply(
        {"details": {"family": "qwen3"}, "model_info": info, "capabilities": capabilities, "template": template}
    )


def _embed(upstream: Upstream, asked: Asked) -> Reply:
    return json_reply({"model": asked.body["model"], "embeddings": [[1.5]]})


OPENAI: dict[tuple[str, str], Callable[[Upstream, Asked], Reply]] = {
    ("POST", "/v1/chat/completions"): _spoken(speech.chat_stream, speech.chat_whole),
    ("POST", "/v1/completions"): _spoken(speech.completions_stream, speech.completions_whole),
    ("GET", "/v1/models"): _models,
    ("POST", "/v1/embeddings"): _embeddings,
}
OLLAMA: dict[tuple[str, str], Callable[[Upstream, Asked], Reply]] = {
    ("POST", "/api/chat"): _spoken(speech.ollama_stream, speech.ollama_whole),
    ("POST", "/api/generate"): _spoken(speech.generate_stream, speech.generate_whole),
    ("GET", "/api/tags"): _tags,
    ("POST", "/api/show"): _show,
    ("GET", "/api/version"): lambda upstream, asked: json_reply({"version": "0.31.4"}),
    ("POST", "/api/embed"): _embed,
}
CHAT_PATHS = ("/v1/chat/completions", "/v1/completions", "/api/chat", "/api/generate")


class _Connection(asyncio.Protocol):
    """One client's connection."""

    transport: asyncio.Transport

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._asked: Asked | None = None
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._upstream.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._upstream.connections.discard(self)
        if self._asked is not None and not self._asked.answered.is_set():
            self._asked.left.set()
        if self._task is not None:
            self._task.cancel()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._url, self._body, self._headers = b"", bytearray(), dict[str, str]()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        path, _, query = self._url.decode().partition("?")
        method = self._parser.get_method().decode()
        asked = self._asked = Asked(method, path, query, self._headers, bytes(self._body))
        self._upstream.asked.append(asked)
        self._task = asyncio.ensure_future(self._answer(asked))

    async def _answer(self, asked: Asked) -> None:
        reply = self._upstream.answer(asked)
        for step in reply.before:
            await self._take(step)
        head = f"HTTP/1.1 {reply.status} Scripted\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
        if reply.whole:
            body = b"".join(step for step in reply.steps if isinstance(step, bytes))
            self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        else:
            self.transport.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
            for step in reply.steps:
                await self._send(asked, step)
            self.transport.write(b"0\r\n\r\n")
        asked.answered.set()

    async def _send(self, asked: Asked, step: Step) -> None:
        if not isinstance(step, bytes):
            return await self._take(step)
        await self._writable.wait()
        # Each piece is a chunk of its own, and a turn of the loop keeps the writes apart.
        self.transport.write(b"%x\r\n%b\r\n" % (len(step), step))
        asked.sent += len(step)
        await asyncio.sleep(0)

    async def _take(self, step: Step) -> None:
        match step:
            case Pause():
                await asyncio.sleep(step.seconds)
            case Gate():
                while not step.opened.is_set():
                    await asyncio.sleep(0.002)
            case Hang():
                await asyncio.Event().wait()
            case Close():
                self.transport.close()
                raise asyncio.CancelledError
            case Reset():
                raw: socket = self.transport.get_extra_info("socket")
                raw.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
                self.transport.abort()
                raise asyncio.CancelledError


@contextmanager
def upstream(kind: Kind = "openai", models: Sequence[str] = ("m",), owner: str = "vllm") -> Iterator[Upstream]:
    """A server that runs as long as the block."""
    server = Upstream(kind, models, owner)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def frame(words: str, dialect: str = "chat", reason: str | None = None) -> bytes:
    """A frame of an upstream's stream."""
    said: dict[str, Any] = {"text": words} if dialect == "completions" else {"delta": {"content": words}}
    body = {"id": "1", "model": "m", "choices": [{"index": 0, **said, "finish_reason": reason}]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def left(server: Upstream) -> bool:
    """Whether the upstream has seen its client leave."""
    return server.question().left.wait(PATIENCE)
