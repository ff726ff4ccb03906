"""The page over HTTP: its files, and the read API under `/asides/`; what is read comes from `asides._page`.

Files are everybody's; they hold nothing that is not in the package. Everything else is for the page alone: a page of
another origin is refused even where `cors` lets it ask models. Who asks is a `Visitor`, and whatever shows texts of
requests or replies takes one:

    a key of the gateway           reads what was asked with that key; an operator's key reads everything
    no keys, called by this machine's own name    reads everything
    no keys otherwise              reads nothing: nobody can be told from anybody else

"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from .. import __version__
from .._config.schema import Config, Limits, keys_of
from .._config.values import hide_url
from .._page import files, splitting
from ..dialects.framing import to_json
from ..errors import Error
from ..policies import Policies
from . import headers
from .bodies import off_loop, read_json
from .http_request import HttpRequest
from .model_profile import can_model_think
from .origins import Origins, is_loopback, read_host
from .readiness import Readiness
from .refusals import Refusal
from .routes import Match
from .state import State
from .upstreams import RecordedUpstream, Upstream

NO_STORE = ((b"cache-control", b"no-store"), *files.HEADERS[:-1])
"""The headers of what is read: a browser opens it as no page, and keeps none of it."""
SPLIT_FIELDS = ("start", "whitespace", "mentions", "calls_in_thinking")
"""The policies that a text may be taken apart by."""


class Visitor(NamedTuple):
    """Who asks for what was asked before."""

    credential: str
    """The hash of the key; empty without one."""
    operator: bool
    """Whether everything may be read, and not only what belongs to this credential."""


def find_visitor(http: HttpRequest, config: Config) -> Visitor | None:
    """Who asks; None where nobody can be told from anybody else."""
    credential = headers.fingerprint(http.headers)
    if config.keys:
        operators = [entry.key for entry in keys_of(config) if entry.operator]
        return Visitor(credential, headers.is_known(headers.key_of(http.headers), operators))
    # A proxy before a loopback listener hands on the name that others call it by: they are not this machine's user.
    called = read_host(http.headers.get("host", ""))
    local = called is not None and is_loopback(called.name) and is_loopback(config.listen.host)
    return Visitor(credential, True) if local else None


class PageHandlers:
    """Answers the requests of the page."""

    def __init__(self, state: Callable[[], State], origins: Callable[[], Origins], readiness: Readiness) -> None:
        """What a reload replaces is asked for anew by each request."""
        self._current_state = state
        self._origins = origins
        self._readiness = readiness
        self.handlers: dict[str, Callable[[HttpRequest, Match], Awaitable[None]]] = {
            "page": self._file,
            "about": self._about,
            "page_models": self._models,
            "formats": self._formats,
            "split": self._split,
        }

    async def home(self, http: HttpRequest) -> bool:
        """Answer with the page where a browser asks for it; False where something else does."""
        index = files.static_files().get(files.INDEX)
        if index is None or "text/html" not in http.headers.get("accept", ""):
            return False
        await _send_file(http, index, (b"vary", b"accept"))
        return True

    async def _file(self, http: HttpRequest, match: Match) -> None:
        found = files.static_files().get(match.rest)
        if found is None:
            raise Refusal(404, f"the page has no file {match.rest[:200]!r}", code="not_found")
        await _send_file(http, found)

    def _open(self, http: HttpRequest) -> State:
        """The state, for a request that may read: one of this page, or of a program that is no browser."""
        origin, site = http.headers.get("origin", ""), http.headers.get("sec-fetch-site", "none")
        own = not origin or self._origins().is_own(origin, http.headers.get("host", ""))
        if not own or site not in ("none", "same-origin"):
            raise Refusal(403, "only the gateway's own page may read this", code="origin_not_allowed")
        return self._current_state()

    async def _about(self, http: HttpRequest, match: Match) -> None:
        state = self._open(http)
        config, visitor = state.config, find_visitor(http, state.config)
        await self._readiness.reachable(state.upstreams)
        recorded = not config.upstreams
        operator = visitor is not None and visitor.operator
        about = {
            "version": __version__,
            "watch": config.page.watch,
            "history": config.history.save,
            "operator": operator,
            "access": "none" if visitor is None else "all" if operator else "own",
            "keys": bool(config.keys),
            "recorded": recorded,
            "upstreams": [
                {
                    "name": upstream.name,
                    # Where an upstream is belongs to who runs the gateway.
                    "url": hide_url(upstream.settings.url) if operator else "",
                    "reachable": self._readiness.answers.get(upstream.name, False),
                }
                for upstream in state.upstreams
                if not recorded
            ],
        }
        await _answer(http, about)

    async def _models(self, http: HttpRequest, match: Match) -> None:
        """Every model, by what is known without asking; or one, with what its server shows."""
        state = self._open(http)
        key = headers.own_key(http.headers, state.guarded)
        if match.rest:
            upstream = (await state.route(match.rest, key))[0]
            http.record.model, http.record.upstream = match.rest, upstream.name
            await state.profiles.resolve(upstream, match.rest, state.settings(match.rest), key)
            await _answer(http, await _write_model(state, upstream, match.rest, key))
            return
        lists = await asyncio.gather(*(state.list_models(upstream, key) for upstream in state.upstreams))
        serving: dict[str, Upstream] = {}
        for upstream, listed in zip(state.upstreams, lists, strict=True):
            for model in listed:
                serving.setdefault(model.id, upstream)
        by_name = {upstream.name: upstream for upstream in state.upstreams}
        for name in state.configured_models():
            serving.setdefault(name, by_name.get(state.settings(name).upstream, state.upstreams[0]))
        found = [await _write_model(state, upstream, name, key) for name, upstream in serving.items()]
        await _answer(http, {"models": found})

    async def _formats(self, http: HttpRequest, match: Match) -> None:
        self._open(http)
        await _answer(http, {"formats": splitting.list_formats()})

    async def _split(self, http: HttpRequest, match: Match) -> None:
        state = self._open(http)
        # A character of JSON takes six bytes at most (`\\u0041`), and the other fields little.
        limits = msgspec.structs.replace(state.config.limits, body=6 * splitting.MOST_CHARACTERS + 10_000)
        asked = await read_object(http, limits)
        text, format = asked.pop("text", None), asked.pop("format", "auto")
        if not isinstance(text, str) or not isinstance(format, str):
            raise Refusal(400, "text and format must be texts", param="text")
        if len(text) > splitting.MOST_CHARACTERS:
            raise Refusal(413, f"text has more than {splitting.MOST_CHARACTERS} characters", param="text")
        if unknown := next((name for name in asked if name not in SPLIT_FIELDS), None):
            raise Refusal(400, f"there is no field {unknown[:100]!r}; there are: {', '.join(SPLIT_FIELDS)}")
        try:
            policies = Policies(**{name: value for name, value in asked.items() if value is not None})
            found = await asyncio.to_thread(splitting.take_apart, text, format, policies)
        except Error as error:  # no such format, or no choice of a policy
            raise Refusal(400, str(error)) from error
        await _answer(http, found)


async def _write_model(state: State, upstream: Upstream, model: str, key: str) -> dict[str, Any]:
    settings = state.settings(model)
    profile = state.profiles.known(upstream, model, settings)
    images: bool | None = None
    if isinstance(upstream, RecordedUpstream):
        images = False
    elif profile.capabilities is not None:
        images = "vision" in profile.capabilities
    return {
        "id": model,
        "upstream": upstream.name,
        "format": profile.format.name if profile.format is not None else "none",
        "format_source": profile.format_source,
        "thinks": can_model_think(profile, settings.name or model),
        "efforts": list(state.efforts.get((upstream.name, model)) or profile.efforts),
        "images": images,
        "answer_now": False,
    }


async def read_object(http: HttpRequest, limits: Limits) -> dict[str, Any]:
    """The JSON object that a request's body must be."""
    body = await http.read(limits)
    return await off_loop(len(body), read_json, body, limits.values, True)


async def _send_file(http: HttpRequest, file: files.StaticFile, *more: tuple[bytes, bytes]) -> None:
    own = [*files.HEADERS, (b"etag", file.etag.encode()), *more]
    if file.etag in http.headers.get("if-none-match", ""):
        await http.begin(304, own)
        await http.end()
    else:
        await http.answer(200, file.body, file.media_type, own)


async def _answer(http: HttpRequest, found: Any) -> None:
    await http.answer(200, to_json(found), headers=NO_STORE)
