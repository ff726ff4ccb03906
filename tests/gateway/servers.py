"""A gateway and the upstream that it stands before: what most tests of the gateway begin with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Upstream, upstream


class Servers(NamedTuple):
    """A gateway before one upstream."""

    gateway: Gateway
    upstream: Upstream


@contextmanager
def serving(**settings: Any) -> Iterator[Servers]:
    """Both as long as the block: the model writes as Qwen3 does, and `settings` add to the configuration."""
    with upstream() as server:
        config = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}, **settings}
        with gateway(config) as running:
            yield Servers(running, server)
