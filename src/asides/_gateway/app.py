"""The gateway as an ASGI application: routes, keys, limits, errors, and one record for each request."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from .._config.schema import Config
from ..detect import detect
from ..dialects import anthropic
from ..dialects.framing import to_json
from ..dialects.request import RequestError
from . import headers, model_list, routes, token_count
from .bodies import off_loop, read_json
from .exchange import STOPPED, BrokenOff, Exchange, pass_on
from .http_request import ClientGone, HttpRequest, Receive, Scope, Send
from .model_profile import fetch_json
from .observe.report import Reporter
from .origins import Origins
from .record import Record
from .refusals import Refusal
from .state import State, no_model
from .upstreams import Upstream, UpstreamLost

log = logging.getLogger("asides.gateway")

OPEN = frozenset({"health", "home", "options", "not_allowed"})
"""What is answered without a key."""
OLLAMA_VERSION = "0.13.0"
"""The version of Ollama's API that is spoken; its clients compare it."""
CORS_HEADERS = (
    b"authorization, content-type, x-api-key, api-key, anthropic-version, anthropic-beta, "
    b"x-asides-start, x-asides-reasoning"
)


class Gateway:
    """The application."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._state = State(config)
        self._open = 0
        self._origins = Origins(config)
        self._reporter = Reporter(config, requests=lambda: self._open)
        self._handlers: dict[str, Callable[[HttpRequest, routes.Route, Record], Awaitable[None]]] = {
            "generate": self._generate,
            "count_tokens": self._count_tokens,
            "models": self._models,
            "model": self._model,
            "tags": self._tags,
            "show": self._show,
            "version": self._version,
            "running": self._running,
            "health": self._health,
            "home": self._home,
            "metrics": self._metrics,
            "options": self._options,
            "not_allowed": self._not_allowed,
            "control": self._control,
            "pass_on": self._pass_on,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What the web server calls."""
        if scope["type"] == "http":
            await self._http(HttpRequest(scope, receive, send))
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._state.open()
        history_writer = self._state.history_writer
        if history_writer is not None:
            metrics = self._reporter.metrics
            metrics.watch_history(
                lambda: history_writer.written, lambda: history_writer.dropped, lambda: history_writer.waiting
            )
        await send({"type": "lifespan.startup.complete"})
        with contextlib.suppress(asyncio.CancelledError):  # a second signal: nobody waits, but nothing is to be lost
            await receive()
        await self._state.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, http: HttpRequest) -> None:
        route = routes.find(http.method, http.path)
        record = Record(route.name, route.dialect.NAME)
        counted = route.name not in OPEN
        self._open += counted
        self._reporter.began(record)
        try:
            self._origins.check(http.headers.get("host", ""), http.headers.get("origin", ""))
            self._allow_origin(http)
            if counted:
                self._check(http)
            await self._handlers[route.name](http, route, record)
        except Refusal as refusal:
            await self._refuse(http, route, refusal, record)
        except UpstreamLost as error:
            await self._refuse(http, route, error.refusal, record)
        except (ClientGone, BrokenOff):
            pass
        except asyncio.CancelledError:
            if not http.gone and not http.status:
                await self._refuse(http, route, STOPPED, record)
        except Exception as error:  # whatever it is, the client must hear of it and the next request must not
            log.exception("request %s failed", http.id)
            record.error = f"{type(error).__name__}: {error}"
            await self._refuse(
                http, route, Refusal(500, "the gateway failed; its log says why", code="internal"), record
            )
        finally:
            self._open -= counted
            self._reporter.finished(http, record)

    def _check(self, http: HttpRequest) -> None:
        """Where it comes from, then keys, then limits."""
        foreign = http.headers.get("sec-fetch-site") == "cross-site" and "origin" not in http.headers
        if foreign and http.method not in ("GET", "HEAD"):  # a page may send what it may not read the answer of
            raise Refusal(403, "web pages of other sites may not ask here (cors)", code="origin_not_allowed")
        if self._config.keys and not headers.is_known(headers.key_of(http.headers), self._config.keys):
            said = "this gateway wants a key: send it as `Authorization: Bearer`, `x-api-key` or `api-key`"
            raise Refusal(401, said, code="invalid_api_key", headers=((b"www-authenticate", b"Bearer"),))
        if self._open > self._config.limits.concurrency:
            said = f"{self._config.limits.concurrency} requests are open, the limit of this gateway; try again"
            raise Refusal(429, said, code="too_many_requests", headers=((b"retry-after", b"1"),))

    async def _refuse(self, http: HttpRequest, route: routes.Route, refusal: Refusal, record: Record) -> None:
        self._reporter.refused(record, refusal)
        if http.status or http.gone:
            return  # the answer has begun; it ends here
        body = to_json(route.dialect.write_error(refusal.failed))
        await http.answer(refusal.status, body, headers=refusal.headers)

    async def _read_json(self, body: bytes) -> dict[str, Any]:
        """The JSON object that a body must be."""
        return await off_loop(len(body), read_json, body, self._config.limits.values)

    def _key(self, http: HttpRequest) -> str:
        """The client's key for an upstream that has none configured."""
        return headers.own_key(http.headers, self._state.guarded)

    async def _watched(self, http: HttpRequest, work: Awaitable[None]) -> None:
        """Do something that ends the moment the client leaves."""
        task = asyncio.current_task()
        assert task is not None
        watcher = asyncio.create_task(http.watch(task))
        try:
            await work
        finally:
            watcher.cancel()

    # What clients ask for.

    async def _generate(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        body = await http.read(self._config.limits)
        if self._config.log.bodies:
            record.request_body = body
        await self._watched(http, Exchange(self._state, http, route.dialect, record).run(body))

    async def _control(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        """llama.cpp's way to end a running reply's thought: for a reply of the same credential alone."""
        body = await http.read(self._config.limits)
        id = (await self._read_json(body)).get("id")
        credential = headers.fingerprint(http.headers)
        found = self._state.running.get(id) if isinstance(id, str) else None
        if found is None or found[0] != credential:
            raise Refusal(404, "no reply with this id is being written for you", param="id")
        await self._hand_on(http, record, body, found[1])

    async def _pass_on(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        """What is not answered here goes on as it is, if it is one of the paths that may."""
        if not routes.is_below(http.raw_path.decode("latin-1")):
            raise Refusal(400, "a path must begin with `/`, and may not go up by `..`")
        if not routes.may_pass(http.method, http.path, self._config.pass_on):
            words = f"{http.method} {http.path[:200]} is not passed on; `pass_on` in the configuration can name it"
            raise Refusal(404, words, code="not_found")
        await self._hand_on(http, record, await http.read(self._config.limits))

    async def _hand_on(self, http: HttpRequest, record: Record, body: bytes, upstream: Upstream | None = None) -> None:
        """Send a request as it is to an upstream: this one, that of its model, or the first."""
        given = http.raw_path.decode("latin-1")
        data: dict[str, Any] = {}
        if body.lstrip()[:1] == b"{":
            with contextlib.suppress(Refusal):
                data = await self._read_json(body)
        model = data["model"] if isinstance(data.get("model"), str) else ""
        if upstream is None:
            upstream = await self._state.route(model, self._key(http)) if model else self._state.upstreams[0]
        record.model, record.upstream = model, upstream.name
        name = self._state.settings(model).name
        if model and name:
            body = to_json({**data, "model": name})
        sent = self._state.headers_for(http, upstream, same=True, raw=True)
        path = routes.upstream_path(given)
        if http.query:
            path += f"?{http.query.decode('latin-1')}"
        work = pass_on(http, upstream, http.method, path, body or None, sent, record)
        await self._watched(http, work)

    async def _count_tokens(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        body = await http.read(self._config.limits)
        try:
            data = await self._read_json(body)
            request = await off_loop(len(body), anthropic.read_request, {"max_tokens": 1, **data})
        except RequestError as error:
            raise Refusal(error.status, error.message, param=error.param) from error
        record.model = request.model
        key = self._key(http)
        upstream = await self._state.route(request.model, key)
        record.upstream = upstream.name
        name = self._state.settings(request.model).name
        tokens, estimated = await token_count.count(upstream, request, name, key)
        found = to_json(anthropic.write_count(tokens))
        await http.answer(200, found, headers=token_count.ESTIMATE if estimated else ())

    async def _models(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        await http.answer(200, to_json(model_list.write_models(await self._state.models(self._key(http)))))

    async def _model(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        models = await self._state.models(self._key(http))
        found = next((model for model in models if model.id == route.rest), None)
        if found is None:
            raise no_model(route.rest, models)
        await http.answer(200, to_json(model_list.write_model(found)))

    async def _tags(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        await http.answer(200, to_json(model_list.write_tags(await self._state.models(self._key(http)))))

    async def _show(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        data = await self._read_json(await http.read(self._config.limits))
        model = str(data.get("model") or data.get("name") or "")
        if not model:
            raise Refusal(400, "model is required", param="model")
        record.model = model
        key = self._key(http)
        upstream = await self._state.route(model, key)
        record.upstream = upstream.name
        settings = self._state.settings(model)
        told: dict[str, Any] = {}
        if path := (await upstream.find_kind()).show_path:
            asked = to_json({**data, "model": settings.name or model})
            sent = self._state.headers_for(http, upstream, same=True)
            async with upstream.ask("POST", path, asked, sent) as answer:
                found = await answer.read(self._config.limits.body)
            record.upstream_status = answer.status
            if answer.status != 200:  # it has no such model
                await http.answer(answer.status, found, headers=headers.for_client(answer.headers, same=True))
                return
            with contextlib.suppress(Refusal):  # a list of fields that cannot be read is as good as none
                told = await self._read_json(found)
        profile = await self._state.profiles.resolve(upstream, model, settings, key)
        thinks = detect(model=settings.name or model).thinks if profile.format_source != "configuration" else None
        if thinks is None and profile.format is not None:
            thinks = profile.format.name != "auto" and any(
                target == "thinking" for table in profile.format.states.values() for target in table.values()
            )
        await http.answer(200, to_json(model_list.write_show(told, model, profile, thinks)))

    async def _version(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        for upstream in self._state.upstreams:
            with contextlib.suppress(Refusal, UpstreamLost):
                if path := (await upstream.find_kind()).version_path:
                    told = await fetch_json(upstream, "GET", path, None, self._state.only_key(self._key(http)))
                    if isinstance(told.get("version"), str):
                        await http.answer(200, to_json(told))
                        return
        await http.answer(200, to_json({"version": OLLAMA_VERSION}))

    async def _running(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        """Which models are loaded: only Ollama knows."""
        for upstream in self._state.upstreams:
            with contextlib.suppress(Refusal, UpstreamLost):
                if path := (await upstream.find_kind()).running_path:
                    told = await fetch_json(upstream, "GET", path, None, self._state.only_key(self._key(http)))
                    await http.answer(200, to_json(told or {"models": []}))
                    return
        await http.answer(200, to_json({"models": []}))

    async def _health(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        await http.answer(200, to_json({"status": "ok", "open": self._open}))

    async def _home(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        await http.answer(200, b"asides is running\n", "text/plain; charset=utf-8")

    async def _metrics(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        body, kind = self._reporter.metrics.render()
        await http.answer(200, body, kind)

    async def _not_allowed(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        allowed = b"POST" if http.method in ("GET", "HEAD") else b"GET, HEAD"
        raise Refusal(405, f"{http.method} is not answered at {http.path}", headers=((b"allow", allowed),))

    # Browsers.

    def _allow_origin(self, http: HttpRequest) -> None:
        origin = http.headers.get("origin", "")
        if origin and self._origins.allows(origin):
            allowed = b"*" if "*" in self._config.cors else origin.encode("latin-1")
            http.extra_headers = [
                (b"access-control-allow-origin", allowed),
                (b"access-control-expose-headers", b"x-request-id, x-asides-estimate, retry-after"),
                (b"vary", b"Origin"),
            ]

    async def _options(self, http: HttpRequest, route: routes.Route, record: Record) -> None:
        """What a browser asks before it asks."""
        if not http.extra_headers:
            raise Refusal(405, "web pages may not ask here (cors)")
        asked = http.headers.get("access-control-request-headers", "")
        allowed = asked.encode("latin-1") if asked else CORS_HEADERS
        await http.begin(
            204,
            [
                (b"access-control-allow-methods", b"GET, POST, PUT, DELETE, HEAD, OPTIONS"),
                (b"access-control-allow-headers", allowed),
                (b"access-control-max-age", b"600"),
            ],
        )
        await http.end()
