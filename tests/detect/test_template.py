"""Detection from chat templates: small ones of our own, of each kind that is met."""

from __future__ import annotations

import pytest

import asides
from asides._engine.format import Format
from asides.detect import detect
from asides.families import Family, Model
from tests.detect.templates import KNOWN, UNKNOWN_CLOSER, UNKNOWN_IN_PROMPT, UNKNOWN_PAIR
from tests.detect.test_tokenizer import tokenizer_json


@pytest.mark.parametrize("kind", KNOWN)
def test_each_kind_of_template(kind: str) -> None:
    expected = KNOWN[kind]
    found = detect(chat_template=expected.template)
    assert found.thinks is expected.thinks
    assert found.start == expected.start
    assert found.switch == expected.switch
    assert (found.start_on, found.start_off) == (expected.start_on, expected.start_off)
    assert found.field == expected.field
    assert found.reasons
    if expected.format is not None:
        assert found.format == expected.format, found.reasons
    asides.parse("hello", found.format)


def test_calls_that_do_not_show_are_left_to_auto() -> None:
    """The markers of thinking are known all the same, and so are the formats that it may be."""
    found = detect(chat_template=KNOWN["mentioned"].template)
    assert (found.format, found.open, found.close) == ("auto", "<think>", "</think>")
    assert {"qwen3", "hermes", "lfm2", "olmo3"} <= set(found.equals)
    said = next(reason for reason in found.reasons if "how it writes calls does not show" in reason)
    assert all(name in said for name in found.equals)


@pytest.mark.usefixtures("_clean_registry", "_rendered_here")
@pytest.mark.parametrize("kind", ["mentioned", "told", "named"])
def test_a_family_that_is_registered_does_not_vote_on_the_models_of_others(kind: str) -> None:
    """One of ChatML with a pair of its own, which such a template neither writes nor names."""
    template = KNOWN[kind].template
    before = detect(chat_template=template)
    qwen3 = asides.get_format("qwen3")
    stops, calls = ("<|im_end|>",), qwen3.calls
    own = Format.tags("<muse>", "</muse>", name="own", stops=stops, calls=calls, assistant=qwen3.assistant)
    asides.register(Family(name="Own", formats=(own,), models=(Model(r"\bown-1", "own", True),)))
    found = detect(chat_template=template)
    for field in ("format", "thinks", "start", "start_on", "start_off", "switch", "open", "close", "confidence"):
        assert getattr(found, field) == getattr(before, field), field


def test_what_is_less_direct_chooses_among_the_candidates() -> None:
    template = KNOWN["mentioned"].template
    assert detect("LiquidAI/LFM2.5-1.2B-Instruct", chat_template=template).format == "lfm2"
    tokens = {"<|im_start|>": 6, "<|im_end|>": 7, "<|tool_call_start|>": 8, "<|tool_call_end|>": 9}
    assert detect(chat_template=template, tokenizer=tokenizer_json(tokens)).format == "lfm2"


def test_what_the_switch_is_set_to() -> None:
    found = detect(chat_template=KNOWN["effort"].template)
    assert (found.on, found.off) == ("low", None)  # off is to leave it out
    found = detect(chat_template=KNOWN["mode"].template)
    assert (found.on, found.off) == ("enabled", "disabled")
    found = detect(chat_template=KNOWN["closed"].template)
    assert (found.on, found.off) == (True, False)


def test_a_pair_never_seen_before_gives_a_format_that_works() -> None:
    found = detect(chat_template=UNKNOWN_PAIR)
    assert isinstance(found.format, Format)
    assert (found.open, found.close) == ("<ponder>", "</ponder>")
    assert (found.thinks, found.start, found.switch, found.start_on) == (True, "text", "deep_thinking", "thinking")
    message = asides.parse("<ponder>hm</ponder>\nYes.<over>", found.format)
    assert [type(part).__name__ for part in message.parts] == ["Thinking", "Text"]
    assert (message.thinking, message.text, message.termination) == ("hm", "Yes.", "stop")
    message = asides.parse("hm</ponder>\nYes.", found.format, start="thinking")
    assert (message.thinking, message.text) == ("hm", "Yes.")
    assert found.format.assistant == ("[assistant]",)
    assert asides.Parser(found.format, prompt="[user]Why?<over>\n[assistant]<ponder>").state == "thinking"


def test_a_pair_that_shows_in_the_prompt_alone() -> None:
    found = detect(chat_template=UNKNOWN_IN_PROMPT)
    assert isinstance(found.format, Format)
    assert (found.open, found.close) == ("<ponder>", "</ponder>")
    assert (found.thinks, found.start) == (True, "thinking")
    message = asides.parse("hm</ponder>Yes.<over>", found.format, start=found.start)
    assert (message.thinking, message.text) == ("hm", "Yes.")


def test_a_closer_without_an_opener() -> None:
    found = detect(chat_template=UNKNOWN_CLOSER)
    assert isinstance(found.format, Format)
    assert (found.open, found.close, found.thinks, found.start) == ("", "== ANSWER ==", True, "thinking")
    message = asides.parse("hm\n== ANSWER ==\nYes.<over>", found.format, start=found.start)
    assert (message.thinking, message.text) == ("hm", "Yes.")


def test_an_unknown_turn_around_known_markers() -> None:
    template = UNKNOWN_PAIR.replace("<ponder>", "<think>").replace("</ponder>", "</think>")
    found = detect(chat_template=template)
    message = asides.parse("<think>hm</think>\nYes.<over>", found.format)
    assert (message.thinking, message.text, message.termination) == ("hm", "Yes.", "stop")


def test_the_same_template_gives_the_same_answer() -> None:
    template = KNOWN["echo"].template
    assert detect(chat_template=template) == detect(chat_template=template)


def test_what_is_no_template() -> None:
    with pytest.raises(asides.UsageError, match="no Jinja"):
        detect(chat_template="chat_template.jinja")
    with pytest.raises(asides.UsageError, match="Go template"):
        detect(chat_template="{{- range .Messages }}<think>{{ .Thinking }}</think>{{ .Content }}{{ end }}")
    with pytest.raises(asides.UsageError, match="not valid Jinja: line 1"):
        detect(chat_template="{% if messages %}")


def test_a_template_that_cannot_be_rendered_is_read_as_text() -> None:
    found = detect(chat_template="{{ functions.all() }}{{ '<think>' }}{{ '</think>' }}")
    assert found.thinks is None
    assert any("could not be rendered" in reason for reason in found.reasons)
    assert any("<think>" in reason for reason in found.reasons)


def test_a_template_that_wants_functions_and_the_time_as_text() -> None:
    """Firefunction's does not render without them, and always writes the generation prompt."""
    template = """\
{%- set told = 'Write functools[...] to call.\\n' + functions + '\\nIt is ' + datetime %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' + told + '<|eot_id|>' }}
{%- for message in messages %}
{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + (message.content or '') }}
{%- if message.tool_calls %}
{{- ' functools[' }}
{%- for call in message.tool_calls %}
{{- {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}{{- '' if loop.last else ', ' }}
{%- endfor %}{{- ']' }}
{%- endif %}
{{- '<|eot_id|>' }}
{%- endfor %}
{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}"""
    found = detect(chat_template=template)
    assert (found.format, found.thinks, found.start) == ("firefunction_v2", False, "text")


def test_a_template_that_wants_what_nobody_knows() -> None:
    found = detect(chat_template="{{- told + messages[0].content }}")
    assert "is undefined" in " ".join(found.reasons)
