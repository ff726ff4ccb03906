"""`python -m benchmarks.gateway`: measures the gateway beside a byte pass-through, by turns in one run."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import uvloop

from benchmarks import measure
from benchmarks.gateway import processes
from benchmarks.gateway.load import Point, idle
from benchmarks.gateway.lockstep import Lockstep
from benchmarks.gateway.processes import Running
from benchmarks.gateway.reading import Dialect
from benchmarks.gateway.script import script

LONG, SHORT, SMALL = "step-150", "step-30", "step-12"
FRAMES = 10_000
"""Frames of a point, at least: as many replies on each stream as give so many."""
ROUNDS = 60
"""Requests of each client of a point."""
IDLE = 500
AT_ONCE = 16
"""Requests at once where they are answered whole."""
IDS = "asides, by ids"
OTHERS: tuple[Dialect, ...] = ("responses", "messages", "ollama")
NOTE = """\
In lockstep: a stream's next frame is sent only when the last has reached the client, so each is a read and a write of
its own. `cpu` is the time that the gateway's own process works for one frame or request, the best of the repeats; its
`ratio` is how many it does in a second of that time beside the pass-through, 1.00x being as many. `added` is how much
later than straight from the model server a frame arrives: the median, of the best repeat. Every reply is compared with
what the model said. The reference hands on bytes and reads none; the programs take turns.
"""


class Bench:
    """The programs, and what was measured of them."""

    def __init__(self, lockstep: Lockstep, targets: dict[str, Running], repeats: int) -> None:
        self._lockstep = lockstep
        self._targets = targets
        self._repeats = repeats
        self.wrong: list[str] = []

    def frames(self, names: Sequence[str], dialects: Sequence[Dialect], model: str, streams: int) -> list[list[Point]]:
        """The points of each target for streams."""
        rounds = max(1, FRAMES // (streams * len(script(model).pieces)))
        frames = partial(self._lockstep.frames, model=model, streams=streams, rounds=rounds)
        return self._points(names, dialects, model, frames)

    def requests(self, names: Sequence[str], dialects: Sequence[Dialect]) -> list[list[Point]]:
        """The points of each target for requests that are answered whole."""
        requests = partial(self._lockstep.requests, model=SMALL, at_once=AT_ONCE, rounds=ROUNDS)
        return self._points(names, dialects, SMALL, requests)

    def _points(
        self,
        names: Sequence[str],
        dialects: Sequence[Dialect],
        model: str,
        measure: Callable[[Running, Dialect], Point],
    ) -> list[list[Point]]:
        """Targets take turns, so that a slow moment of the machine falls on all of them."""
        found: list[list[Point]] = [[] for _ in names]
        for _ in range(self._repeats):
            for at, (name, dialect) in enumerate(zip(names, dialects, strict=True)):
                point = measure(self._targets[name], dialect)
                found[at].append(point)
                if point.right != point.replies and name != "litellm":
                    kinds = sorted(set(point.complaints))
                    self.wrong.append(f"{name} {dialect} {model}: {point.right}/{point.replies} right: {kinds[:3]}")
        return found


def frames_table(bench: Bench, names: Sequence[str], streams: int, model: str, aims: str) -> None:
    """Streams in chat."""
    everyone = ["direct", *names]
    points = dict(zip(everyone, bench.frames(everyone, list(map(_dialect, everyone)), model, streams), strict=True))
    base = min(median(point.waits) for point in points["direct"])
    cost = {name: min(point.processor / point.frames for point in points[name]) for name in names}
    added = {name: min(median(point.waits) for point in points[name]) - base for name in names}
    rows = [
        [
            name,
            measure.duration(cost[name]),
            f"{cost['pass-through'] / cost[name]:.2f}x",
            f"{added[name]:.2f} ms",
            f"{added[name] / added['pass-through']:.2f}x",
            _right(points[name]),
        ]
        for name in names
    ]
    headers = ("", "cpu", "ratio", "added p50", "ratio", "right")
    title = f"{streams} streams, replies of {model.partition('-')[2]} frames (aim: {aims})"
    measure.print_table(title, headers, rows)


def requests_table(bench: Bench, names: Sequence[str]) -> None:
    """Small requests in chat."""
    points = bench.requests(names, list(map(_dialect, names)))
    cost = [min(point.processor / point.replies for point in each) for each in points]
    rows = [
        [name, measure.duration(mine), f"{cost[0] / mine:.2f}x", _right(each)]
        for name, mine, each in zip(names, cost, points, strict=True)
    ]
    title = f"small requests answered whole, {AT_ONCE} at a time (aim: 0.50x)"
    measure.print_table(title, ("", "cpu", "ratio", "right"), rows)


def dialect_table(bench: Bench) -> None:
    """The other dialects, from the same chat upstream."""
    names, dialects = ["pass-through", *["asides"] * len(OTHERS)], ("raw", *OTHERS)
    streamed, answered = bench.frames(names, dialects, LONG, 64), bench.requests(names, dialects)
    frame = [min(point.processor / point.frames for point in each) for each in streamed]
    request = [min(point.processor / point.replies for point in each) for each in answered]
    rows = [
        [
            dialect,
            measure.duration(frame[at]),
            f"{frame[0] / frame[at]:.2f}x",
            measure.duration(request[at]),
            f"{request[0] / request[at]:.2f}x",
            _right([*streamed[at], *answered[at]]),
        ]
        for at, dialect in enumerate(dialects)
        if at
    ]
    measure.print_table("other dialects, 64 streams", ("", "frame", "ratio", "request", "ratio", "right"), rows)


def ids_table(bench: Bench) -> None:
    """The same stream read as text, and by the ids of its tokens."""
    names = ["asides", IDS]
    points = bench.frames(names, ["chat", "chat"], LONG, 64)
    cost = [min(point.processor / point.frames for point in each) for each in points]
    rows = [
        [name, measure.duration(mine), measure.ratio(mine, cost[0]), _right(each)]
        for name, mine, each in zip(names, cost, points, strict=True)
    ]
    measure.print_table("read as text and by ids, 64 streams (aim: 1.2x)", ("", "cpu", "ratio", "right"), rows)


def _right(points: Sequence[Point]) -> str:
    return f"{sum(point.right for point in points)}/{sum(point.replies for point in points)}"


def _dialect(name: str) -> Dialect:
    return "raw" if name in ("direct", "pass-through") else "chat"


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
    parser.add_argument("--repeats", type=int, default=5, help="of every point (default 5)")
    parser.add_argument("--ids", action="store_true", help="only what reading by the ids of tokens costs")
    parser.add_argument("--short", action="store_true", help="what has aims, and three repeats: half a minute")
    parser.add_argument("--litellm", type=Path, metavar="PROGRAM", help="measure litellm's proxy too: where it is")
    options = parser.parse_args()
    began = time.monotonic()
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    measure.print_machine()
    print(NOTE)
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner(loop_factory=uvloop.new_event_loop))
        lockstep = Lockstep(runner)
        stack.callback(lockstep.close)
        folder = Path(stack.enter_context(TemporaryDirectory()))
        commands = {"pass-through": processes.pass_through, "asides": processes.asides}
        targets = {"direct": Running(lockstep.port, os.getpid(), 0.0)}

        def start(name: str, command: list[str], port: int) -> None:
            # The model server is in this loop, so it must run while the program's first questions are answered.
            starting = processes.running(command, port, SMALL)
            targets[name] = runner.run(asyncio.to_thread(stack.enter_context, starting))

        for name, make in commands.items():
            port = processes.free_port()
            start(name, make(port, lockstep.port), port)
        names = list(commands)
        port = processes.free_port()
        start(IDS, processes.asides_by_ids(folder, port, lockstep.port), port)
        if options.litellm:
            port = processes.free_port()
            start(
                "litellm", processes.litellm(options.litellm, folder, (LONG, SHORT, SMALL), port, lockstep.port), port
            )
            names.append("litellm")
        bench = Bench(lockstep, targets, 3 if options.short else options.repeats)
        if options.ids:
            ids_table(bench)
            return _finish(bench, began)
        frames_table(bench, names, 64, LONG, "0.95x, added 1.3x")
        frames_table(bench, names, 200, LONG, "0.80x")
        frames_table(bench, names, 64, SHORT, "0.80x")
        requests_table(bench, names)
        ids_table(bench)
        if not options.short:
            dialect_table(bench)
            port = processes.free_port()
            fresh_table(stack.enter_context(processes.running(processes.upstream(port), port)).port)
        return _finish(bench, began)


def _finish(bench: Bench, began: float) -> int:
    for problem in bench.wrong:
        print(f"WRONG: {problem}")
    print(f"({time.monotonic() - began:.0f} s)")
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
