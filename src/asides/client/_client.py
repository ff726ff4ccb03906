"""A client for model servers, synchronous, on the standard library: messages in, the engine's events out as they come.

It speaks to OpenAI-compatible servers and to Ollama; what differs between them is a `ServerKind` of the dialects. The
dialect reads a reply, the splitter splits it, and its items are yielded as they come. A server that can be asked how it
ends its prompts is asked before the first reply. What a reply shows about a model (the field that its thinking comes
in, where its output begins) is remembered for the next. Terminal, configuration and
conversation are the caller's.

    client = Client("http://127.0.0.1:8000")
    client.ask("2+2?", model="qwen3").thinking
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import msgspec

from .._engine.format import HEADER, Format
from ..dialects import openai_chat
from ..dialects._errors import UPSTREAM_ENDED
from ..dialects._providers import provider_of
from ..dialects._rendered_prompts import PromptQuestion
from ..dialects._request import Request, ThinkingOptions, WriteOptions
from ..dialects._servers import (
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
from ..policies import DEFAULTS, Policies, Start
from ..reading._seen import SeenReplies, shown_by
from ..reply._fold import Fold
from ..reply._items import Begin, Chunk, Failed, ReplyItem, ThinkingChunk
from ..reply._reply import Reply
from ._http import MOST_ERROR, MOST_WHOLE, HttpExchange, Stopped, UpstreamError, read_address
from ._questions import Asker, ServerQuestions

if TYPE_CHECKING:
    from ..families import Switch
    from ..reading import Reading

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
VERSIONED = re.compile(r"/(?:v\d+\w*|openai)$")
"""How an address ends that has the version of the API in it."""


class Client:
    """One server. A client may be used for one reply after another; each has a connection of its own.

    Examples:
        >>> from asides.client import Client
        >>> client = Client(url)  # of a model server
        >>> reply = client.ask("2+2?", model=client.models()[0])
        >>> reply.thinking, reply.text
        ('2+2', 'It is 4.')
    """

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
        provider = provider_of(address.host) if kind == "auto" else None
        self._server: ServerKind | None = KINDS.get(kind if provider is None else provider.kind)
        self._key = key.strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise UpstreamError("the key holds characters that no key has; was it copied whole?", reached=False)
        self._connect = connect
        self._idle = idle
        self._exchanges: set[HttpExchange] = set()
        self._fields: dict[str, str] = {}
        """By model: the field in which the server sends thinking."""
        self._seen = SeenReplies()
        """By model, and whether thinking was asked for: where its output was seen to begin."""
        self.may_end_thoughts: bool = False
        """Whether `answer_now` may be called: the gateway then holds each request where it can be found."""
        self.reading: Reading | None = None
        """How the last reply was read, and why; None before the first."""
        self._engine: Engine | None = None
        self._listed = False
        """Whether the list of models was asked for, which says what the engine is."""
        self._questions = ServerQuestions(self._open_question)
        self._running = ("", "")
        """The reply that is being read: the id of its request for the gateway, and its own."""

    def __str__(self) -> str:
        return str(self._address)

    @property
    def kind(self) -> str:
        """The name of the kind of server: `openai`, `ollama`, `anthropic` or `responses`."""
        return self.server.name

    @property
    def server(self) -> ServerKind:
        """The kind of server: OpenAI-compatible where the address ends in `/v1`, else what its version route says."""
        if self._server is None:
            self._server = OPENAI if VERSIONED.search(self._address.path) else self._ask_kind()
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
            server = exchange.server
        listed = self.server.read_models(found)
        if listed is None:
            raise UpstreamError(f"{self} sent no list of models; is this the address of a model server?")
        self._engine, self._listed = engine_of(listed, server), True
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
        policies = policies.but(
            start=start or policies.start,
            tools=tools,
            calls=bool(tools) and policies.calls if calls is None else calls,
            collect=False,
        )
        from ..reading import Reading, ServerFacts  # here, because a client that only lists models needs none

        seen = self._seen.get((model, request.thinking.think))

        def read(prompt_end: str | None) -> Reading:
            facts = ServerFacts(separates=model in self._fields, unseen=seen is None, prompt_end=prompt_end)
            think = request.thinking.think
            return Reading.of(model, format=format, server=facts, seen=seen, think=think, policies=policies)

        reading = read(None)
        switch = reading.switch if think is not None else None
        try:
            prompt_end = self._prompt_end(self._body(request, switch), reading)
            reading = self.reading = reading if prompt_end is None else read(prompt_end)
            while True:
                with self._send(request, switch) as exchange:
                    if exchange.status == 200:
                        self._running = (exchange.request_id, "")
                        yield from self._read(exchange, request, reading)
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
        root = VERSIONED.sub("", self._address.path)
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

    def _prompt_end(self, body: dict[str, Any], reading: Reading) -> str | None:
        """How the server ends the prompt that it makes of a body; None where it cannot be asked, or nothing depends on
        it."""
        if self.server is not OPENAI or not reading.may_learn or reading.format.start == HEADER:
            return None
        if reading.model in self._fields:
            return None
        question = PromptQuestion.about(body, reading.switch, reading.earlier_keywords)
        return None if question is None else self._questions.prompt_end(question, self._find_engine)

    def _find_engine(self, asker: Asker) -> Engine | None:
        if not self._listed:
            self._listed = True
            listed = self.server.read_models(asker.ask("GET", self.server.models_path))
            self._engine = engine_of(listed or [], asker.server)
        return self._engine

    def _open_question(self, method: str, path: str, body: Any, seconds: float) -> HttpExchange:
        """A question of our own. Its path stands below the root of the server, that of its API included."""
        root = self._address.path if path.startswith("/v1/") else VERSIONED.sub("", self._address.path)
        path = root + (self._route(path) if path.startswith("/v1/") else path)
        headers = self._headers() | ({"Content-Type": "application/json"} if body is not None else {})
        times = {"connect": min(seconds, self._connect), "idle": seconds}
        return HttpExchange(self._address, method, path, headers, body, among=self._exchanges, **times)

    def _body(self, request: Request, switch: Switch | None) -> dict[str, Any]:
        field = self._fields.get(request.model, self.server.thinking_field)
        options = WriteOptions(field=field, keep_thinking="tool_turns", switch=switch, stream=True)
        body = self.server.chat.write_request(request, options)
        for message in body.get("messages", ()):
            if message["content"] is None:
                message["content"] = ""  # beside calls: some servers refuse null
        if self.may_end_thoughts and self._engine is not None and self._engine.control:
            body[self._engine.control] = True
        if not self.server.speaks(openai_chat):
            # They came by the names of the API in whose shape requests are made here; none may be lost.
            body = self.server.add_parameters(body, request.extra)
        return body

    def _send(self, request: Request, switch: Switch | None) -> HttpExchange:
        path = self._route(self.server.chat.upstream_path(request))
        return self._exchange("POST", path, self._body(request, switch))

    def _route(self, path: str) -> str:
        return path.removeprefix("/v1") if VERSIONED.search(self._address.path) else path

    def _exchange(self, method: str, path: str, body: Any = None, *, prefix: bool = True) -> HttpExchange:
        headers = self._headers()
        if body is not None:
            headers["Content-Type"] = "application/json"
            if self.may_end_thoughts:
                headers["X-Asides-Inspect"] = "1"
        path = self._address.path + path if prefix else path
        times = {"connect": self._connect, "idle": self._idle}
        return HttpExchange(self._address, method, path, headers, body, among=self._exchanges, **times)

    def _headers(self) -> dict[str, str]:
        kind = self._server or OPENAI
        own = {**kind.headers, **kind.credentials(self._key)}
        return {"Accept": "text/event-stream, application/json", "User-Agent": "asides", **own}

    # Replies.

    def _read(
        self,
        exchange: HttpExchange,
        request: Request,
        reading: Reading,
    ) -> Iterator[ReplyItem]:
        splitter, fold = reading.splitter(choices=request.choices), Fold(collect=False)
        failed: Failed | None = None
        separated = came = False
        for chunk in self._chunks(exchange):
            came = came or not isinstance(chunk, Failed | Begin)
            separated = separated or isinstance(chunk, ThinkingChunk)
            for item in splitter.feed(chunk):
                fold.add(item)
                if isinstance(item, Failed):
                    failed = item
                    continue
                if isinstance(item, Begin):
                    self._running = (self._running[0], item.id)
                yield item
        yield from splitter.finish("length")
        if separated:
            self._fields[request.model] = next(iter(splitter.fields), "reasoning_content")
        elif failed is None and not exchange.stopped and reading.may_learn:
            shown = shown_by(fold, reading.begins.start)
            self._seen.add((request.model, request.thinking.think), shown)
        if failed is not None and not exchange.stopped:
            ended = failed.code == UPSTREAM_ENDED.code
            raise UpstreamError(
                self._why_it_ended(exchange, came=came) if ended else f"{self}: {failed.message}", status=failed.status
            )

    def _why_it_ended(self, exchange: HttpExchange, *, came: bool) -> str:
        """What to tell of a reply without an end. `came`: whether any of it was a reply."""
        if came:
            return f"{self} broke off in the middle of the reply ({exchange.broken or 'it closed the connection'})"
        if exchange.broken or not exchange.first:
            return f"{self} broke off before it had sent any of the reply ({exchange.broken or 'it sent nothing'})"
        words = " ".join(exchange.first.decode("utf-8", "replace").split())
        return f"{self} answered with {exchange.kind} that is no reply: {words!r}; is this a model server?"

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


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
