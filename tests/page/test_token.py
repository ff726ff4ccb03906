"""The page without keys: who opened the printed address reads, and who opened another is told which to open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.gateway.servers import Servers, serving
from tests.gateway.test_token import nginx
from tests.page.conftest import Visitor
from tests.page.talking import ask, complete
from tests.waiting import eventually

KEPT = "async (asked) => (await (await fetch('/asides/history')).text()).includes(asked)"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """A gateway without keys that keeps what is asked."""
    store: Path = tmp_path_factory.mktemp("history") / "history.db"
    with serving(history={"save": True, "store": str(store)}, page={"watch": "all"}) as found:
        yield found


def test_the_printed_address_reads(visit: Visitor, servers: Servers) -> None:
    """Its token is neither in the address that is shown nor where a script reads it, and a reload still reads."""
    page = visit(servers.gateway.url, "#/chats")
    ask(page, "2+2?")
    complete(page)
    assert page.url.startswith(f"{servers.gateway.url}/#/chats")
    assert page.evaluate("document.cookie") == ""
    # It is written a moment after the reply.
    eventually(lambda: page.evaluate(KEPT, "2+2?"), "history does not have it")
    page.goto(f"{servers.gateway.url}/#/history")
    expect(page.get_by_text("2+2?").first).to_be_visible()
    page.reload()
    expect(page.get_by_text("2+2?").first).to_be_visible()


def test_the_page_sends_through_a_proxy_that_says_nothing(visit: Visitor, servers: Servers, tmp_path: Path) -> None:
    """nginx with nothing but `proxy_pass` calls the gateway by another name than the browser calls nginx."""
    with nginx(servers.gateway, tmp_path) as url:
        page = visit(url, f"?token={servers.gateway.token}#/chats", let_in=False)
        ask(page, "Through nginx?")
        complete(page)
        eventually(lambda: page.evaluate(KEPT, "Through nginx?"), "history does not have it")
        page.goto(f"{url}/#/history")
        expect(page.get_by_text("Through nginx?").first).to_be_visible()


@pytest.mark.parametrize("view", ["history", "live", "stats"])
def test_another_address_says_which_to_open(visit: Visitor, servers: Servers, view: str) -> None:
    """It talks to models all the same."""
    page = visit(servers.gateway.url, f"#/{view}", let_in=False, refused=True)
    expect(page.get_by_role("heading", name="Open the printed address")).to_be_visible()
    page.goto(f"{servers.gateway.url}/#/chats")
    ask(page, "2+2?")
    complete(page)
