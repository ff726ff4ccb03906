"""The gateway as an ASGI application: every request is found in the table of routes, checked, answered and reported.

    request -> routes.Router -> host and origin, key, limits -> the handler -> log line, metrics

Handlers raise a `Refusal` for what they do not do; here it becomes an error in the client's dialect. What is asked of a
model is done by `Exchange`; the small endpoints (lists of models, versions, token counts) are answered here. Everything
that outlives a request is in `State`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Any
from urllib.parse import parse_qs

from .._config.schema import Config, keys_of
from ..dialects import Dialect
from ..dialects._arrange import arrange
from ..dialects._framing import to_json
from ..dialects._request import RequestError
from ..dialects._servers import ServerKind
from ..reading import Seen
from . import headers, model_list, routes, token_count
from .bodies import off_loop, read_json
from .exchange import STOPPED, BrokenOff, Exchange, pass_on
from .http_request import ClientGone, HttpRequest, Receive, Scope, Send, while_there
from .learned import Key, as_texts
from .model_profile import can_model_think
from .observe import logs
from .observe.metrics import Metrics
from .observe.summed import summed
from .origins import Origins
from .page import PageHandlers
from .page_access import PageAccess, new_token
from .plan import INSPECT, REQUEST_HEADERS
from .questions import fetch_json
from .readiness import Readiness
from .record import UPSTREAM_ERRORS, RequestRecord
from .refusals import Refusal
from .siblings import Siblings
from .state import State, no_model
from .upstreams import Upstream, UpstreamLost
from .workers import WorkerSpec

log = logging.getLogger("asides.gateway")

OLLAMA_VERSION = "0.13.0"
"""The version of Ollama's API that is spoken; its clients compare it."""
RETIRE_LOOKS = 0.2
"""Seconds between two looks whether the requests of an earlier configuration are over."""
FAILED = Refusal(500, "the gateway failed; its log says why", code="internal")
_API_HEADERS = ("authorization", "content-type", "x-api-key", "api-key", "anthropic-version", "anthropic-beta")
CORS_HEADERS = ", ".join((*_API_HEADERS, *REQUEST_HEADERS)).encode()

EXPOSED_HEADERS = (
    b"x-request-id, x-asides-budget, x-asides-effort, x-asides-estimate, x-asides-left-out, x-asides-thoughts, "
    b"retry-after"
)
"""What a web page may read of an answer's headers."""


class Gateway:
    """The application."""

    def __init__(self, config: Config, worker: WorkerSpec | None = None, token: str = "") -> None:
        """`worker`: which of several processes this is; `token`: what the page is read with where there are no keys, a
        new one where none is given."""
        self._metrics = Metrics(upstream.name for upstream in config.upstreams)
        self._use(config, State(config, self._metrics.count_unasked, self._share_learned))
        self._sharing: set[asyncio.Task[list[bytes]]] = set()
        """Tells other workers what was learned."""
        self._retiring: set[asyncio.Task[None]] = set()
        """Closes the states of earlier configurations once their last request is over."""
        self._open: set[RequestRecord] = set()
        """The requests that are being answered, of the routes that need a key."""
        self._readiness = Readiness()
        self._access = PageAccess(lambda: self._state, lambda: self._origins, token or new_token())
        self._page = PageHandlers(self._access, self._readiness)
        self._metrics.watch(lambda: len(self._open), lambda: sum(record.stream for record in self._open))
        self._metrics.watch_responses(lambda: self._state.responses.counts)
        answers: dict[str, Callable[..., bytes]] = {
            "metrics": lambda: self._metrics.render()[0],
            "running": self._find_running,
            "learned": self._load_learned,
            **self._page.requests.answers,
        }
        self._siblings = Siblings(worker.folder, worker.number, answers) if worker is not None else None
        self._page.requests.siblings = self._siblings
        self._handlers: dict[str, Callable[[HttpRequest, routes.Match], Awaitable[None]]] = {
            "generate": self._generate,
            "stored": self._stored,
            "count_tokens": self._count_tokens,
            "models": self._models,
            "model": self._model,
            "tags": self._tags,
            "show": self._show,
            "version": self._version,
            "running": self._running,
            "health": self._health,
            "ready": self._ready,
            "home": self._home,
            "metrics": self._render_metrics,
            "options": self._options,
            "not_allowed": self._not_allowed,
            "not_found": self._not_found,
            "control": self._control,
            "pass_on": self._pass_on,
            **self._page.handlers,
        }

    def _use(self, config: Config, state: State) -> None:
        self._config, self._state = config, state
        self._origins = Origins(config)
        self._keys = [entry.key for entry in keys_of(config)]
        self._router = routes.Router(config.pass_on, page=config.page.show)
        self._watched = config.page.show and config.page.watch != "off"

    def reload(self, config: Config) -> None:
        """Take another configuration for the requests that come from now on; open ones end under theirs."""
        # Who watches stays, and reads nothing of the old state.
        old, answering = self._state, {record for record in self._open if record.route != "traffic"}
        if (config.page, config.keys, config.listen) != (old.config.page, old.config.keys, old.config.listen):
            self.end_watching()
        self._use(config, old.renewed(config))
        self._metrics.upstreams = frozenset(upstream.name for upstream in config.upstreams)
        self._watch_history()
        task = asyncio.create_task(self._retire(old, answering))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _retire(self, state: State, answering: set[RequestRecord]) -> None:
        """Close a state that takes no new requests, as soon as these are over."""
        try:
            while answering & self._open:
                await asyncio.sleep(RETIRE_LOOKS)
        finally:
            await state.close()

    def end_watching(self) -> None:
        """End the streams that never end by themselves, so that nobody waits for them."""
        self._page.requests.end_watching()

    def _watch_history(self) -> None:
        writer = self._state.history_writer
        if writer is not None:
            self._metrics.watch_history(lambda: writer.written, lambda: writer.dropped, lambda: writer.waiting)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What the web server calls."""
        if scope["type"] == "http":
            await self._serve(HttpRequest(scope, receive, send))
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:  # pragma: no cover  # uvicorn is started without WebSockets; another server may bring them
            await send({"type": "websocket.close", "code": 1003})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._state.open()
        self._watch_history()
        if self._siblings is not None:
            await self._siblings.open()
        await send({"type": "lifespan.startup.complete"})
        with contextlib.suppress(asyncio.CancelledError):  # a second signal: nobody waits, but nothing is to be lost
            await receive()
        if self._siblings is not None:
            await self._siblings.close()
        for task in self._retiring:
            task.cancel()  # the server has waited for the requests already
        await asyncio.gather(*self._retiring, return_exceptions=True)
        self._page.close()
        await self._state.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, http: HttpRequest) -> None:
        match = self._router.find(http.method, http.path)
        # The state may be another when this is over (`reload`).
        route, record, spans = match.route, http.record, self._state.spans
        record.route, record.dialect = route.handler, route.dialect.NAME
        if route.needs_key:
            self._open.add(record)
        try:
            # Host and origin hold for every route, with or without a key.
            host, origin = http.headers.get("host", ""), http.headers.get("origin", "")
            self._origins.check(host, origin, lambda: self._access.is_own_page(http))
            # Before the key is asked for: a page may read a refusal only with these headers.
            if "origin" in http.headers:
                self._allow_origin(http)
            if route.needs_key:
                self._check(http)
            if spans is not None and route.handler == "generate":
                spans.begin(http)
            await self._handlers[route.handler](http, match)
        except Refusal as refusal:
            await self._refuse(http, route.dialect, refusal)
        except UpstreamLost as error:
            await self._refuse(http, route.dialect, error.refusal)
        except (ClientGone, BrokenOff):
            pass
        except asyncio.CancelledError:
            # Not raised again: the answer to a client that is still there is ours to end.
            if not record.cancelled:
                await self._refuse(http, route.dialect, STOPPED)
        except Exception as error:  # a bug of ours: answer 500 in the client's dialect and keep serving other requests
            log.exception("request %s failed", record.id)
            record.error = f"{type(error).__name__}: {error}"
            await self._refuse(http, route.dialect, FAILED)
        finally:
            self._open.discard(record)
            record.finish()
            # The two hold each other: only the collector would find them, with the whole request.
            inspected, record.inspected = record.inspected, None
            if inspected is not None:
                inspected.finish()
            self._metrics.count(record)
            if spans is not None:
                spans.end(record)
            if route.logged:
                logs.log_request(record, bodies=self._config.log.bodies)

    def _check(self, http: HttpRequest) -> None:
        """Refuse what comes from a foreign web page, has no key, or is one request too many."""
        foreign = http.headers.get("sec-fetch-site") == "cross-site" and "origin" not in http.headers
        if foreign and http.method not in ("GET", "HEAD"):  # a page may send what it may not read the answer of
            raise Refusal(403, "web pages of other sites may not ask here (cors)", code="origin_not_allowed")
        if self._keys and not headers.is_known(headers.key_of(http.headers), self._keys):
            message = "this gateway wants a key: send it as `Authorization: Bearer`, `x-api-key` or `api-key`"
            raise Refusal(401, message, code="invalid_api_key", headers=((b"www-authenticate", b"Bearer"),))
        # This request is counted already, hence `>`.
        if len(self._open) > self._config.limits.concurrency:
            message = f"{self._config.limits.concurrency} requests are open, the limit of this gateway; try again"
            raise Refusal(429, message, code="too_many_requests", headers=((b"retry-after", b"1"),))

    async def _refuse(self, http: HttpRequest, dialect: Dialect, refusal: Refusal) -> None:
        record = http.record
        record.fail(refusal.message, UPSTREAM_ERRORS.get(refusal.code or "", ""))
        if not record.status and not record.cancelled:  # else the answer has begun; it ends here
            body = to_json(dialect.write_error(refusal.failed))
            await http.answer(refusal.status, body, headers=refusal.headers)

    async def _read_json(self, body: bytes) -> dict[str, Any]:
        """The JSON object that a body must be."""
        return await off_loop(len(body), read_json, body, self._config.limits.values, True)

    def _key(self, http: HttpRequest) -> str:
        """The client's key for an upstream that has none configured."""
        return headers.own_key(http.headers, self._state.guarded)

    # What goes to an upstream.

    async def _generate(self, http: HttpRequest, match: routes.Match) -> None:
        body = await http.read(self._config.limits)
        if self._config.log.bodies:
            http.record.request_body = body
        if self._watched or (INSPECT in http.headers and self._config.page.show):
            http.record.inspected = self._page.requests.inspect(http, self._state)
        await while_there(http, Exchange(self._state, http, match.route.dialect, match.route.path).run(body))

    async def _control(self, http: HttpRequest, match: routes.Match) -> None:
        """llama.cpp's request that ends a running reply's thought: for a reply of the same credential alone."""
        body = await http.read(self._config.limits)
        id = (await self._read_json(body)).get("id")
        question = ("running", id if isinstance(id, str) else "", headers.fingerprint(http.headers))
        name = self._find_running(*question[1:]).decode()
        if not name and self._siblings is not None:  # another worker may be writing it
            name = next((answer.decode() for answer in await self._siblings.ask(*question) if answer), "")
        upstream = next((upstream for upstream in self._state.upstreams if upstream.name == name), None)
        if upstream is None:
            raise Refusal(404, "no reply with this id is being written for you", param="id")
        await self._hand_on(http, body, upstream)

    def _share_learned(self, key: Key, seen: Seen) -> None:
        """Count what was learned from replies, and tell the other workers."""
        self._metrics.count_learned(seen.start or "other")
        if self._siblings is not None:
            task = asyncio.create_task(self._siblings.ask("learned", *as_texts(key, seen)))
            self._sharing.add(task)
            task.add_done_callback(self._sharing.discard)

    def _load_learned(self, *learned: str) -> bytes:
        self._state.learned.load(*learned)
        return b""

    def _find_running(self, id: str, credential: str) -> bytes:
        """The name of the upstream that writes the reply of this id for this client; empty where none does."""
        owner, upstream = self._state.running.get(id, ("", None))
        return upstream.name.encode() if upstream is not None and owner == credential else b""

    async def _pass_on(self, http: HttpRequest, match: routes.Match) -> None:
        _check_path(http)
        await self._hand_on(http, await http.read(self._config.limits), kinds=match.route.kinds)

    async def _hand_on(
        self, http: HttpRequest, body: bytes, upstream: Upstream | None = None, kinds: Sequence[str] = ()
    ) -> None:
        """Send a request as it is to an upstream: this one, that of its model, or the first."""
        data: dict[str, Any] = {}
        if body.lstrip()[:1] == b"{":
            with contextlib.suppress(Refusal):
                data = await self._read_json(body)
        model = data["model"] if isinstance(data.get("model"), str) else ""
        if upstream is not None:
            upstreams = [upstream]
        else:
            # Paths without a model (a health check, a tokenizer's) go to the first upstream.
            upstreams = await self._state.route(model, self._key(http)) if model else self._state.upstreams[:1]
        http.record.model = model
        name = self._state.settings(model).name
        if model and name:
            body = to_json({**data, "model": name})
        path = routes.upstream_path(http.raw_path.decode("latin-1"))
        if http.query:
            path += f"?{http.query.decode('latin-1')}"

        def hand_on(upstream: Upstream) -> Awaitable[None]:
            sent = self._state.headers_for(http, upstream, same=True, raw=True)
            return pass_on(self._state, http, upstream, path, body or None, sent, kinds)

        await while_there(http, self._state.ask_any(upstreams, http.record, hand_on))

    # What is answered here.

    async def _find_upstream(self, http: HttpRequest, model: str) -> Upstream:
        http.record.model = model
        upstream = (await self._state.route(model, self._key(http)))[0]
        http.record.upstream = upstream.name
        return upstream

    async def _count_tokens(self, http: HttpRequest, match: routes.Match) -> None:
        body = await http.read(self._config.limits)
        write_count = match.route.dialect.write_count
        assert write_count is not None  # a dialect without it has no such row
        try:
            data = await self._read_json(body)
            request = await off_loop(len(body), match.route.dialect.read_request, {"max_tokens": 1, **data})
        except RequestError as error:
            raise Refusal(error.status, error.message, param=error.param) from error
        upstream = await self._find_upstream(http, request.model)
        name = self._state.settings(request.model).name
        # As it would be sent, so that the count is that of the prompt.
        tokens, estimated = await token_count.count(upstream, arrange(request).request, name, self._key(http))
        found = to_json(write_count(tokens))
        await http.answer(200, found, headers=token_count.ESTIMATE if estimated else ())

    async def _stored(self, http: HttpRequest, match: routes.Match) -> None:
        """A reply that is kept: shown, deleted, or what it was given."""
        api, responses = match.route.dialect.KEPT, self._state.responses
        assert api is not None  # a dialect without it has no such row
        id, _, below = match.rest.partition("/")
        credential = headers.fingerprint(http.headers)
        query = parse_qs(http.query.decode("latin-1"), keep_blank_values=True)
        try:
            if below == "input_items" and http.method != "DELETE":
                found = await responses.list_input(api, credential, id, query)
            elif below:
                await self._not_found(http, match)
            elif http.method == "DELETE":
                found = await responses.delete(api, credential, id)
            else:
                found = await responses.show(api, credential, id, query)
        except RequestError as error:
            raise Refusal(error.status, error.message, param=error.param) from error
        await http.answer(200, to_json(found))

    async def _models(self, http: HttpRequest, match: routes.Match) -> None:
        await http.answer(200, to_json(model_list.write_models(await self._state.models(self._key(http)))))

    async def _model(self, http: HttpRequest, match: routes.Match) -> None:
        models = await self._state.models(self._key(http))
        found = next((model for model in models if model.id == match.rest), None)
        if found is None:
            raise no_model(match.rest, models)
        await http.answer(200, to_json(model_list.write_model(found)))

    async def _tags(self, http: HttpRequest, match: routes.Match) -> None:
        await http.answer(200, to_json(model_list.write_tags(await self._state.models(self._key(http)))))

    async def _show(self, http: HttpRequest, match: routes.Match) -> None:
        data = await self._read_json(await http.read(self._config.limits))
        model = str(data.get("model") or data.get("name") or "")
        if not model:
            raise Refusal(400, "model is required", param="model")
        upstream = await self._find_upstream(http, model)
        settings = self._state.settings(model)
        shown: dict[str, Any] = {}
        if path := (await upstream.find_kind()).show_path:
            asked = to_json({**data, "model": settings.name or model})
            sent = self._state.headers_for(http, upstream, same=True)
            owner = headers.fingerprint(http.headers)
            async with upstream.ask("POST", path, asked, sent, owner=owner) as answer:
                found = await answer.read(self._config.limits.body)
            http.record.upstream_status = answer.status
            if answer.status != 200:  # it has no such model
                await http.answer(answer.status, found, headers=self._state.headers_back(answer.headers, same=True))
                return
            with contextlib.suppress(Refusal):  # an answer that cannot be read is as good as none
                shown = await self._read_json(found)
        profile = await self._state.profiles.resolve(upstream, model, settings, self._key(http))
        thinks = can_model_think(profile, settings.name or model)
        await http.answer(200, to_json(model_list.write_show(shown, model, profile, thinks)))

    async def _version(self, http: HttpRequest, match: routes.Match) -> None:
        found = await self._ask_first(http, attrgetter("version_path"))
        await http.answer(200, to_json(found if isinstance(found.get("version"), str) else {"version": OLLAMA_VERSION}))

    async def _running(self, http: HttpRequest, match: routes.Match) -> None:
        """Which models are loaded: only Ollama has such a list."""
        await http.answer(200, to_json(await self._ask_first(http, attrgetter("running_path")) or {"models": []}))

    async def _ask_first(self, http: HttpRequest, path_of: Callable[[ServerKind], str]) -> dict[str, Any]:
        """What the first upstream answers at a path that only some kinds of servers have; empty where none does."""
        for upstream in self._state.upstreams:
            with contextlib.suppress(Refusal, UpstreamLost):
                path = path_of(await upstream.find_kind())
                key = self._state.only_key(self._key(http))
                if path and (found := await fetch_json(upstream, "GET", path, None, key)):
                    return found
        return {}

    async def _health(self, http: HttpRequest, match: routes.Match) -> None:
        which = {"worker": self._siblings.number} if self._siblings is not None else {}
        await http.answer(200, to_json({"status": "ok", "open": len(self._open), **which}))

    async def _ready(self, http: HttpRequest, match: routes.Match) -> None:
        """Whether a request for a model can be answered: one upstream that answers is enough, the others may fail."""
        upstreams = self._state.upstreams
        reachable = await self._readiness.reachable(upstreams)
        status, found = (200, "ready") if reachable else (503, "no upstream answers")
        body = {"status": found, "upstreams": len(upstreams), "reachable": reachable}
        await http.answer(status, to_json(body), headers=() if reachable else ((b"retry-after", b"2"),))

    async def _home(self, http: HttpRequest, match: routes.Match) -> None:
        if not (self._config.page.show and await self._page.home(http, self._config)):
            await http.answer(200, b"asides is running\n", "text/plain; charset=utf-8")

    async def _render_metrics(self, http: HttpRequest, match: routes.Match) -> None:
        await self._state.responses.count()
        body, kind = self._metrics.render()
        if self._siblings is not None:
            body = summed([body, *await self._siblings.ask("metrics")])
        await http.answer(200, body, kind)

    async def _not_allowed(self, http: HttpRequest, match: routes.Match) -> None:
        allowed = self._router.allowed(http.path).encode()
        raise Refusal(405, f"{http.method} is not answered at {http.path[:200]}", headers=((b"allow", allowed),))

    async def _not_found(self, http: HttpRequest, match: routes.Match) -> None:
        _check_path(http)
        message = f"{http.method} {http.path[:200]} is not passed on; `pass_on` in the configuration can name it"
        raise Refusal(404, message, code="not_found")

    # Browsers.

    def _allow_origin(self, http: HttpRequest) -> None:
        origin = http.headers["origin"]
        if origin and self._origins.allows(origin):
            allowed = b"*" if "*" in self._config.cors else origin.encode("latin-1")
            http.extra_headers = [
                (b"access-control-allow-origin", allowed),
                (b"access-control-expose-headers", EXPOSED_HEADERS),
                (b"vary", b"Origin"),
            ]

    async def _options(self, http: HttpRequest, match: routes.Match) -> None:
        """The preflight request of a browser."""
        if not http.extra_headers:
            raise Refusal(405, "web pages may not ask here (cors)")
        asked = http.headers.get("access-control-request-headers", "")
        await http.begin(
            204,
            [
                (b"access-control-allow-methods", b"GET, POST, PUT, DELETE, HEAD, OPTIONS"),
                (b"access-control-allow-headers", asked.encode("latin-1") if asked else CORS_HEADERS),
                (b"access-control-max-age", b"600"),
            ],
        )
        await http.end()


def _check_path(http: HttpRequest) -> None:
    """Refuse a path that would leave the upstream's own root."""
    if not routes.is_below(http.raw_path.decode("latin-1")):
        raise Refusal(400, "a path must begin with `/`, and may not go up by `..`")
