"""Stores to keep thoughts in: every test that takes one runs on a file and on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from asides import _history as history
from tests.history import servers


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a database on a PostgreSQL server."""
    folder = servers.binaries()
    if folder is None:
        pytest.skip(servers.HOW)
    pytest.importorskip("psycopg", reason="psycopg is not here: pip install 'asides[postgres]'")
    with servers.server(folder) as address:
        yield address


@pytest.fixture
def postgres(server: str) -> str:
    """The address of a database without a history."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        # A new database for each test would take as long as the test.
        connection.execute("DROP SCHEMA IF EXISTS asides CASCADE")
    return server


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The name of an empty store."""
    if request.param == "sqlite":
        return str(tmp_path / "history.db")
    found: str = request.getfixturevalue("postgres")
    return found


@pytest.fixture
def store(address: str) -> Iterator[history.History]:
    """An empty store, open."""
    with history.open(address) as opened:
        yield opened
