"""The rules of a thought's outline for the page: src/asides/_page/static/outline_rules.js, from `asides.analysis`.

    python -m tools.page_outline           print the file
    python -m tools.page_outline --write   write it

The page makes the outline while a thought streams, so it needs the rules themselves. A test compares the file with what
this would write, and another, in a browser, the outlines of both languages.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from asides.analysis import _outline as rules
from asides.analysis._outline_phrases import PATTERNS as OPENINGS

FILE = Path(__file__).parents[1] / "src/asides/_page/static/outline_rules.js"
PATTERNS = ("END", "FENCE", "NUMBERED", "NUMBER", "SPEAKS", "MARK")
IN_JAVASCRIPT = {
    r"[^\W_]": r"[\p{L}\p{N}]",
    r"(?!\w)": r"(?![\p{L}\p{M}\p{N}_])",
    r"\b": r"(?<![\p{L}\p{N}_])",
    r"\#": "#",
    r"\"": '"',
}
"""Letters and digits are those of Unicode in Python, and of ASCII in JavaScript; some escapes are errors there."""


def in_javascript(pattern: str) -> str:
    """A pattern that a regular expression of JavaScript with the flag `u` reads as Python reads it."""
    for theirs, ours in IN_JAVASCRIPT.items():
        pattern = pattern.replace(theirs, ours)
    return pattern


def file() -> str:
    """The text of the file."""
    patterns = {name: in_javascript(getattr(rules, f"_{name}").pattern) for name in PATTERNS}
    constants = {
        **patterns,
        **{name: getattr(rules, name) for name in ("FIRST_WORDS", "FEW_BYTES", "LONGEST", "TITLE")},
        "ENDING": rules._ENDING,
        "KINDS": rules.STEP_KINDS,
        "BEGINS_A_STEP": sorted(rules._BEGINS_A_STEP),
    }
    phrases = [[rules._OF_PHRASE[kind], in_javascript(pattern)] for kind, pattern in OPENINGS]
    lines = [
        "// The rules of a thought's outline, written by `python -m tools.page_outline --write` from asides.analysis.",
        *(f"export const {name} = {json.dumps(value, ensure_ascii=False)};" for name, value in constants.items()),
        "export const PHRASES = [",
        *(f"  {json.dumps(each, ensure_ascii=False)}," for each in phrases),
        "];",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        FILE.write_text(file(), encoding="utf-8")
    else:
        print(file(), end="")
