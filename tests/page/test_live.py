"""Watch: what other clients ask, live, with thoughts as they come; each key its own, an operator everything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.gateway.clients import post
from tests.gateway.running import Gateway, gateway
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import Close, Gate, Reply, Step, frame, upstream
from tests.page.conftest import KEYS, Visitor
from tests.page.talking import DONE, script
from tests.page.test_hostile import HOSTILE
from tests.ports import held_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

FIRST, SECOND, OPERATOR = KEYS


@pytest.fixture
def watched() -> Iterator[Servers]:
    """A gateway with keys whose operator may watch everything. It holds what was asked, so each test has its own."""
    keys = [FIRST, SECOND, {"key": OPERATOR, "operator": True, "name": "ops"}]
    with serving(keys=keys, page={"watch": "all"}) as found:
        yield found


@contextmanager
def asking(servers: Servers, question: str, key: str = FIRST, id: str = "", **more: Any) -> Iterator[threading.Thread]:
    """Another client that asks while the block runs, and gets all of its reply afterwards."""
    body = {"model": "m", "messages": [{"role": "user", "content": question}], "stream": True, **more}
    headers = {"user-agent": "some-client/1.0", **({"authorization": f"Bearer {key}"} if key else {})}
    headers |= {"x-request-id": id} if id else {}

    def ask() -> None:
        with suppress(httpx.HTTPError):  # the gateway may be made to die
            post(servers.gateway.url, "/v1/chat/completions", body, headers=headers)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    yield thread
    thread.join()


def watching(visit: Visitor, servers: Servers, key: str = FIRST, fragment: str = "#/live", **options: Any) -> Page:
    """The view, connected."""
    page = visit(servers.gateway.url, fragment, key=key, **options)
    expect(page.get_by_text("as it comes")).to_be_visible()
    return page


def test_thoughts_are_seen_while_they_come(visit: Visitor, watched: Servers) -> None:
    """Before the reply has ended: the question, the client, the thought; then the answer, and the thought folds."""
    gates = [Gate(), Gate()]
    script(watched.upstream, "<think>first", gates[0], " second", gates[1], "</think>", "It is 4.")
    page = watching(visit, watched)
    expect(page.locator(".nothing")).to_contain_text("Nothing has come yet")
    with asking(watched, "2+2?"):
        article = page.get_by_role("article", name="Request to m")
        expect(article).to_contain_text("2+2?")
        expect(article).to_contain_text("some-client/1.0")
        expect(article.locator(".badge", has_text="running")).to_be_visible()
        expect(article.locator(".thought-text")).to_have_text("first")
        gates[0].open()
        expect(article.locator(".thought-text")).to_have_text("first second")
        expect(article.locator(".answer")).to_have_count(0)
        gates[1].open()
    expect(article.locator(".answer")).to_have_text("It is 4.")
    expect(article.locator(".badge")).to_have_count(0)
    expect(article.locator(".thought-text")).not_to_be_visible()
    article.get_by_role("link", name="Inspect").click()
    expect(page.locator("pre.raw .marker").first).to_have_text("<think>")


def test_a_key_sees_its_own_and_an_operator_everything(visit: Visitor, watched: Servers) -> None:
    own, other = watching(visit, watched, FIRST), watching(visit, watched, SECOND)
    operator = watching(visit, watched, OPERATOR)
    expect(operator.get_by_role("status").filter(has_text="Everything")).to_be_visible()
    with asking(watched, "of the first", FIRST):
        pass
    with asking(watched, "of the second", SECOND):
        pass
    expect(operator.get_by_role("article")).to_have_count(2)
    expect(own.get_by_role("article")).to_have_count(1)
    expect(own.get_by_role("article")).to_contain_text("of the first")
    # What would have come before it has come: the other's own request was asked after.
    expect(other.get_by_role("article")).to_have_count(1)
    expect(other.get_by_role("article")).to_contain_text("of the second")
    # Nor can it be looked into.
    address = own.get_by_role("article").get_by_role("link", name="Inspect").get_attribute("href")
    stranger = visit(watched.gateway.url, str(address), key=SECOND, complaints=True)
    expect(stranger.get_by_text("for the key that sent them")).to_be_visible()
    assert "of the first" not in stranger.content()


def test_nobody_writes_into_a_request_of_another_key(visit: Visitor, watched: Servers) -> None:
    """Clients choose their ids: the second takes the first's while that one is being answered."""
    gate = Gate()
    script(watched.upstream, "<think>genuine", gate, "</think>", "It is 4.")
    operator = watching(visit, watched, OPERATOR)
    with asking(watched, "of the first", FIRST, id="same"):
        first = operator.get_by_role("article").filter(has_text="of the first")
        expect(first.locator(".thought-text")).to_have_text("genuine")
        script(watched.upstream, "<think>forged</think>", "It is 5.")
        with asking(watched, "of the second", SECOND, id="same"):
            pass
        second = operator.get_by_role("article").filter(has_text="of the second")
        expect(second.locator(".answer")).to_have_text("It is 5.")
        gate.open()
    expect(first.locator(".answer")).to_have_text("It is 4.")


def test_pausing_holds_the_list_and_loses_nothing(visit: Visitor, watched: Servers) -> None:
    page = watching(visit, watched)
    with asking(watched, "before the pause"):
        pass
    expect(page.get_by_role("article")).to_have_count(1)
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Go on")).to_have_attribute("aria-pressed", "true")
    other = watching(visit, watched)
    with asking(watched, "during the pause"):
        pass
    expect(other.get_by_role("article")).to_have_count(2)  # one was there on arrival
    expect(page.get_by_role("article")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("article")).to_have_count(2)
    expect(page.get_by_role("article").first).to_contain_text("during the pause")
    expect(page.get_by_role("article").first.locator(".answer")).to_have_text("It is 4.")


def test_one_model_alone_by_the_address(visit: Visitor, watched: Servers) -> None:
    page = watching(visit, watched, fragment="#/live?model=other")
    expect(page.locator(".nothing")).to_contain_text("for this model")
    with asking(watched, "to m"):
        pass
    with asking(watched, "to the other", model="other"):
        pass
    expect(page.get_by_role("article")).to_have_count(1)
    expect(page.get_by_role("article")).to_contain_text("to the other")
    page.get_by_role("combobox", name="Model").select_option("")
    expect(page.get_by_role("article")).to_have_count(2)
    assert page.evaluate("location.hash") == "#/live"


def test_a_request_that_runs_already_is_there(visit: Visitor, watched: Servers) -> None:
    gate = Gate()
    script(watched.upstream, "<think>unseen", gate, " seen</think>", "Done.")
    with asking(watched, "long before"):
        watched.upstream.question()
        page = watching(visit, watched)
        expect(page.get_by_role("article")).to_contain_text("long before")
        expect(page.get_by_role("article")).to_contain_text("can be looked into")
        gate.open()
    expect(page.locator(".answer")).to_have_text("Done.")


def test_calls_refusals_and_several_choices(visit: Visitor, watched: Servers) -> None:
    page = watching(visit, watched)
    watched.upstream.say("", thought="hm", calls=(("find", '{"q": "x"}'),))
    tool = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}
    with asking(watched, "call", tools=[tool]):
        pass
    expect(page.locator(".call code")).to_have_text("find")
    expect(page.locator(".call pre")).to_contain_text('"q": "x"')
    watched.upstream.send(
        Reply([b'{"error": {"message": "no"}}'], 400, {"content-type": "application/json"}, whole=True)
    )
    with asking(watched, "refused"):
        pass
    expect(page.get_by_role("article").first.locator(".badge")).to_have_text("status 400")


def test_why_a_reply_failed_is_shown(visit: Visitor, watched: Servers) -> None:
    """Before it began, whoever says why, and in its middle: then what had come stays open."""
    page = watching(visit, watched)
    latest = page.get_by_role("article").first
    for body, kind in ((b"out of memory", "text/plain"), (b'{"error": "out of memory"}', "application/json")):
        watched.upstream.send(Reply([body], 500, {"content-type": kind}, whole=True))
        with asking(watched, f"refused as {kind}"):
            pass
        expect(latest).to_contain_text(f"refused as {kind}")
        expect(latest.locator(".message.error")).to_contain_text("It failed. out of memory")
        latest.get_by_role("link", name="Inspect").click()
        expect(page.locator(".inspect").get_by_role("alert")).to_contain_text("It failed. out of memory")
        page.go_back()
        expect(page.get_by_text("as it comes")).to_be_visible()
    script(watched.upstream, "<think>as far as", Close(), reason=None)
    with asking(watched, "broken off"):
        pass
    expect(latest.locator(".message.error")).to_contain_text("the upstream broke off in the middle of its answer")
    expect(latest.locator(".thought-text")).to_be_visible()
    expect(latest.locator(".thought .badge")).to_have_text("cut off")


def test_a_thought_without_an_answer_stays_open(visit: Visitor, watched: Servers) -> None:
    script(watched.upstream, "<think>I have it.</think>")
    page = watching(visit, watched)
    with asking(watched, "2+2?"):
        pass
    article = page.get_by_role("article").first
    expect(article).to_contain_text("It ended without an answer.")
    expect(article.locator(".thought-text")).to_be_visible()
    expect(article.locator(".badge")).to_have_count(0)


def test_what_was_seen_stays_and_the_rest_the_gateway_holds(visit: Visitor) -> None:
    """Over another view and a reload; what came meanwhile is there too, and its text is shown on a click."""
    with serving(keys=[FIRST, SECOND], page={"watch": "own"}) as servers:
        servers.upstream.say("<think>before</think>One.")
        with asking(servers, "before anybody watched"):
            pass
        page = watching(visit, servers)
        articles = page.get_by_role("article")
        expect(articles).to_contain_text("before anybody watched")
        expect(articles.locator(".answer")).to_have_count(0)
        articles.get_by_role("button", name="Show all that it wrote").click()
        expect(articles.locator(".answer")).to_have_text("One.")
        expect(articles.get_by_role("button", name="Show all that it wrote")).to_have_count(0)
        gate = Gate()
        script(servers.upstream, "<think>half", gate, " whole</think>", "Two.")
        with asking(servers, "while it was watched"):
            expect(articles.first.locator(".thought-text")).to_have_text("half")
            page.get_by_role("link", name="Chats").click()
            page.get_by_label("Your question").wait_for()
            gate.open()
        servers.upstream.say("<think>unseen</think>Three.")
        with asking(servers, "while nobody watched"):
            pass
        page.get_by_role("link", name="Live").click()
        expect(articles.locator(".asked")).to_have_text(
            ["while nobody watched", "while it was watched", "before anybody watched"]
        )
        # What had been seen is still there, and so is what had been loaded.
        expect(articles.nth(2).locator(".answer")).to_have_text("One.")
        expect(articles.nth(1).locator(".thought-text")).to_contain_text("half")
        articles.nth(1).get_by_role("button", name="Show all that it wrote").click()
        expect(articles.nth(1).locator(".answer")).to_have_text("Two.")
        expect(articles.nth(1).locator(".thought-text")).to_have_text("half whole")
        page.reload()
        expect(articles).to_have_count(3)
        # Another key sees nothing of it, also in the same tab.
        page.evaluate("key => sessionStorage.setItem('asides.key', key)", SECOND)
        page.get_by_role("link", name="Chats").click()
        page.get_by_role("link", name="Live").click()
        expect(page.locator(".nothing")).to_contain_text("Nothing has come yet")
        assert "before anybody watched" not in page.content()


def test_hostile_output_stays_text(visit: Visitor, watched: Servers) -> None:
    watched.upstream.say(f"<think>{HOSTILE}\u202e</think>{HOSTILE}")
    page = watching(visit, watched, settings='{"fold": "open", "thoughts": "markdown"}')
    with asking(watched, f"{HOSTILE[:150]}\u202e"):
        pass
    article = page.get_by_role("article")
    expect(article.locator(".answer")).to_contain_text("<script>window.broken = 1</script>")
    # While it grows, a text has a height of its own, which is a style of ours.
    expect(article.locator(".badge", has_text="running")).to_have_count(0)
    assert (
        article.locator(
            "script, img, svg:not(.icon, .ribbon), style, iframe, form, [onclick], [onerror], [style]"
        ).count()
        == 0
    )
    assert "\u202e" not in article.inner_text()
    assert page.evaluate("window.broken") is None


def test_a_lost_connection_is_told_and_comes_back(visit: Visitor) -> None:
    """What ran meanwhile is marked; afterwards new requests are seen again."""
    with held_port() as port, upstream() as server:
        config: dict[str, Any] = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}}
        config |= {
            "page": {"watch": "own"},
            "keys": [FIRST],
        }  # a key, which outlasts a restart: the start token does not
        gate = Gate()
        script(server, "<think>hm", gate, "</think>", "It is 4.")
        # The gateway dies in the middle of a thought, and comes back at the same place.
        with gateway(config, "--port", str(port)) as running:
            first = Servers(running, server)
            page = watching(visit, first, FIRST, complaints=True)
            with asking(first, "lost", FIRST):
                expect(page.locator(".thought-text")).to_have_text("hm")
                running.process.kill()
                running.process.wait()
                expect(page.get_by_role("alert")).to_contain_text("The connection was lost.")
        gate.open()
        server.forget()
        with gateway(config, "--port", str(port)) as running:
            expect(page.get_by_role("alert")).to_have_count(0)
            expect(page.get_by_role("article").locator(".badge.warn").first).to_contain_text("not seen")
            with asking(Servers(running, server), "found again", FIRST):
                pass
            expect(page.get_by_role("article").first).to_contain_text("found again")


def test_where_it_is_off_it_says_which_line_turns_it_on(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url, "#/live")
    expect(page.get_by_role("heading", name="Live is off")).to_be_visible()
    expect(page.locator("pre")).to_have_text("page: {watch: own}")


def test_a_long_thought_is_all_there(visit: Visitor, watched: Servers) -> None:
    """100 kB in 2,000 pieces, none of them left out, and the page stays at work: a click is answered meanwhile."""
    steps = [frame(f"word{number} and forty-two more characters for it\n") for number in range(2000)]
    gate = Gate()
    thought: list[Step] = [frame("<think>"), *steps[:1000], gate, *steps[1000:], frame("</think>")]
    watched.upstream.send(Reply([*thought, frame("Done."), frame("", reason="stop"), DONE]))
    page = watching(visit, watched)
    with asking(watched, "long"):
        expect(page.locator(".thought-text")).to_contain_text("word999")
        page.locator(".thought-head button").click()
        gate.open()
        expect(page.locator(".thought-head button")).to_have_attribute("aria-expanded", "false")
    expect(page.locator(".answer")).to_have_text("Done.")
    assert len(page.locator(".thought-text").text_content() or "") > 80_000
    expect(page.get_by_text("left out")).to_have_count(0)
    expect(page.locator(".thought .figures")).to_contain_text("14,000 words")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(
    visit: Visitor, watched: Servers, photograph: Callable[[Page, str], None], width: int, scheme: str
) -> None:
    gate = Gate()
    script(watched.upstream, f"<think>Two and two, {'unbroken' * 40}", gate, "</think>", "It is 4.")
    page = watching(visit, watched, OPERATOR, width=width, scheme=scheme)
    with asking(watched, "What is 2+2?", OPERATOR):
        expect(page.locator(".thought-text")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        photograph(page, "live")
        gate.open()
    expect(page.locator(".answer")).to_be_visible()
