"""The tables of docs/reference/notices.md: the codes of notices, and the errors of calls.

`python -m tools.notices_page` prints them; with `--write` they go into the page. Run it from the top of the repository.
A test fails while the page is not what this writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from asides._engine.call_sink import MESSAGES
from asides.events import NOTICES, NoticeCode
from tools.blocks import Make, main

PAGE = Path("docs", "reference", "notices.md")


def table(meanings: Mapping[NoticeCode, str] | Mapping[str, str]) -> str:
    """A row for each code."""
    return "| code | meaning |\n|---|---|\n" + "".join(f"| `{code}` | {text} |\n" for code, text in meanings.items())


BLOCKS: Make = {"notices": partial(table, NOTICES), "errors": partial(table, MESSAGES)}

if __name__ == "__main__":
    main(PAGE, BLOCKS)
