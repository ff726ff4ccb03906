"""What Ray, Spark and Daft cost over the kernel alone: the same rows, by turns, in one run.

    python -m benchmarks.engines ray          # or spark, daft; ROWS=20000 in the environment for more

The kernel splits a table in this process. The engine has the same rows in eight parts on two workers (Daft: in one
part, in this process), splits them and counts what came out; its start and its first run are not in the ratio and are
printed apart. Wall time, because the work is done in other processes: two workers that cost nothing over the kernel
would show 0.5x where there are two free cores, and 1x where there is one.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asides.arrow import split

from .measure import best_of_each

ROWS = int(os.environ.get("ROWS", "20000"))
PARTS = 8
TRACE = "Let me look at that again, step by step. " * 60 + "</think>" + "The answer is 42. " * 30


def table() -> Any:
    """Traces of 3 kB."""
    import pyarrow as pa  # type: ignore[import-untyped]

    return pa.table({"text": [f"<think>{row} {TRACE}" for row in range(ROWS)]})


def ray(whole: Any, folder: Path) -> Callable[[], int]:
    """A dataset of blocks that Ray already holds."""
    import ray

    import asides.arrow.ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    size = -(-len(whole) // PARTS)
    dataset = ray.data.from_arrow([whole.slice(start, size) for start in range(0, len(whole), size)])
    return lambda: int(asides.arrow.ray.split(dataset, "text", format="qwen3").materialize().count())


def spark(whole: Any, folder: Path) -> Callable[[], int]:
    """Parquet, because Spark holds no rows without being asked to; its reading is in the figure.

    The files are written here, not by Spark: 600 MB that a program hands over pass through the driver and are shuffled,
    which took a minute for 200,000 rows and says nothing of splitting.
    """
    import pyarrow.parquet as pq  # type: ignore[import-untyped]
    from pyspark.sql import SparkSession

    import asides.arrow.spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    traces = folder / "traces"
    traces.mkdir()
    size = -(-len(whole) // PARTS)
    for part in range(PARTS):
        pq.write_table(whole.slice(part * size, size), traces / f"part-{part}.parquet")
    frame = session.read.parquet(str(folder / "traces"))

    def run() -> int:
        found = asides.arrow.spark.split(frame, "text", format="qwen3")
        found.write.format("noop").mode("overwrite").save()
        return ROWS

    return run


def daft(whole: Any, folder: Path) -> Callable[[], int]:
    """A frame in memory."""
    import daft

    import asides.arrow.daft

    frame = daft.from_arrow(whole).collect()
    column = asides.arrow.daft.split(frame["text"], "qwen3")
    return lambda: len(frame.with_column("split", column).collect())


ENGINES: dict[str, Callable[[Any, Path], Callable[[], int]]] = {"ray": ray, "spark": spark, "daft": daft}


def main(name: str) -> None:
    """Measure one engine and print a line."""
    whole = table()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = ENGINES[name](whole, Path(folder))
        if (rows := run()) != ROWS:
            sys.exit(f"{name}: {rows} rows came out of {ROWS}")
        started = time.perf_counter() - begun
        print(
            f"{name}: the first run is done after {started:.0f} s; three more, by turns with the kernel",
            file=sys.stderr,
        )
        kernel: Callable[[], object] = lambda: split(whole["text"], "qwen3")  # noqa: E731
        taken = best_of_each({"kernel": kernel, name: run}, repeat=3, clock=time.perf_counter)
    print(
        f"{name}: {ROWS:,} rows of {len(TRACE):,} characters: kernel alone {taken['kernel']:.2f} s, "
        f"{name} {taken[name]:.2f} s, {taken[name] / taken['kernel']:.1f}x; "
        f"start and first run {started:.0f} s"
    )


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ENGINES:
        sys.exit(f"usage: python -m benchmarks.engines {{{','.join(ENGINES)}}}")
    main(sys.argv[1])
