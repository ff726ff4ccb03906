"""The table of modes: complete, used by nobody but the parser, and drawn in the documentation as it is.

`python -m tests.engine.test_modes` draws it anew into docs/explanation/architecture.md.
"""

from __future__ import annotations

import ast
from pathlib import Path

from asides._engine import modes
from asides._engine.modes import NEXT, Mode, ReadOutcome

ENGINE = Path(modes.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "architecture.md"
BEGIN, END = "<!-- modes: drawn by tests/engine/test_modes.py -->", "<!-- end of modes -->"
WAITING = {ReadOutcome.WAIT, ReadOutcome.WAIT_FOR_WORDS}


def diagram() -> str:
    """The table as a Mermaid state diagram. Outcomes after which the same mode goes on are listed, not drawn."""
    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [f"    {mode.name}: {mode.name} - {mode.value}" for mode in Mode]
    arrows: dict[tuple[Mode, Mode], list[str]] = {}
    for (mode, outcome), after in NEXT.items():
        if mode is not after:
            arrows.setdefault((mode, after), []).append(outcome.name)
    lines += ["    [*] --> BEGIN", "    [*] --> PROSE"]
    lines += [f"    {mode.name} --> {after.name}: {', '.join(names)}" for (mode, after), names in arrows.items()]
    lines += ["```", "", "| outcome | |", "|---|---|"]
    lines += [f"| `{outcome.name}` | {outcome.value} |" for outcome in ReadOutcome]
    return "\n".join(lines)


def drawn(page: str) -> tuple[str, str, str]:
    """The page up to the diagram, the diagram, the rest."""
    before, _, rest = page.partition(BEGIN)
    inside, _, after = rest.partition(END)
    return before, inside.strip(), after


def test_the_documentation_shows_the_table() -> None:
    assert drawn(PAGE.read_text(encoding="utf-8"))[1] == diagram(), "run python -m tests.engine.test_modes"


def test_every_mode_is_reached_and_left() -> None:
    assert {after for (mode, _), after in NEXT.items() if after is not mode} == set(Mode)
    left = {mode for (mode, _), after in NEXT.items() if after is not mode}
    assert left == set(Mode) - {Mode.BEYOND}, "after the turn nothing is read"


def test_waiting_leads_nowhere() -> None:
    assert {outcome for _, outcome in NEXT} == set(ReadOutcome) - WAITING


def test_only_the_parser_knows_modes() -> None:
    """No reader decides where reading goes: it names outcomes, never a mode."""
    for path in ENGINE.rglob("*.py"):
        names = {
            node.id for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Name)
        }
        assert path.stem in ("modes", "parser") or not names & {"Mode", "NEXT"}, path.name


def test_the_mode_is_set_by_the_table_alone() -> None:
    tree = ast.parse((ENGINE / "parser.py").read_text(encoding="utf-8"))
    values = [
        ast.unparse(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "self._mode"
    ]
    first, *steps = values
    assert "NEXT" not in first
    assert all(value.startswith("NEXT[self._mode, ") for value in steps)


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    before, _, after = drawn(page)
    PAGE.write_text(f"{before}{BEGIN}\n{diagram()}\n{END}{after}", encoding="utf-8")
