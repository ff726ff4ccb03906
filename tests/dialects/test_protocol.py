"""Every dialect has all members of the protocol, and nobody outside `dialects/` asks which dialect it has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import asides
from asides import dialects
from asides._config.schema import ReasoningField, UpstreamSettings
from asides.dialects._base import THINKING_CHOICES, Dialect
from asides.dialects._request import Request
from asides.dialects._servers import KINDS, KindName
from tests.support import parsed

PACKAGE = Path(asides.__file__).parent
OUTSIDE = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] != "dialects"]
NAMES = {dialect.NAME for dialect in dialects.ALL} | set(KINDS)
MODULES = {name for name in dialects.__all__ if name not in ("ALL", "Dialect", "get")}
each = pytest.mark.parametrize("dialect", dialects.ALL, ids=lambda dialect: dialect.NAME)


@each
def test_a_dialect_has_every_member(dialect: Dialect) -> None:
    """The type checker compares types; here, that nothing is missing or empty that must not be."""
    members = {name for name in (*Dialect.__annotations__, *vars(Dialect)) if not name.startswith("_")}
    assert not [name for name in members if not hasattr(dialect, name)]
    assert dialects.get(dialect.NAME) is dialect
    assert dialect.PATHS
    assert dialect.CANNOT_SAY
    assert all(path.startswith("/") for pair in dialect.PATHS.items() for path in pair)


@each
def test_readers_and_writers_have_the_fast_path_or_say_that_they_have_none(dialect: Dialect) -> None:
    """Both are members, so that nobody has to look for them by name."""
    assert dialect.ReplyReader().text_frame is None or callable(dialect.ReplyReader().text_frame)
    writer = dialect.ReplyWriter(Request(dialect=dialect.NAME))
    assert writer.delta is None or callable(writer.delta)


@each
def test_an_upstream_is_asked_where_the_dialect_says(dialect: Dialect) -> None:
    """The path of a request is one of the dialect's."""
    assert dialect.upstream_path(Request(dialect=dialect.NAME)) in dialect.PATHS.values()


def test_no_two_dialects_share_a_name_or_a_path() -> None:
    """Names are labels, paths are how a client chooses."""
    assert len({dialect.NAME for dialect in dialects.ALL}) == len(dialects.ALL)
    paths = [path for dialect in dialects.ALL for path in dialect.PATHS]
    assert len(paths) == len(set(paths))


def test_the_configuration_has_the_same_choices() -> None:
    """It loads no dialect, so it repeats two lists of theirs."""
    kinds = get_type_hints(UpstreamSettings)["kind"]
    assert get_args(kinds) == ("auto", *KINDS)
    assert tuple(KINDS) == get_args(KindName)
    assert set(get_args(ReasoningField)) == {*THINKING_CHOICES, *dialects.openai_chat.THINKING_FIELDS}


def test_nobody_compares_dialects() -> None:
    """By identity, by name, by membership or in a `match`: what differs between APIs is a member of the protocol."""
    lines = {path: list(comparisons(parsed(path))) for path in OUTSIDE}
    found = {str(path.relative_to(PACKAGE)): at for path, at in lines.items() if at}
    assert not found, "dialects or kinds of servers are compared in these lines"


@pytest.mark.parametrize(
    "source",
    [
        "if dialect is ollama: pass",
        "x = kind == 'ollama'",
        "x = self._dialect in (openai_chat, other)",
        "x = dialects.anthropic is not found",
        "x = theirs.NAME != 'completions'",
        "x = upstream_dialect == client_dialect",
        "match kind:\n    case 'openai' | 'other':\n        pass",
        "match found:\n    case dialects.ollama:\n        pass",
    ],
)
def test_the_rule_sees_what_it_forbids(source: str) -> None:
    """So that a rule that never fires is not taken for a clean house."""
    assert list(comparisons(ast.parse(source)))


def comparisons(tree: ast.AST) -> Iterator[int]:
    """The lines in which something is compared with a dialect, with its name, or with the name of a kind of server."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            if any(_is_dialect(operand) for operand in (node.left, *node.comparators)):
                yield node.lineno
        elif isinstance(node, ast.MatchValue) and _is_dialect(node.value):
            yield node.lineno


def _is_dialect(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(_is_dialect, node.elts))
    if isinstance(node, ast.Constant):
        return node.value in NAMES if isinstance(node.value, str) else False
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name in MODULES or name.endswith("dialect")
