"""What tests of Chats do again and again: ask, script a reply with a gate in it, find the parts of a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.gateway.upstream import Close, Gate, Reply, Step, Upstream, frame
from tests.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

END = "document.scrollingElement.scrollHeight - innerHeight - scrollY"
"""How far the view is from the page's end."""
DONE = b"data: [DONE]\n\n"


def ask(page: Page, question: str) -> None:
    """Type a question and send it."""
    page.get_by_label("Your question").fill(question)
    page.get_by_role("button", name="Send", exact=True).click()


def script(upstream: Upstream, *steps: str | Gate | Close, reason: str | None = "stop") -> None:
    """Let the model write these pieces; at a gate it waits. Without a `reason` the stream ends with no word."""
    written: list[Step] = [frame(step) if isinstance(step, str) else step for step in steps]
    if reason is not None:
        written += [frame("", reason=reason), DONE]
    upstream.send(Reply(written))


def pieces(text: str, size: int) -> Sequence[str]:
    """A text in pieces of this many characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def until(page: Page, expression: str) -> None:
    """Wait until an expression holds on the page. Playwright's own way is `eval`, which the page's policy forbids."""
    eventually(lambda: page.evaluate(expression), f"it never held: {expression}")


def copied(page: Page, name: str) -> str:
    """Press a button that copies; what is on the clipboard once it said so, which it does only for a moment."""
    button = page.get_by_role("button", name=name)
    button.evaluate(
        """button => {
            window.said = [];
            const observer = new MutationObserver(() => window.said.push(button.textContent));
            observer.observe(button, {childList: true, characterData: true, subtree: true});
        }"""
    )
    button.click()
    until(page, "window.said.includes('Copied')")
    return str(page.evaluate("navigator.clipboard.readText()"))


def thought(page: Page, number: int = 0) -> Locator:
    """A thought by its place on the page."""
    return page.locator(".thought").nth(number)


def heading(page: Page, number: int = 0) -> Locator:
    """The button in a thought's heading."""
    return thought(page, number).get_by_role("heading").get_by_role("button")


def is_open(page: Page, number: int = 0) -> bool:
    """Whether a thought's text can be seen."""
    return bool(thought(page, number).locator(".thought-text").is_visible())


def complete(page: Page) -> None:
    """Wait until the last reply has ended."""
    page.locator(".turn.reply").last.locator(".actions").wait_for()
