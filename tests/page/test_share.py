"""Handing a conversation on: on paper, as Markdown, as a link. Without thoughts unless they are wanted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.gateway.servers import Servers
from tests.page.conftest import Visitor
from tests.page.talking import ask, complete, copied, script, until

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def page(visit: Visitor, servers: Servers) -> Page:
    """A conversation whose thought is folded, and the dialog over it. Printing is noted instead of done."""
    script(servers.upstream, "<think>secret reasons</think>", "It is **4**.")
    page = visit(servers.gateway.url, "#/chats?system=Be+brief")
    page.evaluate("window.print = () => { window.printed = document.documentElement.className; }")
    ask(page, "2+2?")
    complete(page)
    page.get_by_role("button", name="Share or print").click()
    return page


def _on_paper(page: Page) -> str:
    page.emulate_media(media="print")
    return str(page.locator("main").inner_text())


@pytest.mark.parametrize("wanted", [False, True])
def test_print_has_thoughts_only_on_request(page: Page, wanted: bool) -> None:
    if wanted:
        page.get_by_label("With thoughts").check()
    page.get_by_role("button", name="Print", exact=True).click()
    until(page, "window.printed !== undefined")
    expect(page.get_by_role("dialog")).to_have_count(0)
    paper = _on_paper(page)
    assert ("secret reasons" in paper) is wanted
    assert ("Thought" in paper) is wanted
    assert "It is 4." in paper
    assert "2+2?" in paper
    for control in ("Copy answer", "Regenerate", "Send", "Share or print", "Fold this thought"):
        assert control not in paper
    expect(page.locator(".bottom")).to_be_hidden()
    expect(page.locator(".actions").first).to_be_hidden()
    # Behind it the page is as it was.
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.evaluate("document.documentElement.className") == ""
    expect(page.locator(".thought-text")).to_be_hidden()


def test_the_browsers_own_print_shows_what_is_open_on_the_screen(page: Page) -> None:
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert "secret reasons" not in _on_paper(page)
    page.emulate_media(media="screen")
    page.keyboard.press("a")
    expect(page.locator(".thought-text")).to_be_visible()
    assert "secret reasons" in _on_paper(page)


@pytest.mark.parametrize("wanted", [False, True])
def test_markdown_has_thoughts_only_on_request(page: Page, wanted: bool) -> None:
    if wanted:
        page.get_by_label("With thoughts").check()
    text = copied(page, "Copy as Markdown")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as Markdown").click()
    assert download.value.suggested_filename == "conversation.md"
    assert download.value.path().read_text("utf-8") == text
    quoted = "> **Thought**\n>\n> secret reasons\n\n" if wanted else ""
    assert text == f"## Question\n\n2+2?\n\n## m\n\n{quoted}It is **4**.\n"


def test_a_link_brings_question_and_choices_and_sends_nothing_by_itself(
    page: Page, visit: Visitor, servers: Servers
) -> None:
    link = copied(page, "Copy a link to the question")
    assert link.startswith(servers.gateway.url)
    servers.upstream.forget()
    other = visit(servers.gateway.url, re.sub(r"^[^#]*", "", link))
    expect(other.get_by_label("Your question")).to_have_value("2+2?")
    other.get_by_role("button", name="Prompt, tools ✓").click()
    expect(other.get_by_label("System prompt", exact=True)).to_have_value("Be brief")
    assert servers.upstream.questions == []
