"""Detection from prompts, and what happens when sources disagree."""

from __future__ import annotations

import json

import pytest

import asides
from asides.detect import Detection, detect
from tests.detect.templates import CLOSED, ECHO, NO_THOUGHTS, STRIPPING
from tests.detect.test_tokenizer import QWEN, tokenizer_json

PROMPTS = {
    "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n": ("auto", True, "thinking"),
    "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n": ("auto", None, "text"),
    "<|im_start|>assistant\n<think>\n\n</think>\n\n": ("auto", True, "text"),
    "<｜User｜>hi<｜Assistant｜></think>": ("deepseek_v3", True, "text"),
    "]~b]user\nhi[e~[\n]~b]ai\n<think>\n": ("minimax_m2", True, "thinking"),
    "<|turn>model\n<|channel>thought\n<channel|>": ("gemma4", True, "text"),
    "<seed:bos>assistant\n<seed:think>": ("seed_oss", True, "thinking"),
    "<|start|>assistant<|channel|>analysis<|message|>": ("auto", True, "thinking"),
    "Once upon a time": ("auto", None, "text"),
    "": ("auto", None, "text"),
}


@pytest.mark.parametrize("prompt", PROMPTS)
def test_prompts_alone(prompt: str) -> None:
    found = detect(prompt=prompt)
    assert (found.format, found.thinks, found.start) == PROMPTS[prompt]


def test_a_name_decides_among_those_that_a_prompt_allows() -> None:
    found = detect("Qwen/Qwen3-8B", prompt="<|im_start|>assistant\n<think>\n")
    assert (found.format, found.start) == ("qwen3", "thinking")


def test_a_prompt_is_more_direct_than_a_name() -> None:
    found = detect("openai/gpt-oss-20b", prompt="<|im_start|>assistant\n<think>\n")
    assert (found.format, found.start) == ("auto", "thinking")
    assert "the name speaks for harmony, but the prompt is more direct" in found.reasons


def test_a_format_that_begins_in_a_header_needs_no_start() -> None:
    """With a start, the header would be read as words, and a thought would be shown."""
    output = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.<|return|>"
    for found in (detect("openai/gpt-oss-20b"), detect("gpt-oss", prompt="<|start|>assistant")):
        assert (found.format, found.start) == ("harmony", None)
        parser = asides.Parser(found.format, start=found.start)
        parser.feed(output)
        parser.finish()
        assert (parser.message.thinking, parser.message.text) == ("hm", "Yes.")
    opened = detect("gpt-oss", prompt="<|start|>assistant<|channel|>analysis<|message|>")
    assert (opened.format, opened.start) == ("harmony", "thinking")


def test_a_prompt_is_more_direct_than_a_template() -> None:
    prompt = "<｜User｜>hi<｜Assistant｜>"
    found = detect(chat_template=STRIPPING, prompt=prompt)
    assert (found.format, found.start) == ("deepseek_r1", "text")


def test_a_template_is_more_direct_than_a_tokenizer() -> None:
    found = detect(chat_template=STRIPPING, tokenizer=tokenizer_json(QWEN))
    assert found.format == "deepseek_r1"
    assert "the tokenizer speaks for qwen3, but the chat template is more direct" in found.reasons
    assert (found.open_id, found.close_id) == (11, 12)


def test_a_tokenizer_is_more_direct_than_a_name() -> None:
    found = detect("openai/gpt-oss-20b", tokenizer=tokenizer_json(QWEN))
    assert found.format == "qwen3"
    assert "the name speaks for harmony, but the tokenizer is more direct" in found.reasons


def test_a_name_decides_among_those_that_a_tokenizer_allows() -> None:
    assert detect("Qwen/Qwen3-4B-Thinking-2507", tokenizer=tokenizer_json(QWEN)).format == "qwen3_thinking"


def test_a_name_tells_what_a_template_does_not_show() -> None:
    assert detect("XiaomiMiMo/MiMo-VL-7B-RL", chat_template=NO_THOUGHTS).thinks is True
    assert detect("Qwen/Qwen2.5-7B", chat_template=NO_THOUGHTS).thinks is False
    assert detect("Qwen/Qwen2.5-7B", chat_template=ECHO).thinks is True


def test_prompts_in_ids() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    live = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json(QWEN)))
    found = detect("qwen3", tokenizer=live, prompt_ids=[7, 11])
    assert (found.format, found.start) == ("qwen3", "thinking")
    # The same characters typed with ordinary tokens are words.
    spelled = detect("qwen3", tokenizer=live, prompt_ids=[7, 1, 2, 3])
    assert spelled.start == "text"


def test_ids_need_a_tokenizer() -> None:
    with pytest.raises(asides.UsageError, match="tokenizer"):
        detect("qwen3", prompt_ids=[1, 2])


def test_something_must_be_given() -> None:
    with pytest.raises(asides.UsageError, match="name, a tokenizer, a chat template or a prompt"):
        detect()


def test_what_is_found_can_be_used() -> None:
    found = detect(chat_template=CLOSED)
    assert isinstance(found, Detection)
    parser = asides.Parser(found.format, start=found.start_on)
    parser.feed("hm</think>Yes.")
    parser.finish()
    assert (parser.message.thinking, parser.message.text) == ("hm", "Yes.")


def test_as_data() -> None:
    found = detect(chat_template=ECHO, tokenizer=tokenizer_json(QWEN))
    assert json.loads(json.dumps(found.to_dict()))["format"] == "qwen3"
    made = detect(tokenizer=tokenizer_json({"<|reason_start|>": 7, "<|reason_end|>": 8}))
    shown = json.loads(json.dumps(made.to_dict()))["format"]
    assert shown == {"name": "<|reason_start|>", "open": "<|reason_start|>", "close": "<|reason_end|>"}


def test_the_package_is_its_function() -> None:
    """`asides.detect` is the package once that is imported, and must answer all the same."""
    import asides.detect as package

    assert package("qwen3").format == "qwen3"  # type: ignore[operator]
