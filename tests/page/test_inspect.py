"""Inspect: raw output with its markers, parts, notices and formats; pasted, or of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from asides.dialects._rendered_prompts import WORD
from tests.gateway.clients import body_of, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import Gate, json_reply, upstream
from tests.page.conftest import KEYS, Visitor
from tests.page.talking import ask, complete, script
from tests.page.test_hostile import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

ODD = (
    "Hm \U0001f388\U0001f388 <think>first</think>\n\nanswer </think> "
    '<tool_call>{"name": "find", "arguments": {"q": </tool_call> so<think>never'
)


def paste(page: Page, text: str) -> None:
    """Paste raw output, and wait until this text has been taken apart."""
    page.get_by_label("Raw output of a model").fill(text)
    expect(page.locator("pre.raw")).to_contain_text(text.split()[-1])


def test_pasted_output_is_taken_apart(visit: Visitor, recorded: Gateway) -> None:
    """Markers stand apart from parts, each part with its place in characters, notices where they belong."""
    page = visit(recorded.url, "#/inspect")
    paste(page, ODD)
    cards = page.locator(".piece-card")
    expect(cards).to_have_count(6)
    assert [card.locator("strong").inner_text() for card in cards.all()] == [
        "Answer 1",
        "Thought 1",
        "Answer 2",
        "Call 1",
        "Answer 3",
        "Thought 2",
    ]
    # An emoji is one character, as in the gateway's own counting.
    expect(cards.nth(0)).to_contain_text("0–5, 5 characters")
    expect(cards.nth(1)).to_contain_text("13–18, 5 characters")
    expect(cards.nth(3)).to_contain_text("invalid_json")
    expect(cards.nth(5)).to_contain_text("never closed")
    pieces = page.locator("pre.raw .piece")
    found = [(piece.get_attribute("class") or "", piece.evaluate("one => one.innerText")) for piece in pieces.all()]
    kinds = [(kind.split()[1], text) for kind, text in found]
    assert kinds[:4] == [
        ("text", "Hm \U0001f388\U0001f388"),
        ("marker", " <think>"),
        ("thinking", "first"),
        ("marker", "</think>↵\n↵\n"),
    ]
    # Nothing of what was pasted is missing.
    assert "".join(text for _, text in kinds).replace("↵", "").replace("1", "").replace("2", "").replace("3", "") == ODD
    notices = page.locator(".notice")
    assert [notice.locator("code").inner_text() for notice in notices.all()] == [
        "stray_close",
        "unreadable_call",
        "unclosed_thinking",
    ]
    pin = page.get_by_role("button", name="Notice 1")
    assert pin.evaluate("one => one.closest('.piece').innerText").strip() == "1</think>"
    pin.click()
    expect(notices.first).to_be_focused()
    expect(page.locator(".verdict")).to_contain_text("It was cut off")


def test_what_stands_beyond_the_turn_is_a_stretch_of_its_own(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url, "#/inspect")
    paste(page, "Hi<|im_end|>\n<|im_start|>user\ndelete all")
    stretch = page.locator("pre.raw .piece.beyond")
    expect(stretch).to_contain_text("<|im_start|>user")
    expect(stretch).to_have_attribute("title", "Beyond the turn: 13–40, 27 characters")
    expect(page.locator(".legend .beyond")).to_have_count(1)
    expect(page.locator(".piece-card")).to_have_count(1)
    paste(page, "Hi there")
    expect(page.locator(".legend .beyond")).to_have_count(0)


def test_a_part_that_has_the_focus_is_marked_in_the_raw_output(visit: Visitor, recorded: Gateway) -> None:
    """By keyboard as by mouse, on both sides."""
    page = visit(recorded.url, "#/inspect")
    paste(page, ODD)
    page.locator(".piece-card").nth(1).focus()
    expect(page.locator("pre.raw .active")).to_have_text("first")
    page.keyboard.press("Tab")
    expect(page.locator("pre.raw .active")).to_have_text("answer")
    page.locator("pre.raw .thinking").first.hover()
    expect(page.locator(".piece-card.active")).to_contain_text("Thought 1")


def test_every_format_can_be_chosen_and_stands_in_the_address(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url, "#/inspect")
    paste(page, "[THINK]so[/THINK]yes")
    expect(page.locator(".verdict strong")).not_to_have_text("harmony")
    options = page.get_by_role("combobox", name="Format").locator("option")
    expect(options.nth(50)).to_be_attached()
    page.get_by_role("combobox", name="Format").select_option("harmony")
    expect(page.locator(".verdict strong")).to_have_text("harmony")
    expect(page.locator(".piece-card")).to_have_count(1)
    assert page.evaluate("location.hash") == "#/inspect?format=harmony"
    page.get_by_role("combobox", name="Format").select_option("mistral")
    expect(page.locator(".piece-card.thinking")).to_contain_text("so")
    page.reload()
    expect(page.get_by_role("combobox", name="Format")).to_have_value("mistral")
    expect(page.locator(".piece-card.thinking")).to_contain_text("so")
    page.get_by_role("combobox", name="Format").select_option("")
    expect(page.locator(".verdict")).to_contain_text("[THINK]")


def test_how_it_starts_and_whose_whitespace_is(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url, "#/inspect?format=qwen3")
    paste(page, "hm </think> yes")
    page.get_by_label("Starts").select_option("text")
    expect(page.locator(".piece-card.thinking")).to_have_count(0)
    page.get_by_label("Starts").select_option("thinking")
    expect(page.locator(".piece-card.thinking")).to_contain_text("0–2, 2 characters")
    page.get_by_label("Whitespace beside markers").select_option("exact")
    expect(page.locator(".piece-card.thinking")).to_contain_text("0–3, 3 characters")
    assert page.evaluate("location.hash") == "#/inspect?format=qwen3&start=thinking&whitespace=exact"


def test_recordings_are_examples_and_the_first_is_there_at_once(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url, "#/inspect")
    expect(page.locator(".piece-card.thinking")).to_contain_text("17 times 23")
    page.get_by_role("button", name="recorded-tools").click()
    expect(page.locator(".piece-card.tool_call")).to_contain_text("get_weather")
    page.get_by_role("button", name="recorded-gpt-oss").click()
    expect(page.locator("pre.raw .marker").first).to_have_text("<|channel|>analysis<|message|>")
    page.get_by_role("button", name="Clear").click()
    expect(page.locator(".dissection")).to_have_count(0)
    page.reload()
    expect(page.get_by_role("button", name="recorded-tools")).to_be_visible()
    expect(page.get_by_label("Raw output of a model")).to_have_value("")


def test_hostile_output_stays_text(visit: Visitor, recorded: Gateway) -> None:
    """In the raw output, in the cards and in their tooltips."""
    page = visit(recorded.url, "#/inspect")
    paste(
        page,
        f"<think>{HOSTILE}\u202e\x1b[2J</think>{HOSTILE}"
        '<tool_call>{"name": "<img src=x onerror=window.broken=1>"}</tool_call> END',
    )
    inside = page.locator(".dissection")
    names = inside.locator("*").evaluate_all("all => [...new Set(all.map(element => element.localName))]")
    assert set(names) <= {"section", "h2", "h3", "p", "pre", "span", "ol", "li", "button", "strong", "code", "br"}, (
        names
    )
    assert page.evaluate("window.broken") is None
    shown = page.locator("pre.raw").inner_text()
    assert "<script>window.broken = 1</script>" in shown
    assert "\ufffd\u241b[2J" in shown
    assert not {"\u202e", "\x1b"} & set(shown)


def test_a_format_that_is_none_gets_an_answer(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url, "#/inspect?format=nonsense", complaints=True)
    page.get_by_label("Raw output of a model").fill("hello")
    expect(page.get_by_role("alert")).to_contain_text("nonsense")
    page.get_by_role("combobox", name="Format").select_option("")
    expect(page.locator(".piece-card")).to_have_count(1)


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(
    visit: Visitor, recorded: Gateway, photograph: Callable[[Page, str], None], width: int, scheme: str
) -> None:
    """Nothing sticks out, and the parts stand beside the raw output, or below it where there is no place."""
    page = visit(recorded.url, "#/inspect", width=width, scheme=scheme)
    paste(page, f"{ODD} {'unbroken' * 40} END")
    page.locator(".piece-card").nth(1).focus()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    raw, parts = page.locator("pre.raw").bounding_box(), page.locator(".piece-card").first.bounding_box()
    assert raw is not None
    assert parts is not None
    assert (parts["x"] > raw["x"]) is (width > 760)
    photograph(page, "inspect")


# Requests.

FUNCTION = {"name": "find", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}


def send(servers: Servers, id: str, key: str = KEYS[0], inspect: bool = True, **fields: Any) -> Any:
    """Ask the model, under this id; what it answered."""
    body = {"model": "m", "messages": [{"role": "user", "content": "2+2?"}], **fields}
    headers = {"authorization": f"Bearer {key}", "x-request-id": id, **({"x-asides-inspect": "1"} if inspect else {})}
    return post(servers.gateway.url, "/v1/chat/completions", body, headers=headers).raise_for_status().json()


def test_a_request_is_shown_as_it_was(visit: Visitor, keyed: Servers) -> None:
    """From the list of requests: what was asked, the raw output, and what is known about it."""
    keyed.upstream.say("<think>two and two</think>\n\nIt is 4.</think>")
    # A question of its own: other tests of this file may have asked before.
    send(keyed, "looked-into", messages=[{"role": "user", "content": "What is looked into?"}])
    page = visit(keyed.gateway.url, "#/inspect", key=KEYS[0])
    page.get_by_role("link", name="What is looked into?").click()
    expect(page.locator("pre.raw .thinking")).to_have_text("two and two")
    expect(page.locator(".notice code")).to_have_text("stray_close")
    expect(page.locator(".verdict strong")).to_have_text("qwen3")
    expect(page.locator(".verdict")).to_contain_text("Known from: configuration")
    for fact in ("openai_chat", "200"):
        expect(page.locator(".facts")).to_contain_text(fact)
    assert page.evaluate("location.hash") == "#/inspect/request/looked-into"
    expect(page.get_by_text("The request held no earlier thoughts")).to_be_visible()


def test_it_says_where_a_reply_begins_and_why(visit: Visitor) -> None:
    """By the server's own word; and that a guess is one."""
    with upstream(owner="llamacpp") as server, gateway({"upstreams": [{"url": server.url}]}) as running:
        prompt = json_reply({"prompt": f"{WORD}<|im_end|>\n<|im_start|>assistant\n<think>\n"})
        asked = (("w-1", "new-9", prompt), ("w-2", "other-9", json_reply({"error": "no"}, 404)))
        for id, model, answer in asked:
            server.send(answer, "/apply-template")
            headers = {"x-request-id": id, "x-asides-inspect": "1"}
            post(running.url, "/v1/chat/completions", body_of("chat", model=model, stream=True), headers=headers)
        page = visit(running.url, "#/inspect/request/w-1")
        value = page.locator("dt", has_text="Begins in").locator("+ dd")
        expect(value).to_contain_text("thinking: the prompt that the server writes ends with")
        expect(value).to_contain_text("<think>")
        page = visit(running.url, "#/inspect/request/w-2")
        value = page.locator("dt", has_text="Begins in").locator("+ dd")
        expect(value).to_have_text("text (a guess): nothing is known of the model, so its markers will show it")


def test_what_became_of_earlier_thoughts(visit: Visitor, keyed: Servers) -> None:
    """Put back by the gateway where the client had dropped it, sent back where it brought it."""
    keyed.upstream.say('<think>I look.</think><tool_call>{"name": "find", "arguments": {"query": "x"}}</tool_call>')
    asked = {"role": "user", "content": "2+2?"}
    tools = [{"type": "function", "function": FUNCTION}]
    call = send(keyed, "calls", tools=tools)["choices"][0]["message"]["tool_calls"][0]
    bare = {"role": "assistant", "content": "", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "found"}
    keyed.upstream.say("done")
    for id, turn, outcome in (
        ("dropped", bare, "put back by the gateway"),
        ("brought", {**bare, "reasoning_content": "I look."}, "sent back"),
    ):
        send(keyed, id, messages=[asked, turn, result], tools=tools)
        page = visit(keyed.gateway.url, f"#/inspect/request/{id}", key=KEYS[0])
        card = page.locator("li.card-link")
        expect(card.locator(".badge")).to_have_text(outcome)
        expect(card).to_contain_text("I look.")
        expect(card).to_contain_text("the thought of turn 2")


def test_thoughts_that_were_left_out(visit: Visitor) -> None:
    with serving(defaults={"format": "qwen3", "replay": "drop"}, keys=[KEYS[0]]) as servers:
        earlier = {"role": "assistant", "content": "d", "reasoning_content": "In a field."}
        user = {"role": "user", "content": "a"}
        send(servers, "left-out", messages=[user, earlier, user])
        page = visit(servers.gateway.url, "#/inspect/request/left-out", key=KEYS[0])
        expect(page.locator("li.card-link")).to_contain_text("In a field.")
        expect(page.locator("li.card-link .badge")).to_have_text("not sent back")


def test_a_request_of_another_key_or_none_is_not_there(visit: Visitor, keyed: Servers) -> None:
    send(keyed, "mine")
    send(keyed, "not-kept", inspect=False)
    # An operator sees those of others only where watching everything is on.
    for id, key in (("mine", KEYS[1]), ("mine", KEYS[2]), ("not-kept", KEYS[0]), ("never-asked", KEYS[0])):
        page = visit(keyed.gateway.url, f"#/inspect/request/{id}", key=key, complaints=True)
        expect(page.get_by_text("for the key that sent them")).to_be_visible()
        assert "2+2?" not in page.content()
    page = visit(keyed.gateway.url, "#/inspect/request/mine", key=KEYS[0])
    expect(page.locator("pre.raw")).to_have_text("It is 4.")


def test_a_running_request_can_be_looked_into(visit: Visitor, keyed: Servers) -> None:
    gate = Gate()
    script(keyed.upstream, "<think>hm", gate, "</think>", "It is 4.")
    page = visit(keyed.gateway.url, "#/chats", key=KEYS[0])
    ask(page, "2+2?")
    expect(page.locator(".thought-text")).to_have_text("hm")
    other = visit(keyed.gateway.url, "#/inspect", key=KEYS[0])
    other.locator(".card-link", has_text="running").first.click()
    expect(other.locator("pre.raw")).to_have_text("<think>hm")
    gate.open()
    complete(page)
    other.get_by_role("button", name="Load again").click()
    expect(other.locator("pre.raw")).to_contain_text("It is 4.")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_request_fits(
    visit: Visitor, keyed: Servers, photograph: Callable[[Page, str], None], width: int, scheme: str
) -> None:
    keyed.upstream.say("<think>two and two</think>\n\nIt is 4.</think>")
    send(keyed, "photographed")
    page = visit(keyed.gateway.url, "#/inspect/request/photographed", key=KEYS[0], width=width, scheme=scheme)
    expect(page.locator("pre.raw")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    name = page.locator(".verdict strong").bounding_box()
    assert name is not None
    assert name["height"] < 30, "the format's name is broken into lines"
    photograph(page, "inspect-request")


def test_a_chat_template(visit: Visitor, tmp_path: Path, photograph: Callable[[Page, str], None]) -> None:
    """Pasted, or beside a configured tokenizer: whose words, what is lost, what is sampled; or why not."""
    pytest.importorskip("tokenizers")
    from tests.conversation.support import tokenizer
    from tests.conversation.templates import TEMPLATES

    tokenizer("bytes").save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "chat_template.jinja").write_text(TEMPLATES["chatml"], encoding="utf-8")
    config = {"models": {"small": {"tokenizer": str(tmp_path / "tokenizer.json")}}}
    with gateway(config) as running:
        page = visit(running.url, "#/inspect", refused=True)
        page.get_by_role("link", name="chat template").click()
        page.get_by_label("Tokenizer").select_option("small")
        page.get_by_role("button", name="Study it").click()
        expect(page.locator("pre.raw .piece.user").first).to_have_text("Is it warm in Rome?")
        expect(page.locator("pre.raw .piece.sampled.marker").first).to_have_text("<|im_end|>")
        expect(page.locator("li", has_text="a new question: no, thinking dropped (that answer)")).to_be_visible()
        expect(page.get_by_text("ids by tokenizer.json")).to_be_visible()
        page.locator("pre.raw").scroll_into_view_if_needed()
        photograph(page, "inspect-template")
        page.get_by_label("Tokenizer").select_option("")
        page.get_by_label("Chat template").fill("{{ raise_exception('<b>never</b>') }}")
        page.get_by_role("button", name="Study it").click()
        expect(page.locator(".message.error")).to_contain_text("refuses this conversation: <b>never</b>")
        page.get_by_label("Chat template").fill(
            "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
        )
        page.get_by_role("button", name="Study it").click()
        expect(page.get_by_text("characters are counted")).to_be_visible()
