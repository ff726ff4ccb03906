"""Servers that the tests of one file share, and what each test of them starts from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import Upstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A gateway with its defaults before one upstream. Files that need other servers have a `servers` of their own."""
    with serving() as found:
        yield found


@pytest.fixture(autouse=True)
def _forget(request: pytest.FixtureRequest) -> None:
    """Let each test begin with servers that were asked nothing and say the usual."""
    if "servers" in request.fixturenames:
        for server in request.getfixturevalue("servers"):
            if isinstance(server, Upstream):
                server.forget()
