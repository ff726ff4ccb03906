"""Law 2, for the shortcut: a whole output that it reads is what the machine makes of it, for every format and policy.

The texts are of the ordinary shape, or nearly: markers in their order with odd things between them, doubled, left out.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides import Format
from asides._engine.shortcut import parse_ordinary
from asides.policies import DEFAULTS
from tests.laws.effort import examples
from tests.laws.texts import FENCES, QUOTES, SPACES, WORDS, pieces, policies
from tests.support import check_one_path, stop_markers

every_format = pytest.mark.parametrize("name", asides.formats())


def shapes(name: str) -> st.SearchStrategy[str]:
    """Opener, thinking, closer, text, stop: each perhaps missing, doubled, or with something odd in it."""
    format = asides.get_format(name)
    openers, closers = thinking_markers(format)
    space = st.sampled_from(("", *SPACES))
    word = st.sampled_from((*WORDS, "It is 4.", "a < b", "`x`", "See </a>."))
    odd = st.sampled_from((*QUOTES, *FENCES, *pieces(name)[::7]))
    words = st.lists(st.one_of(word, word, word, word, space, odd), max_size=4).map("".join)
    marker = st.tuples(
        st.sampled_from(("", *openers, *openers)),
        st.sampled_from(("", *closers, *closers)),
        st.sampled_from(("", "", *stop_markers(format))),
    )
    parts = st.tuples(space, space, words, space, space, words, space, space)
    return st.tuples(marker, parts).map(lambda found: _written(*found))


def _written(marker: tuple[str, str, str], parts: tuple[str, ...]) -> str:
    opener, closer, stop = marker
    before, one, thinking, two, three, text, four, five = parts
    return f"{before}{opener}{one}{thinking}{two}{closer}{three}{text}{four}{stop}{five}"


def thinking_markers(format: Format) -> tuple[list[str], list[str]]:
    """What opens thinking in a text, and what closes it."""
    openers = [text for text, state in format.states.get("text", {}).items() if state == "thinking"]
    closers = [text for text, state in format.states.get("thinking", {}).items() if state == "text"]
    return sorted(openers)[:12], sorted(closers)[:12]


@every_format
def test_the_shortcut_is_the_machine(name: str) -> None:
    @settings(max_examples=examples(60))
    @given(shapes(name), policies(name) | st.just({}))
    def law(text: str, chosen: dict[str, Any]) -> None:
        check_one_path(name, text, chosen)

    law()


@pytest.mark.parametrize(
    "text",
    [
        "",
        " It is 4. ",
        "It is 4.<|im_end|>\n",
        "<think>2+2</think>It is 4.",
        "\n<think>\n2+2\n</think>\n\nIt is 4.\n<|im_end|>",
        "2+2</think>It is 4.",
        '<think>\n\n</think>\n\nIt is `4`, "four".\n```\nx < y\n```\n',
        "<think>never closed",
        " <think>\n never closed </thi",
        "<think>\n",
    ],
)
def test_the_ordinary_shape_is_taken(text: str) -> None:
    """Or the law above would say nothing."""
    for name in ("qwen3", "auto"):
        if name == "qwen3" or not text.startswith((" ", "a", "c", "f")):
            assert parse_ordinary(text, asides.get_format(name), DEFAULTS) == asides.parse(text, name)
            assert parse_ordinary(text, asides.get_format(name), DEFAULTS) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Hi <think>2+2</think>It is 4.",
        "<think>a</think>b<think>c</think>d",
        '<think>a "</think>" b</think>c',
        "<think>a</think>b<|im_end|>c",
        '<think>a</think><tool_call>{"name": "f", "arguments": {}}</tool_call>',
        "<think>a <think> b</think>c",
        "```\n</think>\n```\n",
        "<think>a</think>b<|channel|>",
    ],
)
def test_anything_else_is_left_to_the_machine(text: str) -> None:
    assert parse_ordinary(text, asides.get_format("qwen3"), DEFAULTS) is None


def test_a_thought_that_never_closes_may_be_an_error() -> None:
    """Then the machine raises it, with the events so far."""
    format = asides.get_format("qwen3")
    for strict in (True, {"unclosed_thinking"}):
        assert parse_ordinary("<think>a", format, DEFAULTS.but(strict=strict)) is None
        with pytest.raises(asides.StrictError):
            asides.parse("<think>a", "qwen3", strict=strict)
    assert parse_ordinary("<think>a", format, DEFAULTS.but(strict={"stray_close"})) is not None


def test_what_a_caller_chose_is_kept_to() -> None:
    text = "<think>a</think> b "
    format = asides.get_format("qwen3")
    for chosen in ({"whitespace": "exact"}, {"mentions": "marker"}, {"prompt": "x"}, {"limit": 3}, {"collect": False}):
        assert parse_ordinary(text, format, DEFAULTS.but(**chosen)) is None
    with pytest.raises(asides.UsageError):
        asides.parse(text, "qwen3", collect=False)
