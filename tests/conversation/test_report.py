"""A report on a chat template: what it says is so, and a hostile template ends in a sentence."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import asides
from asides._conversation._report import study
from asides._conversation._report_process import report_on
from asides._conversation._report_subject import TemplateReport
from tests.conversation.support import tokenizer
from tests.conversation.templates import FORMATS, TEMPLATES

PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PARTS = (
    "{% for m in messages %}{{ m.role|capitalize }}: {% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}"
    "{% endif %}{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}Assistant: {% endif %}"
)
TRAINED = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}<|im_start|>assistant\n{{ m.content }}"
    "<|im_end|>\n{% endgeneration %}{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@cache
def reported(template: str, format: str | None = "qwen3", twin: tuple[str, str] | None = None) -> TemplateReport:
    """A report in this process."""
    conversation = asides.Conversation(tokenizer("bytes"), template, format=format, bos_token="<｜begin▁of▁sentence｜>")
    return study(conversation, characters=False, counted="", twin=twin)


def says(report: TemplateReport) -> str:
    return "\n".join(finding.says for finding in report.findings)


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_conversation_is_what_the_template_writes(name: str) -> None:
    """Every character once, words of messages with their message, and nothing sampled that is somebody else's."""
    report = reported(TEMPLATES[name], FORMATS[name])
    conversation = asides.Conversation(
        tokenizer("bytes"), TEMPLATES[name], format=FORMATS[name], bos_token="<｜begin▁of▁sentence｜>"
    )
    if report.tools:
        from asides._conversation._report_subject import TOOLS

        conversation = conversation.but(tools=TOOLS)
    prompt = conversation.prompt(report.messages)
    assert "".join(stretch.text for stretch in report.conversation) == prompt.text
    assert report.total == len(prompt.ids)
    assert report.sampled == sum(prompt.sampled)
    for stretch in report.conversation:
        if stretch.origin in ("user", "tool"):
            assert stretch.message is not None
            assert report.messages[stretch.message]["content"] in stretch.text
        assert not (stretch.sampled and stretch.origin in ("system", "user", "tool", "tools", "template"))


def test_thoughts_of_earlier_turns() -> None:
    report = reported(TEMPLATES["chatml"])
    assert "left out of answers and calls before a new question; they are written for the last answer" in says(report)
    cases = {each.case: each for each in report.next_prompts}
    assert cases["a tool's result"].extends
    broken = cases["a new question"]
    assert (broken.extends, broken.reason, broken.whose) == (False, "thinking dropped", "that answer")
    assert broken.lost > 0
    assert cases["a new question after calls"].whose == "an earlier answer"
    assert "are written for every turn" in says(reported(TEMPLATES["glm"], "glm45"))
    assert "never written. Inside the content, between <think> and </think>, they are cut out of every" in says(
        reported(TEMPLATES["deepseek"], "deepseek_r1")
    )


def test_the_end_of_a_turn_that_is_written_otherwise() -> None:
    report = reported(TEMPLATES["harmony"], "harmony")
    assert report.after_stop == "<|end|>"
    assert "The template asks for the current date" in says(report)


def test_a_template_without_thoughts_tools_and_parts() -> None:
    """What it leaves out in silence is said; the next prompt extends all the same."""
    report = reported(PLAIN)
    found = says(report)
    assert "Calls are left out, without an error." in found
    assert "printed in Python's notation ([{'type': 'text', …}]) for system texts, questions and answers" in found
    assert "For an empty system text the template still writes “<|im_start|>system↵<|im_end|>↵”." in found
    assert all(each.extends for each in report.next_prompts)
    assert (report.asks, report.after_stop) == ("<|im_start|>assistant\n", "\n")


def test_a_template_that_wants_parts() -> None:
    """Such a conversation is written in parts, and a turn's answer goes on so."""
    report = reported(PARTS)
    assert "Content has to be a list of parts" in says(report)
    assert any(stretch.origin == "text" and "Yes, it is." in stretch.text for stretch in report.conversation)
    assert [each.extends for each in report.next_prompts if each.case == "a new question"] == [True]


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        (
            PLAIN.replace("{{ m.content }}", "{{ m.content|trim }}"),
            "Whitespace at the edges of system texts, questions",
        ),
        ("{% if messages[0].role == 'system' %}{{ raise_exception('none here') }}{% endif %}" + PLAIN, "refused: none"),
        (PLAIN.replace("m.content }}", "m.content if m.role != 'system' }}"), "A system text is left out."),
        ("{% if not tools %}{{ undefined.x }}{% endif %}" + TEMPLATES["chatml"], "Without tools every conversation is"),
        (
            "{% if messages[0].role != 'system' %}<|im_start|>system\nBe good, please.<|im_end|>\n{% endif %}" + PLAIN,
            "Without a system text the template writes one of its own: “Be good, please.”.",
        ),
        (
            TEMPLATES["chatml"].replace(
                "call.function.arguments if call.function.arguments is string else call.function.arguments | tojson",
                "call.function.arguments | tojson",
            ),
            "JSON text is put in quotes a second time",
        ),
        (
            TEMPLATES["chatml"].replace("{{- message.content }}", "{{- message.content if not message.tool_calls }}"),
            "The text of an answer that calls is left out.",
        ),
    ],
)
def test_findings(template: str, sentence: str) -> None:
    assert sentence in says(reported(template))
    assert sentence not in says(reported(PLAIN))


def test_what_a_training_template_trains_by_mistake() -> None:
    twin = reported(PLAIN, twin=("mine", TRAINED)).twin
    assert twin is not None
    assert (twin.otherwise, twin.error, twin.missing) == ("", "", 0)
    assert [(each.text, each.times) for each in twin.differences] == [("<|im_start|>assistant\n", 2), ("\n", 2)]
    assert ["supplies" in each.why for each in twin.differences] == [True, False]
    right = TRAINED.replace("{% generation %}<|im_start|>assistant\n", "<|im_start|>assistant\n{% generation %}")
    right = right.replace("<|im_end|>\n{% endgeneration %}", "<|im_end|>{% endgeneration %}{{ '\n' }}")
    found = reported(PLAIN, twin=("mine", right)).twin
    assert found is not None
    assert (found.mistaken, found.missing, found.differences) == (0, 0, [])
    nothing = reported(PLAIN, twin=("mine", PLAIN)).twin
    assert nothing is not None
    assert "marks nothing" in nothing.error


def test_by_characters_the_same_is_said() -> None:
    """Without a tokenizer only the counts are others."""
    ids, characters = reported(TEMPLATES["chatml"]), report_on(template=TEMPLATES["chatml"])
    assert characters.unit == "character"
    assert characters.findings == ids.findings
    assert [(each.case, each.extends, each.reason) for each in characters.next_prompts] == [
        (each.case, each.extends, each.reason) for each in ids.next_prompts
    ]
    assert characters.total == sum(len(stretch.text) for stretch in characters.conversation)


HOSTILE = {
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}": "",
    "{{ 'a' * 99999999999 }}": "",
    "{% set x = 9 ** 9 ** 9 %}{{ x }}": "",
    "{{ ''.__class__.__mro__ }}": "",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}": "",
    "{% for": "not valid Jinja",
    "{{ .Prompt }}": "Go template",
    "{{ raise_exception('never') }}": "never",
    "{{ '\ud800' }}": "surrogate",
}


@pytest.mark.parametrize("template", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_template_ends_in_a_sentence(template: str) -> None:
    with pytest.raises(asides.UsageError) as raised:
        report_on(template=template)
    assert HOSTILE[template] in str(raised.value)
    assert "\n" not in str(raised.value)


def test_files_of_all_kinds(tmp_path: Path) -> None:
    """A folder and each file in it; the tokenizer or template that lies beside is found."""
    tokenizer("bytes").save(str(tmp_path / "tokenizer.json"))
    config: dict[str, Any] = {"chat_template": PLAIN, "eos_token": "<|im_end|>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    whole = report_on(tmp_path)
    assert (whole.unit, whole.stops) == ("token", ["<|im_end|>"])
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert report_on(tmp_path / name).total == whole.total
    (tmp_path / "tokenizer.json").rename(tmp_path / "other.json")
    assert report_on(tmp_path).unit == "character"
    with pytest.raises(asides.UsageError, match="holds no chat template"):
        report_on(tmp_path / "other.json")
