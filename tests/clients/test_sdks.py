"""The three SDKs through the gateway, as `make test-clients` drives them, and every assertion seen to fail."""

from __future__ import annotations

import pytest

from tests.clients.catalogue import SDKS, Client
from tests.clients.cells import COLUMNS, judge
from tests.clients.run import observed


@pytest.mark.parametrize("client", SDKS, ids=[f"{client.name}-{client.api}" for client in SDKS])
def test_every_cell_holds_and_can_fail(client: Client) -> None:
    """Through the gateway every assertion holds; with `format: none`, and errors of another kind, none does."""
    assert judge(observed(client, broken=False)) == dict.fromkeys(COLUMNS, "")
    assert all(judge(observed(client, broken=True)).values())
