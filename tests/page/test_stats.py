"""Stats: the charts of `asides stats` over what history keeps, by model and over time; each key its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

import asides
from asides import _history as history
from asides._gateway.headers import fingerprint
from asides.reply._reply import Reply, Times
from tests.gateway.running import Gateway, gateway
from tests.page.conftest import KEYS, Visitor

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

FIRST, SECOND, OPERATOR = KEYS
HOSTILE = "<img src=x onerror=window.broken=1></svg>\u202e"
LOOP = "so we try it again with the other one and it fails " * 12


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose history has three models over ten days, most of it the first key's."""
    store = tmp_path_factory.mktemp("history") / "history.db"
    with history.open(str(store)) as opened:
        for day in range(1, 11):
            for model, key, text in (
                ("calm", FIRST, "<think>Add two and two.</think>Four."),
                ("restless", FIRST, f"<think>Wait, is it? Let me check.\n\n{LOOP if day == 4 else ''}</think>Four."),
                (HOSTILE, SECOND, "<think>Another's thought.</think>Four."),
            ):
                opened.keep(
                    Reply.of(asides.parse(text), times=Times(thoughts=(2.5,) if model == "calm" else ())),
                    model=model,
                    source="gateway",
                    client=fingerprint({"authorization": f"Bearer {key}"}),
                    time=datetime(2026, 11, day, 12, tzinfo=UTC),
                )
    keys = [FIRST, SECOND, {"key": OPERATOR, "operator": True, "name": "ops"}]
    with gateway({"keys": keys, "history": {"save": True, "store": str(store)}}) as running:
        yield running


def figures(visit: Visitor, running: Gateway, fragment: str = "#/stats", key: str = FIRST, **options: object) -> Page:
    """The view, counted."""
    page = visit(running.url, fragment, key=key, **options)
    page.locator(".chart").first.wait_for()
    return page


def test_models_stand_in_a_table_and_in_charts(visit: Visitor, counted: Gateway) -> None:
    page = figures(visit, counted)
    table = page.get_by_role("region", name="Every model in a row")
    heads = table.locator("thead th").all_inner_texts()
    rows = {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()
    }
    found = {name: dict(zip(heads, cells, strict=True)) for name, cells in rows.items()}
    assert set(found) == {"calm", "restless"}
    assert (found["calm"]["replies"], found["calm"]["words, median"], found["calm"]["seconds, median"]) == (
        "10",
        "4",
        "2.5",
    )
    assert (found["restless"]["seconds, median"], found["restless"]["looping"]) == ("–", "10%")
    expect(page.get_by_text("20 replies of this key.")).to_be_visible()
    titles = page.locator("section > h2").all_inner_texts()
    assert titles == [
        "At a glance",
        "How long it thinks",
        "How much of it is thinking",
        "Backtracking",
        "What went wrong",
        "Over time",
        "Form of the thoughts",
        "What the figures mean",
    ]
    assert "quality" not in page.locator("main").inner_text().lower()
    for chart in page.locator(".chart").all():
        assert chart.get_attribute("aria-label")
        assert chart.get_attribute("role") == "img"
        colours = chart.locator("rect.c0").evaluate_all(
            "all => [...new Set(all.map(one => getComputedStyle(one).fill))]"
        )
        assert colours
        assert "rgb(0, 0, 0)" not in colours, "the style was not applied"
    # Every chart has its numbers as a table, opened by keyboard.
    assert (
        page.locator("figure").count() == page.locator("figure details table").count() == page.locator(".chart").count()
    )
    page.locator("figure summary").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("figure details table").first).to_be_visible()


def test_over_time(visit: Visitor, counted: Gateway) -> None:
    """A column for each day, and the day of the loop stands out."""
    page = figures(visit, counted)
    chart = page.get_by_role("img", name="Looping by day", exact=True)
    drawn = chart.locator("svg", has_text="restless").locator("rect.c0")
    expect(drawn).to_have_count(10)
    heights = [float(bar.get_attribute("height") or 0) for bar in drawn.all()]
    assert [height > 0 for height in heights] == [False] * 3 + [True] + [False] * 6


def test_filters_stand_in_the_address(visit: Visitor, counted: Gateway) -> None:
    page = figures(visit, counted)
    page.get_by_role("combobox", name="Model").select_option("calm")
    expect(page.get_by_text("10 replies of this key.")).to_be_visible()
    assert page.evaluate("location.hash") == "#/stats?model=calm"
    page.get_by_label("Since").fill("2026-11-09")
    expect(page.get_by_text("2 replies of this key.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("2 replies of this key.")).to_be_visible()
    page.get_by_label("Since").fill("2027-01-01")
    expect(page.locator(".nothing")).to_have_text("Nothing that was kept fits.")
    page.get_by_role("button", name="Show everything").click()
    expect(page.get_by_text("20 replies of this key.")).to_be_visible()


def test_a_key_sees_its_own_and_an_operator_everything(visit: Visitor, counted: Gateway) -> None:
    other = figures(visit, counted, key=SECOND)
    expect(other.get_by_text("10 replies of this key.")).to_be_visible()
    assert "restless" not in other.content()
    operator = figures(visit, counted, key=OPERATOR)
    expect(operator.get_by_text("30 replies.", exact=True)).to_be_visible()


def test_a_hostile_name_is_drawn_as_text(visit: Visitor, counted: Gateway) -> None:
    page = figures(visit, counted, key=OPERATOR)
    expect(page.locator(".chart text", has_text="<img src=x").first).to_be_visible()
    assert page.locator("main").locator("img, script, [onerror], [style], a").count() == 0
    assert page.evaluate("window.broken") is None
    assert "\u202e" not in page.locator("main").inner_text()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(
    visit: Visitor, counted: Gateway, photograph: Callable[[Page, str], None], width: int, scheme: str
) -> None:
    """No text of a chart is cut off or scaled, at any width."""
    page = figures(visit, counted, key=OPERATOR, width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    outside = page.locator(".chart text, .chart rect").evaluate_all(
        "all => all.filter(one => { const place = one.getBoundingClientRect();"
        " const card = one.closest('.card').getBoundingClientRect();"
        " return place.left < card.left || place.right > card.right; }).map(one => one.textContent)"
    )
    assert outside == []
    assert page.locator(".chart text").evaluate_all("all => all.every(one => one.getScreenCTM().a === 1)")
    photograph(page, "stats")
    page.get_by_role("img", name="Looping by day", exact=True).scroll_into_view_if_needed()
    photograph(page, "stats-time")
