"""Stores to keep thoughts in: every test that takes one runs on a file and on a real server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from asides import history
from tests.history import servers

COUNTER = itertools.count()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """A PostgreSQL server; its address with `{}` where the database's name goes."""
    folder = servers.binaries()
    if folder is None:
        pytest.skip(servers.HOW)
    pytest.importorskip("psycopg", reason="psycopg is not here: pip install 'asides[postgres]'")
    with servers.server(folder) as address:
        yield address


@pytest.fixture
def postgres(server: str) -> str:
    """The address of an empty database."""
    import psycopg

    name = f"kept_{next(COUNTER)}"
    with psycopg.connect(server.format("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return server.format(name)


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
