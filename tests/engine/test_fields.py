"""Who writes what in the engine, read from its source: a field is written only in the file that declares it.

The machine is made of parts that see each other. What keeps that simple is that each changes only itself, through its
own methods, so that whoever wonders why a field has its value reads one file. The call grammars (`calls/`) are readers
that inherit from each other and are left out: none of them knows the parser.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import asides
from asides._engine import parser as parser_module

ENGINE = Path(parser_module.__file__).parent
FILES = sorted(path for path in ENGINE.glob("*.py"))
PARTS = (
    "cursor",
    "holds",
    "active_markers",
    "open_part",
    "call_record",
    "closer_hold",
    "call_region",
    "call_sink",
    "calls_in_progress",
    "prose",
    "fast_path",
)
"""What a parser is made of. None knows the parser, and each knows only those that come before those that hold it."""


def declared(tree: ast.Module) -> set[str]:
    """The fields that the classes of a file declare: in `__slots__`, in the class body, or through `self`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                names.add(statement.target.id)
            if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "__slots__":
                names |= set(ast.literal_eval(statement.value))
        if not any(isinstance(base, ast.Name) for base in node.bases):  # a base class has fields of its own
            names |= {target.attr for target in written(node) if is_self(target.value)}
    return names


def written(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Every attribute that is assigned, changed or deleted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_field_is_written_only_where_it_is_declared(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    own = declared(tree)
    others = {f"{ast.unparse(target)} (line {target.lineno})" for target in written(tree) if target.attr not in own}
    assert not others, f"{path.name} writes fields that it does not declare: {sorted(others)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_is_set_by_name(path: Path) -> None:
    """`setattr` would go past the rule above; a record may copy itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr"]
    assert all(ast.unparse(call.args[0]) == "copied" for call in calls)


@pytest.mark.parametrize("name", PARTS)
def test_no_part_knows_the_parser(name: str) -> None:
    """Nothing that a parser is made of imports it or holds it."""
    source = (ENGINE / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1}
    assert not imported & {"parser", "tokens"}
    assert "_parser" not in {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_the_parts_stand_on_each_other() -> None:
    """The files of the engine import each other in one direction, also where only types are meant."""
    imports = {path.stem: _imported(path) for path in FILES}
    inner = ENGINE / "constraints"
    imports |= {f"constraints.{path.stem}": _imported(path, "constraints.") for path in inner.glob("*.py")}
    placed: set[str] = set()
    while ready := {name for name in imports.keys() - placed if imports[name] <= placed}:
        placed |= ready
    assert not imports.keys() - placed, f"these import each other: {sorted(imports.keys() - placed)}"


def _imported(path: Path, package: str = "") -> set[str]:
    """The modules of the engine that a file imports; `package` is what the file stands in."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and "calls." not in node.module:
            if node.level == 1:
                found.add(package + node.module)
            elif node.level == 2 and package:
                found.add(node.module)
    return found


def test_a_parser_shows_what_a_caller_needs() -> None:
    for parser in (asides.Parser(), asides.Parser("qwen3", start="undecided")):
        assert [name for name in dir(parser) if not name.startswith("_")] == [
            "feed",
            "finish",
            "held",
            "message",
            "state",
        ]
    assert asides.Parser is parser_module.Parser
    assert asides.Parser.__mro__ == (asides.Parser, object)
