"""What an error says about installing: real packages, those of pyproject.toml, and from one place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import asides
from asides._extras import PACKAGES, install_command

ROOT = Path(__file__).parents[1]
NAME = re.compile(r"[\w\-]+(?:\[\w+\])?")


def _name(requirement: str) -> str:
    found = NAME.match(requirement)
    assert found is not None
    return found[0]


def test_every_extra_installs_what_pyproject_says() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    del extras["dev"]
    for extra in extras:
        inner = [each for each in extras[extra] if not each.startswith("asides[")]
        if len(inner) < len(extras[extra]):
            assert "asides[arrow]" in extras[extra]
            inner = [*extras["arrow"], *inner]
        assert [_name(each) for each in inner] == [_name(each) for each in PACKAGES[extra]], extra
    assert set(PACKAGES) == set(extras)


def test_the_command_is_safe_to_paste() -> None:
    assert install_command("prompt-toolkit") == "pip install prompt-toolkit"
    assert install_command("postgres") == "pip install 'psycopg[binary]'"
    assert install_command("spark", upgrade=True) == "pip install --upgrade pyarrow pyspark 'pandas<3'"


def test_nothing_else_writes_such_a_line() -> None:
    package = Path(asides.__file__).parent
    others = [path.name for path in package.rglob("*.py") if "pip install" in path.read_text("utf-8")]
    assert others == ["_extras.py"]
