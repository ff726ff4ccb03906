"""Compare: two models get the same question, both are seen at once, and their figures stand below."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.gateway.running import Gateway
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import Asked, Gate, Reply, frame
from tests.page.conftest import Visitor
from tests.page.talking import DONE, until
from tests.page.test_hostile import HOSTILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page


@pytest.fixture(scope="module")
def pair() -> Iterator[Servers]:
    """A gateway before an upstream with two models."""
    with serving() as found:
        found.upstream.models[:] = ["left", "right"]
        yield found


def answers(servers: Servers, *gates: Gate) -> None:
    """Let each model think and answer with its own name; both wait at these gates in turn."""

    def reply(asked: Asked) -> Reply:
        name = asked.body["model"]
        gated = [step for gate in gates for step in (frame(f" {name}"), gate)]
        return Reply(
            [
                frame("<think>thought of"),
                *gated,
                frame("</think>"),
                frame(f"Answer of {name}."),
                frame("", reason="stop"),
                DONE,
            ]
        )

    servers.upstream.send(reply)


def ask_both(page: Page, question: str) -> None:
    """Ask both."""
    page.get_by_label("Your question").fill(question)
    page.get_by_role("button", name="Ask both").click()


def test_both_are_seen_at_once_and_figures_follow(visit: Visitor, pair: Servers) -> None:
    gate = Gate()
    answers(pair, gate)
    page = visit(pair.gateway.url, "#/compare")
    ask_both(page, "2+2?")
    columns = page.locator(".column")
    # Neither has ended: both think before the eyes of the person.
    expect(columns.nth(0).locator(".thought")).to_contain_text("thought of left")
    expect(columns.nth(1).locator(".thought")).to_contain_text("thought of right")
    expect(columns.nth(0)).to_have_attribute("aria-busy", "true")
    expect(page.locator(".compared")).to_have_count(0)
    gate.open()
    expect(columns.nth(0).locator(".answer")).to_have_text("Answer of left.")
    expect(columns.nth(1).locator(".answer")).to_have_text("Answer of right.")
    table = page.get_by_role("region", name="Figures of both replies")
    expect(table.locator("th[scope=col]")).to_have_text(["left", "right"])
    row = table.get_by_role("row", name="Words of the answer")
    expect(row.locator("td")).to_have_text(["3", "3"])
    assert {json.dumps(asked.body["messages"]) for asked in pair.upstream.questions} == {
        '[{"role": "user", "content": "2+2?"}]'
    }


def test_the_choice_stands_in_the_address_and_a_link_asks_nothing(visit: Visitor, pair: Servers) -> None:
    pair.upstream.forget()
    page = visit(pair.gateway.url, "#/compare?a=right&b=left&effort=low&question=What%20is%202%2B2?")
    expect(page.get_by_label("Your question")).to_have_value("What is 2+2?")
    expect(page.get_by_role("combobox", name="Compare", exact=True)).to_have_value("right")
    expect(page.get_by_role("combobox", name="with", exact=True)).to_have_value("left")
    expect(page.get_by_label("Effort")).to_have_value("low")
    assert pair.upstream.questions == []
    page.get_by_role("combobox", name="with", exact=True).select_option("right")
    until(page, "location.hash.includes('b=right')")


def test_by_keyboard_alone(visit: Visitor, pair: Servers) -> None:
    """`/` leads to the question, Enter asks, Escape stops both."""
    gate = Gate()
    answers(pair, gate)
    page = visit(pair.gateway.url, "#/compare")
    expect(page.get_by_role("combobox", name="with", exact=True)).to_have_value("right")
    page.keyboard.press("/")
    page.keyboard.type("2+2?")
    page.keyboard.press("Enter")
    expect(page.locator(".column .thought")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.locator(".column .badge", has_text="stopped").first).to_be_visible()
    expect(page.get_by_role("button", name="Ask both")).to_be_visible()
    expect(page.locator(".badge", has_text="stopped")).to_have_count(4)  # each thought's heading, and each reply
    gate.open()


def test_one_fails_and_the_other_goes_on(visit: Visitor, pair: Servers) -> None:
    def reply(asked: Asked) -> Reply:
        if asked.body["model"] == "left":
            return Reply(
                [json.dumps({"error": {"message": "no such model"}}).encode()],
                404,
                {"content-type": "application/json"},
                whole=True,
            )
        return Reply([frame("Fine."), frame("", reason="stop"), DONE])

    pair.upstream.send(reply)
    page = visit(pair.gateway.url, "#/compare", complaints=True)
    ask_both(page, "2+2?")
    expect(page.locator(".column").nth(0).get_by_role("alert")).to_contain_text("no such model")
    expect(page.locator(".column").nth(1).locator(".answer")).to_have_text("Fine.")
    answers(pair)
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".column").nth(0).locator(".answer")).to_have_text("Answer of left.")
    expect(page.locator(".column").nth(1).locator(".answer")).to_have_text("Fine.")


def test_hostile_answers_stay_text(visit: Visitor, pair: Servers) -> None:
    pair.upstream.say(f"<think>{HOSTILE}</think>{HOSTILE}")
    page = visit(pair.gateway.url, "#/compare", settings='{"fold": "open", "thoughts": "markdown"}')
    ask_both(page, HOSTILE)
    expect(page.locator(".compared")).to_be_visible()
    written = page.locator(".columns")
    assert (
        written.locator(
            "script, img, svg:not(.icon, .ribbon), style, iframe, form, [onclick], [onerror], [style]"
        ).count()
        == 0
    )
    assert page.evaluate("window.broken") is None


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(
    visit: Visitor, recorded: Gateway, photograph: Callable[[Page, str], None], width: int, scheme: str
) -> None:
    """Columns side by side, or one below the other."""
    page = visit(recorded.url, "#/compare?a=recorded-qwen3&b=recorded-gpt-oss", width=width, scheme=scheme)
    ask_both(page, "How many r are in strawberry?")
    expect(page.locator(".compared")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    one, other = (page.locator(".column").nth(number).bounding_box() for number in (0, 1))
    assert one is not None
    assert other is not None
    assert (one["y"] == other["y"]) is (width > 760)
    photograph(page, "compare")
