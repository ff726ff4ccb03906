"""Parquet that `asides batch` has joined from ranges, read by engines that have readers of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from tests.cli.batch_files import rows, write_parquet
from tests.cli.running import run


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output of twenty ranges."""
    folder = tmp_path_factory.mktemp("joined")
    source = write_parquet(folder / "in.parquet", rows(1_000), group=50)
    out = folder / "out.parquet"
    done = run("batch", str(source), "-o", str(out), "--range-size", "0.001", "--parts", "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert pq.read_metadata(out).num_row_groups == 20
    return out


def test_polars_reads_it(joined: Path) -> None:
    """All of it, and what the statistics of row groups let it skip."""
    pl: Any = pytest.importorskip("polars", reason="Polars is not installed: make test-engines-light")
    expected = pq.read_table(joined)
    assert pl.read_parquet(joined).to_arrow().to_pylist() == expected.to_pylist()
    found = pl.scan_parquet(joined).filter(pl.col("id") >= 970).select("id").collect()
    assert found["id"].to_list() == list(range(970, 1_000))


def test_duckdb_reads_it(joined: Path) -> None:
    """All of it, and what the statistics of row groups let it skip."""
    duckdb: Any = pytest.importorskip("duckdb", reason="DuckDB is not installed: make test-engines-light")
    connection = duckdb.connect()
    expected = pq.read_table(joined)
    found = connection.sql(f"select id, thinking, text, notices from '{joined}' order by id").fetchall()
    names = ("id", "thinking", "text", "notices")
    assert found == [tuple(row[name] for name in names) for row in expected.to_pylist()]
    assert connection.sql(f"select id from '{joined}' where id >= 970 order by id").fetchall()[0] == (970,)
    connection.close()
