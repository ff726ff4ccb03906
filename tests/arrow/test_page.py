"""The examples of the kernel on docs/how-to/columns.md print what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "columns.md").read_text(encoding="utf-8")


def test_the_examples_print_what_the_page_says(tmp_path: Path) -> None:
    """In order, in one program: later ones use what earlier ones imported."""
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.S)
    assert len(found) >= 4
    program = "".join(code for code, _ in found)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout == "".join(printed for _, printed in found)
