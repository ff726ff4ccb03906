"""The model provider of inspect_ai: found by inspect itself, run by its command, read into its own types."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.host import check_examples, require_module

require_module("inspect_ai")

import inspect_ai
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.tool import ToolInfo, ToolParams
from inspect_ai.util import JSONSchema

from asides import ToolCall as Call
from asides import parse
from tests.plugins.chat_server import serve
from tests.plugins.protocols import IDS, ONE_ID_TWICE
from tests.support import check_each, count_calls
from tests.test_cases import ALL, Case, case_name

# Inspect calls a newer release of what it depends on in an older way, and its evaluation leaves streams open.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The 'initial' parameter is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

TASK = '''
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import tool


@tool
def add():
    async def execute(a: int, b: int) -> str:
        """Add two numbers.

        Args:
            a: One.
            b: The other.
        """
        return str(a + b)

    return execute


@task
def sums():
    samples = [Sample(input="5 + 7", target="12"), Sample(input="9 - 4", target="5"), Sample(input="3 * 3", target="9")]
    return Task(dataset=samples, solver=generate(), scorer=match(location="exact"))


@task
def tools():
    return Task(dataset=[Sample(input="5 + 7", target="12")], solver=[use_tools(add()), generate()], scorer=match())
'''
OUTPUTS = {
    "5 + 7": "<think>10? No, 11 + 1.</think>\n\n12",
    "9 - 4": "Count back from 9.</think>5",
    "3 * 3": "<think>9",
}
CALL = (
    "<tool_call>\n<function=add>\n<parameter=a>\n5\n</parameter>\n"
    "<parameter=b>\n7\n</parameter>\n</function>\n</tool_call>"
)
ADD = ToolInfo(
    name="add",
    description="Add two numbers.",
    parameters=ToolParams(properties={"a": JSONSchema(type="integer"), "b": JSONSchema(type="integer")}),
)
THOUGHT_AND_TEXT = [("thinking", "a"), ("text", "b")]
USAGE = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)


def run_command(folder: Path, task: str, model: str, reply: Any, *more: str) -> dict[str, Any]:
    """The log of `inspect eval`, with a model behind a chat server."""
    (folder / "tasks.py").write_text(TASK, encoding="utf-8")
    environment = {**os.environ, "LOCAL_API_KEY": "none", "INSPECT_LOG_DIR": str(folder / "logs"), "NO_COLOR": "1"}
    with serve(reply) as address:
        command = [sys.executable, "-m", "inspect_ai", "eval", f"tasks.py@{task}", "--model", model]
        run = subprocess.run(
            [*command, "--model-base-url", address, "--log-format", "json", "--display", "plain", *more],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    logs = list((folder / "logs").glob("*.json"))
    assert len(logs) == 1, run.stdout + run.stderr
    log: dict[str, Any] = json.loads(logs[0].read_text(encoding="utf-8"))
    assert log["status"] == "success", run.stdout + run.stderr
    return log


def run_here(folder: Path, task: str, model: str, reply: Any, **more: Any) -> dict[str, Any]:
    """The same in this process, which has imported inspect already."""
    (folder / "tasks.py").write_text(TASK, encoding="utf-8")
    with serve(reply) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_API_KEY", "none")
        name, logs = f"{folder / 'tasks.py'}@{task}", str(folder / "logs")
        [log] = inspect_ai.eval(name, model=model, model_base_url=address, log_dir=logs, display="none", **more)
    assert log.status == "success", log.error
    return log.model_dump()


def accuracy(log: dict[str, Any]) -> float:
    """The score of a log."""
    return float(log["results"]["scores"][0]["metrics"]["accuracy"]["value"])


def output_of(content: Any, **fields: Any) -> ModelOutput:
    """What a wrapped model gives."""
    message = ChatMessageAssistant(content=content, tool_calls=fields.pop("tool_calls", None))
    choice = ChatCompletionChoice(message=message, stop_reason=fields.pop("stop_reason", "stop"))
    return ModelOutput(model="mock", choices=[choice], usage=USAGE, **fields)


def generate(output: ModelOutput, tools: list[ToolInfo] | None = None, **options: Any) -> ModelOutput:
    """What inspect has of an output, asked through its own front."""
    model = get_model("asides/mockllm/model", memoize=False, custom_outputs=[output], **options)
    return asyncio.run(model.generate("hi", tools=tools or []))


def parts_of(output: ModelOutput) -> list[tuple[str, str]]:
    """The content of a message, by type."""
    return [
        ("thinking", item.reasoning) if isinstance(item, ContentReasoning) else (item.type, getattr(item, "text", ""))
        for item in output.message.content_list
    ]


def test_the_command_scores_answers(tmp_path: Path) -> None:
    """Inspect finds the provider by its entry point, and the score is another one."""

    def reply(request: dict[str, Any]) -> dict[str, Any]:
        return {"content": OUTPUTS[request["messages"][-1]["content"]]}

    name = "openai-api/local/Qwen/Qwen3-8B"
    # Inspect itself takes one pair of tags out, no lone close and no open thought.
    assert accuracy(run_here(tmp_path, "sums", name, reply)) == pytest.approx(1 / 3)
    log = run_command(tmp_path, "sums", f"asides/{name}", reply)
    assert accuracy(log) == pytest.approx(2 / 3)
    first = log["samples"][0]["messages"][-1]
    assert [(item["type"], item.get("reasoning") or item.get("text")) for item in first["content"]] == [
        ("reasoning", "10? No, 11 + 1."),
        ("text", "12"),
    ]
    # What never closed is no answer.
    assert log["samples"][2]["output"]["completion"] == ""
    # What the model wrote is in the log.
    event = next(event for event in log["samples"][0]["events"] if event["event"] == "model")
    assert event["call"]["response"]["choices"][0]["message"]["content"] == OUTPUTS["5 + 7"]


@pytest.mark.parametrize(("history", "sent"), [("all", True), ("none", False)])
def test_a_call_in_the_text_is_run(tmp_path: Path, history: str, sent: bool) -> None:
    """Twice a turn: a call, typed by the tool's schema, then the answer; reasoning goes back as inspect is told."""
    requests = []

    def reply(request: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        if len(requests) == 1:
            return {"content": f"<think>I need a sum.</think>\n\nLet me add.\n\n{CALL}"}
        return {"content": "<think>Good.</think>It is 12"}

    model = "asides/openai-api/local/Qwen/Qwen3-Coder-30B-A3B-Instruct"
    arguments = {"format": "qwen3.5"}
    log = run_here(tmp_path, "tools", model, reply, reasoning_history=history, model_args=arguments)
    assert accuracy(log) == 1
    messages = log["samples"][0]["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    [call] = messages[1]["tool_calls"]
    assert (call["function"], call["arguments"]) == ("add", {"a": 5, "b": 7})
    assert messages[2]["content"] == "12"
    assert log["samples"][0]["output"]["completion"] == "It is 12"
    earlier = next(message for message in requests[1]["messages"] if message["role"] == "assistant")
    assert "Let me add." in earlier["content"]
    assert "<tool_call>" not in earlier["content"]
    assert ("I need a sum." in earlier["content"]) is sent
    assert json.loads(earlier["tool_calls"][0]["function"]["arguments"]) == {"a": 5, "b": 7}


@pytest.mark.parametrize(
    ("text", "parts", "answer"),
    [
        ("It is 12.", [("text", "It is 12.")], "It is 12."),
        ("", [("text", "")], ""),
        ("<think>a</think>b", THOUGHT_AND_TEXT, "b"),
        ("a</think>b", THOUGHT_AND_TEXT, "b"),
        ("<think>a</think>b\n\n<think>c</think>d", [*THOUGHT_AND_TEXT, ("thinking", "c"), ("text", "d")], "b\n\nd"),
        ("<think>a", [("thinking", "a")], ""),
        (CALL, [("text", CALL)], CALL),
    ],
)  # fmt: skip
def test_the_parts_of_an_output(text: str, parts: list[tuple[str, str]], answer: str) -> None:
    output = generate(output_of(text))
    assert parts_of(output) == parts
    assert output.completion == answer
    assert output.stop_reason == "stop"
    assert output.message.tool_calls is None


def test_what_has_nothing_in_it_stays_as_it_is() -> None:
    whole = output_of("Plain.")
    assert generate(whole).choices == whole.choices
    split = output_of([ContentReasoning(reasoning="a", signature="s"), ContentText(text="b", internal="c")])
    assert generate(split).choices == split.choices


def test_what_a_server_has_split_off_is_kept() -> None:
    thought = ContentReasoning(reasoning="a", signature="s", internal="reasoning_content")
    hidden = ContentReasoning(reasoning="", redacted=True, summary="b")
    image = ContentImage(image="data:image/png;base64,AA==")
    output = generate(output_of([thought, hidden, ContentText(text=f"Let me add.\n{CALL}"), image]), [ADD])
    assert output.message.content == [thought, ContentText(text="Let me add."), hidden, image]
    [call] = output.message.tool_calls or []
    assert (call.function, call.arguments, call.parse_error) == ("add", {"a": 5, "b": 7}, None)
    assert (output.completion, output.stop_reason) == ("Let me add.", "tool_calls")
    # Some servers repeat in the text what they have sent as reasoning.
    repeated = generate(output_of([thought, ContentText(text="<think>a</think>b")]))
    assert repeated.message.content == [thought, ContentText(text="b")]


def test_what_a_server_has_read_is_not_run_twice() -> None:
    calls = generate(output_of(CALL), [ADD]).message.tool_calls
    assert generate(output_of(CALL, tool_calls=calls), [ADD]).message.tool_calls == calls


def test_ids_of_calls_differ_from_reply_to_reply() -> None:
    first, second = (generate(output_of(CALL), [ADD]).message.tool_calls or [] for _ in range(2))
    assert first[0].id != second[0].id


def test_calls_with_one_id_stay_two() -> None:
    calls = generate(output_of(ONE_ID_TWICE), [ADD], format="kimi_k2").message.tool_calls or []
    assert [(call.id, call.arguments) for call in calls] == [(IDS[0], {"a": 1}), (IDS[1], {"a": 2})]


def test_a_broken_call_is_told_to_the_model() -> None:
    broken = '<tool_call>\n{"name": "add", "arguments": {"a": 5,\n</tool_call>'
    output = generate(output_of(f"So.\n{broken}"), [ADD])
    [call] = output.message.tool_calls or []
    assert call.arguments == {}
    assert call.parse_error is not None
    assert broken in call.parse_error
    assert output.message.metadata is not None
    assert [notice["code"] for notice in output.message.metadata["asides"]["notices"]] == ["unreadable_call"]
    # Servers refuse a turn with a call of no name.
    [unnamed] = generate(output_of('<tool_call>\n{"arguments": {}}\n</tool_call>'), [ADD]).message.tool_calls or []
    assert (unnamed.function, unnamed.parse_error is None) == ("unreadable_call", False)
    cut = generate(output_of('<tool_call>\n{"name": "add", "argum', stop_reason="max_tokens"), [ADD])
    assert cut.stop_reason == "max_tokens"
    assert [call.function for call in cut.message.tool_calls or []] == ["add"]
    deep = '<tool_call>\n{"name": "add", "arguments": {"a": ' + "[" * 100_000 + "]" * 100_000 + "}}\n</tool_call>"
    [call] = generate(output_of(deep), [ADD]).message.tool_calls or []
    assert call.parse_error is not None


def test_a_reply_of_tags_alone_is_no_answer() -> None:
    """Where nothing is left behind the tags, inspect's own splitter gives the tags as the answer."""
    with serve(lambda _: {"content": "<think>12</think>"}) as address:
        arguments = {"base_url": address, "api_key": "none", "memoize": False}

        async def ask(name: str) -> ModelOutput:
            async with get_model(name, **arguments) as model:
                return await model.generate("5 + 7")

        assert asyncio.run(ask("openai-api/local/m")).completion == "<think>12</think>"
        output = asyncio.run(ask("asides/openai-api/local/m"))
    assert output.completion == ""
    assert parts_of(output) == [("thinking", "12")]


def test_several_choices() -> None:
    output = output_of("<think>a</think>b")
    output.choices += output_of("c</think>d").choices
    split = generate(output)
    assert [choice.message.text for choice in split.choices] == ["b", "d"]
    assert generate(ModelOutput(model="m", usage=USAGE)).choices == []


def test_options_are_arguments_of_the_model() -> None:
    assert generate(output_of("a"), start="thinking").completion == ""
    assert generate(output_of("[THINK]a[/THINK]b"), format="mistral").completion == "b"
    with pytest.raises(PrerequisiteError, match=r"asides/mockllm/model: unknown format 'qwen33'; did you mean qwen3"):
        generate(output_of("a"), format="qwen33")
    with pytest.raises(PrerequisiteError, match="start must be one of"):
        generate(output_of("a"), start="somewhere")
    with pytest.raises(ValueError, match="nowhere"):
        get_model("asides/nowhere/model")


def test_the_name_of_the_wrapped_model_chooses_the_format() -> None:
    model = get_model("asides/mockllm/Qwen/Qwen3-4B-Thinking-2507", memoize=False, custom_outputs=[output_of("a")])
    assert asyncio.run(model.generate("hi")).completion == ""


def test_all_else_is_the_wrapped_provider() -> None:
    def fail(*_: object) -> ModelOutput:
        raise TimeoutError("slow")

    model = get_model("asides/mockllm/model", memoize=False, custom_outputs=fail, base_url="http://here")
    wrapped = model.api._wrapped
    ours = {"generate"}
    names = {name for name, member in vars(ModelAPI).items() if callable(member) and not name.startswith("_")}
    assert {"should_retry", "connection_key", "count_tokens", "auto_reasoning_history", "aclose"} < names
    assert all(getattr(model.api, name) == getattr(wrapped, name) for name in names - ours)
    assert model.api.base_url == "http://here"
    assert model.api.qualified_model_name == "asides/mockllm/model"
    with pytest.raises(TimeoutError, match="slow"):
        asyncio.run(model.generate("hi"))


def test_all_cases_come_through() -> None:
    set_here = {"tools", "prompt", "calls", "seed", "collect"}
    cases = [case for case in ALL if not case.said.get("options", {}).keys() & set_here]
    assert len(cases) > 0.8 * len(ALL)
    with asyncio.Runner() as runner:
        check_each(lambda case: _check_case(case, runner), cases, case_name)


OUTPUT: list[ModelOutput] = []


@cache
def _api(format: str, options: str) -> Any:
    """A model for cases of a format, which gives what stands in `OUTPUT`."""
    given = {"custom_outputs": lambda *_: OUTPUT[0], "format": format, **json.loads(options)}
    return get_model("asides/mockllm/model", memoize=False, **given).api


def _check_case(case: Case, runner: asyncio.Runner) -> None:
    text, options = "".join(case.chunks), case.said.get("options", {})
    OUTPUT[:] = [output_of(text)]
    output, _ = runner.run(_api(case.format, json.dumps(options)).generate([], [ADD], "auto", GenerateConfig()))
    definition = {"type": "function", "function": ADD.model_dump(exclude_none=True)}
    expected = parse(text, case.format, **options, tools=[definition])
    assert [part for part in parts_of(output) if part[1]] == [
        (type(part).__name__.lower(), part.text) for part in expected.parts if not isinstance(part, Call)
    ]
    assert output.completion == expected.text
    calls = output.message.tool_calls or []
    assert [(call.function, call.parse_error is None) for call in calls] == [
        (call.name or "unreadable_call", call.error is None) for call in expected.tool_calls
    ]
    for call, found in zip(calls, expected.tool_calls, strict=True):
        assert call.arguments == (json.loads(found.arguments) if found.error is None else {})
        assert found.error is None or found.raw in str(call.parse_error)


def test_it_costs_as_much_as_the_output_is_long() -> None:
    short, long = ("<think>" + "so what? " * size + f"</think>{CALL}" for size in (5_000, 20_000))
    generate(output_of(short), [ADD])  # what is compiled once
    few = count_calls(lambda: generate(output_of(short), [ADD]))
    assert count_calls(lambda: generate(output_of(long), [ADD])) < 5 * few


def test_the_example_of_the_page(tmp_path: Path) -> None:
    check_examples("evals", tmp_path, "import inspect_ai")
