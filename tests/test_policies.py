"""`Policies`: one record, the same fields as keywords, and what it refuses."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

import asides
from asides import policies
from asides.policies import DEFAULTS, Policies, PolicyOptions


def test_the_record_and_the_keywords_have_the_same_fields() -> None:
    """`PolicyOptions` names every field of `Policies`, in its order, with its type."""
    keywords = get_type_hints(PolicyOptions)
    assert list(keywords) == list(Policies.__struct_fields__)
    assert keywords == get_type_hints(Policies)


def test_every_policy_says_what_it_decides() -> None:
    """A docstring stands below every field."""
    tree = ast.parse(inspect.getsource(policies))
    (record,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Policies")
    below = dict(zip(record.body, record.body[1:], strict=False))
    fields = [node for node in record.body if isinstance(node, ast.AnnAssign)]
    assert [ast.unparse(field.target) for field in fields] == list(Policies.__struct_fields__)
    for field in fields:
        docstring = below[field]
        assert isinstance(docstring, ast.Expr), f"{ast.unparse(field.target)} has no docstring"
        assert isinstance(docstring.value, ast.Constant)


def test_keywords_change_the_record_that_they_stand_beside() -> None:
    """A record and keywords together are the record with those fields changed."""
    text = "  <think> a </think> b </think>"
    exact = Policies(whitespace="exact")
    assert asides.parse(text, "qwen3", exact) == asides.parse(text, "qwen3", whitespace="exact")
    assert asides.parse(text, "qwen3", exact, whitespace="tidy") == asides.parse(text, "qwen3")
    assert asides.clean(text, "qwen3", exact) == asides.clean(text, "qwen3", whitespace="exact")
    events = list(asides.split([text], "qwen3", whitespace="exact"))
    assert list(asides.split([text], "qwen3", exact)) == events
    parser = asides.Parser("qwen3", exact)
    assert parser.feed(text) + parser.finish() == events
    assert exact.but(limit=5) == Policies(whitespace="exact", limit=5)
    assert Policies() == DEFAULTS


def test_the_record_is_frozen() -> None:
    """A record that several parsers share cannot change under them."""
    with pytest.raises(AttributeError):
        DEFAULTS.limit = 5  # type: ignore[misc]


MAKERS: list[Callable[..., object]] = [Policies, DEFAULTS.but, lambda **options: asides.Parser("qwen3", **options)]
"""How a policy comes in: as a record, as a change of a record, as a keyword."""

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"start": "middle"}, "start must be one of 'text', 'thinking', 'undecided', not 'middle'"),
    ({"calls_in_thinking": "x"}, "calls_in_thinking must be one of 'resolve', 'never', 'always', not 'x'"),
    ({"mentions": None}, "mentions must be one of 'literal', 'marker', not None"),
    ({"whitespace": "exakt"}, "whitespace must be one of 'tidy', 'exact', not 'exakt'"),
    ({"limit": 0}, "limit must be at least 1, not 0"),
    ({"strict": {"stray_close", "b", "a"}}, "strict names unknown notices: a, b"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=lambda value: next(iter(value), ""))
def test_what_is_no_choice_is_refused(options: dict[str, Any], message: str) -> None:
    """However the policy comes in."""
    for make in MAKERS:
        with pytest.raises(asides.UsageError) as caught:
            make(**options)
        assert str(caught.value) == message


def test_a_policy_that_does_not_exist_is_refused() -> None:
    """As Python refuses an argument that a function does not have."""
    for make in MAKERS:
        with pytest.raises(TypeError, match="mention"):
            make(mention="marker")
