"""Laws 1 to 5 over generated texts, for every registered format."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides.events import NOTICES
from tests.laws.effort import examples
from tests.laws.texts import pieces, policies, texts
from tests.support import (
    characters,
    check_chunking,
    check_held,
    check_kept,
    check_one_path,
    cut,
    every_place,
    fail,
    markers,
    run,
    show_events,
)

every_format = pytest.mark.parametrize("name", asides.formats())
SHORT = 80
"""Beyond this many characters a text is cut only at some places."""


@every_format
def test_chunking_does_not_matter(name: str) -> None:
    """Law 1, and law 3 on the way: cut at every place, character by character, and any other cut."""

    @settings(max_examples=examples(25))
    @given(texts(name), policies(name), st.lists(st.integers(1, 300), max_size=8))
    def law(text: str, chosen: dict[str, Any], places: list[int]) -> None:
        ways = [characters(text), cut(text, places), cut(text, (place % (len(text) + 1) for place in places))]
        ways += list(every_place(text))[:: 1 + len(text) // SHORT]
        outcome = check_chunking(name, text, ways, chosen)
        check_kept(name, text, outcome, chosen)

    law()


@every_format
def test_nothing_is_lost(name: str) -> None:
    """Law 3 over longer texts."""

    @settings(max_examples=examples(20))
    @given(texts(name, 10, 40), policies(name))
    def law(text: str, chosen: dict[str, Any]) -> None:
        check_kept(name, text, run(name, (text,), **chosen), chosen)

    law()


@every_format
def test_one_path(name: str) -> None:
    """Law 2."""

    @settings(max_examples=examples(10))
    @given(texts(name), policies(name))
    def law(text: str, chosen: dict[str, Any]) -> None:
        check_one_path(name, text, chosen)

    law()


@every_format
def test_strictness_is_the_only_error(name: str) -> None:
    """Law 4: with `strict` our own error, the same for every cut; its events are those of a lenient reading."""

    @settings(max_examples=examples(10))
    @given(texts(name), policies(name), st.just(True) | st.sets(st.sampled_from(sorted(NOTICES))))
    def law(text: str, chosen: dict[str, Any], strict: bool | set[str]) -> None:
        outcome = check_chunking(name, text, [characters(text)], {**chosen, "strict": strict})
        lenient = run(name, (text,), **chosen)
        if outcome.error is None:
            if outcome.message != lenient.message:
                fail("law 4: strictness that raised nothing changed the result", name, text, chosen)
            codes = {notice.code for notice in lenient.message.notices} if lenient.message else set()
            if codes & (set(NOTICES) if strict is True else set(strict)):  # type: ignore[arg-type]
                fail("law 4: strictness raised nothing", name, text, {**chosen, "strict": strict})
        elif outcome.events != lenient.events[: len(outcome.events)] or outcome.events[-1] != outcome.error:
            fail("law 4: the events of the error differ", name, text, {**chosen, "strict": strict})

    law()


@every_format
def test_little_is_held(name: str) -> None:
    """Law 5: after every chunk, `held` is bounded and exact, and the snapshot is what the events said."""

    @settings(max_examples=examples(10))
    @given(texts(name), policies(name), st.integers(1, 9))
    def law(text: str, chosen: dict[str, Any], size: int) -> None:
        check_held(name, text, cut(text, range(size, len(text), size)), chosen)

    law()


@every_format
def test_without_collecting_the_events_are_the_same(name: str) -> None:
    """Law 1 once more: what is kept for `message` changes nothing, strict or not."""

    @settings(max_examples=examples(8))
    @given(texts(name), policies(name), st.sampled_from((False, True)))
    def law(text: str, chosen: dict[str, Any], strict: bool) -> None:
        expected = run(name, (text,), strict=strict, **chosen)
        for chunks in ((text,), characters(text)):
            found = run(name, chunks, strict=strict, collect=False, **chosen)
            if (found.events, found.error) != (expected.events, expected.error):
                fail(
                    "law 1: collect=False changes the events",
                    name,
                    text,
                    {**chosen, "strict": strict},
                    f"collecting:\n{show_events(expected.events)}",
                    f"not collecting:\n{show_events(found.events)}",
                )

    law()


@every_format
def test_any_text_at_all(name: str) -> None:
    """Law 4: no text makes the parser fail, one without the format's markers least of all."""
    anything = st.text(st.characters(), max_size=40) | st.text(sorted(set("".join(pieces(name)))), max_size=60)

    @settings(max_examples=examples(10))
    @given(anything, policies(name))
    def law(text: str, chosen: dict[str, Any]) -> None:
        check_kept(name, text, check_chunking(name, text, [characters(text)], chosen), chosen)

    law()


BROKEN = (
    ("qwen3", "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value>\n<arg_key>a<<tool_call>.<|im_end|><|tant\n"),
    (
        "deepseek_v32",
        '<｜DSML｜invoke name="f"><｜DSML｜parameter name="a">1</｜DSML｜parameter>'
        '<｜DSML｜parameter e="<think>d</｜DSML｜invoke>""',
    ),
)
"""A tag that never ends, and in it a marker that may be the call's end."""


@pytest.mark.parametrize(("name", "text"), BROKEN)
def test_what_is_held_behind_a_broken_call(name: str, text: str) -> None:
    """Law 5: what stands between where reading stopped and the marker that may end the call is held too."""
    check_held(name, text, characters(text), {})


def test_what_ends_a_value_is_looked_for_no_further_than_may_be_held() -> None:
    """Law 1: a value that is there as a whole ends as it does in a stream."""
    text = "<tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value><tool_call><e"
    for limit in range(8, 40):
        check_chunking("glm45", text, [characters(text)], {"start": "text", "limit": limit})


@pytest.mark.parametrize("name", [name for name in asides.formats() if asides.get_format(name).header is not None])
def test_a_prompt_may_end_inside_a_marker(name: str) -> None:
    """Laws 1 and 3: in a header the output goes on with the marker that the prompt has begun."""
    head = (asides.get_format(name).assistant or ("",))[0]
    for marker in sorted(markers(asides.get_format(name))):
        for length in {1, len(marker) - 1} - {0}:
            for text in (marker[length:], f"{marker[length:]}Four."):
                chosen = {"prompt": head + marker[:length]}
                check_kept(name, text, check_chunking(name, text, [characters(text)], chosen), chosen)


def test_what_is_said_after_half_a_marker_of_the_prompt() -> None:
    whole = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Four."
    for length in range(1, len("<|channel|>")):
        found = asides.parse(whole[length:], "harmony", prompt="<|start|>assistant" + whole[:length])
        assert (found.thinking, found.text) == ("hm", "Four."), length
