"""The page's files and the parts of its read API that hold nobody's text: what is served, and to whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import httpx
import pytest

from asides._gateway.routes import PAGE, Route
from asides._page.files import POLICY, static_files
from tests.gateway.clients import body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Upstream, upstream

KEY, OPERATOR = "page-key-1", "page-key-2"
ROUTES = ["/asides/about", "/asides/models", "/asides/models/m", "/asides/formats"]
BROWSER = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}


class Servers(NamedTuple):
    """A guarded gateway with `cors`, one without a page, and the upstream of both."""

    gateway: Gateway
    off: Gateway
    upstream: Upstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    with upstream(models=("m", "Qwen/Qwen3-8B", "strange")) as server:
        shared = {"upstreams": [{"url": f"{server.url}/v1", "name": "near"}], "models": {"small": {"format": "qwen3"}}}
        keys = [KEY, {"key": OPERATOR, "operator": True, "name": "ops"}]
        with (
            gateway({**shared, "keys": keys, "cors": ["*"]}) as guarded,
            gateway({**shared, "page": False}) as off,
        ):
            yield Servers(guarded, off, server)


def read(running: Gateway, path: str, key: str = KEY, **headers: str) -> httpx.Response:
    """Get a path with a key."""
    return get(running.url, path, authorization=f"Bearer {key}", **headers)


def test_a_browser_gets_the_page_and_others_a_line(servers: Servers) -> None:
    """By what the client accepts; neither needs a key."""
    page = get(servers.gateway.url, "/", **BROWSER)
    assert page.headers["content-type"].startswith("text/html")
    assert "<!doctype html>" in page.text.lower()
    assert get(servers.gateway.url, "/").text == "asides is running\n"


def test_every_file_has_the_policy_and_its_hash(servers: Servers) -> None:
    """No script but the page's own may run, and a file that has not changed is not sent again."""
    assert "index.html" in static_files()
    for name, file in static_files().items():
        found = get(servers.gateway.url, f"/asides/page/{name}")
        assert (found.status_code, found.content) == (200, file.body)
        assert found.headers["content-type"] == file.media_type
        again = get(servers.gateway.url, f"/asides/page/{name}", if_none_match=found.headers["etag"])
        assert (again.status_code, again.content) == (304, b"")
        for answer in (found, again):
            assert answer.headers["content-security-policy"] == POLICY
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["cross-origin-opener-policy"] == "same-origin"
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert "unsafe" not in POLICY


@pytest.mark.parametrize(
    "name",
    ["../files.py", "..%2ffiles.py", "%2e%2e/files.py", "/etc/passwd", "..\\files.py", "index.html/", "", "x.js"],
)
def test_nothing_beside_the_files_can_be_read(servers: Servers, name: str) -> None:
    """A name is looked up, no path is opened."""
    url = httpx.URL(servers.gateway.url).copy_with(raw_path=f"/asides/page/{name}".encode())
    with httpx.Client(verify=False) as client:
        found = client.send(httpx.Request("GET", url))
    assert b"import" not in found.content
    assert found.status_code in ((200, 404) if name == "index.html/" else (401, 404))


def test_what_is_read_needs_a_key(servers: Servers) -> None:
    """All of it, where the gateway has keys."""
    for path in ROUTES:
        assert get(servers.gateway.url, path).status_code == 401
        assert read(servers.gateway, path, "wrong").status_code == 401
    assert post(servers.gateway.url, "/asides/split", {"text": "x"}).status_code == 401


def test_what_is_read_is_the_pages_alone(servers: Servers) -> None:
    """A page of another origin may not read, though `cors` lets it ask models; nor one that names no origin."""
    host = servers.gateway.url.removeprefix("http://")
    for path in ROUTES:
        own = read(servers.gateway, path, origin=f"http://{host}", sec_fetch_site="same-origin")
        assert own.headers["cache-control"] == "no-store"
        assert own.headers["cross-origin-resource-policy"] == "same-origin"
        for other in (
            {"origin": "https://evil.example"},
            {"sec_fetch_site": "cross-site"},
            {"sec_fetch_site": "same-site"},
            {"origin": "null"},
        ):
            refused = read(servers.gateway, path, **other)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_not_allowed")
        assert read(servers.gateway, path, host="evil.example").status_code == 403


@pytest.mark.parametrize("route", [route for route in PAGE if route.needs_key], ids=lambda route: route.handler)
def test_every_route_looks_at_key_host_and_origin(servers: Servers, route: Route) -> None:
    """Whatever is added to the table, and though this gateway's `cors` is `*`."""
    url = servers.gateway.url + route.path.replace("/*", "").replace("/+", "/x/answer-now")
    for method in route.methods:
        assert httpx.request(method, url, verify=False).status_code == 401
        for other in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
            found = httpx.request(method, url, headers={"x-api-key": OPERATOR, **other}, verify=False)
            assert (found.status_code, found.json()["error"]["type"]) == (403, "permission_error")


def test_about(servers: Servers) -> None:
    """What runs here; where the upstreams are is for operators."""
    about = read(servers.gateway, "/asides/about").json()
    assert about["upstreams"] == [{"name": "near", "url": "", "reachable": True}]
    assert (about["operator"], about["access"], about["keys"], about["recorded"]) == (False, "own", True, False)
    assert (about["watch"], about["history"]) == ("off", False)
    known = read(servers.gateway, "/asides/about", OPERATOR).json()
    assert (known["operator"], known["access"]) == (True, "all")
    assert known["upstreams"][0]["url"].startswith(servers.upstream.url)


def test_models(servers: Servers) -> None:
    """Those that are listed and those that are configured; one alone is resolved with what its server shows."""
    listed = {model["id"]: model for model in read(servers.gateway, "/asides/models").json()["models"]}
    assert listed.keys() == {"m", "Qwen/Qwen3-8B", "strange", "small"}
    assert (listed["Qwen/Qwen3-8B"]["format"], listed["Qwen/Qwen3-8B"]["format_source"]) == ("qwen3", "name")
    assert [listed[name]["thinks"] for name in ("Qwen/Qwen3-8B", "strange", "small")] == [True, None, True]
    alone = read(servers.gateway, "/asides/models/Qwen/Qwen3-8B").json()
    assert (alone["id"], alone["upstream"], alone["thinks"]) == ("Qwen/Qwen3-8B", "near", True)


def test_split(servers: Servers) -> None:
    """Parts with their places, what is in none, notices, and why."""
    headers = {"x-api-key": KEY}
    text = "<think>2+2 \U0001f600</think>\n\n4</think>x"
    found = post(servers.gateway.url, "/asides/split", {"text": text}, headers=headers).json()
    assert [(part["kind"], text[part["start"] : part["end"]], part["text"]) for part in found["parts"]] == [
        ("thinking", "2+2 \U0001f600", "2+2 \U0001f600"),
        ("text", "4", "4"),
        ("text", "x", "x"),
    ]
    assert [text[gap["start"] : gap["end"]] for gap in found["markers"]] == ["<think>", "</think>\n\n", "</think>"]
    assert [(notice["code"], notice["at"]) for notice in found["notices"]] == [("stray_close", 23)]
    assert "<think>" in found["why"]
    harmony = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>4"
    settled = post(servers.gateway.url, "/asides/split", {"text": harmony}, headers=headers).json()
    assert (settled["format"], [part["text"] for part in settled["parts"]]) == ("harmony", ["hm", "4"])
    chosen = {"text": "hm</think>4", "format": "qwen3", "start": "thinking"}
    assert post(servers.gateway.url, "/asides/split", chosen, headers=headers).json()["parts"][0]["text"] == "hm"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "must be texts"),
        ({"text": "x", "format": "nope"}, 400, "nope"),
        ({"text": "x", "start": "nowhere"}, 400, "start must be"),
        ({"text": "x", "strat": "text"}, 400, "strat"),
        ({"text": "x" * 1_000_001}, 413, "1000000"),
        (b"[", 400, "JSON"),
        (b'"' + b"x" * 7_000_000 + b'"', 413, "larger"),
    ],
)
def test_a_text_that_cannot_be_taken_apart(servers: Servers, body: object, status: int, message: str) -> None:
    """The answer says why."""
    found = post(servers.gateway.url, "/asides/split", body, headers={"x-api-key": KEY})
    assert found.status_code == status
    assert message in found.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "send a template"),
        ({"template": 1}, "must be texts"),
        ({"template": "x", "tokenizer": "/etc/passwd"}, "no field 'tokenizer'"),
        ({"template": "{{ x }}", "model": "m"}, "no tokenizer is configured"),
        ({"template": "{% for"}, "not valid Jinja"),
    ],
)
def test_a_template_that_cannot_be_studied(servers: Servers, body: object, message: str) -> None:
    """The answer says why, and no file that a client names is opened."""
    found = post(servers.gateway.url, "/asides/template", body, headers={"x-api-key": KEY})
    assert found.status_code == 400
    assert message in found.json()["error"]["message"]


def test_a_template_is_studied(servers: Servers) -> None:
    """A conversation by whose words it is, and sentences."""
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    found = post(servers.gateway.url, "/asides/template", {"template": template}, headers={"x-api-key": KEY}).json()
    assert ("user", "Is it warm in Rome?") in [(each["origin"], each["text"]) for each in found["conversation"]]
    assert "characters are counted" in found["counted"]
    assert found["sections"][0][0] == "what is dropped or changed"


def test_formats(servers: Servers) -> None:
    """Every format by its names, with its markers."""
    found = {entry["name"]: entry for entry in read(servers.gateway, "/asides/formats").json()["formats"]}
    assert (found["qwen3"]["open"], found["qwen3"]["close"]) == ("<think>", "</think>")
    assert found["harmony"]["start"] == "header"
    assert "auto" in found


def test_examples_can_be_taken_apart(servers: Servers) -> None:
    """A raw output of each recorded model, in its format; one of them calls."""
    calls, headers = 0, {"x-api-key": KEY}
    for example in read(servers.gateway, "/asides/formats").json()["examples"]:
        asked = {"text": example["text"], "format": example["format"]}
        kinds = [
            part["kind"] for part in post(servers.gateway.url, "/asides/split", asked, headers=headers).json()["parts"]
        ]
        assert kinds[:2] == ["thinking", "text"], example["name"]
        calls += kinds.count("tool_call")
    assert calls == 1


def test_page_off_leaves_nothing(servers: Servers) -> None:
    """Neither files nor what is read; `/` is the line of text for everybody."""
    for route in PAGE:
        path = route.path.replace("*", "x").replace("+", "index.html")
        for method in route.methods:
            found = httpx.request(method, servers.off.url + path, verify=False)
            assert (found.status_code, found.json()["error"]["code"]) == (404, "not_found")
    inspected = {"x-asides-inspect": "1", "x-request-id": "off-1"}
    assert post(servers.off.url, "/v1/chat/completions", body_of("chat"), headers=inspected).status_code == 200
    assert get(servers.off.url, "/", **BROWSER).text == "asides is running\n"


def test_a_wrong_method_is_refused(servers: Servers) -> None:
    """With what would be right."""
    found = post(servers.gateway.url, "/asides/about", {})
    assert (found.status_code, found.headers["allow"]) == (405, "GET, HEAD")
