"""The programs of docs/how-to/application.md: what stands in examples/, and what each of them prints.

`python -m tools.example_blocks` prints them; with `--write` they go into the page. Run it from the top of the
repository. A test fails while the page is not what this writes.
"""

from __future__ import annotations

import ast
from functools import partial
from pathlib import Path
from textwrap import dedent

from tools.blocks import Make, main

PAGE = Path("docs", "how-to", "application.md")
EXAMPLES = Path(__file__).parents[1] / "examples"
PROGRAMS = ("whole_reply", "streamed_reply", "many_replies", "web_app", "agent")


def printed(path: Path) -> str:
    """What the docstring of a program says that it prints: the indented lines after the last words that say so."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    _, said, listed = docstring.partition("t prints:\n\n")
    if not said:
        raise ValueError(f"the docstring of {path.name} does not say what it prints, after `It prints:`")
    lines = listed.splitlines()
    end = next((number for number, line in enumerate(lines) if not line.startswith("    ")), len(lines))
    return dedent("\n".join(lines[:end])) + "\n"


def program(name: str) -> str:
    """A program without its docstring, and below it what it prints."""
    path = EXAMPLES / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    code = text[text.index('"""\n', 3) + 4 :].lstrip("\n")
    return f"```python\n{code}```\n\n```text\n{printed(path)}```\n"


BLOCKS: Make = {name: partial(program, name) for name in PROGRAMS}

if __name__ == "__main__":
    main(PAGE, BLOCKS)
