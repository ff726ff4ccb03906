"""Rules of structure, read from the source: class names, words in names, and what a long module says first.

`tests/test_public_names.py` checks the public names and the direction of imports. The rules here are about reading:
a class name means one thing wherever it stands, a name is a word of the trade, and a long module explains itself.

Each rule has a set of today's exceptions in `tests/structure_debts.py`. The tests want these sets exact, so they can
only shrink: a new offender fails, and so does an entry that is no longer needed.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import asides
from tests.structure_debts import DECODED_NAMES, DUPLICATE_CLASSES, TERSE_MODULES
from tests.support import parsed

PACKAGE = Path(asides.__file__).parent

ORIGINALS = {
    "Message": "compat/tinker.py",
    "Renderer": "compat/tinker.py",
}
"""Class names that compat has from the project that it stands in for, and where: callers import them by these names."""

DECODED = {
    "asking", "beat", "calm", "harmless", "house", "keeper", "knowledge", "librarian", "noted", "quiet", "room", "said",
    "say", "tell", "telling", "told", "way", "wish", "wishes",
}  # fmt: skip
"""Words that say what something is only to who wrote it; each has a word of the trade that everyone knows."""

GENERATED = "Made by `python -m tools."
"""In the docstring of a table that a tool writes: it has no idea to explain."""
LONG = 150
"""Lines from which a module's docstring has to explain the idea, and not only say what it owns."""


def test_one_class_name_has_one_meaning() -> None:
    """No public class name is defined twice, and no private class is named like a public one."""
    _exactly(set(_duplicates()), DUPLICATE_CLASSES, [f"{name}: {places}" for name, places in _duplicates().items()])


def test_names_are_words_of_the_trade() -> None:
    """No module, class or function has a word in its name that has to be decoded."""
    _exactly(_decoded(), DECODED_NAMES, sorted(_decoded()))


def test_no_docstring_holds_half_a_character() -> None:
    """Python 3.13 cannot compile a docstring with a lone surrogate in it; a raw docstring spells it."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [
        f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 1)}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, documented) and re.search(r"[\ud800-\udfff]", ast.get_docstring(node) or "")
    ]
    assert not found


def test_a_long_module_explains_its_idea() -> None:
    """A module of more than 150 lines opens with a docstring of at least three lines."""
    _exactly(_terse(), TERSE_MODULES, sorted(_terse()))


def _exactly(found: set[str], known: set[str], report: list[str]) -> None:
    new, gone = sorted(found - known), sorted(known - found)
    assert not new, f"new: {new}; all of today:\n" + "\n".join(report)
    assert not gone, f"no longer needed in the set of exceptions: {gone}"


def _trees() -> dict[str, ast.Module]:
    return {path.relative_to(PACKAGE).as_posix(): parsed(path) for path in sorted(PACKAGE.rglob("*.py"))}


def _duplicates() -> dict[str, list[str]]:
    places: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for module, tree in _trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                name = node.name.lstrip("_")
                if ORIGINALS.get(name) != module:
                    places[name].append((module, not node.name.startswith("_")))
    return {
        name: [module for module, _ in defined]
        for name, defined in sorted(places.items())
        if len(defined) > 1 and any(public for _, public in defined)
    }


def _decoded() -> set[str]:
    return {where for where, name in _names() if not DECODED.isdisjoint(_words(name))}


def _terse() -> set[str]:
    found = set()
    for module, tree in _trees().items():
        lines = (PACKAGE / module).read_text(encoding="utf-8").count("\n")
        documented = [line for line in (ast.get_docstring(tree) or "").splitlines() if line.strip()]
        if lines > LONG and len(documented) < 3 and GENERATED not in documented[0]:
            found.add(module)
    return found


def _names() -> Iterator[tuple[str, str]]:
    """Each name with where it is: a module by its path, a class or function as `path:name`."""
    for module, tree in _trees().items():
        yield module, Path(module).stem
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{module}:{node.name}", node.name


def _words(name: str) -> set[str]:
    """The words of a name, whether it is written with underscores or with capitals."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
