"""Long thoughts and long conversations stay smooth: what a token costs does not grow with what came before it.

Clocks of a busy machine say little, so work is counted: what the browser lays out, what the page's code looks at, how
often it draws.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.gateway.servers import Servers
from tests.page.conftest import Visitor
from tests.page.talking import END, ask, complete, heading, pieces, script, thought, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SENTENCE = "I look at the numbers once more, and then I add them up again, because they did not fit. "
KINDS = {
    "lines": (SENTENCE + "\n") * 1200,
    "paragraphs": (SENTENCE * 8 + "\n\n") * 150,
    "one line": SENTENCE * 1200,
}

# How many characters the page's code looks at for each piece; its layout is forced by reading a height. It is called
# with texts that grow as in a stream, without the network in between.
MEASURE = """async ([text, size, markdown, watch]) => {
    let looked = 0;
    const names = ['indexOf', 'match', 'matchAll', 'replace', 'replaceAll', 'search', 'split', 'startsWith', 'trim'];
    for (const name of names) {
        const own = String.prototype[name];
        String.prototype[name] = function (...given) {
            looked += this.length;
            return own.apply(this, given);
        };
    }
    const { html, render } = await import('/asides/page/ui.js');
    const { Thought } = await import('/asides/page/parts.js');
    const place = document.querySelector('.turns');
    const settings = { fold: 'open', thoughts: markdown ? 'markdown' : 'plain' };
    const part = { kind: 'thinking', text: '', words: 0, complete: false, seconds: 1 };
    const counts = [];
    for (let end = size; end <= text.length; end += size) {
        part.text = text.slice(0, end);
        looked = 0;
        render(html`<${Thought} part=${part} running=${true} settings=${settings} />`, place);
        if (markdown) await new Promise(requestAnimationFrame);
        document.documentElement.scrollHeight;
        counts.push(looked);
        if (watch && !window.touched && document.querySelectorAll('.markdown > div').length > 1) {
            window.touched = [];
            const first = document.querySelector('.markdown > div');
            const observer = new MutationObserver((changes) => window.touched.push(...changes));
            observer.observe(first, {childList: true, subtree: true});
        }
    }
    return counts;
}"""


def _open(visit: Visitor, servers: Servers) -> Page:
    page = visit(servers.gateway.url)
    page.get_by_role("heading", name="Watch a model think").wait_for()
    return page


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_token_costs_the_same_at_the_end_of_a_long_thought(
    visit: Visitor, servers: Servers, browser: Browser, kind: str
) -> None:
    text = KINDS[kind]
    assert len(text) > 100_000
    page = _open(visit, servers)
    browser.start_tracing(page=page, categories=["devtools.timeline"])
    looked_at = page.evaluate(MEASURE, [text, 50, False])
    events = json.loads(browser.stop_tracing())["traceEvents"]
    laid_out = [
        event["args"]["beginData"]["dirtyObjects"]
        for event in events
        if event["name"] == "Layout" and "beginData" in event["args"]
    ]
    for what, counts in (("characters looked at", looked_at), ("objects laid out", laid_out)):
        assert len(counts) > 2000
        tenth = len(counts) // 10
        early, late = counts[:tenth], counts[-tenth:]
        print(f"{kind}: {max(early)} {what} for a token before 10 kB, {max(late)} after 90 kB")
        assert 0 < max(late) <= 2 * max(early), what


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


@pytest.mark.parametrize("text", ["Some words here.\n\n", "It costs $5 and "])
def test_markdown_of_twice_the_length_is_twice_the_work(visit: Visitor, servers: Servers, text: str) -> None:
    """Also with amounts of money in it, each of which may begin a formula."""
    counts: list[int] = []
    for length in (20_000, 40_000):
        whole = text * (length // len(text))
        counts += _open(visit, servers).evaluate(MEASURE, [whole, len(whole), True])
    assert counts[0] > 20_000
    assert counts[1] < 2.5 * counts[0]


def test_a_thought_of_100_kilobytes_streams_at_the_screens_pace(visit: Visitor, servers: Servers) -> None:
    """Through the gateway, as a model would send it: drawn once for each picture at most, however many pieces come."""
    text = KINDS["lines"]
    script(servers.upstream, "<think>", *pieces(text, 200), "</think>", "Done.")
    page = _open(visit, servers)
    page.evaluate(
        """() => {
            window.pictures = window.drawings = 0;
            const picture = () => { window.pictures += 1; requestAnimationFrame(picture); };
            requestAnimationFrame(picture);
            const inThought = ({target}) => target.parentElement?.closest('.thought-text');
            const observer = new MutationObserver((all) => (window.drawings += all.some(inThought)));
            observer.observe(document.querySelector('.turns'), {childList: true, subtree: true, characterData: true});
        }"""
    )
    ask(page, "2+2?")
    complete(page)
    pictures, drawings = page.evaluate("[window.pictures, window.drawings]")
    print(f"{pictures} pictures, {drawings} drawings of the thought")
    assert 0 < drawings <= pictures + 1, "the last may come with the end of the reply"
    heading(page).click()
    shown = thought(page).locator(".thought-text").evaluate("element => element.textContent.length")
    # As Markdown, the end of a line and the space before it are no characters but a break.
    assert shown >= len(text) - 2 * text.count("\n") - len(text) // 1000


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
            sessionStorage.setItem('asides.chats', JSON.stringify(turns));
        }""",
        SENTENCE,
    )
    page.reload()
    expect(page.locator(".turn")).to_have_count(1000)
    until(page, f"{END} < 24")
    # What is far from the window is not laid out.
    seen = "all => all.filter(each => each.checkVisibility({contentVisibilityAuto: true})).length"
    assert page.locator(".turn .bubble").evaluate_all(seen) < 60
    # Nor while one scrolls through it, which draws nothing.
    page.evaluate(
        """() => {
            window.changes = 0;
            const observer = new MutationObserver((all) => (window.changes += all.length));
            const everything = {childList: true, subtree: true, attributes: true, characterData: true};
            observer.observe(document.querySelector('.turns'), everything);
        }"""
    )
    before, after, most = page.evaluate(
        """() => new Promise((resolve) => {
            const before = scrollY, bubbles = [...document.querySelectorAll('.turn .bubble')];
            let most = 0, left = 120;
            const frame = () => {
                const seen = bubbles.filter((each) => each.checkVisibility({contentVisibilityAuto: true})).length;
                most = Math.max(most, seen);
                scrollBy(0, -400);
                if (--left) requestAnimationFrame(frame);
                else resolve([before, scrollY, most]);
            };
            requestAnimationFrame(frame);
        })"""
    )
    assert after < before - 10_000
    assert 0 < most < 60
    # Typing draws the composer and nothing else.
    page.get_by_label("Your question").press_sequentially("a long question")
    assert page.evaluate("window.changes") == 0
