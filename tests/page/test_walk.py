"""Every way through the page, with data: each link, tab, button and choice of each view is used, and nothing fails.

A view that fails nevertheless says so and takes no other view with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.gateway.clients import get, post
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import Reply
from tests.page.conftest import KEYS, Visitor
from tests.page.talking import ask, complete
from tests.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

OPERATOR = KEYS[2]
HEADERS = {"authorization": f"Bearer {OPERATOR}", "x-asides-inspect": "1"}
TOOL = {
    "type": "function",
    "function": {"name": "find", "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}},
}
CALL = '<think>I look.</think><tool_call>{"name": "find", "arguments": {"query": "x"}}</tool_call>'
LAST = "The last question that is kept."
VIEWS = ("chats", "live", "history", "compare", "stats", "inspect")
SETTLED = "!document.querySelector('main .loading, main [aria-busy=true]') && document.querySelector('main > *')"


DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""A new address is read, and its view begun, before the second frame."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """A gateway that has answered, or failed to answer, in every way that a view has something to show for."""
    store = tmp_path_factory.mktemp("history") / "history.db"
    settings: dict[str, Any] = {"page": {"watch": "all"}, "history": {"save": True, "store": str(store)}}
    with serving(keys=[KEYS[0], {"key": OPERATOR, "operator": True, "name": "ops"}], **settings) as servers:
        _fill(servers)
        yield servers


def _fill(servers: Servers) -> None:
    user: dict[str, Any] = {"role": "user", "content": "2+2?"}
    system = {"role": "system", "content": "Be brief."}
    said = {"role": "assistant", "content": "It is 4.", "reasoning_content": "two and two"}
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    results = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "found"},
    ]
    upstream = servers.upstream
    upstream.models = ["m", "other"]
    upstream.say("<think>two and two</think>\n\nIt is 4.</think>")
    _send(servers, [system, user])
    _send(servers, [system, user, said, user], model="other", key=KEYS[0])
    upstream.say(CALL)
    _send(servers, [user], tools=[TOOL])
    upstream.say("<think>I have it.</think>It was found.")
    _send(servers, [user, *results], tools=[TOOL])
    upstream.say(("<think>one</think>First.", "<think>another</think>Second."))
    _send(servers, [user], n=2)
    for written, reason in (("<think>I never come to", "length"), ("<think>done</think>", "stop"), ("", "stop")):
        upstream.say(written, reason=reason)
        _send(servers, [{**user, "content": f"What is written: {written}"}])
    upstream.say("", thought="of a field", calls=(("find", "{broken"),))
    _send(servers, [{**user, "content": LAST}], tools=[TOOL])
    eventually(lambda: _kept(servers), "history does not have them")
    upstream.send(Reply([b'{"error": {"message": "no"}}'], 400, {"content-type": "application/json"}, whole=True))
    _send(servers, [user], fails=True)
    upstream.forget()


def _send(
    servers: Servers, messages: list[Any], *, model: str = "m", key: str = OPERATOR, fails: bool = False, **fields: Any
) -> None:
    body = {"model": model, "messages": messages, **fields}
    headers = {**HEADERS, "authorization": f"Bearer {key}"}
    answer = post(servers.gateway.url, "/v1/chat/completions", body, headers=headers)
    assert answer.is_error is fails, answer.text


def _kept(servers: Servers) -> bool:
    found = get(servers.gateway.url, "/asides/history?limit=200", authorization=HEADERS["authorization"]).json()
    return any(reply["question"] == LAST for reply in found["replies"])


class Walk:
    """Uses what it finds on a page, and notes what went wrong with the step that did it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.step = ""
        self.faults: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(f"{self.step}: {error}"))

    def open(self, address: str) -> None:
        """Go to an address without a step of the page's own."""
        self.page.evaluate("to => { location.hash = to }", address)
        self.settle(f"opening {address}")

    def use(self, element: Locator, step: str) -> None:
        """Click, choose or press, and see that the view is whole afterwards."""
        self.step = step
        if element.evaluate("element => element.localName") == "select":
            element.select_option(index=element.locator("option").count() - 1)
        else:
            element.click()
        self.settle(step)

    def settle(self, step: str) -> None:
        self.step = step
        self.page.evaluate(DRAWN)  # until then the view before stands there, which is settled
        # A page that has failed may never settle.
        eventually(lambda: self.faults or self.page.evaluate(SETTLED), f"it did not settle: {step}")
        if self.page.locator("main > .message.error").count():
            self.faults.append(f"{step}: {self.page.locator('main').inner_text()[:200]}")

    def links(self) -> list[str]:
        found = self.page.locator("a[href^='#/']").evaluate_all("all => all.map(link => link.getAttribute('href'))")
        return list(dict.fromkeys(found))


def _kind(address: str) -> str:
    """An address without what is only data in it: ids, what is searched for."""
    way, _, query = address.partition("?")
    names = ",".join(sorted(re.findall(r"(\w+)=", query)))
    return "/".join(way.split("/")[:3]) + f"?{names}"


def _talked(visit: Visitor, servers: Servers) -> Page:
    page = visit(servers.gateway.url, "#/chats", key=OPERATOR)
    ask(page, "2+2?")
    complete(page)
    return page


def test_every_link_of_every_view_can_be_followed(visit: Visitor, filled: Servers) -> None:
    """By a click where it is found, because a view must also survive what another one left behind."""
    walk = Walk(_talked(visit, filled))
    waiting = [(f"#/{view}", "") for view in VIEWS]
    seen: set[object] = set()
    while waiting and not walk.faults:
        address, link = waiting.pop(0)
        walk.open(address)
        if link:
            walk.use(walk.page.locator(f"a[href={_quoted(link)}]").first, f"{link} on {address}")
        here = str(walk.page.evaluate("location.hash"))
        for found in walk.links():
            way = (_kind(here), _kind(found))
            if found not in seen or way not in seen:
                seen |= {found, way}
                waiting.append((here, found))
    assert walk.faults == []
    # It was everywhere: each view, each kind of page in it, and more than one of those that differ by their data.
    kinds = {_kind(address) for address in seen if isinstance(address, str)}
    assert {f"#/{view}?" for view in VIEWS} <= kinds
    assert {"#/history/conversations?", "#/history/reply?", "#/history/conversation?", "#/inspect/request?"} <= kinds
    assert len([address for address in seen if isinstance(address, str) and "/reply/" in address]) >= 8


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _short(text: str) -> str:
    """What a control is called, whatever it counts."""
    return re.sub(r"\d+", "", text.strip()[:40])


@pytest.mark.parametrize(
    "view", [*VIEWS, "history/conversations", "history/reply", "history/conversation", "inspect/request"]
)
def test_every_button_and_choice_of_every_view_can_be_used(visit: Visitor, filled: Servers, view: str) -> None:
    """Each on a page of its own. What they open is closed by Escape, so nothing is deleted."""
    page = _talked(visit, filled)
    walk = Walk(page)
    address = f"#/{view}"
    if view.count("/") and view != "history/conversations":
        walk.open(f"#/{view.split('/')[0]}{'/conversations' if view.endswith('conversation') else ''}")
        addresses = [link for link in walk.links() if link.startswith(address + "/")]
        assert addresses
    else:
        addresses = [address]
    used = set()
    for each in addresses:
        walk.open(each)
        controls = page.locator("main button:visible, main select:visible, main summary:visible")
        # Most stand on every row: those are passed over before the page is loaded again.
        for number, shown in enumerate(controls.all_inner_texts()):
            if _short(shown) in used:
                continue
            page.reload()
            walk.settle(f"opening {each}")
            control = controls.nth(number)
            if not control.count() or not control.is_enabled():
                continue
            name = _short(control.inner_text())
            if name in used:
                continue
            used.add(name)
            walk.use(control, f"{name!r} on {each}")
            page.keyboard.press("Escape")
            walk.settle(f"Escape after {name!r} on {each}")
    print(view, sorted(used))
    assert used
    assert walk.faults == []


@pytest.mark.parametrize(
    ("written", "badges"), [("<think>done</think>", []), ("<think>I never come to", ["never closed"])]
)
def test_a_thought_without_an_answer_is_open_in_what_was_kept(
    visit: Visitor, filled: Servers, written: str, badges: list[str]
) -> None:
    """Here it is known whether the model closed it."""
    page = visit(filled.gateway.url, "#/history", key=OPERATOR)
    page.locator(".card-link", has_text=f"What is written: {written}").click()
    expect(page.locator(".thought-text")).to_be_visible()
    expect(page.locator(".thought .badge")).to_have_text(badges)
    expect(page.get_by_text("It ended without an answer.")).to_be_visible()


def test_a_view_that_fails_says_so_and_the_others_go_on(visit: Visitor, filled: Servers) -> None:
    page = visit(filled.gateway.url, "#/chats", key=OPERATOR, complaints=True)
    page.route("**/asides/history?*", lambda route: route.fulfill(json={"replies": [None], "next": None}))
    views = page.get_by_role("navigation", name="Views")
    views.get_by_role("link", name="History").click()
    failed = page.get_by_role("alert")
    expect(failed).to_contain_text("This view has failed.")
    for name, there in (("Chats", "Your question"), ("Compare", "Your question"), ("Inspect", "Raw output of a model")):
        views.get_by_role("link", name=name).click()
        expect(page.get_by_label(there)).to_be_visible()
        expect(failed).to_have_count(0)
    views.get_by_role("link", name="History").click()
    expect(failed).to_contain_text("This view has failed.")
    page.unroute("**/asides/history?*")
    failed.get_by_role("button", name="Try again").click()
    expect(page.locator(".card-link").first).to_be_visible()
    # Also where it fails in the middle of being used: another address of the view is another try.
    page.route("**/asides/history/conversations?*", lambda route: route.fulfill(json={"conversations": [None]}))
    page.get_by_role("link", name="Conversations").click()
    expect(failed).to_contain_text("This view has failed.")
    views.get_by_role("link", name="History").click()
    expect(page.locator(".card-link").first).to_be_visible()
    expect(failed).to_have_count(0)
