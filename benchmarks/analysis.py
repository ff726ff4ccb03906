"""Section `analysis`: counting a file of traces, against reading the same file and against decoding its JSON.

Both references do far less: the first is the floor of the disk and the page cache, the second that of any program that
looks into the file at all.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

import asides
from asides.analysis import analyze
from asides.analysis._summary import Groups
from asides.analysis._traces import decode, find_replies
from benchmarks import measure, samples

COUNTS = (100, 1_000, 10_000)
SIZES = (500, 5_000, 50_000)
MOST = 25_000_000
"""Bytes of a file at most: larger ones take long and say nothing new."""
LOOPING = "We apply the second rule again and it does not fit, so we skip it. "
MUSING = "Wait, is that so? Let me check the sum. Alternatively, it could be five. No, it is four, actually.\n\n"
CHINESE = "等等，这个答案好像不对。让我再检查一下。或者，我们可以换个思路来解决这个问题。\n\n"
SIGNS = samples.PROSE.replace("; ", " — ").replace("nine,", "nine → ten,").replace("'", "’")
THINKING = {"prose": samples.PROSE, "signs": SIGNS, "musing": MUSING, "chinese": CHINESE, "looping": LOOPING}


def write(path: Path, thinking: str, count: int, size: int) -> None:
    """A file of traces, each with its own number in it so that no two are the same."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            text = f"<think>Number {number}. {samples.of_length(thinking, size)}</think>\n\nIt is {number}."
            file.write(json.dumps({"model": f"model {number % 4}", "text": text}, ensure_ascii=False) + "\n")


def read(path: Path) -> None:
    """The file's lines and nothing else."""
    with path.open("rb") as file:
        for _ in file:
            pass


def decoded(path: Path) -> None:
    """The file's lines as JSON."""
    with path.open("rb") as file:
        for line in file:
            msgspec.json.decode(line)


def parsed(path: Path) -> None:
    """The outputs taken apart, not counted."""
    with path.open("rb") as file:
        for line in file:
            find_replies(decode(line), asides.parse)


def counted(path: Path) -> None:
    """What `asides stats --by model` does."""
    groups = Groups()
    with path.open("rb") as file:
        for line in file:
            record = decode(line)
            for message in find_replies(record, asides.parse).replies:
                groups.add(record["model"], analyze(message))
    groups.all()


def compare(path: Path) -> list[str]:
    """The cells of one file."""
    functions: dict[str, Callable[[], object]] = {
        "read": lambda: read(path),
        "decode": lambda: decoded(path),
        "parse": lambda: parsed(path),
        "count": lambda: counted(path),
    }
    times = measure.best_of_each(functions, repeat=3)
    return [
        measure.rate(path.stat().st_size, times["read"]),
        measure.rate(path.stat().st_size, times["count"]),
        measure.ratio(times["count"], times["read"]),
        measure.ratio(times["count"], times["decode"]),
        measure.ratio(times["count"], times["parse"]),
    ]


def run() -> None:
    """Print the tables."""
    heads = ["file", "MB", "reading", "asides stats", "to reading", "to decoding", "to parsing"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        rows = []
        for count in COUNTS:
            for size in SIZES:
                if count * size <= MOST:
                    write(path, samples.PROSE, count, size)
                    name = f"{samples.count(count)} of {samples.count(size)}"
                    rows.append([name, f"{path.stat().st_size / 1e6:.1f}", *compare(path)])
        measure.print_table(
            "Traces of prose: counting as a ratio to reading the file, by number and length", heads, rows
        )
        rows = []
        for name, thinking in THINKING.items():
            write(path, thinking, 1_000, 5_000)
            rows.append([name, f"{path.stat().st_size / 1e6:.1f}", *compare(path)])
        measure.print_table("1k traces of 5k characters: by what is thought", heads, rows)
