"""What the gateway holds while it runs: its upstreams, what it knows of models, what it remembers."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from typing import TYPE_CHECKING

import aiohttp
import msgspec

from .._config.schema import Config, ModelSettings, matches, resolve_model
from .._recordings.upstream import Recorded
from ..dialects.servers import ListedModel
from . import headers, model_list
from .http_request import HttpRequest
from .model_profile import MOST_MODELS, Profiles
from .refusals import Refusal
from .replay_cache import ReplayCache
from .upstreams import KEEP_IDLE, HttpUpstream, RecordedUpstream, Upstream, UpstreamLost

if TYPE_CHECKING:
    from .._history import BackgroundWriter

log = logging.getLogger("asides.gateway")

FRESH = 10.0
"""Seconds for which a list of models is believed."""
MOST_LISTS = 100
"""Lists that are remembered: there is one for each key."""
MOST_NAMES = 20
"""Names that an error lists."""


class State:
    """Made when the gateway starts, closed when it stops."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.profiles = Profiles()
        self.replay_cache = ReplayCache(config.replay_cache)
        self.fields: dict[tuple[str, str], str] = {}
        """By upstream and model: the name under which the upstream sends thinking."""
        self.running: dict[str, tuple[str, Upstream]] = {}
        """By the upstream's id of a reply that is being streamed: the credential of its client, and the upstream."""
        self.history_writer: BackgroundWriter | None = None
        """Keeps thoughts in the background, where that is asked for."""
        self.upstreams: list[Upstream] = []
        self._connector: aiohttp.TCPConnector | None = None
        self._settings: dict[str, ModelSettings] = {}
        self._lists: dict[tuple[str, bytes], tuple[float, list[ListedModel]]] = {}
        """By upstream and the client's key, which is not kept: a client sees what its own key may see."""

    @property
    def guarded(self) -> bool:
        """Whether clients must show a key of the gateway's own."""
        return bool(self.config.keys)

    def headers_for(self, http: HttpRequest, upstream: Upstream, *, same: bool, raw: bool = False) -> dict[str, str]:
        """The headers that an upstream is sent. `same`: it speaks the client's API; `raw`: the body passes as it is."""
        more = [name.lower() for name in self.config.forward_headers]
        return headers.for_upstream(http, upstream, self.guarded, same=same, raw=raw, more=more)

    def learn_field(self, upstream: Upstream, model: str, field: str) -> None:
        """Remember under which name an upstream sends thinking: it will want it back under the same."""
        if len(self.fields) > MOST_MODELS:
            self.fields.clear()
        self.fields[(upstream.name, model)] = field

    def open(self) -> None:
        """Make the upstreams, inside the event loop that will use them."""
        if self.config.history.save:
            from .._history import BackgroundWriter  # here, because few gateways keep thoughts

            kept = self.config.history
            self.history_writer = BackgroundWriter(kept.store, keep_days=kept.keep_days, warn=log.warning)
        if not self.config.upstreams:
            self.upstreams = [RecordedUpstream(Recorded())]
            return
        self._connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_IDLE)
        self.upstreams = [
            HttpUpstream(settings, self.config.limits, self._connector) for settings in self.config.upstreams
        ]

    async def close(self) -> None:
        """Let go of everything."""
        for upstream in self.upstreams:
            await upstream.close()
        if self._connector is not None:
            await self._connector.close()
        if self.history_writer is not None:
            await asyncio.to_thread(self.history_writer.close)

    def settings(self, model: str) -> ModelSettings:
        """How a model is read and asked."""
        settings = self._settings.get(model)
        if settings is None:
            if len(self._settings) > MOST_MODELS:
                self._settings.clear()
            settings = self._settings[model] = self._resolve(model)
        return settings

    def _resolve(self, model: str) -> ModelSettings:
        settings = resolve_model(self.config, model)
        first = self.upstreams[0]
        if isinstance(first, RecordedUpstream) and not settings.format:
            format = (
                first.recorded.settings(settings.name or model)[0]
                if (settings.name or model) in first.recorded.models
                else ""
            )
            return msgspec.structs.replace(settings, format=format)
        return settings

    async def route(self, model: str, key: str) -> Upstream:
        """The upstream that serves a model, to a client with this key of its own. One alone takes any name."""
        if len(self.upstreams) == 1:
            return self.upstreams[0]
        named = self.settings(model).upstream
        for upstream in self.upstreams:
            if named and upstream.name == named:
                return upstream
        for upstream in self.upstreams:
            if any(matches(model, pattern) for pattern in upstream.settings.models):
                return upstream
        open_ended = [upstream for upstream in self.upstreams if not upstream.settings.models]
        for upstream, models in zip(open_ended, await self._all(open_ended, key), strict=True):
            if any(known.id == model for known in models):
                return upstream
        raise no_model(model, await self.models(key))

    async def models(self, key: str) -> list[ListedModel]:
        """Every model of every upstream that a client with this key may see, and those that the configuration names."""
        found: dict[str, ListedModel] = {}
        for models in await self._all(self.upstreams, key):
            for model in models:
                found.setdefault(model.id, model)
        for name in self.config.models:
            if not any(sign in name for sign in "*?["):
                found.setdefault(name, ListedModel(name, owned_by="asides"))
        return list(found.values())

    async def _all(self, upstreams: list[Upstream], key: str) -> list[list[ListedModel]]:
        return list(await asyncio.gather(*(self.list_models(upstream, key) for upstream in upstreams)))

    def only_key(self, key: str) -> str:
        """A client's key, where it can be meant for no other upstream than the one that is asked: there is but one."""
        return key if len(self.upstreams) == 1 else ""

    async def list_models(self, upstream: Upstream, key: str = "") -> list[ListedModel]:
        """The models of one upstream; an empty list where it tells none."""
        key = self.only_key(key)
        place = (upstream.name, hashlib.blake2b(key.encode(), digest_size=16).digest())
        known = self._lists.get(place)
        if known is not None and time.monotonic() - known[0] < FRESH:
            return known[1]
        try:
            models = await model_list.ask(upstream, key)
        except (Refusal, UpstreamLost, TimeoutError) as error:
            log.warning("%s does not list its models: %s", upstream.name, error)
            return known[1] if known is not None else []
        if upstream.settings.models:
            patterns = upstream.settings.models
            models = [model for model in models if any(matches(model.id, pattern) for pattern in patterns)]
        if len(self._lists) > MOST_LISTS:
            self._lists.clear()
        self._lists[place] = (time.monotonic(), models)
        return models


def no_model(model: str, known: list[ListedModel]) -> Refusal:
    """There is no such model; there are these."""
    names = sorted(each.id for each in known)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    listed = ", ".join(names[:MOST_NAMES]) + more or "none"
    said = f"no upstream serves the model {model[:200]!r}; there are: {listed}"
    return Refusal(404, said, param="model", code="model_not_found")
