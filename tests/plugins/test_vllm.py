"""The plug-in inside vLLM's own sources: its entry point, its managers, its parser layer, its requests and deltas."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import asides
from tests.plugins.host import check_examples, check_tried, require_module

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what vLLM imports is not ours
    require_module("vllm.parser")
    import xgrammar
    from transformers import PreTrainedTokenizerFast  # type: ignore[import-not-found]
    from vllm.config.reasoning import ReasoningConfig
    from vllm.entrypoints.anthropic.protocol import AnthropicMessagesRequest
    from vllm.entrypoints.anthropic.serving import AnthropicServingMessages
    from vllm.entrypoints.generate.base.protocol import RequestResponseMetadata
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat
    from vllm.entrypoints.openai.responses.context import SimpleContext
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
    from vllm.entrypoints.openai.responses.serving import OpenAIServingResponses
    from vllm.exceptions import VLLMValidationError
    from vllm.outputs import CompletionOutput, RequestOutput
    from vllm.parser.abstract_parser import DelegatingParser
    from vllm.parser.parser_manager import ParserManager
    from vllm.plugins import load_general_plugins
    from vllm.reasoning import ReasoningParserManager
    from vllm.sampling_params import SamplingParams
    from vllm.tokenizers.hf import get_cached_tokenizer
    from vllm.tool_parsers import ToolParserManager
    from vllm.v1.structured_output import StructuredOutputManager
    from vllm.v1.structured_output.backend_xgrammar import validate_xgrammar_grammar
    from xgrammar.testing import _is_grammar_accept_string as accepts

    load_general_plugins()

from asides._engine.format import THINKING
from asides.detect._markers import openers
from asides.dialects._whole_calls import behind_arguments
from asides.families import switch_of
from asides.parts import ToolCall
from asides.reply._separated_calls import without_markers
from tests.render.real import encode, tokenizer
from tests.support import characters, check_each, count_calls
from tests.test_cases import ALL, Case, case_name

pytestmark = pytest.mark.filterwarnings("ignore")

TOKENS = "deepseek_v4"
"""The tokenizer where any will do: it reads back every text, and has tokens for `<think>` and `</think>`."""
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 4}}\n</tool_call>'
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}}
]


class Found(NamedTuple):
    """What came out of vLLM's parser layer."""

    reasoning: str
    content: str
    calls: list[tuple[str, str]]
    ids: list[str]


def request_for(tools: Sequence[Any] | None = TOOLS, **fields: Any) -> ChatCompletionRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], **fields}
    return ChatCompletionRequest.model_validate(body | ({"tools": list(tools)} if tools else {}))


def parser_of(
    format: str, request: ChatCompletionRequest, halves: str = "both", name: str = TOKENS, **kwargs: Any
) -> DelegatingParser:
    """A parser as vLLM's server makes it for a request."""
    return class_of(format, halves)(tokenizer(name), request.tools, model_config=None, **kwargs)


@cache
def class_of(format: str, halves: str) -> Any:
    flag = "asides" if format == "auto" else f"asides_{format}"
    return ParserManager.get_parser(
        tool_parser_name=flag if halves in ("both", "tools") else None,
        reasoning_parser_name=flag if halves in ("both", "reasoning") else None,
        enable_auto_tools=True,
    )


def stream(
    parser: DelegatingParser, request: ChatCompletionRequest, chunks: Sequence[str], prompt_ids: list[int] | None
) -> Found:
    """What a client of a stream puts together."""
    reasoning, content = [], []
    calls: dict[int, list[str]] = {}
    ids = []
    for number, chunk in enumerate(chunks, 1):
        delta = parser.parse_delta(chunk, [], request, prompt_ids, finished=number == len(chunks))
        if delta is None:
            continue
        reasoning.append(delta.reasoning or "")
        content.append(delta.content or "")
        for call in delta.tool_calls:
            if call.id is not None:
                assert call.index == len(calls)
                assert call.type == "function"
                ids.append(call.id)
                calls[call.index] = [call.function.name, ""]
            calls[call.index][1] += call.function.arguments or ""
    return Found("".join(reasoning), "".join(content), [(call[0], call[1]) for call in calls.values()], ids)


def whole(
    parser: DelegatingParser, request: ChatCompletionRequest, text: str, prompt_ids: list[int] | None = None
) -> Found:
    """A whole reply, as the server reads it: it has asked before whether the prompt ends thinking."""
    if prompt_ids is not None:
        request.resolve_reasoning_ended(parser, prompt_ids)
    reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True)
    found = [(call.name, call.arguments) for call in calls or ()]
    return Found(reasoning or "", content or "", found, [call.id for call in calls or ()])


def read(format: str, text: str, halves: str = "both", prompt: str | None = "", **fields: Any) -> Found:
    """A reply, whole and streamed in two ways: all must agree, but for calls that a stream has begun to send."""
    request = request_for(**fields)
    prompt_ids = None if prompt is None else encode(TOKENS, prompt)
    found = whole(parser_of(format, request, halves), request, text, prompt_ids)
    for chunks in (list(text), random_cut(text, 4)):
        streamed = stream(parser_of(format, request, halves), request, chunks, prompt_ids)
        if streamed.calls and not streamed.content.strip():
            streamed = streamed._replace(content="")  # vLLM leaves whitespace beside calls out of whole replies
        broken = [call for call in streamed.calls if call not in found.calls]
        if not broken:
            assert streamed[:3] == found[:3]
        assert len(found.calls) + len(broken) == len(streamed.calls)
        for name, arguments in broken:  # text in a whole reply
            assert name in found.content + found.reasoning
            with pytest.raises(json.JSONDecodeError):
                json.loads(arguments)
    return found


def random_cut(text: str, seed: int) -> list[str]:
    numbers = random.Random(seed)
    chunks = []
    while text:
        size = numbers.randint(1, 9)
        chunks.append(text[:size])
        text = text[size:]
    return chunks or [""]


# Registration.


def test_vllm_finds_every_format_by_itself() -> None:
    """Through the entry point of the installed package: nothing here has called `register`."""
    for manager in (ReasoningParserManager, ToolParserManager):
        known = manager.list_registered()
        for format in asides.formats():
            assert ("asides" if format == "auto" else f"asides_{format}") in known
    reasoning = ReasoningParserManager.get_reasoning_parser("asides_qwen3.5")
    tools = ToolParserManager.get_tool_parser("asides")
    assert (reasoning.__module__, reasoning.asides_format) == ("asides.plugins._vllm", "qwen3.5")
    assert (tools.__module__, tools.asides_format) == ("asides.plugins._vllm", "auto")


def test_an_unknown_format_is_refused_as_vllm_does() -> None:
    with pytest.raises(KeyError, match=r"asides_qwen3_coder"):
        ReasoningParserManager.get_reasoning_parser("asides_nope")
    with pytest.raises(TypeError, match="asides_nope"):
        ParserManager.get_parser(reasoning_parser_name="asides_nope")


def test_an_unknown_tool_parser_ends_the_command_with_all_names(tmp_path: Path) -> None:
    """Before anything of the model is looked at; it does not exist."""
    code = "from vllm.entrypoints.cli.main import main; main()"
    flags = ["serve", "no/model", "--enable-auto-tool-choice", "--tool-call-parser", "asides_qwne3"]
    # The sources are not a build for some device, so one has to be named.
    environment = {**os.environ, "VLLM_TARGET_DEVICE": "cpu", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-W", "ignore", "-c", code, *flags]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    last = run.stderr.rstrip().rpartition("\n")[2]
    assert run.returncode == 1
    assert last.startswith("KeyError: 'invalid tool call parser: asides_qwne3 (chose from {")
    assert "asides_qwen3," in last


def test_an_unknown_reasoning_parser_ends_the_start_with_all_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """When vLLM makes its configuration, which needs the model's tokenizer and comes before its weights."""
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer("deepseek_v4"))
    monkeypatch.setattr("vllm.config.reasoning.cached_tokenizer_from_config", lambda model_config: wrapped)
    config = ReasoningConfig()
    config.reasoning_parser = "asides_qwne3"
    with pytest.raises(
        KeyError, match=r"Reasoning parser 'asides_qwne3' not found. Available parsers: .*asides_qwen3,"
    ):
        config.initialize_token_ids(None)
    config.reasoning_parser = "asides_qwen3"
    config.initialize_token_ids(None)
    assert config.reasoning_end_token_ids == encode("deepseek_v4", "</think>")


def prompt_of(case: Case) -> str:
    """The prompt of a case; one that leaves the output where the case or the format begins, if it has none."""
    format, options = asides.get_format(case.format), case.said.get("options", {})
    if "prompt" in options:
        return str(options["prompt"])
    header = format.assistant[0] if format.assistant else "?\n"
    start = options.get("start", "thinking" if format.start == THINKING else "text")
    return header + openers(format)[0] if start == "thinking" and format.header is None and openers(format) else header


@pytest.mark.parametrize("file", sorted({case.file for case in ALL}))
def test_cases_arrive(file: str) -> None:
    """Of every case the thoughts, the text and the calls are what `asides.parse` finds, whole and in any cut."""
    check_each(_check_case, [case for case in ALL if case.file == file], case_name)


def _check_case(case: Case) -> None:
    text, options = "".join(case.chunks), case.said.get("options", {})
    if not text:
        return
    prompt = prompt_of(case)
    tools = options.get("tools") or TOOLS
    message = asides.parse(text, case.format, prompt=prompt, tools=tools, seed=0)
    request = request_for(tools)
    format = asides.get_format(case.format).name
    prompt_ids = encode(TOKENS, prompt)
    found = whole(parser_of(format, request), request, text, prompt_ids)
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    assert found.calls == [(call.name, call.arguments) for call in calls if call.error is None]
    again = asides.parse(text, case.format, prompt=prompt, tools=tools, seed=1).tool_calls
    ids = [(one.id, other.id) for one, other in zip(message.tool_calls, again, strict=True) if one.error is None]
    for id, (one, other) in zip(found.ids, ids, strict=True):
        assert id == one or one != other  # an id that does not depend on the seed is the model's
    broken = [call for call in calls if call.error is not None]
    if not broken:
        assert found[:2] == (message.thinking, message.text)
    for call in broken:  # text, unless a stream has sent some of it
        assert without_markers(call.raw, asides.get_format(case.format)) in found.content + found.reasoning
    ways = [random_cut(text, len(text)), *([characters(text)] if len(text) < 50 else [])]
    for chunks in ways if len(case.chunks) == 1 else [*ways, case.chunks]:
        streamed = stream(parser_of(format, request), request, chunks, prompt_ids)
        assert streamed.reasoning == message.thinking
        assert streamed.calls == [(call.name, _arguments(call)) for call in calls if call.name]
        if all(call.name for call in calls):
            assert streamed.content == message.text
        for call in broken:
            assert call.name or without_markers(call.raw, asides.get_format(case.format)) in streamed.content


def _arguments(call: ToolCall) -> str:
    """Those of a call as they are written: the model's own text follows where a broken one would look whole."""
    return call.arguments + ("" if call.error is None else behind_arguments(call.arguments, call.raw))


# What the two halves do together and alone.


def test_a_second_thought_does_not_leak() -> None:
    text = f"<think>one</think>\n\nHello <think>two</think> World\n{CALL}"
    found = read("qwen3", text)
    assert found[:3] == ("one\n\ntwo", "Hello World", [("f", '{"a": 4}')])


def test_without_a_tool_half_calls_are_text() -> None:
    text = f"<think>one</think>\n\nHello <think>two</think> World\n{CALL}"
    assert read("qwen3", text, "reasoning")[:3] == ("one\n\ntwo", f"Hello World\n{CALL}", [])


def test_without_a_reasoning_half_thoughts_are_text_and_their_calls_drafts() -> None:
    text = f"<think>\none {CALL}\n</think>\n\nHello <think>two</think> World{CALL}"
    expected = f"<think>\none {CALL}\n</think>\n\nHello <think>two</think> World"
    for format in ("qwen3", "auto"):
        assert read(format, text, "tools")[:3] == ("", expected, [("f", '{"a": 4}')])
    # The prompt opened it: that is not shown to a tool parser.
    assert read("qwen3", f"one</think>Hello{CALL}", "tools")[:2] == ("", "one</think>Hello")
    assert read("qwen3_thinking", f"one</think>Hello{CALL}", "tools")[:2] == ("", "one</think>Hello")
    # A thought that a call ends has no closer, and none is put there.
    assert read("qwen3", f"<think>one{CALL}", "tools")[:3] == ("", "<think>one", [("f", '{"a": 4}')])
    assert read("qwen3", "<think>one", "tools")[:2] == ("", "<think>one")


def test_calls_in_thinking() -> None:
    """The turn ends with it: a call. Anything follows: a draft."""
    assert read("qwen3", f"<think>I call{CALL}")[:3] == ("I call", "", [("f", '{"a": 4}')])
    assert read("qwen3", f"<think>I call{CALL} or not</think>No.")[:3] == (f"I call{CALL} or not", "No.", [])


@pytest.mark.parametrize("halves", ["both", "reasoning", "tools"])
def test_text_without_markers_comes_back_untouched(halves: str) -> None:
    for text in (" \n Hello,\n\n  World! \n", "a < b", "x", "\n\n"):
        assert read("qwen3", text, halves).content == text


@pytest.mark.parametrize("halves", ["both", "reasoning"])
def test_the_prompt_says_where_the_reply_begins(halves: str) -> None:
    header = "<|im_start|>user\n</think>?<|im_end|>\n<|im_start|>assistant\n"
    # Opened: also where the reply is cut off.
    assert read("qwen3", "a plan", halves, header + "<think>\n")[:2] == ("a plan", "")
    assert read("qwen3", "a plan</think>Yes.", halves, header + "<think>\n")[:2] == ("a plan", "Yes.")
    # Closed.
    assert read("qwen3_thinking", "Yes.", halves, header + "<think>\n\n</think>\n\n")[:2] == ("", "Yes.")
    # Neither: the model opens thoughts by itself.
    assert read("qwen3", "<think>a plan</think>Yes.", halves, header)[:2] == ("a plan", "Yes.")
    assert read("qwen3", "Yes.", halves, header)[:2] == ("", "Yes.")


def test_a_whole_reply_whose_prompt_nobody_has_seen() -> None:
    """As in `asides.parse`: a lone closer shows that the prompt had opened the thought."""
    request = request_for()
    for halves in ("both", "reasoning"):
        assert whole(parser_of("qwen3", request, halves), request, "a plan</think>Yes.")[:2] == ("a plan", "Yes.")
    # The request itself says that there is none.
    parser = parser_of("qwen3_thinking", request, chat_template_kwargs={"enable_thinking": False})
    assert whole(parser, request, "Yes.")[:2] == ("", "Yes.")


def test_a_broken_call_is_not_lost() -> None:
    """It is text, but in a stream, which has begun to send it: there it has the characters that the model wrote."""
    cut = '<tool_call>{"name": "f", "arguments": {"a": "x'
    request = request_for()
    for halves, left in (("both", f"Hm.\n{cut.removeprefix('<tool_call>')}"), ("tools", f"Hm. {cut}")):
        assert read("qwen3", f"Hm. {cut}", halves)[1:3] == (left, [])
        streamed = stream(parser_of("qwen3", request, halves), request, list(f"Hm. {cut}"), [1, 2])
        assert streamed[1:3] == ("Hm.", [("f", '{"a": "x')])
    # In a thought that nothing has closed it is the end of the thought.
    assert read("qwen3", f"<think>Hm. {cut}")[:3] == (f"Hm.\n{cut}", "", [])
    found = read("qwen3", "Hm. <tool_call>what is this</tool_call>")
    assert found.calls == []
    assert "what is this" in found.content


def test_without_tools_calls_are_text() -> None:
    for fields in ({"tools": None}, {"tool_choice": "none"}):
        found = read("qwen3", f"<think>one</think>Hello {CALL}", **fields)
        assert found[:3] == ("one", f"Hello {CALL}", [])


def test_tool_choice_that_demands_a_call() -> None:
    named = {"type": "function", "function": {"name": "f"}}
    for choice in ("required", named):
        assert read("qwen3", f"<think>one</think>{CALL}", tool_choice=choice)[:3] == ("one", "", [("f", '{"a": 4}')])


def test_types_come_from_the_tools_of_the_request() -> None:
    call = "<tool_call>\n<function=f>\n<parameter=a>\n4\n</parameter>\n</function>\n</tool_call>"
    assert read("qwen3_coder", call).calls == [("f", '{"a": 4}')]
    text = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}}]
    assert read("qwen3_coder", call, tools=text).calls == [("f", '{"a": "4"}')]


def test_two_formats_make_one() -> None:
    """The thoughts of one, the calls of another."""
    request = request_for()
    made = ParserManager.get_parser("asides_hermes", "asides_deepseek_r1", True, tokenizer=tokenizer(TOKENS))
    text = f"one</think>Hello {CALL}"
    found = stream(
        made(tokenizer(TOKENS), request.tools), request, list(text), encode(TOKENS, "<｜Assistant｜><think>\n")
    )
    assert found[:3] == ("one", "Hello", [("f", '{"a": 4}')])
    with pytest.raises(TypeError, match="cannot be combined"):
        ParserManager.get_parser("asides_hermes", "asides_muse", True, tokenizer=tokenizer(TOKENS))


def test_replies_at_the_same_time_do_not_mix() -> None:
    """A parser for each choice, made one after the other and fed in turns."""
    request = request_for()
    parsers = [parser_of("qwen3", request) for _ in range(3)]
    texts = [f"<think>{number}</think>Hello {number} <think>again</think>!" for number in range(3)]
    contents = [""] * 3
    for place in range(len(texts[0])):
        for number, parser in enumerate(parsers):
            finished = place + 1 == len(texts[0])
            delta = parser.parse_delta(texts[number][place], [], request, [1, 2], finished=finished)
            contents[number] += (delta.content if delta is not None else None) or ""
    assert contents == ["Hello 0 !", "Hello 1 !", "Hello 2 !"]


FRAGMENTS = (
    "<think>", "</think>", "<think>\n", "\n</think>\n\n", CALL, f"\n{CALL}\n", CALL[:30], "<tool_call>", "</tool_call>",
    "Hello", " World", "\n", "`", "```\n", "<", "{", "<|im_end|>", "é 你好",
)  # fmt: skip


@pytest.mark.parametrize("halves", ["both", "reasoning", "tools"])
@pytest.mark.parametrize("format", ["qwen3", "qwen3_thinking", "auto"])
def test_a_stream_is_the_whole_however_it_is_cut(format: str, halves: str) -> None:
    """Also of output that makes no sense. What is no marker is in the thoughts, the text or the calls."""
    numbers = random.Random(7)
    for _ in range(60):
        text = "".join(numbers.choices(FRAGMENTS, k=numbers.randint(1, 9)))
        found = read(format, text, halves, "<|im_start|>assistant\n")
        for word in ("Hello", "World", "你好"):
            assert text.count(word) == f"{found.reasoning} {found.content} {found.calls}".count(word)


def test_time_grows_with_the_length() -> None:
    """An XML argument in pieces of four characters: four times as long takes four times as many calls of functions."""
    costs = []
    for size in (2_000, 8_000):
        request = request_for()
        parser = parser_of("qwen3_coder", request)
        chunks = [LONG_CALL.format("x = 1\n" * (size // 6))[at : at + 4] for at in range(0, size, 4)]
        costs.append(count_calls(lambda: stream(parser, request, chunks, [1, 2])))  # noqa: B023
    assert costs[1] < 4.2 * costs[0]


LONG_CALL = "<tool_call>\n<function=f>\n<parameter=code>\n{}</parameter>\n</function>\n</tool_call>"


# Ids.

HOMES = {
    "qwen3": "qwen3",
    "deepseek_v3": "deepseek_v31",
    "deepseek_v4": "deepseek_v4",
    "kimi_k2": "kimi_k2",
    "glm4": "glm45",
}
"""Tokenizers with tokens for `<think>` and `</think>`, each with a format whose header is a token too."""


def half_of(format: str, name: str, **kwargs: Any) -> Any:
    return ReasoningParserManager.get_reasoning_parser(f"asides_{format}")(tokenizer(name), **kwargs)


@pytest.mark.parametrize("name", HOMES)
def test_whether_a_prompt_ends_thinking(name: str) -> None:
    header = asides.get_format(HOMES[name]).assistant[0]
    earlier = f"Hi </think> {header}<think>old</think>Hello. And? "

    def ends(text: str, **kwargs: Any) -> bool:
        return bool(half_of(HOMES[name], name, **kwargs).is_reasoning_end(encode(name, text)))

    assert not ends(earlier + header)
    assert not ends(earlier + header + "<think>\n")
    assert not ends(earlier + header + "<think>\na plan")
    assert ends(earlier + header + "<think>\n\n</think>\n\n")
    assert ends(earlier + header + "<think>a plan</think>Yes")
    assert ends(earlier + header + "</think>")
    assert ends(earlier + header + "The answer is")  # begun by the caller
    assert not ends("a plan")  # a reply without its prompt
    assert ends("a plan</think>Yes")
    switch = switch_of(HOMES[name])
    if switch is not None and switch.off is not None:
        assert ends(header, chat_template_kwargs={switch.keyword: switch.off})


@pytest.mark.parametrize("name", HOMES)
def test_thinking_ends_with_the_closing_token(name: str) -> None:
    format = HOMES[name]
    half = half_of(format, name)
    ids = encode(name, asides.get_format(format).assistant[0] + "<think>\n")
    reply = encode(name, f"I say `x` {CALL} first</think>\n\nYes, <think>a second</think> yes.")
    close = encode(name, "</think>")[0]
    first = reply.index(close)
    for number, id in enumerate(reply):
        ids.append(id)
        assert half.is_reasoning_end_streaming(ids, [id]) == (id == close)
        if number <= first:
            assert half.is_reasoning_end(ids) == (number == first)
    # Several at once, as with speculative decoding.
    assert half.is_reasoning_end_streaming(ids[: -len(reply)] + reply[: first + 3], reply[first - 2 : first + 3])
    assert not half.is_reasoning_end_streaming(ids[: -len(reply)] + reply[:first], reply[first - 3 : first])


def test_thinking_ends_with_a_closer_that_is_spelled_out() -> None:
    """gpt-oss's tokenizer has no token for it."""
    half = half_of("qwen3", "gpt-oss")
    ids = encode("gpt-oss", "<|im_start|>assistant\n<think>\n")
    reply = encode("gpt-oss", "a plan, b < c</think>\n\nYes.")
    texts = [asides.TokenParser(tokenizer("gpt-oss"))._vocabulary.text(reply[: at + 1]) for at in range(len(reply))]
    last = next(at for at, text in enumerate(texts) if "</think>" in text)
    for number, id in enumerate(reply):
        ids.append(id)
        assert half.is_reasoning_end_streaming(ids, [id]) == (number == last)


def test_thinking_ends_with_the_header_of_the_answer() -> None:
    half = half_of("harmony", "gpt-oss")
    ids = encode("gpt-oss", "<|start|>user<|message|>?<|end|><|start|>assistant")
    assert not half.is_reasoning_end(ids)
    reply = "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>Yes."
    message = encode("gpt-oss", "<|message|>")[0]
    for id in encode("gpt-oss", reply):
        ids.append(id)
        ends = id == message and ids.count(message) == 3
        assert half.is_reasoning_end_streaming(ids, [id]) == ends
        assert half.is_reasoning_end(ids) == (ids.count(message) == 3)


def test_a_format_without_thinking_is_always_past_it() -> None:
    assert half_of("passthrough", TOKENS).is_reasoning_end([1, 2, 3])


def test_a_tokenizer_of_transformers_as_vllm_wraps_it() -> None:
    wrapped = get_cached_tokenizer(PreTrainedTokenizerFast(tokenizer_object=tokenizer("deepseek_v4")))
    half = ReasoningParserManager.get_reasoning_parser("asides_deepseek_v31")(wrapped)
    prompt = "<｜User｜>?<｜Assistant｜>"
    for end, over in (("", False), ("<think>", False), ("</think>", True), ("<think>a</think>b", True)):
        ids = wrapped.encode(prompt + end, add_special_tokens=False)
        assert half.is_reasoning_end(ids) == over
        assert half.is_reasoning_end_streaming(ids, ids[-1:]) == (end == "</think>")
    ids = wrapped.encode("<think>a b</think>c", add_special_tokens=False)
    half = type(half)(wrapped)
    assert half.count_reasoning_tokens(ids) == 2
    assert wrapped.decode(half.extract_content_ids(ids)) == "c"


def test_auto_takes_the_format_that_the_name_of_the_model_shows() -> None:
    half = ReasoningParserManager.get_reasoning_parser("asides")
    for model, format in (("deepseek-ai/DeepSeek-R1", "deepseek_r1"), ("/models/Qwen3-8B", "qwen3"), ("mine", "auto")):
        made = half(tokenizer(TOKENS), model_config=SimpleNamespace(model=model))
        assert made.shared.format.name == format


def test_responses_are_read_as_chat_completions_are() -> None:
    tool = {"type": "function", "name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}
    request = ResponsesRequest.model_validate({"model": "m", "input": "?", "tools": [tool]})
    call = "<tool_call>\n<function=f>\n<parameter=a>\n4\n</parameter>\n</function>\n</tool_call>"
    text = f"<think>one</think>Hello <think>two</think> World {call}"
    parsers = [class_of("qwen3", "both")(tokenizer(TOKENS), request.tools) for _ in range(2)]
    assert parsers[0].adjust_request(request).skip_special_tokens is False
    found = stream(parsers[0], request, list(text), [1, 2])
    assert found[:3] == ("one\n\ntwo", "Hello World", [("f", '{"a": "4"}')])
    reasoning, content, calls = parsers[1].parse(text, request, enable_auto_tools=True)
    assert (reasoning, content, calls[0].arguments) == (*found[:2], found.calls[0][1])


def test_a_tool_parser_of_another_beside_ours(caplog: pytest.LogCaptureFixture) -> None:
    """It gets the calls of a whole reply. In a stream it would not: nothing is lost, and a warning says so."""
    request = request_for()
    made = ParserManager.get_parser("hunyuan_a13b", "asides_hunyuan_a13b", True)
    text = '<think>one</think>Hello <tool_calls>[{"name": "f", "arguments": {"a": 4}}]</tool_calls>'
    found = whole(made(tokenizer(TOKENS), request.tools), request, text)
    assert (found.reasoning, [name for name, _ in found.calls]) == ("one", ["f"])
    streamed = stream(made(tokenizer(TOKENS), request.tools), request, list(text), [1, 2])
    assert streamed[:3] == ("one", text.removeprefix("<think>one</think>"), [])
    assert [record.getMessage() for record in caplog.records].count(caplog.messages[-1]) == 1
    assert "--tool-call-parser asides" in caplog.messages[-1]


def test_a_long_prompt_is_not_read_again_for_each_reply() -> None:
    half = half_of("qwen3", "qwen3")
    end = encode("qwen3", "<|im_start|>assistant\n<think>\n")
    word = encode("qwen3", " word")
    assert count_calls(lambda: half.is_reasoning_end(word * 100 + end)) > 0.9 * count_calls(
        lambda: half.is_reasoning_end(word * 100_000 + end)
    )
    ids = word * 100_000
    assert count_calls(lambda: half.is_reasoning_end_streaming(ids, ids[-1:])) < 20


@pytest.mark.parametrize("name", HOMES)
def test_ids_of_thoughts_and_of_the_rest(name: str) -> None:
    thoughts, rest = ["\na plan", "another"], ["\n\nYes", " and", " no."]
    pieces = ["<think>", thoughts[0], "</think>", rest[0], "<think>", thoughts[1], "</think>", rest[1] + rest[2]]
    ids = [id for piece in pieces for id in encode(name, piece)]
    half = half_of(HOMES[name], name)
    content = [id for piece in (rest[0], rest[1] + rest[2]) for id in encode(name, piece)]
    assert half.extract_content_ids(ids) == content
    count = sum(len(encode(name, thought)) for thought in thoughts)
    assert half.count_reasoning_tokens(tuple(ids)) == count
    counts = [half.count_reasoning_tokens(tuple(ids[: at + 1])) for at in range(len(ids))]
    assert counts == sorted(counts)
    assert counts[-1] == count


def test_ids_are_counted_from_where_the_prompt_leaves_the_model() -> None:
    half = half_of("qwen3", "qwen3")
    half.is_reasoning_end(encode("qwen3", "<|im_start|>assistant\n<think>\n"))
    assert half.count_reasoning_tokens(encode("qwen3", "one two three")) == 3  # cut off


def test_a_grammar_begins_behind_the_thought() -> None:
    """vLLM's own scheduler code finds the place, with one token at a time and with speculative ones."""
    manager = StructuredOutputManager.__new__(StructuredOutputManager)
    manager.enable_in_reasoning = False
    manager.tokenizer = tokenizer("qwen3")
    manager.reasoner_cls = ReasoningParserManager.get_reasoning_parser("asides_qwen3")
    prompt = encode("qwen3", "<|im_start|>assistant\n<think>\n")
    reply = encode("qwen3", 'a plan</think>{"a": 4}')
    place = reply.index(encode("qwen3", "</think>")[0])
    waiting = SimpleNamespace(reasoning_ended=None, reasoner=None, reasoning_parser_kwargs={"chat_template_kwargs": {}})
    request = SimpleNamespace(structured_output_request=waiting, prompt_token_ids=prompt, all_token_ids=list(prompt))
    for number, id in enumerate(reply[: place + 1]):
        ahead = manager._get_constraint_bounds(request, reply[number:])
        assert ahead == (place - number + 1,) * 2
        bounds = manager._get_constraint_bounds(request, [id])
        assert bounds == ((1, 1) if number == place else (2, 2))
        request.all_token_ids.append(id)
    # A prompt that closes thinking: from the first token on.
    waiting.reasoning_ended = None
    request.prompt_token_ids = prompt + encode("qwen3", "\n</think>\n\n")
    assert manager._get_constraint_bounds(request, reply) == (0, 0)


# Requests.


@pytest.mark.parametrize("halves", ["both", "reasoning", "tools"])
def test_the_request_asks_for_markers(halves: str) -> None:
    request = request_for()
    assert request.skip_special_tokens
    adjusted = parser_of("qwen3", request, halves).adjust_request(request)
    assert adjusted.skip_special_tokens is False
    assert adjusted.structured_outputs is None


def test_a_required_call_is_made_certain_by_a_grammar() -> None:
    named = {"type": "function", "function": {"name": "f"}}
    other = {"type": "function", "function": {"name": "g", "parameters": {"properties": {}}}}
    for choice in ("required", named):
        request = request_for([*TOOLS, other], tool_choice=choice)
        request = parser_of("qwen3", request).adjust_request(request)
        grammar = grammar_of(request)
        assert accepts(grammar, CALL)
        assert not accepts(grammar, "No.")
        assert not accepts(grammar, "<think>one</think>No.")
        assert accepts(grammar, CALL.replace('"f"', '"g"').replace('"a": 4', "")) == (choice == "required")


def test_a_required_call_that_cannot_be_made_certain_is_refused() -> None:
    for format in ("auto", "pythonic", "mistral"):
        request = request_for(tool_choice="required")
        with pytest.raises(VLLMValidationError, match="tool_choice"):
            parser_of(format, request).adjust_request(request)


def test_strict_tools_are_held_to_their_schemas(caplog: pytest.LogCaptureFixture) -> None:
    """As the request says so: `auto` too, where a call is free to come, or one alone if no more are wanted."""
    strict = [{"type": "function", "function": {**TOOLS[0]["function"], "strict": True}}]
    wrong = CALL.replace('"a": 4', '"a": "x"')
    for fields, two in (({}, True), ({"parallel_tool_calls": False}, False)):
        request = request_for(strict, **fields)
        grammar = grammar_of(parser_of("qwen3", request).adjust_request(request))
        assert accepts(grammar, "No.")
        assert accepts(grammar, f"Well. {CALL}")
        assert not accepts(grammar, f"Well. {wrong}")
        assert accepts(grammar, f"{CALL}\n{CALL}") == two
    request = request_for(strict)
    with caplog.at_level("WARNING", "asides.plugins.vllm"):
        assert parser_of("auto", request).adjust_request(request).structured_outputs is None
    assert "not held to a grammar: auto has no structural tag" in caplog.text


def test_strict_tools_beside_a_schema_for_the_answer() -> None:
    """vLLM then asks for the grammar of a required call. If there is none, the schema holds and nothing is refused."""
    strict = [{"type": "function", "function": {**TOOLS[0]["function"], "strict": True}}]
    schema = {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    answer = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    request = request_for(strict, response_format=answer)
    grammar = grammar_of(parser_of("qwen3", request).adjust_request(request))
    assert accepts(grammar, CALL)
    assert accepts(grammar, '{"b": 4}')
    assert not accepts(grammar, "No.")
    request = request_for(strict, response_format=answer)
    assert parser_of("auto", request).adjust_request(request).response_format is not None
    request = request_for(strict, response_format=answer, tool_choice="required")
    with pytest.raises(VLLMValidationError, match="tool_choice"):
        parser_of("auto", request).adjust_request(request)


def grammar_of(request: ChatCompletionRequest) -> Any:
    """The grammar that a request was given, as vLLM's backend takes it."""
    validate_xgrammar_grammar(SamplingParams(structured_outputs=request.structured_outputs))
    return xgrammar.Grammar.from_structural_tag(json.loads(request.structured_outputs.structural_tag))


def test_thinking_budgets_find_the_markers() -> None:
    half = half_of("seed_oss", TOKENS)
    assert (half.reasoning_start_str, half.reasoning_end_str) == ("<seed:think>", "</seed:think>")
    auto = ReasoningParserManager.get_reasoning_parser("asides")(tokenizer(TOKENS))
    assert (auto.reasoning_start_str, auto.reasoning_end_str) == (None, None)


# vLLM's own server code around the parsers.


PROMPT = "<|im_start|>assistant\n<think>\n"
PIECES = ["one", "</think>", "\n\nHello", " <think>", "two", "</think>", " World", *CALL.splitlines(keepends=True)]


def without_engine(server: Any) -> Any:
    """One of vLLM's servers, without an engine: what it has generated is given to it."""
    chat = server.__new__(server)
    chat.parser_cls = chat.parser = class_of("qwen3", "both")
    chat.model_config = None
    chat.response_role = "assistant"
    chat.enable_auto_tools = chat._include_reasoning_tokens_details = True
    chat.enable_force_include_usage = chat.enable_prompt_tokens_details = chat.enable_per_request_metrics = False
    chat.enable_log_outputs = chat.use_harmony = chat._merge_inline_system = False
    chat.request_logger = chat.system_fingerprint = chat.chat_template = chat.tool_server = None
    chat.chat_template_content_format = "auto"
    chat.default_chat_template_kwargs = {}
    return chat


async def generated(chunks: Sequence[str], choice: int = 0, end: str = "stop") -> AsyncIterator[Any]:
    """What the engine gives: a piece of text, and its ids."""
    for number, chunk in enumerate(chunks, 1):
        reason = end if number == len(chunks) else None
        output = CompletionOutput(choice, chunk, encode("qwen3", chunk), None, None, finish_reason=reason)
        yield RequestOutput("r", None, encode("qwen3", PROMPT), None, [output], finished=reason is not None)


async def streamed_by(chat: Any, request: ChatCompletionRequest, outputs: AsyncIterator[Any]) -> AsyncIterator[str]:
    """The frames of a chat completion."""
    metadata = RequestResponseMetadata(request_id="id")
    frames = chat.chat_completion_stream_generator(request, outputs, "id", "m", [], tokenizer("qwen3"), metadata)
    async for frame in frames:
        yield frame


async def completed_by(chat: Any, request: ChatCompletionRequest, outputs: AsyncIterator[Any]) -> Any:
    """A whole chat completion."""
    parser = chat._make_parser(request, tokenizer("qwen3"), {})
    # As before each generation: the engine is told whether thinking is over.
    told = chat._engine_reasoning_kwargs(request, parser, {}, encode("qwen3", PROMPT))
    assert told["reasoning_ended"] is (not request.include_reasoning)
    metadata = RequestResponseMetadata(request_id="id")
    return await chat.chat_completion_full_generator(
        request, outputs, "id", "m", [], tokenizer("qwen3"), metadata, parser
    )


async def all_of(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


def test_the_server_streams_thoughts_answers_and_calls() -> None:
    request = request_for(stream=True, stream_options={"include_usage": True})
    frames = asyncio.run(all_of(streamed_by(without_engine(OpenAIServingChat), request, generated(PIECES))))
    assert frames.pop() == "data: [DONE]\n\n"
    bodies = [json.loads(frame.removeprefix("data: ")) for frame in frames]
    choices = [choice for body in bodies for choice in body["choices"]]
    deltas = [choice["delta"] for choice in choices]
    assert "".join(delta.get("reasoning") or "" for delta in deltas) == "one\n\ntwo"
    assert "".join(delta.get("content") or "" for delta in deltas) == "Hello World"
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert calls[0]["function"]["name"] == "f"
    assert "".join(call["function"].get("arguments") or "" for call in calls) == '{"a": 4}'
    assert choices[-1]["finish_reason"] == "tool_calls"
    assert bodies[-1]["usage"]["completion_tokens_details"]["reasoning_tokens"] == 2


def test_the_server_answers_whole() -> None:
    chat = without_engine(OpenAIServingChat)
    reply = asyncio.run(completed_by(chat, request_for(), generated(["".join(PIECES)])))
    message = reply.choices[0].message
    assert (message.reasoning, message.content) == ("one\n\ntwo", "Hello World")
    assert [call.function.arguments for call in message.tool_calls] == ['{"a": 4}']
    assert reply.choices[0].finish_reason == "tool_calls"
    assert reply.usage.completion_tokens_details.reasoning_tokens == 2


def test_the_server_shows_the_prompt_to_each_choice() -> None:
    """Also one that is cut off in the thought that the prompt has opened, which nothing in it shows."""
    chat, texts = without_engine(OpenAIServingChat), ["one</think>Yes.", "a plan", f"two</think>{CALL}"]
    expected = [("one", "Yes.", 0, 1), ("a plan", "", 0, 2), ("two", "", 1, 1)]

    async def outputs(pieces: list[list[str]]) -> AsyncIterator[Any]:
        for choice, chunks in enumerate(pieces):
            async for output in generated(chunks, choice):
                yield output

    async def joined() -> AsyncIterator[Any]:
        several = [output async for output in outputs([[text] for text in texts])]
        several[0].outputs = [output.outputs[0] for output in several]
        yield several[0]

    reply = asyncio.run(completed_by(chat, request_for(n=3), joined()))
    messages = [choice.message for choice in reply.choices]
    found = [(message.reasoning or "", message.content or "", len(message.tool_calls)) for message in messages]
    assert found == [each[:3] for each in expected]
    assert reply.usage.completion_tokens_details.reasoning_tokens == sum(each[3] for each in expected)
    # Another request has another prompt, which nobody has shown.
    other = chat._make_parser(request_for(), tokenizer("qwen3"), {})
    assert other.parse("a plan", request_for(), enable_auto_tools=True)[:2] == (None, "a plan")

    request = request_for(n=3, stream=True)
    frames = asyncio.run(all_of(streamed_by(chat, request, outputs([list(text) for text in texts]))))
    streamed = [["", "", 0] for _ in texts]
    for frame in frames[:-1]:
        for choice in json.loads(frame.removeprefix("data: "))["choices"]:
            fields = streamed[choice["index"]]
            fields[0] += choice["delta"].get("reasoning") or ""
            fields[1] += choice["delta"].get("content") or ""
            fields[2] += sum("id" in call for call in choice["delta"].get("tool_calls", ()))
    assert streamed == [list(each[:3]) for each in expected]


CALL_ITEM = {"type": "function", "name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}


def respond(chunks: Sequence[str], **fields: Any) -> Any:
    """What vLLM's server of Responses makes of a reply: the response, or the events of a stream."""
    request = ResponsesRequest.model_validate(
        {"model": "m", "input": "?", "tools": [CALL_ITEM], "store": False} | fields
    )
    server = without_engine(OpenAIServingResponses)
    context = SimpleContext(response_parser=server._make_response_parser(request, tokenizer("qwen3"), {}))

    async def contexts() -> AsyncIterator[SimpleContext]:
        async for output in generated(chunks):
            context.append_output(output)
            yield context

    async def run() -> Any:
        metadata = RequestResponseMetadata(request_id="id")
        given = (request, SamplingParams(), contexts(), context, "m", tokenizer("qwen3"), metadata)
        if request.stream:
            return await all_of(server.responses_stream_generator(*given))
        return await server.responses_full_generator(*given)

    return asyncio.run(run())


def test_the_server_of_responses_writes_items() -> None:
    response = respond(["".join(PIECES)])
    thought, text, call = response.output
    assert (thought.content[0].text, text.content[0].text) == ("one\n\ntwo", "Hello World")
    assert (call.name, call.arguments) == ("f", '{"a": 4}')
    assert response.usage.output_tokens_details.reasoning_tokens == 2


def test_the_server_of_responses_streams_items_in_their_order() -> None:
    """A second thought is an item of its own, at its place."""
    events = respond(PIECES, stream=True)
    items = [event.item for event in events if event.type == "response.output_item.done"]
    assert [item.type for item in items] == ["reasoning", "message", "reasoning", "message", "function_call"]
    assert [item.content[0].text for item in items[:4]] == ["one", "Hello", "\n\ntwo", " World"]
    assert (items[4].name, items[4].arguments) == ("f", '{"a": 4}')
    response = events[-1].response
    assert response.output == items
    assert response.usage.output_tokens_details.reasoning_tokens == 2


def message_of(chunks: Sequence[str], end: str = "stop", **fields: Any) -> Any:
    """What vLLM's server of Anthropic's messages makes of a reply: the message, or the events of a stream."""
    tool = {"name": "f", "input_schema": TOOLS[0]["function"]["parameters"]}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}], "tools": [tool]}
    server = without_engine(AnthropicServingMessages)

    async def create(request: ChatCompletionRequest, _: Any) -> Any:
        run = streamed_by if request.stream else completed_by
        made: Any = run(server, request, generated(chunks, end=end))
        return made if request.stream else await made

    server.create_chat_completion = create

    async def run() -> Any:
        found = await server.create_messages(AnthropicMessagesRequest.model_validate(body | fields))
        if not fields.get("stream"):
            return found
        return [json.loads(event.partition("data: ")[2]) async for event in found]

    return asyncio.run(run())


def test_the_server_of_messages_writes_blocks() -> None:
    message = message_of(["".join(PIECES)])
    thought, text, call = message.content
    assert (thought.thinking, text.text, call.name, call.input) == ("one\n\ntwo", "Hello World", "f", {"a": 4})
    assert message.stop_reason == "tool_use"


def test_the_server_of_messages_streams_blocks_in_their_order() -> None:
    events = message_of(PIECES, stream=True)
    kinds = [event["content_block"]["type"] for event in events if event["type"] == "content_block_start"]
    assert kinds == ["thinking", "text", "thinking", "text", "tool_use"]
    written = [""] * len(kinds)
    for event in events:
        if event["type"] == "content_block_delta":
            delta = event["delta"]
            written[event["index"]] += delta.get("thinking") or delta.get("text") or delta.get("partial_json") or ""
    assert written == ["one", "Hello", "\n\ntwo", " World", '{"a": 4}']
    assert next(event["delta"] for event in events if event["type"] == "message_delta")["stop_reason"] == "tool_use"


def test_the_server_of_messages_survives_a_call_that_was_cut_off() -> None:
    """It decodes the arguments of every call of a whole reply."""
    message = message_of([f"one</think>Hello {CALL[:-20]}"], end="length")
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[1].text == f"Hello\n{CALL[:-20].removeprefix('<tool_call>').strip()}"
    assert message.stop_reason == "max_tokens"


def test_the_page(tmp_path: Path) -> None:
    check_examples("vllm", tmp_path)
    check_tried("vllm", "vllm")
