"""`compat.tinker`: the cookbook's names and shapes over `asides.render`, with a real tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides import TextDelta, ThinkingDelta, UsageError
from asides.compat import tinker
from asides.compat.tinker import (
    GptOssRenderer,
    ParseTermination,
    Qwen3Renderer,
    Renderer,
    RendererError,
    TextPart,
    ThinkingPart,
    get_renderer,
    get_text_content,
    parse_response,
    remove_thinking,
)
from tests.compat.texts import PIECES
from tests.laws.effort import examples
from tests.render.real import encode, tokenizer
from tests.render.test_tinker_cases import DIFFERENT, as_string

CASES = Path(__file__).parents[3] / "shared" / "data" / "tinker_cases.json"
HOMES = {"qwen3": "qwen3", "deepseekv3_thinking": "deepseek_v3", "kimi_k2": "kimi_k2", "gpt_oss": "gpt-oss"}


def renderer(name: str = "qwen3") -> Renderer:
    """A renderer with the real tokenizer of its family."""
    return get_renderer(name, tokenizer(HOMES[name]), seed=0)


def read(text: str, name: str = "qwen3") -> tuple[Any, ParseTermination]:
    """What a sampled text is read as."""
    return renderer(name).parse_response(encode(HOMES[name], text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qwen3", "<think>\nreasoning\n</think>\n\nvisible<|im_end|>"),
        ("deepseekv3_thinking", "<think>reasoning</think>visible<｜end▁of▁sentence｜>"),
        ("kimi_k2", "<think>reasoning</think>visible<|im_end|>"),
        (
            "gpt_oss",
            "<|channel|>analysis<|message|>reasoning<|end|>"
            "<|start|>assistant<|channel|>final<|message|>visible<|return|>",
        ),
    ],
)
def test_thinking_is_a_part(name: str, text: str) -> None:
    """Every thinking renderer gives `[ThinkingPart, TextPart]`."""
    message, success = read(text, name)
    assert message == {
        "role": "assistant",
        "content": [
            ThinkingPart(type="thinking", thinking="reasoning"),
            TextPart(type="text", text="visible"),
        ],
    }
    assert success


CLASSES = {
    "KimiK2Renderer": ("kimi_k2", "kimi_k2"),
    "Qwen3Renderer": ("qwen3", "qwen3"),
    "DeepSeekV3ThinkingRenderer": ("deepseekv3_thinking", "deepseek_v3"),
    "GptOssRenderer": ("gpt_oss", "gpt-oss"),
    "Qwen3DisableThinkingRenderer": ("qwen3_disable_thinking", "qwen3"),
    "DeepSeekV3DisableThinkingRenderer": ("deepseekv3_disable_thinking", "deepseek_v3"),
    "RoleColonRenderer": ("role_colon", "llama3"),
    "Llama3Renderer": ("llama3", "llama3"),
}
"""The cookbook's classes, with the names of their renderers and a tokenizer for each."""
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "q"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]},
    {"role": "user", "content": "r"},
]


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_what_its_name_gives(name: str) -> None:
    """`Qwen3Renderer(tokenizer)` writes and reads what `get_renderer("qwen3", tokenizer)` does, which is one."""
    called, home = CLASSES[name]
    made = getattr(tinker, name)(tokenizer(home), seed=0)
    found = get_renderer(called, tokenizer(home), seed=0)
    assert type(found) is type(made)
    talk = TALK if made.renderer.thinks else [{**each, "content": "x"} for each in TALK]
    assert made.build_generation_prompt(talk) == found.build_generation_prompt(talk)
    ids = encode(home, "<think>t</think>a")
    assert made.parse_response(ids) == found.parse_response(ids)
    assert made.get_stop_sequences() == found.get_stop_sequences()


def test_the_parameters_of_the_classes() -> None:
    """History may keep thoughts, and gpt-oss's system message has the effort and the date that are asked for."""
    keeps = Qwen3Renderer(tokenizer("qwen3"), strip_thinking_from_history=False)
    assert encode("qwen3", "t")[0] in keeps.build_generation_prompt(TALK)
    assert encode("qwen3", "t")[0] not in Qwen3Renderer(tokenizer("qwen3")).build_generation_prompt(TALK)
    assert keeps.has_extension_property
    dated = GptOssRenderer(tokenizer("gpt-oss"), True, "low", "2026-01-02")
    written = tokenizer("gpt-oss").decode(dated.build_generation_prompt(TALK[:1]))
    assert "Current date: 2026-01-02" in written
    assert "Reasoning: low" in written
    wrongs: list[dict[str, Any]] = [{"use_system_prompt": True}, {"reasoning_effort": "low"}]
    for wrong in wrongs:
        with pytest.raises(UsageError, match="go together"):
            GptOssRenderer(tokenizer("gpt-oss"), **wrong)


def test_no_thinking_is_a_string() -> None:
    """Code that expects a string of an answer without thinking goes on working; an empty block is omitted."""
    assert read("plain<|im_end|>")[0] == {"role": "assistant", "content": "plain"}
    assert read("<think>\n\n</think>\n\nplain<|im_end|>")[0]["content"] == "plain"


def test_many_parts_in_the_order_of_writing() -> None:
    """Several blocks are several parts."""
    message, _ = read("<think>\na\n</think>\n\nx<think>\nb\n</think>\n\ny<|im_end|>")
    assert [part["type"] for part in message["content"]] == ["thinking", "text", "thinking", "text"]


def test_calls_are_taken_out_of_the_text() -> None:
    """Calls stand in `tool_calls`; one that may not be run stands in `unparsed_tool_calls`."""
    call = '\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    message, _ = read(f"<think>\nt\n</think>\n\nx{call}<|im_end|>")
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}
    assert message["content"][1] == {"type": "text", "text": "x"}
    broken, _ = read('x\n<tool_call>\n{"name": "f", "arguments": [}\n</tool_call><|im_end|>')
    assert broken["unparsed_tool_calls"][0]["raw_text"].startswith("<tool_call>")
    assert broken["unparsed_tool_calls"][0]["error"]


def test_how_an_answer_ended() -> None:
    """True with a stop token, false without; an answer that was cut off is read all the same."""
    _, ended = read("<think>\na\n</think>\n\nb<|im_end|>")
    assert ended is ParseTermination.STOP_SEQUENCE
    assert ended.is_clean
    assert ended.is_stop_sequence
    message, ended = read("<think>\na")
    assert not ended
    assert ended == "malformed"
    assert message["content"] == [{"type": "thinking", "thinking": "a"}]


def test_a_prompt_tells_where_the_answer_begins() -> None:
    """With `prompt_ids` an answer that was cut off inside prefilled thinking is thinking."""
    ids = encode("deepseek_v3", "cut off")
    found = renderer("deepseekv3_thinking")
    prompt = found.build_generation_prompt([{"role": "user", "content": "q"}])
    assert found.parse_response(ids, prompt)[0]["content"] == [{"type": "thinking", "thinking": "cut off"}]


def test_the_function_takes_both_kinds_of_renderer() -> None:
    """`parse_response(renderer, ids)` is the method."""
    ids = encode("qwen3", "<think>\na\n</think>\n\nb<|im_end|>")
    found = renderer()
    assert parse_response(found, ids) == parse_response(found.renderer, ids) == found.parse_response(ids)


def test_the_helpers() -> None:
    """The answer alone, the message without thinking, and OpenAI's shape."""
    message, _ = read("<think>\na\n</think>\n\nb<|im_end|>")
    assert get_text_content(message) == "b"
    assert remove_thinking(message)["content"] == [{"type": "text", "text": "b"}]
    assert len(message["content"]) == 2
    assert renderer().to_openai_message(message) == {"role": "assistant", "content": "b", "reasoning_content": "a"}
    plain, _ = read("b<|im_end|>")
    assert remove_thinking(plain) == plain
    assert renderer().to_openai_message(plain) == plain


def test_writing_is_the_renderers_own() -> None:
    """Prompts, examples, stops and tools are those of `asides.render`."""
    found = renderer()
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    assert found.build_generation_prompt(messages[:1]) == found.renderer.build_generation_prompt(messages[:1])
    example = found.build_supervised_example(messages)
    assert len(example.ids) == len(example.weights)
    assert found.get_stop_sequences() == encode("qwen3", "<|im_end|>")
    assert found.has_extension_property is found.renderer.has_extension_property
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert found.create_conversation_prefix_with_tools(tools)[0]["role"] == "system"


def test_mistakes_are_told() -> None:
    """An unknown name and an image processor are errors of ours."""
    with pytest.raises(RendererError, match="unknown renderer 'qwen33'; did you mean qwen3"):
        get_renderer("qwen33", tokenizer("qwen3"))
    with pytest.raises(UsageError, match="image_processor"):
        get_renderer("qwen3", tokenizer("qwen3"), image_processor=object())  # type: ignore[arg-type]  # a wrong call


@settings(max_examples=examples(30))
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_a_stream_says_what_the_whole_says(text: str) -> None:
    """Events joined are the parts, for any ids: nothing is lost between the two."""
    ids = [*encode("qwen3", text), *encode("qwen3", "<|im_end|>")]
    found = renderer()
    prompt = found.build_generation_prompt([{"role": "user", "content": "q"}])
    message = found.parse_response(ids, prompt)[0]
    events = list(found.parse_response_streaming(ids, prompt))
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    thought = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
    assert found.to_openai_message(message).get("reasoning_content", "") == thought
    # Without thinking the texts are one string, with whitespace between them where words would be glued together.
    assert "".join(get_text_content(message).split()) == "".join(said.split())


@pytest.mark.skipif(not CASES.is_file(), reason="no recorded cases stand beside this repository")
def test_recorded_answers() -> None:
    """Where the project reads a recorded answer as the cookbook does, this interface gives the cookbook's message."""
    cases = json.loads(CASES.read_text(encoding="utf-8"))["parse_cases"]
    same = [case for case in cases if case["renderer"] == "qwen3" and case["id"] not in DIFFERENT]
    assert len(same) > 10
    for case in same:
        message, ended = read(case["response_text"])
        expected = case["expect"]
        assert as_string(message["content"]) == as_string(expected["content"]), case["id"]
        assert ended == expected["termination"], case["id"]
        assert len(message.get("unparsed_tool_calls", ())) == len(expected.get("unparsed_tool_calls", ()))
