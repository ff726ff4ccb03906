"""One request for a reply: who is asked, in which words, how the answer is read, and in which words it goes back."""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
import time
from typing import Any, get_args

import msgspec

from .._config.schema import ModelSettings, policies_of
from .._config.values import hide_url
from .._engine.format import HEADER, TEXT, Format
from .._engine.parser import Parser
from ..dialects import Dialect, is_same, openai_chat
from ..dialects.framing import read_odd_json, to_json
from ..dialects.request import CallPiece, Request, RequestError, without_seals
from ..dialects.servers import ServerKind
from ..families import get_format
from ..policies import Start
from ..reply.items import Begin, Chunk, Ended, Failed, ReplyEvent, ReplyItem
from ..reply.splitter import Splitter
from . import headers, keepalive, pipeline, routes, upstream_request
from .bodies import holds_more, off_loop, read_json
from .http_request import HttpRequest
from .model_profile import ModelProfile
from .record import Record
from .refusals import Refusal
from .replay_cache import CachedCall, ConversationHash
from .state import State
from .upstreams import Upstream, UpstreamLost, UpstreamResponse

REASONING = openai_chat.THINKING_FIELDS
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

    def __init__(self, state: State, http: HttpRequest, dialect: Dialect, record: Record) -> None:
        self._state = state
        self._http = http
        self._dialect = dialect
        self._path = routes.plain(http.path).lower()
        self._record = record
        self._credential = ""

    async def run(self, body: bytes) -> None:
        """Do it. A `Refusal` is raised while nothing of the answer has been sent."""
        state, record = self._state, self._record
        data = await off_loop(len(body), read_json, body, state.config.limits.values)
        record.model = model = data["model"] if isinstance(data.get("model"), str) else ""
        record.stream = bool(data.get("stream", self._dialect.STREAMS_BY_DEFAULT))
        key = headers.own_key(self._http.headers, state.guarded)
        upstream = await state.route(model, key)
        record.upstream = upstream.name
        settings = state.settings(model)
        self._credential = headers.fingerprint(self._http.headers)
        kind = await upstream.find_kind()
        profile = await state.profiles.resolve(upstream, model, settings, key)
        if profile.format is None and kind.speaks(self._dialect):
            await self._pass(upstream, settings, data, body)
            return
        plan, sent = await off_loop(len(body), self._translate, data, upstream, kind, settings, profile)
        await self._ask(upstream, sent, plan)

    def _translate(
        self, data: dict[str, Any], upstream: Upstream, kind: ServerKind, settings: ModelSettings, profile: ModelProfile
    ) -> tuple[RequestPlan, bytes]:
        """How the request goes, and the body that the upstream is sent. May run in a thread."""
        state, record = self._state, self._record
        check_count(data, state.config.limits.messages)
        request = self._read_request(data)
        upstream_dialect = kind.dialect(request)
        reasoning = self._reasoning(settings)
        start, start_is_known = self._start(request, settings, profile)
        restored = state.replay_cache.restore(self._credential, request, self._http.headers)
        record.cache_hits, record.cache_misses = restored.hits, restored.misses
        field = state.fields.get((upstream.name, request.model), "")
        asked = without_seals(restored.request)
        if asked.user is not None and not state.config.forward_user:
            asked = msgspec.structs.replace(asked, user=None)
        sent = upstream_request.write_request(upstream, asked, upstream_dialect, settings, profile, field=field)
        plan = RequestPlan(
            request,
            upstream_dialect,
            profile,
            settings,
            start,
            start_is_known,
            reasoning,
            restored.conversation,
            secrets.randbits(62),
        )
        return plan, to_json(sent)

    def _read_request(self, data: dict[str, Any]) -> Request:
        try:
            request = self._dialect.read_request(data, self._path)
        except RequestError as error:
            raise Refusal(error.status, error.message, param=error.param) from error
        return request

    def _reasoning(self, settings: ModelSettings) -> str:
        wanted = self._http.headers.get("x-asides-reasoning", "").strip().lower().replace("-", "_")
        if wanted and wanted not in REASONING:
            raise Refusal(400, f"X-Asides-Reasoning must be one of {', '.join(REASONING)}", param="X-Asides-Reasoning")
        return wanted or settings.reasoning or "reasoning_content"

    def _start(self, request: Request, settings: ModelSettings, profile: ModelProfile) -> tuple[str | None, bool]:
        """Where the reply begins, and whether anybody told: the header, the configuration, a request without
        thinking, the template. None: the format's own."""
        header = self._http.headers.get("x-asides-start", "").strip().lower()
        if header:
            if header not in STARTS:
                raise Refusal(400, f"X-Asides-Start must be one of {', '.join(STARTS)}", param="X-Asides-Start")
            return header, True
        if settings.start is not None:
            return settings.start, True
        format = profile.format
        if request.thinking.think is False and format is not None and format.start != HEADER:
            return "text", True
        if request.prompt is not None:
            return None, True  # the bare prompt tells it
        if request.thinking.think and profile.start_on is not None:
            return profile.start_on, True
        if profile.start is not None and format is not None and format.start != HEADER:
            return profile.start, True
        return None, False

    async def _ask(self, upstream: Upstream, body: bytes, plan: RequestPlan) -> None:
        path = plan.upstream_dialect.upstream_path(plan.request)
        sent = self._state.headers_for(self._http, upstream, same=is_same(plan.upstream_dialect, self._dialect))
        sent["accept"] = "application/json" if not plan.request.stream else "text/event-stream, application/x-ndjson"
        async with upstream.ask("POST", path, body, sent) as answer:
            self._record.upstream_status = answer.status
            self._record.answered = time.monotonic()
            if 300 <= answer.status < 400:
                raise moved(answer)
            if answer.status >= 400:
                await self._pass_error(answer, plan)
            elif plan.request.stream and "application/json" not in answer.headers.get("content-type", ""):
                await self._stream(upstream, answer, plan)
            else:
                await self._whole(upstream, answer, plan)

    async def _pass_error(self, answer: UpstreamResponse, plan: RequestPlan) -> None:
        """The upstream's own error: unchanged for a client of its dialect, else in the client's shape."""
        body = await answer.read(self._state.config.limits.body)
        same = is_same(plan.upstream_dialect, self._dialect)
        kept = headers.for_client(answer.headers, same=same)
        self._record.upstream_error = "status_5xx" if answer.status >= 500 else "status_4xx"
        if same:
            kind = answer.headers.get("content-type", "application/json")
            await self._http.answer(answer.status, body, kind, kept)
            return
        status = answer.status if answer.status >= 400 else 502
        failed = plan.upstream_dialect.read_error(status, body)
        await self._http.answer(status, to_json(self._dialect.write_error(failed)), headers=kept)

    async def _stream(self, upstream: Upstream, answer: UpstreamResponse, plan: RequestPlan) -> None:
        """A streamed reply."""
        http, record, request = self._http, self._record, plan.request
        noted = record.noted = self._noted(plan)
        splitter = record.splitter = self._splitter(plan, whole=False)
        line = pipeline.Pipeline(
            plan.upstream_dialect.ReplyReader(),
            splitter,
            self._dialect.ReplyWriter(request, **self._choices(plan)),
            noted,
            model=request.model if plan.settings.name else "",
            empty_answer=plan.settings.empty_answer or "leave",
            limits=self._state.config.limits,
            on_error=self._log_failure,
        )
        await self._begin_stream(answer, plan)
        keep_alive = keepalive.KeepAlive(http, self._dialect, request, self._state.config)
        running = ""
        try:
            while not line.over and (chunk := await answer.read_chunk()):
                for start in range(0, len(chunk), STEP):
                    out = line.feed(chunk[start : start + STEP])
                    if noted.reply_id and not running:
                        running = noted.reply_id
                        self._state.running[running] = (self._credential, upstream)
                    if out:
                        keep_alive.busy = True
                        await http.write(out)
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
            if http.gone:
                line.abandon()
                self._keep_reply(plan, noted)  # what a person stopped is often what they look for
                raise
            record.error = STOPPED.message  # it has waited as long as it may: why no more comes
            last = line.lose(STOPPED.failed)
        finally:
            keep_alive.stop()
            self._state.running.pop(running, None)
        self._remember(upstream, splitter, plan, noted)  # before the client can know that it may ask again
        await http.end(last)

    async def _whole(self, upstream: Upstream, answer: UpstreamResponse, plan: RequestPlan) -> None:
        """A reply in one piece."""
        try:
            body = await answer.read(self._state.config.limits.body)
        except UpstreamLost as error:
            raise error.refusal from error
        request = plan.request
        noted = self._record.noted = self._noted(plan)
        splitter = self._record.splitter = self._splitter(plan, whole=True)
        items = await off_loop(len(body), self._read_items, body, splitter, noted, plan)
        self._remember(upstream, splitter, plan, noted)
        if request.stream and noted.failed is None:  # an upstream that does not stream
            writer = self._dialect.ReplyWriter(request, **self._choices(plan))
            await self._begin_stream(answer, plan)
            written = await off_loop(len(body), lambda: b"".join(map(writer.feed, items)) + writer.finish())
            await self._http.end(written)
            return
        written = await off_loop(len(body), self._write_whole, items, plan)
        status = noted.failed.status if noted.failed is not None else 200
        kept = headers.for_client(answer.headers, same=is_same(plan.upstream_dialect, self._dialect))
        await self._http.answer(status, written, headers=kept)

    def _read_items(self, body: bytes, splitter: Splitter, noted: pipeline.Noted, plan: RequestPlan) -> list[ReplyItem]:
        """What a whole reply tells."""
        limits = self._state.config.limits
        return pipeline.items_of(
            read_whole(plan.upstream_dialect, body, limits.values),
            splitter,
            noted,
            model=plan.request.model if plan.settings.name else "",
            empty_answer=plan.settings.empty_answer or "leave",
            limits=limits,
            on_error=self._log_failure,
        )

    def _write_whole(self, items: list[ReplyItem], plan: RequestPlan) -> bytes:
        """A whole reply in the client's words; without what cannot be written of it, if that is what it takes."""
        try:
            return to_json(self._dialect.write_reply(items, plan.request, **self._choices(plan)))
        except Exception as error:
            self._log_failure(error)
        kept = [item for item in items if isinstance(item, Begin | ReplyEvent | Ended | Failed)]
        return to_json(self._dialect.write_reply(kept, plan.request, **self._choices(plan)))

    def _log_failure(self, error: Exception) -> None:
        """A reader or a writer of ours failed on what the upstream sent."""
        log.exception("request %s: the upstream's reply could not be carried over whole", self._http.id)
        self._record.error = f"{type(error).__name__}: {error}"

    async def _begin_stream(self, answer: UpstreamResponse, plan: RequestPlan) -> None:
        kind = self._dialect.FRAMING.media_type.encode()
        own = [(b"content-type", kind), (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
        await self._http.begin(
            200, [*own, *headers.for_client(answer.headers, same=is_same(plan.upstream_dialect, self._dialect))]
        )

    async def _pass(self, upstream: Upstream, settings: ModelSettings, data: dict[str, Any], body: bytes) -> None:
        """Byte for byte: nothing is split and both sides speak the same dialect."""
        changed = {**({"model": settings.name} if settings.name else {}), **settings.extra_body}
        if changed:
            body = to_json({**data, **changed})
        sent = self._state.headers_for(self._http, upstream, same=True)
        path = self._dialect.PATHS[self._path]
        await pass_on(self._http, upstream, "POST", path, body, sent, self._record)

    def _noted(self, plan: RequestPlan) -> pipeline.Noted:
        """What is kept of the reply: all of it where somebody wants it, else what the replay cache may store."""
        state = self._state
        whole = plan.settings.empty_answer == "thinking" or state.config.log.bodies or state.history_writer is not None
        limit = state.config.limits.body if whole else state.replay_cache.limit
        return pipeline.Noted(keep=whole or (bool(plan.request.tools) and limit > 0), limit=limit)

    def _splitter(self, plan: RequestPlan, *, whole: bool) -> Splitter:
        request, format = plan.request, plan.profile.format or PASSTHROUGH
        start = plan.start
        if whole and not plan.start_is_known and format.start == TEXT:
            start = "undecided"  # nobody told; a lone close is honoured where nothing has to flow
        tools = [
            {"type": "function", "function": {"name": tool.name, "parameters": tool.parameters}}
            for tool in request.tools
        ]
        policies = policies_of(
            plan.settings,
            start=start,  # type: ignore[arg-type]  # checked against STARTS
            prompt=request.prompt if start is None else None,
            tools=tools or None,
            calls=reads_calls(request, plan.settings),
            seed=plan.seed,
            limit=self._state.config.limits.held,
            collect=False,
        )

        def make(format: Format) -> Parser:
            undecided_header = format.start == HEADER and start == "undecided"
            return Parser(format, policies.but(start=None) if undecided_header else policies)

        return Splitter(format, make, show=request.thinking.show, seed=plan.seed, choices=max(1, request.choices))

    def _choices(self, plan: RequestPlan) -> dict[str, Any]:
        """What the client's dialect lets a client choose."""
        return {"reasoning": plan.reasoning} if plan.reasoning in self._dialect.THINKING_FIELDS else {}

    def _remember(self, upstream: Upstream, splitter: Splitter, plan: RequestPlan, noted: pipeline.Noted) -> None:
        request = plan.request
        for field in splitter.fields:
            self._state.learn_field(upstream, request.model, field)
        if splitter.surplus:
            log.warning(
                "request %s: left out %d pieces of choices that nobody asked for", self._http.id, splitter.surplus
            )
        choice = noted.choices.get(0)
        if not noted.truncated and choice is not None and choice.calls and choice.thoughts:
            calls = [
                CachedCall(index, name, "".join(arguments), id) for index, (name, id, arguments) in choice.calls.items()
            ]
            self._state.replay_cache.store(plan.conversation, choice.thinking, calls, plan.seed)
        self._keep_reply(plan, noted)

    def _keep_reply(self, plan: RequestPlan, noted: pipeline.Noted) -> None:
        """Put a reply into the queue of the history writer, where there is one."""
        if self._state.history_writer is None:
            return
        from .to_history import reply_of  # here, because few gateways keep thoughts

        now = time.monotonic()
        thought = None
        if noted.first_thought is not None and plan.request.stream:
            thought = (noted.first_answer or now) - noted.first_thought
        for choice in noted.choices.values():
            reply = reply_of(
                plan.request,
                choice,
                credential=self._credential,
                format=(plan.profile.format or PASSTHROUGH).name,
                seconds=now - self._http.started,
                thought_seconds=thought,
                cut=self._http.gone,
            )
            self._state.history_writer.put(reply)


class RequestPlan(msgspec.Struct, frozen=True):
    """How one request goes: settled before it is sent."""

    request: Request
    upstream_dialect: Dialect
    profile: ModelProfile
    settings: ModelSettings
    start: str | None
    start_is_known: bool
    reasoning: str
    conversation: ConversationHash
    """Where the reply stands in its conversation, for the replay cache."""
    seed: int
    """What the ids are made of that the model does not write: random."""


def check_count(data: dict[str, Any], most: int) -> None:
    """Refuse a conversation of more messages than are taken, before anything is made of them."""
    for name in ("messages", "input", "tools"):
        if isinstance(data.get(name), list) and len(data[name]) > most:
            words = f"{name} has {len(data[name])} entries; this gateway takes {most} (limits.messages)"
            raise Refusal(400, words, param=name)


def read_whole(upstream_dialect: Dialect, body: bytes, most: int = sys.maxsize) -> list[Chunk]:
    """The pieces of a reply that came in one piece, whatever the upstream made of it."""
    if holds_more(body, most):
        words = f"the upstream's reply holds more than {most} values (limits.values)"
        return [Failed(words, 502, "api_error", "malformed_frame")]
    try:
        pieces = upstream_dialect.read_reply(read_json(body))
    except Refusal:
        odd = read_odd_json(body)
        if isinstance(odd, dict):
            pieces = upstream_dialect.read_reply(odd)
        elif body.lstrip().startswith(upstream_dialect.FRAMING.starts):
            reader = upstream_dialect.ReplyReader()  # some servers stream whatever they are asked for
            pieces = [*reader.feed(body), *reader.finish()]
        else:
            failed = Failed("the upstream's reply is empty", 502, "api_error", "malformed_frame")
            pieces = [pipeline.explained(failed, body[: pipeline.HEAD])]
    return pieces


def moved(answer: UpstreamResponse) -> Refusal:
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
    http: HttpRequest,
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
        await http.begin(answer.status, kept)
        try:
            while chunk := await answer.read_chunk():
                await http.write(chunk)
        except UpstreamLost as error:
            record.error, record.upstream_error = str(error), error.reason
            raise BrokenOff from error
        await http.end()
