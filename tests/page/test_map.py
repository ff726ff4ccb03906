"""The map of a thought: its ribbon and its outline, with the same steps as `asides.analysis.outline`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from asides.analysis import outline
from tests.gateway.servers import Servers
from tests.gateway.upstream import Gate
from tests.page.conftest import Visitor
from tests.page.talking import ask, complete, pieces, script, thought

if TYPE_CHECKING:
    from playwright.sync_api import Page

LABELS = Path(__file__).parents[1] / "analysis/outline_labels.json"
THOUGHTS = [trace["thought"] for trace in json.loads(LABELS.read_text("utf-8"))]
ODD = [
    "",
    "\n\n",
    "1. a\n2. b",
    "首先，计算。\n\n等等，不对。所以答案是4。",
    "```\nWait.\n```\nSo, CH₂O. Wait. Let me check.",
    "x" * 3000,
]
OUTLINES = """async thoughts => {
    const { Outliner } = await import(new URL('asides/page/outline.js', location.origin + '/').href);
    return thoughts.map(([text, size]) => {
        const outliner = new Outliner();
        for (let at = 0; at < text.length; at += size) outliner.feed(text.slice(at, at + size));
        return outliner.finish().map(({ start, end, kind, title }) => [[start, end], kind, title]);
    });
}"""


def test_the_page_and_the_library_make_the_same_outline(visit: Visitor, servers: Servers) -> None:
    """However a thought is cut. (JavaScript counts characters beyond the first 65,536 twice; there are none here.)"""
    page = visit(servers.gateway.url)
    asked = [[text, size] for text in (*THOUGHTS, *ODD) for size in (7, 100_000)]
    found = page.evaluate(OUTLINES, asked)
    for (text, _), steps in zip(asked, found, strict=True):
        assert steps == [[list(step.span), step.kind, step.title] for step in outline(str(text))]


@pytest.mark.parametrize("shown", ["markdown", "plain"])
def test_a_long_thought_has_a_map_that_leads_to_its_steps(
    visit: Visitor, servers: Servers, photograph: Callable[[Page, str], None], shown: str
) -> None:
    text = THOUGHTS[6]
    steps = outline(text)
    gate = Gate()
    script(servers.upstream, "<think>", *pieces(text, 40), gate, "</think>", "It is **Goodfellas**.")
    page = visit(servers.gateway.url, settings=f'{{"fold": "open", "thoughts": "{shown}"}}')
    ask(page, "Which film?")
    map_of = thought(page).locator(".thought-outline")
    expect(map_of.locator("summary")).to_contain_text(f"{len(steps)} steps")
    expect(map_of.locator(".outline li")).to_have_count(len(steps))
    gate.open()
    complete(page)
    photograph(page, "chats-map")
    last = next(step for step in reversed(steps) if step.kind == "turn")
    map_of.get_by_role("button", name=last.title).last.click()
    assert text[last.span[0] :].strip().startswith(page.evaluate("String(getSelection())").strip() or "\0")
    expect(thought(page).locator(".mention")).to_have_text("First says “Goodfellas” after 13% of the thought")
    map_of.get_by_label("Find in this thought").fill("casino")
    expect(map_of.get_by_role("status")).to_have_text(f"1 of {text.lower().count('casino')}")
    page.keyboard.press("Enter")
    expect(map_of.get_by_role("status")).to_have_text(f"2 of {text.lower().count('casino')}")
    map_of.get_by_label("Find in this thought").fill("nowhere in it")
    expect(map_of.get_by_role("status")).to_have_text("not found")
    map_of.get_by_label("only the turns").check()
    expect(map_of.locator(".outline li")).to_have_count(sum(step.kind in ("turn", "correct") for step in steps))
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_a_short_thought_has_none(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>Two and two. Wait.</think>", "4")
    page = visit(servers.gateway.url, settings='{"fold": "open"}')
    ask(page, "2+2?")
    complete(page)
    expect(thought(page)).to_be_visible()
    expect(page.locator(".ribbon")).to_have_count(0)


@pytest.mark.parametrize("size", [2_000, 4_000])
def test_the_ribbon_has_as_many_elements_as_there_are_changes(visit: Visitor, servers: Servers, size: int) -> None:
    """A thought of thousands of steps of one kind is one stretch."""
    script(servers.upstream, "<think>" + "It is so.\n\n" * size, "</think>", "yes")
    page = visit(servers.gateway.url, settings='{"fold": "open"}')
    ask(page, "so?")
    complete(page)
    expect(page.locator(".thought-outline summary")).to_contain_text(f"{size} steps")
    expect(page.locator(".ribbon rect:not(.ribbon-loop)")).to_have_count(1)


def test_a_loop_is_said_while_it_runs(visit: Visitor, servers: Servers) -> None:
    """And where it begins stands on the ribbon; a thought that repeats nothing has no alarm."""
    gate = Gate()
    beginning = "We are given a tree.\n\nFirst, count its leaves.\n\nWait, is it a tree?\n\nLet me check.\n\n"
    beginning += "Alternatively, count its edges.\n\nNow go on with that.\n\n"
    script(servers.upstream, f"<think>{beginning}", gate, *["Maybe I should count the leaves once more. "] * 30)
    page = visit(servers.gateway.url, settings='{"fold": "open"}')
    ask(page, "so?")
    expect(page.locator(".ribbon")).to_be_visible()
    expect(page.locator(".loop-alarm, .ribbon-loop")).to_have_count(0)
    gate.open()
    complete(page)
    expect(page.locator(".loop-alarm")).to_contain_text("repeated itself")
    expect(page.locator(".loop-alarm")).to_contain_text("30 times")
    place = page.locator(".ribbon-loop").evaluate("mark => mark.x.baseVal.value / 1000")
    assert abs(place - len(beginning) / (len(beginning) + 30 * 43)) < 0.02


LOOPS = """async texts => {
    const { loopAtEnd } = await import(new URL('asides/page/loops.js', location.origin + '/').href);
    return texts.map(loopAtEnd);
}"""


def test_what_a_loop_is(visit: Visitor, servers: Servers) -> None:
    page = visit(servers.gateway.url)
    round_ = "So I go over it again, from the first line to the last one, and count. "
    loop = "It begins:\n" + round_ * 5 + round_[:20]
    none = [
        "",
        "short",
        "abc " * 60,  # too short
        "| 1 | 2 | 3 |\n" * 200,  # no letters
        THOUGHTS[6],
        round_ + "Something else entirely, with its own words and nothing that came before it. " + round_,
    ]
    assert page.evaluate(LOOPS, [loop, *none]) == [{"start": 11, "rounds": 5}, *[None] * len(none)]
