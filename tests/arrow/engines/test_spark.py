"""Spark itself, with two workers on this machine (`local[2]`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

pyspark: Any = pytest.importorskip("pyspark.sql", reason="Spark is not installed: make test-engines")
if which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java 17, and there is no Java here", allow_module_level=True)

import asides.arrow.spark  # noqa: E402
from asides import UnknownFormatError, UsageError  # noqa: E402
from tests.arrow.engines.examples import ROOT, check_example  # noqa: E402
from tests.arrow.engines.rows import FORMATS, expected, table  # noqa: E402

ROWS = 4000
OPTIONS: dict[str, Any] = {"format_column": "model", "formats": FORMATS}
pytestmark = pytest.mark.filterwarnings("ignore")  # of Spark's own


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session of two workers, whose Python is this one."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    builder = pyspark.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "300").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def traces(spark: Any, tmp_path: Path) -> Any:
    """The rows, from a Parquet file, in four partitions."""
    pq.write_table(table(ROWS), tmp_path / "traces.parquet")
    return spark.read.parquet(str(tmp_path / "traces.parquet")).repartition(4)


def rows_of(frame: Any) -> list[Any]:
    """The new column as Python values, by `id`; each id once."""
    rows = [row.asDict(recursive=True) for row in frame.orderBy("id").collect()]
    assert [row["id"] for row in rows] == list(range(ROWS))
    return [row["split"] for row in rows]


@pytest.mark.parametrize("large", ["false", "true"])
def test_split(spark: Any, traces: Any, large: str) -> None:
    """Every row once, as the kernel has it; also with the large strings that Spark can be told to use."""
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large)
    assert rows_of(asides.arrow.spark.split(traces, "text", parts=True, **OPTIONS)) == expected(ROWS, parts=True)


def test_to_parquet(spark: Any, traces: Any, tmp_path: Path) -> None:
    """Written by two tasks or more, read back by pyarrow."""
    asides.arrow.spark.split(traces, "text", **OPTIONS).write.parquet(str(tmp_path / "out"))
    found = pq.read_table(tmp_path / "out").sort_by("id")
    assert found["split"].to_pylist() == expected(ROWS)
    assert len(list((tmp_path / "out").glob("part-*.parquet"))) >= 2


def test_the_work_is_done_by_two_processes(traces: Any) -> None:
    """Neither of them this one."""

    def pids(batches: Iterator[Any]) -> Iterator[Any]:
        import os
        import time

        import pyarrow as pa

        for batch in batches:
            time.sleep(0.05)
            yield pa.RecordBatch.from_pydict({"pid": pa.array([os.getpid()] * batch.num_rows, pa.int64())})

    split = asides.arrow.spark.split(traces, "text", **OPTIONS)
    found = {row["pid"] for row in split.mapInArrow(pids, "pid bigint").distinct().collect()}
    assert len(found) >= 2
    assert os.getpid() not in found


def test_nothing_is_shuffled(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Spark's own plan: a scan and a map, no exchange."""
    pq.write_table(table(10), tmp_path / "traces.parquet")
    frame = spark.read.parquet(str(tmp_path / "traces.parquet"))
    asides.arrow.spark.split(frame, "text").select("id", "split.thinking").explain()
    plan = capsys.readouterr().out
    assert "MapInArrow" in plan
    assert "Exchange" not in plan


def test_what_cannot_be_read(traces: Any) -> None:
    """Columns and formats before the job, rows in it."""
    with pytest.raises(UsageError, match="there is no column 'txet', did you mean 'text'"):
        asides.arrow.spark.split(traces, "txet")
    with pytest.raises(UnknownFormatError, match="did you mean qwen3"):
        asides.arrow.spark.split(traces, "text", format="qwem3")
    with pytest.raises(Exception, match="unknown format 'org/mine'"):
        asides.arrow.spark.split(traces, "text", format_column="model").collect()


def test_the_example(tmp_path: Path) -> None:
    """As docs/how-to/engines.md has it."""
    check_example("Spark", tmp_path)
