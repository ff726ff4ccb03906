"""Section `whole`: taking a whole text apart, against `str.find` for the same markers plus slicing the parts out.

The reference knows nothing of quotes, fences, calls or what a marker means: it is the floor, not a rival.
"""

from __future__ import annotations

from collections.abc import Callable

import asides
from asides._engine.format import THINKING
from asides._engine.markers import compile_tables
from asides.families import get_format
from asides.parts import Span
from benchmarks import measure, samples

AIM = 3.0
SIZES = (2_000, 20_000, 200_000, 2_000_000)
BLOCK = 200
"""Characters of a thought, and of a text, where there are many blocks."""
NAMES = ("qwen3", "auto", "harmony", "think_tag")


def thought(name: str, thinking: str, text: str) -> str:
    """One thought and one text in a format's own markers."""
    if name == "harmony":
        return (
            f"<|channel|>analysis<|message|>{thinking}<|end|><|start|>assistant<|channel|>final<|message|>{text}<|end|>"
        )
    return f"<think>{thinking}</think>{text}"


def shapes(name: str, size: int) -> dict[str, str]:
    """Texts of about `size` characters."""
    half = size // 2
    prose, code = (samples.of_length(sample, half) for sample in (samples.PROSE, samples.CODE))
    small = samples.PROSE[:BLOCK]
    return {
        "prose": thought(name, prose, prose),
        "code": thought(name, code, code),
        "many blocks": thought(name, small, small) * (size // (2 * BLOCK)),
    }


def markers_of(name: str) -> list[str]:
    """Every marker that our own parser looks for in text or in thinking."""
    tables = compile_tables(get_format(name), "resolve", True)
    return list(dict.fromkeys([*tables.text.markers, *tables.thinking.markers]))


def finder(text: str, markers: list[str], spans: list[Span]) -> Callable[[], object]:
    """Finds every marker everywhere, then cuts out the parts, which it is told."""

    def find() -> object:
        places: list[int] = []
        for marker in markers:
            at = text.find(marker)
            while at >= 0:
                places.append(at)
                at = text.find(marker, at + len(marker))
        return places, [text[start:stop] for start, stop in spans]

    return find


def compare(name: str, text: str) -> tuple[float, float]:
    """Seconds for `str.find` and for us."""
    spans = [part.span for part in asides.parse(text, name).parts]
    functions = {"find": finder(text, markers_of(name), spans), "ours": lambda: asides.parse(text, name)}
    number = measure.enough(functions["ours"], seconds=0.005)
    times = measure.best_of_each(functions, repeat=5, number=number)
    return times["find"], times["ours"]


def run() -> None:
    """Print both tables."""
    by_size()
    by_format()


def by_size() -> None:
    rows: list[list[str]] = []
    for name in NAMES:
        for shape in shapes(name, SIZES[0]):
            ratios: list[float] = []
            ours = 0.0
            for size in SIZES:
                find, ours = compare(name, shapes(name, size)[shape])
                ratios.append(ours / find)
            cells = [measure.ratio(found, 1.0) for found in ratios]
            speed = measure.rate(SIZES[-1], ours, "char")
            rows.append([name, str(len(markers_of(name))), shape, *cells, speed, measure.verdict(max(ratios), AIM)])
    measure.print_table(
        "Whole text: asides.parse, as a ratio to str.find for each of the format's markers plus slicing "
        f"(aim: at most {AIM:.0f}x)",
        ["format", "markers", "of", *map(samples.count, SIZES), "at 2M", ""],
        rows,
    )


def by_format() -> None:
    """Every registered format on the same prose, without a marker in it for want of a common one."""
    text = samples.of_length(samples.PROSE, 200_000)
    found: list[tuple[float, list[str]]] = []
    for name in asides.formats():
        if not get_format(name).states.get(THINKING):
            continue
        find, ours = compare(name, text)
        speed = measure.rate(len(text), ours, "char")
        cells = [str(len(markers_of(name))), measure.ratio(ours, find), speed, measure.verdict(ours / find, AIM)]
        found.append((ours / find, [name, *cells]))
    found.sort(key=lambda entry: -entry[0])
    chosen = [*found[:8], (0.0, ["...", "", "", "", ""]), *found[-3:]]
    measure.print_table(
        f"Whole text: the slowest and fastest of {len(found)} formats on 200k characters of prose, no marker in it",
        ["format", "markers", "ratio", "speed", ""],
        [row for _, row in chosen],
    )
