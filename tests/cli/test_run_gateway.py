"""`asides run` against `asides serve` with its recorded replies: what the two say to each other, end to end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.running import Running, run
from tests.cli.test_run_conversation import Terminal, UntilOrdered
from tests.client.upstream import Script, chat, serve, think


def test_the_demo_gateway_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an upstream the gateway replays recordings; the command finds the answer and the thought in them."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "serve.yaml"
    settings.write_text("defaults: {extra_body: {pace: 0}}\n", encoding="utf-8")  # not at a human pace
    with Running("serve", "--port", "0", "--config", settings) as gateway:
        address = address_of(gateway)
        for ending in ("", "/v1"):  # as Ollama, and as OpenAI's
            url = address + ending
            done = run("run", "recorded-deepseek-r1", "What is 17 times 23?", "--url", url)
            assert done.returncode == 0
            assert done.stdout.decode().endswith("391.")
            assert done.stderr.startswith(b"Thinking\n  ")
            missing = run("run", "nobody", "hi", "--url", url)
            assert missing.returncode == 2
            assert missing.stderr.count(b"recorded-qwen3") == 1


def address_of(gateway: Running) -> str:
    told = gateway.read_until(gateway.stderr, b"listening on http://127.0.0.1:")
    told += b"" if b"\n" in told else gateway.read_until(gateway.stderr, b"\n")
    found = re.search(rb"listening on (http://[0-9.]+:\d+)", told)
    assert found is not None
    return found[1].decode()


def test_a_thought_is_ended_through_the_gateway(tmp_path: Path) -> None:
    """Ctrl-N in a conversation reaches llama.cpp behind the gateway, whichever of its APIs is spoken."""
    settings = tmp_path / "serve.yaml"
    for ending in ("", "/v1"):
        pieces = UntilOrdered(chat(think("hmm"), "It is 4."))
        with serve(Script(pieces), owner="llamacpp") as upstream:
            pieces.upstream = upstream
            settings.write_text(f"upstreams: [{{url: {upstream.url}}}]\n", encoding="utf-8")
            with Running("serve", "--port", "0", "--config", settings) as gateway:
                terminal = Terminal(tmp_path, "m", "--url", address_of(gateway) + ending)
                terminal.ready()
                terminal.type("What?\r")
                terminal.see("hmm")
                terminal.type("\x0e")
                assert "It is 4." in terminal.ready()
                terminal.close()
        assert [order["action"] for _, order in upstream.orders] == ["reasoning_end"]
