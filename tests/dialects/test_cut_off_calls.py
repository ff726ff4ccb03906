"""Calls that may not be run, in APIs that have no place for them: nothing is lost or made up, and nobody runs one."""

from __future__ import annotations

import json
from functools import partial

import pytest

from asides import Parser, get_format
from asides.dialects import ALL, Dialect, openai_chat, openai_responses
from asides.dialects._custom_tools import custom_function
from asides.dialects._request import Request, ThinkingOptions, Tool
from asides.dialects._whole_calls import behind_arguments
from asides.policies import DEFAULTS
from asides.reply._items import Ended, RawText
from asides.reply._splitter import Splitter
from tests.support import check_each, without_end
from tests.test_cases import ALL as CASES
from tests.test_cases import Case, case_name

WITHOUT_A_NAME = '<|tools_prefix|>[{"f'
CUT_OFF = WITHOUT_A_NAME + '": {"a": 1'


def reply_of(dialect: Dialect, format: str, raw: str, *, show: bool = True) -> str:
    """The reply of an API, as JSON, to a client that wants to see thinking or not, of output that was cut off."""
    splitter = Splitter(get_format(format), partial(Parser, policies=DEFAULTS), seed=1)
    items = [*splitter.feed(RawText(0, raw)), *splitter.feed(Ended(0, "length"))]
    request = Request(dialect=dialect.NAME, model="m", thinking=ThinkingOptions(show=show))
    return json.dumps(dialect.write_reply(items, request))


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.NAME)
@pytest.mark.parametrize("written", [WITHOUT_A_NAME, CUT_OFF])
def test_in_an_open_thought_it_is_the_end_of_that(dialect: Dialect, written: str) -> None:
    """So a client that hides thinking does not see it. An API that has calls in pieces has the call as it came."""
    raw, as_text = "<|inner_prefix|>hm" + written, json.dumps(written)[1:-1]
    reply = reply_of(dialect, "apertus", raw)
    assert as_text in reply or (written == CUT_OFF and r'"arguments": "{\"a\": 1"' in reply)
    assert as_text not in reply_of(dialect, "apertus", raw, show=False)


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.NAME)
def test_of_a_marker_alone_nothing_is_made_up(dialect: Dialect) -> None:
    """There is neither a name nor an argument to write."""
    assert "arguments" not in reply_of(dialect, "qwen3", "<tool_call>")


def test_openai_clients_get_no_broken_call_that_they_could_run() -> None:
    """They run what they can read: chat completions cannot tell that a call is broken, and who reads Responses does not
    look at an item's status. So the arguments are no object."""
    seen: list[str | None] = []

    def check(case: Case) -> None:
        parser = Parser(case.format, **{**without_end(case.options), "strict": False})
        splitter = Splitter(get_format(case.format), lambda *_, **__: parser, seed=1)
        items = [*splitter.feed(RawText(0, "".join(case.chunks))), *splitter.feed(Ended(0, "stop"))]
        reply = openai_chat.write_reply(items, Request(dialect="openai_chat", model="m"))
        written = [call["function"]["arguments"] for call in reply["choices"][0]["message"].get("tool_calls", ())]
        response = openai_responses.write_reply(items, Request(dialect="openai_responses", model="m"))
        assert [item["arguments"] for item in response["output"] if item["type"] == "function_call"] == written
        calls = [call for call in parser.message.tool_calls if call.name]
        assert len(written) == len(calls)
        for text, call in zip(written, calls, strict=True):
            assert text.startswith(call.arguments)
            assert call.error is None or not isinstance(_loaded(text), dict), (call.error, text)
            if call.error is not None and isinstance(_loaded(call.arguments), dict):
                seen.append(call.error)

    check_each(check, CASES, case_name)
    assert len(set(seen)) > 1, "no case shows it"


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.NAME)
def test_a_call_after_the_turn_is_run_by_no_client(dialect: Dialect) -> None:
    """Neither a function nor a custom tool, whose text could be run whatever it is."""
    call = '<tool_call>\n{"name": "NAME", "arguments": {"input": "rm -r"}}\n</tool_call>'
    raw = "Hi.<|im_end|>\n" + call.replace("NAME", "f") + call.replace("NAME", "patch")
    tools = (Tool("f", "", {}), custom_function("patch", "", {}, "patch", {}))
    splitter = Splitter(get_format("qwen3"), partial(Parser, policies=DEFAULTS), seed=1)
    items = [*splitter.feed(RawText(0, raw)), *splitter.feed(Ended(0, "stop"))]
    request = Request(dialect=dialect.NAME, model="m", tools=tools)
    writer = dialect.ReplyWriter(request)
    streamed = b"".join(map(writer.feed, items)) + writer.finish()
    for reply in (json.dumps(dialect.write_reply(items, request)), streamed.decode()):
        assert '"rm -r"' not in reply, "what a client takes for the input of a custom tool"
        assert '"tool_use"' not in reply
        assert '"custom"' not in reply or dialect is openai_responses
        assert '"arguments": {"' not in reply
        assert "rm -r" in reply


def test_what_the_model_wrote_follows_only_where_it_must() -> None:
    assert behind_arguments('{"a": 1', "raw") == ""
    assert behind_arguments('{"a": 1}', "raw") == "raw"
    assert behind_arguments("", "raw") == "raw"
    assert behind_arguments("", "{}") == '"{}"'
    assert json.loads(behind_arguments("", '{"a": 1}')) == '{"a": 1}'
