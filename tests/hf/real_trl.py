"""TRL's own `parse_response`, on ids, by the templates that asides writes and by TRL's own (`make test-readers`).

Shapes of replies that a template can express must come back whole by our template. Of the others our template names
the loss and the key of the standard that cannot say it, TRL does lose something, and `lint_template` reports it when it
is given such a reply.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import pytest

import asides
from asides.hf import lint_template, template_for
from asides.hf._losses import LOSSES
from tests.hf.byte_tokenizer import byte_tokenizer
from tests.hf.figures import check, parts
from tests.hf.replies import FAMILIES, SHAPES, TOOLS, GeneratedReply, replies, shapes, wanted
from tests.hf.support import TRACES, shared_traces

trl = import_module("trl.chat_template_utils")
TOKENIZER = byte_tokenizer()

OWN = {
    "harmony": "gptoss_template",
    "qwen3": "qwen3_template",
    "glm45": "glm4moe_template",
    "deepseek_v31": "deepseek_r1_distill_template",
}
"""What TRL itself has for these families; for DeepSeek only one for R1-Distill, without calls."""
NUMBER = 100
ENOUGH = 0.99


def found(template: dict[str, Any], reply: GeneratedReply) -> Counter[str]:
    """How many of the thoughts, texts and calls of a reply TRL finds, and how many calls that are none."""
    TOKENIZER.response_template = dict(template)
    ids = TOKENIZER.encode(reply.text, add_special_tokens=False)
    prompt = TOKENIZER.encode(reply.prompt, add_special_tokens=False)
    assert TOKENIZER.decode(ids) == reply.text
    message = trl.parse_response(TOKENIZER, ids, prompt, TOOLS)
    calls = [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
    return Counter(
        thoughts=_common(reply.thoughts, message.get("reasoning_content") or message.get("thinking") or ""),
        texts=_common(reply.texts, message.get("content") or ""),
        calls=sum(arguments == each for arguments, each in zip(calls, reply.calls, strict=False)),
        wrong=sum(arguments not in reply.calls for arguments in calls),
    )


def _common(wanted: tuple[str, ...], value: str) -> int:
    """How many of these are in a value that holds nothing else."""
    pieces = value.split("\n\n") if value else []
    return sum(each in wanted for each in pieces) if len(pieces) <= len(wanted) else 0


class ShapeCounts(NamedTuple):
    """How many thoughts, texts and calls the replies of a shape have, and how many of them TRL finds."""

    there: Counter[str]
    ours: Counter[str]
    """By our template."""
    theirs: Counter[str]
    """By TRL's own."""


@cache
def counted(family: str) -> dict[str, ShapeCounts]:
    """The replies of a family, shape by shape."""
    template, own = template_for(family), getattr(trl, OWN[family])
    counts = {}
    for shape in shapes(family):
        there, ours, theirs = Counter[str](), Counter[str](), Counter[str]()
        for reply in replies(family, shape, NUMBER):
            there += wanted(reply)
            ours += found(template, reply)
            theirs += found(own, reply)
        counts[shape] = ShapeCounts(there, ours, theirs)
    return counts


@pytest.mark.parametrize("family", FAMILIES)
def test_trl_finds_what_a_template_can_say(family: str) -> None:
    """At least 99 % of calls and texts by our template, in every shape that a template can express."""
    for shape, (there, ours, theirs) in counted(family).items():
        print(f"\ntrl {family}, {shape}: {dict(there)}; ours {dict(ours)}, TRL's {dict(theirs)}", end="")
        if not SHAPES[shape].losses:
            assert not ours["wrong"]
            for kind, number in there.items():
                assert ours[kind] >= ENOUGH * number, f"{shape}: {kind}"


def test_the_page_has_what_was_counted() -> None:
    """All shapes that a template can express together."""
    rows: list[list[str | int]] = [
        ["format", "replies", "thoughts, texts, calls", "found by the template of asides", "found by TRL's"]
    ]
    for family in FAMILIES:
        counts = [each for shape, each in counted(family).items() if not SHAPES[shape].losses]
        sums = (parts(sum(column, Counter[str]())) for column in zip(*counts, strict=True))
        rows.append([f"`{family}`", NUMBER * len(counts), *sums])
    check("trl", ["trl", "transformers", "torch"], rows)


LOST = [(family, shape) for family in FAMILIES for shape in shapes(family) if SHAPES[shape].losses]


@pytest.mark.parametrize(("family", "shape"), LOST)
def test_what_is_lost_is_named(family: str, shape: str) -> None:
    """Our template names the loss, with the key of the standard, and the linter reports the reply."""
    template = template_for(family)
    named = {loss.code for loss in template.loses}
    for code in SHAPES[shape].losses:
        assert code in named
        assert LOSSES[code].key
    for reply in replies(family, shape, 1):
        assert found(template, reply) != wanted(reply)
        findings = lint_template(template, samples=[reply.text])
        print(f"\nlint {family}, {shape}: {'; '.join(map(str, findings))}", end="")
        assert findings


def test_real_turns_of_gpt_oss() -> None:
    """An extra, where real turns are at hand: TRL finds by our template the calls that asides finds."""
    texts = [trace["text"] for trace in shared_traces() if "<|channel|>" in trace["text"]]
    if not texts:
        pytest.skip(f"no turn of gpt-oss is in {TRACES}, so none was read; the generated ones are all there is")
    counted = Counter[str]()
    for text in texts:
        message = asides.parse(text, "harmony", prompt="<|start|>assistant")
        calls = tuple(json.loads(call.arguments) for call in message.tool_calls if call.error is None)
        reply = GeneratedReply("<|start|>assistant", text, (), (), calls)
        counted["calls"] += len(calls)
        counted["ours"] += found(template_for("harmony"), reply)["calls"]
        counted["TRL's"] += found(trl.gptoss_template, reply)["calls"]
    print(f"\n{len(texts)} real turns of gpt-oss: {dict(counted)}")
    assert counted["ours"] >= ENOUGH * counted["calls"]
