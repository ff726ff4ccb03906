"""Chats: a question, the thought while it comes, the answer, and what can be done with them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.gateway.running import Gateway
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import Asked, Close, Gate, Pause, Reply, Step, frame, left
from tests.page.conftest import Visitor
from tests.page.talking import DONE, END, ask, complete, copied, heading, is_open, pieces, script, thought, until

if TYPE_CHECKING:
    from playwright.sync_api import Page

LONG = "\n\n".join(f"Step {number}: I look at it once more." for number in range(120))


def test_a_thought_appears_while_it_comes_and_folds_when_the_answer_begins(visit: Visitor, servers: Servers) -> None:
    begun, answered = Gate(), Gate()
    script(servers.upstream, "<think>First I add", begun, " two and two.</think>\n\nIt is", answered, " **four**.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    expect(thought(page)).to_contain_text("First I add")
    expect(heading(page)).to_have_attribute("aria-expanded", "true")
    expect(heading(page)).to_contain_text("Thinking")
    begun.open()
    expect(page.locator(".answer")).to_contain_text("It is")
    expect(heading(page)).to_have_attribute("aria-expanded", "false")
    expect(thought(page).locator(".thought-text")).to_be_hidden()
    answered.open()
    complete(page)
    expect(page.locator(".answer strong")).to_have_text("four")
    above = page.evaluate(
        "document.querySelector('.thought').compareDocumentPosition(document.querySelector('.answer')) & 4"
    )
    assert above, "the thought stands above the answer"


@pytest.mark.parametrize(("choice", "open_at_the_end"), [("open", "true"), ("folded", "false")])
def test_thoughts_are_always_open_or_always_folded_where_a_setting_says_so(
    visit: Visitor, servers: Servers, choice: str, open_at_the_end: str
) -> None:
    gate = Gate()
    script(servers.upstream, "<think>Let me see", gate, "</think>Done.")
    page = visit(servers.gateway.url)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Always open" if choice == "open" else "Always folded").check()
    page.keyboard.press("Escape")
    ask(page, "2+2?")
    expect(heading(page)).to_have_attribute("aria-expanded", open_at_the_end)
    gate.open()
    complete(page)
    expect(heading(page)).to_have_attribute("aria-expanded", open_at_the_end)
    page.reload()
    complete(page)
    expect(heading(page)).to_have_attribute("aria-expanded", open_at_the_end)


def test_the_heading_has_seconds_words_and_tokens_a_second(visit: Visitor, servers: Servers) -> None:
    gate = Gate()
    script(servers.upstream, "<think>one two th", "ree four", gate, " five</think>", "Done.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    expect(heading(page)).to_contain_text("4 words")
    # The clock goes on while nothing comes.
    expect(heading(page)).to_contain_text(re.compile(r"[1-9]\.\d s"))
    gate.open()
    complete(page)
    expect(heading(page)).to_have_text(
        re.compile(r"^\s*Thought\s*\d+(\.\d)? s · 5 words · about \d+(\.\d)? tokens/s\s*$")
    )


def test_words_that_turn_out_to_be_a_thought_move_into_one(visit: Visitor, servers: Servers) -> None:
    """The prompt had opened it. They came as the answer, and the stream's end says how many they were."""
    gate = Gate()
    script(servers.upstream, "Two and \U0001f388 two", gate, "\n</think>\n\n", "It is 4.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    expect(page.locator(".answer")).to_contain_text("Two and")
    gate.open()
    complete(page)
    expect(thought(page).locator(".thought-text")).to_contain_text("Two and \U0001f388 two")
    expect(page.locator(".answer")).to_have_text("It is 4.")


def test_a_thought_that_ran_out_of_tokens_was_cut_off(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>I never come to", reason="length")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    expect(heading(page)).to_contain_text("cut off")
    expect(page.locator(".turn.reply")).to_contain_text("out of tokens")
    assert is_open(page)


@pytest.mark.parametrize("written", ["<think>I have it.</think>", "<think>I have it.</think>\n\n", "<think>I have it."])
def test_a_thought_without_an_answer_stays_open_and_it_is_said(visit: Visitor, servers: Servers, written: str) -> None:
    """Nothing is said of how the thought ended: a stream does not tell whether it was closed."""
    script(servers.upstream, written)
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    expect(page.get_by_text("It ended without an answer.")).to_be_visible()
    expect(page.locator("#live")).to_have_text("It ended without an answer")
    expect(heading(page)).to_have_attribute("aria-expanded", "true")
    assert is_open(page)
    expect(thought(page).locator(".badge")).to_have_count(0)
    # As long as there is none: it folds for the next answer as any other.
    script(servers.upstream, "<think>Again.</think>", "It is 4.")
    page.get_by_role("button", name="Regenerate").click()
    expect(page.locator(".answer")).to_have_text("It is 4.")
    expect(heading(page)).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_text("It ended without an answer.")).to_have_count(0)


def test_a_reply_with_nothing_in_it_is_said_to_be_empty(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream)
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    expect(page.locator(".turn.reply")).to_contain_text("The reply was empty.")


def _long(visit: Visitor, servers: Servers) -> Page:
    """A finished reply with a long thought, opened."""
    script(servers.upstream, f"<think>{LONG}</think>", "Done.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    heading(page).click()
    expect(heading(page)).to_have_attribute("aria-expanded", "true")
    return page


def test_a_thought_folds_from_its_heading(visit: Visitor, servers: Servers) -> None:
    page = _long(visit, servers)
    heading(page).click()
    expect(thought(page).locator(".thought-text")).to_be_hidden()
    heading(page).click()
    expect(thought(page).locator(".thought-text")).to_be_visible()


def test_a_thought_folds_from_its_margin_all_along(visit: Visitor, servers: Servers) -> None:
    page = _long(visit, servers)
    margin, text = thought(page).locator(".thought-margin"), thought(page).locator(".thought-text")
    assert margin.bounding_box()["height"] >= text.bounding_box()["height"]
    thought(page).locator("p").get_by_text("Step 60:").scroll_into_view_if_needed()
    box = thought(page).bounding_box()
    page.mouse.click(box["x"] + 12, 400)
    expect(text).to_be_hidden()
    # The reader is not left far below: the heading is in view.
    expect(heading(page)).to_be_in_viewport()


def test_a_thought_folds_from_its_end(visit: Visitor, servers: Servers) -> None:
    page = _long(visit, servers)
    thought(page).get_by_role("button", name="Fold this thought").click()
    expect(thought(page).locator(".thought-text")).to_be_hidden()
    expect(heading(page)).to_be_in_viewport()


def test_the_heading_sticks_while_a_long_thought_is_scrolled(visit: Visitor, servers: Servers) -> None:
    page = _long(visit, servers)
    thought(page).locator("p").get_by_text("Step 60:").evaluate("element => element.scrollIntoView()")
    page.evaluate("scrollTo(0, document.querySelector('.thought').offsetTop + 1200)")
    expect(heading(page)).to_be_in_viewport()
    # The names of the views stand at the side of a window this wide, so nothing is above it.
    assert page.locator("header.top").bounding_box()["width"] < 400
    assert heading(page).bounding_box()["y"] == pytest.approx(0, abs=2)


def test_a_folds_and_opens_all_thoughts_but_not_while_one_types(visit: Visitor, servers: Servers) -> None:
    page = visit(servers.gateway.url)
    for question in ("first", "second"):
        script(servers.upstream, f"<think>about {question}</think>", "Done.")
        ask(page, question)
        expect(page.locator(".turn.reply")).to_have_count(1 if question == "first" else 2)
        complete(page)
    page.locator("body").click(position={"x": 5, "y": 300})
    page.keyboard.press("a")
    for number in range(2):
        expect(heading(page, number)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("a")
    for number in range(2):
        expect(heading(page, number)).to_have_attribute("aria-expanded", "false")
    page.get_by_label("Your question").press("a")
    expect(page.get_by_label("Your question")).to_have_value("a")
    expect(heading(page)).to_have_attribute("aria-expanded", "false")


def test_a_thought_answers_to_a_key_as_soon_as_it_is_drawn(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>hm</think>", "Done.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    page.add_init_script(
        """new MutationObserver((changes, observer) => {
            if (!document.querySelector('.thought')) return;
            observer.disconnect();
            document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', bubbles: true}));
        }).observe(document, {childList: true, subtree: true})"""
    )
    page.reload()
    expect(heading(page)).to_have_attribute("aria-expanded", "true")


def test_the_view_follows_the_end_until_one_scrolls_up(visit: Visitor, servers: Servers) -> None:
    first, second, third = Gate(), Gate(), Gate()
    half = LONG[: len(LONG) // 2]
    script(servers.upstream, f"<think>{half}", first, LONG, second, "\nnearly there", third, "</think>Done.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    until(page, f"document.querySelector('.thought-text')?.textContent.length > 1000 && {END} < 24")
    first.open()
    until(page, f"document.querySelector('.thought-text').textContent.length > 5000 && {END} < 24")
    page.mouse.move(600, 300)
    page.mouse.wheel(0, -900)
    until(page, f"{END} > 500")
    before = page.evaluate("scrollY")
    second.open()
    expect(thought(page)).to_contain_text("nearly there")
    assert page.evaluate("scrollY") == before
    page.get_by_role("button", name="To the newest").click()
    until(page, f"{END} < 24")
    third.open()
    complete(page)
    until(page, f"{END} < 24")


def test_a_question_is_in_view_after_a_reply_that_failed(visit: Visitor, servers: Servers) -> None:
    """The message of a failure is a large step at once. It is no way up of the person's, so the view still follows."""
    page = visit(servers.gateway.url)
    for number in range(4):
        script(servers.upstream, "<think>on and on</think>", "The answer is forty", Close(), reason=None)
        ask(page, f"question {number}")
        expect(page.get_by_text("The reply broke off.")).to_have_count(number + 1)
        complete(page)
        until(page, f"{END} < 24")
    gate = Gate()
    script(servers.upstream, "<think>hm", gate, "</think>Done.")
    ask(page, "the last question")
    expect(page.get_by_text("the last question")).to_be_in_viewport()
    until(page, f"{END} < 24")
    gate.open()
    complete(page)


def test_a_thought_that_is_opened_is_what_is_looked_at(visit: Visitor, servers: Servers) -> None:
    """Neither a finished reply nor one that still grows pulls the view to its end."""
    page = _long(visit, servers)
    expect(heading(page)).to_be_in_viewport()
    expect(thought(page).locator("p").get_by_text("Step 0:")).to_be_in_viewport()
    heading(page).click()
    gate, more = Gate(), Gate()
    script(servers.upstream, "<think>hm", gate, LONG, more, "</think>Done.")
    ask(page, "Again?")
    expect(thought(page, 1)).to_contain_text("hm")
    heading(page, 0).click()
    gate.open()
    expect(thought(page, 1)).to_contain_text("Step 119")
    expect(thought(page).locator("p").get_by_text("Step 0:")).to_be_in_viewport()
    more.open()
    complete(page)


def test_a_thought_stays_open_for_who_is_reading_it(visit: Visitor, servers: Servers) -> None:
    gate = Gate()
    script(servers.upstream, f"<think>{LONG}", gate, "</think>Done.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    expect(thought(page)).to_contain_text("Step 119")
    page.mouse.move(600, 300)
    page.mouse.wheel(0, -900)
    page.get_by_role("button", name="To the newest").wait_for()
    gate.open()
    complete(page)
    expect(heading(page)).to_have_attribute("aria-expanded", "true")


def test_thoughts_calls_and_results_stand_in_their_order(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url)
    page.get_by_role("button", name="What is the weather in Lisbon?").click()
    page.get_by_label("What the tool answers").fill("21 degrees, sunny")
    page.get_by_role("button", name="Send the result").click()
    expect(page.locator(".answer").last).to_contain_text("The tool says: 21 degrees, sunny")
    complete(page)
    kinds = page.locator(".timeline > li").evaluate_all("items => items.map(item => item.className)")
    assert kinds == ["part-thinking", "part-text", "part-tool_call", "part-result", "part-thinking", "part-text"]
    expect(page.locator(".call").first).to_contain_text("get_weather")
    expect(page.locator(".call").first).to_contain_text('"city": "Lisbon"')


def test_a_second_thought_behind_text_is_a_thought_of_its_own(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>one</think>", "First.", "<think>two</think>", "Second.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    kinds = page.locator(".timeline > li").evaluate_all("items => items.map(item => item.className)")
    assert kinds == ["part-thinking", "part-text"] * 2
    expect(thought(page, 1).locator(".thought-text")).to_have_text("two")


def test_what_a_call_answered_is_sent_back_with_the_thought(visit: Visitor, servers: Servers) -> None:
    servers.upstream.say(
        "<think>look it up</think>", calls=(("get_weather", '{"city": "Lisbon"}'),), reason="tool_calls"
    )
    page = visit(servers.gateway.url)
    page.get_by_role("button", name="Prompt, tools").click()
    page.get_by_role("button", name="Insert an example").click()
    page.get_by_label("System prompt", exact=True).fill("Be brief.")
    page.get_by_role("button", name="Use these").click()
    ask(page, "Weather?")
    page.get_by_label("What the tool answers").fill("rain")
    script(servers.upstream, "<think>fine</think>", "It rains.")
    page.get_by_role("button", name="Send the result").click()
    expect(page.locator(".answer")).to_contain_text("It rains.")
    sent = servers.upstream.question().body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool"]
    assert sent[0]["content"] == "Be brief."
    assert sent[3]["content"] == "rain"
    assert "look it up" in json.dumps(sent[2])


def test_model_effort_and_system_prompt_are_sent_and_stand_in_the_address(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url)
    page.get_by_label("Model").select_option("recorded-gpt-oss")
    page.get_by_label("Effort").select_option("high")
    page.get_by_role("button", name="Prompt, tools").click()
    page.get_by_label("System prompt", exact=True).fill("Be brief & kind.")
    page.get_by_role("button", name="Use these").click()
    expect(page).to_have_url(re.compile(r"#/chats\?model=recorded-gpt-oss&effort=high&system=Be\+brief"))
    with page.expect_request("**/v1/chat/completions") as asked:
        ask(page, "What is 17 times 23?")
    body = asked.value.post_data_json
    assert (body["model"], body["reasoning_effort"]) == ("recorded-gpt-oss", "high")
    assert body["messages"][0] == {"role": "system", "content": "Be brief & kind."}
    complete(page)
    # The same address opens the same choices.
    other = visit(recorded.url, page.url.partition("/#")[2].join(("#", "")))
    expect(other.get_by_label("Model")).to_have_value("recorded-gpt-oss")
    expect(other.get_by_label("Effort")).to_have_value("high")
    other.get_by_role("button", name="Prompt, tools").click()
    expect(other.get_by_label("System prompt", exact=True)).to_have_value("Be brief & kind.")


@pytest.mark.parametrize("way", ["button", "key"])
def test_a_reply_can_be_stopped(visit: Visitor, servers: Servers, way: str) -> None:
    gate = Gate()
    script(servers.upstream, "<think>I go on and on", gate)
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    expect(thought(page)).to_contain_text("I go on and on")
    if way == "button":
        page.get_by_role("button", name="Stop").click()
    else:
        page.get_by_label("Your question").focus()
        page.keyboard.press("Escape")
        expect(heading(page)).to_contain_text("Thinking")
        page.keyboard.press("Escape")
    expect(heading(page)).to_contain_text("stopped")
    assert left(servers.upstream), "the upstream saw its client leave"
    gate.open()
    expect(thought(page).locator(".thought-text")).to_have_text("I go on and on")
    assert is_open(page), "what was being read stays where it is"
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()


def _endless(continued: bytes) -> Callable[[Asked], Reply]:
    """A server that thinks on and on, and answers only where a message of the assistant is to be continued."""

    def steps() -> Iterator[Step]:
        yield frame("<think>I go on")
        while True:
            yield frame(" and on")
            yield Pause(0.02)

    def answer(asked: Asked) -> Reply:
        if asked.body["messages"][-1]["role"] == "assistant":
            return Reply([continued, DONE]) if continued else Reply([], 400)
        return Reply(steps())

    return answer


def test_a_thought_can_be_ended_for_an_answer_now(visit: Visitor, servers: Servers) -> None:
    servers.upstream.send(_endless(frame("So it is 4.", reason="stop")))
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    expect(thought(page)).to_contain_text("and on and on")
    page.get_by_role("button", name="Answer now").click()
    expect(page.locator(".answer")).to_have_text("So it is 4.")
    complete(page)
    expect(heading(page)).not_to_contain_text("cut off")
    expect(page.get_by_role("button", name="Answer now")).to_have_count(0)


def test_answer_now_stays_under_the_pointer_while_the_thought_grows(visit: Visitor, servers: Servers) -> None:
    """A button that moves between the press and the release of a mouse is not clicked, and nothing tells why."""
    servers.upstream.send(_endless(frame("So it is 4.", reason="stop")))
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    button = page.get_by_role("button", name="Answer now")
    button.hover()
    page.mouse.down()
    before = thought(page).bounding_box()
    until(page, f"document.querySelector('.thought').offsetHeight > {before['height'] + 48}")
    page.mouse.up()
    expect(page.locator(".answer")).to_have_text("So it is 4.")
    complete(page)


def test_why_a_thought_cannot_be_ended_is_shown_and_it_goes_on(visit: Visitor) -> None:
    with serving() as servers:
        servers.upstream.send(_endless(b""))
        page = visit(servers.gateway.url, complaints=True)
        ask(page, "2+2?")
        expect(thought(page)).to_contain_text("and on and on")
        page.get_by_role("button", name="Answer now").click()
        expect(page.locator(".message.warn")).to_contain_text("cannot go on")
        expect(heading(page)).to_contain_text("Thinking")
        page.get_by_role("button", name="Stop").click()
        complete(page)


def test_a_question_can_be_edited_and_asked_again(visit: Visitor, servers: Servers) -> None:
    page = visit(servers.gateway.url)
    for question in ("one?", "two?"):
        script(servers.upstream, f"<think>hm</think>Answer to {question}")
        ask(page, question)
        expect(page.locator(".answer").last).to_contain_text(question)
        complete(page)
    script(servers.upstream, "<think>hm</think>Another answer.")
    page.get_by_role("button", name="Edit").first.click()
    page.get_by_role("textbox", name="Your question").first.fill("three?")
    page.get_by_role("button", name="Send again").first.click()
    expect(page.locator(".answer")).to_have_text(["Another answer."])
    expect(page.locator(".bubble")).to_have_text(["three?"])
    assert [message["content"] for message in servers.upstream.question().body["messages"]] == ["three?"]


def test_an_answer_can_be_asked_for_again(visit: Visitor, servers: Servers) -> None:
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    expect(page.locator(".answer")).to_have_text("It is 4.")
    complete(page)
    servers.upstream.say("It is four.")
    page.locator(".turn.reply").get_by_role("button", name="Regenerate").click()
    expect(page.locator(".answer")).to_have_text("It is four.")
    expect(page.locator(".turn.reply")).to_have_count(1)


def test_an_answer_is_copied_with_and_without_its_thoughts(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>add\nthem</think>", "It is **4**.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    assert copied(page, "Copy answer") == "It is **4**."
    assert copied(page, "Copy with thoughts") == "> **Thought**\n>\n> add\n> them\n\nIt is **4**."


MARKDOWN = """# Head

A [link](https://example.org/x) and `code`.

- one
- two

```python
print("</think>")
```

| a | b |
|---|--:|
| 1 | 2 |
"""


@pytest.mark.parametrize("size", [3, 10_000])
def test_an_answer_is_markdown_with_code_blocks(visit: Visitor, servers: Servers, size: int) -> None:
    script(servers.upstream, "<think>hm</think>", *pieces(MARKDOWN, size))
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    answer = page.locator(".answer")
    expect(answer.get_by_role("heading", name="Head")).to_be_visible()
    expect(answer.get_by_role("listitem")).to_have_text(["one", "two"])
    expect(answer.locator("pre")).to_have_text('print("</think>")\n')
    expect(answer.locator(".code-head")).to_contain_text("python")
    expect(answer.get_by_role("cell")).to_have_text(["1", "2"])
    expect(answer.get_by_role("cell").last).to_have_css("text-align", "right")
    link = answer.get_by_role("link")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")
    assert copied(page, "Copy code") == 'print("</think>")\n'


# The component by itself, with a text that grows; so many pictures of it are waited for that finished blocks settle.
GROWING = """async ([text, size]) => {
    const { html, render } = await import('/asides/page/ui.js');
    const { Markdown } = await import('/asides/page/markdown.js');
    const place = document.querySelector('.turns');
    render(null, place);
    for (let end = size; end < text.length; end += size) {
        render(html`<${Markdown} text=${text.slice(0, end)} running=${true} />`, place);
        for (let left = 4; left; left -= 1) await new Promise(requestAnimationFrame);
    }
    const settled = place.querySelectorAll('.markdown > div').length;
    render(html`<${Markdown} text=${text} running=${false} />`, place);
    return [settled, [...place.querySelectorAll('.markdown > div')].map((block) => block.innerHTML).join('')];
}"""


@pytest.mark.parametrize("link", [False, True])
def test_markdown_in_pieces_is_the_markdown_of_the_whole(visit: Visitor, servers: Servers, link: bool) -> None:
    """Also with a link that is defined only at the end, and a list whose items stand apart."""
    text = MARKDOWN + "\nSee [that][1].\n\n1. a\n\n2. b\n\n   more\n\n> quote\n\nTitle\n=====\n\nEnd.\n"
    text += "\n[1]: https://example.org/y\n" if link else ""
    page = visit(servers.gateway.url)
    page.get_by_role("heading", name="Watch a model think").wait_for()
    page.evaluate(GROWING, [text, 100_000])
    until(page, "document.querySelector('.turns .hljs-string')")  # colours of code are loaded with the first block
    _, whole = page.evaluate(GROWING, [text, 100_000])
    assert ('href="https://example.org/y"' in whole) is link
    for size in (3, 17):
        settled, pieces_of_it = page.evaluate(GROWING, [text, size])
        assert settled > 1, "nothing was finished before the end"
        assert pieces_of_it == whole


FORMULAS = {
    r"The sum \(a_1 + b*c*d\) and \(\{x \mid x > 0\}\), \[ y\,z \] in a line.": (
        [r"\(a_1 + b*c*d\)", r"\(\{x \mid x > 0\}\)", r"\[ y\,z \]"],
        "The sum ",
    ),
    r"With $\hat{y}_i = m_{1}\,x$ and $a*b*c$.": ([r"$\hat{y}_i = m_{1}\,x$", "$a*b*c$"], "With "),
    r"**Bold $x_{1}*2*3$ too** and **\(2*x*y\)**": (["$x_{1}*2*3$", r"\(2*x*y\)"], " too and "),
    r"*All of \(a*b\) and \[c*d\] is here*, **so \(x**2\) is**, *`\(` is code* and `\)` *too*": (
        [r"\(a*b\)", r"\[c*d\]", r"\(x**2\)"],
        r" is, \( is code and \) too",
    ),
    "It follows\n\\[\n\\begin{aligned}\na &= b \\\\\n- c &= 1\\,\\text{m}\n= 3\n\\end{aligned}\n\\]\nfrom this.": (
        ["\\[\n\\begin{aligned}\na &= b \\\\\n- c &= 1\\,\\text{m}\n= 3\n\\end{aligned}\n\\]"],
        "from this.",
    ),
    "$$\n\\sum_{i} x_i\n+ y_i * 2 * z_i\n$$": (["$$\n\\sum_{i} x_i\n+ y_i * 2 * z_i\n$$"], ""),
    r"- In a list: \(x\!y\)": ([r"\(x\!y\)"], "In a list: "),
    r"\[ a \] before **words**, and \, \; \% by themselves": (
        [r"\[ a \]"],
        r" before words, and \, \; \% by themselves",
    ),
    r"\$5, or $6 to $7 with *much* luck, 2 \* 3, snake\_case, [a](https://example.org/x) for $8 *more*, $A/a:$B": (
        [],
        "$5, or $6 to $7 with much luck, 2 * 3, snake_case, a for $8 more, $A/a:$B",
    ),
    r"What is no TeX stays: \(\frac{a\) and $\nosuchcommand{x}$": ([], r"stays: \(\frac{a\) and $\nosuchcommand{x}$"),
}
"""What is written; the formulas that are drawn of it; and what is read beside them. Money and paths are none."""

DRAWN = """async () => {
    const { drawFormulas } = await import('/asides/page/formulas.js');
    const place = document.querySelector('.turns');
    for (let left = 600; left && place.querySelector('code[class^=tex-]'); left -= 1) {
        drawFormulas(place);
        await new Promise(requestAnimationFrame);
    }
    const found = [...place.querySelectorAll('.formula')];
    const drawn = found.map((each) => [each.title, each.querySelector('math').getBoundingClientRect().width]);
    found.forEach((each) => each.remove());
    const all = [...place.querySelectorAll('*')];
    return [drawn, place.innerText, all.filter((each) => each.hasAttribute('style')).length];
}"""


@pytest.mark.parametrize("size", [3, 7, 10_000])
def test_formulas_are_drawn_and_never_read_as_markdown(visit: Visitor, servers: Servers, size: int) -> None:
    """In any pieces, in a line and in lines of their own; and what only looks like one is Markdown still."""
    page = visit(servers.gateway.url)
    page.get_by_role("heading", name="Watch a model think").wait_for()
    page.evaluate(GROWING, ["\n\n".join(FORMULAS), size])
    drawn, text, styled = page.evaluate(DRAWN)
    assert [source for source, _ in drawn] == [each for formulas, _ in FORMULAS.values() for each in formulas]
    assert all(width > 0 for _, width in drawn)
    assert styled == 0
    for _, read in FORMULAS.values():
        assert read.strip() in text


def test_formulas_and_code_of_a_reply_are_drawn(visit: Visitor, servers: Servers) -> None:
    """Through the gateway; a matrix, a box, aligned lines, colours of code; in the thought too, quieter."""
    matrix = r"$$\begin{pmatrix}1&2\\3&4\end{pmatrix}$$"
    answer = f"{matrix}\n\n\\(\\boxed{{42}}\\)\n\n```python\ndef f(x):\n    return 'a'  # b\n```\n"
    script(servers.upstream, "<think>So **bold** \\(x^2\\).</think>", answer)
    page = visit(servers.gateway.url, settings='{"fold": "open"}')
    ask(page, "2+2?")
    complete(page)
    expect(page.locator(".answer math mtd")).to_have_text(["1", "2", "3", "4"])
    expect(page.locator(".answer .boxed")).to_have_css("border-top-style", "solid")
    expect(page.locator(".answer .hljs-keyword")).to_have_text(["def", "return"])
    expect(page.locator(".answer pre")).to_have_text("def f(x):\n    return 'a'  # b\n")
    expect(thought(page).locator("math msup")).to_have_count(1)
    expect(thought(page).locator("strong")).to_have_text("bold")
    quiet, loud = (
        page.locator(each).first.evaluate("each => getComputedStyle(each).color")
        for each in (".thought-text p", ".answer p")
    )
    assert quiet != loud


# An answer whose beginnings look like something else than what they become, each of them higher than that.
SHAKY = (
    "First a [link](https://example.org/"
    + "address/" * 30
    + """).

A sum:
- 3
- 4

| name | value |
|------|------:|
| a | 1 |

```python
x = 1
```

***

**The end** is near, `here`.
"""
)
# What a person would see move: elements whose class changes, and heights that become less while it comes.
MOVES = """() => {
    window.flips = [];
    window.falls = [];
    new MutationObserver((changes) => {
        for (const { target } of changes) if (target.closest('.answer')) window.flips.push(target.className);
    }).observe(document.body, { attributes: true, attributeFilter: ['class'], subtree: true });
    let last = 0;
    const look = () => {
        const answer = document.querySelector('[aria-busy=true] .answer');
        const height = answer?.offsetHeight ?? last;
        if (height < last) window.falls.push([last, height, answer.textContent.slice(-20)]);
        last = height;
        requestAnimationFrame(look);
    };
    look();
}"""


def test_an_answer_stands_still_while_it_comes(visit: Visitor, servers: Servers) -> None:
    steps = [step for piece in pieces(SHAKY, 2) for step in (frame(piece), Pause(0.005))]
    servers.upstream.send(Reply([frame("<think>hm</think>"), *steps, frame("", reason="stop"), DONE]))
    page = visit(servers.gateway.url)
    page.evaluate(MOVES)
    ask(page, "2+2?")
    complete(page)
    assert page.evaluate("[flips, falls]") == [[], []]
    # Nothing of it stays once it is all there.
    assert page.locator(".answer [style]").count() == 0


def test_the_end_of_an_answer_is_drawn_at_once(visit: Visitor, servers: Servers) -> None:
    """It does not wait for a drawing that was due for what came before it, however long that would rest."""
    page = visit(servers.gateway.url)
    page.get_by_role("heading", name="Watch a model think").wait_for()
    shown = page.evaluate(
        """async () => {
            const { html, render } = await import('/asides/page/ui.js');
            const { Markdown } = await import('/asides/page/markdown.js');
            const place = document.querySelector('.turns');
            const draw = (text, running) => render(html`<${Markdown} text=${text} running=${running} />`, place);
            draw('one', true);
            draw('one two', true);
            const before = place.textContent.trim();
            draw('one two **three**', false);
            return [before, place.textContent.trim()];
        }"""
    )
    assert shown == ["one", "one two three"]


def test_thoughts_are_markdown_unless_a_setting_wants_them_plain(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>It is **bold**\n  and indented</think>", "Done.")
    page = visit(servers.gateway.url, settings='{"fold": "open"}')
    ask(page, "2+2?")
    complete(page)
    text = thought(page).locator(".thought-text")
    expect(text.locator("strong")).to_have_text("bold")
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Plain text").check()
    page.keyboard.press("Escape")
    expect(text).to_have_text("It is **bold**\n  and indented")
    assert text.inner_text() == "It is **bold**\n  and indented"


def test_a_conversation_survives_a_reload_and_a_new_one_begins_empty(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>hm</think>", "It is 4.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    page.reload()
    expect(page.locator(".answer")).to_have_text("It is 4.")
    expect(heading(page)).to_contain_text("1 word")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("heading", name="Watch a model think")).to_be_visible()
    expect(page.locator(".turn")).to_have_count(0)


def test_a_reply_goes_on_while_another_view_is_open(visit: Visitor, servers: Servers) -> None:
    gate = Gate()
    script(servers.upstream, "<think>one", gate, " two</think>", "Done.")
    page = visit(servers.gateway.url, "#/chats")
    page.get_by_label("Effort").select_option("high")
    ask(page, "2+2?")
    expect(thought(page)).to_contain_text("one")
    views = page.get_by_role("navigation", name="Views")
    views.get_by_role("link", name="Inspect").click()
    expect(page.locator(".chats")).to_have_count(0)
    views.get_by_role("link", name="Chats").click()
    expect(heading(page)).to_contain_text("Thinking")
    expect(page.get_by_label("Effort")).to_have_value("high")
    views.get_by_role("link", name="Inspect").click()
    gate.open()
    until(page, "sessionStorage.getItem('asides.chats').includes('Done.')")
    views.get_by_role("link", name="Chats").click()
    expect(page.locator(".answer")).to_have_text("Done.")
    complete(page)
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_visible()


def test_an_error_of_the_upstream_is_shown_and_can_be_tried_again(visit: Visitor, servers: Servers) -> None:
    servers.upstream.send(Reply([b'{"error": {"message": "the model is on fire"}}'], 400, whole=True))
    page = visit(servers.gateway.url, complaints=True)
    ask(page, "2+2?")
    expect(page.get_by_role("alert")).to_contain_text("the model is on fire")
    servers.upstream.say("It is 4.")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".answer")).to_have_text("It is 4.")
