"""Section `startup`: importing asides, starting the filter, and the filter's throughput against `cat`.

Everything is a process of its own, started as a user's shell would start it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import measure, samples

IMPORT_AIM = 0.040
FILTER_AIM = 0.120
STARTS = 15
SIZES = (10_000_000, 100_000_000)
"""Bytes through the filter."""
PATIENCE = 20.0
"""The larger amount is left out if the smaller one tells that it would take longer than this, in seconds."""


def run() -> None:
    """Print both tables."""
    print_starts()
    print_throughput()


def print_starts() -> None:
    commands = {
        "python -c pass": ["-c", "pass"],
        "python -c 'import msgspec'": ["-c", "import msgspec"],
        "python -c 'import asides'": ["-c", "import asides"],
        "python -m asides --version": ["-m", "asides", "--version"],
        "python -m asides, empty input": ["-m", "asides"],
        "python -m asides, one short reply": ["-m", "asides"],
    }
    given = {"python -m asides, one short reply": b"<think>a</think>b\n"}
    with tempfile.TemporaryDirectory() as folder:
        # A user's Python keeps what it has compiled, even where this one is told not to.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        functions = {
            name: _Starting([sys.executable, *arguments], given.get(name, b""), environment)
            for name, arguments in commands.items()
        }
        for function in functions.values():
            function()
        times = measure.best_of_each(functions, repeat=STARTS, clock=time.perf_counter)
    bare = times["python -c pass"]
    aims = {
        "python -c 'import asides'": (IMPORT_AIM, times["python -c 'import asides'"] - bare),
        "python -m asides, empty input": (FILTER_AIM, times["python -m asides, empty input"]),
    }
    rows: list[list[str]] = []
    for name, seconds in times.items():
        aim, found = aims.get(name, (0.0, 0.0))
        cells = [measure.duration(seconds), measure.duration(max(seconds - bare, 0.0)), measure.ratio(seconds, bare)]
        rows.append([name, *cells, f"{aim * 1000:.0f} ms" if aim else "", measure.verdict(found, aim) if aim else ""])
    measure.print_table(
        f"Start-up: best of {STARTS} starts. The import's aim is for what it adds, the filter's for all of it",
        ["", "whole", "added", "ratio", "aim", ""],
        rows,
    )


class _Starting:
    """Starts a command and waits for its end."""

    def __init__(self, command: Sequence[str], given: bytes, environment: Mapping[str, str]) -> None:
        self._command = command
        self._given = given
        self._environment = environment

    def __call__(self) -> None:
        subprocess.run(self._command, input=self._given, capture_output=True, check=True, env=self._environment)


def print_throughput() -> None:
    cat = shutil.which("cat")
    if cat is None:
        print("Throughput is left out: there is no `cat` here to compare with.\n")
        return
    filters = {
        "cat": [cat],
        "asides": [sys.executable, "-m", "asides"],
        "asides -f qwen3": [sys.executable, "-m", "asides", "-f", "qwen3"],
        "asides --json": [sys.executable, "-m", "asides", "--json"],
    }
    rows: list[list[str]] = []
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            if slowest * size / SIZES[0] * len(filters) > PATIENCE:
                rows.append([f"{size // 1_000_000} MB is left out", "", "", ""])
                break
            path = Path(folder, "reply")
            half = samples.of_length(samples.PROSE + samples.CODE, size // 2)
            path.write_text(f"<think>\n{half}</think>\n{half}", encoding="utf-8")
            times = {name: _through(cat, path, command) for name, command in filters.items()}
            slowest = max(times.values())
            for name, seconds in times.items():
                cells = [measure.rate(size, seconds), measure.ratio(seconds, times["cat"])]
                rows.append([name, f"{size // 1_000_000} MB", *cells])
    measure.print_table(
        "Throughput: `cat reply | FILTER`, half of the reply a thought, output to nowhere; as a ratio to `cat | cat`",
        ["filter", "through", "speed", "ratio"],
        rows,
    )


def _through(cat: str, path: Path, command: Sequence[str]) -> float:
    """Seconds, the better of two runs. The start of the process is among them."""
    best = float("inf")
    for _ in range(2):
        start = time.perf_counter()
        with subprocess.Popen([cat, str(path)], stdout=subprocess.PIPE) as source:
            subprocess.run(
                command, stdin=source.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
            )
        best = min(best, time.perf_counter() - start)
    return best
