"""What Chats looks like, for a person to look at: `screenshots/VIEW-WIDTH-SCHEME.png`, wide and narrow, light and dark.

What can be checked without eyes is that nothing is wider than the window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.gateway.running import Gateway
from tests.gateway.servers import Servers
from tests.gateway.upstream import Gate, Reply
from tests.page.conftest import Visitor
from tests.page.talking import ask, complete, heading, script, thought

if TYPE_CHECKING:
    from playwright.sync_api import Page

Photograph = Callable[["Page", str], None]

SIZES = [(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")]
THINKING = """The user asks for the ball's price. The quick answer would be 10 cents, but let me check that.

Let the ball cost x. Then the bat costs x + 1.00, and together x + x + 1.00 = 1.10.
So 2x = 0.10 and x = 0.05.

Check: 0.05 + 1.05 = 1.10. Yes. And 10 cents would give 0.10 + 1.10 = 1.20, which is too much."""
ANSWER = """The ball costs **5 cents**.

| | ball | bat | together |
|---|--:|--:|--:|
| quick guess | 0.10 | 1.10 | 1.20 |
| right | 0.05 | 1.05 | **1.10** |

```python
ball = (1.10 - 1.00) / 2  # the rest, shared by both
```
"""
QUESTION = "A bat and a ball cost 1.10 together. The bat costs 1.00 more than the ball. What does the ball cost?"
LONG = "\n\n".join(f"{number}. {THINKING}" for number in range(1, 15))

pytestmark = pytest.mark.parametrize(("width", "scheme"), SIZES)


def fits(page: Page) -> None:
    """Nothing is wider than the window."""
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_first_visit(visit: Visitor, recorded: Gateway, photograph: Photograph, width: int, scheme: str) -> None:
    page = visit(recorded.url, width=width, scheme=scheme)
    page.get_by_role("button", name="What is 17 times 23?").wait_for()
    fits(page)
    photograph(page, "chats-first")


def test_while_it_comes(visit: Visitor, servers: Servers, photograph: Photograph, width: int, scheme: str) -> None:
    gate = Gate()
    script(servers.upstream, f"<think>{THINKING[:300]}", gate, f"{THINKING[300:]}</think>", ANSWER)
    page = visit(servers.gateway.url, width=width, scheme=scheme)
    page.get_by_role("heading", name="Watch a model think").wait_for()
    photograph(page, "chats-empty")
    ask(page, QUESTION)
    expect(thought(page)).to_contain_text("Let the ball cost x")
    photograph(page, "chats-streaming")
    gate.open()
    complete(page)
    fits(page)
    photograph(page, "chats-folded")
    heading(page).click()
    fits(page)
    photograph(page, "chats-opened")
    page.get_by_role("button", name="Edit").click()
    photograph(page, "chats-editing")


def test_a_long_thought(visit: Visitor, servers: Servers, photograph: Photograph, width: int, scheme: str) -> None:
    script(servers.upstream, f"<think>{LONG}", reason="length")
    page = visit(servers.gateway.url, width=width, scheme=scheme, settings='{"fold": "open"}')
    ask(page, QUESTION)
    complete(page)
    page.evaluate("scrollTo(0, 900)")
    expect(heading(page)).to_be_in_viewport()
    photograph(page, "chats-long")


def test_a_timeline(visit: Visitor, servers: Servers, photograph: Photograph, width: int, scheme: str) -> None:
    call = (("get_weather", '{"city": "Lisbon"}'),)
    servers.upstream.say("I will look it up.", thought="They ask for the weather. I have a tool for that.", calls=call)
    page = visit(servers.gateway.url, width=width, scheme=scheme)
    page.get_by_role("button", name="Prompt, tools").click()
    page.get_by_role("button", name="Insert an example").click()
    page.get_by_role("button", name="Use these").click()
    ask(page, "What is the weather in Lisbon?")
    page.get_by_label("What the tool answers").fill('{"temperature": "21 °C", "sky": "clear"}')
    complete(page)
    photograph(page, "chats-call")
    script(servers.upstream, "<think>Clear and warm.</think>", "It is **21 °C** in Lisbon, and the sky is clear.")
    page.get_by_role("button", name="Send the result").click()
    expect(page.locator(".answer").last).to_contain_text("the sky is clear")
    complete(page)
    fits(page)
    photograph(page, "chats-timeline")


def test_errors(visit: Visitor, servers: Servers, photograph: Photograph, width: int, scheme: str) -> None:
    servers.upstream.send(
        Reply([b'{"error": {"message": "This model\'s maximum context length is 8192 tokens."}}'], 400, whole=True)
    )
    page = visit(servers.gateway.url, width=width, scheme=scheme, complaints=True)
    ask(page, QUESTION)
    page.get_by_role("alert").wait_for()
    fits(page)
    photograph(page, "chats-error")


def test_dialogs(visit: Visitor, servers: Servers, photograph: Photograph, width: int, scheme: str) -> None:
    page = visit(servers.gateway.url, width=width, scheme=scheme)
    ask(page, QUESTION)
    complete(page)
    page.get_by_role("button", name="Settings").click()
    photograph(page, "settings")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Share or print").click()
    photograph(page, "share")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Prompt, tools").click()
    page.get_by_role("button", name="Insert an example").click()
    photograph(page, "options")


def test_the_key(visit: Visitor, keyed: Servers, photograph: Photograph, width: int, scheme: str) -> None:
    page = visit(keyed.gateway.url, width=width, scheme=scheme, complaints=True)
    page.get_by_role("dialog").wait_for()
    photograph(page, "key")
