"""The card that CONTRIBUTING shows, added to a copy of the package as CONTRIBUTING says.

Until `make families` has run, whoever asks for its format is told to run it; then the format is there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CARD = re.compile(r"```python\n(   \"\"\"Acme's Model\..*?)   ```", re.DOTALL)
ASK = "import asides; print(asides.parse('<think>hm</think>Four.', 'model_v1').text)"


def test_a_new_card_says_what_to_run(tmp_path: Path) -> None:
    """And when that has run, it is read."""
    ignored = shutil.ignore_patterns("__pycache__", "_page", "static")
    shutil.copytree(ROOT / "src" / "asides", tmp_path / "src" / "asides", ignore=ignored)
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "families.py", tmp_path / "tools")
    found = CARD.search((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert found is not None
    source = re.sub("^   ", "", found[1], flags=re.MULTILINE)
    (tmp_path / "src" / "asides" / "families" / "_model.py").write_text(source, encoding="utf-8")

    before = _run(tmp_path, "-c", ASK)
    assert before.stderr.rstrip().endswith(
        "unknown format 'model_v1'; src/asides/families/_model.py has this name, and the index does not list it: "
        "run `make families`"
    )
    written = _run(tmp_path, "-m", "tools.families", "--write")
    assert written.returncode == 0, written.stderr
    assert _run(tmp_path, "-c", ASK).stdout == "Four.\n"


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
