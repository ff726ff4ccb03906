"""Against transformers itself (`make test-hf`): the templates that we write, those that others ship, and our drop-in.

Every template is read by both readers: whole, and cut in two at every place (long texts at 200 places). The drop-in
must give the same events wherever the reference gives the same for every cut and raises nothing; every difference that
remains is counted under its reason. TRL's templates are read from its source, because importing TRL needs torch.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.hf import TemplateError, format_from, lint_template, template_for
from asides.hf._writing import TARGETS, Target
from tests.hf.figures import check
from tests.hf.support import TRACES, Event, Reading, joined, prompt_before, read, readings, shared_traces
from tests.support import two_way_splits

pytest.importorskip("regex")
chat_parsing = pytest.importorskip("transformers.utils.chat_parsing")

NAMES = [name for name in asides.formats() if asides.get_format(name).settle is None]
LONG = 2000
CUTS = 200
Result = tuple[dict[str, Any], list[Event]]

MEANT_FOR = {
    "qwen3_template": ["qwen3", "qwen3_thinking", "hermes"],
    "qwen3_5_template": ["qwen3.5", "qwen3_coder"],
    "glm4moe_template": ["glm45", "glm47"],
    "llama3_template": ["llama3_json"],
    "gptoss_template": ["harmony"],
    "lfm2_2_5_template": ["lfm2"],
    "nemotron_3_template": ["nemotron_v3"],
    "gemma4_template": ["gemma4"],
    "deepseek_r1_distill_template": ["deepseek_r1"],
    "serve qwen2": ["qwen3"],
    "serve qwen3_5": ["qwen3.5"],
    "serve gemma4": ["gemma4"],
}
"""For which of our formats each shipped template is."""


def shipped() -> dict[str, dict[str, Any]]:
    """The templates of `transformers serve`, and TRL's where TRL is."""
    fallbacks = importlib.import_module("transformers.cli.serving.utils")._RESPONSE_TEMPLATE_FALLBACKS
    found = {f"serve {types[0]}": template for types, template in fallbacks.items()}
    spec = importlib.util.find_spec("trl")
    if spec is not None and spec.submodule_search_locations:
        source = Path(spec.submodule_search_locations[0], "chat_template_utils.py").read_text(encoding="utf-8")
        names: dict[str, Any] = {"_SUPPORTS_PARSE_RESPONSE_TOOLS": True}
        for node in ast.parse(source).body:
            target = getattr(node, "targets", [None])[0]
            name = getattr(target, "id", "")
            ours = name.endswith("_template") and isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
            if ours or name.startswith(("_LFM2", "_XML")) or isinstance(node, ast.For):
                exec(compile(ast.Module([node], []), "trl", "exec"), names)
        found |= {name: value for name, value in names.items() if name.endswith("_template")}
    return found


SHIPPED = shipped()


def reference(template: Any, chunks: Sequence[str], reading: Reading) -> Result | None:
    """What transformers gives; None where it raises."""
    try:
        parser = chat_parsing.ResponseParser(dict(template), prefix=reading.prefix, tools=reading.tools)
        events = list(parser.initial_events)
        for chunk in chunks:
            events += parser.feed(chunk)
        message, last = parser.finalize()
    except (ValueError, KeyError, TypeError):
        return None
    return message, joined(events + last)


def cuts(text: str, most: int | None = None) -> Iterator[Sequence[str]]:
    """Every two-way split; of a long text, or with `most`, only some."""
    if most is None and len(text) <= LONG:
        yield from two_way_splits(text)
    else:
        places = range(1, len(text))
        for place in random.Random(0).sample(places, min(most or CUTS, len(places))):
            yield text[:place], text[place:]


def compare(template: Any, given: Iterable[Reading], most: int | None = None) -> Counter[str]:
    """How each reading came out; `most`: in how many places a text is cut at most."""
    found: Counter[str] = Counter()
    for reading in given:
        whole = reference(template, [reading.text], reading)
        ours = read(template, [reading.text], reading.prefix, reading.tools)
        if whole is None:
            found["the reference raises"] += 1
        elif any(reference(template, chunks, reading) != whole for chunks in cuts(reading.text, most)):
            found["the reference depends on the cut"] += 1
        elif _regions(whole[1]) != _regions(ours[1]):
            # `$` also matches before a last newline, which then opens a region of its own.
            ended = "$" in str(template) and reading.text.endswith("\n") and whole[0] == ours[0]
            found["the reference's `$` splits off a last newline" if ended else "other regions"] += 1
        elif whole[0] != ours[0]:
            found["the reference overwrites a value"] += 1
        else:
            found["same events and message"] += 1
    return found


@cache
def written(name: str) -> Counter[str]:
    """The cases of a format, read by the template that we write for it."""
    return compare(template_for(name), readings([name]))


@cache
def read_by_shipped(name: str) -> Counter[str]:
    """The cases of the formats that a shipped template is meant for, read by it."""
    return compare(SHIPPED[name], readings(MEANT_FOR.get(name, ["qwen3"])))


def _regions(events: list[Event]) -> list[Event]:
    """The events as far as they are the same in both; a close that could not be read has no value."""
    return [{key: value for key, value in event.items() if key != "error"} for event in events]


@pytest.mark.parametrize("name", NAMES)
def test_what_we_write_is_read_alike(name: str) -> None:
    """The reference accepts it, reads it alike however the stream is cut, and gives what the drop-in gives."""
    found = written(name)
    print(f"\nwritten {name}: {dict(found)}")
    assert not found["other regions"]
    assert not found["the reference overwrites a value"]
    assert not found["the reference depends on the cut"]


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_that_we_write_costs_more_than_the_text(target: Target) -> None:
    """Measured, which needs the package regex."""
    for name in NAMES:
        try:
            template = template_for(name, target=target)
        except TemplateError:
            assert target == "portable", name
            continue
        assert not [finding for finding in lint_template(template) if finding.code == "cost"], name


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_what_others_ship_is_read_alike(name: str) -> None:
    """Where the reference is right by its own terms, so is the drop-in."""
    found = read_by_shipped(name)
    print(f"\nshipped {name}: {dict(found)}")
    assert not found["other regions"]


OUTCOMES = (
    "same events and message",
    "the reference raises",
    "the reference depends on the cut",
    "the reference overwrites a value",
    "the reference's `$` splits off a last newline",
)


def test_the_page_has_what_was_counted() -> None:
    """And there is no other difference."""
    assert any(not name.startswith("serve ") for name in SHIPPED), "TRL is not installed here"
    rows: list[list[str | int]] = [["templates", "number", "cases", *OUTCOMES]]
    for who, each in {
        "written by asides, for `transformers`": list(map(written, NAMES)),
        "shipped by `transformers serve` and TRL": list(map(read_by_shipped, SHIPPED)),
    }.items():
        total = sum(each, Counter[str]())
        assert total.keys() <= set(OUTCOMES)
        rows.append([who, len(each), total.total(), *(total[outcome] for outcome in OUTCOMES)])
    check("drop_in", ["transformers", "trl"], rows)


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_what_others_ship_becomes_a_format(name: str) -> None:
    """All but those whose openers stand in every text."""
    if name == "lfm2_2_5_template":
        with pytest.raises(TemplateError, match="open_pattern"):
            format_from(SHIPPED[name])
    else:
        format_from(SHIPPED[name])


SOURCES = {
    "deepseek_v32_dsml_fixtures_vllm": ("deepseek_v32", None),
    "r1distill_gpqa_kennethleungty": ("deepseek_r1", "deepseek_r1_distill_template"),
    "rlft_3b_reasoninggym": ("qwen3", "qwen3_template"),
    "webdancer_think_toolcall": ("qwen3", "serve qwen2"),
}
"""Which format the real outputs of each source have, and which shipped template is meant for it."""
TRACE_CUTS = 4


@pytest.mark.parametrize("source", SOURCES)
def test_real_outputs_are_read_alike(source: str) -> None:
    """An extra: `make test-hf HF_ARGUMENTS="-k real_outputs"`. By the template that we write, and by a shipped one."""
    texts = [trace["text"] for trace in shared_traces() if trace["source"] == source]
    if not texts:
        pytest.skip(f"{TRACES} holds no outputs of {source}, so none were read")
    name, theirs = SOURCES[source]
    format = asides.get_format(name)
    given = [Reading(format, text, prompt_before(format, text, {}), None, None) for text in texts]
    found = compare(template_for(name), given, TRACE_CUTS)
    print(f"\nreal {source}, written {name}: {dict(found)}")
    assert not found["other regions"]
    assert not found["the reference overwrites a value"]
    assert not found["the reference depends on the cut"]
    if theirs in SHIPPED:
        found = compare(SHIPPED[theirs], given, TRACE_CUTS)
        print(f"real {source}, shipped {theirs}: {dict(found)}")
        assert not found["other regions"]


GENERATED = {
    "harmony": "<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant<|channel|>commentary<|message|>{text}"
    "<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{arguments}<|call|>",
    "qwen3": "<think>\n{thought}\n</think>\n\n{text}\n<tool_call>\n{call}\n</tool_call><|im_end|>\n",
    "deepseek_v31": "<think>{thought}</think>{text}<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"
    "{arguments}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
    "glm45": "<think>{thought}</think>{text}\n<tool_call>f\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n"
    "<arg_key>n</arg_key>\n<arg_value>{number}</arg_value>\n</tool_call><|user|>",
}
"""Replies as these models write them."""
TRL = {"harmony": "gptoss_template", "qwen3": "qwen3_template", "glm45": "glm4moe_template"}


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_transformers_finds_every_call_by_our_template(name: str) -> None:
    """All thoughts, texts and calls of 500 replies; what TRL's own template finds is printed beside."""
    ours = _found(name, template_for(name))
    theirs = _found(name, SHIPPED[TRL[name]]) if TRL.get(name) in SHIPPED else None
    print(f"\ngenerated {name}: ours {dict(ours)}, TRL's {dict(theirs) if theirs is not None else 'none'}")
    assert ours == {"thoughts": 500, "texts": 500, "calls": 500}


def _found(name: str, template: Any) -> Counter[str]:
    properties = {"city": {"type": "string"}, "n": {"type": "integer"}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}]
    found: Counter[str] = Counter()
    for number in range(500):
        thought, text = f"I think about {number}.", "Here it is."
        arguments = {"city": "Oslo", "n": number}
        call = {"name": "f", "arguments": arguments}
        reply = GENERATED[name].format(
            thought=thought, text=text, number=number, arguments=json.dumps(arguments), call=json.dumps(call)
        )
        prefix = asides.get_format(name).assistant[0]
        message = chat_parsing.parse_response(reply, dict(template), prefix=prefix, tools=tools)
        found["thoughts"] += (message.get("reasoning_content") or message.get("thinking")) == thought
        found["texts"] += message.get("content") == text
        found["calls"] += [each["function"] for each in message.get("tool_calls", ())] == [call]
    return found
