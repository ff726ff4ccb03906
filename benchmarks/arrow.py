"""Section `arrow`: splitting a column of traces, against reading and writing the same Parquet file with pyarrow alone.

Four questions. What does splitting add to a job that reads a file and writes one, and does it grow with the rows? How
does `asides batch` grow with its processes? Is the kernel faster than the regular expression people use, and than
transformers' `parse_response`, row by row? And how many rows do those two get wrong, on recorded traces where they are
at hand?

    python -m benchmarks arrow                  10 k and 100 k rows
    python -m benchmarks.arrow 1000000          as many rows as you say, one table (`make bench-batch`)
    python -m benchmarks.arrow jobs 120000      how `asides batch` grows with its processes, alone
    python -m benchmarks.arrow wrong            what others get wrong, alone
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
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
TRACES = Path(os.environ.get("BENCH_TRACES") or Path(__file__).parents[2] / "shared" / "data" / "traces")
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


CLOCKED = """
import resource, sys, time
begun = time.perf_counter()
from asides._cli import main
code = main(["batch", *sys.argv[1:]])
mine, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
taken = [each.ru_utime + each.ru_stime for each in (mine, workers)]
print(code, time.perf_counter() - begun, *taken, file=sys.stderr)
"""


def run_job(source: str, target: str, jobs: int, *options: str) -> tuple[float, float, float]:
    """`asides batch`: wall time, processor time of the process that plans and joins, and of its workers."""
    command = [sys.executable, "-c", CLOCKED, source, "-o", target, "--force", "--jobs", str(jobs), *options]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    code, wall, mine, workers = done.stderr.splitlines()[-1].split()
    if code != "0":
        raise SystemExit(done.stderr)
    return float(wall), float(mine), float(workers)


def print_scaling(counts: tuple[int, ...], repeat: int = 3) -> None:
    """How `asides batch` grows with its processes. Start-up is that of the same job on one row, and is taken off.

    On a machine that others share, wall times say little. What bounds the growth is what one process does alone, so its
    processor time is shown too: with as many free cores, N processes take the workers' time through N, or that time,
    whichever is more.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    rows = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
        source, target = os.path.join(folder, "in.parquet"), os.path.join(folder, "out.parquet")
        for count in counts:
            write_traces(source, count)
            alone = 0.0
            for jobs in sorted({1, 2, cores}):
                runs = [run_job(source, target, jobs) for _ in range(repeat if count <= max(ROWS) else 1)]
                starts = [run_job(source, target, jobs, "--limit", "1") for _ in range(repeat)]
                wall, mine, workers = (min(each) for each in zip(*runs, strict=True))
                start, mine_start, _ = (min(each) for each in zip(*starts, strict=True))
                working = wall - start
                alone = alone or working
                rows.append(
                    [
                        f"{samples.count(count)} rows, {jobs} job{'s' * (jobs > 1)}",
                        measure.duration(wall),
                        measure.duration(start),
                        f"{alone / working / jobs:.2f}x",
                        measure.duration(mine),
                        measure.duration(workers) if workers else "-",
                        measure.duration(max(0.0, mine - mine_start)) if jobs > 1 else "-",
                    ]
                )
    heads = ["job", "wall", "start-up", "of the cores", "CPU, parent", "CPU, workers", "alone, without start-up"]
    measure.print_table(f"asides batch, traces of {LENGTH:,} characters, {cores} cores", heads, rows)


def print_differences() -> None:
    """How many recorded traces others clean to other words, and what is wrong with those."""
    if not TRACES.is_dir():
        print("Recorded traces are not at hand, so nothing is said of where others are wrong.\n")
        return
    transformers = peers.Transformers()
    reason = transformers.available()
    ways: dict[str, Callable[[str], str]] = {"re.sub": partial(EXPRESSION.sub, "")}
    if reason is None:
        ways[f"parse_response of transformers {transformers.version()}"] = lambda text: transformers.split_whole(text)[
            1
        ]
    else:
        print(f"transformers is not measured: {reason}\n")
    kinds = ("raises", "call", "thought", "other")
    for name, way in ways.items():
        rows = []
        totals: Counter[str] = Counter()
        for path in sorted(TRACES.glob("*.jsonl")):
            with path.open(encoding="utf-8") as file:
                texts = [json.loads(line)["text"] for line in file]
            found = Counter(map(partial(_difference, way), texts, split(pa.array(texts)).to_pylist()))
            found["rows"] = len(texts)
            totals += found
            rows.append([path.stem, *_counted(found, kinds)])
        rows.append(["all", *_counted(totals, kinds)])
        heads = ["file", "rows", "wrong", "raises", "a call in the answer", "a thought for the answer", "other"]
        measure.print_table(f"Recorded traces whose words {name} gets wrong", heads, rows)


def _counted(found: Counter[str], kinds: tuple[str, ...]) -> list[str]:
    return [f"{found['rows']:,}", f"{sum(found[kind] for kind in kinds):,}", *(str(found[kind]) for kind in kinds)]


def _difference(way: Callable[[str], str], text: str, row: dict[str, Any]) -> str:
    """What a way to clean gets wrong. Whitespace is no matter."""
    try:
        cleaned = way(text)
    except Exception:
        return "raises"
    if cleaned.split() == row["text"].split():
        return ""
    return "call" if row["calls"] else "thought" if "unclosed_thinking" in row["notices"] else "other"


def run() -> None:
    """Print the tables."""
    print_files(ROWS)
    print_cleaners()
    print_differences()


def main(arguments: list[str]) -> None:
    """What is asked for; without arguments all of it, up to a million rows."""
    what = arguments.pop(0) if arguments and arguments[0] in ("jobs", "wrong") else ""
    counts = tuple(map(int, arguments))
    measure.print_machine()
    if not what:
        print_files(counts or (*ROWS, 1_000_000))
    if what != "wrong":
        print_scaling(counts or (120_000, 1_000_000))
    if not what:
        print_cleaners()
    if what != "jobs":
        print_differences()


if __name__ == "__main__":
    main(sys.argv[1:])
