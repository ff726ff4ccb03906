"""Who tells how a model writes: the file, its name, its server, or nobody; and when calls are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.gateway.clients import FUNCTION, Seen, ask
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Upstream, json_reply, upstream
from tests.waiting import eventually

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
HARMONY = "<|channel|>analysis<|message|>Why.<|end|><|start|>assistant<|channel|>final<|message|>So.<|return|>"
CALL = '<tool_call>\n{"name": "find", "arguments": {"query": "x"}}\n</tool_call>'


class Servers(NamedTuple):
    """A gateway that is told nothing of its models, before a server that shows nothing, one that does, and Ollama."""

    gateway: Gateway
    silent: Upstream
    showing: Upstream
    ollama: Upstream

    def ask(self, raw: str, model: str, *, stream: bool = True, tools: bool = False) -> Seen:
        """What a chat client sees when the model says this."""
        for each in (self.silent, self.showing, self.ollama):
            each.say(raw, size=2)
        return ask("chat", self.gateway.url, model=model, stream=stream, tools=tools)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    with (
        upstream() as silent,
        upstream(owner="llamacpp") as showing,
        upstream("ollama", models=["local", "jinja"]) as ollama,
    ):
        showing.send(json_reply({"chat_template": CHATML}), "/props")
        config = {
            "upstreams": [
                {"url": showing.url, "name": "showing", "models": ["shown", "shown-wrong"]},
                {"url": ollama.url, "name": "ollama", "models": ["local", "jinja"]},
                {"url": silent.url, "name": "silent", "models": ["*"]},
            ],
            "models": {
                "shown-wrong": {"format": "harmony"},
                "gpt-oss-but-none": {"format": "none"},
                "calling": {"format": "qwen3", "calls": "always"},
                "mute": {"format": "qwen3", "calls": "never"},
                "policies-*": {"format": "qwen3", "mentions": "marker", "whitespace": "exact", "repair": True},
                "own-tags": {"tags": {"<plan>": "</plan>", "[[": "]]"}},
                "drafting": {"format": "qwen3", "calls_in_thinking": "never"},
            },
        }
        with gateway(config) as running:
            yield Servers(running, silent, showing, ollama)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("model", "raw"),
    [
        ("Qwen/Qwen3-8B", "<think>\nWhy.\n</think>\n\nSo."),
        ("openai/gpt-oss-20b", HARMONY),
        ("gpt-oss:20b", HARMONY),
        ("deepseek-ai/DeepSeek-R1", "Why.\n</think>\n\nSo."),
        ("deepseek-ai/DeepSeek-R1-0528", "<think>\nWhy.\n</think>\n\nSo."),
        ("mistralai/Magistral-Small-2509", "[THINK]Why.[/THINK]So."),
    ],
)
def test_by_name(servers: Servers, model: str, raw: str, stream: bool) -> None:
    """A model whose name is known is read as its family writes, and from where its output begins."""
    seen = servers.ask(raw, model, stream=stream)
    assert (seen.thinking, seen.text) == ("Why.", "So.")


def test_by_the_server(servers: Servers) -> None:
    """A server that shows its template tells the format, and that the prompt has opened the thought."""

    def is_split() -> bool:
        seen = servers.ask("Why.\n</think>\n\nSo.", "shown")
        return (seen.thinking, seen.text) == ("Why.", "So.")

    # The first request waits for the template, but for some seconds only (`test_upstreams.py`).
    eventually(is_split, "the template says nothing")


def test_the_file_beats_the_server(servers: Servers) -> None:
    """What the file says of a model holds, whatever its server shows."""
    seen = servers.ask(HARMONY, "shown-wrong")
    assert (seen.thinking, seen.text) == ("Why.", "So.")
    assert servers.ask(HARMONY, "gpt-oss-but-none").text == HARMONY


def test_by_ollama(servers: Servers) -> None:
    """Behind Ollama too, whose own templates are not Jinja."""
    for raw in ("<think>\nWhy.\n</think>\n\nSo.", HARMONY):
        seen = servers.ask(raw, "local")
        assert (seen.thinking, seen.text) == ("Why.", "So.")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "raw",
    [
        "<think>\nWhy.\n</think>\n\nSo.",
        HARMONY,
        "[THINK]Why.[/THINK]So.",
        "<seed:think>Why.</seed:think>So.",
        "◁think▷Why.◁/think▷So.",
    ],
)
def test_by_nobody(servers: Servers, raw: str, stream: bool) -> None:
    """A model that nobody knows is read as soon as it shows how it writes."""
    seen = servers.ask(raw, "a-model-of-my-own", stream=stream)
    assert (seen.thinking, seen.text) == ("Why.", "So.")


def test_words_without_markers(servers: Servers) -> None:
    """A model that does not think, of which nobody knows anything, is passed on as it speaks."""
    words = "if a < b: `<think>` is only named here."
    for stream in (False, True):
        seen = servers.ask(words, "a-model-of-my-own", stream=stream)
        assert (seen.thinking, seen.text) == ("", words)


def test_calls_are_read_when_tools_are_given(servers: Servers) -> None:
    """Without tools what looks like a call is text, unless the model's settings say otherwise."""
    raw = f"<think>Why.</think>\n\nSo.\n{CALL}"
    for stream in (False, True):
        assert servers.ask(raw, "Qwen/Qwen3-8B", stream=stream, tools=True).calls == (("find", {"query": "x"}),)
        plain = servers.ask(raw, "Qwen/Qwen3-8B", stream=stream)
        assert plain.calls == ()
        assert plain.text == f"So.\n{CALL}"
        assert servers.ask(raw, "calling", stream=stream).calls == (("find", {"query": "x"}),)
        mute = servers.ask(raw, "mute", stream=stream, tools=True)
        assert (mute.thinking, mute.calls) == ("Why.", ())
        assert CALL in mute.text


def test_no_calls_for_who_wants_none(servers: Servers) -> None:
    """With `tool_choice: none` no calls come back, as servers do it: a client that forbids them cannot answer them."""
    servers.silent.say(CALL)
    model = "Qwen/Qwen3-8B"
    for stream in (False, True):
        assert ask("chat", servers.gateway.url, model=model, stream=stream, tools=True).calls
        seen = ask("chat", servers.gateway.url, model=model, stream=stream, tools=True, tool_choice="none")
        assert (seen.calls, seen.text.strip()) == ((), CALL)
    assert servers.silent.question().body["tools"] == [{"type": "function", "function": FUNCTION}]
    assert servers.silent.question().body["tool_choice"] == "none"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_policies_of_a_model(servers: Servers, stream: bool) -> None:
    """How quoted markers, whitespace, cut-off calls and calls in thinking are read is a setting of the model."""
    raw = "<think> Why. </think> Say `<think>`."
    usual = servers.ask(raw, "Qwen/Qwen3-8B", stream=stream)
    assert (usual.thinking, usual.text) == ("Why.", "Say `<think>`.")
    read = servers.ask(raw, "policies-1", stream=stream)
    assert (read.thinking, read.text) == (" Why. `.", " Say `")
    cut = CALL.partition("}")[0]
    assert servers.ask(cut, "policies-1", stream=stream, tools=True).calls == (("find", {"query": "x"}),)
    thought = f"<think>Why.\n{CALL}"
    assert servers.ask(thought, "Qwen/Qwen3-8B", stream=stream, tools=True).calls == (("find", {"query": "x"}),)
    drafted = servers.ask(thought, "drafting", stream=stream, tools=True)
    assert (drafted.calls, drafted.thinking) == ((), f"Why.\n{CALL}")


@pytest.mark.parametrize("stream", [True, False])
def test_markers_of_ones_own(servers: Servers, stream: bool) -> None:
    """`tags` of the file are the markers, those of known formats are not; calls are read."""
    seen = servers.ask(f"<plan>a</plan>[[b]]<think>c</think>{CALL}", "own-tags", stream=stream, tools=True)
    assert (seen.thinking, seen.text) == ("a\n\nb", "<think>c</think>")
    assert [name for name, _ in seen.calls] == ["find"]
