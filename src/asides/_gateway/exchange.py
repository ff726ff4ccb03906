"""One request for a reply: who is asked, in which words, how the answer is read, and in which words it goes back."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
import time
from types import ModuleType
from typing import Any, get_args

import msgspec

from .._config.schema import ModelSettings
from .._config.values import hide_url
from .._engine.format import HEADER, TEXT, Format
from .._engine.parser import Parser
from ..dialects import completions, ollama, openai_chat
from ..dialects.framing import read_odd_json, to_json
from ..dialects.request import CallPiece, Request, RequestError, without_seals
from ..families import get_format
from ..policies import Start
from ..reply.items import Begin, Chunk, Ended, Failed, ReplyEvent, ReplyItem
from ..reply.splitter import Splitter
from . import headers, keepalive, pipeline, upstream_request
from .bodies import holds_more, off_loop, read_json
from .http_request import Call
from .model_profile import Knowledge
from .record import Record
from .refusals import Refusal
from .replay_cache import Call as CachedCall
from .replay_cache import Place
from .state import State
from .upstreams import Answer, Upstream, UpstreamLost

REASONING = get_args(openai_chat.Reasoning)
STARTS = get_args(Start)
PASSTHROUGH = get_format("passthrough")
log = logging.getLogger("asides.gateway")

STEP = 16 * 1024
"""Bytes of a stream that are worked on at once, however many came: then other streams have their turn."""
STOPPED = Refusal(503, "the gateway was stopped", code="stopped")


class BrokenOff(Exception):
    """An answer that had begun and cannot be ended: breaking off is all that can be said."""


class Exchange:
    """Carries one request to an upstream and its reply back."""

    def __init__(self, state: State, call: Call, dialect: ModuleType, record: Record) -> None:
        self._state = state
        self._call = call
        self._dialect = dialect
        self._record = record
        self._credential = ""

    async def run(self, body: bytes) -> None:
        """Do it. A `Refusal` is raised while nothing of the answer has been sent."""
        state, record = self._state, self._record
        data = await off_loop(len(body), read_json, body, state.config.limits.values)
        record.model = model = data["model"] if isinstance(data.get("model"), str) else ""
        record.stream = bool(data.get("stream", self._dialect is ollama))
        key = headers.own_key(self._call.headers, state.guarded)
        upstream = await state.route(model, key)
        record.upstream = upstream.name
        settings = state.settings(model)
        self._credential = headers.fingerprint(self._call.headers)
        kind = await upstream.find_kind()
        knowledge = await state.librarian.know(upstream, model, settings, key)
        if knowledge.format is None and self._dialect in upstream_request.SPOKEN[kind]:
            await self._pass(upstream, settings, data, body)
            return
        way, sent = await off_loop(len(body), self._translate, data, upstream, kind, settings, knowledge)
        await self._ask(upstream, sent, way)

    def _translate(
        self, data: dict[str, Any], upstream: Upstream, kind: str, settings: ModelSettings, knowledge: Knowledge
    ) -> tuple[_Way, bytes]:
        """How the request goes, and the body that the upstream is sent. May run in a thread."""
        state, record = self._state, self._record
        check_count(data, state.config.limits.messages)
        request = self._read_request(data)
        theirs = upstream_request.upstream_dialect(kind, request)
        reasoning = self._reasoning(settings)
        start, told = self._start(request, settings, knowledge)
        restored = state.replay_cache.restore(self._credential, request, self._call.headers)
        record.cache_hits, record.cache_misses = restored.hits, restored.misses
        field = state.fields.get((upstream.name, request.model), "")
        asked = without_seals(restored.request)
        if asked.user is not None and not state.config.forward_user:
            asked = msgspec.structs.replace(asked, user=None)
        sent = upstream_request.write_request(upstream, asked, theirs, settings, knowledge, field=field)
        way = _Way(request, theirs, knowledge, settings, start, told, reasoning, restored.place, secrets.randbits(62))
        return way, to_json(sent)

    @property
    def _is_generate(self) -> bool:
        """Whether a client of Ollama's asks for `/api/generate`, not for `/api/chat`."""
        return self._call.path.rstrip("/").endswith("/api/generate")

    def _read_request(self, data: dict[str, Any]) -> Request:
        if self._is_generate:
            data = {name: value for name, value in data.items() if name != "messages"}  # as Ollama does
        try:
            request: Request = self._dialect.read_request(data)
        except RequestError as error:
            raise Refusal(error.status, error.message, param=error.param) from error
        return request

    def _reasoning(self, settings: ModelSettings) -> str:
        wanted = self._call.headers.get("x-asides-reasoning", "").strip().lower().replace("-", "_")
        if wanted and wanted not in REASONING:
            raise Refusal(400, f"X-Asides-Reasoning must be one of {', '.join(REASONING)}", param="X-Asides-Reasoning")
        return wanted or settings.reasoning or "reasoning_content"

    def _start(self, request: Request, settings: ModelSettings, knowledge: Knowledge) -> tuple[str | None, bool]:
        """Where the reply begins, and whether anybody told: the header, the configuration, a request without
        thinking, the template. None: the format's own."""
        header = self._call.headers.get("x-asides-start", "").strip().lower()
        if header:
            if header not in STARTS:
                raise Refusal(400, f"X-Asides-Start must be one of {', '.join(STARTS)}", param="X-Asides-Start")
            return header, True
        if settings.start is not None:
            return settings.start, True
        format = knowledge.format
        if request.thinking.think is False and format is not None and format.start != HEADER:
            return "text", True
        if request.prompt is not None:
            return None, True  # the bare prompt tells it
        if request.thinking.think and knowledge.start_on is not None:
            return knowledge.start_on, True
        if knowledge.start is not None and format is not None and format.start != HEADER:
            return knowledge.start, True
        return None, False

    async def _ask(self, upstream: Upstream, body: bytes, way: _Way) -> None:
        path = upstream_request.upstream_path(way.theirs, way.request)
        sent = self._state.headers_for(self._call, upstream, same=way.theirs is self._dialect)
        sent["accept"] = "application/json" if not way.request.stream else "text/event-stream, application/x-ndjson"
        async with upstream.ask("POST", path, body, sent) as answer:
            self._record.upstream_status = answer.status
            self._record.answered = time.monotonic()
            if 300 <= answer.status < 400:
                raise moved(answer)
            if answer.status >= 400:
                await self._pass_error(answer, way)
            elif way.request.stream and "application/json" not in answer.headers.get("content-type", ""):
                await self._stream(upstream, answer, way)
            else:
                await self._whole(upstream, answer, way)

    async def _pass_error(self, answer: Answer, way: _Way) -> None:
        """The upstream's own error: unchanged for a client of its dialect, else in the client's shape."""
        body = await answer.read(self._state.config.limits.body)
        same = way.theirs is self._dialect
        kept = headers.for_client(answer.headers, same=same)
        self._record.upstream_error = "status_5xx" if answer.status >= 500 else "status_4xx"
        if same:
            kind = answer.headers.get("content-type", "application/json")
            await self._call.answer(answer.status, body, kind, kept)
            return
        status = answer.status if answer.status >= 400 else 502
        failed: Failed = way.theirs.read_error(status, body)
        await self._call.answer(status, to_json(self._dialect.write_error(failed)), headers=kept)

    async def _stream(self, upstream: Upstream, answer: Answer, way: _Way) -> None:
        """A streamed reply."""
        call, record, request = self._call, self._record, way.request
        noted = record.noted = self._noted(way)
        splitter = record.splitter = self._splitter(way, whole=False)
        line = pipeline.Pipeline(
            way.theirs.ReplyReader(),
            splitter,
            self._dialect.ReplyWriter(request, **self._choices(way)),
            noted,
            model=request.model if way.settings.name else "",
            empty_answer=way.settings.empty_answer or "leave",
            limits=self._state.config.limits,
            on_error=self._log_failure,
        )
        await self._begin_stream(answer, way)
        beat = keepalive.Beat(call, self._dialect, request, self._state.config)
        running = ""
        try:
            while not line.over and (chunk := await answer.read_some()):
                for start in range(0, len(chunk), STEP):
                    out = line.feed(chunk[start : start + STEP])
                    if noted.reply_id and not running:
                        running = noted.reply_id
                        self._state.running[running] = (self._credential, upstream)
                    if out:
                        beat.busy = True
                        await call.write(out)
                    if line.over:
                        break
                    if len(chunk) > STEP:
                        await asyncio.sleep(0)
            last = line.finish()
        except UpstreamLost as error:
            record.error = str(error)
            record.upstream_error = error.reason
            last = line.lose(error.refusal.failed)
        except asyncio.CancelledError:
            if call.gone:
                line.abandon()
                self._keep_reply(way, noted)  # what a person stopped is often what they look for
                raise
            record.error = STOPPED.message  # it has waited as long as it may: why no more comes
            last = line.lose(STOPPED.failed)
        finally:
            beat.stop()
            self._state.running.pop(running, None)
        self._remember(upstream, splitter, way, noted)  # before the client can know that it may ask again
        await call.end(last)

    async def _whole(self, upstream: Upstream, answer: Answer, way: _Way) -> None:
        """A reply in one piece."""
        try:
            body = await answer.read(self._state.config.limits.body)
        except UpstreamLost as error:
            raise error.refusal from error
        request = way.request
        noted = self._record.noted = self._noted(way)
        splitter = self._record.splitter = self._splitter(way, whole=True)
        items = await off_loop(len(body), self._read_items, body, splitter, noted, way)
        self._remember(upstream, splitter, way, noted)
        if request.stream and noted.failed is None:  # an upstream that does not stream
            writer = self._dialect.ReplyWriter(request, **self._choices(way))
            await self._begin_stream(answer, way)
            written = await off_loop(len(body), lambda: b"".join(map(writer.feed, items)) + writer.finish())
            await self._call.end(written)
            return
        written = await off_loop(len(body), self._write_whole, items, way)
        status = noted.failed.status if noted.failed is not None else 200
        kept = headers.for_client(answer.headers, same=way.theirs is self._dialect)
        await self._call.answer(status, written, headers=kept)

    def _read_items(self, body: bytes, splitter: Splitter, noted: pipeline.Noted, way: _Way) -> list[ReplyItem]:
        """What a whole reply tells."""
        limits = self._state.config.limits
        return pipeline.items_of(
            read_whole(way.theirs, body, limits.values),
            splitter,
            noted,
            model=way.request.model if way.settings.name else "",
            empty_answer=way.settings.empty_answer or "leave",
            limits=limits,
            on_error=self._log_failure,
        )

    def _write_whole(self, items: list[ReplyItem], way: _Way) -> bytes:
        """A whole reply in the client's words; without what cannot be written of it, if that is what it takes."""
        try:
            return to_json(self._dialect.write_reply(items, way.request, **self._choices(way)))
        except Exception as error:
            self._log_failure(error)
        kept = [item for item in items if isinstance(item, Begin | ReplyEvent | Ended | Failed)]
        return to_json(self._dialect.write_reply(kept, way.request, **self._choices(way)))

    def _log_failure(self, error: Exception) -> None:
        """A reader or a writer of ours failed on what the upstream sent."""
        log.exception("request %s: the upstream's reply could not be carried over whole", self._call.id)
        self._record.error = f"{type(error).__name__}: {error}"

    async def _begin_stream(self, answer: Answer, way: _Way) -> None:
        kind = b"application/x-ndjson" if self._dialect is ollama else b"text/event-stream; charset=utf-8"
        own = [(b"content-type", kind), (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
        await self._call.begin(200, [*own, *headers.for_client(answer.headers, same=way.theirs is self._dialect)])

    async def _pass(self, upstream: Upstream, settings: ModelSettings, data: dict[str, Any], body: bytes) -> None:
        """Byte for byte: nothing is split and both sides speak the same dialect."""
        changed = {**({"model": settings.name} if settings.name else {}), **settings.extra_body}
        if changed:
            body = to_json({**data, **changed})
        sent = self._state.headers_for(self._call, upstream, same=True)
        path = f"/v1/{upstream_request.path_of(self._dialect)}"
        if self._dialect is ollama:
            path = "/api/generate" if self._is_generate else "/api/chat"
        await pass_on(self._call, upstream, "POST", path, body, sent, self._record)

    def _noted(self, way: _Way) -> pipeline.Noted:
        """What is kept of the reply: all of it where somebody wants it, else what the replay cache may store."""
        state = self._state
        whole = way.settings.empty_answer == "thinking" or state.config.log.bodies or state.keeper is not None
        limit = state.config.limits.body if whole else state.replay_cache.limit
        return pipeline.Noted(keep=whole or (bool(way.request.tools) and limit > 0), limit=limit)

    def _splitter(self, way: _Way, *, whole: bool) -> Splitter:
        request, format = way.request, way.knowledge.format or PASSTHROUGH
        start = way.start
        if whole and not way.told and format.start == TEXT:
            start = "undecided"  # nobody told; a lone close is honoured where nothing has to flow
        tools = [
            {"type": "function", "function": {"name": tool.name, "parameters": tool.parameters}}
            for tool in request.tools
        ]
        calls = reads_calls(request, way.settings)
        prompt = request.prompt if start is None else None
        limit = self._state.config.limits.held

        def make(format: Format) -> Parser:
            return Parser(
                format,
                start=start if format.start != HEADER or start != "undecided" else None,  # type: ignore[arg-type]  # checked against STARTS
                prompt=prompt,
                tools=tools or None,
                calls=calls,
                seed=way.seed,
                limit=limit,
                collect=False,
            )

        return Splitter(format, make, show=request.thinking.show, seed=way.seed, choices=max(1, request.choices))

    def _choices(self, way: _Way) -> dict[str, Any]:
        """What the client's dialect lets a client choose."""
        return {"reasoning": way.reasoning} if self._dialect in (openai_chat, completions) else {}

    def _remember(self, upstream: Upstream, splitter: Splitter, way: _Way, noted: pipeline.Noted) -> None:
        request = way.request
        for field in splitter.fields:
            self._state.learn_field(upstream, request.model, field)
        if splitter.surplus:
            log.warning(
                "request %s: left out %d pieces of choices that nobody asked for", self._call.id, splitter.surplus
            )
        choice = noted.choices.get(0)
        if not noted.truncated and choice is not None and choice.calls and choice.thoughts:
            calls = [
                CachedCall(index, name, "".join(arguments), id) for index, (name, id, arguments) in choice.calls.items()
            ]
            self._state.replay_cache.store(way.place, choice.thinking, calls, way.seed)
        self._keep_reply(way, noted)

    def _keep_reply(self, way: _Way, noted: pipeline.Noted) -> None:
        """Hand a reply to the keeper of history, where there is one."""
        if self._state.keeper is None:
            return
        from .to_history import reply_of  # here, because few gateways keep thoughts

        now = time.monotonic()
        thought = None
        if noted.first_thought is not None and way.request.stream:
            thought = (noted.first_answer or now) - noted.first_thought
        for choice in noted.choices.values():
            reply = reply_of(
                way.request,
                choice,
                credential=self._credential,
                format=(way.knowledge.format or PASSTHROUGH).name,
                seconds=now - self._call.started,
                thought_seconds=thought,
                cut=self._call.gone,
            )
            self._state.keeper.keep(reply)


class _Way(msgspec.Struct, frozen=True):
    """How one request goes: settled before it is sent."""

    request: Request
    theirs: ModuleType
    knowledge: Knowledge
    settings: ModelSettings
    start: str | None
    told: bool
    reasoning: str
    place: Place
    """Where the reply stands in its conversation, for the replay cache."""
    seed: int
    """What the ids are made of that the model does not write: random."""


def check_count(data: dict[str, Any], most: int) -> None:
    """Refuse a conversation of more messages than are taken, before anything is made of them."""
    for name in ("messages", "input", "tools"):
        if isinstance(data.get(name), list) and len(data[name]) > most:
            words = f"{name} has {len(data[name])} entries; this gateway takes {most} (limits.messages)"
            raise Refusal(400, words, param=name)


def read_whole(theirs: ModuleType, body: bytes, most: int = sys.maxsize) -> list[Chunk]:
    """The pieces of a reply that came in one piece, whatever the upstream made of it."""
    if holds_more(body, most):
        words = f"the upstream's reply holds more than {most} values (limits.values)"
        return [Failed(words, 502, "api_error", "malformed_frame")]
    try:
        pieces: list[Chunk] = theirs.read_reply(read_json(body))
    except Refusal:
        odd = read_odd_json(body)
        if isinstance(odd, dict):
            pieces = theirs.read_reply(odd)
        elif body.lstrip()[:5] in (b"data:", b"event") or (theirs is ollama and body.lstrip()[:1] == b"{"):
            reader = theirs.ReplyReader()  # some servers stream whatever they are asked for
            pieces = [*reader.feed(body), *reader.finish()]
        else:
            failed = Failed("the upstream's reply is empty", 502, "api_error", "malformed_frame")
            pieces = [pipeline.explained(failed, body[: pipeline.HEAD])]
    return pieces


def moved(answer: Answer) -> Refusal:
    """A redirect is no answer, and to follow it would send the request, and its key, somewhere else."""
    place = answer.headers.get("location", "")
    words = f"the upstream answered {answer.status}, a redirect{f' to {hide_url(place)[:200]}' if place else ''}"
    return Refusal(502, f"{words}; is its address right?", code="upstream_lost")


def reads_calls(request: Request, settings: ModelSettings) -> bool:
    """Whether calls are read. A client that names no tools may be reading them from the text by itself."""
    if settings.calls in ("always", "never"):
        return settings.calls == "always"
    if request.tool_choice == "none":
        return False
    used = any(isinstance(piece, CallPiece) for turn in request.turns for piece in turn.pieces)
    return bool(request.tools or used) and request.prompt is None


async def pass_on(
    call: Call,
    upstream: Upstream,
    method: str,
    path: str,
    body: bytes | None,
    sent: dict[str, str],
    record: Record,
) -> None:
    """Send a request as it is and hand the answer on as it comes."""
    async with upstream.ask(method, path, body, sent, raw=True) as answer:
        record.upstream_status = answer.status
        record.answered = time.monotonic()
        kept = headers.for_client(answer.headers, same=True, raw=True)
        if answer.status in (204, 304):  # has no body, whatever length it speaks of
            kept = [header for header in kept if header[0] != b"content-length"]
        await call.begin(answer.status, kept)
        try:
            while chunk := await answer.read_some():
                await call.write(chunk)
        except UpstreamLost as error:
            record.error, record.upstream_error = str(error), error.reason
            raise BrokenOff from error
        await call.end()
