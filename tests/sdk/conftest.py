"""The server that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.upstream import Upstream, upstream
from tests.sdk.clients import MODEL


@pytest.fixture(scope="package")
def server() -> Iterator[Upstream]:
    with upstream(models=(MODEL,)) as found:
        yield found
