"""Polars itself: eager, lazy and streaming frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pl: Any = pytest.importorskip("polars", reason="Polars is not installed: make test-engines-light")

import asides.arrow.polars  # noqa: E402, F401
from asides import UnknownFormatError  # noqa: E402
from asides.arrow import split  # noqa: E402
from tests.arrow.engines.examples import check_example  # noqa: E402
from tests.arrow.engines.rows import FORMATS, expected, table  # noqa: E402

ROWS = 5000
SPLIT = "split"


def column(**options: Any) -> Any:
    """The expression, with the format of each row in a column."""
    return pl.col("text").asides.split(pl.col("model"), formats=FORMATS, **options).alias(SPLIT)


def test_eager_lazy_and_streaming(tmp_path: Path) -> None:
    """The same rows and the same type, also from and to Parquet by the streaming engine."""
    frame = pl.from_arrow(table(ROWS))
    whole = frame.with_columns(column(parts=True))
    assert whole[SPLIT].to_list() == expected(ROWS, parts=True)
    frame.write_parquet(tmp_path / "in.parquet", row_group_size=300)
    lazy = pl.scan_parquet(tmp_path / "in.parquet").with_columns(column(parts=True))
    assert lazy.collect_schema() == whole.schema
    assert lazy.collect().equals(whole)
    assert lazy.collect(engine="streaming").equals(whole)
    lazy.sink_parquet(tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet").equals(whole)


def test_the_streaming_engine_hands_out_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the whole column at once: a file larger than memory is no matter."""
    pl.from_arrow(table(ROWS)).write_parquet(tmp_path / "in.parquet", row_group_size=300)
    sizes = []

    def counted(texts: Any, *arguments: Any, **keywords: Any) -> Any:
        sizes.append(len(texts))
        return split(texts, *arguments, **keywords)

    monkeypatch.setattr("asides.arrow.polars.split", counted)
    pl.scan_parquet(tmp_path / "in.parquet").select(column()).collect(engine="streaming")
    assert sum(sizes) == ROWS
    assert max(sizes) < ROWS / 4


def test_only_the_column_is_read(tmp_path: Path) -> None:
    """The optimizer sees through: other columns stay on the disk."""
    pl.from_arrow(table(10)).write_parquet(tmp_path / "in.parquet")
    plan = pl.scan_parquet(tmp_path / "in.parquet").select(pl.col("text").asides.clean()).explain()
    assert "PROJECT 1/3 COLUMNS" in plan


def test_the_other_functions() -> None:
    """The answer, the thinking, figures; a literal format; a category; no rows."""
    frame = pl.from_arrow(table(16))
    found = frame.select(
        pl.col("text").asides.clean(pl.lit("qwen3")).alias("clean"),
        pl.col("text").asides.thinking("qwen3").alias("thinking"),
        pl.col("text").cast(pl.Categorical).asides.clean("qwen3").alias("category"),
        pl.col("text").asides.figures("qwen3").struct.field("calls"),
    )
    rows = expected(16)
    assert found["clean"].to_list() == [row and row["text"] for row in rows]
    assert found["category"].to_list() == found["clean"].to_list()
    assert found["thinking"].to_list() == [row and row["thinking"] for row in rows]
    assert found["calls"].to_list() == [row and len(row["calls"]) for row in rows]
    nothing = frame.clear().select(column())
    assert nothing.schema == frame.select(column()).schema
    grouped = frame.group_by("model").agg(column().struct.field("text"))
    assert sorted(str(text) for texts in grouped["text"] for text in texts) == sorted(
        str(row and row["text"]) for row in rows
    )


def test_what_cannot_be_read() -> None:
    """Arguments when the expression is written; rows when it runs, as an error of Polars."""
    frame = pl.from_arrow(table(8))
    with pytest.raises(UnknownFormatError, match="did you mean qwen3"):
        pl.col("text").asides.split("qwem3")
    with pytest.raises(pl.exceptions.ComputeError, match="row 0: unknown format 'qwem3'; did you mean qwen3"):
        frame.select(pl.col("text").asides.split(pl.lit("qwem3")))
    with pytest.raises(pl.exceptions.ComputeError, match="must be a column of strings, not of int64"):
        frame.select(pl.col("id").asides.split())
    errors = frame.select(pl.col("text").asides.split(pl.lit("qwem3"), errors="null").struct.field("error"))
    assert errors["error"][0]["code"] == "unknown_format"


def test_the_example(tmp_path: Path) -> None:
    """As docs/how-to/engines.md has it."""
    check_example("Polars", tmp_path)
