"""asides inside SGLang's own parsers, as its server uses them: found by its loader, made by its classes."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.host import HOST, check_examples, require_module

require_module("sglang")

from sglang.srt import plugins as sglang_plugins
from sglang.srt.entrypoints.openai.protocol import ChatCompletionRequest, Tool
from sglang.srt.environ import envs
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.parser.reasoning_parser import ReasoningParser
from tokenizers import Tokenizer, models, pre_tokenizers

import asides
from asides.families._registry import switch_of
from asides.plugins.sglang import register
from tests.plugins.sglang_server import TEMPLATE, Handler
from tests.plugins.stages import DIFFERENT, Outcome, Reply, check, replies
from tests.support import check_each, count_calls

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS = [Tool(type="function", function={"name": "get_weather", "parameters": WEATHER})]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "<think>"}}\n</tool_call>'
XML_CALL = (
    "<tool_call>\n<function=get_weather>\n<parameter=city>\n{}\n</parameter>\n"
    "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
)


@pytest.fixture(autouse=True, scope="module")
def _plugged_in() -> None:
    """As in every process of SGLang: its loader finds us. Without an installed wheel there is nothing to find."""
    if HOST:
        sglang_plugins.load_plugins()
    else:
        register()


def request(**fields: Any) -> ChatCompletionRequest:
    """A request to the server."""
    return ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "hi"}], **fields)


def stream(thoughts: ReasoningParser, calls: FunctionCallParser | None, chunks: Iterable[str]) -> Outcome:
    """A streamed reply, as `OpenAIServingChat` drives its parsers: the last chunk is followed by the ends of both."""
    thinking: list[str] = []
    text: list[str] = []
    found: dict[int, list[str]] = {}

    def add(rest: str, end: bool = False) -> None:
        if calls is None:
            text.append(rest)
            return
        words, items = calls.parse_stream_chunk(rest)
        last_words, last_items = calls.parse_stream_end() if end else ("", [])
        text.append(words + last_words)
        for item in [*items, *last_items]:
            assert (item.name is None) == (item.tool_index in found), "the name comes first, and once"
            assert not (item.name and item.parameters), "the name comes alone"
            name, arguments = found.setdefault(item.tool_index, ["", ""])
            found[item.tool_index] = [name + (item.name or ""), arguments + item.parameters]

    for chunk in chunks:
        reasoning, rest = thoughts.parse_stream_chunk(chunk)
        thinking.append(reasoning or "")
        add(rest or "")
    reasoning, rest = thoughts.parse_stream_end()
    thinking.append(reasoning or "")
    add(rest or "", end=True)
    unfinished = set(calls.detector.incomplete_tool_call_indices) if calls else set()
    assert list(found) == list(range(len(found)))
    return Outcome("".join(thinking), "".join(text), [(name, args) for name, args in found.values()], unfinished)


def whole(thoughts: ReasoningParser, calls: FunctionCallParser, text: str) -> Outcome:
    """A whole reply, as `OpenAIServingChat` reads it: for calls only where there may be some."""
    thinking, rest = thoughts.parse_non_stream(text)
    if not calls.has_tool_call(rest or ""):
        return Outcome(thinking or "", rest or "", [], set())
    words, items = calls.parse_non_stream(rest or "")
    return Outcome(thinking or "", words, [(item.name or "", item.parameters) for item in items], set())


def test_the_loader_found_us() -> None:
    """By the entry point of the installed wheel, in a process that has never heard of asides."""
    if not HOST:
        pytest.skip("asides is not installed: make test-plugin-sglang")
    code = (
        "from sglang.srt.plugins import load_plugins; load_plugins();"
        "from sglang.srt.server_args import ServerArgs; import argparse;"
        "parser = argparse.ArgumentParser(); ServerArgs.add_cli_args(parser);"
        "flags = {action.dest: action.choices for action in parser._actions if action.choices};"
        "print(*[name for name in flags['reasoning_parser'] if name.startswith('asides')]);"
        "print(*[name for name in flags['tool_call_parser'] if name.startswith('asides')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = " ".join("asides" if name == "auto" else f"asides_{name}" for name in asides.formats())
    assert run.stdout.splitlines()[-2:] == [expected, expected]


def test_every_format_is_in_both_registries() -> None:
    for name in asides.formats():
        name = "asides" if name == "auto" else f"asides_{name}"
        assert ReasoningParser(name).detector is not None
        assert FunctionCallParser(TOOLS, name).detector is not None


def test_sglangs_own_names_are_as_they_were() -> None:
    from sglang.srt.function_call.parser_names import TOOL_CALL_PARSER_NAMES
    from sglang.srt.parser.reasoning_parser_names import REASONING_PARSER_NAMES

    own = [name for name in ReasoningParser.DetectorMap if not name.startswith("asides")]
    assert sorted(own) == sorted(REASONING_PARSER_NAMES)
    own = [name for name in FunctionCallParser.ToolCallParserEnum if not name.startswith("asides")]
    assert sorted(own) == sorted(TOOL_CALL_PARSER_NAMES)


def test_a_name_that_nobody_has_is_sglangs_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="Unsupported model type: asides_qwen33"):
        ReasoningParser("asides_qwen33")
    with pytest.raises(ValueError, match="Unsupported tool_call_parser: asides_qwen33"):
        FunctionCallParser(TOOLS, "asides_qwen33")
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    for flag in ("--reasoning-parser", "--tool-call-parser"):
        with pytest.raises(SystemExit):
            parser.parse_args(["--model-path", "m", flag, "asides_qwen33"])
        last = capsys.readouterr().err.rstrip().rpartition("\n")[2].replace("'", "")  # which newer Pythons leave out
        assert f"error: argument {flag}: invalid choice: asides_qwen33 (choose from auto," in last
        assert all(f"asides_{name}" in last for name in asides.formats() if name != "auto")


def parsers_of(reply: Reply) -> tuple[ReasoningParser, FunctionCallParser]:
    """What the server makes for a request."""
    name = "asides" if reply.format.name == "auto" else f"asides_{reply.format.name}"
    tools = [Tool(type="function", function=tool["function"]) for tool in reply.tools]
    start, prompt = reply.options.get("start"), reply.options.get("prompt")
    forced = {"text": False, "thinking": True}.get(start or "")
    # An explicit start wins over a prompt; to SGLang's detectors of this kind the prompt does.
    prefix = "" if prompt is None or start else prompt
    asked = request(tools=[tool.model_dump() for tool in tools])
    return ReasoningParser(name, True, forced, asked, prefix=prefix), FunctionCallParser(tools, name)


def check_reply(reply: Reply) -> None:
    message = reply.message(True)
    found = whole(*parsers_of(reply), reply.text)
    check(reply, found, message, whole=True)
    message = reply.message(False)
    for chunks in reply.cuts():
        check(reply, stream(*parsers_of(reply), chunks), message, whole=False)


def can_be_asked(reply: Reply) -> bool:
    """Whether SGLang has a way to put the case."""
    # Where thinking cannot be switched off, that it was is not believed.
    refused = reply.options.get("start") == "text" and reply.format.start == "thinking" and not switch_of(reply.format)
    # Its tools have the outer `function`, and no empty prompt is a prompt.
    return not refused and all("function" in tool for tool in reply.tools) and reply.options.get("prompt") != ""


def test_every_case_through_sglangs_types() -> None:
    """Thoughts, text and calls of all recorded cases, whole and in any cut, but for the cases that are named."""
    given = [reply for reply in replies() if can_be_asked(reply)]
    assert len(given) > 2_500
    check_each(check_reply, [reply for reply in given if reply.name not in DIFFERENT], lambda reply: reply.name)


def test_the_named_cases_differ() -> None:
    for reply in replies():
        if reply.name in DIFFERENT:
            with pytest.raises(AssertionError):
                check_reply(reply)


def read(text: str, name: str = "asides_qwen3", tools: list[Tool] = TOOLS, **options: Any) -> Outcome:
    """A reply, streamed by character."""
    return stream(ReasoningParser(name, **options), FunctionCallParser(tools, name), text)


def test_a_second_thought_does_not_leak() -> None:
    text = f"<think>one</think>Hi.<think>two</think> Ho.{CALL}"
    assert read(text) == ("one\n\ntwo", "Hi. Ho.", [("get_weather", '{"city": "<think>"}')], set())
    thinking, rest = ReasoningParser("asides_qwen3").parse_non_stream(text)
    assert (thinking, rest) == ("one\n\ntwo", f"Hi. Ho.{CALL}")


def test_a_reply_without_thoughts_and_calls_is_untouched() -> None:
    text = "  Just text,\nwith `<think>` in it. \n"
    assert read(text) == ("", text, [], set())
    assert read(text, "asides") == ("", text, [], set())


def test_arguments_have_the_types_of_their_tools() -> None:
    call = XML_CALL.format("12")
    expected = [("get_weather", '{"city": "12", "days": 3}')]
    assert read(call, "asides_qwen3_coder").calls == expected
    assert read(call, "asides").calls == expected
    _, items = FunctionCallParser(TOOLS, "asides_qwen3_coder").parse_non_stream(f"Look: {call}")
    assert [(item.tool_index, item.name, item.parameters) for item in items] == [(0, *expected[0])]


def test_calls_that_may_not_be_run(caplog: pytest.LogCaptureFixture) -> None:
    """Unknown: text, unless SGLang is asked to let it pass. Cut off: unfinished, or text where nothing went out."""
    unknown = CALL.replace("get_weather", "get_time")
    assert read(f"a {unknown}") == ("", f"a {unknown}", [], set())
    assert "'get_time'" in caplog.text
    with envs.SGLANG_FORWARD_UNKNOWN_TOOLS.override(True):
        assert read(f"a {unknown}").calls == [("get_time", '{"city": "<think>"}')]
    cut = CALL[:-20]
    assert read(f"a {cut}") == ("", "a", [("get_weather", '{"city": "<th')], {0})
    assert FunctionCallParser(TOOLS, "asides_qwen3").parse_non_stream(f"a {cut}") == (f"a {cut}", [])


def test_without_tools_calls_stay_as_they_were_written() -> None:
    assert FunctionCallParser([], "asides_qwen3").parse_non_stream(CALL) == (CALL, [])
    assert stream(ReasoningParser("asides_qwen3"), None, f"<think>a</think>{CALL}").text == CALL


def test_sglangs_tool_parser_reads_behind_our_reasoning_parser() -> None:
    thoughts, calls = ReasoningParser("asides_qwen3"), FunctionCallParser(TOOLS, "qwen25")
    thinking, rest = thoughts.parse_non_stream(f"<think>a</think>\n\nHi.{CALL}")
    text, items = calls.parse_non_stream(rest or "")
    assert (thinking, text, items[0].parameters) == ("a", "Hi.", '{"city": "<think>"}')


@pytest.mark.parametrize(
    ("options", "text", "thinking", "rest"),
    [
        ({"force_reasoning": True}, "a</think>b", "a", "b"),
        ({"force_reasoning": True}, "<think>a</think>b", "a", "b"),
        ({"force_reasoning": False}, "a", "", "a"),
        ({"prefix": "<|im_start|>assistant\n<think>\n"}, "a</think>b", "a", "b"),
        ({"prefix": "<|im_start|>assistant\n<think>\n\n</think>\n\n", "force_reasoning": True}, "b", "", "b"),
        ({"prefix": "<|im_start|>assistant\n", "force_reasoning": True}, "b", "", "b"),
    ],
)
def test_where_a_reply_begins(options: dict[str, Any], text: str, thinking: str, rest: str) -> None:
    """The prompt decides; without one, what SGLang says of the request."""
    assert ReasoningParser("asides_qwen3", **options).parse_non_stream(text) == (thinking, rest)
    assert read(text, **options)[:2] == (thinking, rest)


@pytest.mark.parametrize(("before", "thinking", "rest"), [("<think>a", "b", "c"), ("<think>a</think>", "", "bc")])
def test_a_message_that_is_continued(before: str, thinking: str, rest: str) -> None:
    asked = ChatCompletionRequest(
        model="m", messages=[{"role": "assistant", "content": before}], continue_final_message=True
    )
    thoughts = ReasoningParser("asides_qwen3", request=asked)
    assert thoughts.parse_non_stream("b</think>c" if thinking else "bc") == (thinking, rest)


def test_thoughts_that_are_not_streamed_come_at_their_end() -> None:
    thoughts = ReasoningParser("asides_qwen3", stream_reasoning=False)
    pieces = [thoughts.parse_stream_chunk(chunk)[0] for chunk in ("<think>a", "b", "c</think>d", "<think>e")]
    assert pieces == ["", "", "abc", ""]
    assert thoughts.parse_stream_end() == ("\n\ne", "")


def test_a_thought_is_the_answer_where_there_is_no_other() -> None:
    asked = request(chat_template_kwargs={"force_nonempty_content": True})
    for text in ("<think>a", "<think>a</think>"):
        assert ReasoningParser("asides_qwen3", request=asked).parse_non_stream(text) == ("", "a")
        assert stream(ReasoningParser("asides_qwen3", request=asked), None, text).text == "a"
    found = stream(ReasoningParser("asides_qwen3", request=asked), None, "<think>a</think>b")
    assert found[:2] == ("a", "b")


def test_an_answer_that_a_schema_holds_is_passed_on_as_it_is() -> None:
    asked = request()
    asked._response_parser_grammar_start = "after_reasoning"
    json = '{"a": "<think>", "b": "<tool_call>"}'
    assert ReasoningParser("asides_qwen3", request=asked).parse_non_stream(f"<think>a</think>\n{json}") == ("a", json)
    asked._response_parser_grammar_start = "from_start"
    thoughts = ReasoningParser("asides_qwen3", request=asked, prefix="<|im_start|>assistant\n<think>\n")
    assert thoughts.parse_non_stream(json) == ("", json)
    assert thoughts.detector.json_output_started(json)


def tokenizer(template: str, *tokens: str) -> Any:
    """A small tokenizer of words."""
    made = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_tokens(list(tokens))
    return import_module("transformers").PreTrainedTokenizerFast(tokenizer_object=made, chat_template=template)


QWEN_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)


def test_the_markers_and_their_ids() -> None:
    """As the scheduler asks for them, for budgets and for grammars that begin behind the thought."""
    with_tokens = tokenizer(QWEN_TEMPLATE, "<think>", "</think>", "<|im_start|>", "<|im_end|>")
    close = with_tokens.convert_tokens_to_ids("</think>")
    for name in ("asides_qwen3", "asides"):
        detector = ReasoningParser(name, tokenizer=with_tokens).detector
        assert (detector.think_start_token, detector.think_end_token) == ("<think>", "</think>"), name
        assert detector.get_think_end_token_ids(with_tokens) == [close]
        assert detector.get_self_opened_think_start_token_ids(with_tokens) == [close - 1]
    # Nothing but a header says where a thought of harmony ends, so there is nothing to wait for.
    detector = ReasoningParser("asides_harmony", tokenizer=with_tokens).detector
    assert (detector.think_end_token, detector.get_think_end_token_ids(with_tokens)) == ("", [])


class Odd:
    """No tokenizer that anybody knows."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return []


class Odder(Odd):
    """One that cannot be a key."""

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("tokenizer", [Odd(), Odder()])
def test_a_tokenizer_that_shows_nothing(tokenizer: Odd) -> None:
    """The format is found while reading, and no id is made up."""
    thoughts = ReasoningParser("asides", tokenizer=tokenizer, force_reasoning=False)
    assert thoughts.parse_non_stream("[THINK]a[/THINK]b") == ("a", "b")
    assert thoughts.detector.get_think_end_token_ids(tokenizer) == []
    calls = FunctionCallParser(TOOLS, "asides", tokenizer=tokenizer)
    assert calls.parse_non_stream(CALL)[1][0].name == "get_weather"


def test_a_suffix_of_the_checkpoints_own() -> None:
    own = tokenizer(QWEN_TEMPLATE, "<think:0123abcd>", "</think:0123abcd>")
    detector = ReasoningParser("asides_hy_v4", tokenizer=own).detector
    assert detector.think_end_token == "</think:0123abcd>"


def test_required_calls_are_held_to_a_schema() -> None:
    """We give no tag for them: SGLang then takes its own JSON schema and reader."""
    calls = FunctionCallParser(TOOLS, "asides_qwen3")
    assert not calls.owns_tool_format()
    constraint = calls.get_structure_constraint("required")
    assert constraint is not None
    assert constraint[0] == "json_schema"
    assert calls.get_structure_constraint("auto") is None


def strict(tools: list[Tool]) -> list[Tool]:
    """The same tools, strict."""
    return [tool.model_copy(update={"function": tool.function.model_copy(update={"strict": True})}) for tool in tools]


def test_strict_tools_have_a_grammar(caplog: pytest.LogCaptureFixture) -> None:
    """Of the format's own syntax, where one can be said; else the log says why not."""
    constraint = FunctionCallParser(strict(TOOLS), "asides_qwen3_coder").get_structure_constraint("auto")
    assert constraint is not None
    assert constraint[0] == "structural_tag"
    grammar = str(import_module("xgrammar").Grammar.from_structural_tag(constraint[1]))
    assert "<function=" in grammar
    assert FunctionCallParser(strict(TOOLS), "asides_muse").get_structure_constraint("auto") is None
    assert "strict tools are not enforced" in caplog.text


SERVER = pytest.mark.filterwarnings("ignore")
"""What is imported for the handler warns of much that is not ours."""


@SERVER
def test_the_server_sends_thoughts_text_and_calls() -> None:
    reply = f"one</think>Hi.<think>two</think>\n{CALL}\n{CALL.replace('<think>', 'Bern')}<|im_end|>"
    handler = Handler(reply, "asides")
    found = handler.complete(tools=[tool.model_dump() for tool in TOOLS])
    calls = [("get_weather", '{"city": "<think>"}'), ("get_weather", '{"city": "Bern"}')]
    assert found == ("one\n\ntwo", "Hi.", calls, "tool_calls")
    assert handler.model.asked.require_reasoning


@SERVER
def test_the_server_keeps_special_tokens_without_tools_too() -> None:
    """SGLang's own detector of the same tags does not see them then."""
    handler = Handler("one</think>Hi.", "asides_qwen3")
    assert handler.complete() == ("one", "Hi.", [], "stop")
    assert handler.model.asked.sampling_params["skip_special_tokens"] is False
    handler = Handler("one</think>Hi.", "qwen3")
    handler.stream()
    assert handler.model.asked.sampling_params["skip_special_tokens"] is True


@SERVER
def test_the_server_gives_the_prompt() -> None:
    off = {"chat_template_kwargs": {"enable_thinking": False}}
    assert Handler("Hi.", "asides_qwen3").complete(**off) == ("", "Hi.", [], "stop")
    unopened = TEMPLATE.replace("<think>\n{% else %}", "{% else %}")
    assert Handler("Hi.", "asides_qwen3", unopened).complete() == ("", "Hi.", [], "stop")
    assert Handler("<think>a</think>Hi.", "asides_qwen3", unopened).complete() == ("a", "Hi.", [], "stop")
    assert Handler("Hi.", "qwen3", unopened).stream().text == "", "SGLang's own takes the answer for a thought"


@SERVER
def test_the_server_does_not_end_a_turn_with_a_call_that_was_cut_off() -> None:
    tools = [tool.model_dump() for tool in TOOLS]
    found = Handler(f"one</think>{CALL[:-20]}", "asides_qwen3").stream(tools=tools)
    assert found == ("one", "", [("get_weather", '{"city": "<th')], "stop")
    found = Handler(f"one</think>{CALL[:-20]}", "asides_qwen3", end="length").stream(tools=tools)
    assert found.finish_reason == "length"


@SERVER
def test_the_server_sends_an_answer_under_a_schema_as_it_is() -> None:
    answer = '{"a": "<think>", "b": "<tool_call>"}'
    handler = Handler(f"one</think>\n{answer}", "asides_qwen3")
    schema = {"name": "s", "schema": {"type": "object"}}
    found = handler.complete(response_format={"type": "json_schema", "json_schema": schema})
    assert found == ("one", answer, [], "stop")


@SERVER
def test_the_server_asks_for_the_grammar_of_strict_tools() -> None:
    handler = Handler(f"one</think>{CALL}", "asides_qwen3")
    found = handler.complete(tools=[tool.model_dump() for tool in strict(TOOLS)])
    assert found == ("one", "", [("get_weather", '{"city": "<think>"}')], "tool_calls")
    tag = handler.model.asked.sampling_params["structural_tag"]
    assert "<tool_call>" in tag
    assert import_module("xgrammar").Grammar.from_structural_tag(tag)


@SERVER
def test_the_server_reads_a_required_call() -> None:
    reply = 'one</think>[{"name": "get_weather", "parameters": {"city": "<think>"}}]'
    handler = Handler(reply, "asides_qwen3")
    found = handler.complete(tools=[tool.model_dump() for tool in TOOLS], tool_choice="required")
    assert found == ("one", "", [("get_weather", '{"city": "<think>"}')], "tool_calls")
    assert "json_schema" in handler.model.asked.sampling_params


@SERVER
def test_the_server_leaves_calls_in_the_text_where_none_may_be_made() -> None:
    tools = [tool.model_dump() for tool in TOOLS]
    found = Handler(f"one</think>{CALL}", "asides_qwen3").complete(tools=tools, tool_choice="none")
    assert found == ("one", CALL, [], "stop")


def test_a_long_argument_is_linear() -> None:
    """24 kB of XML in chunks of four characters: the same cost for each as in 6 kB, through both parsers."""

    def cost(size: int) -> int:
        text = XML_CALL.format("word " * (size // 5))
        thoughts = ReasoningParser("asides_qwen3_coder")
        calls = FunctionCallParser(TOOLS, "asides_qwen3_coder")
        chunks = [text[place : place + 4] for place in range(0, len(text), 4)]
        return count_calls(lambda: stream(thoughts, calls, chunks))

    small, large = cost(6_000), cost(24_000)
    assert large < 4.2 * small


def test_the_examples_of_the_page(tmp_path: Path) -> None:
    check_examples("sglang", tmp_path)


def test_the_page_names_the_version() -> None:
    page = Path(__file__).parents[2] / "docs" / "plugins" / "sglang.md"
    assert page.read_text(encoding="utf-8").rstrip().endswith(f"Tried with sglang {version('sglang')}.")
