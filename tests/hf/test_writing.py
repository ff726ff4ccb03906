"""Templates that we write: for every format and target, in the shape that the target takes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import asides
from asides.errors import UsageError
from asides.hf import TemplateError, parse_response, template_for
from asides.hf._losses import LOSSES
from asides.hf._template import Template
from asides.hf._writing import TARGETS, Target
from tests.hf.support import readings
from tests.support import check_each, run

NAMES = [name for name in asides.formats() if asides.get_format(name).settle is None]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_a_template(name: str) -> None:
    """For every target it is plain JSON, it loads, and it says what is lost."""
    check_each(lambda target: _check_written(name, target), TARGETS)


def _check_written(name: str, target: Target) -> None:
    if target == "portable" and not asides.get_format(name).assistant:
        with pytest.raises(TemplateError, match="start_anchor"):
            template_for(name, target=target)
        return
    written = template_for(name, target=target)
    assert json.loads(json.dumps(written)) == written == written.template
    Template.load(written)
    assert {loss.code for loss in written.loses} <= LOSSES.keys()
    assert all(str(loss) == loss.text for loss in written.loses)
    _check_shape(written, target)


def _check_shape(template: dict[str, Any], target: Target) -> None:
    assert template["defaults"] == {"role": "assistant"}
    fields = template["fields"]
    if target == "transformers":
        return
    assert fields.keys() <= {"thinking", "content", "tool_calls"}
    for name in fields.keys() - {"tool_calls"}:
        assert fields[name]["content"] == "text"
        assert not fields[name].keys() & {"join", "repeats", "transform"}
    if target == "portable":
        for field in fields.values():
            for key in ("open_pattern", "close_pattern"):
                pattern = field.get(key, "<")
                assert not re.search(r"\(\?[=!<](?!\w)", pattern), pattern
                assert not re.match(r"\\[sAZ]|\^|\$", pattern), pattern


@pytest.mark.parametrize("name", NAMES)
def test_most_cases_read_as_we_read_them(name: str) -> None:
    """By the template alone, the plain cases give the same thinking, text and calls; what differs has a reason."""
    written = Template.load(template_for(name))
    plain = {"think_tags", "formats"}
    good = total = 0
    for reading in readings([name]):
        assert reading.case is not None
        message = run(name, [reading.text], **reading.case.options).message
        if message is None or message.notices or reading.case.file.split("_")[0] not in plain:
            continue
        total += 1
        found = parse_response(reading.text, written, prefix=reading.prefix, tools=reading.tools)
        thinking = found.get("reasoning_content", "")
        good += (
            "".join(thinking.split()) == "".join(message.thinking.split())
            and "".join(found.get("content", "").split()) == "".join(message.text.split())
            and len(found.get("tool_calls", [])) == len(message.tool_calls)
        )
    assert good >= 0.5 * total, f"{good} of {total}"


def test_a_template_as_it_is_written() -> None:
    """The portable one of a well-known family, to the letter."""
    assert template_for("qwen3", target="portable") == {
        "version": 1,
        "defaults": {"role": "assistant"},
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {
            "thinking": {
                "open": "<think>",
                "close_pattern": r"(?:<\|endoftext\|>|<\|im_end\|>|</think>)\s*",
                "content": "text",
            },
            "tool_calls": {
                "open_pattern": "<tool_call>",
                "close_pattern": r"</tool_call>\s*",
                "repeats": True,
                "content": "json",
                "transform": {
                    "type": "function",
                    "function": {"name": "{content.name}", "arguments": "{content.arguments}"},
                },
            },
            "content": {
                "close_pattern": r"(?:<\|endoftext\|>|</tool_call>|<\|im_end\|>|</think>)\s*",
                "content": "text",
            },
        },
    }


def test_what_is_detected_is_written() -> None:
    """A chat template that nobody has stored is enough."""
    chat_template = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{% if message.reasoning_content %}<think>\n"
        "{{ message.reasoning_content }}\n</think>\n\n{% endif %}{{ message.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
    )
    written = template_for(chat_template=chat_template)
    message = parse_response("a</think>b<|im_end|>", written, prefix="<|im_start|>assistant\n<think>\n")
    assert message == {"role": "assistant", "reasoning_content": "a", "content": "b"}


def test_what_cannot_be_written_is_said() -> None:
    """One source, a known target, and a format that is settled."""
    with pytest.raises(UsageError, match="exactly one"):
        template_for()
    with pytest.raises(UsageError, match="exactly one"):
        template_for("qwen3", tokenizer={})
    with pytest.raises(UsageError, match="target"):
        template_for("qwen3", target="rust")  # type: ignore[arg-type]
    with pytest.raises(TemplateError, match="settled"):
        template_for("auto")
    with pytest.raises(TemplateError, match="nothing that is known"):
        template_for(chat_template="{{ messages[0].content }}")
