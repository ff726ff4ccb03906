"""Runs the example of an engine on docs/how-to/engines.md, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def check_example(heading: str, folder: Path) -> None:
    """The program under this heading prints what the page says."""
    page = (ROOT / "docs" / "how-to" / "engines.md").read_text(encoding="utf-8")
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    ((code, printed),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", section, re.S)
    program = folder / "example.py"  # a file, because some engines start processes that read it
    program.write_text(code, encoding="utf-8")
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    run = subprocess.run(
        [sys.executable, program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == printed
