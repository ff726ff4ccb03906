"""The tables of docs/how-to/response_templates.md: what each consumer of a template loses, format by format.

`python -m tools.template_table` prints them; with `--write` they go into the page. Run it from the top of the
repository. A test fails while the page is not what this writes.
"""

from __future__ import annotations

from pathlib import Path

from asides.families import families
from asides.hf import TemplateError, template_for
from asides.hf._losses import LOSSES
from asides.hf._writing import TARGETS, Target
from tools.blocks import main, with_blocks

PAGE = Path("docs", "how-to", "response_templates.md")


def losses_table() -> str:
    """Every kind of loss as a row."""
    rows = [f"| `{loss.code}` | {loss.text} | `{loss.key}` |\n" for loss in LOSSES.values()]
    return "| code | what happens | key that cannot say it |\n| --- | --- | --- |\n" + "".join(rows)


def templates_table() -> str:
    """Every format as a row: what all targets lose, and what each loses besides."""
    lines = ["| format | every target loses | " + " | ".join(f"{target} also" for target in TARGETS) + " |\n"]
    lines.append("| --- " * (len(TARGETS) + 2) + "|\n")
    names = sorted(format.name for family in families() for format in family.formats if format.settle is None)
    for name in names:
        lost = {target: _losses(name, target) for target in TARGETS}
        written = [codes for codes in lost.values() if codes is not None]
        shared = [code for code in LOSSES if all(code in codes for codes in written)]
        cells = [
            "cannot be written" if codes is None else ", ".join(f"`{code}`" for code in codes if code not in shared)
            for codes in lost.values()
        ]
        lines.append(f"| `{name}` | {', '.join(f'`{code}`' for code in shared)} | {' | '.join(cells)} |\n")
    return "".join(lines)


def _losses(name: str, target: Target) -> list[str] | None:
    try:
        return [loss.code for loss in template_for(name, target=target).loses]
    except TemplateError:
        return None


def with_tables(text: str) -> str:
    """The page with its tables brought up to date."""
    return with_blocks(text, BLOCKS)


BLOCKS = {"losses": losses_table, "templates": templates_table}

if __name__ == "__main__":
    main(PAGE, BLOCKS)
