"""`python -m tests.load.fuzz`: mutated requests x mutated frames x faults, over real sockets, through a gateway.

Exchange `number` of a `seed` is always the same: what the client sends, what the upstream sends back, and where either
breaks off. So a failure is replayed alone, and shown, by `--seed S --only NUMBER`. Of each answer it is checked:

- it is HTTP to its end, and in the shape of the client's API: a reply that says how it ended, or an error;
- the status says which: an error in one piece never has 200, and an error of the upstream never becomes a success;
- nothing is the gateway's own failure: no 500 that the upstream did not send, no traceback in the log;
- where request and reply mean what they always mean, however oddly they are written, thought and answer are the
  model's own; where the upstream broke off, they are the beginning of these, and the error follows.

And the gateway may never need much more memory than for its first exchanges.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httptools

from asides.dialects._numbers import BOUNDS
from tests.dialects import odd
from tests.gateway import speech
from tests.gateway.clients import DIALECTS, PATHS, Dialect, body_of
from tests.gateway.running import Gateway, gateway
from tests.gateway.speech import Speech
from tests.gateway.upstream import JSON, NDJSON, SSE, Asked, Close, Hang, Pause, Reply, Reset, Step, Upstream, upstream

MEGABYTE = 1_000_000
WORKERS = 4
PATIENCE = 40.0
"""Seconds after which an answer is missing: an upstream that is silent costs two of them."""
WARM = 200
"""Exchanges after which memory is measured first: what is made once has been made."""
GROWTH = 64
"""Megabytes that it may need more: caches fill, and several large exchanges may meet."""
THOUGHT, ANSWER = "Two and two: é→日本 🙂, a<b.", 'It is 4,\n\n- so <b>4</b> \\ "ok" é日🙂.'
EXTREMES: tuple[Any, ...] = (
    *(0, -1, 1, 2, 20, 128, 129, 1000, 1_000_000, 2**31 - 1, 2**31, 2**53, 2**63, 10**30, -(10**30), 10**400),
    *(0.5, -0.0, 1e308, 1e9),
)
NAMES: dict[Dialect, str] = {
    "chat": "openai_chat",
    "completions": "completions",
    "responses": "openai_responses",
    "messages": "anthropic",
    "ollama_chat": "ollama",
    "ollama_generate": "ollama",
}
"""What `tests.dialects.odd` calls each of them."""
SERVED = {
    "/v1/chat/completions": "openai_chat",
    "/v1/completions": "completions",
    "/api/chat": "ollama",
    "/api/generate": "ollama",
}
RENDER: dict[str, tuple[speech.Render, speech.Render]] = {
    "/v1/chat/completions": (speech.chat_stream, speech.chat_whole),
    "/v1/completions": (speech.completions_stream, speech.completions_whole),
    "/api/chat": (speech.ollama_stream, speech.ollama_whole),
    "/api/generate": (speech.generate_stream, speech.generate_whole),
}
MODELS = ("m-v", "m-o", "passed-v", "passed-o", "bounded-v", "tags-v", "drop-o", "filled-v", "renamed-v")
SETTINGS: dict[str, Any] = {
    "passed-*": {"format": "none"},
    "bounded-*": {"budget": {"tokens": 3, "enforce": "cut"}},
    "tags-*": {"reasoning": "tags", "replay": "tags"},
    "drop-*": {"reasoning": "drop"},
    "filled-*": {"empty_answer": "thinking"},
    "renamed-*": {"name": "m-v"},
}
"""By model: what makes the gateway take another way through itself."""
MOST_SPOKEN = 128
"""Choices that the upstream gives, however many it was asked for."""
COUNTED = (*BOUNDS, "temperature", "top_p", "logit_bias", *["n"] * 10)
"""Fields that numbers are put into; most often the one that the most depends on."""
QUERIES = (
    "/v1/responses/resp_{}",
    "/v1/responses/{}?starting_after={}&stream=true",
    "/v1/responses/resp_1/input_items?limit={}&order={}&after={}",
    "/v1/models/{}",
    "/asides/requests?limit={}&after={}",
    "/asides/history?limit={}&before={}&offset={}",
)


@dataclass
class Exchange:
    """One request, what the upstream answers to it, and what must come of it."""

    seed: int
    number: int
    dialect: Dialect | None = None
    """None: no question to a model."""
    stream: bool = False
    sent: bytes = b""
    """The whole request."""
    clean: bool = False
    """Whether the request is an ordinary one."""
    passed: bool = False
    """Whether bytes pass as they are where both sides speak one API: these are the upstream's, and so is their end."""
    leaves: int = 0
    """Bytes of the answer after which the client leaves; 0: it stays."""
    kind: str = "none"
    """What was done to the reply; `none` until the upstream is asked."""
    upstream_status: int = 200
    reply: list[Step] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The request id that it goes by, which the gateway passes on and logs."""
        return str(UUID(int=self.seed << 64 | self.number))


@dataclass
class Answer:
    """What a client got."""

    status: int = 0
    body: bytes = b""
    complete: bool = False


# What the client sends.


def make_exchange(seed: int, number: int, host: str) -> Exchange:
    """The exchange of this number."""
    dice = Random(f"{seed} {number}")
    exchange = Exchange(seed, number)
    if dice.random() < 0.03:
        path = re.sub(r"\{\}", lambda _: str(dice.choice([*EXTREMES, "x", "%00", "é"])), dice.choice(QUERIES))
        exchange.sent = head(f"GET {path.encode().decode('latin-1')}", host, exchange.id) + b"\r\n"
        return exchange
    exchange.dialect = dialect = dice.choice(DIALECTS)
    exchange.stream = dice.random() < 0.6
    exchange.clean = dice.random() < 0.5
    model = dice.choice(["m-v", "m-o"] if exchange.clean else MODELS)
    exchange.passed = model.startswith("passed")
    body: Any = body_of(dialect, model=model) | {"stream": exchange.stream}
    if not exchange.clean:
        body = mutated_request(dice, dialect, body)
    asked = body.get("stream") if isinstance(body, dict) else False
    exchange.stream = dialect.startswith("ollama") if asked is None else bool(asked)
    data = json.dumps(body).encode("utf-8", "surrogatepass")
    if not exchange.clean and dice.random() < 0.05:
        data = spoilt(dice, data)
    exchange.sent = framed(dice, PATHS[dialect], host, exchange.id, data)
    if dice.random() < 0.05:
        exchange.leaves = dice.randrange(1, 2000)
    return exchange


def mutated_request(dice: Random, dialect: Dialect, body: dict[str, Any]) -> Any:
    """A request with a few things that no client means."""
    recorded = dice.choice(odd.REQUESTS[NAMES[dialect]])
    if dice.random() < 0.4:
        kept = {
            name: value for name, value in recorded.items() if dice.random() < 0.7 and name != "previous_response_id"
        }
        body = {**body, **kept, "model": body["model"], "stream": body["stream"]}
    changed: Any = body
    for _ in range(dice.randrange(4)):
        kind = dice.randrange(4)
        if kind == 0 and isinstance(changed, dict):
            changed = {**changed, dice.choice(COUNTED): dice.choice(EXTREMES)}
        elif kind == 1 and isinstance(changed, dict):
            place = dice.choice(["options", "reasoning", "thinking", "chat_template_kwargs", "stream_options"])
            changed = {**changed, place: {dice.choice([*BOUNDS, "effort", "type"]): dice.choice(EXTREMES)}}
        else:
            path = dice.choice(list(odd.places(changed)))
            changed = odd.replaced(changed, path, dice.choice([*odd.ODD, *EXTREMES]))
    return changed


def spoilt(dice: Random, data: bytes) -> bytes:
    """Bytes that were cut off, or some of which are others."""
    if not data or dice.random() < 0.3:
        return data[: dice.randrange(len(data) + 1)]
    found = bytearray(data)
    for _ in range(dice.randrange(1, 4)):
        found[dice.randrange(len(found))] = dice.randrange(256)
    return bytes(found)


def head(line: str, host: str, id: str) -> bytes:
    """The head of a request without the empty line behind it."""
    return f"{line} HTTP/1.1\r\nHost: {host}\r\nX-Request-Id: {id}\r\nConnection: close\r\n".encode("latin-1")


def framed(dice: Random, path: str, host: str, id: str, data: bytes) -> bytes:
    """A request with this body: with its length, or in chunks, with extensions and trailers perhaps."""
    begin = head(f"POST {path}", host, id)
    if dice.random() < 0.8:
        return begin + b"Content-Length: %d\r\n\r\n%b" % (len(data), data)
    pieces = [data[at : at + 1000] for at in range(0, len(data), 1000)]
    extension = dice.choice([b"", b";a=b", b";" + b"x" * 500])
    chunks = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces)
    trailers = dice.choice([b"", b"X-Asides-Odd: 1\r\n", b"X-Api-Key: k\r\nAuthorization: Bearer x\r\n"])
    return begin + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + trailers + b"\r\n"


# What the upstream sends back.


def make_reply(exchange: Exchange, asked: Asked) -> Reply:
    """What this exchange's upstream sends to what it was asked."""
    dice = Random(f"{exchange.seed} {exchange.number} reply")
    streams = bool(asked.body.get("stream", asked.path.startswith("/api/")))
    kinds = ("plain", "odd", "mutated", "recorded", "spoilt", "broken", "error", "silent")
    exchange.kind = dice.choices(kinds, (20, 25, 25, 10, 8, 10, 8, 0.5))[0]
    reply = KINDS[exchange.kind](dice, asked, streams)
    exchange.upstream_status = reply.status
    exchange.reply = list(reply.steps)
    headers = dict(reply.headers)
    if dice.random() < 0.1:
        headers[dice.choice(["X-Odd", "Retry-After", "X-RateLimit-Reset"])] = dice.choice(
            ["a\0b", "\x7f", "é", "-1", ""]
        )
    return replace(reply, steps=exchange.reply, headers=headers)


def spoken(dice: Random, asked: Asked, streams: bool) -> tuple[list[Any], bytes]:
    """An ordinary reply: its frames, or the one that it is; and how it is written."""
    choices = min(asked.body.get("n") or 1, MOST_SPOKEN)
    raw = f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"
    words = raw if choices == 1 or not asked.path.startswith("/v1") else (raw,) * choices
    if asked.body.get("tools") and dice.random() < 0.5 and isinstance(words, str):
        words += '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>' * dice.choice([1, 2, 30])
    said = Speech(words, size=dice.choice([1, 4, 7, 50]))
    if dice.random() < 0.2 and asked.path in ("/v1/chat/completions", "/api/chat") and choices == 1:
        field = "thinking" if asked.path == "/api/chat" else dice.choice(["reasoning_content", "reasoning"])
        said = replace(said, words=ANSWER, thought=THOUGHT, field=field)
    make_stream, make_whole = RENDER[asked.path]
    data = (make_stream if streams else make_whole)(said, asked.body)
    return (odd.frames_of(data) if streams else [json.loads(data)]), data


def written(asked: Asked, frames: list[Any], streams: bool) -> list[bytes]:
    """Frames as the bytes of a stream, or the only one as those of a whole reply."""
    if streams:
        return odd.to_stream(SERVED[asked.path], frames)
    return [json.dumps(frames[0]).encode()]


def headers_for(asked: Asked, streams: bool) -> dict[str, str]:
    """The media type that belongs to it."""
    return dict((NDJSON if asked.path.startswith("/api/") else SSE) if streams else JSON)


def cut_up(dice: Random, data: bytes) -> list[Step]:
    """Bytes in pieces of any size."""
    if dice.random() < 0.5:
        return [data]
    size = dice.choice([1, 3, 100, 5000]) if len(data) < 20_000 else 5000
    return [data[at : at + size] for at in range(0, len(data), size)]


def plain(dice: Random, asked: Asked, streams: bool) -> Reply:
    """As every server sends it, cut anywhere."""
    _, data = spoken(dice, asked, streams)
    return Reply(cut_up(dice, data), headers=headers_for(asked, streams))


def oddly(dice: Random, asked: Asked, streams: bool) -> Reply:
    """The same, written oddly: other numbers, unknown fields, comments; a stream in one piece, or the reverse."""
    if dice.random() < 0.15 and not (asked.body.get("stream_options") or {}):
        streams = not streams
    frames, _ = spoken(dice, asked, streams)
    one = (asked.body.get("n") or 1) == 1
    number = dice.choice([0, 0, 1, 7, -1, 10**30])
    unknown = {dice.choice(["x_odd", "extra"]): dice.choice(odd.ODD)} if dice.random() < 0.5 else {}
    for frame in frames:
        frame.update(unknown)
        for name in ("created", "system_fingerprint", "total_duration", "eval_duration"):
            if name in frame or dice.random() < 0.02:
                frame[name] = dice.choice(EXTREMES)
        if isinstance(frame.get("usage"), dict):
            frame["usage"] = {name: dice.choice(EXTREMES) for name in frame["usage"]}
        for choice in frame.get("choices", ()):
            choice.update(unknown)
            if one:
                choice["index"] = number
    pieces = written(asked, frames, streams)
    if streams and not asked.path.startswith("/api/"):
        for _ in range(dice.randrange(3)):
            junk = dice.choice([b": ping\n\n", b"\n\n", b"event: ping\n\n", b"retry: 10\n\n", b"data: : x\n\n"])
            pieces.insert(dice.randrange(len(pieces)), junk)
    data = b"".join(pieces)
    if streams and dice.random() < 0.2 and not asked.path.startswith("/api/"):
        data = data.replace(b"\n", b"\r\n")
    headers = headers_for(asked, streams)
    if dice.random() < 0.2:
        headers["Content-Type"] = dice.choice(["text/plain", "application/octet-stream", "x"])
    return Reply(cut_up(dice, data), headers=headers)


def mutated(dice: Random, asked: Asked, streams: bool) -> Reply:
    """With anything in the place of anything, frames left out, doubled, and in another order."""
    frames, _ = spoken(dice, asked, streams)
    return shuffled(dice, asked, frames, streams)


def recorded(dice: Random, asked: Asked, streams: bool) -> Reply:
    """The same with replies that have every field which is read."""
    found = (odd.STREAMS if streams else odd.WHOLE)[SERVED[asked.path]]
    frames = dice.choice(found)
    return shuffled(dice, asked, list(frames) if streams else [frames], streams)


def shuffled(dice: Random, asked: Asked, frames: list[Any], streams: bool) -> Reply:
    """What is done to frames that mean something."""
    for _ in range(dice.randrange(1, 5)):
        if not frames:
            break
        at = dice.randrange(len(frames))
        kind = dice.randrange(6 if streams else 3)
        if kind < 3:
            path = dice.choice(list(odd.places(frames[at])))
            frames[at] = odd.replaced(frames[at], path, dice.choice([*odd.ODD, *EXTREMES]))
        elif kind == 3:
            del frames[at]
        elif kind == 4:
            frames[at:at] = [frames[at]] * dice.choice([1, 1, 300])
        else:
            dice.shuffle(frames)
    frames = frames or [{}]
    return Reply(cut_up(dice, b"".join(written(asked, frames, streams))), headers=headers_for(asked, streams))


def spoil(dice: Random, asked: Asked, streams: bool) -> Reply:
    """Bytes that are no longer what was written."""
    _, data = spoken(dice, asked, streams)
    data = dice.choice(
        [spoilt(dice, data), b"", b"<html><title>Sign in</title>", b"null", b"[]", b"\0" * 100, data * 2]
    )
    return Reply(cut_up(dice, data), headers=headers_for(asked, dice.random() < 0.5))


def broken(dice: Random, asked: Asked, streams: bool) -> Reply:
    """A reply that breaks off."""
    _, data = spoken(dice, asked, streams)
    at = dice.randrange(len(data))
    end: list[Step] = dice.choice([[Close()], [Pause(0.02), Reset()]])
    return Reply([*cut_up(dice, data[:at]), *end], headers=headers_for(asked, streams))


def failing(dice: Random, asked: Asked, streams: bool) -> Reply:
    """An error with its status."""
    status = dice.choice([400, 401, 404, 422, 429, 500, 503, 529, 599])
    body = dice.choice([{"error": {"message": "no", "code": 200}}, {"error": "no"}, {"detail": []}, *odd.ODD])
    data = json.dumps(body).encode() if dice.random() < 0.8 else b"<html>no"
    return Reply([data], status, headers_for(asked, dice.random() < 0.3))


def silent(dice: Random, asked: Asked, streams: bool) -> Reply:
    """One of which nothing comes, or nothing more."""
    _, data = spoken(dice, asked, streams)
    return Reply([data[: dice.randrange(len(data))], Hang()], headers=headers_for(asked, streams))


KINDS: dict[str, Callable[[Random, Asked, bool], Reply]] = {
    "plain": plain,
    "odd": oddly,
    "mutated": mutated,
    "recorded": recorded,
    "spoilt": spoil,
    "broken": broken,
    "error": failing,
    "silent": silent,
}


# What the client gets.


class Reading:
    """Reads an answer to its end."""

    def __init__(self) -> None:
        self.answer = Answer()
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """More bytes."""
        self._parser.feed_data(data)
        self.answer.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """What the parser calls."""
        self.answer.body += body

    def on_message_complete(self) -> None:
        """And this."""
        self.answer.complete = True


async def talk(url: str, exchange: Exchange) -> Answer:
    """Send the request, and read until the gateway closes."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    reading, size = Reading(), 0
    try:
        async with asyncio.timeout(PATIENCE):
            writer.write(exchange.sent)
            while data := await reader.read(65536):
                reading.feed(data)
                size += len(data)
                if exchange.leaves and size >= exchange.leaves:
                    break
    finally:
        writer.transport.abort()
    return reading.answer


def problems_of(exchange: Exchange, answer: Answer) -> Iterator[str]:
    """What is wrong with an answer."""
    if exchange.leaves:
        return
    if not answer.complete and not exchange.passed:
        yield "the answer has no end"
        return
    if answer.status >= 500 and answer.status not in (502, 503, 504, exchange.upstream_status):
        yield f"status {answer.status} is the gateway's own failure"
    if exchange.dialect is None or exchange.passed:
        return
    if exchange.upstream_status >= 400:  # its own words may be passed on, whatever they are
        if answer.status < 400:
            yield f"the upstream's {exchange.upstream_status} became {answer.status}"
        return
    try:
        told = Told.read(exchange.dialect, exchange.stream, answer)
    except Exception as error:
        yield f"not in the client's shape: {type(error).__name__}: {error}"
        return
    if (answer.status == 200) == (told.failed and not told.stream):
        yield f"status {answer.status}, and {'an error' if told.failed else 'a reply'}"
    if not exchange.clean:
        return
    if exchange.kind in ("plain", "odd") and (told.failed or (told.thinking, told.text) != (THOUGHT, ANSWER)):
        yield f"not what the model said: {told}"
    if exchange.kind in ("broken", "silent"):
        # A whole reply may be all there before the connection breaks; but nothing is made up.
        # Of a marker that was cut in two nobody knows that it was one.
        text = ANSWER if told.thinking else f"<think>{ANSWER}"
        if not (f"{THOUGHT}\n</think>".startswith(told.thinking) and text.startswith(told.text.lstrip("\n"))):
            yield f"not the beginning of what the model said: {told}"
        if not told.failed and (told.thinking, told.text) != (THOUGHT, ANSWER):
            yield f"cut off, and no error: {told}"


@dataclass
class Told:
    """What an answer says: its thinking and text, and whether it is an error, or ends with one."""

    thinking: str
    text: str
    failed: bool
    stream: bool

    @classmethod
    def read(cls, dialect: Dialect, stream: bool, answer: Answer) -> Told:
        """Read it; raises for what no client of the API could."""
        if not stream or answer.status != 200:
            return cls._whole(dialect, json.loads(answer.body))
        text = answer.body.decode()
        if dialect.startswith("ollama"):
            frames = [json.loads(line) for line in text.split("\n") if line]
        else:
            lines = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
            frames = [line if line == "[DONE]" else json.loads(line) for line in lines]
        return cls._stream(dialect, frames)

    @classmethod
    def _whole(cls, dialect: Dialect, body: Any) -> Told:
        if body.get("error") or body.get("type") == "error":
            error = body["error"]
            words = error if dialect.startswith("ollama") else error["message"] if isinstance(error, dict) else error
            assert words is None or words == "" or words, "an error says something"
            return cls("", "", True, False)
        if dialect in ("chat", "completions"):
            choice = body["choices"][0]
            said = choice["message"] if dialect == "chat" else {**choice, "content": choice["text"]}
            assert choice["finish_reason"], "a choice says why it ended"
            return cls(said.get("reasoning_content") or "", said["content"] or "", False, False)
        if dialect == "messages":
            blocks = body["content"]
            assert body["stop_reason"], "a message says why it ended"
            thinking = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
            return cls(thinking, "".join(block["text"] for block in blocks if block["type"] == "text"), False, False)
        if dialect == "responses":
            return cls._response(body)
        assert body["done"] is True, "a reply says that it is over"
        message = body["message"] if dialect == "ollama_chat" else {**body, "content": body["response"]}
        return cls(message.get("thinking") or "", message["content"], False, False)

    @classmethod
    def _response(cls, body: Any) -> Told:
        assert body["status"] in ("completed", "incomplete", "failed"), "a response says how it ended"
        thinking = text = ""
        for item in body["output"]:
            if item["type"] == "reasoning":
                thinking += "".join(part["text"] for part in item.get("content") or item.get("summary") or ())
            elif item["type"] == "message":
                text += "".join(part.get("text", "") for part in item["content"])
        return cls(thinking, text, body["status"] == "failed", False)

    @classmethod
    def _stream(cls, dialect: Dialect, frames: list[Any]) -> Told:
        last = frames[-1]
        if dialect in ("chat", "completions"):
            failed = last != "[DONE]"
            assert not failed or last.get("error"), "a stream ends with [DONE] or an error"
            choices = [each for frame in frames if frame != "[DONE]" for each in frame.get("choices", ())]
            deltas = [each["delta"] if dialect == "chat" else each for each in choices if each["index"] == 0]
            thinking = "".join(delta.get("reasoning_content") or "" for delta in deltas)
            name = "content" if dialect == "chat" else "text"
            return cls(thinking, "".join(delta.get(name) or "" for delta in deltas), failed, True)
        if dialect == "messages":
            assert last["type"] in ("message_stop", "error"), "a stream ends with message_stop or an error"
            found = [frame["delta"] for frame in frames if frame["type"] == "content_block_delta"]
            thinking = "".join(delta.get("thinking", "") for delta in found)
            return cls(thinking, "".join(delta.get("text", "") for delta in found), last["type"] == "error", True)
        if dialect == "responses":
            ends = ("response.completed", "response.incomplete", "response.failed", "error")
            assert last["type"] in ends, f"a stream ends with one of {ends}"
            if last["type"] == "error":
                return cls("", "", True, True)
            return replace(cls._response(last["response"]), stream=True)
        assert last.get("done") is True or last.get("error"), "a stream ends with done or an error"
        said = [f.get("message", f) for f in frames if not f.get("error")]
        thinking = "".join(each.get("thinking") or "" for each in said)
        text = "".join(each.get("content" if dialect == "ollama_chat" else "response") or "" for each in said)
        return cls(thinking, text, bool(last.get("error")), True)


# A run.


@dataclass
class Outcome:
    """What came of a run."""

    seed: int
    exchanges: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    before: float = 0.0
    after: float = 0.0
    """The most megabytes of the gateway: until it was warm, and until the end."""


class Run:
    """Exchanges through one gateway."""

    def __init__(self, seed: int, running: Gateway, servers: tuple[Upstream, ...], *, shows: bool = False) -> None:
        self._gateway = running
        self._shows = shows
        self._open: dict[str, Exchange] = {}
        self.outcome = Outcome(seed)
        for server in servers:
            for path in SERVED:
                server.send(self._reply, path)

    def _reply(self, asked: Asked) -> Reply:
        exchange = self._open.get(asked.headers.get("x-request-id", ""))
        if exchange is None:  # its client has left
            return Reply([Close()])
        return make_reply(exchange, asked)

    async def one(self, number: int) -> None:
        """One exchange."""
        outcome = self.outcome
        exchange = make_exchange(outcome.seed, number, urlsplit(self._gateway.url).netloc)
        self._open[exchange.id] = exchange
        try:
            answer = await talk(self._gateway.url, exchange)
            found = list(problems_of(exchange, answer))
        except TimeoutError:
            answer, found = Answer(), [f"no answer in {PATIENCE} s"]
        except (OSError, httptools.HttpParserError) as error:
            answer, found = Answer(), [f"{type(error).__name__}: {error}"]
        del self._open[exchange.id]
        outcome.exchanges += 1
        outcome.counts[f"{exchange.kind} {answer.status}"] += 1
        place = f"exchange {number} ({exchange.dialect}, {'stream' if exchange.stream else 'whole'}, {exchange.kind})"
        outcome.problems += [f"{place}: {problem[:500]}" for problem in found]
        if self._shows:
            print(
                f"{place}\n\nsent: {exchange.sent.decode('utf-8', 'replace')}\n\nthe upstream's reply: {exchange.reply}"
            )
            print(f"\nanswer: {answer.status} {answer.body.decode('utf-8', 'replace')}\n\nproblems: {found}")

    async def many(self, numbers: Iterator[int], until: float) -> None:
        """Exchanges of these numbers, several at once, until the time is over."""

        async def worker() -> None:
            for number in numbers:
                await self.one(number)
                if self.outcome.exchanges == WARM:
                    self.outcome.before = self._megabytes()
                if time.monotonic() > until:
                    return

        await asyncio.gather(*(worker() for _ in range(WORKERS)))

    def _megabytes(self) -> float:
        """The most memory that the gateway has had, where the system says it; else what it has."""
        status = Path(f"/proc/{self._gateway.process.pid}/status")
        if status.exists() and (peak := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
            return int(peak[1]) * 1024 / MEGABYTE
        return self._gateway.watched.memory_info().rss / MEGABYTE

    def finish(self) -> Outcome:
        """What is seen only in the end: memory, and what the log says."""
        outcome = self.outcome
        outcome.after = self._megabytes()
        if outcome.before and outcome.after > outcome.before + GROWTH:
            outcome.problems.append(f"memory grew from {outcome.before:.0f} to {outcome.after:.0f} MB")
        for line in list(self._gateway.lines):
            if "Traceback" in line:
                ids = re.findall(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", line)
                numbers = sorted({UUID(id).int & 2**64 - 1 for id in ids})
                outcome.problems.append(f"exchange {numbers}: traceback: {line[-400:]}")
        return outcome


def run(seed: int, numbers: Iterator[int], seconds: float, *, shows: bool = False) -> Outcome:
    """A run with its own gateway and upstreams."""
    with upstream(models=["m-v"]) as openai, upstream("ollama", models=["m-o"]) as native:
        config = {
            "upstreams": [
                {"url": openai.url, "name": "vllm", "models": ["*-v"]},
                {"url": native.url, "name": "native", "models": ["*-o"]},
            ],
            "defaults": {"format": "qwen3"},
            "models": SETTINGS,
            "limits": {"idle": 2.0, "body": 2_000_000, "frame": 1_000_000, "calls": 20},
            "responses": {"entries": 50},
            "replay_cache": {"entries": 50},
        }
        with gateway(config) as running:
            playing = Run(seed, running, (openai, native), shows=shows)
            asyncio.run(playing.many(numbers, time.monotonic() + seconds))
            return playing.finish()


def main() -> int:
    """Fuzz, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.load.fuzz", description="Look for what the gateway cannot bear."
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="which exchanges (default: new ones)")
    parser.add_argument("--only", type=int, help="play and show this exchange of the seed alone")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int(time.time()) % 1_000_000
    command = f"python -m tests.load.fuzz --seed {seed}"
    print(f"seed {seed}; all of it again: {command}", flush=True)
    numbers = iter(range(sys.maxsize)) if options.only is None else iter([options.only])
    outcome = run(seed, numbers, options.seconds, shows=options.only is not None)
    for name, count in sorted(outcome.counts.items()):
        print(f"{count:8,} {name}")
    memory = f"memory {outcome.before:.0f} -> {outcome.after:.0f} MB" if outcome.before else "memory not measured"
    print(f"{outcome.exchanges:,} exchanges, {memory}")
    for problem in outcome.problems[:40]:
        print(f"    {problem}")
    if outcome.problems:
        print(f"{len(outcome.problems)} problems; one of them again, and shown: {command} --only NUMBER")
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
