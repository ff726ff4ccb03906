"""The profile of a model: its format, where its output begins, how its thinking is switched on and off.

Resolved before a request is planned, by a `Reading` of the configuration, the model's name (the families' cards) and
the chat template that the server shows. `asides.reading` says which counts more.

    profile = await profiles.resolve(upstream, "Qwen/Qwen3-8B", settings)
    profile.format.name, profile.format_source, profile.switch       # "qwen3", "name", Switch("enable_thinking")

A server that is known to show its template is asked for it once; a request waits for it only so long, and a server
without one is asked again after a while. Profiles are kept until the settings or the template change.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from typing import NamedTuple

import msgspec

from .._config.schema import ModelSettings
from .._engine.format import END, THINKING, Format
from ..detect import Detection, detect
from ..detect._from_name import find_earlier
from ..dialects._servers import OPENAI
from ..errors import Error
from ..families import EarlierThinking, Switch, get_format
from ..families._own_tags import own_tags
from ..reading import Reading, ServerFacts
from .bounded import BoundedDict
from .engines import Engines
from .questions import fetch_json
from .refusals import Refusal
from .upstreams import ASK_AGAIN, Upstream, UpstreamLost

log = logging.getLogger("asides.gateway")

MOST_SECONDS = 5.0
"""Seconds that the first request for a model waits for its template."""
MOST_MODELS = 10_000
"""Models of which something is remembered; their names come from clients."""
UNSPLIT = ("none", "passthrough")
"""Formats of models whose replies are left as they are."""
_SOURCES: dict[str, str] = {"option": "configuration", "format": "nobody"}
"""What the evidence for a format is called in a profile, where not as in a `Reading`."""
_SPECIAL = re.compile(r"<[|｜].*|.*[|｜]>|\[/?[A-Z_]+\]")
"""How markers look that tokenizers hold as special tokens."""


class ModelProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The profile of one model at one upstream."""

    format: Format | None
    """None: nothing is split."""
    format_source: str
    """Where it is known from: `configuration`, `name`, `server`, or `nobody`."""
    given: Format | None = None
    """The format that is configured; None where it is found."""
    template: Detection | None = None
    """What the chat template that the server shows was found to write; None where it shows none."""
    switch: Switch | None = None
    """How the template switches thinking."""
    field: str = ""
    """The field in which the template looks for earlier thinking."""
    framing: tuple[str, str] | None = None
    """The whitespace that the template writes around it; None where no template was seen."""
    shows_thinking: bool | None = None
    """Whether the template shows that the model thinks; None where no template was seen."""
    capabilities: tuple[str, ...] | None = None
    """Ollama's list of what it can; None from other servers."""
    earlier: EarlierThinking | None = None
    """When the model wants the thoughts of all earlier turns back; None: never, those before calls apart."""

    @property
    def can_think(self) -> bool:
        """Whether the format is known to write thinking."""
        if self.format is None or self.format.name == "auto":
            return False
        return any(target == THINKING for table in self.format.states.values() for target in table.values())

    @property
    def efforts(self) -> tuple[str, ...]:
        """The efforts that a request for it may name, as far as its family's card says; empty where any may pass."""
        return self.switch.requestable if self.switch is not None else ()

    @property
    def special(self) -> bool:
        """Whether markers of the format are special tokens, which servers leave out unless asked not to."""
        return self.format is not None and has_special_markers(self.format)


def has_special_markers(format: Format) -> bool:
    """Whether a marker that opens or closes something looks like a special token."""
    markers = [marker for table in format.states.values() for marker, target in table.items() if target != END]
    markers += [marker for syntax in format.calls for marker in (*syntax.openers, *syntax.closers)]
    return format.header is not None or any(_SPECIAL.fullmatch(marker) for marker in markers)


class Profiles:
    """Resolves the profiles of models, and remembers them."""

    def __init__(self, engines: Engines | None = None) -> None:
        """`engines`: what is known of what runs at upstreams."""
        self._engines = Engines() if engines is None else engines
        self._shown: BoundedDict[tuple[str, str], _Shown] = BoundedDict(MOST_MODELS)
        """What servers show, by upstream and the model's name there."""
        self._fetching: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._resolved: BoundedDict[tuple[str, str], tuple[ModelSettings, Detection | None, ModelProfile]]
        self._resolved = BoundedDict(MOST_MODELS)
        """Profiles, with the settings and the template that they were made of."""

    async def resolve(self, upstream: Upstream, model: str, settings: ModelSettings, key: str = "") -> ModelProfile:
        """The profile of a model at an upstream, which is sent this key where it has none configured."""
        # First, so that a server is not asked for a template that nothing will be done with.
        if settings.format.lower() in UNSPLIT:
            return _unsplit(settings)
        shown = self._shown.get((upstream.name, settings.name or model))
        # Without a template it is asked again after a while: the server may have been starting.
        if shown is None or (shown.detection is None and time.monotonic() - shown.time >= ASK_AGAIN):
            shown = await self._show(upstream, settings.name or model, key)
        known = self._resolved.get((upstream.name, model))
        # Compared by identity: both are made once, and this runs for every request.
        if known is None or known[0] is not settings or known[1] is not shown.detection:
            separates = upstream.kind is not None and upstream.kind.separates
            profile = make_profile(model, settings, shown.detection, shown.capabilities, separates=separates)
            known = (settings, shown.detection, profile)
            self._resolved[upstream.name, model] = known
        return known[2]

    def known(self, upstream: Upstream, model: str, settings: ModelSettings) -> ModelProfile:
        """The profile by what is known already: asks nobody."""
        resolved = self._resolved.get((upstream.name, model))
        if settings.format.lower() in UNSPLIT:
            return _unsplit(settings)
        separates = upstream.kind is not None and upstream.kind.separates
        return make_profile(model, settings, separates=separates) if resolved is None else resolved[2]

    async def _show(self, upstream: Upstream, model: str, key: str) -> _Shown:
        """Ask what the server shows of a model. A request waits for it only so long, and only the first time."""
        asked = (upstream.name, model)
        task = self._fetching.get(asked)
        if task is None:
            task = self._fetching[asked] = asyncio.create_task(self._fetch(upstream, model, key))
            task.add_done_callback(lambda _: self._fetching.pop(asked, None))
        if asked not in self._shown:
            # `wait` and not `wait_for`: the task is shared by all requests for this model, and a timeout must not
            # cancel it.
            await asyncio.wait([task], timeout=MOST_SECONDS)
        return self._shown.get(asked, _Shown())

    async def _fetch(self, upstream: Upstream, model: str, key: str) -> None:
        detection: Detection | None = None
        capabilities: tuple[str, ...] | None = None
        try:
            kind = await upstream.find_kind()
            engine = await self._engines.find(upstream, key) if kind is OPENAI else None
            # Others have no such path. A provider is not to see odd requests with the operator's key.
            asked = kind.show if kind is not OPENAI or (engine is not None and engine.shows_template) else None
            shown = kind.read_shown(await fetch_json(upstream, *asked(model), key) if asked is not None else {})
            capabilities = shown.capabilities
            if shown.template:
                # Templates are rendered several times for it, which takes longer than a stream may be held up.
                detection = await asyncio.to_thread(_detect, shown.template, model)
        except (Refusal, UpstreamLost, Error) as error:
            log.debug("%s shows nothing of %r: %s", upstream.name, model, error)
        finally:
            # Also after a failure, or every request would ask again and wait.
            self._shown[upstream.name, model] = _Shown(time.monotonic(), detection, capabilities)


class _Shown(NamedTuple):
    """What a server showed of a model, and when."""

    time: float = 0.0
    detection: Detection | None = None
    """What its chat template says; None where there is none."""
    capabilities: tuple[str, ...] | None = None


def _unsplit(settings: ModelSettings) -> ModelProfile:
    return ModelProfile(format=None, format_source="configuration", switch=Switch.named(settings.switch))


def can_model_think(profile: ModelProfile, name: str) -> bool | None:
    """Whether a model of this name thinks; None where neither its name nor its format says."""
    thinks = detect(model=name).thinks if profile.format_source != "configuration" else None
    if thinks is None:
        header = profile.format.header if profile.format is not None else None
        channels = header is not None and profile.format_source != "nobody" and THINKING in header.channels.values()
        return profile.can_think or channels or None
    return thinks


def make_profile(
    model: str,
    settings: ModelSettings,
    template: Detection | None = None,
    capabilities: tuple[str, ...] | None = None,
    *,
    separates: bool = False,
) -> ModelProfile:
    """The profile of a model, of what is known: its name, its settings, the template that its server shows.

    `separates`: the server's API has places for thoughts and calls, so that its text is read as it is.
    """
    given = get_format(settings.format or "passthrough") if settings.format or separates else None
    if settings.tags:
        given = own_tags(settings.tags.items())
    reading = Reading.of(
        settings.name or model, format=given, server=ServerFacts(template=template), switch=settings.switch
    )
    return ModelProfile(
        format=reading.format,
        format_source=_SOURCES.get(reading.format_evidence, reading.format_evidence),
        given=given,
        template=template,
        switch=reading.switch,
        field=(template.field if template is not None else None) or "",
        framing=template.framing if template is not None else None,
        shows_thinking=_shows_thinking(template) if template is not None else None,
        capabilities=capabilities,
        earlier=find_earlier(settings.name or model, reading.format),
    )


def _shows_thinking(template: Detection) -> bool:
    return (
        template.framing is not None or template.switch is not None or "thinking" in (template.start, template.start_on)
    )


def _detect(template: str, model: str) -> Detection | None:
    """What is detected from a template; None where it is not in Jinja, or Jinja is not installed."""
    try:
        return detect(model or None, chat_template=template)
    except Error as error:
        log.info("the chat template of %r cannot be used: %s", model[:200], error)
        return None
