"""No regular expression in the package repeats a group possessively.

Before CPython 3.11.5 `(?:...)*+` does not restore the position when the group fails inside (gh-106052), so a pattern
that is right on one interpreter is silently wrong on another. `(?>(?:...)*)` means the same and is right on all.
"""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+")

COLLECT = """
import importlib, pkgutil, re, sys
import re._compiler as compiler
import re._constants as constants

SIMPLE = {constants.LITERAL, constants.NOT_LITERAL, constants.IN, constants.ANY}
compile_pattern = compiler.compile
seen = []

def children(node):
    if isinstance(node, (list, tuple)) or hasattr(node, "data"):
        for child in getattr(node, "data", node):
            yield child

def possessive_groups(node):
    if isinstance(node, tuple) and node and node[0] is constants.POSSESSIVE_REPEAT:
        body = list(node[1][2])
        if len(body) != 1 or body[0][0] not in SIMPLE:
            return True
    return any(possessive_groups(child) for child in children(node))

def checked(pattern, flags=0):
    if isinstance(pattern, (str, bytes)):
        seen.append(pattern)
        if possessive_groups(re._parser.parse(pattern, flags)):
            print(pattern)
    return compile_pattern(pattern, flags)

assert possessive_groups(re._parser.parse("(?:ab)*+")) and not possessive_groups(re._parser.parse("[ab]*+c++"))
compiler.compile = checked
import asides
for module in pkgutil.walk_packages(asides.__path__, "asides."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError as problem:
            assert "asides" not in str(problem.name), problem
for name in asides.formats():
    asides.parse('<tool_call>{"name": "f", "arguments": {"a": [1]}}</tool_call>', name)
assert len(seen) > 100, len(seen)
"""


def test_no_source_file_writes_one() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if POSSESSIVE_GROUP.search(line) and not line.lstrip().startswith("#")
    ]
    assert found == []


def test_no_compiled_pattern_holds_one() -> None:
    run = subprocess.run([sys.executable, "-c", COLLECT], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, ""), run.stderr
