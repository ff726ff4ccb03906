"""The figures of one reply, and its quality."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides.analysis import analyze, analyze_thoughts, quality
from asides.analysis._figures import PARTS, grade

REPLY = (
    "<think>First, add two and two. Is it four?\n\nWait, let me check with fingers.</think>It is four."
    '<think>Done.</think><tool_call>{"name": "say", "arguments": {"text": "four"}}</tool_call>'
)


def test_a_reply() -> None:
    """Everything that can be counted in it."""
    found = analyze(asides.parse(REPLY), tokens=len, seconds=1.5)
    thinking = len("First, add two and two. Is it four?\n\nWait, let me check with fingers.") + len("Done.")
    call = len('<tool_call>{"name": "say", "arguments": {"text": "four"}}</tool_call>')
    assert (found.blocks, found.steps, found.questions, found.turns) == (2, 3, 1, 1)
    assert found.turn_kinds == {"stop": 1, "correction": 0, "check": 0, "alternative": 0}
    assert (found.thinking_characters, found.thinking_words) == (thinking, 15)
    assert (found.text_characters, found.text_words, found.call_characters) == (len("It is four."), 3, call)
    assert (found.thinking_tokens, found.text_tokens) == (thinking, len("It is four."))
    assert found.share == thinking / (thinking + len("It is four.") + call)
    assert (found.unclosed, found.empty, found.drafts, found.calls, found.broken_calls) == (0, 0, 0, 1, 0)
    assert (found.repetition, found.loop, found.seconds) == (0.0, None, 1.5)


def test_figures_are_plain_data() -> None:
    """They can be written as JSON."""
    assert msgspec.json.decode(msgspec.json.encode(analyze(asides.parse(REPLY))))["blocks"] == 2


@pytest.mark.parametrize(
    ("text", "format", "empty"),
    [
        ("<think></think>hi", "auto", 1),
        ("<think>\n\n</think>\n\nhi", "qwen3", 1),
        ("</think>hi", "auto", 1),
        ("<think>a</think><think></think>b\n<think> </think>", "auto", 2),
        ("[THINK][/THINK]hi", "mistral", 1),
        ('<think id="1"> </think>hi', "think_tag", 1),
        (
            "<|channel|>analysis<|message|><|end|><|start|>assistant<|channel|>final<|message|>hi<|return|>",
            "harmony",
            1,
        ),
        ("<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>hi<|return|>", "auto", 0),
        ("<think>a</think>b</think>c", "auto", 0),
        ("Write `<think></think>` before it.", "auto", 0),
        ("no thinking at all", "auto", 0),
    ],
)
def test_empty_thoughts(text: str, format: str, empty: int) -> None:
    """A thought with nothing in it is no part of the message, and is counted all the same."""
    assert analyze(asides.parse(text, format), format=format).empty == empty


@pytest.mark.parametrize(
    ("text", "unclosed", "blocks"), [("<think>so", 1, 1), ("<think>", 1, 0), ("<think>a</think>b<think>c", 1, 2)]
)
def test_unclosed_thoughts(text: str, unclosed: int, blocks: int) -> None:
    """A thought that never ends, even before its first word."""
    found = analyze(asides.parse(text))
    assert (found.unclosed, found.blocks) == (unclosed, blocks)


def test_drafted_calls_are_counted_with_and_without_the_raw_text() -> None:
    """By the parser's notices, or by looking into the thoughts."""
    call = '<tool_call>{"name":"a","arguments":{}}</tool_call>'
    message = asides.parse(f"<think>I could {call} or {call} but no.</think>hi")
    assert analyze(message).drafts == analyze_thoughts([message.thinking]).drafts == 2
    assert analyze(message).calls == 0
    assert analyze_thoughts([message.thinking], drafts=7).drafts == 7


def test_nothing_has_figures_too() -> None:
    """An empty output, and no thoughts."""
    nothing = analyze(asides.parse(""))
    assert (nothing.blocks, nothing.share, nothing.quality.score) == (0, None, 0.0)
    assert analyze_thoughts([]) == nothing
    blank = analyze_thoughts(["  \n"])
    assert (blank.blocks, blank.empty, blank.quality.score) == (0, 1, 0.0)


def test_thoughts_have_the_figures_of_the_message_that_they_came_from() -> None:
    """Where it has no calls."""
    message = asides.parse("<think>Is it? Wait, yes.</think>So it is.<think>Cut o")
    thoughts = [part for part in message.parts if isinstance(part, asides.Thinking)]
    assert analyze_thoughts(thoughts, message.text) == analyze(message)


def test_quality_comes_with_its_parts() -> None:
    """Never a bare number, and it unpacks."""
    score, parts = quality(["Let me check the sum of two and two, step by step. Is it four? Yes, it is four, surely."])
    assert set(parts) == set(PARTS)
    assert score == 1.0
    assert quality([]).parts == dict.fromkeys(PARTS, 0.0)


def test_the_score_is_made_of_its_parts_as_documented() -> None:
    """Each part by its rule, and the rule that joins them."""
    found = grade(thoughts=2, words=400, steps=2, questions=1, turns=0, repetition=0.25, unclosed=1)
    assert found.parts == {
        "substance": 1.0,  # 400 words in 2 thoughts are more than 20 each
        "structure": 0.6,  # 2 steps of 120 words would be full, there are 400
        "checking": 0.5,  # one in 200 words is full, there is one in 400
        "steadiness": 1.0,
        "freshness": 0.75,
        "closed": 0.5,
    }
    assert found.score == round((1.0 + 0.6 + 0.5 + 1.0) / 4 * 0.75 * (0.5 + 0.5 * 0.5), 4)
    restless = grade(thoughts=1, words=100, steps=1, questions=0, turns=8, repetition=0.0, unclosed=0)
    assert restless.parts["steadiness"] == round((10 - 8) / 7, 4)


@given(st.lists(st.text(max_size=80), max_size=5), st.text(max_size=40))
def test_any_thoughts_have_figures_within_bounds(thoughts: list[str], text: str) -> None:
    """Shares and scores are from 0 to 1, counts are not below 0."""
    found = analyze_thoughts(thoughts, text)
    assert found.blocks + found.empty == len(thoughts)
    assert 0 <= found.repetition <= 1
    assert all(0 <= part <= 1 for part in (found.quality.score, *found.quality.parts.values()))
    assert found.share is None or 0 <= found.share <= 1


@given(st.text(st.sampled_from("<think></think>[/THINK] \nab"), max_size=60))
def test_any_output_has_figures(text: str) -> None:
    """Whatever it is made of."""
    analyze(asides.parse(text))
