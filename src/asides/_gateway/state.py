"""What outlives a request: the upstreams, the settings and profiles of models, the replay cache, the history writer.

`State` is made with the configuration and opened inside the event loop. It answers which upstream serves a model
(`route`), how the model is configured (`settings`), and which models there are for a client (`models`): a client that
brings its own key for the upstream sees what that key may see, and nobody else's. Everything that is looked up by names
from clients is bounded.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import msgspec

from .._config.schema import Config, ModelSettings, matches, resolve_model
from .._recordings.upstream import Recorded
from ..dialects._servers import ListedModel
from ..reading import Seen
from . import headers, model_list
from .bounded import BoundedDict
from .capsules import Capsules, make_capsules
from .engines import Engines
from .http_request import Headers, HttpRequest
from .learned import Key, Learned
from .model_profile import MOST_MODELS, Profiles
from .prompt_ends import PromptEnds
from .proofs import ThoughtRecovery
from .record import RequestRecord
from .refusals import NotConnected, Refusal
from .replay_cache import ReplayCache
from .shared_thoughts import SharedThoughts
from .stored_responses import StoredResponses
from .token_ids import TokenIds
from .upstreams import HttpUpstream, RecordedUpstream, Upstream, UpstreamLost

if TYPE_CHECKING:
    from .._history import BackgroundWriter
    from .observe.spans import Spans

log = logging.getLogger("asides.gateway")
Found = TypeVar("Found")

FRESH = 10.0
"""Seconds for which a list of models is not asked for again."""
DOWN_FOR = 10.0
"""Seconds for which an upstream that could not be reached is asked last."""
MOST_LISTS = 100
"""Lists that are remembered: there is one for each upstream and key."""
MOST_NAMES = 20
"""Names that an error lists."""


class State:
    """The state of one gateway. `open` and `close` belong inside the event loop that serves requests."""

    def __init__(
        self,
        config: Config,
        on_unasked: Callable[[str], None] = lambda name: None,
        on_learned: Callable[[Key, Seen], None] = lambda key, seen: None,
    ) -> None:
        """`on_unasked` is called with the name of an upstream that sends what nobody has asked for.

        `on_learned` is called with what replies have shown of a model.
        """
        self.config = config
        self._on_learned = on_learned
        self._on_unasked = on_unasked
        self.guarded = bool(config.keys)
        """Whether clients must show a key of the gateway's own."""
        self._forwarded = tuple(name.lower() for name in config.forward_headers)
        self._returned = frozenset(name.lower() for name in config.return_headers)
        self.engines = Engines()
        self.profiles = Profiles(self.engines)
        self.replay_cache = ReplayCache(config.replay_cache)
        self.shared_thoughts = SharedThoughts.of(self.replay_cache, config)
        self.responses = StoredResponses(config.responses, config.history.store, config.limits)
        self.fields: BoundedDict[tuple[str, str], str] = BoundedDict(MOST_MODELS)
        """By upstream and model: the field in which the upstream sends thinking, and wants it back."""
        self.learned = Learned(on_learned)
        """Where output of models was seen to begin."""
        self.prompt_ends = PromptEnds(self.engines, self.learned.forget)
        self.token_ids = TokenIds()
        """Which servers are asked for the ids of tokens."""
        self.efforts: BoundedDict[tuple[str, str], tuple[str, ...]] = BoundedDict(MOST_MODELS)
        """By upstream and model: the efforts that the upstream named when it refused another."""
        self.budget_refusals: BoundedDict[tuple[str, str], frozenset[str]] = BoundedDict(MOST_MODELS)
        """By upstream and model: what of a thinking budget the upstream would not take."""
        self.token_ratios: BoundedDict[tuple[str, str], float] = BoundedDict(MOST_MODELS)
        """By upstream and model: bytes of a token, as the upstream has counted; 0 where it cannot count."""
        self.running: dict[str, tuple[str, Upstream]] = {}
        """By the upstream's id of a reply that is being streamed: the credential of its client, and the upstream."""
        self.refused_thoughts: BoundedDict[bytes, ThoughtRecovery] = BoundedDict(MOST_MODELS)
        """The beginnings of conversations whose earlier thoughts a provider has refused, hashed."""
        self.history_writer: BackgroundWriter | None = None
        """Writes replies to history in the background; None where none is kept."""
        self.spans: Spans | None = None
        """Reports requests to OpenTelemetry; None where nobody asked for it."""
        self.upstreams: list[Upstream] = []
        self._successor: State | None = None
        """The state of a later configuration; what it took over is its to close."""
        self._down: dict[str, float] = {}
        """By the name of an upstream that could not be reached: until when others are asked before it."""
        self._settings: BoundedDict[str, ModelSettings] = BoundedDict(MOST_MODELS)
        self._lists: BoundedDict[tuple[str, bytes], tuple[float, list[ListedModel]]] = BoundedDict(MOST_LISTS)
        """When each list of models came, by upstream and a hash of the client's key."""

    @cached_property
    def capsules(self) -> Capsules | None:
        """Seals what clients carry; None where that cannot be done. Made when it is first needed: few providers want
        anything back."""
        return make_capsules(self.config.continuity, self.config.limits.capsule)

    @property
    def keeps_text(self) -> bool:
        """Whether somebody besides the client gets the text of every reply."""
        return (
            self.config.log.bodies or self.history_writer is not None or (self.spans is not None and self.spans.content)
        )

    def headers_for(
        self, http: HttpRequest, upstream: Upstream, *, same: bool, raw: bool = False, key: str | None = None
    ) -> dict[str, str]:
        """The headers that an upstream is sent. `same`: it speaks the client's API; `raw`: the body passes as it is;
        `key`: the client's own, for who has looked for it before."""
        key = headers.own_key(http.headers, self.guarded) if key is None else key
        more = self._forwarded
        return headers.for_upstream(http, upstream, key, guarded=self.guarded, same=same, raw=raw, more=more)

    def headers_back(self, given: Mapping[str, str], *, same: bool, raw: bool = False) -> Headers:
        """The headers of an upstream's answer that a client gets."""
        return headers.for_client(given, same=same, raw=raw, more=self._returned)

    def open(self) -> None:
        """Make the upstreams, and what reports and keeps replies where it was not taken over."""
        history = self.config.history
        if history.save and self.history_writer is None:
            from .._history import BackgroundWriter  # here, because few gateways keep replies

            self.history_writer = BackgroundWriter(history.store, keep_days=history.keep_days, warn=log.warning)
        if self.config.telemetry.spans and self.spans is None:
            from .observe.spans import Spans  # here, because its packages are an extra

            self.spans = Spans(content=self.config.telemetry.content)
        if not self.config.upstreams:
            self.upstreams = [RecordedUpstream(Recorded())]
            return
        limits, configured = self.config.limits, self.config.upstreams
        self.upstreams = [HttpUpstream(settings, limits, self._on_unasked) for settings in configured]

    def renewed(self, config: Config) -> State:
        """A state for another configuration, opened. It takes over what must outlive the change; `close` this one then.

        These are the replay cache, stored Responses, the replies that are being streamed, and the writers whose
        settings are the same.
        """
        state = State(config, self._on_unasked, self._on_learned)
        state.replay_cache = self.replay_cache
        state.replay_cache.resize(config.replay_cache)
        state.shared_thoughts = SharedThoughts.of(self.replay_cache, config, self.shared_thoughts)
        state.responses = self.responses.renewed(config.responses, config.history.store, config.limits)
        state.fields, state.running = self.fields, self.running
        if config.history == self.config.history:
            state.history_writer = self.history_writer
        if config.telemetry == self.config.telemetry:
            state.spans = self.spans
        state.open()
        self._successor = state
        return state

    async def close(self) -> None:
        """Close every connection; waits until the queue of the history writer is written."""
        await self.prompt_ends.close()
        await self.engines.close()
        for upstream in self.upstreams:
            await upstream.close()
        later = self._successor
        if self.shared_thoughts is not None and (later is None or later.shared_thoughts is not self.shared_thoughts):
            await self.shared_thoughts.close()
        if later is None or later.responses.entries is not self.responses.entries:
            await self.responses.close()
        if self.history_writer is not None and (later is None or later.history_writer is not self.history_writer):
            await asyncio.to_thread(self.history_writer.close)
        if self.spans is not None and (later is None or later.spans is not self.spans):
            await asyncio.to_thread(self.spans.close)

    def settings(self, model: str) -> ModelSettings:
        """The configuration of a model: its own section, the defaults, and what a recorded upstream knows."""
        settings = self._settings.get(model)
        if settings is None:
            settings = resolve_model(self.config, model)
            first, name = self.upstreams[0], settings.name or model
            named = settings.format or settings.tags
            if isinstance(first, RecordedUpstream) and not named and name in first.recorded.models:
                settings = msgspec.structs.replace(settings, format=first.recorded.settings(name)[0])
            self._settings[model] = settings
        return settings

    async def route(self, model: str, key: str) -> list[Upstream]:
        """The upstreams that serve a model to a client with this key, the one to ask first; a 404 where none does.

        One upstream alone takes any name. Else: the one that the model's settings name, those whose `models` match,
        those without `models` that list it. Such as could not be reached a moment ago stand last.
        """
        # Without asking it: a single server may serve names that it does not list, and answers for itself where it does
        # not.
        if len(self.upstreams) == 1:
            return self.upstreams
        named = self.settings(model).upstream
        found = [upstream for upstream in self.upstreams if named and upstream.name == named] or [
            upstream
            for upstream in self.upstreams
            if any(matches(model, pattern) for pattern in upstream.settings.models)
        ]
        if not found:  # last, because it may have to ask every one of them for its list
            open_ended = [upstream for upstream in self.upstreams if not upstream.settings.models]
            lists = zip(open_ended, await self._all(open_ended, key), strict=True)
            found = [upstream for upstream, models in lists if any(known.id == model for known in models)]
        if not found:
            raise no_model(model, await self.models(key))
        now = time.monotonic()
        return sorted(found, key=lambda upstream: self._down.get(upstream.name, 0.0) > now)

    async def ask_any(
        self, upstreams: Sequence[Upstream], record: RequestRecord, work: Callable[[Upstream], Awaitable[Found]]
    ) -> Found:
        """Do something with the first of these that can be reached.

        The next one is asked only where no connection could be made: what was sent once may have been acted upon.
        """
        for upstream in upstreams[:-1]:
            record.upstream = upstream.name
            try:
                return await work(upstream)
            except NotConnected as refusal:
                self._down[upstream.name] = time.monotonic() + DOWN_FOR
                record.failovers += 1
                log.warning("request %s: %s; asking the next upstream that serves it", record.id, refusal.message)
        record.upstream = upstreams[-1].name
        return await work(upstreams[-1])

    async def models(self, key: str) -> list[ListedModel]:
        """Every model of every upstream that a client with this key may see, and those that the configuration names.

        Where there is none because upstreams do not answer, a `Refusal` says so: an empty list would be a lie.
        """
        found: dict[str, ListedModel] = {}
        lists = await asyncio.gather(*(self._list(upstream, key) for upstream in self.upstreams))
        for models, _ in lists:
            for model in models:
                found.setdefault(model.id, model)
        for name in self.configured_models():
            found.setdefault(name, ListedModel(name, owned_by="asides"))
        failures = [failure for _, failure in lists if failure is not None]
        if failures and not found:
            raise failures[0]
        return list(found.values())

    def configured_models(self) -> list[str]:
        """The models that the configuration names, without its patterns."""
        return [name for name in self.config.models if not any(sign in name for sign in "*?[")]

    async def _all(self, upstreams: list[Upstream], key: str) -> list[list[ListedModel]]:
        return list(await asyncio.gather(*(self.list_models(upstream, key) for upstream in upstreams)))

    def only_key(self, key: str) -> str:
        """A client's key for questions of our own: with several upstreams it may be meant for another, so none."""
        return key if len(self.upstreams) == 1 else ""

    async def list_models(self, upstream: Upstream, key: str = "") -> list[ListedModel]:
        """The models of one upstream, as its list was at most `FRESH` seconds ago; empty where there is none."""
        return (await self._list(upstream, key))[0]

    async def _list(self, upstream: Upstream, key: str) -> tuple[list[ListedModel], Refusal | None]:
        """The same, and why the upstream could not be asked now."""
        key = self.only_key(key)
        # By key: what one client's key may see is not shown to another. Hashed, so that no key stays in memory for it.
        owner = (upstream.name, hashlib.blake2b(key.encode(), digest_size=16).digest())
        known = self._lists.get(owner)
        if known is not None and time.monotonic() - known[0] < FRESH:
            return known[1], None
        try:
            models = await model_list.fetch(upstream, key)
        except (Refusal, UpstreamLost, TimeoutError) as error:
            log.warning("%s does not list its models: %s", upstream.name, error)
            # An old list is better than none: requests for its models would be refused as unknown.
            return known[1] if known is not None else [], _refusal_of(error, upstream)
        if upstream.settings.models:
            patterns = upstream.settings.models
            models = [model for model in models if any(matches(model.id, pattern) for pattern in patterns)]
        self._lists[owner] = (time.monotonic(), models)
        return models, None


def _refusal_of(error: Refusal | UpstreamLost | TimeoutError, upstream: Upstream) -> Refusal:
    if isinstance(error, UpstreamLost):
        return error.refusal
    return (
        error if isinstance(error, Refusal) else Refusal(504, f"the upstream {upstream.name} does not answer in time")
    )


def no_model(model: str, known: list[ListedModel]) -> Refusal:
    """The refusal of a model that no upstream has; it names some that there are."""
    names = sorted(each.id for each in known)
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    listed = ", ".join(names[:MOST_NAMES]) + more or "none"
    message = f"no upstream serves the model {model[:200]!r}; there are: {listed}"
    return Refusal(404, message, param="model", code="model_not_found")
