"""The page in a real Chromium, against a real gateway. Without Playwright only its files are looked at.

A test opens the page with `visit`, which closes it afterwards and then fails if the page wrote an error to its console,
threw, or asked any other server than its gateway. Waiting is Playwright's own: `expect` and locators wait for what they
name.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.running import BY_ADDRESS, Gateway, gateway
from tests.gateway.servers import Servers, serving
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

SCREENSHOTS = Path(__file__).parent / "screenshots"
NAMES = ("chromium", "chromium-browser", "google-chrome")
KEYS = ("first-key", "second-key", "operator-key")
"""Of `keyed`; the last is an operator's."""
REFUSED = "Failed to load resource: the server responded with a status of 4"
"""How Chromium begins to complain of a request that was refused."""
LONGEST = PATIENCE * 1000
"""Milliseconds that Playwright waits for what it is told to wait for."""

if importlib.util.find_spec("playwright") is None:
    # The tests of the files need no browser, but for one of them.
    collect_ignore = [path.name for path in Path(__file__).parent.glob("test_*.py") if path.name != "test_files.py"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium of this machine."""
    pytest.importorskip("playwright", reason="the page is used in a browser by `make test-page`")
    from playwright.sync_api import expect, sync_playwright

    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    expect.set_options(timeout=LONGEST)
    with sync_playwright() as playwright:
        # A browser that root runs, as in containers, has no sandbox.
        flags = ["--no-sandbox", "--disable-dev-shm-usage"]
        started = playwright.chromium.launch(executable_path=path, args=flags, timeout=LONGEST)
        yield started
        started.close()


@dataclass
class Visit:
    """What a page did that is nobody's wish."""

    complaints: list[str] = field(default_factory=list)
    """Errors on the console, and what was thrown."""
    strangers: list[str] = field(default_factory=list)
    """Addresses of other servers that were asked."""


Visitor = Callable[..., "Page"]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Visitor]:
    """Open the page: `visit(url, "#/chats", width=360, scheme="dark")`, and whatever a browser's context takes.

    `settings` (JSON) and `key` are what the browser has stored from earlier; `script` runs before those of the page.
    `complaints=True` is for tests in which the browser itself has to complain: of a request that was refused, say.
    `refused=True` is for those in which it complains of nothing else. Without `let_in` it is opened at another address
    than the one that is printed.
    """
    contexts = []
    visits: list[Visit] = []

    def open_page(
        url: str,
        fragment: str = "#/chats",
        *,
        width: int = 1280,
        height: int = 800,
        scheme: str = "light",
        settings: str = "",
        key: str = "",
        script: str = "",
        complaints: bool = False,
        refused: bool = False,
        let_in: bool = True,
        **options: Any,
    ) -> Page:
        options.setdefault("permissions", ["clipboard-read", "clipboard-write"])
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        contexts.append(context)
        seen = Visit()
        if not complaints:
            visits.append(seen)
        page = context.new_page()
        page.set_default_timeout(LONGEST)

        def heard(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning") and not (refused and message.text.startswith(REFUSED)):
                seen.complaints.append(message.text)

        def asked(request: Request) -> None:
            if not request.url.startswith((url, "blob:", "data:")):
                seen.strangers.append(request.url)

        page.on("console", heard)
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("request", asked)
        for storage, name, value in (("local", "asides.settings", settings), ("session", "asides.key", key)):
            if value:  # unless the page has stored another since
                store = f"{storage}Storage"
                page.add_init_script(f"{store}.getItem('{name}') ?? {store}.setItem('{name}', '{value}')")
        if script:
            page.add_init_script(script)
        token = BY_ADDRESS[url].token if let_in else ""
        page.goto(f"{url}/{f'?token={token}' if token else ''}{fragment}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [complaint for each in visits for complaint in each.complaints] == []
    assert [stranger for each in visits for stranger in each.strangers] == []


@pytest.fixture(scope="session")
def recorded() -> Iterator[Gateway]:
    """A gateway that nothing was configured for: it has its recordings."""
    with gateway() as running:
        yield running


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """A gateway before a scripted upstream whose model writes as Qwen3 does."""
    with serving() as found:
        yield found


@pytest.fixture(scope="module")
def keyed() -> Iterator[Servers]:
    """The same with three keys, the last an operator's."""
    with serving(keys=[*KEYS[:2], {"key": KEYS[2], "operator": True, "name": "ops"}]) as found:
        yield found


@pytest.fixture(autouse=True)
def _forget(request: pytest.FixtureRequest) -> None:
    """Let each test begin with an upstream that was asked nothing and says the usual."""
    for name in ("servers", "keyed"):
        if name in request.fixturenames:
            request.getfixturevalue(name).upstream.forget()


@pytest.fixture
def photograph() -> Callable[[Page, str], None]:
    """Write what is seen to `screenshots/VIEW-WIDTH-SCHEME.png`."""

    def take(page: Page, view: str) -> None:
        SCREENSHOTS.mkdir(exist_ok=True)
        dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        name = f"{view}-{page.viewport_size['width']}-{'dark' if dark else 'light'}.png"
        page.screenshot(path=str(SCREENSHOTS / name), animations="disabled")

    return take
