"""Any checkpoint as a renderer: names without a template of ours, the tokenizer's own, and what cannot be had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.render import CheckpointRenderer, RendererError, get_renderer
from tests.render.real import encode, tokenizer

TEMPLATE = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content and not loop.nextitem %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}{% for call in m.tool_calls %}\n<tool_call>\n"
    '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}'
    "\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
ASK, AGAIN = {"role": "user", "content": "2+2?"}, {"role": "user", "content": "Sure?"}
PLAIN = {"role": "assistant", "content": "Four."}
THOUGHT: dict[str, Any] = {
    "role": "assistant",
    "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Four."}],
}
CALLED: dict[str, Any] = {**PLAIN, "tool_calls": [{"name": "f", "arguments": '{"a": 1}'}]}


def make(name: str | None = "qwen3.5", **options: Any) -> CheckpointRenderer:
    found = get_renderer(name, tokenizer("qwen3"), **{"template": TEMPLATE, **options})
    assert isinstance(found, CheckpointRenderer)
    return found


def ids(text: str) -> list[int]:
    return encode("qwen3", text)


@pytest.mark.parametrize("name", [None, "qwen3.5", "Qwen/Qwen3.5-4B", "glm-4.5"])
def test_prompts_are_the_templates(name: str | None) -> None:
    found = make(name).build_generation_prompt([ASK, PLAIN, AGAIN])
    assert found == ids(
        "<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\nFour.<|im_end|>\n"
        "<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_name_that_turns_thinking_off_does() -> None:
    found = make("qwen3_5_disable_thinking").build_generation_prompt([ASK])
    assert found == ids("<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_weights_are_what_a_model_samples() -> None:
    renderer = make()
    example = renderer.build_supervised_example([ASK, THOUGHT])
    prompt = renderer.build_generation_prompt([ASK])
    answer = ids("<think>\nhm\n</think>\n\nFour.<|im_end|>")
    assert example.ids == prompt + answer + ids("\n")
    assert example.weights == [0] * len(prompt) + [1] * len(answer) + [0]
    assert all(renderer.build_supervised_example([ASK, THOUGHT], "all_tokens").weights)
    users = renderer.build_supervised_example([ASK, THOUGHT], "all_user_and_system_messages")
    words = [id for id, weight in zip(users.ids, users.weights, strict=True) if weight]
    assert renderer.vocabulary.text(words) == "2+2?<|im_end|>\n"


def test_answers_are_read_and_extended() -> None:
    renderer = make()
    prompt = renderer.build_generation_prompt([ASK])
    sampled = ids("Four.<|im_end|>")
    assert renderer.parse_response(sampled, prompt) == (PLAIN, True)
    assert renderer.get_stop_sequences()[0] == sampled[-1]
    assert renderer.extend(prompt, sampled, [AGAIN]) == renderer.build_generation_prompt([ASK, PLAIN, AGAIN])
    thinking = ids("<think>\nhm\n</think>\n\nFour.<|im_end|>")
    assert renderer.extend(prompt, thinking, [AGAIN]) is None, "the template drops the thought"


def test_calls_and_tools_reach_the_template() -> None:
    renderer = make()
    tool = {"type": "function", "function": {"name": "f", "description": "Adds.", "parameters": {}}}
    prefix = renderer.create_conversation_prefix_with_tools([tool], "Be brief.")
    text = renderer.vocabulary.text(renderer.build_generation_prompt([*prefix, ASK, CALLED, AGAIN]))
    assert json.dumps([tool]) in text
    assert '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call><|im_end|>' in text


def test_what_users_spell_stays_words() -> None:
    renderer = make()
    found = renderer.build_generation_prompt([{"role": "user", "content": "<|im_end|>"}])
    assert found.count(ids("<|im_end|>")[0]) == 1


def test_files_that_hold_a_template(tmp_path: Path) -> None:
    expected = make().build_generation_prompt([ASK])
    jinja, config = tmp_path / "chat_template.jinja", tmp_path / "tokenizer_config.json"
    jinja.write_text(TEMPLATE, encoding="utf-8")
    config.write_text(json.dumps({"chat_template": TEMPLATE}), encoding="utf-8")
    for path in (jinja, config):
        assert make(template=path).build_generation_prompt([ASK]) == expected


def test_what_cannot_be_had_or_written_is_said() -> None:
    with pytest.raises(RendererError, match=r"chat_template\.jinja, tokenizer_config\.json or GGUF"):
        get_renderer("qwen3.5", tokenizer("qwen3"))
    with pytest.raises(RendererError, match="unknown renderer"):
        get_renderer("nobody's", tokenizer("qwen3"), template=TEMPLATE)
    with pytest.raises(RendererError, match="no history"):
        make(history="keep")
    with pytest.raises(RendererError, match="one thought"):
        make().build_generation_prompt([ASK, {**THOUGHT, "content": [*THOUGHT["content"], *THOUGHT["content"]]}])
    with pytest.raises(RendererError, match="not for the user"):
        make().build_generation_prompt([ASK], role="user")
    with pytest.raises(RendererError, match="refuses"):
        make(template="{{ raise_exception('no') }}").build_generation_prompt([ASK])
    with pytest.raises(asides.UsageError):
        make(template=Path("nowhere.jinja"))
