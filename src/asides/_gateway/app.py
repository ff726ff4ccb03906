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
from .http_request import Call, ClientGone, Receive, Scope, Send
from .model_profile import ask_json
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
        self._handlers: dict[str, Callable[[Call, routes.Route, Record], Awaitable[None]]] = {
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
            await self._http(Call(scope, receive, send))
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1003})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        self._state.open()
        keeper = self._state.keeper
        if keeper is not None:
            metrics = self._reporter.metrics
            metrics.watch_history(lambda: keeper.kept, lambda: keeper.dropped, lambda: keeper.waiting)
        await send({"type": "lifespan.startup.complete"})
        with contextlib.suppress(asyncio.CancelledError):  # a second signal: nobody waits, but nothing is to be lost
            await receive()
        await self._state.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, call: Call) -> None:
        route = routes.find(call.method, call.path)
        record = Record(route.name, route.dialect.NAME)
        counted = route.name not in OPEN
        self._open += counted
        self._reporter.began(record)
        try:
            self._origins.check(call.headers.get("host", ""), call.headers.get("origin", ""))
            self._allow_origin(call)
            if counted:
                self._check(call)
            await self._handlers[route.name](call, route, record)
        except Refusal as refusal:
            await self._refuse(call, route, refusal, record)
        except UpstreamLost as error:
            await self._refuse(call, route, error.refusal, record)
        except (ClientGone, BrokenOff):
            pass
        except asyncio.CancelledError:
            if not call.gone and not call.status:
                await self._refuse(call, route, STOPPED, record)
        except Exception as error:  # whatever it is, the client must hear of it and the next request must not
            log.exception("request %s failed", call.id)
            record.error = f"{type(error).__name__}: {error}"
            await self._refuse(
                call, route, Refusal(500, "the gateway failed; its log says why", code="internal"), record
            )
        finally:
            self._open -= counted
            self._reporter.finished(call, record)

    def _check(self, call: Call) -> None:
        """Where it comes from, then keys, then limits."""
        foreign = call.headers.get("sec-fetch-site") == "cross-site" and "origin" not in call.headers
        if foreign and call.method not in ("GET", "HEAD"):  # a page may send what it may not read the answer of
            raise Refusal(403, "web pages of other sites may not ask here (cors)", code="origin_not_allowed")
        if self._config.keys and not headers.is_known(headers.key_of(call.headers), self._config.keys):
            said = "this gateway wants a key: send it as `Authorization: Bearer`, `x-api-key` or `api-key`"
            raise Refusal(401, said, code="invalid_api_key", headers=((b"www-authenticate", b"Bearer"),))
        if self._open > self._config.limits.concurrency:
            said = f"{self._config.limits.concurrency} requests are open, the limit of this gateway; try again"
            raise Refusal(429, said, code="too_many_requests", headers=((b"retry-after", b"1"),))

    async def _refuse(self, call: Call, route: routes.Route, refusal: Refusal, record: Record) -> None:
        self._reporter.refused(record, refusal)
        if call.status or call.gone:
            return  # the answer has begun; it ends here
        body = to_json(route.dialect.write_error(refusal.failed))
        await call.answer(refusal.status, body, headers=refusal.headers)

    async def _read_json(self, body: bytes) -> dict[str, Any]:
        """The JSON object that a body must be."""
        return await off_loop(len(body), read_json, body, self._config.limits.values)

    def _key(self, call: Call) -> str:
        """The client's key for an upstream that has none configured."""
        return headers.own_key(call.headers, self._state.guarded)

    async def _watched(self, call: Call, work: Awaitable[None]) -> None:
        """Do something that ends the moment the client leaves."""
        task = asyncio.current_task()
        assert task is not None
        watcher = asyncio.create_task(call.watch(task))
        try:
            await work
        finally:
            watcher.cancel()

    # What clients ask for.

    async def _generate(self, call: Call, route: routes.Route, record: Record) -> None:
        body = await call.read(self._config.limits)
        if self._config.log.bodies:
            record.request_body = body
        await self._watched(call, Exchange(self._state, call, route.dialect, record).run(body))

    async def _control(self, call: Call, route: routes.Route, record: Record) -> None:
        """llama.cpp's way to end a running reply's thought: for a reply of the same credential alone."""
        body = await call.read(self._config.limits)
        id = (await self._read_json(body)).get("id")
        credential = headers.fingerprint(call.headers)
        found = self._state.running.get(id) if isinstance(id, str) else None
        if found is None or found[0] != credential:
            raise Refusal(404, "no reply with this id is being written for you", param="id")
        await self._hand_on(call, record, body, found[1])

    async def _pass_on(self, call: Call, route: routes.Route, record: Record) -> None:
        """What is not answered here goes on as it is, if it is one of the paths that may."""
        if not routes.is_below(call.raw_path.decode("latin-1")):
            raise Refusal(400, "a path must begin with `/`, and may not go up by `..`")
        if not routes.may_pass(call.method, call.path, self._config.pass_on):
            words = f"{call.method} {call.path[:200]} is not passed on; `pass_on` in the configuration can name it"
            raise Refusal(404, words, code="not_found")
        await self._hand_on(call, record, await call.read(self._config.limits))

    async def _hand_on(self, call: Call, record: Record, body: bytes, upstream: Upstream | None = None) -> None:
        """Send a request as it is to an upstream: this one, that of its model, or the first."""
        given = call.raw_path.decode("latin-1")
        data: dict[str, Any] = {}
        if body.lstrip()[:1] == b"{":
            with contextlib.suppress(Refusal):
                data = await self._read_json(body)
        model = data["model"] if isinstance(data.get("model"), str) else ""
        if upstream is None:
            upstream = await self._state.route(model, self._key(call)) if model else self._state.upstreams[0]
        record.model, record.upstream = model, upstream.name
        name = self._state.settings(model).name
        if model and name:
            body = to_json({**data, "model": name})
        sent = self._state.headers_for(call, upstream, same=True, raw=True)
        path = routes.upstream_path(given)
        if call.query:
            path += f"?{call.query.decode('latin-1')}"
        work = pass_on(call, upstream, call.method, path, body or None, sent, record)
        await self._watched(call, work)

    async def _count_tokens(self, call: Call, route: routes.Route, record: Record) -> None:
        body = await call.read(self._config.limits)
        try:
            data = await self._read_json(body)
            request = await off_loop(len(body), anthropic.read_request, {"max_tokens": 1, **data})
        except RequestError as error:
            raise Refusal(error.status, error.message, param=error.param) from error
        record.model = request.model
        key = self._key(call)
        upstream = await self._state.route(request.model, key)
        record.upstream = upstream.name
        name = self._state.settings(request.model).name
        tokens, estimated = await token_count.count(upstream, request, name, key)
        found = to_json(anthropic.write_count(tokens))
        await call.answer(200, found, headers=token_count.ESTIMATE if estimated else ())

    async def _models(self, call: Call, route: routes.Route, record: Record) -> None:
        await call.answer(200, to_json(model_list.write_models(await self._state.models(self._key(call)))))

    async def _model(self, call: Call, route: routes.Route, record: Record) -> None:
        models = await self._state.models(self._key(call))
        found = next((model for model in models if model.id == route.rest), None)
        if found is None:
            raise no_model(route.rest, models)
        await call.answer(200, to_json(model_list.write_model(found)))

    async def _tags(self, call: Call, route: routes.Route, record: Record) -> None:
        await call.answer(200, to_json(model_list.write_tags(await self._state.models(self._key(call)))))

    async def _show(self, call: Call, route: routes.Route, record: Record) -> None:
        data = await self._read_json(await call.read(self._config.limits))
        model = str(data.get("model") or data.get("name") or "")
        if not model:
            raise Refusal(400, "model is required", param="model")
        record.model = model
        key = self._key(call)
        upstream = await self._state.route(model, key)
        record.upstream = upstream.name
        settings = self._state.settings(model)
        told: dict[str, Any] = {}
        if await upstream.find_kind() == "ollama":
            asked = to_json({**data, "model": settings.name or model})
            sent = self._state.headers_for(call, upstream, same=True)
            async with upstream.ask("POST", "/api/show", asked, sent) as answer:
                found = await answer.read(self._config.limits.body)
            record.upstream_status = answer.status
            if answer.status != 200:  # it has no such model
                await call.answer(answer.status, found, headers=headers.for_client(answer.headers, same=True))
                return
            with contextlib.suppress(Refusal):  # a list of fields that cannot be read is as good as none
                told = await self._read_json(found)
        knowledge = await self._state.librarian.know(upstream, model, settings, key)
        thinks = detect(model=settings.name or model).thinks if knowledge.format_source != "configuration" else None
        if thinks is None and knowledge.format is not None:
            thinks = knowledge.format.name != "auto" and any(
                target == "thinking" for table in knowledge.format.states.values() for target in table.values()
            )
        await call.answer(200, to_json(model_list.write_show(told, model, knowledge, thinks)))

    async def _version(self, call: Call, route: routes.Route, record: Record) -> None:
        for upstream in self._state.upstreams:
            with contextlib.suppress(Refusal, UpstreamLost):
                if await upstream.find_kind() == "ollama":
                    told = await ask_json(upstream, "GET", "/api/version", None, self._state.only_key(self._key(call)))
                    if isinstance(told.get("version"), str):
                        await call.answer(200, to_json(told))
                        return
        await call.answer(200, to_json({"version": OLLAMA_VERSION}))

    async def _running(self, call: Call, route: routes.Route, record: Record) -> None:
        """Which models are loaded: only Ollama knows."""
        for upstream in self._state.upstreams:
            with contextlib.suppress(Refusal, UpstreamLost):
                if await upstream.find_kind() == "ollama":
                    told = await ask_json(upstream, "GET", "/api/ps", None, self._state.only_key(self._key(call)))
                    await call.answer(200, to_json(told or {"models": []}))
                    return
        await call.answer(200, to_json({"models": []}))

    async def _health(self, call: Call, route: routes.Route, record: Record) -> None:
        await call.answer(200, to_json({"status": "ok", "open": self._open}))

    async def _home(self, call: Call, route: routes.Route, record: Record) -> None:
        await call.answer(200, b"asides is running\n", "text/plain; charset=utf-8")

    async def _metrics(self, call: Call, route: routes.Route, record: Record) -> None:
        body, kind = self._reporter.metrics.render()
        await call.answer(200, body, kind)

    async def _not_allowed(self, call: Call, route: routes.Route, record: Record) -> None:
        allowed = b"POST" if call.method in ("GET", "HEAD") else b"GET, HEAD"
        raise Refusal(405, f"{call.method} is not answered at {call.path}", headers=((b"allow", allowed),))

    # Browsers.

    def _allow_origin(self, call: Call) -> None:
        origin = call.headers.get("origin", "")
        if origin and self._origins.allows(origin):
            allowed = b"*" if "*" in self._config.cors else origin.encode("latin-1")
            call.extra_headers = [
                (b"access-control-allow-origin", allowed),
                (b"access-control-expose-headers", b"x-request-id, x-asides-estimate, retry-after"),
                (b"vary", b"Origin"),
            ]

    async def _options(self, call: Call, route: routes.Route, record: Record) -> None:
        """What a browser asks before it asks."""
        if not call.extra_headers:
            raise Refusal(405, "web pages may not ask here (cors)")
        asked = call.headers.get("access-control-request-headers", "")
        allowed = asked.encode("latin-1") if asked else CORS_HEADERS
        await call.begin(
            204,
            [
                (b"access-control-allow-methods", b"GET, POST, PUT, DELETE, HEAD, OPTIONS"),
                (b"access-control-allow-headers", allowed),
                (b"access-control-max-age", b"600"),
            ],
        )
        await call.end()
