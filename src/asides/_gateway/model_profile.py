"""What is known of a model before it is asked: its format, where its output begins, how its thinking is switched.

Told by configuration, by the model's name, by a server that shows its chat template, or by nobody (`auto`).
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from typing import Any

import msgspec

from .._config.schema import ModelSettings
from .._engine.format import END, HEADER, THINKING, Format
from ..detect import Detection, detect
from ..detect.from_name import find_switch, look_up, probe
from ..detect.result import begin_of, start_of
from ..dialects.servers import ShownModel
from ..errors import Error
from ..families import Switch, get_format
from ..policies import Start
from .bodies import off_loop, read_json
from .refusals import Refusal
from .upstreams import ASK_AGAIN, Upstream, UpstreamLost, own_headers

log = logging.getLogger("asides.gateway")

MOST_SECONDS = 5.0
"""That a request waits for what its server may tell."""
MOST_MODELS = 10_000
"""Models that are remembered: their names come from clients."""
MOST_VALUES = 1_000_000
"""JSON values of what a server tells."""
_SPECIAL = re.compile(r"<[|｜].*|.*[|｜]>|\[/?[A-Z_]+\]")
"""How markers look that tokenizers hold as special tokens."""


class ModelProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one model."""

    format: Format | None
    """None: nothing is split."""
    format_source: str
    """Who told it: `configuration`, `name`, `server`, or `nobody`."""
    start: Start | None = None
    """Where output begins, where the template or the name tells it."""
    start_on: Start | None = None
    """The same with thinking asked for."""
    switch: Switch | None = None
    """How the template switches thinking."""
    field: str = ""
    """The field in which the template looks for earlier thinking."""
    capabilities: tuple[str, ...] | None = None
    """What Ollama says it can; None where nobody says."""

    @property
    def can_think(self) -> bool:
        """Whether the format is known to write thinking."""
        if self.format is None or self.format.name == "auto":
            return False
        return any(target == THINKING for table in self.format.states.values() for target in table.values())

    @property
    def special(self) -> bool:
        """Whether markers of the format are special tokens, which servers leave out unless told otherwise."""
        return self.format is not None and has_special_markers(self.format)


def has_special_markers(format: Format) -> bool:
    """Whether a marker that opens or closes something looks like a special token."""
    markers = [marker for table in format.states.values() for marker, target in table.items() if target != END]
    markers += [marker for syntax in format.calls for marker in (*syntax.openers, *syntax.closers)]
    return format.header is not None or any(_SPECIAL.fullmatch(marker) for marker in markers)


class Profiles:
    """Finds out what is known of models, and remembers it."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], tuple[float, Detection | None, tuple[str, ...] | None]] = {}
        self._asking: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._known: dict[tuple[str, str], tuple[ModelSettings, Detection | None, ModelProfile]] = {}

    async def resolve(self, upstream: Upstream, model: str, settings: ModelSettings, key: str = "") -> ModelProfile:
        """What is known of a model at an upstream, which is asked with this key where it has none configured."""
        if settings.format.lower() in ("none", "passthrough"):
            return ModelProfile(format=None, format_source="configuration", switch=Switch.named(settings.switch))
        shown, capabilities = await self._ask(upstream, settings.name or model, key)
        place = (upstream.name, model)
        known = self._known.get(place)
        if known is None or known[0] is not settings or known[1] is not shown:
            if len(self._known) > MOST_MODELS:
                self._known.clear()
            known = self._known[place] = (settings, shown, self._make_profile(model, settings, shown, capabilities))
        return known[2]

    def _make_profile(
        self,
        model: str,
        settings: ModelSettings,
        shown: Detection | None,
        capabilities: tuple[str, ...] | None,
    ) -> ModelProfile:
        name = settings.name or model
        named = probe(name) if look_up(name) else None
        start: Start | None = None
        if settings.format:
            format, source = get_format(settings.format), "configuration"
        elif named is not None and named.formats != ("auto",):
            format, source = get_format(named.formats[0]), "name"
            if named.begin is not None and named.begin != begin_of(format.start):  # else as the format says
                start = start_of(named.begin)
        elif shown is not None and shown.format != "auto":
            format, source = get_format(shown.format), "server"
        else:
            format, source = get_format("auto"), "nobody"
            if named is not None and named.begin == "thinking":
                start = "thinking"
        switch = _choose_switch(settings.switch, shown, find_switch(name, format))
        known = ModelProfile(format=format, format_source=source, start=start, switch=switch, capabilities=capabilities)
        if shown is None:
            return known
        return msgspec.structs.replace(
            known,
            # What is told of a template that opens its turns otherwise does not fit a format that begins in a header.
            start=shown.start if format.start != HEADER else None,
            start_on=shown.start_on if format.start != HEADER else None,
            field=shown.field or "",
        )

    async def _ask(self, upstream: Upstream, model: str, key: str) -> tuple[Detection | None, tuple[str, ...] | None]:
        """What the server shows of its template. A request waits for it only so long, and only the first time."""
        place = (upstream.name, model)
        known = self._shown.get(place)
        if known is not None and (known[1] is not None or time.monotonic() - known[0] < ASK_AGAIN):
            return known[1:]
        task = self._asking.get(place)
        if task is None:
            if len(self._shown) > MOST_MODELS:
                self._shown.clear()
            task = self._asking[place] = asyncio.create_task(self._find(upstream, model, key))
            task.add_done_callback(lambda _: self._asking.pop(place, None))
        if known is None:
            await asyncio.wait([task], timeout=MOST_SECONDS)
        return self._shown.get(place, (0.0, None, None))[1:]

    async def _find(self, upstream: Upstream, model: str, key: str) -> None:
        detection: Detection | None = None
        capabilities: tuple[str, ...] | None = None
        try:
            shown = await show(upstream, model, key)
            capabilities = shown.capabilities
            if shown.template:
                detection = await asyncio.to_thread(_detect, shown.template, model)
        except (Refusal, UpstreamLost, Error) as error:
            log.debug("%s tells nothing of %r: %s", upstream.name, model, error)
        finally:
            self._shown[upstream.name, model] = (time.monotonic(), detection, capabilities)


def _choose_switch(configured: str, shown: Detection | None, known: Switch | None) -> Switch | None:
    """The keyword that is configured, else the one of the template that the server shows, else the family's.

    Where it is the family's too, the card's values count: it knows efforts, and what means no thinking.
    """
    keyword = configured or (shown.switch if shown is not None else known and known.keyword) or ""
    if known is not None and known.keyword == keyword:
        return known
    switch = Switch.named(keyword)
    if switch is None or shown is None or shown.switch != keyword:
        return switch
    return msgspec.structs.replace(switch, on=shown.on, off=shown.off)


def _detect(template: str, model: str) -> Detection | None:
    """What a template says; None where it is not in Jinja, or Jinja is not installed."""
    try:
        return detect(model or None, chat_template=template)
    except Error as error:
        log.info("the chat template of %r says nothing: %s", model[:200], error)
        return None


async def show(upstream: Upstream, model: str, key: str) -> ShownModel:
    """What a server shows of a model: its chat template, and with Ollama what it can."""
    kind = await upstream.find_kind()
    return kind.read_shown(await fetch_json(upstream, *kind.show(model), key))


async def fetch_json(upstream: Upstream, method: str, path: str, body: bytes | None, key: str) -> dict[str, Any]:
    """A small question of our own, with this key where none is configured; empty where the server has no such path."""
    headers = {"accept": "application/json", "accept-encoding": "identity", **own_headers(upstream.settings, key)}
    if body is not None:
        headers["content-type"] = "application/json"
    async with upstream.ask(method, path, body, headers) as answer:
        if answer.status != 200:
            return {}
        data = await answer.read(16 * 1024 * 1024)
    try:
        return await off_loop(len(data), read_json, data, MOST_VALUES)
    except Refusal:
        return {}
