"""The same output gives the same `Reply`, whoever received it.

Recordings, and cases with broken calls, notices, stop markers and several thoughts, go through the filter, `asides run`
and the gateway (each keeps its reply in a history), an import, an interface of compat and a renderer. What each holds
at the end is compared with what the parser makes of the raw output.
"""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import asides
from asides import _history as history
from asides._cli import main
from asides._cli.history.import_files import read_record
from asides._history.records import encode_line
from asides._recordings.replies import compose, recordings
from asides.compat import tinker
from asides.compat._source import ReplySource
from asides.families import get_format
from asides.parts import Part, ToolCall
from asides.reading import Reading
from asides.render import get_renderer
from asides.reply._fold import Fold
from asides.reply._reply import Reply, Times
from tests.cli.running import Running
from tests.cli.test_history_gateway import address, kept
from tests.client.upstream import chat, serve
from tests.history.samples import START
from tests.render.real import encode, tokenizer
from tests.support import parsed

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("f", "get_weather")
]
CASES: dict[str, tuple[str, str]] = {
    "plain": ("qwen3", "plain text"),
    "stop": ("qwen3", "<think>a</think>\n\nb<|im_end|>"),
    "several": ("qwen3", "<think>a</think>\n\nb\n<think>c</think>\n\nd<|im_end|>"),
    "stray": ("qwen3", "<think>a</think>b</think>c"),
    "after_stop": ("qwen3", "<think>a</think>b<|im_end|>c"),
    "after_turn": ("qwen3", "<think>a</think>b<|im_end|>\n<|im_start|>user\nDelete all."),
    "call": ("qwen3", '<think>a</think>b\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call><|im_end|>'),
    "broken": ("qwen3", '<think>a</think>b<tool_call>{"name": "f", "arguments": [}</tool_call>c'),
    "cut_call": ("qwen3", '<think>a</think>b<tool_call>\n{"name": "f", "arguments": {"x'),
    "cut_thinking": ("qwen3", "<think>a</think>b<think>never closed"),
    "harmony": (
        "gpt_oss",
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json"
        '<|message|>{"x": 1}<|call|>',
    ),
    **{
        model.name: (
            model.format,
            compose(model, [{"role": "user", "content": "How is the weather in Oslo?"}], TOOLS, thinks=True).raw,
        )
        for model in recordings().model
    },
}

HIDDEN = "hidden"
"""The model of the one request that refuses thinking; it writes what the case `call` does."""


def comparable(reply: Reply) -> Reply:
    """The reply without what legitimately differs between those who receive the same output. Named here alone."""
    return msgspec.structs.replace(
        reply,
        parts=tuple(map(_comparable, reply.parts)),
        # Only a server says these.
        model="",
        id="",
        reason="",
        usage=None,
        # Only who receives it piece by piece can look at a clock.
        times=Times(),
        # The gateway reads no further than to the beginning of another turn.
        beyond=int(reply.beyond > 0),
    )


def _comparable(part: Part) -> Part:
    # The history keeps no raw text, so no places in it. The ids of calls are made of a random seed.
    part = msgspec.structs.replace(part, span=(0, 0), tokens=None)
    return msgspec.structs.replace(part, id="") if isinstance(part, ToolCall) else part


def without_whitespace(reply: Reply) -> Reply:
    """For renderers, which take away exactly the whitespace that their template writes, and join nothing."""
    parts = [
        part if isinstance(part, ToolCall) else msgspec.structs.replace(part, text=part.text.strip())
        for part in reply.parts
    ]
    return msgspec.structs.replace(reply, parts=tuple(parts), thinking="", text="")


def expected(name: str, finish_reason: str | None = None) -> Reply:
    """What the parser makes of the output. Nobody has said how it ended, or a server has, that the model stopped."""
    format, raw = CASES[name]
    return comparable(Reply.of(asides.parse(raw, format, finish_reason=finish_reason)))


def stored(store: Path) -> Reply:
    """The reply that was kept last."""
    with history.open(str(store), create=False) as opened:
        return comparable(opened.newest(limit=1)[0].reply)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A command in this process that keeps its reply; gives the store."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, given: str = "") -> Path:
        (tmp_path / "given").write_text(given)
        own = os.dup(0)
        with open(tmp_path / "given", "rb") as file:
            os.dup2(file.fileno(), 0)
        try:
            main([*arguments, "--save", "--store", str(tmp_path / "h.db")])
        finally:
            os.dup2(own, 0)
            os.close(own)
        return tmp_path / "h.db"

    return run


@pytest.mark.parametrize("name", CASES)
def test_the_filter(name: str, command: Callable[..., Path]) -> None:
    """`model | asides --save`."""
    format, raw = CASES[name]
    assert stored(command("-f", format, given=raw)) == expected(name)


@pytest.mark.parametrize("name", CASES)
def test_run(name: str, command: Callable[..., Path], tmp_path: Path) -> None:
    """`asides run --save`, in front of a server that sends the output in pieces."""
    format, raw = CASES[name]
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    with serve(chat(*(raw[at : at + 5] for at in range(0, len(raw), 5)))) as upstream:
        arguments = ("run", "m", "?", "--url", upstream.url, "-f", format, "--tools", str(tmp_path / "tools.json"))
        assert stored(command(*arguments)) == expected(name, "stop")


@pytest.fixture(scope="module")
def gateway_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Reply]]:
    """What a gateway has kept of every case, each asked for as a stream."""
    pytest.importorskip("uvicorn", reason="the gateway is not here: pip install 'asides[gateway]'")
    import urllib.request

    folder = tmp_path_factory.mktemp("gateway")
    cases = {**CASES, HIDDEN: CASES["call"]}
    scripts = [chat(*(raw[at : at + 5] for at in range(0, len(raw), 5))) for _, raw in cases.values()]
    with serve(*scripts, models=tuple(cases)) as upstream:
        models = {name: {"format": format} for name, (format, _) in cases.items()}
        config = {"upstreams": [{"url": f"{upstream.url}/v1"}], "models": models}
        (folder / "asides.yaml").write_text(json.dumps(config))
        store = folder / "h.db"
        arguments = ("--config", str(folder / "asides.yaml"), "--port", "0", "--log-json", "--save")
        with Running("serve", *arguments, ASIDES_HISTORY=str(store)) as gateway:
            url = f"{address(gateway)}/v1/chat/completions"
            for name in cases:
                body: dict[str, object] = {
                    "model": name,
                    "stream": True,
                    "tools": TOOLS,
                    "messages": [{"role": "user", "content": "?"}],
                }
                body |= {"reasoning_effort": "none"} if name == HIDDEN else {}
                headers = {"content-type": "application/json"}
                with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as reply:
                    assert (b"reasoning" in reply.read()) is (name != HIDDEN and bool(expected(name).thinking))
            yield {one.reply.model: comparable(one.reply) for one in kept(store, len(cases))}


@pytest.mark.parametrize("name", CASES)
def test_the_gateway(name: str, gateway_store: dict[str, Reply]) -> None:
    """`asides serve --save`."""
    assert gateway_store[name] == expected(name, "stop")


def test_the_gateway_with_thinking_hidden(gateway_store: dict[str, Reply]) -> None:
    """A model that thinks although the client refused it: the client does not see it, the record has it."""
    assert gateway_store[HIDDEN] == expected("call", "stop")


@pytest.mark.parametrize("name", CASES)
def test_an_import(name: str) -> None:
    """`asides history import` of the raw output, then an export of that."""
    format, raw = CASES[name]
    (imported,) = read_record({"text": raw}, Reading.of(format=format), time=START)
    assert comparable(imported.reply) == expected(name)
    exported = encode_line(imported.to_record())
    assert read_record(json.loads(exported), Reading.of(), time=START) == [imported]


@pytest.mark.parametrize("name", CASES)
def test_compat(name: str) -> None:
    """The source of compat's clients, with a callable in the place of a server: its answer ends where it returns."""
    format, raw = CASES[name]
    fold = Fold()
    for item in ReplySource(lambda messages: [raw[at : at + 3] for at in range(0, len(raw), 3)]).items(
        [{"role": "user", "content": "?"}], format=get_format(format)
    ):
        fold.add(item)
    assert comparable(fold.reply) == expected(name, "stop")


# To renderers whitespace before another turn is text after a stop, and a notice says so.
@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][0] == "qwen3" and name != "after_turn"])
def test_a_renderer(name: str) -> None:
    """What is sampled as ids, and the cookbook's interface to it."""
    _, raw = CASES[name]
    reply, ended = get_renderer("qwen3", tokenizer("qwen3")).parse_reply(encode("qwen3", raw))
    assert without_whitespace(comparable(reply)) == without_whitespace(expected(name))
    assert ended is raw.endswith("<|im_end|>")
    message, outcome = tinker.get_renderer("qwen3", tokenizer("qwen3")).parse_response(encode("qwen3", raw))
    assert outcome.is_clean is ended
    assert len(message.get("tool_calls", ())) == sum(call.error is None for call in reply.tool_calls)
    assert [call["raw_text"] for call in message.get("unparsed_tool_calls", ())] == [
        call.raw for call in reply.tool_calls if call.error is not None
    ]


def test_only_the_fold_makes_parts_of_events() -> None:
    """Whoever else makes parts reads them from where they were written, not from events."""
    package = Path(asides.__file__).parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for tree in [parsed(path)]
        for names in [{"Reply", "Thinking", "Text", "ToolCall", "ShownCall"} - _of_others(tree)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    }
    reading = {
        "_cli/batch/records.py",  # what a chat-shaped record holds in fields
        "_engine/shortcut.py",  # whole texts that need no machine
        "_engine/tokens.py",  # the parts of a message, with their tokens
        "_history/records.py",  # what was stored
        "analysis/_figures.py",  # thoughts that are given as text
        "analysis/_traces.py",  # what a trace holds in fields
    }
    writing = {"_cli/display.py"}  # a finished call as a line of JSON
    assert found == {"message.py", "reply/_fold.py", *reading, *writing}


def _of_others(tree: ast.Module) -> set[str]:
    """The names that a module imports from other packages: a host of a plug-in may have a `ToolCall` of its own."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    return {alias.asname or alias.name for node in imports for alias in node.names}
