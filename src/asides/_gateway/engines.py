"""Which program runs at each upstream: vLLM, SGLang, llama.cpp, or one that is not known.

Told by the configuration, else by the server's list of models, which every server has. A server of which it is not
known is asked nothing else: a hosted provider must not see odd requests with the operator's key.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import NamedTuple

from ..dialects._servers import ENGINES, Engine, engine_of
from .questions import ask_json, check_status
from .refusals import Refusal
from .upstreams import ASK_AGAIN, Upstream, UpstreamLost

log = logging.getLogger("asides.gateway")

HOUR = 3600.0
"""Seconds after which a server is asked again for what it has said."""


class _KnownEngine(NamedTuple):
    engine: Engine | None
    ask_again: float
    losses: int
    """`Upstream.losses` then: another server may run there since; -1 where it was lost itself."""


class Engines:
    """Remembers what runs at upstreams, by their names."""

    def __init__(self) -> None:
        self._found: dict[str, _KnownEngine] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def known(self, upstream: Upstream) -> Engine | None:
        """What runs there, as far as that is known already: asks nobody."""
        if upstream.settings.engine != "auto":
            return ENGINES.get(upstream.settings.engine)
        found = self._found.get(upstream.name)
        return None if found is None else found.engine

    async def find(self, upstream: Upstream, key: str = "") -> Engine | None:
        """What runs there; None where that is not known. Only the first who asks has to wait for it."""
        if upstream.settings.engine != "auto":
            return ENGINES.get(upstream.settings.engine)
        found = self._found.get(upstream.name)
        if found is None or time.monotonic() >= found.ask_again or found.losses not in (-1, upstream.losses):
            task = self._asking.get(upstream.name)
            if task is None:
                task = self._asking[upstream.name] = asyncio.create_task(self._ask(upstream, key))
                task.add_done_callback(lambda _: self._asking.pop(upstream.name, None))
            if found is None:
                await asyncio.wait([task])  # shared by all who ask, so it is not cancelled with one of them
        return self.known(upstream)

    async def _ask(self, upstream: Upstream, key: str) -> None:
        before = self._found.get(upstream.name)
        engine, wait, losses = (before.engine if before is not None else None), ASK_AGAIN, -1
        try:
            kind = await upstream.find_kind()
            answer = await ask_json(upstream, "GET", kind.models_path, None, key)
            check_status(upstream, kind.models_path, answer.status)
            # Not `State.list_models`: the server's own names need not be those that clients may use.
            engine = engine_of(kind.read_models(answer.data) or [], answer.headers.get("server", ""))
            wait, losses = HOUR, upstream.losses
        except (Refusal, UpstreamLost, TimeoutError) as error:
            log.debug("%s does not say what runs there: %s", upstream.name, error)
        finally:
            # Also after a failure, or every request would ask again and wait.
            self._found[upstream.name] = _KnownEngine(engine, time.monotonic() + wait, losses)

    async def close(self) -> None:
        """Ask no more."""
        for task in list(self._asking.values()):
            task.cancel()
