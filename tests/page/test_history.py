"""History: search inside thoughts and answers, filters, conversations, exports and deleting; each key its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.gateway.clients import get, post
from tests.gateway.running import Gateway
from tests.gateway.servers import Servers, serving
from tests.page.conftest import KEYS, Visitor
from tests.page.talking import until
from tests.page.test_hostile import HOSTILE
from tests.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

FIRST, SECOND, OPERATOR = KEYS
KEPT = [
    (
        FIRST,
        "alpha",
        "Why is the sky blue?",
        "<think>Rayleigh scattering, a needle of light.</think>Because of scattering.",
    ),
    (FIRST, "beta", "And at night?", "<think>No sun.</think>There is a needle in the answer."),
    (FIRST, "alpha", "What is hostile?", f"<think>{HOSTILE}\u202e</think>{HOSTILE} pitchfork"),
    (SECOND, "beta", "The other's secret?", "<think>A needle of somebody else.</think>Nobody may see this."),
]
"""Who asked which model what, and what it wrote."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("history") / "history.db"


@pytest.fixture(scope="module")
def kept(store: Path) -> Iterator[Servers]:
    """A gateway with keys that keeps history, and four replies in it."""
    keys = [FIRST, SECOND, {"key": OPERATOR, "operator": True, "name": "ops"}]
    with serving(keys=keys, history={"save": True, "store": str(store)}) as found:
        keep(found, KEPT)
        yield found


def keep(servers: Servers, replies: list[tuple[str, str, str, str]]) -> None:
    """Have these asked and answered, and wait until history has them."""
    before = amount(servers)
    for key, model, question, written in replies:
        servers.upstream.say(written)
        body = {"model": model, "messages": [{"role": "user", "content": question}]}
        post(servers.gateway.url, "/v1/chat/completions", body, headers=as_key(key)).raise_for_status()
    eventually(lambda: amount(servers) == before + len(replies), "history does not have them")


def as_key(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def amount(servers: Servers) -> int:
    """How many replies are kept."""
    return len(get(servers.gateway.url, "/asides/history?limit=200", **as_key(OPERATOR)).json()["replies"])


def read(visit: Visitor, servers: Servers, fragment: str = "#/history", key: str = FIRST, **options: object) -> Page:
    """Open a view with a key that the tab has been given."""
    return visit(servers.gateway.url, fragment, key=key, **options)


def search(page: Page, words: str) -> None:
    page.get_by_role("searchbox").fill(words)
    page.keyboard.press("Enter")


def test_search_finds_thoughts_and_answers_and_marks_them(visit: Visitor, kept: Servers) -> None:
    page = read(visit, kept)
    search(page, "needle")
    hits = page.locator(".hit")
    expect(hits).to_have_count(2)
    expect(page.locator(".hit mark")).to_have_text(["needle", "needle"])
    shown = {hit.locator(".small").inner_text(): hit.locator(".excerpt").inner_text() for hit in hits.all()}
    assert "scattering, a needle of light" in shown["in a thought"]
    assert "There is a needle in the answer" in shown["in the answer"]
    expect(page.locator(".list-head")).to_contain_text("2 places in 2 replies of this key")
    # The words are marked in the reply too, and the thought that holds one is open.
    page.get_by_role("link", name="Why is the sky blue?").click()
    expect(page.locator(".thought-text")).to_be_visible()
    until(page, "[...(CSS.highlights.get('search') ?? [])].length > 0")
    marked = page.evaluate(
        "[...CSS.highlights.get('search')].map(one => one.startContainer.data.slice(one.startOffset, one.endOffset))"
    )
    assert marked == ["needle"]
    assert page.evaluate("location.hash").endswith("?search=needle")
    page.go_back()
    expect(page.locator(".hit")).to_have_count(2)
    search(page, "nowhere")
    expect(page.locator(".nothing")).to_contain_text("Nothing was found")


def test_what_is_typed_at_once_stays(visit: Visitor, kept: Servers) -> None:
    """Into the field as soon as it is there, before anything is listed."""
    page = read(visit, kept, "#/inspect")
    page.evaluate(
        """() => new MutationObserver((changes, observer) => {
            const field = document.querySelector('[type=search]');
            if (!field) return;
            observer.disconnect();
            field.value = 'needle';
        }).observe(document, {childList: true, subtree: true})"""
    )
    page.goto(f"{kept.gateway.url}/#/history")
    expect(page.locator(".card-link")).to_have_count(3)
    expect(page.get_by_role("searchbox")).to_have_value("needle")


def test_filters_stand_in_the_address(visit: Visitor, kept: Servers) -> None:
    page = read(visit, kept)
    cards = page.locator(".card-link")
    expect(cards).to_have_count(3)
    page.get_by_role("combobox", name="Model").select_option("beta")
    expect(cards).to_have_count(1)
    expect(cards).to_contain_text("And at night?")
    assert page.evaluate("location.hash") == "#/history?model=beta"
    page.reload()
    expect(cards).to_have_count(1)
    page.get_by_label("Before").fill("2020-01-01")
    expect(page.locator(".nothing")).to_be_visible()
    page.get_by_role("button", name="Show everything").click()
    expect(cards).to_have_count(3)
    page.get_by_label("Since").fill("2020-01-01")
    until(page, "location.hash === '#/history?since=2020-01-01'")
    expect(cards).to_have_count(3)


def test_a_key_sees_its_own_and_an_operator_everything(visit: Visitor, kept: Servers) -> None:
    own = read(visit, kept, key=SECOND)
    expect(own.locator(".card-link")).to_have_count(1)
    expect(own.locator(".card-link")).to_contain_text("The other's secret?")
    search(own, "needle")
    expect(own.locator(".hit")).to_have_count(1)
    own.locator(".card-link").click()
    expect(own.locator(".answer")).to_have_text("Nobody may see this.")
    address = own.evaluate("location.hash")
    stranger = read(visit, kept, address, key=FIRST, complaints=True)
    expect(stranger.get_by_role("alert")).to_contain_text("no reply")
    assert "Nobody may see this." not in stranger.content()
    operator = read(visit, kept, key=OPERATOR)
    expect(operator.locator(".card-link")).to_have_count(4)
    expect(operator.get_by_role("combobox", name="Client").locator("option")).to_have_count(3)
    expect(operator.locator(".list-head")).not_to_contain_text("of this key")


def test_a_key_is_in_no_address(visit: Visitor, kept: Servers) -> None:
    """Neither of the page nor of anything that it asks for."""
    page = read(visit, kept)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    search(page, "needle")
    expect(page.locator(".hit")).to_have_count(2)
    assert asked
    assert not [url for url in [*asked, page.url] if FIRST in url]


def test_a_conversation_has_its_thoughts_in_place(visit: Visitor, kept: Servers) -> None:
    kept.upstream.say("<think>Second thought.</think>Second answer.")
    turns = [
        {"role": "user", "content": "A talk of two turns."},
        {"role": "assistant", "content": "First answer."},
        {"role": "user", "content": "Go on."},
    ]
    before = amount(kept)
    kept.upstream.by_message = {}
    for messages, written in (
        (turns[:1], "<think>First thought.</think>First answer."),
        (turns, "<think>Second thought.</think>Second answer."),
    ):
        kept.upstream.say(written)
        post(
            kept.gateway.url, "/v1/chat/completions", {"model": "talk", "messages": messages}, headers=as_key(SECOND)
        ).raise_for_status()
    eventually(lambda: amount(kept) == before + 2, "history does not have them")
    page = read(visit, kept, "#/history/conversations", key=SECOND)
    card = page.locator(".card-link", has_text="A talk of two turns.")
    expect(card).to_contain_text("2\u00a0replies")
    card.click()
    expect(page.locator(".bubble")).to_have_text(["A talk of two turns.", "Go on."])
    expect(page.locator(".answer")).to_have_text(["First answer.", "Second answer."])
    expect(page.locator(".thought")).to_have_count(2)
    page.keyboard.press("a")
    expect(page.locator(".thought-text").nth(1)).to_have_text("Second thought.")
    # Deleted again, with a confirmation that says how many; the other's replies stay.
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 replies with 2 thoughts: this conversation.")
    expect(dialog.get_by_role("button", name="Keep")).to_be_focused()
    dialog.get_by_role("button", name="Delete 2 replies").click()
    expect(page.locator(".card-link")).to_have_count(1)
    assert amount(kept) == before


def test_deleting_can_be_thought_over(visit: Visitor, kept: Servers) -> None:
    """What is chosen is named with its number; keeping, or Escape, deletes nothing."""
    page = read(visit, kept, "#/history?model=alpha")
    page.get_by_role("button", name="Delete these").click()
    expect(page.get_by_role("dialog")).to_contain_text("2 replies with 2 thoughts: model alpha.")
    page.get_by_role("button", name="Keep").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Delete these").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Delete 2 replies")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert amount(kept) == len(KEPT)
    search(page, "needle")
    expect(page.locator(".hit").first).to_be_visible()
    expect(page.get_by_role("button", name="Delete these")).to_have_count(0)  # a search is no filter of a deletion


def test_deleting_all_means_all_of_this_key(visit: Visitor, kept: Servers) -> None:
    keep(kept, [(SECOND, "gone", "Shall it go?", "<think>yes</think>It may.")])
    page = read(visit, kept, "#/history?model=gone", key=SECOND)
    page.get_by_role("button", name="Delete these").click()
    page.get_by_role("button", name="Delete 1 reply").click()
    expect(page.locator(".nothing")).to_be_visible()
    page = read(visit, kept, key=SECOND)
    page.get_by_role("button", name="Delete these").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 reply with 1 thought: everything that this key may read.")


@pytest.mark.parametrize("thoughts", [True, False])
@pytest.mark.parametrize("form", ["JSON Lines", "Markdown"])
def test_exports(visit: Visitor, kept: Servers, form: str, thoughts: bool) -> None:
    page = read(visit, kept, "#/history?model=beta")
    page.get_by_role("button", name="Export these").click()
    page.get_by_label(form).check()
    if not thoughts:
        page.get_by_label("with the thoughts").uncheck()
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save the file").click()
    text = Path(saving.value.path()).read_text(encoding="utf-8")
    assert saving.value.suggested_filename == ("asides.jsonl" if form == "JSON Lines" else "asides.md")
    assert "needle in the answer" in text
    assert ("No sun." in text) is thoughts
    assert "Nobody may see this" not in text
    if form == "JSON Lines":
        assert [json.loads(line)["model"] for line in text.splitlines()] == ["beta"]
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_hostile_replies_stay_text(visit: Visitor, kept: Servers) -> None:
    """In the list, in what a search finds, and opened."""
    page = read(visit, kept, settings='{"fold": "open", "thoughts": "markdown"}')
    forbidden = (
        "script, img, svg:not(.icon, .ribbon), style, iframe, form:not([role=search]), [onclick], [onerror], [style]"
    )
    expect(page.locator(".card-link")).to_have_count(3)
    assert page.locator(".cards").locator(forbidden).count() == 0
    search(page, "pitchfork")
    expect(page.locator(".hit")).to_have_count(1)
    assert page.locator(".cards").locator(forbidden).count() == 0
    page.locator(".card-link").click()
    expect(page.locator(".answer")).to_contain_text("<script>window.broken = 1</script>")
    assert page.locator(".kept-body").locator(forbidden).count() == 0
    assert "\u202e" not in page.locator(".kept-body").inner_text()
    assert page.evaluate("window.broken") is None


def test_steps_that_lead_elsewhere_are_none(visit: Visitor, kept: Servers) -> None:
    for fragment in ("#/history/reply/..", "#/history/conversation/%2e%2e", "#/history?client=constructor"):
        page = visit(kept.gateway.url, fragment, key=OPERATOR)
        expect(page.get_by_role("searchbox")).to_be_visible()
        expect(page.get_by_text("Loading…")).to_have_count(0)


def test_a_word_that_stands_everywhere_is_marked_within_bounds(visit: Visitor, kept: Servers) -> None:
    keep(kept, [(SECOND, "long", "A long one?", "<think>hm</think>" + "omega " * 150_000)])
    page = visit(kept.gateway.url, "#/history?search=omega", key=SECOND)
    page.get_by_role("link", name="long").first.click()
    until(page, "CSS.highlights.get('search')?.size === 9999")
    # The other tests count what is there.
    post(kept.gateway.url, "/asides/history/purge", {"model": "long"}, headers=as_key(SECOND)).raise_for_status()


def test_an_address_that_changes_before_the_first_picture_is_followed(visit: Visitor, kept: Servers) -> None:
    """A script draws the page and ends before this event; what is listened to only after a picture comes too late."""
    turn = "if (location.hash === '#/inspect') location.hash = '#/history'"
    early = f"addEventListener('DOMContentLoaded', () => {{ {turn} }})"
    page = visit(kept.gateway.url, "#/inspect", key=FIRST, script=early)
    expect(page.get_by_role("heading", name="History")).to_be_visible()


def test_pages_follow_one_another(visit: Visitor, kept: Servers) -> None:
    """What does not fit on one page is brought by a button, in order and without doubles."""
    page = read(visit, kept, "#/inspect")
    page.route("**/asides/history?*", lambda route: route.continue_(url=route.request.url + "&limit=2"))
    page.goto(f"{kept.gateway.url}/#/history")
    expect(page.locator(".card-link")).to_have_count(2)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".card-link")).to_have_count(3)
    expect(page.locator(".asked")).to_have_text(["What is hostile?", "And at night?", "Why is the sky blue?"])
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)


def test_where_nothing_is_kept_it_says_how(visit: Visitor, recorded: Gateway) -> None:
    for view in ("history", "stats"):
        page = visit(recorded.url, f"#/{view}")
        expect(page.get_by_role("heading", name="This gateway keeps no history")).to_be_visible()
        expect(page.locator("pre")).to_have_text("history:\n  save: true")


def test_a_lost_connection_is_told_and_tried_again(visit: Visitor, kept: Servers) -> None:
    page = read(visit, kept, "#/inspect", complaints=True)
    page.route("**/asides/history?*", lambda route: route.abort())
    page.goto(f"{kept.gateway.url}/#/history")
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    page.unroute("**/asides/history?*")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".card-link")).to_have_count(3)


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits(
    visit: Visitor, kept: Servers, photograph: Callable[[Page, str], None], width: int, scheme: str
) -> None:
    page = read(visit, kept, width=width, scheme=scheme, key=OPERATOR)
    fits = "document.documentElement.scrollWidth <= innerWidth"
    expect(page.locator(".card-link")).to_have_count(4)
    assert page.evaluate(fits)
    photograph(page, "history")
    search(page, "needle")
    expect(page.locator(".hit")).to_have_count(3)
    assert page.evaluate(fits)
    photograph(page, "history-search")
    page.locator(".card-link").last.click()
    expect(page.locator(".answer")).to_be_visible()
    assert page.evaluate(fits)
    photograph(page, "history-reply")


def test_by_keyboard_alone(visit: Visitor, kept: Servers) -> None:
    """Search, open what was found, unfold its thought, and go back: each place that has the focus shows it."""
    page = read(visit, kept)
    expect(page.locator(".card-link")).to_have_count(3)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("Rayleigh")
    page.keyboard.press("Enter")
    expect(page.locator(".hit")).to_have_count(1)
    for _ in range(20):
        page.keyboard.press("Tab")
        # The parts of a date have rings of the browser's own.
        assert page.evaluate(
            "getComputedStyle(document.activeElement).outlineStyle !== 'none' || document.activeElement.type === 'date'"
        )
        if page.evaluate("document.activeElement.matches('.card-link')"):
            break
    page.keyboard.press("Enter")
    expect(page.locator(".thought-text")).to_be_visible()
    page.keyboard.press("a")
    expect(page.locator(".thought-text")).not_to_be_visible()
    page.get_by_role("main").get_by_role("link", name="History").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".hit")).to_have_count(1)
