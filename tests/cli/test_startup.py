"""What the filter must not import: each of these costs milliseconds before the first word."""

from __future__ import annotations

import subprocess

import pytest

from asides.families._index import MODULES
from tests.cli.running import COMMAND, unmeasured

HEAVY = (
    "asyncio",
    "dataclasses",
    "difflib",
    "email",
    "importlib.metadata",
    "json",
    "pathlib",
    "shutil",
    "tempfile",
    "tomllib",
    "wcwidth",
)

CARDS = sorted(set(MODULES.values()) - {"_auto"})


@pytest.mark.parametrize("given", [b"", b"<think>hm</think>Hi"])
def test_the_filter_imports_little(given: bytes) -> None:
    """Neither with nothing to read nor with a thought to write into a pipe."""
    script = (
        "import sys\n"
        "from asides._cli import main\n"
        "main([])\n"
        f"print('', *(name for name in {HEAVY!r} if name in sys.modules))\n"
    )
    done = subprocess.run([COMMAND[0], "-c", script], input=given, capture_output=True, env=unmeasured())
    assert done.stdout.split() == ([b"Hi"] if given else [])


def test_what_lays_thoughts_out_is_imported_when_there_are_some() -> None:
    """An answer without thoughts on a pipe, and no input at all, start as fast as if there were no such thing."""
    script = "import sys\nfrom asides._cli import main\nmain([])\nprint('asides.terminal' in sys.modules)\n"
    done = subprocess.run([COMMAND[0], "-c", script], input=b"", capture_output=True, env=unmeasured())
    assert done.stdout == b"False\n"


def test_auto_imports_no_card_of_a_family() -> None:
    """What it takes from the cards stands in a file; a card is imported when a marker settles on its format."""
    script = (
        "import sys\n"
        "from asides._cli import main\n"
        "main([])\n"
        f"print('', *(name for name in {CARDS!r} if 'asides.families.' + name in sys.modules))\n"
    )
    for given, cards in ((b"<think>hm</think>Hi", []), (b"<|channel|>final<|message|>Hi", [b"_harmony"])):
        done = subprocess.run([COMMAND[0], "-c", script], input=given, capture_output=True, env=unmeasured())
        assert done.stdout.split() == [b"Hi", *cards]
