"""The lists of docs/structural_tags.md: which formats have a structural tag, and why the others have none.

`python -m tools.structural_tag_table` prints them; with `--write` they go into the page. Run it from the top of the
repository. A test fails while the page is not what this writes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import asides

PAGE = Path("docs", "structural_tags.md")
_PLACE = re.compile(r"(<!-- formats:[^\n]*-->\n).*?(<!-- /formats -->)", re.DOTALL)
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
    return _PLACE.sub(lambda place: place[1] + formats_table() + place[2], text)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(formats_table())
