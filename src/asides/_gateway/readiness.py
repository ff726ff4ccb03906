"""Whether the upstreams answer: what `/readyz` reports.

A balancer asks `/readyz` every few seconds, and without a key; so upstreams are asked at most once in `FRESH` seconds,
however many ask, and the answer holds numbers only: names and addresses of upstreams are in the log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from .refusals import Refusal
from .upstreams import Upstream, UpstreamLost

log = logging.getLogger("asides.gateway")

FRESH = 2.0
"""Seconds for which upstreams are not asked again."""
LONGEST = 5.0
"""Seconds that an upstream has to answer its list of models."""


class Readiness:
    """Asks upstreams whether they answer, and logs when that changes."""

    def __init__(self) -> None:
        self.answers: dict[str, bool] = {}
        """By the name of an upstream: whether it answered when it was last asked."""
        self._asked = 0.0
        self._lock = asyncio.Lock()

    async def reachable(self, upstreams: Sequence[Upstream]) -> int:
        """How many of them answer, as of `FRESH` seconds ago at most."""
        async with self._lock:
            if time.monotonic() - self._asked > FRESH or self.answers.keys() != {each.name for each in upstreams}:
                found = await asyncio.gather(*map(does_answer, upstreams))
                for upstream, now in zip(upstreams, found, strict=True):
                    if now != self.answers.get(upstream.name, True):
                        log.warning("the upstream %s %s", upstream.name, "answers again" if now else "does not answer")
                self.answers = {upstream.name: now for upstream, now in zip(upstreams, found, strict=True)}
                self._asked = time.monotonic()
            return sum(self.answers.values())


async def does_answer(upstream: Upstream) -> bool:
    """Whether an upstream answers the request for its list of models; that it wants a key is an answer too."""
    return (await try_upstream(upstream))[0]


async def try_upstream(upstream: Upstream) -> tuple[bool, str]:
    """The same, and in words what came."""
    name = f"the upstream {upstream.name}"
    try:
        async with asyncio.timeout(LONGEST):
            kind = await upstream.find_kind()
            async with upstream.ask("GET", kind.models_path, None, {**kind.headers, **upstream.own_headers}) as answer:
                if answer.status in (401, 403):
                    return True, f"{name} answers, and wants another key ({answer.status})"
                fits = answer.status < 500
                return fits, f"{name} answers" + (f" with status {answer.status}" if answer.status >= 400 else "")
    except Refusal as refusal:
        return False, refusal.message
    except UpstreamLost as error:
        return False, f"{name} does not answer: {error}"
    except TimeoutError:
        return False, f"{name} does not answer within {LONGEST:g} s"
