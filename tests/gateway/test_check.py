"""`asides serve --check`: what it shows of the configuration, what it asks, what it says of the answer."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from asides._config import UpstreamSettings
from asides._config.schema import Config, ModelSettings
from asides._gateway.check import TOOL_QUESTION, check
from tests.cli.running import run
from tests.gateway.providers import KEY, Anthropic, provider
from tests.gateway.rendering import render_prompts
from tests.gateway.speech import Speech
from tests.gateway.upstream import JSON, Asked, Close, Reply, json_reply, upstream


def test_check_says_what_it_saw() -> None:
    """`--check` shows the configuration without its secrets, asks both questions, and says what came."""
    with upstream(models=["Qwen/Qwen3-8B"]) as server:
        server.say("<think>Two.</think>\n\nFour.")
        config = ("--check", "--upstream", server.url, "--format", "qwen3")
        done = run("serve", *config)
        assert done.returncode == 0, done.stderr
        assert b"qwen3" in done.stdout
        assert [bool(asked.body.get("tools")) for asked in server.questions] == [False, True]
        server.say("<|channel|>analysis<|message|>Two.<|end|>")
        leaking = run("serve", *config)
        assert b"<|channel|>" in leaking.stdout
        assert leaking.stdout != done.stdout


def test_check_says_how_the_server_ends_its_prompt() -> None:
    """Of a model that nobody knows: where its reply begins is what the server says."""
    with upstream(models=["new-9"]) as server:
        render_prompts(server)
        server.say("Two.</think>\n\nFour.")
        done = run("serve", "--check", "--upstream", server.url)
    assert done.returncode == 0, done.stdout
    (line,) = [line for line in done.stdout.decode().splitlines() if line.startswith("  start")]
    assert line.startswith("  start     thinking: the prompt that the server writes ends with")
    assert "<think>" in line


def test_check_says_which_key_seals_what_clients_carry(tmp_path: Path) -> None:
    """Of a provider that wants something back: with one key per machine, conversations would not go on at another."""
    with provider(Anthropic) as served:
        file = tmp_path / "asides.yaml"
        for more, said in (
            ("", "continuity.key; several machines"),
            ("continuity: {keys: [" + "k" * 40 + "]}", "keys"),
        ):
            file.write_text(f"upstreams:\n  - {{url: {served.url}, kind: anthropic, key: {KEY}}}\n{more}\n")
            done = run("serve", "--check", "--config", str(file))
            (line,) = [line for line in done.stdout.decode().splitlines() if line.startswith("  thoughts")]
            assert said in line
            assert "kkkk" not in line


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


THOUGHT = "<think>Two.</think>\n\nFour."
HERMES = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lisbon"}}\n</tool_call>'
XML = "<tool_call>\n<function=get_weather>\n<parameter=city>\nLisbon\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("format", "said", "call", "state", "code"),
    [
        ("qwen3", THOUGHT, f"<think>Hm.</think>{HERMES}", "good", 0),
        ("qwen3", THOUGHT, "<think>Hm.</think>I cannot know.", "good", 0),
        ("qwen3", "Four.", HERMES, "no thinking seen", 0),
        ("deepseek_r1", THOUGHT, f"<think>Hm.</think>{XML}", "LEAK", 1),
        ("think_tag", THOUGHT, 'Here: {"name": "get_weather", "parameters": {"city": "Lisbon"}}', "LEAK", 1),
        ("qwen3", "<Think>Two.</Think>Four.", HERMES, "LEAK", 1),
    ],
    ids=["good", "no call", "no thinking", "call leaks", "bare call leaks", "thought leaks"],
)
def test_the_states(
    format: str, said: str, call: str, state: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Good is only what was seen: a thought, an answer without it, and a call, where one was made, that is read."""
    with upstream() as server:
        server.say(said)
        server.by_message[TOOL_QUESTION] = Speech(call)
        settings = ModelSettings(format=format, start="text")
        found = check(Config(upstreams=(UpstreamSettings(url=server.url),), defaults=settings))
    shown = capsys.readouterr().out
    assert found == code, shown
    for each in ("good ", "no thinking seen", "LEAK"):
        assert (f"  {each}" in shown) is (each.strip() == state), shown
    if call == f"<think>Hm.</think>{HERMES}":
        assert 'call      get_weather({"city": "Lisbon"})' in shown


def test_advice_names_a_format_that_reads_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    """Of all that there are, where neither the format itself nor `auto` does."""
    bare = '{"name": "get_weather", "parameters": {"city": "Lisbon"}}'
    with upstream() as server:
        server.say(THOUGHT)
        server.by_message[TOOL_QUESTION] = Speech(bare)
        settings = ModelSettings(format="think_tag", start="text")
        assert check(Config(upstreams=(UpstreamSettings(url=server.url),), defaults=settings)) == 1
    advice = capsys.readouterr().out.partition("LEAK")[2]
    assert "--format llama3_json" in advice or "--format auto" in advice, advice


def test_a_server_that_takes_no_tools(capsys: pytest.CaptureFixture[str]) -> None:
    """Its refusal is shown, and is no fault; one that breaks down over them is."""
    with upstream() as server:

        def answer(asked: Asked, status: int) -> Reply:
            if asked.body.get("tools"):
                return json_reply({"error": {"message": "tools need a parser"}}, status)
            message = {"role": "assistant", "content": THOUGHT}
            return json_reply({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

        for status, code in ((400, 0), (500, 1)):
            server.send(partial(answer, status=status))
            found, shown = checked(server.url, capsys)
            assert (found, "tools need a parser" in shown) == (code, True), shown


def test_every_configured_model_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """Those with a name, and those that a pattern names; one of them by its name, or all that are listed."""
    listed = ("qwen-a", "qwen-b", "other")
    with upstream(models=listed) as server, upstream(models=("far",)) as second:
        for each in (server, second):
            each.say(THOUGHT)
        models = {"mine": ModelSettings(name="qwen-a", upstream="one"), "qwen-b*": ModelSettings()}
        upstreams = (UpstreamSettings(url=server.url, name="one"), UpstreamSettings(url=second.url, name="two"))
        config = Config(upstreams=upstreams, models=models, defaults=ModelSettings(format="qwen3"))

        def asked(wanted: str) -> list[str]:
            server.asked.clear()
            second.asked.clear()
            check(config, wanted)
            found = [question.body["model"] for each in (server, second) for question in each.questions]
            assert found[::2] == found[1::2]  # each is asked both
            return found[::2]

        assert asked("") == ["qwen-a", "qwen-b", "far"]
        assert asked("other") == ["other"]
        assert asked("all") == ["qwen-a", "qwen-a", "qwen-b", "other", "far"]
        capsys.readouterr()
        assert check(config, "nowhere") == 1
        assert "no upstream serves the model 'nowhere'" in capsys.readouterr().out


def test_only_what_was_changed_is_shown(tmp_path: Path) -> None:
    """Unless all of it is wanted; `-v` alone is a mistake."""
    with upstream() as server:
        file = tmp_path / "asides.yaml"
        text = f"upstreams:\n  - url: {server.url}\nmodels:\n  m: {{format: qwen3}}\nlimits: {{calls: 5}}\n"
        file.write_text(text)
        short, whole = (run("serve", "--config", str(file), "--check", *flag).stdout.decode() for flag in ((), ("-v",)))
        alone = run("serve", "-v", "--upstream", server.url)
    for line in ("format: qwen3", "calls: 5", "url:"):
        assert line in short
        assert line in whole
    for line in ("connect: 10.0", "replay: auto", "history:"):
        assert line not in short
        assert line in whole
    assert (alone.returncode, b"--check" in alone.stderr) == (2, True)
