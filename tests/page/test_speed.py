"""Long thoughts and long conversations stay smooth: what a token costs does not grow with what came before it.

Clocks of a busy machine say little, so work is counted where it can be, and times are compared within one run: the end
of a thought with its beginning.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.gateway.servers import Servers
from tests.page.conftest import Visitor
from tests.page.talking import END, ask, complete, heading, pieces, script, thought, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

SENTENCE = "I look at the numbers once more, and then I add them up again, because they did not fit. "
KINDS = {
    "lines": (SENTENCE + "\n") * 1200,
    "paragraphs": (SENTENCE * 8 + "\n\n") * 150,
    "one line": SENTENCE * 1200,
}

# The cost of drawing each piece: script, style and layout, forced by reading a height. The page's own code is called
# with texts that grow as in a stream, without the network in between.
MEASURE = """async ([text, size, markdown, watch]) => {
    const { html, render } = await import('/asides/page/ui.js');
    const { Thought } = await import('/asides/page/parts.js');
    const place = document.querySelector('.turns');
    const settings = { fold: 'open', thoughts: markdown ? 'markdown' : 'plain' };
    const part = { kind: 'thinking', text: '', words: 0, complete: false, seconds: 1 };
    const times = [];
    for (let end = size; end <= text.length; end += size) {
        part.text = text.slice(0, end);
        const began = performance.now();
        render(html`<${Thought} part=${part} running=${true} settings=${settings} />`, place);
        if (markdown) await new Promise(requestAnimationFrame);
        document.documentElement.scrollHeight;
        times.push(performance.now() - began);
        if (watch && !window.touched && document.querySelectorAll('.markdown > div').length > 1) {
            window.touched = [];
            const first = document.querySelector('.markdown > div');
            const observer = new MutationObserver((changes) => window.touched.push(...changes));
            observer.observe(first, {childList: true, subtree: true});
        }
    }
    return times;
}"""


def _open(visit: Visitor, servers: Servers) -> Page:
    page = visit(servers.gateway.url)
    page.get_by_role("heading", name="Watch a model think").wait_for()
    return page


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_token_costs_the_same_at_the_end_of_a_long_thought(visit: Visitor, servers: Servers, kind: str) -> None:
    text = KINDS[kind]
    assert len(text) > 100_000
    page = _open(visit, servers)
    times = page.evaluate(MEASURE, [text, 50, False])
    assert len(times) > 2000
    tenth = len(times) // 10
    # The first tenth warms the browser up; a median is not moved by what else the machine does.
    early, late = statistics.median(times[tenth : 2 * tenth]), statistics.median(times[-tenth:])
    print(f"{kind}: {early:.3f} ms a token after 10 kB, {late:.3f} ms after 100 kB")
    assert late < 2 * early + 0.3
    assert late < 8, "half a frame"


def test_blocks_of_a_long_thought_are_bounded_and_finished_ones_are_not_touched(
    visit: Visitor, servers: Servers
) -> None:
    page = _open(visit, servers)
    page.evaluate("document.querySelector('.turns').dataset.seen = ''")
    for kind, text in KINDS.items():
        page.evaluate(MEASURE, [text, 997, False])
        lengths = page.locator(".thought-text .block").evaluate_all("all => all.map(block => block.textContent.length)")
        assert max(lengths) < 8200, kind
        assert sum(lengths) + len(lengths) >= len(text) - 1000
        page.evaluate("async () => (await import('/asides/page/ui.js')).render(null, document.querySelector('.turns'))")


def test_a_finished_block_of_markdown_is_not_drawn_again(visit: Visitor, servers: Servers) -> None:
    page = _open(visit, servers)
    page.evaluate(MEASURE, [KINDS["paragraphs"][:20_000], 500, True, True])
    assert page.evaluate("window.touched.length") == 0


def test_a_thought_of_100_kilobytes_streams_at_the_screens_pace(visit: Visitor, servers: Servers) -> None:
    """Through the gateway, as a model would send it. The frames that the page drew meanwhile are counted."""
    text = KINDS["lines"]
    script(servers.upstream, "<think>", *pieces(text, 200), "</think>", "Done.")
    page = _open(visit, servers)
    page.evaluate(
        """() => {
            window.gaps = [];
            let before = performance.now();
            const frame = (now) => { window.gaps.push(now - before); before = now; requestAnimationFrame(frame); };
            requestAnimationFrame(frame);
        }"""
    )
    ask(page, "2+2?")
    complete(page)
    gaps = sorted(page.evaluate("window.gaps"))
    print(f"{len(gaps)} frames, median {statistics.median(gaps):.1f} ms, slowest {gaps[-1]:.0f} ms")
    assert statistics.median(gaps) < 100
    heading(page).click()
    shown = thought(page).locator(".thought-text").evaluate("element => element.textContent.length")
    assert shown >= len(text) - len(text) // 1000


def test_a_conversation_of_500_turns_scrolls_and_is_typed_in_smoothly(visit: Visitor, servers: Servers) -> None:
    page = _open(visit, servers)
    page.evaluate(
        """(sentence) => {
            const turns = [];
            for (let id = 1; id <= 1000; id += 2) {
                turns.push({id, role: 'user', text: `Question ${id}`, images: []});
                turns.push({id: id + 1, role: 'assistant', model: 'm', state: 'done', seconds: 1, parts: [
                    {kind: 'thinking', text: sentence.repeat(20), complete: true, seconds: 1},
                    {kind: 'text', text: `Answer **${id}**.\\n\\n` + sentence.repeat(6), words: 3, complete: true}]});
            }
            sessionStorage.setItem('asides.talk', JSON.stringify(turns));
        }""",
        SENTENCE,
    )
    page.reload()
    expect(page.locator(".turn")).to_have_count(1000)
    until(page, f"{END} < 24")
    # What is far from the window is not laid out.
    seen = "all => all.filter(each => each.checkVisibility({contentVisibilityAuto: true})).length"
    assert page.locator(".turn .bubble").evaluate_all(seen) < 60
    gaps = page.evaluate(
        """() => new Promise((resolve) => {
            const gaps = [];
            let before = performance.now(), left = 120;
            const frame = (now) => {
                gaps.push(now - before);
                before = now;
                scrollBy(0, -400);
                if (--left) requestAnimationFrame(frame);
                else resolve(gaps);
            };
            requestAnimationFrame(frame);
        })"""
    )
    gaps.sort()
    print(f"scrolling: median {statistics.median(gaps):.1f} ms, slowest tenth from {gaps[-len(gaps) // 10]:.1f} ms")
    assert statistics.median(gaps) < 50
    # Typing draws the composer and nothing else.
    page.evaluate(
        """() => {
            window.changes = 0;
            const observer = new MutationObserver((all) => (window.changes += all.length));
            const everything = {childList: true, subtree: true, attributes: true, characterData: true};
            observer.observe(document.querySelector('.turns'), everything);
        }"""
    )
    page.get_by_label("Your question").press_sequentially("a long question")
    assert page.evaluate("window.changes") == 0
