"""The three SDKs through the gateway, as `make test-clients` drives them, and every assertion seen to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.catalogue import SDKS, Client
from tests.clients.cells import COLUMNS, judge
from tests.clients.driving import report
from tests.clients.run import observed


def drive_here(client: Client, url: str, folder: Path) -> str:
    """Drive a client in this process, which has imported all three: that alone takes a process of its own seconds."""
    return report(client.driver, url)


@pytest.mark.parametrize("client", SDKS, ids=[f"{client.name}-{client.api}" for client in SDKS])
def test_every_cell_holds_and_can_fail(client: Client) -> None:
    """Through the gateway every assertion holds; with `format: none`, and errors of another kind, none does."""
    assert judge(observed(client, False, drive_here)) == dict.fromkeys(COLUMNS, "")
    assert all(judge(observed(client, True, drive_here)).values())


def test_a_process_of_its_own_sees_the_same() -> None:
    """As `make test-clients` drives every client."""
    assert judge(observed(SDKS[-1], broken=False)) == dict.fromkeys(COLUMNS, "")
