"""How often the rules of `asides.analysis.outline` agree with readers, on 200 steps labelled twice by hand.

    python -m tools.outline_rates           print the table
    python -m tools.outline_rates --write   write it into docs/how-to/analysis.md

The labels are in tests/analysis/outline_labels.json: each step has its span and what two readers, who saw neither each
other's labels nor the rules' answers, called it. A kind that is right less often than `LEAST` may not be shown.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from asides.analysis import outline
from asides.analysis._outline import STEP_KINDS
from tools.blocks import main

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/how-to/analysis.md"
LABELS = ROOT / "tests/analysis/outline_labels.json"
LEAST = 0.6


@dataclass
class Rate:
    """How the rules did on one kind. A step is right where at least one of the two labels says so."""

    said: int
    """Steps that the rules gave this kind."""
    right: int
    meant: int
    """Steps that both readers gave this kind."""
    found: int
    """Of those, what the rules found."""

    @property
    def precision(self) -> float:
        return self.right / self.said if self.said else 1.0


def labelled() -> list[tuple[str, str, str]]:
    """Of each labelled step: what the rules say, and the two labels."""
    found: list[tuple[str, str, str]] = []
    for trace in json.loads(LABELS.read_text("utf-8")):
        kinds = {step.span: step.kind for step in outline(trace["thought"])}
        found += [(kinds[start, end], first, second) for start, end, first, second in trace["steps"]]
    return found


def rates() -> dict[str, Rate]:
    """The rate of every kind but `unknown`."""
    steps = labelled()
    return {
        kind: Rate(
            said=sum(rule == kind for rule, *_ in steps),
            right=sum(rule == kind and kind in labels for rule, *labels in steps),
            meant=sum(first == second == kind for _, first, second in steps),
            found=sum(rule == first == second == kind for rule, first, second in steps),
        )
        for kind in STEP_KINDS
        if kind != "unknown"
    }


def table() -> str:
    """The table of the page."""
    steps = labelled()
    agreed = sum(first == second for _, first, second in steps)
    counts = [Counter(label for label in column) for column in zip(*((a, b) for _, a, b in steps), strict=True)]
    chance = sum(counts[0][kind] * counts[1][kind] for kind in counts[0]) / len(steps) ** 2
    kappa = (agreed / len(steps) - chance) / (1 - chance)
    lines = [
        f"The two readers agree on {agreed} of {len(steps)} steps (Cohen's kappa {kappa:.2f}).",
        "",
        "| kind | what it means | the rules said so | right | both readers said so | found |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for kind, rate in rates().items():
        meaning = STEP_KINDS[kind]  # type: ignore[index]  # the keys of `rates` are those of STEP_KINDS
        lines.append(f"| `{kind}` | {meaning} | {rate.said} | {rate.right} | {rate.meant} | {rate.found} |")
    unknown = sum(rule == "unknown" for rule, *_ in steps)
    lines += ["", f"Of {unknown} of the {len(steps)} steps the rules say nothing: `unknown`."]
    return "\n".join(lines) + "\n"


BLOCKS = {"outline_rates": table}

if __name__ == "__main__":
    main(PAGE, BLOCKS)
