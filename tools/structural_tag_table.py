"""The lists of docs/how-to/structural_tags.md: which formats have a structural tag, and why the others have none.

`python -m tools.structural_tag_table` prints them; with `--write` they go into the page. Run it from the top of the
repository. A test fails while the page is not what this writes.
"""

from __future__ import annotations

from pathlib import Path

import asides
from tools.blocks import main, with_blocks

PAGE = Path("docs", "how-to", "structural_tags.md")
_TOOL = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


def formats_table() -> str:
    """The formats that have one in a sentence, then a row for each that has none."""
    reasons = {name: _reason(name) for name in asides.formats()}
    have = ", ".join(f"`{name}`" for name, reason in reasons.items() if not reason)
    rows = [f"| `{name}` | {reason} |\n" for name, reason in reasons.items() if reason]
    return f"Have one: {have}.\n\n| format | why it has none |\n| --- | --- |\n" + "".join(rows)


def _reason(name: str) -> str:
    """Why a format has no structural tag; empty where it has one."""
    try:
        asides.get_format(name).structural_tag(_TOOL)
    except asides.UsageError as error:
        return str(error).partition(": ")[2].replace("|", r"\|")
    return ""


def with_tables(text: str) -> str:
    """A page with its lists brought up to date."""
    return with_blocks(text, BLOCKS)


BLOCKS = {"formats": formats_table}

if __name__ == "__main__":
    main(PAGE, BLOCKS)
