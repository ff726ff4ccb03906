"""A name of a model family's format is written in the family's card, and nowhere else in the code.

Read from the source: string constants that are no docstrings and compare equal to a name, as names compare. Cards say
which formats are generic (`Family.generic`): those may be named anywhere. Names in `__all__` are Python's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import asides
from asides.families import families
from asides.families._registry import fold
from tests.support import parsed

PACKAGE = Path(asides.__file__).parent
ALLOWED = ("families", "compat")
ALSO_AN_API = ("openai",)
"""An alias of harmony, because a peer calls it so; in our code it is a kind of server."""
NAMES_OF_OTHERS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("audit", "_tokenizer.py"): ("deepseek-v3", "command-r"),  # llama.cpp's ways to cut words, as a GGUF file has them
    ("dialects", "_providers.py"): ("Mistral", "MiniMax"),  # companies, as people know them
}
"""What is the name of a format and, in that module, of something else."""
NAMES = {
    fold(name): format.name
    for family in families()
    if not family.generic
    for format in family.formats
    for name in (format.name, *format.aliases)
    if name not in ALSO_AN_API
}


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines and values of strings that are no documentation and no Python names."""
    passed: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            passed.add(node.value)
        elif isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            passed.update(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in passed:
            yield node.lineno, node.value


def named(tree: ast.Module) -> list[str]:
    """The names of formats that a source writes."""
    return [f"line {line}: {value!r}" for line, value in literals(tree) if fold(value) in NAMES]


def test_no_name_of_a_familys_format_is_written_outside_its_card() -> None:
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in ALLOWED]
    found = [
        f"{path}, {place}"
        for path in paths
        for place in named(parsed(path))
        if not place.endswith(tuple(map(repr, NAMES_OF_OTHERS.get(path.relative_to(PACKAGE).parts, ()))))
    ]
    assert paths
    assert not found, "ask the family's card instead (asides.families.family_of, switch_of, families)"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('format = "qwen3"', True),
        ('format = "GPT-OSS"', True),
        ('kinds = {"deepseek_v3.1": 1}', True),
        ('f"{x}-harmony" if x == "harmony" else ""', True),
        ('"qwen3"', False),
        ('def f():\n    """harmony"""', False),
        ('__all__ = ["Qwen3"]', False),
        ('kind = "openai"', False),
        ('format = "auto" or "json" or "think_tag" or "passthrough"', False),
        ('"the format qwen3".split()', False),
    ],
)
def test_what_counts(source: str, found: bool) -> None:
    assert bool(named(ast.parse(source))) is found
