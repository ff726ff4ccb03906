"""Owns timing, and printing what was timed: the best of several repeats, ratios, tables, the machine.

Must not know asides or any peer: a figure is only worth something if the ruler has no favourite.
"""

from __future__ import annotations

import gc
import itertools
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType


def best(function: Callable[[], object], *, repeat: int = 7, number: int = 1) -> float:
    """Seconds per call: the best of `repeat` runs of `number` calls each.

    The best, because noise only ever adds time. Calling costs some 30 ns that are counted too: to
    measure something smaller, let `function` loop and divide.
    """
    return min(_run(function, number) for _ in range(repeat)) / number


def best_of_each(
    functions: Mapping[str, Callable[[], object]],
    *,
    repeat: int = 7,
    number: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Like `best` for several functions that will be compared, by name.

    Their runs take turns, so a slow moment of the machine falls on all of them and the ratios hold. What waits for
    another process needs another clock, `time.perf_counter`.
    """
    shortest = dict.fromkeys(functions, float("inf"))
    for _ in range(repeat):
        for name, function in functions.items():
            shortest[name] = min(shortest[name], _run(function, number, clock))
    return {name: seconds / number for name, seconds in shortest.items()}


def best_of_fresh(makers: Mapping[str, Callable[[], Callable[[], object]]], *, repeat: int = 5) -> dict[str, float]:
    """Like `best_of_each`, for what can be run only once: each maker prepares a run, untimed, and returns it."""
    shortest = dict.fromkeys(makers, float("inf"))
    for _ in range(repeat):
        for name, make in makers.items():
            shortest[name] = min(shortest[name], _run(make(), 1))
    return shortest


def enough(function: Callable[[], object], *, seconds: float = 0.1) -> int:
    """How many calls take about `seconds`: a `number` for which the clock's own grain is no matter."""
    number = 1
    while (taken := _run(function, number)) < seconds:
        # Aim a little past the goal, but no more than tenfold at once: the first call may be a slow one.
        number = max(number + 1, min(number * 10, int(number * 1.2 * seconds / max(taken, 1e-9))))
    return number


def calls(function: Callable[[], object]) -> int:
    """How many functions a call makes, Python's and those written in C: the same on any machine, however busy."""
    count = 0

    def tally(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tally)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def settle() -> None:
    """Let the collector forget what is there now: it would walk through every imported module before every run."""
    gc.collect()
    gc.freeze()


def _run(function: Callable[[], object], number: int, clock: Callable[[], float] = time.process_time) -> float:
    # Garbage of the run before is not this run's cost. The collector stays on, unlike in timeit: code
    # that makes many objects pays for them in a real program too.
    gc.collect()
    turns = itertools.repeat(None, number)
    # The processor's time, not the clock's on the wall: what another program takes in between is not counted.
    start = clock()
    for _ in turns:
        function()
    return clock() - start


def duration(seconds: float) -> str:
    """A time in the unit that suits it: `840 ns`, `1.25 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{_three_digits(seconds / size)} {unit}"
    return f"{_three_digits(seconds / 1e-9)} ns"


def ratio(seconds: float, reference: float) -> str:
    """How many times the reference's time this took: `0.50x` is half of it, so twice as fast."""
    return f"{_three_digits(seconds / reference)}x" if reference > 0 else "-"


def rate(amount: float, seconds: float, unit: str = "B") -> str:
    """An amount per second: `12.3 MB/s`."""
    each = amount / seconds if seconds > 0 else float("inf")
    for prefix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if each >= size:
            return f"{_three_digits(each / size)} {prefix}{unit}/s"
    return f"{_three_digits(each)} {unit}/s"


def _three_digits(number: float) -> str:
    # More digits than that would claim a precision that one run does not have.
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def verdict(found: float, aim: float) -> str:
    """Whether a ratio is within its aim: empty, or `over`."""
    return "over" if found > aim else ""


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns: the first to the left, for names; the others to the right, for figures."""
    widths = [max(len(row[column]) for row in (headers, *rows)) for column in range(len(headers))]
    lines = (headers, ["-" * width for width in widths], *rows)
    return "\n".join(_line(cells, widths) for cells in lines)


def print_table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a title, the table, and an empty line."""
    print(f"{title}\n\n{table(headers, rows)}\n")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    name, *figures = (
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((name, *figures)).rstrip()


def machine() -> dict[str, str]:
    """What the figures depend on: the interpreter, the processor, its cores, and how busy it already is."""
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}, {platform.system()}",
        "processor": _processor(),
        "cores": str(_cores()),
        "load": _load(),
    }


def print_machine() -> None:
    """Print the facts of `machine`, one to a line."""
    for fact, value in machine().items():
        print(f"{fact + ':':<11}{value}")
    print()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # Not Linux.
    try:
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        pass  # Not macOS either.
    return platform.processor() or platform.machine() or "unknown"


def _cores() -> int:
    # A container may be allowed fewer cores than the machine has.
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _load() -> str:
    try:
        return f"{os.getloadavg()[0]:.2f} in the last minute"
    except (AttributeError, OSError):
        return "unknown"
