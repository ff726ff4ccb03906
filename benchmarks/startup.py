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
from collections.abc import Sequence
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
        "python -c 'import asides'": ["-c", "import asides"],
        "python -c 'import argparse, json, re'": ["-c", "import argparse, json, re"],
        "python -m asides --version": ["-m", "asides", "--version"],
        "python -m asides, empty input": ["-m", "asides"],
        "python -m asides, one short reply": ["-m", "asides"],
    }
    given = {"python -m asides, one short reply": b"<think>a</think>b\n"}
    functions = {
        name: _starting([sys.executable, *arguments], given.get(name, b"")) for name, arguments in commands.items()
    }
    times = measure.best_of_each(functions, repeat=STARTS)
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
        f"Start-up: best of {STARTS} starts. The aim of the import is for what it adds, that of the filter for the whole",
        ["", "whole", "added", "ratio", "aim", ""],
        rows,
    )


class _starting:
    """Starts a command and waits for its end."""

    def __init__(self, command: Sequence[str], given: bytes) -> None:
        self._command = command
        self._given = given

    def __call__(self) -> None:
        subprocess.run(self._command, input=self._given, capture_output=True, check=True)


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
                rows.append([f"{size // 1_000_000} MB is left out", "", "", "", ""])
                break
            path = Path(folder, "reply")
            half = samples.of_length(samples.PROSE + samples.CODE, size // 2)
            path.write_text(f"<think>\n{half}</think>\n{half}", encoding="utf-8")
            times = {name: _through(cat, path, command) for name, command in filters.items()}
            slowest = max(seconds for seconds, _ in times.values())
            for name, (seconds, memory) in times.items():
                cells = [measure.rate(size, seconds), measure.ratio(seconds, times["cat"][0]), memory]
                rows.append([name, f"{size // 1_000_000} MB", *cells])
    measure.print_table(
        "Throughput: `cat reply | FILTER`, half of the reply a thought, output to nowhere; as a ratio to `cat | cat`",
        ["filter", "through", "speed", "ratio", "most memory"],
        rows,
    )


def _through(cat: str, path: Path, command: Sequence[str]) -> tuple[float, str]:
    """Seconds, the better of two runs, and the most memory that the filter took."""
    best = float("inf")
    memory = "-"
    for _ in range(2):
        start = time.perf_counter()
        with subprocess.Popen([cat, str(path)], stdout=subprocess.PIPE) as source:
            reader = subprocess.Popen(
                command, stdin=source.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            if source.stdout is not None:
                source.stdout.close()
            if hasattr(os, "wait4"):
                _, status, usage = os.wait4(reader.pid, 0)
                reader.returncode = os.waitstatus_to_exitcode(status)
                # In kilobytes, but for macOS, which counts bytes.
                memory = f"{usage.ru_maxrss / (1e6 if sys.platform == 'darwin' else 1e3):.0f} MB"
            else:
                reader.wait()
        best = min(best, time.perf_counter() - start)
        if reader.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {reader.returncode}")
    return best, memory
