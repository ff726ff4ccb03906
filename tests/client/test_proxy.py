"""Proxies of the environment: who is asked through one, who is not, and what is said where it fails."""

from __future__ import annotations

import os
import ssl
from base64 import b64encode
from urllib.parse import urlsplit

import pytest

from asides.client import Client, UpstreamError
from asides.client._http import Proxy, find_proxy, read_address
from tests.client.proxy import HOST, proxy
from tests.client.test_client import certificate as certificate  # a fixture
from tests.client.upstream import chat, serve
from tests.ports import held_port

ANSWER = chat("It is ", "4.")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the machine that runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def port_of(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


def test_a_secure_server_is_asked_through_a_tunnel(
    certificate: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy sees a host and a port; the certificate is that of the server."""
    with serve(ANSWER, tls=certificate) as upstream, proxy(port_of(upstream.url)) as between:
        monkeypatch.setenv("HTTPS_PROXY", between.url.replace("//", "//me:se%40cret@"))
        assert Client(f"https://{HOST}/v1", "key").ask("hi", model="m").text == "It is 4."
        assert "key" in upstream.keys[-1]
    assert between.heads
    assert all(head.startswith(f"CONNECT {HOST}:443 ") for head in between.heads)
    credential = b64encode(b"me:se@cret").decode()
    assert all(f"Proxy-Authorization: Basic {credential}" in head and "key" not in head for head in between.heads)


def test_a_plain_server_is_asked_by_its_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(ANSWER) as upstream, proxy(port_of(upstream.url)) as between:
        monkeypatch.setenv("http_proxy", between.url)
        assert Client(f"http://{HOST}:8000/v1").ask("hi", model="m").text == "It is 4."
    assert between.heads[-1].startswith(f"POST http://{HOST}:8000/v1/chat/completions HTTP/1.1\r\n")
    assert f"\r\nHost: {HOST}:8000\r\n" in between.heads[-1]


@pytest.mark.parametrize(
    ("url", "variables", "through"),
    [
        ("https://a.example/v1", {"HTTPS_PROXY": "http://p:3128"}, Proxy("p", 3128)),
        ("https://a.example/v1", {"https_proxy": "p:3128"}, Proxy("p", 3128)),
        ("https://a.example/v1", {"ALL_PROXY": "http://p"}, Proxy("p", 80)),
        ("http://a.example/v1", {"HTTPS_PROXY": "http://p:3128"}, None),
        ("https://a.example/v1", {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "b.example, .example"}, None),
        ("https://a.example/v1", {"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "example.org"}, Proxy("p", 3128)),
        ("https://a.example/v1", {"HTTPS_PROXY": "http://p:3128", "no_proxy": "*"}, None),
        ("http://gpu:8000/v1", {"HTTP_PROXY": "http://p:3128", "NO_PROXY": "gpu:8000"}, None),
        ("http://127.0.0.1:11434", {"HTTP_PROXY": "http://p:3128", "ALL_PROXY": "http://p"}, None),
        ("http://localhost:11434", {"HTTP_PROXY": "http://p:3128"}, None),
        ("http://[::1]:11434", {"HTTP_PROXY": "http://p:3128"}, None),
        ("https://a.example/v1", {"HTTPS_PROXY": ""}, None),
    ],
)
def test_who_is_asked_through_it(
    monkeypatch: pytest.MonkeyPatch, url: str, variables: dict[str, str], through: Proxy | None
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert find_proxy(read_address(url)) == through


def test_a_proxy_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And its password is not."""
    with held_port() as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{port}")
        with pytest.raises(UpstreamError) as refused:
            Client(f"https://{HOST}/v1").ask("hi", model="m")
    assert str(refused.value) == f"nothing listens at http://127.0.0.1:{port} (connection refused)"
    with proxy(9) as between:
        between.refuses = True
        monkeypatch.setenv("HTTPS_PROXY", between.url)
        with pytest.raises(UpstreamError, match=f"through the proxy {between.url}.*403"):
            Client(f"https://{HOST}/v1").ask("hi", model="m")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://me:secret@p:1080")
    with pytest.raises(UpstreamError, match=r"must have an address as http://proxy\.example:3128") as unusable:
        Client(f"https://{HOST}/v1").ask("hi", model="m")
    assert "secret" not in str(unusable.value)
