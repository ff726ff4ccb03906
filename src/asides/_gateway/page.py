"""The page over HTTP: its files, and the part of its read API that holds nobody's text.

What is read comes from `asides._page`; who may read it is settled by `page_access`. Files are everybody's: they hold
nothing that is not in the package.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from .. import __version__
from .._config.schema import Config
from .._config.values import hide_url
from .._engine.format import thinking_pair
from .._page import files, splitting, templates
from ..detect._sandbox import MOST_SOURCE
from ..dialects._servers import OPENAI, Engine
from ..errors import Error
from ..policies import Policies
from . import headers
from .http_request import HttpRequest
from .model_profile import ModelProfile, can_model_think
from .page_access import PageAccess, answer, read_object
from .page_history import PageHistory
from .page_requests import PageRequests
from .readiness import Readiness
from .refusals import Refusal
from .routes import Match
from .state import State
from .upstreams import RecordedUpstream, Upstream

SPLIT_FIELDS = ("start", "whitespace", "mentions", "calls_in_thinking")
"""The policies that a text may be taken apart by."""


class PageHandlers:
    """Answers the requests of the page."""

    def __init__(self, access: PageAccess, readiness: Readiness) -> None:
        self._access = access
        self._readiness = readiness
        # One at a time: each takes a process and seconds of computing.
        self._studying = asyncio.Lock()
        self._history = PageHistory(access)
        self.requests = PageRequests(access)
        """What is watched and looked into."""
        self.handlers: dict[str, Callable[[HttpRequest, Match], Awaitable[None]]] = {
            "page": self._file,
            "about": self._about,
            "page_models": self._models,
            "formats": self._formats,
            "split": self._split,
            "template": self._template,
            "history": self._history.read,
            "purge": self._history.purge,
            "figures": self._history.figures,
            "traffic": self.requests.watch,
            "requests": self.requests.read,
            "answer_now": self.requests.answer_now,
        }

    def close(self) -> None:
        """Take no more questions."""
        self._history.close()

    async def home(self, http: HttpRequest, config: Config) -> bool:
        """Answer with the page where a browser asks for it; False where something else does."""
        if let_in := self._access.let_in(http, config):
            await http.begin(303, let_in)
            await http.end()
            return True
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

    async def _about(self, http: HttpRequest, match: Match) -> None:
        state = self._access.open(http)
        config, visitor = state.config, self._access.visitor(http, state.config)
        await self._readiness.reachable(state.upstreams)
        operator = visitor is not None and visitor.operator
        about = {
            "version": __version__,
            "watch": config.page.watch,
            "history": config.history.save,
            "operator": operator,
            "access": "none" if visitor is None else "all" if operator else "own",
            "keys": bool(config.keys),
            "recorded": not config.upstreams,
            "upstreams": [
                {
                    "name": upstream.name,
                    # Where an upstream is belongs to who runs the gateway.
                    "url": hide_url(upstream.settings.url) if operator else "",
                    "reachable": self._readiness.answers.get(upstream.name, False),
                }
                for upstream in state.upstreams
                if config.upstreams
            ],
        }
        await answer(http, about)

    async def _models(self, http: HttpRequest, match: Match) -> None:
        """Every model, by what is known without asking; or one, with what its server shows."""
        state = self._access.open(http)
        key = headers.own_key(http.headers, state.guarded)
        if match.rest:
            upstream = (await state.route(match.rest, key))[0]
            http.record.model, http.record.upstream = match.rest, upstream.name
            await state.profiles.resolve(upstream, match.rest, state.settings(match.rest), key)
            await answer(http, _write_model(state, upstream, match.rest, await _find_engine(state, upstream, key)))
            return
        lists = await asyncio.gather(*(state.list_models(upstream, key) for upstream in state.upstreams))
        serving: dict[str, Upstream] = {}
        for upstream, listed in zip(state.upstreams, lists, strict=True):
            for model in listed:
                serving.setdefault(model.id, upstream)
        by_name = {upstream.name: upstream for upstream in state.upstreams}
        for name in state.configured_models():
            serving.setdefault(name, by_name.get(state.settings(name).upstream, state.upstreams[0]))
        engines = {upstream: await _find_engine(state, upstream, key) for upstream in state.upstreams}

        def write() -> list[dict[str, Any]]:
            return [_write_model(state, upstream, name, engines[upstream]) for name, upstream in serving.items()]

        # In a thread: half a millisecond for each model is too long for hundreds of them.
        await answer(http, {"models": await asyncio.to_thread(write)})

    async def _formats(self, http: HttpRequest, match: Match) -> None:
        self._access.open(http)
        await answer(http, {"formats": splitting.list_formats(), "examples": splitting.list_examples()})

    async def _split(self, http: HttpRequest, match: Match) -> None:
        state = self._access.open(http)
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
        await answer(http, found)

    async def _template(self, http: HttpRequest, match: Match) -> None:
        """What a chat template does with a conversation: one that was sent, or that of a model with a tokenizer."""
        state = self._access.open(http)
        limits = msgspec.structs.replace(state.config.limits, body=6 * MOST_SOURCE + 10_000)
        asked = await read_object(http, limits)
        template, model = asked.pop("template", None), asked.pop("model", "")
        if asked:
            raise Refusal(400, f"there is no field {next(iter(asked))[:100]!r}; there are: template, model")
        if not isinstance(template, str | None) or not isinstance(model, str):
            raise Refusal(400, "template and model must be texts", param="template")
        tokenizer = state.settings(model).tokenizer if model in state.configured_models() else ""
        if model and not tokenizer:
            raise Refusal(400, f"no tokenizer is configured for the model {model[:200]!r}", param="model")
        if not tokenizer and not (template or "").strip():
            raise Refusal(400, "send a template, or name a model whose tokenizer is configured", param="template")
        try:
            async with self._studying:
                found = await asyncio.to_thread(templates.describe_template, template, tokenizer, model)
        except Error as error:
            # Where the tokenizer lies is nobody's business but the operator's.
            raise Refusal(400, str(error).replace(tokenizer, "the tokenizer") if tokenizer else str(error)) from error
        await answer(http, found)


def _write_model(state: State, upstream: Upstream, model: str, engine: Engine | None) -> dict[str, Any]:
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
        "answer_now": _can_answer_now(profile, engine),
        "tokenizer": bool(settings.tokenizer),
    }


async def _find_engine(state: State, upstream: Upstream, key: str) -> Engine | None:
    """What runs the models of an upstream, where it can be known."""
    return await state.engines.find(upstream, key) if await upstream.find_kind() is OPENAI else None


def _can_answer_now(profile: ModelProfile, engine: Engine | None) -> bool:
    """Whether a thought can be ended by request: by the server itself, or by asking it to go on behind the thought."""
    if engine is None or profile.format is None:
        return False
    return bool(engine.control) or (engine.continues is not None and bool(thinking_pair(profile.format)[1]))


async def _send_file(http: HttpRequest, file: files.StaticFile, *more: tuple[bytes, bytes]) -> None:
    http.isolation = files.HEADERS
    own = [(b"etag", file.etag.encode()), *more]
    if file.etag in http.headers.get("if-none-match", ""):
        await http.begin(304, own)
        await http.end()
    else:
        await http.answer(200, file.body, file.media_type, own)
