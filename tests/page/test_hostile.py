"""What a model writes stays text: no script, no handler, no style, nothing loaded, no line turned around."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.gateway.servers import Servers
from tests.gateway.upstream import json_reply
from tests.page.conftest import Visitor
from tests.page.talking import ask, complete, copied, pieces, script, thought

ELSEWHERE = "http://203.0.113.7/"
"""Nobody is there; `visit` fails where the page asks for it."""

HOSTILE = f"""<script>window.broken = 1</script>

<img src=x onerror="window.broken = 2"> and
<svg onload="window.broken = 3"><a xlink:href="javascript:window.broken=4">x</a></svg>

<style>body {{ display: none }}</style><link rel="stylesheet" href="{ELSEWHERE}a.css">

<p style="position: fixed; inset: 0" onclick="window.broken = 5">over everything</p>

<iframe src="{ELSEWHERE}"></iframe><object data="{ELSEWHERE}"></object><base href="{ELSEWHERE}">

<form action="{ELSEWHERE}"><input autofocus onfocus="window.broken = 6"></form>

<math><mtext><table><mglyph><style><img src=x onerror="window.broken = 7"></style></mglyph></table></mtext></math>

[click](javascript:window.broken=8) [data](data:text/html,<script>window.broken=9</script>) [vb](vbscript:x)
[split](java\tscript:window.broken=10) [entity](&#106;avascript:window.broken=11)

![pixel]({ELSEWHERE}pixel.png) ![x](x" onerror="window.broken=12)

[bank.example]({ELSEWHERE}phish "bank.example")

```html" onmouseover="window.broken=13
<script>window.broken = 14</script>
```

<!-- <img src=x onerror="window.broken = 15"> --> `<b onclick="window.broken = 16">`
"""


@pytest.mark.parametrize("place", ["answer", "thought"])
@pytest.mark.parametrize("size", [5, 100_000])
def test_markup_of_a_model_does_nothing(visit: Visitor, servers: Servers, place: str, size: int) -> None:
    text = f"<think>hm</think>{HOSTILE}" if place == "answer" else f"<think>{HOSTILE}</think>Done."
    script(servers.upstream, *pieces(text, size))
    page = visit(servers.gateway.url, settings='{"fold": "open", "thoughts": "markdown"}')
    ask(page, "2+2?")
    complete(page)
    written = page.locator(".answer, .thought-text")
    names = written.locator("*").evaluate_all("all => [...new Set(all.map(element => element.localName))]")
    assert set(names) <= {"div", "p", "pre", "code", "a", "br", "span", "button"}, names
    attributes = written.locator("*").evaluate_all(
        "all => [...new Set(all.flatMap(element => element.getAttributeNames()))].sort()"
    )
    assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "id", "name")]
    links = written.locator("a[href]").evaluate_all("all => all.map(link => link.protocol)")
    assert set(links) == {"http:"}, links
    assert page.evaluate("window.broken") is None
    # Nothing of it is lost: it can all be read.
    shown = page.locator(".answer" if place == "answer" else ".thought-text").inner_text()
    assert "<script>window.broken = 1</script>" in shown
    assert "over everything" in shown
    assert f'href="{ELSEWHERE}a.css"' in shown
    assert "click (javascript:window.broken=8)" in shown


def test_a_link_names_where_it_leads_and_an_image_is_a_link(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>hm</think>", HOSTILE)
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    link = page.get_by_role("link", name="bank.example")
    expect(link).to_have_attribute("title", f"{ELSEWHERE}phish")
    expect(link).to_have_attribute("target", "_blank")
    expect(page.get_by_role("link", name="image: pixel")).to_have_attribute("href", f"{ELSEWHERE}pixel.png")


def test_markdown_that_would_take_forever_is_shown_as_it_is(visit: Visitor, servers: Servers) -> None:
    """Delimiters that the renderer looks for with the square of their number; the page still answers."""
    text = "***a** " * 20_000
    script(servers.upstream, "<think>hm</think>", *pieces(text, 5000))
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    answer = page.locator(".answer")
    assert answer.inner_text().rstrip() == text.rstrip()
    page.get_by_role("button", name="New conversation").click()
    script(servers.upstream, "<think>hm</think>", "It is **4**.")
    ask(page, "2+2?")
    expect(page.locator(".answer strong")).to_have_text("4")


def test_what_would_take_forever_is_found_wherever_it_stands(visit: Visitor, servers: Servers) -> None:
    text = "harmless\n\n" * 12_900 + "***a** " * 17_000
    script(servers.upstream, f"<think>{text}</think>", "Done.")
    page = visit(servers.gateway.url, settings='{"fold": "open", "thoughts": "markdown"}')
    ask(page, "2+2?")
    complete(page)
    assert page.locator(".thought-text").inner_text().rstrip() == text.rstrip()


BIDI = "access\u202elevel\u2066 // only admins\x1b[2J\x07"


def test_characters_that_turn_a_line_around_are_made_visible(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, f"<think>{BIDI}</think>", BIDI)
    page = visit(servers.gateway.url, settings='{"fold": "open"}')
    ask(page, BIDI)
    complete(page)
    for place in (thought(page).locator(".thought-text"), page.locator(".answer"), page.locator(".bubble")):
        assert place.inner_text().strip() == "access\ufffdlevel\ufffd // only admins\u241b[2J\u2407"
    # What is copied is what the model wrote.
    assert copied(page, "Copy answer") == BIDI


def test_characters_behind_entities_are_made_visible_too(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>hm</think>", "a&#8238;b&#x202E;c &#27;d &amp; `&#8238;`")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    assert page.locator(".answer").inner_text().strip() == "a\ufffdb\ufffdc \u241bd & &#8238;"


@pytest.mark.parametrize("size", [40, 100_000])
def test_what_is_nested_too_deeply_is_shown_as_it_is(visit: Visitor, servers: Servers, size: int) -> None:
    text = "First.\n\nSecond.\n\nThird.\n\n" + ">" * 4000 + "deep"
    script(servers.upstream, "<think>hm</think>", *pieces(text, size))
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    shown = page.locator(".answer").inner_text()
    assert ">" * 4000 + "deep" in shown
    assert all(word in shown for word in ("First.", "Second.", "Third."))


def test_arguments_of_thousands_of_brackets_are_not_laid_out(visit: Visitor, servers: Servers) -> None:
    """Each would be indented by twice its depth: megabytes for a few thousand characters."""
    arguments = "[" * 2000 + "]" * 2000
    servers.upstream.say("", thought="hm", calls=(("find", arguments),))
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    assert len(page.locator(".call pre").inner_text()) == len(arguments)


def test_an_error_of_an_upstream_is_shown_without_characters_that_act(visit: Visitor, servers: Servers) -> None:
    servers.upstream.send(json_reply({"error": {"message": "no\u202eway <b>out</b>"}}, 400))
    page = visit(servers.gateway.url, complaints=True)
    ask(page, "2+2?")
    expect(page.get_by_role("alert")).to_contain_text("no\ufffdway <b>out</b>")


@pytest.mark.parametrize(
    "fragment",
    [
        *("#/constructor", "#/__proto__/x", "#/history?client=constructor", "#/chats?effort=constructor"),
        *("#/compare?a=constructor&b=__proto__&effort=valueOf", "#/%E0%A4%A"),
        *("#/inspect/request/..", "#/inspect/request/%2e"),
    ],
)
def test_an_address_with_hostile_values_opens_a_view(visit: Visitor, servers: Servers, fragment: str) -> None:
    """Names that every object has, steps that would lead to another path: `visit` fails where something throws."""
    page = visit(servers.gateway.url, fragment)
    expect(page.locator("main h1").first).to_be_visible()
    expect(page.get_by_text("Loading…")).to_have_count(0)


@pytest.mark.parametrize("fragment", ["#/inspect?start=toString", "#/inspect?format=__proto__"])
def test_hostile_values_that_the_gateway_refuses_are_told(visit: Visitor, servers: Servers, fragment: str) -> None:
    page = visit(servers.gateway.url, fragment, refused=True)
    expect(page.get_by_role("alert")).to_contain_text(fragment.partition("=")[2])


def test_a_hostile_name_of_a_model_or_a_tool_is_text(visit: Visitor, servers: Servers) -> None:
    name = "<img src=x onerror=window.broken=1>"
    servers.upstream.say("", thought="hm", calls=((name, '{"x": "<script>window.broken=2</script>\u202e"}'),))
    page = visit(servers.gateway.url, "#/chats?model=" + name.replace(" ", "+"))
    page.get_by_role("button", name="Prompt, tools").click()
    page.get_by_role("button", name="Insert an example").click()
    page.get_by_role("button", name="Use these").click()
    ask(page, "2+2?")
    complete(page)
    expect(page.locator(".call code")).to_have_text(name)
    expect(page.locator(".call pre")).to_contain_text("<script>window.broken=2</script>\ufffd")
    assert page.locator(".call img").count() == 0
    assert page.evaluate("window.broken") is None


def test_the_pages_policy_would_stop_a_script_that_got_in(visit: Visitor, servers: Servers) -> None:
    """The last line of defence: what turns text into markup or code is refused, and what got in would not run."""
    page = visit(servers.gateway.url, complaints=True)
    page.get_by_label("Your question").wait_for()
    policy = page.request.get(servers.gateway.url, headers={"accept": "text/html"}).headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")
    passed, colour = page.evaluate(
        """() => {
            const place = document.body.appendChild(document.createElement('i'));
            const attempts = [
                () => (place.innerHTML = '<img src=x onerror="window.broken = 1">'),
                () => new DOMParser().parseFromString('<b>x</b>', 'text/html'),
                () => place.setAttribute('onclick', 'window.broken = 2'),
                () => (document.body.appendChild(document.createElement('script')).textContent = 'window.broken = 3'),
                () => trustedTypes.createPolicy('mine', {createHTML: (text) => text}),
            ];
            const passed = attempts.filter((attempt) => { try { attempt(); return true; } catch { return false; } });
            place.setAttribute('style', 'color: red');
            place.click();
            return [passed.map(String), getComputedStyle(place).color];
        }"""
    )
    assert passed == []
    assert colour != "rgb(255, 0, 0)"
    assert page.evaluate("window.broken") is None
