"""The outline of a thought: where steps begin, what they are, and that a stream gives the same."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from asides.analysis import Outliner, outline
from asides.analysis import _outline as module
from tools.blocks import with_blocks
from tools.outline_rates import BLOCKS, LEAST, PAGE, rates

PIECES = st.sampled_from(
    [
        *(
            "Wait",
            "wait, no. ",
            "Actually, ",
            "Let me check. ",
            "So the answer is 4.",
            "First, I need to add. ",
            "K. 452",
        ),
        *(
            "\n",
            "\n\n",
            " ",
            "1. ",
            "2) ",
            "```\n",
            "~~~",
            "3.14",
            "?! ",
            "。",
            "首先",
            "等等，",
            "所以答案是4。",
            "…",
            '."',
        ),
        *("## Plan\n", "- item\n", "\\boxed{4}", "word ", "x" * 400, "İ", "ﬁ", "\u200b", "e.g. ", "A", ".", "*", "_"),
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map("".join)


def kinds(thought: str) -> list[tuple[str, str]]:
    return [(step.kind, step.title) for step in outline(thought)]


@pytest.mark.parametrize(
    ("thought", "expected"),
    [
        ("", []),
        (" \n\n---\n", []),
        ("We are given 17 apples.", [("restate", "We are given 17 apples.")]),
        ("Okay, so I need to figure out x.", [("restate", "Okay, so I need to figure out x.")]),
        ("First, we need to add.\n\nThen rest.", [("plan", "First, we need to add."), ("unknown", "Then rest.")]),
        ("It is 4. Wait, is it? Yes.", [("unknown", "It is 4."), ("turn", "Wait, is it?")]),
        ("It is 4. Wait. Let me check the sum.", [("unknown", "It is 4."), ("check", "Wait. Let me check the sum.")]),
        ("Suppose x is 2.", [("try", "Suppose x is 2.")]),
        (
            "It is 3.14 or so. Actually, that is wrong.",
            [("unknown", "It is 3.14 or so."), ("correct", "Actually, that is wrong.")],
        ),
        ("1. one\n2. two", [("unknown", "one"), ("unknown", "two")]),
        ("The quintet, K. 452, is his.", [("unknown", "The quintet, K. 452, is his.")]),
        ("We get\n\\[ \\boxed{4} \\]", [("unknown", "We get"), ("conclude", "\\boxed{4} \\]")]),
        ("Code:\n```\n# Wait, no.\n\nSo the answer is 4.\n```\n", [("unknown", "Code:")]),
        (
            "首先，计算。\n\n等等，不对。所以答案是4。",
            [("plan", "首先，计算。"), ("turn", "等等，不对。"), ("conclude", "所以答案是4。")],
        ),
        (
            "Zuerst addieren wir. Moment, stimmt das? Also ist es 4.",
            [("plan", "Zuerst addieren wir."), ("turn", "Moment, stimmt das?"), ("conclude", "Also ist es 4.")],
        ),
        ("The waiter said: wait for it.", [("unknown", "The waiter said: wait for it.")]),
    ],
)
def test_steps(thought: str, expected: list[tuple[str, str]]) -> None:
    assert kinds(thought) == expected


def test_a_long_title_is_cut_at_a_word() -> None:
    (step,) = outline("word " * 100)
    assert len(step.title) <= module.TITLE
    assert step.title.endswith("word…")


@given(TEXTS)
@example("a.\n\n\n")
def test_steps_cover_the_thought_and_follow_one_another(thought: str) -> None:
    steps = outline(thought)
    if not steps:
        return
    assert steps[0].span[0] == 0
    assert steps[-1].span[1] == len(thought)
    assert all(one.span[1] == other.span[0] for one, other in pairwise(steps))
    assert all(step.span[0] < step.span[1] and step.kind in module.STEP_KINDS for step in steps)
    assert all(len(step.title) <= module.TITLE for step in steps)


@given(TEXTS, st.integers(1, 7))
def test_how_a_thought_is_cut_changes_nothing(thought: str, size: int) -> None:
    outliner = Outliner()
    for start in range(0, len(thought), size):
        outliner.feed(thought[start : start + size])
        outliner.steps  # noqa: B018 - looking at it must change nothing
    assert outliner.finish() == outline(thought)


@pytest.mark.parametrize("piece", ["word ", "Wait. ", ". ", "1. ", "```\n", "…", "K. ", "\n", "*"])
def test_every_sentence_is_looked_at_once(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work is counted: characters in which an end is looked for, and sentences whose kind is asked for."""
    searched = 0
    next_end = Outliner._next_end

    def counting(self: Outliner, text: str) -> int:
        nonlocal searched
        searched += len(text)
        return next_end(self, text)

    monkeypatch.setattr(Outliner, "_next_end", counting)
    work = []
    for times in (10_000, 20_000):
        searched = 0
        outline(piece * times)
        work.append(searched)
    assert work[1] <= 2.1 * work[0] + module.LONGEST


def test_the_rules_are_right_about_labelled_steps() -> None:
    """What docs/how-to/analysis.md says of it is written by `python -m tools.outline_rates --write`."""
    found = rates()
    assert all(rate.precision >= LEAST for rate in found.values())
    page = PAGE.read_text(encoding="utf-8")
    assert with_blocks(page, BLOCKS) == page, "run: make families"


def test_the_labels_fit_the_steps() -> None:
    traces = json.loads((Path(__file__).parent / "outline_labels.json").read_text("utf-8"))
    assert sum(len(trace["steps"]) for trace in traces) == 200
    for trace in traces:
        spans = {step.span for step in outline(trace["thought"])}
        assert {(start, end) for start, end, *_ in trace["steps"]} <= spans
