"""Many replies together: the law of merging, and what a summary tells."""

from __future__ import annotations

import copy

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides.analysis import Figures, Summary, analyze, summarize
from asides.analysis._summary import MOST_GROUPS, OTHERS, Groups

LOOP = "so we try it again with the other one and it fails " * 12
OUTPUTS = (
    "",
    "No thinking.",
    "<think>Short.</think>Yes.",
    "<think>Wait, is it? Let me check that.\n\nAlternatively, no.</think>Yes, it is.",
    f"<think>{LOOP}</think>Done.",
    "<think>Never clo",
    "<think></think>Empty.",
    '<think>ok</think><tool_call>{"name": "f", "arguments": {}}</tool_call>',
)
SECONDS = (None, 0.1, 2.75)
REPLIES = [analyze(asides.parse(text), seconds=seconds) for text in OUTPUTS for seconds in SECONDS]
SOME = st.lists(st.sampled_from(REPLIES), max_size=12)


@given(SOME, SOME)
def test_the_summary_of_two_parts_merged_is_the_summary_of_all(first: list[Figures], second: list[Figures]) -> None:
    """In either order, floats included."""
    both = summarize(first + second)
    assert summarize(first).merge(summarize(second)) == both
    assert summarize(second).merge(summarize(first)) == both


@given(SOME)
def test_merging_leaves_the_other_alone(figures: list[Figures]) -> None:
    """What was merged in can be used again."""
    other = summarize(figures)
    before = copy.deepcopy(other)
    merged = Summary().merge(other)
    merged.merge(summarize(REPLIES))
    assert other == before


def test_what_a_summary_tells() -> None:
    """Counts, shares and quantiles are those of the replies."""
    told = summarize(REPLIES[::3]).to_dict()
    assert told["replies"] == len(OUTPUTS)
    assert told["replies_with"]["thinking"] == 5
    assert (told["replies_with"]["loop"], told["replies_with"]["unclosed"], told["replies_with"]["empty"]) == (1, 1, 1)
    assert told["totals"]["calls"] == 1
    assert told["turn_kinds"]["stop"] == 1
    assert told["distributions"]["thinking_words"]["count"] == 5
    assert told["distributions"]["share"]["count"] == len(OUTPUTS) - 1  # the empty one has no share
    assert told["loops"][0]["words"] == 12 * 12
    assert "seconds" not in told["distributions"]
    assert set(told["quality_parts"]) == {"substance", "structure", "checking", "steadiness", "freshness", "closed"}
    msgspec.json.encode(told)


def test_time_is_told_where_it_is_known() -> None:
    """And only over the replies that say it."""
    spread = summarize(REPLIES).to_dict()["distributions"]["seconds"]
    assert (spread["min"], spread["max"]) == (0.1, 2.75)


def test_an_empty_summary_tells_noughts() -> None:
    """Nothing is divided by nothing."""
    told = Summary().to_dict()
    assert (told["replies"], told["share"], told["quality_score"]) == (0, 0.0, 0.0)


def test_groups_are_bounded() -> None:
    """A field with ever new values does not fill the memory: the rest is counted together."""
    groups = Groups()
    for number in range(MOST_GROUPS + 50):
        groups.add(f"group {number}", REPLIES[6])
    groups.add("group 0", REPLIES[6])
    assert len(groups.summaries) == MOST_GROUPS + 1
    assert groups.summaries[OTHERS].replies == 50
    assert groups.all().replies == MOST_GROUPS + 51
    assert groups.largest_first()[0][0] == OTHERS
    assert groups.largest_first()[1] == ("group 0", groups.summaries["group 0"])
