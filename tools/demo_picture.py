"""The film of `asides demo` in the README: raw output on the left, its parts on the right, as an animated SVG.

    python -m tools.demo_picture --write       writes docs/images/demo.svg
    python -m tools.demo_picture               ends with 1 if the film is not current

A row is an element for as long as it stands as it is, shown and hidden by the SVG's own clock, so no script runs and
a page may show it as an image. Made from the same rows as the terminal draws.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from asides._api import Parser
from asides._cli.demo.command import chunks, scenes
from asides._cli.demo.panes import GUTTER, Panes, Row

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "demo.svg"
COLUMNS, ROWS = 104, 16
CELL, LINE, EDGE = 8.4, 20, 18
CHUNKS_PER_PICTURE = 2
SECONDS_PER_PICTURE = 0.14
HOLD = 2.5
"""Seconds that a finished scene stays."""
SHOWN = ("A thought, an answer", "A call that is only a draft, and one that is meant", "Channels")
LOOKS = {
    "marker": 'fill="#e3b341"',
    "thinking": 'fill="#9ea4aa"',
    "text": "",
    "tool_call": 'fill="#76d9e6"',
    "label": 'font-weight="bold"',
}
NO_BREAK = "\N{NO-BREAK SPACE}"


def make() -> str:
    """The film as it is now."""
    versions: list[tuple[float, float, int, int, str]] = []
    clock = 0.0
    for title in SHOWN:
        scene = next(scene for scene in scenes() if scene.title == title)
        panes = Panes(Parser(scene.format, start=scene.start, retype=False), COLUMNS)
        clock = _film(panes, scene.title, list(chunks(scene.output)), clock, versions)
    return _svg(versions, clock)


def _film(
    panes: Panes, title: str, pieces: list[str], clock: float, versions: list[tuple[float, float, int, int, str]]
) -> float:
    begun = clock
    standing: dict[tuple[int, int], tuple[float, str]] = {}

    def take(cells: dict[tuple[int, int], str]) -> None:
        for place in [place for place, (_, shown) in standing.items() if cells.get(place) != shown]:
            since, shown = standing.pop(place)
            versions.append((since, clock, *place, shown))
        for place, shown in cells.items():
            standing.setdefault(place, (clock, shown))

    for number, piece in enumerate(pieces):
        panes.feed(piece)
        if number == len(pieces) - 1:
            panes.finish()
        elif number % CHUNKS_PER_PICTURE:
            continue
        take({(at, side): _tspans(row) for at, rows in enumerate(panes.rows()) for side, row in enumerate(rows) if row})
        clock += SECONDS_PER_PICTURE
    clock += HOLD
    take({})
    versions.append((begun, clock, -2, 0, f'<tspan font-weight="bold">{_shown(title)}</tspan>'))
    return clock


def _shown(text: str) -> str:
    return escape(text).replace(" ", NO_BREAK)


def _tspans(row: Row) -> str:
    return "".join(
        f"<tspan {LOOKS[look]}>{_shown(text)}</tspan>" if LOOKS[look] else _shown(text) for text, look in row
    )


def _svg(versions: list[tuple[float, float, int, int, str]], length: float) -> str:
    half = (COLUMNS - len(GUTTER) - 1) // 2
    width, height = COLUMNS * CELL + 2 * EDGE, (ROWS + 3) * LINE + 2 * EDGE
    top = EDGE + 14 + 2 * LINE + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}">',
        '<rect width="100%" height="100%" rx="8" fill="#0d1117">'
        f'<animate id="film" attributeName="opacity" from="1" to="1" dur="{length:.2f}s" begin="0s;film.end"/></rect>',
        '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" fill="#e6edf3">',
    ]
    for side, head in enumerate(("The model writes", "asides splits it")):
        at = EDGE + side * (half + len(GUTTER)) * CELL
        lines.append(f'<text x="{at:.0f}" y="{top - LINE - 4}" fill="#7ee787">{_shown(head)}</text>')
    middle = EDGE + (half + 1.5) * CELL
    lines.append(f'<path d="M{middle:.0f} {top - LINE - 16}V{height - EDGE}" stroke="#30363d"/>')
    for since, until, row, side, shown in sorted(versions):
        at = EDGE + side * (half + len(GUTTER)) * CELL
        below = top + row * LINE + (4 if row >= 0 else -LINE // 4)
        clock = f'begin="film.begin+{since:.2f}s" end="film.begin+{until:.2f}s"'
        shows = f'<set attributeName="visibility" to="visible" {clock}/>'
        lines.append(f'<text x="{at:.0f}" y="{below}" visibility="hidden">{shown}{shows}</text>')
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def main() -> int:
    """Write the film, or compare it."""
    film = make()
    if "--write" in sys.argv:
        PICTURE.write_text(film, encoding="utf-8")
    elif film != PICTURE.read_text(encoding="utf-8"):
        sys.exit("the film is not current: python -m tools.demo_picture --write")
    return 0


if __name__ == "__main__":
    sys.exit(main())
