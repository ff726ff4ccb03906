"""Nothing that an upstream or a model sends runs on the page's origin, at whichever route a browser opens it.

A tab opens every route, as a link and as a form: a script that runs there on the gateway's origin could read what the
page reads. What opens no document is saved to a file.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asides._gateway.routes import ROUTES
from tests.gateway.clients import get, post
from tests.gateway.running import gateway
from tests.gateway.upstream import upstream
from tests.page.conftest import Visitor
from tests.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

SCRIPT = "window.ran = true"
HOSTILE = {
    "text/html": f"<!doctype html><script>{SCRIPT}</script>",
    "application/json, text/html": f"<!doctype html><script>{SCRIPT}</script>",
    "": f"<!doctype html><html><script>{SCRIPT}</script>",
    "image/svg+xml": f'<svg xmlns="http://www.w3.org/2000/svg"><script>{SCRIPT}</script></svg>',
    "application/xhtml+xml": f'<html xmlns="http://www.w3.org/1999/xhtml"><script>{SCRIPT}</script></html>',
    "text/xml": f'<html xmlns="http://www.w3.org/1999/xhtml"><script>{SCRIPT}</script></html>',
    "text/javascript": SCRIPT,
}
"""What a browser would run, by its type."""
SET = {
    "Service-Worker-Allowed": "/",
    "Set-Cookie": "asides-token=upstream",
    "Clear-Site-Data": '"*"',
    "Access-Control-Allow-Origin": "*",
    "Content-Security-Policy": "default-src * 'unsafe-inline'",
    "X-Content-Type-Options": "sniff",
    "Link": "</v1/audio/other.js>; rel=preload; as=script",
    "X-Accel-Redirect": "/secret",
    "X-Sendfile": "/etc/passwd",
    "X-Frame-Options": "ALLOWALL",
    "X-Asides-Left-Out": "x",
}
"""What it would set on the page's origin."""
HOLDER = "<!doctype html><title>holder</title><body></body>"
CONTROL = f"<!doctype html><script>{SCRIPT}</script>"
BODY = {
    "model": "m",
    "input": "x",
    "prompt": "x",
    "text": "x",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "x"}],
}
PATHS = [
    (method, route.path.replace("/*", "/x").replace("/+", "/x"))
    for route in ROUTES
    for method in route.methods
    # No document is opened by DELETE, and what runs at `/` is the page.
    if method != "DELETE" and (method, route.path) != ("GET", "/")
]
PASSED_ON = [
    ("GET", "/v1/audio/voices"),
    ("POST", "/v1/audio/x"),
    ("GET", "/anything/else"),
    ("POST", "/anything/else"),
]
PATHS += PASSED_ON


@contextmanager
def hostile() -> Iterator[tuple[str, list[str]]]:
    """A server that answers everything with what a browser would run: its address, and the type that it says."""
    kind = ["text/html"]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            body = HOSTILE[kind[0]].encode()
            self.send_response(200)
            for name, value in {**SET, "Content-Type": kind[0], "Content-Length": str(len(body))}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = _answer  # the names that the handler's class looks for

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", kind
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Opener:
    """A tab that opens routes from a document of the gateway's own origin, as links and as forms."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self._url = url
        self._saved: list[object] = []
        page.on("download", lambda download: self._saved.append(download))
        for path, body in (("/holder", HOLDER), ("/control", CONTROL)):
            page.route(url + path, partial(_show, body))
        assert self.ran("GET", "/control"), "what may run must be seen to run"

    def ran(self, method: str, path: str) -> bool:
        """Whether what a route answers runs on this origin, once it is shown, or was saved to a file."""
        self.page.goto(f"{self._url}/holder")
        saved = len(self._saved)
        # A form sends `name=value`; in the middle of a text the sign does no harm.
        name, value = json.dumps({**BODY, "user": "="}).split("=")
        self.page.evaluate(
            """([method, path, name, value]) => {
                if (method === 'GET') { location.href = path; return; }
                const form = document.body.appendChild(document.createElement('form'));
                Object.assign(form, {method, action: path, enctype: 'text/plain'});
                form.append(Object.assign(document.createElement('input'), {type: 'hidden', name, value}));
                form.submit();
            }""",
            [method, path, name, value],
        )
        eventually(lambda: len(self._saved) > saved or self._is_shown(path), f"{method} {path} opened nothing")
        return self.page.evaluate("window.ran === true && origin !== 'null'") is True

    def _is_shown(self, path: str) -> bool:
        self.page.wait_for_timeout(5)  # lets the browser's news come in
        return self.page.url == self._url + path and bool(self.page.evaluate("document.readyState === 'complete'"))


def _show(body: str, route: Route) -> None:
    route.fulfill(content_type="text/html", body=body)


@pytest.mark.parametrize("kind", HOSTILE, ids=lambda kind: kind or "none")
def test_what_an_upstream_sends_does_not_run(visit: Visitor, kind: str) -> None:
    with hostile() as (address, said):
        said[0] = kind
        config = {"upstreams": [{"url": address, "kind": "openai"}], "pass_on": "all", "defaults": {"format": "qwen3"}}
        with gateway(config) as running:
            tab = Opener(visit(running.url, complaints=True), running.url)
            # What another type changes is only what is passed on as it is.
            opened = PATHS if kind == "text/html" else PASSED_ON
            assert [(method, path) for method, path in opened if tab.ran(method, path)] == []


def test_no_script_and_no_service_worker_of_an_upstream_is_taken(visit: Visitor) -> None:
    """Not even by the page itself: as a script, a module, a style or a worker."""
    with hostile() as (address, said):
        said[0] = "text/javascript"
        config = {"upstreams": [{"url": address, "kind": "openai"}], "pass_on": "all"}
        with gateway(config) as running:
            page = visit(running.url, complaints=True)
            Opener(page, running.url)
            page.goto(f"{running.url}/holder")
            for path in ("/v1/audio/x.js", "/anything/x.js"):
                taken = page.evaluate(
                    """async (path) => {
                        const load = (kind, fields) => new Promise((done) => {
                            const element = Object.assign(document.createElement(kind), fields);
                            element.onload = () => done(true);
                            element.onerror = () => done(false);
                            document.head.append(element);
                        });
                        const worker = navigator.serviceWorker.register(path, {scope: '/'});
                        return [
                            await load('script', {src: path}),
                            await load('script', {src: path, type: 'module'}),
                            await load('link', {href: path, rel: 'stylesheet'}),
                            await worker.then(() => true, () => false),
                        ];
                    }""",
                    path,
                )
                assert taken == [False] * 4, path
            assert page.evaluate("window.ran") is None


def test_what_a_model_writes_does_not_run(visit: Visitor, tmp_path: Path) -> None:
    """In replies, stored Responses, kept history and looks inside, each opened as a document."""
    words = f"<!doctype html><script>{SCRIPT}</script>"
    with upstream() as server:
        store = str(tmp_path / "history.db")
        config = {"upstreams": [{"url": server.url}], "history": {"save": True, "store": store}}
        with gateway({**config, "defaults": {"format": "qwen3"}}) as running:
            tab = Opener(visit(running.url, complaints=True), running.url)
            server.say(f"<think>{words}</think>{words}")
            stored = post(running.url, "/v1/responses", {"model": "m", "input": words}).json()["id"]
            headers = {"x-asides-inspect": "1", "x-request-id": "looked-at"}
            post(running.url, "/v1/chat/completions", BODY, headers=headers).raise_for_status()

            def list_kept() -> list[str]:
                found = get(running.url, "/asides/history", x_asides_token=running.token).json()
                return [reply["id"] for reply in found["replies"]]

            eventually(list_kept, "nothing was kept")
            more = [
                "/asides/requests/looked-at",
                f"/asides/history/replies/{list_kept()[0]}",
                f"/v1/responses/{stored}",
            ]
            more += ["/asides/history/export", "/asides/history/export?form=markdown", "/asides/history?search=script"]
            opened = [*PATHS, *(("GET", path) for path in more)]
            assert [(method, path) for method, path in opened if tab.ran(method, path)] == []
