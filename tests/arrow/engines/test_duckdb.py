"""DuckDB itself: functions in queries over Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

duckdb: Any = pytest.importorskip("duckdb", reason="DuckDB is not installed: make test-engines-light")

import asides.arrow.duckdb  # noqa: E402
from asides import UnknownFormatError  # noqa: E402
from tests.arrow.engines.examples import check_example  # noqa: E402
from tests.arrow.engines.rows import FORMATS, expected, table  # noqa: E402

ROWS = 5000


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Any]:
    """A connection with the functions, and a Parquet file as the view `traces`."""
    pq.write_table(table(ROWS), tmp_path / "traces.parquet", row_group_size=700)
    with duckdb.connect() as made:
        asides.arrow.duckdb.register(made, formats=FORMATS, parts=True)
        made.execute(f"create view traces as from '{tmp_path}/traces.parquet'")
        yield made


def test_split(connection: Any, tmp_path: Path) -> None:
    """The struct of every row, its fields, and a copy in Parquet."""
    rows = expected(ROWS, parts=True)
    found = connection.sql("select asides_split(text, model) as split from traces order by id").fetchall()
    assert [row[0] for row in found] == rows
    names = connection.sql(
        "select asides_split(text, model).thinking, asides_split(text, model).calls[1].name from traces order by id"
    ).fetchall()
    calls = [row["calls"][0]["name"] if row and row["calls"] else None for row in rows]
    assert names == [(row and row["thinking"], call) for row, call in zip(rows, calls, strict=True)]
    written = tmp_path / "out.parquet"
    connection.execute(f"copy (select *, asides_split(text, model) as split from traces order by id) to '{written}'")
    assert pq.read_table(written)["split"].to_pylist() == rows


def test_the_other_functions(connection: Any) -> None:
    """The answer, the thinking, figures, in filters and aggregates too."""
    rows = expected(ROWS)
    found = connection.sql(
        "select asides_clean(text, 'qwen3'), asides_thinking(text, 'qwen3', null), asides_figures(text, model).calls "
        "from traces order by id"
    ).fetchall()
    assert found == [(row and row["text"], row and row["thinking"], row and len(row["calls"])) for row in rows]
    query = "select count(*) from traces where asides_split(text, model).termination = 'cut'"
    ((cut,),) = connection.sql(query).fetchall()
    assert cut == sum(row is not None and row["termination"] == "cut" for row in rows) > 0
    assert connection.sql("select asides_split(null), asides_clean(null)").fetchall() == [(None, None)]


def test_what_cannot_be_read(connection: Any) -> None:
    """Arguments when the functions are made, rows and columns in the query; registering again takes the place."""
    with pytest.raises(UnknownFormatError, match="did you mean qwen3"):
        asides.arrow.duckdb.register(connection, format="qwem3")
    for call, message in (
        ("asides_split('a', 'qwem3')", "row 0: unknown format 'qwem3'; did you mean qwen3"),
        ("asides_clean(1)", "must be a column of strings, not of int32"),
        ("asides_clean('a', 'b', 'c', 'd')", "takes a text, and perhaps a format and a prompt, not 4 arguments"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            connection.sql(f"select {call}").fetchall()
    asides.arrow.duckdb.register(connection, errors="null")
    ((code,),) = connection.sql("select asides_split('a', 'qwem3').error.code").fetchall()
    assert code == "unknown_format"


def test_the_example(tmp_path: Path) -> None:
    """As docs/how-to/engines.md has it."""
    check_example("DuckDB", tmp_path)
