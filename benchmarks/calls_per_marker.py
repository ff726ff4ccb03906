"""Section `calls-per-marker`: how many functions of the package run, in how many files, when a marker is met.

Counted, not timed: a closing marker comes in two chunks inside an open thought, and a profile function sees every call
of a Python function of the package. The count is the same on every machine, so it says whether a change made the path
through the engine longer or shorter. `</thi` + `nk>` is the first row.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import asides
from benchmarks import measure

ROOT = str(Path(asides.__file__).parent)
MARKERS: dict[str, tuple[str, str, str]] = {
    "qwen3": ("<think>", "</thi", "nk>"),
    "auto": ("<think>", "</thi", "nk>"),
    "mistral": ("[THINK]", "[/THI", "NK]"),
    "harmony": ("<|channel|>analysis<|message|>", "<|e", "nd|>"),
}
"""By format: what opens a thought, and the two halves of what closes it."""


def count(format: str, opener: str, *chunks: str) -> Counter[str]:
    """The calls that feeding the chunks inside an open thought takes, by file."""

    def ready() -> asides.Parser:
        parser = asides.Parser(format)
        for chunk in (opener, "some words ", "and more"):
            parser.feed(chunk)
        return parser

    warm = ready()  # what is made once for each format is no cost of a marker
    for chunk in chunks:
        warm.feed(chunk)
    calls: Counter[str] = Counter()

    def see(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(ROOT):
            calls[name[len(ROOT) + 1 :]] += 1

    parser = ready()
    before = sys.getprofile()
    sys.setprofile(see)
    try:
        for chunk in chunks:
            parser.feed(chunk)
    finally:
        sys.setprofile(before)
    return calls


def run() -> None:
    """Print the counts."""
    rows = []
    for format, (opener, *halves) in MARKERS.items():
        calls = count(format, opener, *halves)
        names = ", ".join(f"{Path(name).stem} {number}" for name, number in calls.most_common())
        rows.append([format, " + ".join(halves), str(calls.total()), str(len(calls)), names])
    title = "Calls of Python functions when a closing marker comes in two chunks inside a thought"
    measure.print_table(title, ["format", "chunks", "calls", "files", "by file"], rows)
