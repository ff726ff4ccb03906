"""`asides serve --check`: what it shows of the configuration, what it asks, what it says of the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides._config import UpstreamSettings
from asides._config.schema import Config, ModelSettings
from asides._gateway.check import check
from tests.cli.running import run
from tests.gateway.upstream import JSON, Close, Reply, json_reply, upstream


def test_check_says_what_it_saw() -> None:
    """`--check` shows the configuration without its secrets, asks one question, and says what came."""
    with upstream(models=["Qwen/Qwen3-8B"]) as server:
        server.say("<think>Two.</think>\n\nFour.")
        config = ("--check", "--upstream", server.url, "--format", "qwen3")
        done = run("serve", *config)
        assert done.returncode == 0, done.stderr
        assert b"qwen3" in done.stdout
        assert len(server.questions) == 1
        server.say("<|channel|>analysis<|message|>Two.<|end|>")
        leaking = run("serve", *config)
        assert b"<|channel|>" in leaking.stdout
        assert leaking.stdout != done.stdout


def test_check_hides_secrets(tmp_path: Path) -> None:
    """No key of the file is printed."""
    with upstream() as server:
        file = tmp_path / "asides.yaml"
        file.write_text(f"upstreams:\n  - url: {server.url}\n    key: up-secret-1\nkeys: [gw-secret-2]\n")
        done = run("serve", "--check", "--config", str(file))
        for secret in (b"up-secret-1", b"gw-secret-2"):
            assert secret not in done.stdout + done.stderr
        assert server.question().headers["authorization"] == "Bearer up-secret-1"


def test_check_of_an_upstream_that_is_not_there() -> None:
    """A server that cannot be reached is said, and is a failure."""
    done = run("serve", "--check", "--upstream", "http://127.0.0.1:9")
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr
    assert b"127.0.0.1:9" in done.stdout + done.stderr


def test_check_repeats_no_secret(tmp_path: Path) -> None:
    """An upstream that repeats the key in its error, or writes to the terminal, is not repeated."""
    with upstream() as server:
        told: dict[str, Any] = {"error": {"message": "wrong key sk-very-secret-key \x1b[2Jand more"}}
        server.send(json_reply(told, 401))
        place = tmp_path / "asides.yaml"
        place.write_text(json.dumps({"upstreams": [{"url": server.url, "key": "sk-very-secret-key"}]}))
        shown = run("serve", "--config", place, "--check").stdout.decode()
    assert "wrong key" in shown
    assert "very-secret" not in shown
    assert "\x1b" not in shown


def test_check_of_an_answer_that_is_not_there() -> None:
    """A reply that was read as thinking to its end is told, with what would read it; one that was cut is no mistake."""
    with upstream() as server:
        command = ("serve", "--check", "--upstream", server.url, "--format", "qwen3", "--start", "thinking")
        server.say("Four.")
        done = run(*command)
        assert (done.returncode, b"EMPTY" in done.stdout) == (1, True)
        assert b"--format qwen3 --start text" in done.stdout
        server.say("Two and two", reason="length")
        done = run(*command)
        assert (done.returncode, b"--format qwen3 --start" in done.stdout) == (0, False)
        assert b"tokens were not enough" in done.stdout


@pytest.mark.parametrize(
    ("format", "said", "leak", "reads"),
    [
        ("qwen3", "<Think>I add them.</THINK>It is 4.", "<Think>, </THINK>", "--format auto --start text"),
        ("qwen3", '<thinking id="1">I add them.</thinking>It is 4.', '<thinking id="1">', "--format auto --start text"),
        ("qwen3", "<internal>I add them.</internal>It is 4.", "<internal>", "--format auto --start text"),
        ("auto", "<Reason>I add them.</Reason>It is 4.", "<Reason>, </Reason>", "--format think_tag --start text"),
    ],
)
def test_check_finds_tags_in_any_spelling(format: str, said: str, leak: str, reads: str) -> None:
    """Thoughts in a tag that the format does not read are a leak, and the format that reads them is named."""
    with upstream() as server:
        server.say(said)
        done = run("serve", "--check", "--upstream", server.url, "--format", format, "--start", "text")
    assert done.returncode == 1
    assert f"the answer still holds {leak}" in done.stdout.decode()
    assert reads in done.stdout.decode()


def test_check_of_a_model_that_nothing_is_known_of(capsys: pytest.CaptureFixture[str]) -> None:
    """The format is told by the reply; and a key of one letter does not make a riddle of every line."""
    with upstream(models=("unheard-of",)) as server:
        server.say("<think>I add them.</think>It is 4.")
        assert check(Config(upstreams=(UpstreamSettings(url=server.url),), keys=("a",))) == 0
    assert "format    auto, from each reply's own markers" in capsys.readouterr().out


def test_check_of_tags_that_are_read() -> None:
    with upstream() as server:
        server.say("<Think>I add them.</Think>It is 4.")
        done = run("serve", "--check", "--upstream", server.url, "--format", "auto", "--start", "text")
    assert (done.returncode, b"LEAK" in done.stdout) == (0, False)


def checked(url: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and what is printed, without a process of its own."""
    config = Config(upstreams=(UpstreamSettings(url=url),), defaults=ModelSettings(format="qwen3"))
    return check(config), capsys.readouterr().out


def test_check_of_a_server_that_splits_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Is good, and says so; Ollama keeps to no budget."""
    with upstream("ollama", models=("local",)) as server:
        server.say("Four.", thought="Two.")
        code, shown = checked(server.url, capsys)
    assert code == 0
    for line in ("no server that is known to enforce thinking budgets", "splits its thinking off by itself", "good"):
        assert line in shown


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply([b'{"id"', Close()], headers=JSON), "broke off"),
        (json_reply({"error": {"message": "out of memory"}}), "out of memory"),
        (json_reply({"error": {"message": "busy"}}, 503), "FAILED    status 503: busy\n"),
        (Reply([], 404), "FAILED    the upstream answered with status 404\n"),
    ],
    ids=["lost", "error", "status", "status alone"],
)
def test_check_of_a_server_that_fails_while_it_answers(
    reply: Reply, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fails, with the reason; also where an error comes with the status 200."""
    with upstream() as server:
        server.send(reply)
        code, shown = checked(server.url, capsys)
    assert code == 1
    assert "FAILED" in shown
    assert "EMPTY" not in shown
    assert why in shown
