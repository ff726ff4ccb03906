"""The page and its gateway: the first visit, keys, images that are refused, connections that are lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.gateway.running import Gateway, gateway
from tests.gateway.servers import Servers
from tests.gateway.upstream import Close, Gate, upstream
from tests.page.conftest import KEYS, Visitor
from tests.page.talking import ask, complete, heading, script, thought
from tests.ports import held_port

if TYPE_CHECKING:
    from playwright.sync_api import Page

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018dd8db0"
    "0000000049454e44ae426082"
)


def test_the_first_visit_says_that_nothing_is_connected_and_offers_recordings(
    visit: Visitor, recorded: Gateway
) -> None:
    page = visit(recorded.url, "")
    expect(page.get_by_role("heading", name="No model server is connected yet")).to_be_visible()
    expect(page.get_by_text("asides serve --upstream")).to_be_visible()
    page.get_by_role("button", name="What is 17 times 23?").click()
    expect(page.locator(".answer")).to_contain_text("391")
    complete(page)
    expect(page.locator(".turn.reply .badge")).to_have_text("recorded")
    expect(heading(page)).to_contain_text("words")


def test_with_an_upstream_nothing_is_said_of_recordings(visit: Visitor, servers: Servers) -> None:
    page = visit(servers.gateway.url)
    expect(page.get_by_role("heading", name="Watch a model think")).to_be_visible()
    expect(page.get_by_text("recording")).to_have_count(0)


def test_an_upstream_that_does_not_answer_is_named(visit: Visitor) -> None:
    with held_port() as port, gateway({"upstreams": [{"url": f"http://127.0.0.1:{port}", "models": ["m"]}]}) as running:
        page = visit(running.url, complaints=True)
        expect(page.get_by_text("No model server answers.")).to_be_visible()
        expect(page.get_by_role("status").filter(has_text=f"127.0.0.1:{port}")).to_be_visible()


# Connections.


def test_a_stream_that_breaks_keeps_what_had_come_and_can_be_tried_again(visit: Visitor) -> None:
    """The gateway itself dies in the middle of a thought, and comes back at the same place."""
    with held_port() as port, upstream() as server:
        config = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}}
        gate = Gate()
        script(server, "<think>Half of a thought", gate)
        with gateway(config, "--port", str(port)) as running:
            page = visit(running.url, complaints=True)
            ask(page, "2+2?")
            expect(thought(page)).to_contain_text("Half of a thought")
            running.process.kill()
            running.process.wait()
        expect(page.get_by_role("alert")).to_contain_text("The connection was lost.")
        expect(page.get_by_role("alert")).to_contain_text("What had come by then is kept above.")
        expect(heading(page)).to_contain_text("cut off")
        expect(heading(page)).to_have_attribute("aria-expanded", "true")
        expect(thought(page).locator(".thought-text")).to_have_text("Half of a thought")
        gate.open()
        # Nobody is there yet: said again.
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("alert")).to_contain_text("The gateway does not answer.")
        server.say("<think>hm</think>It is 4.")
        with gateway(config, "--port", str(port)):
            page.get_by_role("button", name="Try again").click()
            expect(page.locator(".answer")).to_have_text("It is 4.")
            expect(page.get_by_role("alert")).to_have_count(0)


def test_an_upstream_that_breaks_off_is_an_error_and_not_an_answer(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>hm</think>It is", Close(), reason=None)
    page = visit(servers.gateway.url, complaints=True)
    ask(page, "2+2?")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator(".answer")).to_have_text("It is")
    servers.upstream.say("It is 4.")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".answer")).to_have_text("It is 4.")


def test_a_stream_that_ends_too_early_is_not_taken_for_an_answer(visit: Visitor, servers: Servers) -> None:
    """A proxy in between may end it without an error: what it sends then is all that comes."""
    page = visit(servers.gateway.url)
    page.route(
        "**/v1/chat/completions",
        lambda route: route.fulfill(
            content_type="text/event-stream", body='data: {"choices": [{"delta": {"content": "It is"}}]}\n\n'
        ),
    )
    ask(page, "2+2?")
    expect(page.get_by_role("alert")).to_contain_text("The stream ended before the reply was complete.")
    expect(page.locator(".answer")).to_have_text("It is")


def test_a_page_whose_gateway_is_gone_says_so_and_comes_back_by_itself(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url, complaints=True)
    page.get_by_label("Your question").wait_for()
    page.route("**/asides/about", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("No connection.")
    page.unroute("**/asides/about")
    expect(page.get_by_label("Your question")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_page_that_was_left_in_the_middle_of_a_reply_keeps_it(visit: Visitor, servers: Servers) -> None:
    gate = Gate()
    script(servers.upstream, "<think>Half of a thought", gate)
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    expect(thought(page)).to_contain_text("Half of a thought")
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("The page was left while the reply was coming.")
    expect(heading(page)).to_contain_text("cut off")
    expect(heading(page)).to_have_attribute("aria-expanded", "true")
    expect(thought(page).locator(".thought-text")).to_have_text("Half of a thought")
    gate.open()


# Keys.


def _give(page: Page, key: str) -> None:
    page.get_by_label("Key", exact=True).get_by_role("textbox").or_(page.locator("input[type=password]")).last.fill(key)
    page.get_by_role("button", name="Use this key").click()


def test_a_key_is_asked_for_once_and_sent_as_a_header(visit: Visitor, keyed: Servers) -> None:
    page = visit(keyed.gateway.url, complaints=True)
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    expect(page.get_by_role("dialog")).to_contain_text("This gateway asks for a key")
    _give(page, "wrong")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    _give(page, KEYS[0])
    expect(page.get_by_role("dialog")).to_have_count(0)
    with page.expect_request("**/v1/chat/completions") as asked:
        ask(page, "2+2?")
    assert asked.value.headers["authorization"] == f"Bearer {KEYS[0]}"
    expect(page.locator(".answer")).to_have_text("It is 4.")
    complete(page)
    # A reload of the tab does not ask again; another tab does, because nothing is kept beyond this one.
    page.reload()
    expect(page.locator(".answer")).to_have_text("It is 4.")
    expect(page.get_by_role("dialog")).to_have_count(0)
    other = page.context.new_page()
    other.goto(f"{keyed.gateway.url}/#/chats")
    expect(other.get_by_role("dialog")).to_contain_text("This gateway asks for a key")
    assert page.evaluate("JSON.stringify(localStorage) + document.cookie") == "{}"
    assert not [address for address in [*addresses, page.url] if KEYS[0] in address]
    assert KEYS[0] not in keyed.gateway.log


def test_an_error_of_a_proxy_in_any_shape_is_shown(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url, complaints=True)
    page.get_by_label("Your question").wait_for()
    page.route("**/asides/about", lambda route: route.fulfill(status=502, json={"error": {"message": {"no": "text"}}}))
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("[object Object]")


def test_a_key_that_no_header_can_hold_is_not_taken(visit: Visitor, keyed: Servers) -> None:
    page = visit(keyed.gateway.url, complaints=True)
    page.locator("input[type=password]").fill("k\u013e\u00fa\u010d")
    page.get_by_role("button", name="Use this key").click()
    assert page.evaluate("sessionStorage.getItem('asides.key')") is None
    page.locator("input[type=password]").fill(f" {KEYS[0]} ")
    page.get_by_role("button", name="Use this key").click()
    page.get_by_label("Your question").wait_for()


def test_the_key_can_be_forgotten(visit: Visitor, keyed: Servers) -> None:
    page = visit(keyed.gateway.url, complaints=True)
    _give(page, KEYS[0])
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Forget the key of this tab").click()
    assert page.evaluate("sessionStorage.getItem('asides.key')") is None
    page.reload()
    expect(page.get_by_role("dialog")).to_contain_text("This gateway asks for a key")


# Images.


@pytest.fixture(scope="module")
def ollama() -> Iterator[Servers]:
    """An Ollama, which says what its model can do."""
    with upstream("ollama") as server, gateway({"upstreams": [{"url": server.url}]}) as running:
        yield Servers(running, server)


def _attach(page: Page) -> None:
    page.locator("input[type=file]").set_input_files({"name": "x.png", "mimeType": "image/png", "buffer": PIXEL})


@pytest.mark.parametrize("way", ["button", "file", "paste"])
def test_an_image_is_refused_where_the_model_takes_none(visit: Visitor, recorded: Gateway, way: str) -> None:
    page = visit(recorded.url)
    page.get_by_role("button", name="What is 17 times 23?").wait_for()
    if way == "button":
        page.get_by_role("button", name="Image").click()
    elif way == "file":
        _attach(page)
    else:
        page.get_by_label("Your question").evaluate(
            """(area, bytes) => {
                const data = new DataTransfer();
                data.items.add(new File([new Uint8Array(bytes)], 'x.png', {type: 'image/png'}));
                area.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
            }""",
            list(PIXEL),
        )
    expect(page.get_by_text("recorded-qwen3 takes no images.")).to_be_visible()
    expect(page.locator(".thumbnail")).to_have_count(0)


def test_an_image_is_sent_where_nothing_speaks_against_it(visit: Visitor, servers: Servers) -> None:
    page = visit(servers.gateway.url)
    page.get_by_role("heading", name="Watch a model think").wait_for()
    _attach(page)
    expect(page.get_by_role("img", name="Attached image 1")).to_be_visible()
    ask(page, "What is this?")
    complete(page)
    content = servers.upstream.question().body["messages"][0]["content"]
    assert content[0] == {"type": "text", "text": "What is this?"}
    assert re.match(r"data:image/png;base64,iVBOR", content[1]["image_url"]["url"])
    expect(page.locator(".thumbnail")).to_have_count(0)
    expect(page.locator(".bubble img")).to_be_visible()
