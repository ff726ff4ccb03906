"""What the tests of plug-ins share: skipping without the host, and running the examples of the host's page.

`make test-plugin-NAME` installs the host and sets PLUGIN_HOST=NAME: there nothing may be skipped for want of it, and
asides must be an installed wheel. `make test` has few of the hosts, and the tests of the others are skipped.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import asides
from asides._extras import _numbers
from asides.plugins._hosts import LEAST

ROOT = Path(__file__).parents[2]
HOST = os.environ.get("PLUGIN_HOST", "")


def require_module(module: str) -> None:
    """Skip the tests of a file where its host cannot be imported; call it before anything of the host is imported."""
    if HOST:
        assert ROOT / "src" not in Path(asides.__file__).parents, "asides has to be installed here, not on the path"
        import_module(module)
    else:
        pytest.importorskip(module, reason=f"{module} is not here: make test-plugins")


def write_files(page: str, folder: Path) -> str:
    """Write the files that a page of docs/plugins names before a block ("`name`:"), and return the page."""
    text = (ROOT / "docs" / "plugins" / f"{page}.md").read_text(encoding="utf-8")
    for name, content in re.findall(r"`([\w./]+)`:\n\n```\w+\n(.*?)```", text, re.S):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return text


def check_examples(page: str, folder: Path, about: str = "") -> None:
    """Every program on a page of docs/plugins that is followed by what it prints does print that.

    The files of the page are beside it. `about`: on a page of several hosts, only the programs in which this stands.
    """
    text = write_files(page, folder)
    examples = re.findall(r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", text, re.S)
    examples = [(code, printed) for code, printed in examples if about in code]
    assert examples, "the page has no example"
    for code, printed in examples:
        program = folder / "example.py"
        program.write_text(code, encoding="utf-8")
        run = subprocess.run([sys.executable, program], cwd=folder, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        assert run.stdout == printed


def check_tried(page: str, package: str) -> None:
    """The page ends with a version of the host that it was tried with, no older than what the plug-in asks for."""
    last = (ROOT / "docs" / "plugins" / f"{page}.md").read_text(encoding="utf-8").rstrip().rpartition("\n")[2]
    found = re.search(rf"Tried with.*\b{re.escape(package)} (\d[\w.]*\w)", last)
    assert found, f"the page does not end with the version of {package} that was tried"
    assert _numbers(found[1]) >= _numbers(LEAST[package])
