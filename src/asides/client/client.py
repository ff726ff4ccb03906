"""A client for model servers, synchronous, on the standard library: messages in, the engine's events out as they come.

It speaks to OpenAI-compatible servers and to Ollama; what differs between them is a `ServerKind` of the dialects. The
dialect reads a reply, the splitter splits it, and its items are yielded as they come. What a reply shows about a model
(the field that its thinking comes in, where its output begins) is remembered for the next. Terminal, configuration and
conversation are the caller's.

    client = Client("http://127.0.0.1:8000")
    client.ask("2+2?", model="qwen3").thinking
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import msgspec

from .._engine.format import THINKING, Format
from .._engine.parser import Parser
from ..dialects import openai_chat
from ..dialects.errors import UPSTREAM_ENDED
from ..dialects.request import Request, ThinkingOptions, WriteOptions
from ..dialects.servers import (
    CONTROL_PATH,
    END_THOUGHT,
    KINDS,
    OPENAI,
    VERSION_PATH,
    Engine,
    KindName,
    ServerKind,
    engine_of,
    kind_of,
)
from ..errors import UsageError
from ..events import Notice, PartStart
from ..families import get_format
from ..policies import DEFAULTS, Policies, Start
from ..reply.fold import Fold
from ..reply.items import Begin, Chunk, Failed, ReplyEvent, ReplyItem, ThinkingChunk
from ..reply.reply import Reply
from ..reply.splitter import Splitter
from .http import MOST_ERROR, MOST_WHOLE, HttpExchange, Stopped, UpstreamError, read_address

if TYPE_CHECKING:
    from ..families import Switch

__all__ = ["Client", "Kind", "Message", "Reply", "Think", "UpstreamError", "name_some"]

Kind = KindName
Think = bool | str | None
"""Whether to think, or how much: low, medium, high, max. None: as the model likes."""
Message = Mapping[str, Any]
"""A message in OpenAI's shape."""

SHOWN_MODELS = 12
"""How many names an error lists where the requested model does not exist."""
CONNECT, IDLE = 10.0, 600.0
"""Timeouts in seconds: to connect, and between two bytes. There is none for a whole reply."""

_OWN_FIELDS = frozenset({"model", "messages", "n", "stream", "stream_options", "tools"})
"""Fields of a request that `talk` sets by itself."""
_VERSIONED = re.compile(r"/(?:v\d+\w*|openai)$")
"""How an address ends that has the version of the API in it."""


class Client:
    """One server. A client may be used for one reply after another; each has a connection of its own."""

    def __init__(
        self,
        url: str,
        key: str = "",
        kind: Literal["auto"] | Kind = "auto",
        *,
        connect: float = CONNECT,
        idle: float = IDLE,
    ) -> None:
        address = read_address(url)
        path = address.path.removesuffix("/chat/completions")
        self._address = msgspec.structs.replace(address, path=path)
        self._server: ServerKind | None = KINDS.get(kind)
        self._key = key.strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise UpstreamError("the key holds characters that no key has; was it copied whole?", reached=False)
        self._connect = connect
        self._idle = idle
        self._exchanges: set[HttpExchange] = set()
        self._fields: dict[str, str] = {}
        """By model: the field in which the server sends thinking."""
        self._starts: dict[tuple[str, bool], Start] = {}
        """By model, and whether thinking was turned off: where its output was seen to begin."""
        self.may_end_thoughts: bool = False
        """Whether `answer_now` may be called: the gateway then holds each request where it can be found."""
        self._engine: Engine | None = None
        self._running = ("", "")
        """The reply that is being read: the id of its request for the gateway, and its own."""

    def __str__(self) -> str:
        return str(self._address)

    @property
    def kind(self) -> str:
        """The name of the kind of server: `openai` or `ollama`."""
        return self.server.name

    @property
    def server(self) -> ServerKind:
        """The kind of server: OpenAI-compatible where the address ends in `/v1`, else what its version route says."""
        if self._server is None:
            self._server = OPENAI if _VERSIONED.search(self._address.path) else self._ask_kind()
        return self._server

    def _ask_kind(self) -> ServerKind:
        # The path is Ollama's alone.
        with self._exchange("GET", VERSION_PATH) as exchange:
            return kind_of(_decoded(exchange.read_whole(MOST_ERROR)) if exchange.status == 200 else None)

    def models(self) -> list[str]:
        """The names of the models that the server lists."""
        with self._exchange("GET", self._route(self.server.models_path)) as exchange:
            if exchange.status != 200:
                raise self._refusal(exchange)
            found = _decoded(exchange.read_whole(MOST_WHOLE))
        listed = self.server.read_models(found)
        if listed is None:
            raise UpstreamError(f"{self} sent no list of models; is this the address of a model server?")
        self._engine = engine_of(listed)
        return [model.id for model in listed]

    def talk(
        self,
        messages: str | Sequence[Message],
        *,
        model: str,
        think: Think = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        format: str | Format | None = None,
        start: Start | None = None,
        calls: bool | None = None,
        policies: Policies = DEFAULTS,
        extra: Mapping[str, Any] | None = None,
    ) -> Iterator[ReplyItem]:
        """The items of a reply as they come: the engine's events (`ReplyEvent`), how it ended, what it cost.

        `messages` are in OpenAI's shape, or one text of a user. Thinking in them is sent back with tool turns only.
        `format` None: by the model's name, else `auto`. `calls`: whether calls are read from the text; None: if there
        are tools. `policies` decide how the text is read otherwise; `tools`, `start` and `calls` win over them. `extra`
        has other fields by OpenAI's names (`temperature`, `max_tokens`…). A failure is an `UpstreamError`, raised
        after everything that had come was yielded.
        """
        tools = policies.tools if tools is None else tools
        request = _request(messages, model, think, tools, extra or {})
        from ..detect.from_name import find_switch, probe  # here, because a client that only lists models needs none

        named = probe(model)
        found = get_format(next(iter(named.formats), "auto") if format is None else format)
        policies = policies.but(
            start=start or policies.start,
            tools=tools,
            calls=bool(tools) and policies.calls if calls is None else calls,
            seed=random.getrandbits(32),
            collect=False,
        )
        # By the card, as in the gateway: whoever names the format of a model of unknown name wants its switch too.
        switch = find_switch(model, found) if think is not None else None
        try:
            while True:
                with self._send(request, switch) as exchange:
                    if exchange.status == 200:
                        self._running = (exchange.request_id, "")
                        yield from self._read(exchange, request, found, policies)
                        return
                    error = self._refusal(exchange, model)
                # Optional fields are left out for a server that refuses them; `reasoning_effort` asks for the same.
                # Only where the refusal names the field: another mistake must not be repeated in another shape. Each
                # field is left out once, so this ends.
                if error.status in (400, 422) and switch and "chat_template_kwargs" in error.message:
                    switch = None
                elif error.status in (400, 422) and request.include_usage and "stream_options" in error.message:
                    request = msgspec.structs.replace(request, include_usage=False)
                else:
                    raise error
        except Stopped:
            return
        finally:
            self._running = ("", "")

    def ask(self, messages: str | Sequence[Message], *, model: str, **choices: Any) -> Reply:
        """The whole reply. The choices are those of `talk`."""
        fold = Fold(clock=time.monotonic)
        for item in self.talk(messages, model=model, **choices):
            fold.add(item)
        return fold.reply

    def stop(self) -> bool:
        """End the replies that are being read, at once: they yield what had come, then end. False if there is none.

        May be called from a signal handler or another thread. A connection that is still being made cannot be stopped.
        """
        return any([exchange.stop() for exchange in list(self._exchanges)])

    @property
    def ends_thoughts(self) -> bool:
        """Whether the server is known to end a thought on demand: once its models were listed."""
        return self._engine is not None and bool(self._engine.control)

    def answer_now(self) -> None:
        """End the thought of the reply that is being read, where the server can; may be called from another thread.

        Set `may_end_thoughts` before the reply is asked for.
        The gateway does it by the id of the request, llama.cpp by that of the reply. An `UpstreamError` says why not.
        """
        request, reply = self._running
        if not request and not reply:
            raise UpstreamError("no reply is being written")
        root = _VERSIONED.sub("", self._address.path)
        status, reason = 404, ""
        if request:
            status, reason = self._order(f"{root}/asides/requests/{quote(request, safe='')}/answer-now", {})
        if status in (404, 405) and reply:
            status, reason = self._order(root + CONTROL_PATH, {"id": reply, "action": END_THOUGHT})
        if not 200 <= status < 300:
            cannot = f"{self} cannot end a thought"
            raise UpstreamError(cannot if status in (404, 405) else f"{cannot}: {reason}", status=status)

    def _order(self, path: str, body: dict[str, Any]) -> tuple[int, str]:
        """Send an order; the status, and the reason where it was refused."""
        with self._exchange("POST", path, body, prefix=False) as exchange:
            data = exchange.read_whole(MOST_ERROR)
            return exchange.status, "" if exchange.status < 300 else openai_chat.read_error(
                exchange.status, data
            ).message

    # Requests.

    def _send(self, request: Request, switch: Switch | None) -> HttpExchange:
        field = self._fields.get(request.model, self.server.thinking_field)
        options = WriteOptions(field=field, keep_thinking="tool_turns", switch=switch, stream=True)
        body = self.server.chat.write_request(request, options)
        for message in body["messages"]:
            if message["content"] is None:
                message["content"] = ""  # beside calls: some servers refuse null
        if self.may_end_thoughts and self._engine is not None and self._engine.control:
            body[self._engine.control] = True
        if not self.server.speaks(openai_chat):
            # They came by the names of the API in whose shape requests are made here; none may be lost.
            body = self.server.add_parameters(body, request.extra)
        return self._exchange("POST", self._route(self.server.chat.upstream_path(request)), body)

    def _route(self, path: str) -> str:
        return path.removeprefix("/v1") if _VERSIONED.search(self._address.path) else path

    def _exchange(self, method: str, path: str, body: Any = None, *, prefix: bool = True) -> HttpExchange:
        headers = {"Accept": "text/event-stream, application/json", "User-Agent": "asides"}
        if body is not None:
            headers["Content-Type"] = "application/json"
            if self.may_end_thoughts:
                headers["X-Asides-Inspect"] = "1"
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        path = self._address.path + path if prefix else path
        times = {"connect": self._connect, "idle": self._idle}
        return HttpExchange(self._address, method, path, headers, body, among=self._exchanges, **times)

    # Replies.

    def _read(
        self,
        exchange: HttpExchange,
        request: Request,
        format: Format,
        policies: Policies,
    ) -> Iterator[ReplyItem]:
        key = (request.model, request.thinking.think is False)
        first = policies.start or self._starts.get(key) or _default_start(format, request.thinking)

        def make_parser(reading: Format) -> Parser:
            # Another format is this one behind something that the server has split off: it has its own start.
            return Parser(
                reading, policies.but(start=first) if reading is format else policies.but(start=None, prompt=None)
            )

        splitter = Splitter(format, make_parser, seed=policies.seed)
        failed: Failed | None = None
        split_by_server = False
        for chunk in self._chunks(exchange):
            # What such a server sends as text is the answer alone: nothing can be learnt from it about where raw output
            # begins.
            split_by_server = split_by_server or isinstance(chunk, ThinkingChunk)
            for item in splitter.feed(chunk):
                if isinstance(item, Failed):
                    failed = item
                    continue
                if isinstance(item, ReplyEvent) and not split_by_server:
                    self._learn(key, item, format)
                elif isinstance(item, Begin):
                    self._running = (self._running[0], item.id)
                yield item
        yield from splitter.finish()
        if split_by_server:
            self._starts[key] = "text"
            self._fields[request.model] = next(iter(splitter.fields), "reasoning_content")
        if failed is not None and not exchange.stopped:
            reason = failed.message
            if exchange.broken and failed.code == UPSTREAM_ENDED.code:
                reason = f"the connection broke in the middle of the reply ({exchange.broken})"
            raise UpstreamError(f"{self}: {reason}", status=failed.status)

    def _learn(self, key: tuple[str, bool], item: ReplyEvent, format: Format) -> None:
        """Remember for the next reply where output begins: a lone close means that the prompt had opened thinking."""
        if format.start == THINKING and isinstance(item.event, PartStart) and item.event.kind == "thinking":
            self._starts[key] = "thinking"
        elif isinstance(item.event, Notice) and item.event.code == "stray_close":
            self._starts[key] = "undecided"

    def _chunks(self, exchange: HttpExchange) -> Iterator[Chunk]:
        if exchange.kind == "text/html":
            raise UpstreamError(f"{self} answered with a web page; is this the address of a model server?")
        if exchange.kind == "application/json" and not self.server.chat.FRAMING.takes_json:
            found = _decoded(exchange.read_whole(MOST_WHOLE))
            if not isinstance(found, dict):
                raise UpstreamError(f"{self} sent a reply that is not JSON, or was cut off")
            yield from self.server.chat.read_reply(found)
            return
        reader = self.server.chat.ReplyReader()
        for data in exchange.read():
            yield from reader.feed(data)
        if not exchange.stopped:
            # A reply that a person stopped has not failed, though its end is missing.
            yield from reader.finish()

    def _refusal(self, exchange: HttpExchange, model: str = "") -> UpstreamError:
        """The error that a response with another status than 200 stands for."""
        status = exchange.status
        if exchange.moved_to:
            return UpstreamError(f"{self} has moved to {exchange.moved_to}; use that address", status=status)
        body = exchange.read_whole(MOST_ERROR)
        reason = (
            "a web page; this is not a model server"
            if exchange.kind == "text/html"
            else self.server.chat.read_error(status, body).message
        )
        if status in (401, 403):
            wants = "refuses this key" if self._key else "wants a key"
            return UpstreamError(f"{self} {wants} ({status}): {reason}", status=status)
        message = f"{self} answered {status}: {reason}"
        if again := exchange.retry_after:
            message += f"; it may be asked again {f'in {again} s' if again.isdigit() else f'at {again[:40]}'}"
        if status == 404 and model:
            message += self._names(reason)
        return UpstreamError(message, status=status)

    def _names(self, reason: str) -> str:
        """The models of the server, for an error; empty where the server's own reason has them."""
        try:
            names = self.models()
        except UpstreamError:
            return "; it lists no models either, so is this the address of a model server?"
        if not names:
            return "; it has no models"
        if all(name in reason for name in names):
            return ""
        return f"; it has {name_some(names)}"


def check_extra(extra: Mapping[str, Any]) -> None:
    """Raise an `asides.Error` for fields that `talk` cannot send: of the wrong kind, or those that it sets itself."""
    own = [name for name in extra if name in _OWN_FIELDS]
    if own:
        raise UsageError(f"{', '.join(own)}: not to be set here")
    _request("", "", None, None, extra)


def name_some(models: Sequence[str]) -> str:
    """The names of models for an error, at most `SHOWN_MODELS`."""
    more = f" and {len(models) - SHOWN_MODELS} more" if len(models) > SHOWN_MODELS else ""
    return ", ".join(models[:SHOWN_MODELS]) + more


def _request(
    messages: str | Sequence[Message],
    model: str,
    think: Think,
    tools: Sequence[Mapping[str, Any]] | None,
    extra: Mapping[str, Any],
) -> Request:
    sent = [{"role": "user", "content": messages}] if isinstance(messages, str) else [dict(each) for each in messages]
    body: dict[str, Any] = {"model": model, "messages": sent, "stream_options": {"include_usage": True}, **extra}
    if tools:
        body["tools"] = [dict(tool) for tool in tools]
    if think is not None:
        body["reasoning_effort"] = think if isinstance(think, str) else "medium" if think else "none"
    request = openai_chat.read_request(body)
    if isinstance(think, bool):
        # Ollama gets true or false, not an effort.
        return msgspec.structs.replace(request, thinking=ThinkingOptions(think=think, sent=request.thinking.sent))
    return request


def _default_start(format: Format, thinking: ThinkingOptions) -> Start | None:
    """Where output begins, as long as none was seen.

    Where the format begins in thinking, text is held back until it shows how it began: the server may have split off
    the thinking, or not. With thinking turned off, output begins with the answer.
    """
    if format.start != THINKING:
        return None
    return "text" if thinking.think is False else "undecided"


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
