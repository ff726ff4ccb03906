"""Without a mouse, without eyes, without motion, in any colours, on a small screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.gateway.running import Gateway
from tests.gateway.servers import Servers
from tests.gateway.upstream import Gate
from tests.page.conftest import Visitor
from tests.page.talking import ask, complete, heading, script, thought, until

CONTRAST = Path(__file__).parent / "contrast.js"
WIDE = (
    "```\n"
    + "x" * 400
    + "\n```\n\n"
    + "| "
    + " | ".join(f"column {n}" for n in range(30))
    + " |\n|"
    + "---|" * 30
    + "\n"
)
WIDE += f"\n{'unbroken' * 60}\n\n[{'y' * 300}](https://example.org/{'z' * 300})\n"


def test_everything_is_reached_with_the_keyboard_alone(visit: Visitor, servers: Servers) -> None:
    """Ask, open and fold a thought, edit, change a setting: no mouse, and the focus can always be seen."""
    script(servers.upstream, "<think>hm, four</think>", "It is 4.")
    page = visit(servers.gateway.url)
    page.get_by_role("heading", name="Watch a model think").wait_for()
    # One can type at once; Escape leaves the field, and a key leads back to it.
    expect(page.get_by_label("Your question")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Your question")).not_to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Your question")).to_be_focused()
    page.keyboard.type("2+2?")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("Say it.")
    page.keyboard.press("Enter")
    complete(page)
    expect(page.locator(".bubble")).to_have_text("2+2?\nSay it.")
    seen: list[str] = []
    # Behind the composer the focus starts again at the top of the page.
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges()")
    page.evaluate("document.body.focus()")
    for _ in range(40):
        page.keyboard.press("Tab")
        name, ring = page.evaluate(
            """() => {
                const element = document.activeElement;
                const name = element.getAttribute('aria-label') || element.textContent.trim().split('\\n')[0];
                const style = getComputedStyle(element);
                const place = getComputedStyle(element.closest('.composer') ?? element);
                return [name, style.outlineStyle !== 'none' || place.borderColor !== 'none'];
            }"""
        )
        assert ring, f"nothing shows that {name} has the focus"
        if "Thought" in name and "Thought" not in "".join(seen):
            page.keyboard.press("Enter")
            expect(heading(page)).to_have_attribute("aria-expanded", "true")
            page.keyboard.press("Space")
            expect(heading(page)).to_have_attribute("aria-expanded", "false")
        seen.append(name)
    for wanted in (
        "Skip to the content",
        "Chats",
        "Settings",
        "Edit",
        "Thought",
        "Copy answer",
        "Regenerate",
        "Model",
        "Effort",
    ):
        assert any(wanted in name for name in seen), f"{wanted} is not reached: {seen}"


def test_enter_begins_a_line_where_a_setting_wants_ctrl_enter(visit: Visitor, servers: Servers) -> None:
    page = visit(servers.gateway.url)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Ctrl+Enter or Cmd+Enter").check()
    page.keyboard.press("Escape")
    page.get_by_label("Your question").focus()
    page.keyboard.type("2+2?")
    page.keyboard.press("Enter")
    page.keyboard.type("Say it.")
    expect(page.get_by_label("Your question")).to_have_value("2+2?\nSay it.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".bubble")).to_have_text("2+2?\nSay it.")


def test_a_dialog_keeps_the_focus_and_gives_it_back(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url)
    # The view that is still loading takes the focus when it is there.
    expect(page.get_by_label("Your question")).to_be_focused()
    button = page.get_by_role("button", name="Settings")
    button.focus()
    page.keyboard.press("Enter")
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(button).to_be_focused()


def test_an_edit_by_keyboard_begins_in_its_field_and_is_left_with_escape(visit: Visitor, servers: Servers) -> None:
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    edit = page.get_by_role("button", name="Edit")
    edit.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Your question").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".bubble")).to_have_text("2+2?")
    edit.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Your question").first).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.type(" Really?")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".bubble")).to_have_text("2+2? Really?")


def test_the_live_region_gets_events_and_not_tokens(visit: Visitor, servers: Servers) -> None:
    gates = [Gate() for _ in range(6)]
    steps = [step for number, gate in enumerate(gates) for step in (f" word{number}", gate)]
    script(servers.upstream, "<think>", *steps, "</think>", "It", " is", " 4.")
    page = visit(servers.gateway.url)
    page.get_by_label("Your question").wait_for()
    page.evaluate(
        """() => {
            window.spoken = [];
            const region = document.getElementById('live');
            const observer = new MutationObserver(() => window.spoken.push(region.textContent));
            observer.observe(region, {childList: true, characterData: true, subtree: true});
        }"""
    )
    ask(page, "2+2?")
    for number, gate in enumerate(gates):
        expect(thought(page)).to_contain_text(f"word{number}")
        gate.open()
    complete(page)
    heading(page).click()
    until(page, "window.spoken.at(-1) === 'Thought opened'")
    spoken = page.evaluate("window.spoken")
    assert spoken[:3] == ["The question was sent", "The model is thinking", "The answer begins"]
    assert spoken[3].startswith("The answer is complete: 3 words")
    assert spoken[4:] == ["Thought opened"]
    region = page.locator("#live")
    expect(region).to_have_attribute("aria-live", "polite")
    live = "[...document.querySelectorAll('[aria-live], [role=log], [role=alert], [role=status]')]"
    assert page.evaluate(f"{live}.every(place => !place.querySelector('.answer, .thought'))")


def test_a_heading_says_whether_its_thought_is_open_and_which_it_is(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>hm</think>", "It is 4.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    button = heading(page)
    expect(button).to_have_attribute("aria-expanded", "false")
    body = page.locator(f"#{button.get_attribute('aria-controls')}")
    expect(body).to_have_attribute("hidden", "until-found")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(body).to_be_visible()
    # The margin is for pointers; whoever has none has the heading, and is not told twice.
    expect(page.locator(".thought-margin")).to_have_attribute("aria-hidden", "true")
    expect(page.locator(".thought-margin")).to_have_attribute("tabindex", "-1")


def test_find_in_page_opens_a_folded_thought(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>the needle is here</think>", "It is 4.")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    page.locator(".thought-body").dispatch_event("beforematch")
    expect(heading(page)).to_have_attribute("aria-expanded", "true")


def test_nothing_moves_where_motion_is_not_wanted(visit: Visitor, servers: Servers) -> None:
    for wanted, running in (("no-preference", True), ("reduce", False)):
        gate = Gate()
        script(servers.upstream, "<think>hm", gate, "</think>", "It is 4.")
        page = visit(servers.gateway.url, reduced_motion=wanted)
        ask(page, "2+2?")
        expect(thought(page)).to_contain_text("hm")
        assert bool(page.evaluate("document.getAnimations().length")) is running
        gate.open()
        complete(page)


@pytest.mark.parametrize(
    ("system", "setting", "dark"),
    [("light", "system", False), ("dark", "system", True), ("light", "dark", True), ("dark", "light", False)],
)
def test_colours_are_the_systems_or_the_settings(
    visit: Visitor, recorded: Gateway, system: str, setting: str, dark: bool
) -> None:
    page = visit(recorded.url, scheme=system, settings=f'{{"scheme": "{setting}"}}')
    page.get_by_label("Your question").wait_for()
    red = page.evaluate("Number(/\\d+/.exec(getComputedStyle(document.body).backgroundColor)[0])")
    assert (red < 100) is dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_on_its_ground(visit: Visitor, servers: Servers, scheme: str) -> None:
    """Every piece of text has a contrast of 4.5 to 1, by the formula of WCAG."""
    script(servers.upstream, "<think>hm, I forgot", reason="length")
    page = visit(servers.gateway.url, scheme=scheme, settings='{"fold": "open"}')
    ask(page, "2+2?")
    complete(page)
    script(
        servers.upstream,
        "<think>hm</think>",
        "# It\n\nis `4` and [that](https://example.org).\n\n> so\n\n```py\nx\n```",
    )
    ask(page, "Really?")
    expect(page.locator(".answer blockquote")).to_be_visible()
    complete(page)
    assert page.evaluate(CONTRAST.read_text("utf-8")) == []


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(visit: Visitor, servers: Servers, width: int) -> None:
    script(servers.upstream, f"<think>{WIDE}</think>", WIDE)
    page = visit(servers.gateway.url, width=width, settings='{"fold": "open"}')
    page.get_by_role("heading", name="Watch a model think").wait_for()
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    ask(page, "unbroken" * 60)
    complete(page)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    cut = page.locator("header *, .turn button, .bottom button, .bottom select, .bubble").evaluate_all(
        """all => all.map((element) => [element.textContent.trim().slice(0, 40), element.getBoundingClientRect()])
            .filter(([, box]) => box.width && (box.left < 0 || box.right > innerWidth))
            .map(([text]) => text)"""
    )
    assert cut == []


def test_a_touch_screen_does_not_show_its_keyboard_by_itself(visit: Visitor, recorded: Gateway) -> None:
    page = visit(recorded.url, width=360, height=560, has_touch=True, is_mobile=True)
    page.get_by_role("heading", name="Watch a model think").wait_for()
    expect(page.get_by_label("Your question")).not_to_be_focused()
    # The first visit begins at its beginning.
    expect(page.get_by_role("heading", name="Watch a model think")).to_be_in_viewport()


def test_buttons_are_large_enough_for_a_finger(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>hm</think>", "```py\nx\n```")
    page = visit(servers.gateway.url, width=360, settings='{"fold": "open"}', has_touch=True)
    ask(page, "2+2?")
    complete(page)
    small = page.locator("button:visible, select:visible, header a:visible").evaluate_all(
        """all => all.map((element) => [element.outerHTML.slice(0, 80), element.getBoundingClientRect()])
            .filter(([, box]) => box.height < 28 || box.width < 24)
            .map(([text]) => text)"""
    )
    assert small == []


def test_every_control_has_a_name(visit: Visitor, servers: Servers) -> None:
    script(servers.upstream, "<think>hm</think>", "```py\nx\n```")
    page = visit(servers.gateway.url)
    ask(page, "2+2?")
    complete(page)
    for role in ("button", "link", "combobox", "textbox"):
        for control in page.get_by_role(role).all():
            first, *_ = control.aria_snapshot().splitlines()
            assert '"' in first, f"{role} without a name: {control.evaluate('element => element.outerHTML')}"
