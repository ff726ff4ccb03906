"""vLLM's and SGLang's own readers, with every response template that we write for them (`make test-readers`).

Their Python sources are imported from unpacked wheels, without their compiled parts and without a GPU. Each accepts a
template at start-up or refuses it with an error, so every format is loaded for its target and for `portable`. Then the
replies of `replies.py` are read, whole and streamed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import pytest

import asides
from asides.hf import TemplateError, template_for
from asides.hf._writing import Target
from tests.hf.byte_tokenizer import byte_tokenizer
from tests.hf.figures import check, parts
from tests.hf.replies import FAMILIES, SHAPES, TOOLS, GeneratedReply, replies, shapes, wanted

NAMES = [name for name in asides.formats() if asides.get_format(name).settle is None]
NUMBER = 30
PIECE = 5
"""Characters of a streamed piece."""
TOKENIZER = byte_tokenizer()
vllm = import_module("vllm.parser.response_template")
sglang = import_module("sglang.srt.parser.response_template")
Request = import_module("vllm.entrypoints.openai.chat_completion.protocol").ChatCompletionRequest
SglangTool = import_module("sglang.srt.entrypoints.openai.protocol").Tool


class ServerReading(NamedTuple):
    """What a server makes of a reply."""

    thinking: str
    text: str
    calls: list[dict[str, Any]]


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def load_vllm(template: Any) -> None:
    """What vLLM does at start-up and for a request."""
    fields = template["fields"]
    TOKENIZER.response_template = dict(template)
    vllm.validate_tokenizer_response_template(TOKENIZER, reasoning="thinking" in fields, tools="tool_calls" in fields)
    vllm.ResponseTemplateParser(TOKENIZER, None)


def read_vllm(template: Any, reply: GeneratedReply, streamed: bool) -> ServerReading:
    """A reply as vLLM's server reads it."""
    TOKENIZER.response_template = dict(template)
    request = Request(messages=[{"role": "user", "content": "?"}], model="m", tools=TOOLS, tool_choice="auto")
    parser = vllm.ResponseTemplateParser(TOKENIZER, request.tools, enable_auto_tools=True)
    parser.set_prompt_token_ids(TOKENIZER.encode(reply.prompt, add_special_tokens=False))
    if not streamed:
        thinking, text, calls = parser.parse(reply.text, request, enable_auto_tools=True)
        return ServerReading(thinking or "", text or "", [json.loads(call.arguments) for call in calls or ()])
    thinking, text, found = "", "", []
    for piece, last in [*((piece, False) for piece in _pieces(reply.text)), ("", True)]:
        delta = parser.parse_delta(piece, [], request, finished=last)
        if delta is not None:
            thinking, text = thinking + (delta.reasoning or ""), text + (delta.content or "")
            found += [json.loads(call.function.arguments) for call in delta.tool_calls]
    return ServerReading(thinking, text, found)


def load_sglang(template: Any) -> None:
    """What SGLang does at start-up and for a request."""
    sglang.validate_response_template_for_serving(dict(template))
    sglang.ResponseTemplateReasoningDetector(response_template=dict(template))
    if "tool_calls" in template["fields"]:
        sglang.ResponseTemplateToolDetector(response_template=dict(template))


def read_sglang(template: Any, reply: GeneratedReply, streamed: bool) -> ServerReading:
    """A reply as SGLang's server reads it: the thoughts first, then the calls in what is left."""
    tools = [SglangTool(**tool) for tool in TOOLS]
    thinker = sglang.ResponseTemplateReasoningDetector(response_template=dict(template), prefix=reply.prompt)
    caller = sglang.ResponseTemplateToolDetector(response_template=dict(template), tools=tools)
    if not streamed:
        split = thinker.detect_and_parse(reply.text)
        rest = caller.detect_and_parse(split.normal_text, tools)
        return ServerReading(
            split.reasoning_text, rest.normal_text, [json.loads(call.parameters) for call in rest.calls]
        )
    splits = [*map(thinker.parse_streaming_increment, _pieces(reply.text)), thinker.finish()]
    rests = [caller.parse_streaming_increment(split.normal_text, tools) for split in splits if split.normal_text]
    rests.append(caller.finish(tools))
    arguments: dict[int, str] = {}
    for rest in rests:
        for call in rest.calls:
            arguments[call.tool_index] = arguments.get(call.tool_index, "") + (call.parameters or "")
    return ServerReading(
        "".join(split.reasoning_text for split in splits),
        "".join(rest.normal_text for rest in rests),
        [json.loads(each) for each in arguments.values()],
    )


Load = Callable[[Any], None]
Read = Callable[[Any, GeneratedReply, bool], ServerReading]
SERVERS: dict[Target, tuple[Load, Read]] = {"vllm": (load_vllm, read_vllm), "sglang": (load_sglang, read_sglang)}


@cache
def accepted(server: Target) -> Counter[str]:
    """How many templates a server accepts, by their target; any that it refuses raises."""
    counted = Counter[str]()
    for name in NAMES:
        for target in (server, "portable"):
            try:
                template = template_for(name, target=target)
            except TemplateError:
                assert target == "portable", name
                continue
            SERVERS[server][0](template)
            counted[target] += 1
    return counted


@pytest.mark.parametrize("server", SERVERS)
def test_every_template_is_accepted(server: Target) -> None:
    """For its own target and the portable one, for which some formats cannot be written."""
    assert accepted(server)[server] == len(NAMES)


class ServerCounts(NamedTuple):
    """How many thoughts, texts and calls the replies of a shape have, and how many of them a server finds."""

    there: Counter[str]
    whole: Counter[str]
    streamed: Counter[str]


@cache
def counted(server: Target, family: str) -> dict[str, ServerCounts]:
    """The replies of a family, shape by shape."""
    template = template_for(family, target=server)
    counts = {}
    for shape in shapes(family):
        there, whole, streamed = Counter[str](), Counter[str](), Counter[str]()
        for reply in replies(family, shape, NUMBER):
            there += wanted(reply)
            whole += _found(SERVERS[server][1](template, reply, False), reply)
            if not SHAPES[shape].losses:
                streamed += _found(SERVERS[server][1](template, reply, True), reply)
        counts[shape] = ServerCounts(there, whole, streamed)
    return counts


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("server", SERVERS)
def test_every_part_is_found(server: Target, family: str) -> None:
    """Whole and streamed, in every shape that a template can express."""
    for shape, (there, whole, streamed) in counted(server, family).items():
        print(f"\n{server} {family}, {shape}: {dict(there)}; found {dict(whole)}", end="")
        if not SHAPES[shape].losses:
            assert whole == there, shape
            assert streamed == there, shape


def test_the_page_has_what_was_counted() -> None:
    """All families together, in the shapes that a template can express."""
    head = ["server", "its templates accepted", "`portable` ones accepted", "replies", "thoughts, texts, calls"]
    rows: list[list[str | int]] = [[*head, "found whole", "found streamed"]]
    for server in SERVERS:
        counts = [
            each for family in FAMILIES for shape, each in counted(server, family).items() if not SHAPES[shape].losses
        ]
        sums = (parts(sum(column, Counter[str]())) for column in zip(*counts, strict=True))
        by_target = accepted(server)
        rows.append([f"`{server}`", by_target[server], by_target["portable"], NUMBER * len(counts), *sums])
    check("servers", ["vllm", "sglang", "transformers", "torch"], rows)


def _found(reading: ServerReading, reply: GeneratedReply) -> Counter[str]:
    """How many of the parts are there; regions are streamed one behind another, so whitespace does not count."""
    return Counter(
        thoughts=len(reply.thoughts) * (_squeezed(reading.thinking) == _squeezed("".join(reply.thoughts))),
        texts=len(reply.texts) * (_squeezed(reading.text) == _squeezed("".join(reply.texts))),
        calls=sum(call == each for call, each in zip(reading.calls, reply.calls, strict=False)),
        wrong=sum(call not in reply.calls for call in reading.calls),
    )


def _squeezed(text: str) -> str:
    return "".join(text.split())
