"""The public names of the API, their fields and their methods that have no docstring of their own.

    python -m tools.api_docstrings      a line for each, and exit code 1 if there is one

What the pages of docs/reference/api list (tools/api_pages.py) is looked up in the source, through imports; nothing is
imported, because a plug-in's import needs its host. A class counts with the fields and methods that it inherits from
classes of this package, because a caller has them too. A field's docstring is the string below it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tools.api_pages import PACKAGE, pages


class Defined(NamedTuple):
    """A statement that defines a name, and where it stands."""

    path: Path
    node: ast.stmt
    docstring: bool


def undocumented() -> list[str]:
    """Dotted names, in the order of the pages, as `module.Class.field`."""
    found = []
    for module, name in listed_names():
        defined = definition(_file(module.split(".")[1:]), name)
        found += [] if defined.docstring else [f"{module}.{name}"]
        found += [f"{module}.{name}.{member}" for member in bare_members(defined)]
    return found


def listed_names() -> Iterator[tuple[str, str]]:
    """Every name on the pages of the API, with its module."""
    for listed in pages().values():
        for module, names in re.findall(r"^::: (\S+)\n((?: .*\n)*)", listed, re.M):
            yield from ((module, name) for name in re.findall(r"^ {8}- (\w+)$", names, re.M))


def definition(path: Path, name: str) -> Defined:
    """Where a name of a module is defined; names that are imported are followed to their own module."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            for alias in node.names:
                if alias.name == "*" or name == (alias.asname or alias.name):
                    return definition(_imported(path, node), name if alias.name == "*" else alias.name)
    for node, names, docstring in _definitions(_tree(path).body):
        if name in names:
            return Defined(path, node, docstring)
    raise LookupError(f"{path} has no {name}")


def bare_members(owner: Defined) -> Iterator[str]:
    """The public members of a class without a docstring; what overrides a member with one has it too."""
    documented: dict[str, bool] = {}
    for ancestor in _ancestry(owner):
        for name, docstring in _members(ancestor.node):
            documented[name] = documented.get(name, False) or docstring
    return (name for name, docstring in documented.items() if not docstring)


def _ancestry(defined: Defined) -> Iterator[Defined]:
    """A class and those of this package that it derives from."""
    if isinstance(defined.node, ast.ClassDef):
        yield defined
        for base in defined.node.bases:
            with suppress(LookupError):  # a class of another package
                yield from _ancestry(definition(defined.path, ast.unparse(base).partition("[")[0]))


def _members(node: ast.stmt) -> Iterator[tuple[str, bool]]:
    """Public fields and methods of a class, those set by `__init__` among them, and whether each has a docstring."""
    assert isinstance(node, ast.ClassDef)
    for inner, names, docstring in _definitions(node.body):
        yield from ((name, docstring) for name in names if not name.startswith("_"))
        if names == ["__init__"]:
            assert isinstance(inner, ast.FunctionDef)
            own = [(names, docstring) for _, names, docstring in _definitions(inner.body, of="self")]
            yield from ((name, docstring) for names, docstring in own for name in names if not name.startswith("_"))


def _definitions(body: list[ast.stmt], of: str = "") -> Iterator[tuple[ast.stmt, list[str], bool]]:
    """Statements that define names (of attributes of `of`, if given), the names, and whether they have a docstring."""
    for node, after in zip(body, [*body[1:], None], strict=False):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            overload = any(ast.unparse(each) == "overload" for each in node.decorator_list)
            if not of and not overload:
                yield node, [node.name], ast.get_docstring(node) is not None
        elif names := list(_targets(node, of)):
            yield node, names, isinstance(after, ast.Expr) and isinstance(getattr(after.value, "value", None), str)
        else:
            for inner in ("body", "orelse", "handlers"):
                yield from _definitions(getattr(node, inner, []), of)


def _targets(node: ast.stmt, of: str) -> Iterator[str]:
    """The names that an assignment gives a value or a type."""
    targets: Iterable[ast.expr] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        if isinstance(target, ast.Name) and not of:
            yield target.id
        elif isinstance(target, ast.Attribute) and ast.unparse(target.value) == of:
            yield target.attr


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imported(path: Path, node: ast.ImportFrom) -> Path:
    package = list(path.relative_to(PACKAGE).parts[:-1])
    return _file([*package[: len(package) - node.level + 1], *(node.module or "").split(".")])


def _file(parts: list[str]) -> Path:
    """The file of a module, by the parts of its name below `asides`."""
    path = PACKAGE.joinpath(*parts)
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def main() -> int:
    """Print what has no docstring."""
    found = undocumented()
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
