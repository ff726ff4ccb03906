"""Section `arrow`: splitting a column of traces, against reading and writing the same Parquet file with pyarrow alone.

Three questions. What does splitting add to a job that reads a file and writes one, and does it grow with the rows? Is
it faster than the regular expression people use, and than transformers' `parse_response`, row by row? And how many
rows does the regular expression get wrong, on recorded traces where they are at hand?

    python -m benchmarks arrow                  10 k and 100 k rows
    python -m benchmarks.arrow 1000000          as many rows as you say, one table (`make bench-batch`)
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

import asides
from asides.arrow import SPLIT, clean, split
from benchmarks import measure, peers, samples

ROWS = (10_000, 100_000)
LENGTH = 3_000
"""Characters of a trace: four fifths of it are thought."""
GROUP = 10_000
"""Rows of a row group, which is what is in memory at a time."""
MEMORY_ROWS = 2_000
"""Rows of the comparison in memory."""
EXPRESSION = re.compile("<think>.*?</think>", re.S)
TRACES = Path(__file__).parents[2] / "shared" / "data" / "traces"
AIM = 4.0


def shuffled(sample: str, length: int) -> str:
    """The sample's words in random order: a text that compresses about as texts do, which repetition would not."""
    chosen = random.Random(length).choices(sample.split(" "), k=length // 4)
    return " ".join(chosen)[:length]


class Traces:
    """Traces without end, each a thought and a text cut from somewhere in a long one."""

    def __init__(self, sample: str) -> None:
        self._source = shuffled(sample, 4_000_000)
        self._random = random.Random(0)

    def some(self, count: int) -> list[str]:
        """The next few."""
        return [self._one() for _ in range(count)]

    def _one(self) -> str:
        at = self._random.randrange(len(self._source) - LENGTH)
        middle, end = at + LENGTH * 4 // 5, at + LENGTH
        return f"<think>\n{self._source[at:middle]}\n</think>\n\n{self._source[middle:end]}"


def write_traces(path: str, rows: int) -> None:
    """A Parquet file of traces, as pyarrow writes one."""
    traces = Traces(samples.PROSE + samples.MARKDOWN)
    schema = pa.schema([("text", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP):
            writer.write_table(pa.table([pa.array(traces.some(min(GROUP, rows - start)))], schema))


def copy(source: str, target: str) -> None:
    """Read and write, and nothing else."""
    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, file.schema_arrow) as writer:
        for group in range(file.num_row_groups):
            writer.write_table(file.read_row_group(group))


def split_file(source: str, target: str, format: str) -> None:
    """Read, split, and write the columns of the split."""
    schema = pa.schema(list(SPLIT))
    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, schema) as writer:
        for group in range(file.num_row_groups):
            writer.write_table(pa.Table.from_struct_array(split(file.read_row_group(group)["text"], format)))


def clean_file(source: str, target: str, format: str) -> None:
    """Read, clean, and write the answers."""
    schema = pa.schema([("text", pa.string())])
    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, schema) as writer:
        for group in range(file.num_row_groups):
            writer.write_table(pa.table([clean(file.read_row_group(group)["text"], format)], schema))


def jobs(source: str, target: str) -> dict[str, Callable[[], object]]:
    """What is done with a file; the first is the reference."""
    return {
        "read and write": partial(copy, source, target),
        "split, qwen3": partial(split_file, source, target, "qwen3"),
        "split, auto": partial(split_file, source, target, "auto"),
        "clean, auto": partial(clean_file, source, target, "auto"),
    }


def print_files(counts: tuple[int, ...], repeat: int = 3) -> None:
    """The table of jobs: for each number of rows, processor time and wall time as ratios to reading and writing."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
        source, target = os.path.join(folder, "in.parquet"), os.path.join(folder, "out.parquet")
        rows = []
        for count in counts:
            write_traces(source, count)
            times = _both_clocks(jobs(source, target), repeat if count <= max(ROWS) else 1)
            (processor, wall), *_ = times.values()
            for name, (mine, waited) in times.items():
                over = measure.verdict(mine / processor, AIM)
                each = measure.duration(mine / count)
                ratios = [measure.ratio(mine, processor), measure.ratio(waited, wall), over]
                rows.append([f"{samples.count(count)} rows, {name}", each, *ratios])
    heads = ["job", "a row (CPU)", "CPU", "wall", "aim 4x"]
    measure.print_table(f"Traces of {LENGTH:,} characters, Parquet to Parquet, one process", heads, rows)


def _both_clocks(functions: dict[str, Callable[[], object]], repeat: int) -> dict[str, tuple[float, float]]:
    """The best processor time and the best wall time of each, by turns."""
    best = dict.fromkeys(functions, (float("inf"), float("inf")))
    for _ in range(repeat):
        for name, function in functions.items():
            processor, wall = time.process_time(), time.perf_counter()
            function()
            mine, waited = time.process_time() - processor, time.perf_counter() - wall
            best[name] = min(best[name][0], mine), min(best[name][1], waited)
    return best


def cleaners(texts: list[str]) -> dict[str, Callable[[], Any]]:
    """Ways from a column of traces to a column of answers, in memory, each in its own library's form."""
    column = pa.array(texts)
    found: dict[str, Callable[[], Any]] = {
        "asides.arrow.clean, qwen3": partial(clean, column, "qwen3"),
        "asides.arrow.clean, auto": partial(clean, column),
        "asides.arrow.split, auto": partial(split, column),
        "asides.clean in a list": lambda: [asides.clean(text) for text in texts],
        "re.sub in a list": lambda: [EXPRESSION.sub("", text) for text in texts],
    }
    pandas, polars = _optional("pandas"), _optional("polars")
    if pandas is not None:
        series = pandas.Series(texts)
        found["pandas, str.replace"] = lambda: series.str.replace(EXPRESSION, "", regex=True)
    if polars is not None:
        frame = polars.Series(texts)
        found["Polars, str.replace_all"] = lambda: frame.str.replace_all("(?s)<think>.*?</think>", "")
    transformers = peers.Transformers()
    if transformers.available() is None:
        found["transformers, parse_response in a list"] = lambda: [transformers.split_whole(text)[1] for text in texts]
    return found


def _optional(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None


def print_cleaners() -> None:
    """The table of ways to clean."""
    rows = []
    for kind in ("prose", "markdown", "code"):
        texts = Traces(samples.KINDS[kind]).some(MEMORY_ROWS)
        times = measure.best_of_each(cleaners(texts), repeat=5)
        reference = times["asides.arrow.clean, auto"]
        rows += [
            [f"{kind}: {name}", measure.duration(seconds / MEMORY_ROWS), measure.ratio(seconds, reference)]
            for name, seconds in times.items()
        ]
    heads = ["", "a row", "to clean, auto"]
    measure.print_table(f"Answers from {LENGTH:,}-character traces in memory: processor time", heads, rows)


def print_differences() -> None:
    """How many recorded traces the regular expression cleans to other words, and what is wrong with those."""
    if not TRACES.is_dir():
        print("Recorded traces are not at hand, so nothing is said of where the regular expression is wrong.\n")
        return
    rows = []
    for path in sorted(TRACES.glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            texts = [json.loads(line)["text"] for line in file]
        found = Counter(map(_difference, texts, split(pa.array(texts)).to_pylist()))
        counts = [found[kind] for kind in ("call", "thought", "other")]
        rows.append([path.stem, f"{len(texts):,}", f"{sum(counts):,}", *map(str, counts)])
    heads = ["file", "rows", "wrong", "a call in the answer", "a thought for the answer", "other"]
    measure.print_table("Recorded traces whose words re.sub gets wrong", heads, rows)


def _difference(text: str, row: dict[str, Any]) -> str:
    """What the regular expression gets wrong. Whitespace is no matter."""
    if EXPRESSION.sub("", text).split() == row["text"].split():
        return ""
    return "call" if row["calls"] else "thought" if "unclosed_thinking" in row["notices"] else "other"


def run() -> None:
    """Print the tables."""
    print_files(ROWS)
    print_cleaners()
    print_differences()


if __name__ == "__main__":
    measure.print_machine()
    print_files(tuple(map(int, sys.argv[1:])) or (*ROWS, 1_000_000))
    print_cleaners()
    print_differences()
