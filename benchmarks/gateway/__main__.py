"""`python -m benchmarks.gateway`: measures the gateway beside a byte pass-through, by turns in one run."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import uvloop

from benchmarks import measure
from benchmarks.gateway import processes
from benchmarks.gateway.load import Point, idle
from benchmarks.gateway.load import measure as load
from benchmarks.gateway.processes import Running
from benchmarks.gateway.reading import Dialect

PACED, BURST = "paced-100", "burst-300"
IDLE = 500
ROUNDS = 2
"""Replies on each stream of a point."""
OTHERS: tuple[Dialect, ...] = ("responses", "messages", "ollama")
NOTE = """\
Frames are those that the upstream sends, one every 10 ms on each stream where paced. `per cpu s` is frames for each
second that the gateway's own process works. `added` is how much later than straight from the upstream a piece's last
visible character arrives. `per read` is how many frames came at once: well above 1, the machine was too busy for the
pace, and both `per cpu s` (too good) and `added` (too bad) tell more of that than of the gateway. Every reply is
compared with what the model said. The reference hands on bytes and reads none.
"""


class Bench:
    """The programs, and what was measured of them."""

    def __init__(self, upstream: Running, targets: dict[str, Running], repeats: int) -> None:
        self._upstream = upstream
        self._targets = targets
        self._repeats = repeats
        self.wrong: list[str] = []

    def points(self, names: Sequence[str], dialects: Sequence[Dialect], model: str, streams: int) -> list[list[Point]]:
        """The points of each target, which take turns so that a slow moment of the machine falls on all."""
        found: list[list[Point]] = [[] for _ in names]
        for _ in range(self._repeats):
            for at, (name, dialect) in enumerate(zip(names, dialects, strict=True)):
                target = self._targets[name]
                port = self._upstream.port
                point = uvloop.run(load(target.port, target.pid, port, dialect, model, streams, ROUNDS))
                found[at].append(point)
                if point.right != point.replies and name != "litellm":
                    kinds = sorted(set(point.complaints))
                    self.wrong.append(f"{name} {dialect} {model}: {point.right}/{point.replies} right: {kinds[:3]}")
        return found


def paced_table(bench: Bench, names: Sequence[str], streams: int, title: str) -> dict[str, float]:
    """Paced streams in chat; returns the frames per processor second of each."""
    everyone = ["direct", *names]
    points = bench.points(everyone, [_dialect(name) for name in everyone], PACED, streams)
    base = median(_middle(point.waits) for point in points[0])
    rate = {name: median(p.per_processor_second for p in each) for name, each in zip(everyone, points, strict=True)}
    added = {
        name: median(_middle(p.waits) for p in each) - base
        for name, each in zip(everyone, points, strict=True)
        if all(p.waits for p in each)
    }
    rows = []
    for name, each in zip(everyone, points, strict=True):
        if name == "direct":
            continue
        spread = max(p.per_processor_second for p in each) / max(1.0, min(p.per_processor_second for p in each))
        rows.append(
            [
                name,
                f"{rate[name]:,.0f}",
                f"{rate[name] / rate['pass-through']:.2f}x",
                f"{spread:.2f}",
                f"{sum(p.frames for p in each) / max(1, sum(p.reads for p in each)):.1f}",
                f"{added[name]:.2f} ms" if name in added else "-",
                f"{added[name] / added['pass-through']:.2f}x" if name in added and added["pass-through"] > 0 else "-",
                f"{sum(p.right for p in each)}/{sum(p.replies for p in each)}",
            ]
        )
    headers = ("", "per cpu s", "ratio", "max/min", "per read", "added p50", "ratio", "right")
    measure.print_table(title, headers, rows)
    return rate


def burst_table(bench: Bench, names: Sequence[str]) -> None:
    """As fast as it goes."""
    points = bench.points(names, [_dialect(name) for name in names], BURST, 64)
    rows = []
    reference = median(p.frames / p.seconds for p in points[0])
    for name, each in zip(names, points, strict=True):
        speed = median(p.frames / p.seconds for p in each)
        rows.append(
            [
                name,
                f"{speed:,.0f}",
                f"{speed / reference:.2f}x",
                f"{median(p.per_processor_second for p in each):,.0f}",
                f"{median(_middle(p.first) for p in each):.0f} ms",
                f"{sum(p.right for p in each)}/{sum(p.replies for p in each)}",
            ]
        )
    headers = ("", "frames/s", "ratio", "per cpu s", "first byte", "right")
    measure.print_table("64 streams as fast as they go", headers, rows)


def dialect_table(bench: Bench, reference: float) -> None:
    """The other dialects, from the same chat upstream."""
    points = bench.points(["asides"] * len(OTHERS), OTHERS, PACED, 200)
    rows = []
    for dialect, each in zip(OTHERS, points, strict=True):
        rate = median(p.per_processor_second for p in each)
        right = f"{sum(p.right for p in each)}/{sum(p.replies for p in each)}"
        rows.append([dialect, f"{rate:,.0f}", f"{rate / reference:.2f}x", right])
    measure.print_table("other dialects, 200 paced streams", ("", "per cpu s", "ratio", "right"), rows)


def _dialect(name: str) -> Dialect:
    return "raw" if name in ("direct", "pass-through") else "chat"


def _middle(values: list[float]) -> float:
    return median(values) if values else 0.0


def fresh_table(upstream: int) -> None:
    """What shows only in a fresh process: how long until it takes connections, and what an idle stream takes."""
    makers = {"pass-through": processes.pass_through, "asides": processes.asides}
    times: dict[str, list[float]] = {name: [] for name in makers}
    sizes: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(3):
        for name, make in makers.items():
            port = processes.free_port()
            with processes.running(make(port, upstream), port) as target:
                times[name].append(target.started)
                sizes[name].append(uvloop.run(idle(port, target.pid, _dialect(name), IDLE)))
    rows = [
        [name, measure.duration(min(times[name])), measure.duration(max(times[name])), f"{median(sizes[name]):.1f} kB"]
        for name in makers
    ]
    headers = ("", "start-up", "worst of 3", f"each of {IDLE} idle streams")
    measure.print_table("fresh processes", headers, rows)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description="Measure the gateway.")
    parser.add_argument("--repeats", type=int, default=3, help="of every point (default 3)")
    parser.add_argument("--litellm", type=Path, metavar="PROGRAM", help="measure litellm's proxy too: where it is")
    options = parser.parse_args()
    began = time.monotonic()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    measure.print_machine()
    print(NOTE)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        port = processes.free_port()
        upstream = stack.enter_context(processes.running(processes.upstream(port), port))
        commands = {"pass-through": processes.pass_through, "asides": processes.asides}
        targets = {"direct": upstream}
        for name, make in commands.items():
            port = processes.free_port()
            targets[name] = stack.enter_context(processes.running(make(port, upstream.port), port))
        names = list(commands)
        if options.litellm:
            port = processes.free_port()
            models = ("burst-9", PACED, BURST)
            command = processes.litellm(options.litellm, folder, models, port, upstream.port)
            targets["litellm"] = stack.enter_context(processes.running(command, port))
            names.append("litellm")
        bench = Bench(upstream, targets, options.repeats)
        paced_table(bench, names, 64, "64 paced streams")
        many = paced_table(bench, names, 200, "200 paced streams")
        burst_table(bench, names)
        dialect_table(bench, many["pass-through"])
        fresh_table(upstream.port)
    for problem in bench.wrong:
        print(f"WRONG: {problem}")
    print(f"({time.monotonic() - began:.0f} s)")
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
