"""What `auto` takes from the registered formats: every distinctive marker, and nothing that a format calls plain.

`python -m asides.families.derive --write` brings `auto_markers.py` up to date; a test compares. It is a file because
importing every family would cost the filter's start ten times as much as reading it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from .._engine.format import END, TEXT, THINKING, Format, State
from .auto import WHOLE
from .harmony import HARMONY
from .muse import MUSE
from .registry import FAMILIES, formats_of

_HEAD = '''"""Every family's distinctive markers, for `auto`. Made by `python -m asides.families.derive --write`."""

from __future__ import annotations

'''


def known() -> list[Format]:
    """Every format of this package but `auto`."""
    return [format for family in FAMILIES if family != "auto" for format in formats_of(family)]


def pairs() -> list[tuple[str, str]]:
    """The pairs of markers around thinking, of families that no other marker tells."""
    told = {marker for family in (*WHOLE, HARMONY, MUSE) for table in family.states.values() for marker in table}
    found: dict[tuple[str, str], None] = {}
    for format in known():
        text, thinking = format.states.get(TEXT, {}), format.states.get(THINKING, {})
        opens = [marker for marker, target in text.items() if target == THINKING]
        closes = [marker for marker, target in thinking.items() if target == TEXT and marker not in text]
        if format.header is None and len(opens) == len(closes):
            for pair in zip(opens, closes, strict=True):
                if told.isdisjoint(pair) and format.plain.keys().isdisjoint(pair):
                    found[pair] = None
    return sorted(found)


def markers(target: State) -> list[str]:
    """The markers that lead from a text to this state."""
    return _distinctive(
        (format, [m for m, to in format.states.get(TEXT, {}).items() if to == target]) for format in known()
    )


def _distinctive(found: Iterable[tuple[Format, Iterable[str]]]) -> list[str]:
    return sorted({marker for format, markers in found for marker in markers if marker not in format.plain})


def source() -> str:
    """The text of `auto_markers.py`."""
    formats = known()
    values: dict[str, tuple[list[object], str]] = {
        "PAIRS": (
            [*pairs()],
            "Families whose thinking is one pair of markers; their calls and stops are settled apart.",
        ),
        "STOPS": ([*markers(END)], "What ends a turn, of any family: tunes of one write the thoughts of another."),
        "WRAPPERS": ([*markers(TEXT)], "What stands around answers and means nothing."),
        "STRAYS": (
            [*_distinctive((format, format.strays) for format in formats)],
            "Tokens with no business in a text.",
        ),
        "ASSISTANT": (
            [*_distinctive((format, format.assistant) for format in formats)],
            "What opens a turn in prompts.",
        ),
    }
    return _HEAD + "".join(_tuple(name, *value) for name, value in values.items())


def _tuple(name: str, values: list[object], meaning: str) -> str:
    return f"{name} = (\n" + "".join(f"    {_literal(value)},\n" for value in values) + f')\n"""{meaning}"""\n'


def _literal(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))})"
    text = str(value).replace("\\", "\\\\").replace("\n", "\\n")
    return f"'{text}'" if '"' in text else f'"{text}"'


def _main(arguments: list[str]) -> None:
    if arguments == ["--write"]:
        Path(__file__).with_name("auto_markers.py").write_text(source(), encoding="utf-8")
    else:
        sys.stdout.write(source())


if __name__ == "__main__":
    _main(sys.argv[1:])
