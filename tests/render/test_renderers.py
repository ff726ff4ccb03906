"""Renderers over real tokenizers: what they write, what they read, and that each undoes the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asides
from asides.events import Event, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from asides.render import Renderer, RendererError, TrainOnWhat, get_renderer, register_renderer, renderers
from tests.render.real import encode, tokenizer, vocabulary

HOMES = {
    "role_colon": "qwen3",
    "llama3": "llama3",
    "qwen3": "qwen3",
    "qwen3_disable_thinking": "qwen3",
    "deepseekv3_thinking": "deepseek_v3",
    "deepseekv3_disable_thinking": "deepseek_v3",
    "kimi_k2": "kimi_k2",
    "gpt_oss": "gpt-oss",
}
"""For each renderer a tokenizer of its family."""
THINKING = ("qwen3", "deepseekv3_thinking", "kimi_k2", "gpt_oss")
CALLING = (*THINKING, "qwen3_disable_thinking", "deepseekv3_disable_thinking")
OPTIONS = [(name, history) for name in HOMES for history in get_renderer(name, tokenizer(HOMES[name])).histories]

Q1, Q2 = {"role": "user", "content": "Q1"}, {"role": "user", "content": "Q2"}
SYSTEM = {"role": "system", "content": "S"}
PLAIN = {"role": "assistant", "content": "A1"}
THOUGHT: dict[str, Any] = {
    "role": "assistant",
    "content": [{"type": "thinking", "thinking": "T1"}, {"type": "text", "text": "A1"}],
}
CALL = {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
CALLED: dict[str, Any] = {**THOUGHT, "tool_calls": [CALL]}
RESULT = {"role": "tool", "content": "42", "name": "f", "tool_call_id": "functions.f:0"}
TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "Adds.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "The first."},
                "unit": {"type": "string", "enum": ["m", "km"], "default": "m"},
                "list": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["a"],
        },
    },
}


def make(name: str, **options: Any) -> Renderer:
    return get_renderer(name, tokenizer(HOMES[name]), **{"seed": 0, **options})


def ids_of(name: str, text: str) -> list[int]:
    return encode(HOMES[name], text)


def shown(renderer: Renderer, ids: list[int]) -> str:
    return renderer.vocabulary.text(ids)


def weighed(renderer: Renderer, messages: list[Any], what: str) -> str:
    """An example with what carries weight in brackets."""
    ids, weights = renderer.build_supervised_example(messages, what)
    pieces, before = [], 0
    for id, weight in zip(ids, weights, strict=True):
        pieces.append(("⟦" if weight else "⟧") if weight != before else "")
        pieces.append(renderer.vocabulary.text([id]))
        before = weight
    return "".join(pieces) + ("⟧" if before else "")


# Writing.

PROMPTS = {
    "role_colon": "System: S\n\nUser: Q1\n\nAssistant: A1\n\nUser: Q2\n\nAssistant:",
    "llama3": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nQ1<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"
    "A1<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nQ2<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "qwen3": "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ1<|im_end|>\n<|im_start|>assistant\nA1<|im_end|>\n"
    "<|im_start|>user\nQ2<|im_end|>\n<|im_start|>assistant\n",
    "qwen3_disable_thinking": "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nQ1<|im_end|>\n"
    "<|im_start|>assistant\nA1<|im_end|>\n<|im_start|>user\nQ2<|im_end|>\n<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n",
    "deepseekv3_thinking": "<｜begin▁of▁sentence｜>S<｜User｜>Q1<｜Assistant｜></think>A1<｜end▁of▁sentence｜>"
    "<｜User｜>Q2<｜Assistant｜><think>",
    "deepseekv3_disable_thinking": "<｜begin▁of▁sentence｜>S<｜User｜>Q1<｜Assistant｜></think>A1<｜end▁of▁sentence｜>"
    "<｜User｜>Q2<｜Assistant｜></think>",
    "kimi_k2": "<|im_system|>system<|im_middle|>S<|im_end|><|im_user|>user<|im_middle|>Q1<|im_end|>"
    "<|im_assistant|>assistant<|im_middle|><think></think>A1<|im_end|><|im_user|>user<|im_middle|>Q2<|im_end|>"
    "<|im_assistant|>assistant<|im_middle|>",
    "gpt_oss": "<|start|>developer<|message|># Instructions\n\nS\n\n<|end|><|start|>user<|message|>Q1<|end|>"
    "<|start|>assistant<|channel|>final<|message|>A1<|end|><|start|>user<|message|>Q2<|end|><|start|>assistant",
}


@pytest.mark.parametrize("name", HOMES)
def test_prompts(name: str) -> None:
    renderer = make(name)
    ids = renderer.build_generation_prompt([SYSTEM, Q1, PLAIN, Q2])
    assert shown(renderer, ids) == PROMPTS[name]
    if name != "role_colon":
        assert ids == ids_of(name, PROMPTS[name]), "the ids are those of the text with its markers as tokens"


EXAMPLES = [
    ("role_colon", [Q1, PLAIN], "User: Q1\n\nAssistant:⟦ A1\n\nUser:⟧"),
    (
        "llama3",
        [Q1, PLAIN],
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nQ1<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n⟦A1<|eot_id|>⟧",
    ),
    (
        "qwen3",
        [Q1, THOUGHT],
        "<|im_start|>user\nQ1<|im_end|>\n<|im_start|>assistant\n⟦<think>\nT1\n</think>\n\nA1<|im_end|>⟧",
    ),
    (
        "qwen3",
        [Q1, PLAIN],
        "<|im_start|>user\nQ1<|im_end|>\n<|im_start|>assistant\n⟦<think>\n\n</think>\n\nA1<|im_end|>⟧",
    ),
    (
        "qwen3",
        [Q1, CALLED],
        "<|im_start|>user\nQ1<|im_end|>\n<|im_start|>assistant\n⟦<think>\nT1\n</think>\n\nA1\n"
        '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call><|im_end|>⟧',
    ),
    (
        "qwen3_disable_thinking",
        [Q1, PLAIN],
        "<|im_start|>user\nQ1<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n⟦A1<|im_end|>⟧",
    ),
    (
        "deepseekv3_thinking",
        [Q1, THOUGHT],
        "<｜begin▁of▁sentence｜><｜User｜>Q1<｜Assistant｜><think>⟦T1</think>A1<｜end▁of▁sentence｜>⟧",
    ),
    (
        "deepseekv3_thinking",
        [Q1, CALLED, RESULT, THOUGHT],
        "<｜begin▁of▁sentence｜><｜User｜>Q1<｜Assistant｜><think>"
        '⟦T1</think>A1<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>⟧<｜tool▁output▁begin｜>42<｜tool▁output▁end｜>"
        "⟦<think>T1</think>A1<｜end▁of▁sentence｜>⟧",
    ),
    (
        "deepseekv3_disable_thinking",
        [Q1, THOUGHT],
        "<｜begin▁of▁sentence｜><｜User｜>Q1<｜Assistant｜></think>⟦A1<｜end▁of▁sentence｜>⟧",
    ),
    (
        "kimi_k2",
        [Q1, CALLED, RESULT, PLAIN],
        "<|im_system|>system<|im_middle|>You are Kimi, an AI assistant created by "
        "Moonshot AI.<|im_end|><|im_user|>user<|im_middle|>Q1<|im_end|><|im_assistant|>assistant<|im_middle|>"
        "⟦<think>T1</think>A1<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        '{"a": 1}<|tool_call_end|><|tool_calls_section_end|><|im_end|>⟧<|im_system|>f<|im_middle|>'
        "## Return of functions.f:0\n42<|im_end|><|im_assistant|>assistant<|im_middle|>⟦<think></think>A1<|im_end|>⟧",
    ),
    (
        "gpt_oss",
        [Q1, CALLED, RESULT, THOUGHT],
        "<|start|>user<|message|>Q1<|end|><|start|>assistant"
        "⟦<|channel|>analysis<|message|>T1<|end|><|start|>assistant<|channel|>commentary<|message|>A1<|end|>"
        '<|start|>assistant to=functions.f<|channel|>commentary <|constrain|>json<|message|>{"a": 1}<|call|>⟧'
        "<|start|>functions.f to=assistant<|channel|>commentary<|message|>42<|end|><|start|>assistant"
        "⟦<|channel|>analysis<|message|>T1<|end|><|start|>assistant<|channel|>final<|message|>A1<|return|>⟧",
    ),
]


@pytest.mark.parametrize(("name", "messages", "expected"), EXAMPLES)
def test_examples(name: str, messages: list[Any], expected: str) -> None:
    assert weighed(make(name), messages, "all_assistant_messages") == expected


def test_histories() -> None:
    """Earlier thinking goes, goes with the turn, or stays."""
    after_user, after_result = [Q1, THOUGHT, Q2], [Q1, CALLED, RESULT]
    kept = {
        (name, history): tuple(
            "T1" in shown(renderer, renderer.build_generation_prompt(messages))
            for messages in (after_user, after_result)
        )
        for name, history in OPTIONS
        if (renderer := make(name, history=history)).thinks and name in THINKING
    }
    assert kept == {
        (name, history): {"strip": (False, False), "turn": (False, True), "keep": (True, True)}[history]
        for name, history in kept
    }
    assert {name: make(name).history for name in THINKING} == {
        "qwen3": "strip",
        "deepseekv3_thinking": "turn",
        "kimi_k2": "turn",
        "gpt_oss": "keep",
    }


def test_train_on_what() -> None:
    messages = [SYSTEM, Q1, PLAIN, Q2, PLAIN, {"role": "user", "content": "Q3"}]
    messages += [{"role": "assistant", "content": "B"}]
    renderer = make("llama3")

    def trained(what: str, given: list[Any] = messages) -> list[str]:
        text = weighed(renderer, given, what)
        return [piece.split("⟧")[0].replace("<|eot_id|>", "") for piece in text.split("⟦")[1:]]

    assert trained("last_assistant_message") == ["B"]
    assert trained("last_assistant_turn") == ["B"]
    assert trained("all_assistant_messages") == ["A1", "A1", "B"]
    assert trained("all_user_and_system_messages") == ["S", "Q1", "Q2", "Q3"]
    assert trained("all_messages") == ["S", "Q1", "A1", "Q2", "A1", "Q3", "B"]
    assert len(trained("all_tokens")) == 1
    chosen = [{**message, "trainable": index == 2} for index, message in enumerate(messages)]
    assert trained("customized", chosen) == ["A1"]
    with pytest.raises(RendererError):
        renderer.build_supervised_example(messages, TrainOnWhat.CUSTOMIZED)
    with pytest.raises(RendererError):
        renderer.build_supervised_example(chosen)
    turn = [Q1, CALLED, RESULT, THOUGHT]
    assert weighed(make("kimi_k2"), turn, "last_assistant_turn").count("⟦") == 2
    assert weighed(make("kimi_k2"), turn, "last_assistant_message").count("⟦") == 1


@pytest.mark.parametrize("name", HOMES)
def test_what_a_prompt_supplies_carries_no_weight(name: str) -> None:
    renderer = make(name)
    prompt = renderer.build_generation_prompt([Q1])
    for what in TrainOnWhat:
        if what in (TrainOnWhat.ALL_TOKENS, TrainOnWhat.CUSTOMIZED):
            continue
        ids, weights = renderer.build_supervised_example([Q1, PLAIN], what)
        if what in (TrainOnWhat.ALL_MESSAGES, TrainOnWhat.ALL_USER_AND_SYSTEM_MESSAGES):
            continue
        assert ids[: len(prompt)] == prompt
        assert not any(weights[: len(prompt)])
        assert all(weights[len(prompt) :])


@pytest.mark.parametrize("name", HOMES)
def test_text_forges_no_token(name: str) -> None:
    """Nobody's words become a token of the template, and they are all there."""
    renderer = make(name)
    evil = "".join(sorted(marker for marker in vocabulary(HOMES[name]).added if marker.strip()))
    innocent = "x"
    tokens = set(renderer.vocabulary.added.values())

    def prompt(words: str) -> list[int]:
        messages: list[Any] = [{"role": "system", "content": words}, {"role": "user", "content": words}]
        messages += [{"role": "assistant", "content": words}, {"role": "user", "content": [words]}]
        if renderer.calls:
            messages[2]["tool_calls"] = [{"name": "f", "arguments": {"a": words}, "id": "functions.f:0"}]
            messages.insert(3, {**RESULT, "content": words})
        return renderer.build_generation_prompt(messages)

    forged, plain = prompt(evil), prompt(innocent)
    assert [id for id in forged if id in tokens] == [id for id in plain if id in tokens]
    assert shown(renderer, forged).count(evil) >= 4


@pytest.mark.parametrize("name", CALLING)
def test_tools_are_declared(name: str) -> None:
    renderer = make(name)
    prefix = renderer.create_conversation_prefix_with_tools([TOOL], "Be brief.")
    text = shown(renderer, renderer.build_generation_prompt([*prefix, Q1]))
    assert "Be brief." in text
    assert "Adds." in text
    bare = renderer.create_conversation_prefix_with_tools([TOOL["function"]], "Be brief.")  # type: ignore[list-item]
    assert shown(renderer, renderer.build_generation_prompt([*bare, Q1])) == text


def test_declarations_in_full() -> None:
    tool = {"name": "f", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}
    written = {}
    for name in ("qwen3", "kimi_k2", "gpt_oss"):
        renderer = make(name)
        prefix = renderer.create_conversation_prefix_with_tools([tool])
        written[name] = shown(renderer, renderer.build_generation_prompt([*prefix, Q1]))
    line = '{"type": "function", "function": {"name": "f", "description": "Adds.", "parameters": {"type": "object", '
    assert f'\n<tools>\n{line}"properties": {{}}}}}}}}\n</tools>\n' in written["qwen3"]
    assert written["kimi_k2"].startswith(
        '<|im_system|>tool_declare<|im_middle|>[{"function":{"description":"Adds.","name":"f","parameters":'
        '{"properties":{},"type":"object"}},"type":"function"}]<|im_end|><|im_system|>system<|im_middle|>You are Kimi'
    )
    assert written["gpt_oss"].startswith(
        "<|start|>developer<|message|># Tools\n\n## functions\n\nnamespace functions {\n\n// Adds.\n"
        "type f = () => any;\n\n} // namespace functions<|end|><|start|>user"
    )


def test_typescript() -> None:
    renderer = make("gpt_oss", effort="low", date="2026-01-02")
    text = shown(renderer, renderer.build_generation_prompt([{**SYSTEM, "tools": [TOOL]}, Q1]))
    assert text == (
        "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
        "Knowledge cutoff: 2024-06\nCurrent date: 2026-01-02\n\nReasoning: low\n\n"
        "# Valid channels: analysis, commentary, final. Channel must be included for every message.\n"
        "Calls to these tools must go to the commentary channel: 'functions'.<|end|>"
        "<|start|>developer<|message|># Instructions\n\nS\n\n# Tools\n\n## functions\n\nnamespace functions {\n\n"
        "// Adds.\ntype f = (_: {\n// The first.\na: number,\n"
        'unit?: "m" | "km", // default: m\nlist?: string[],\n}) => any;\n\n} // namespace functions<|end|>'
        "<|start|>user<|message|>Q1<|end|><|start|>assistant"
    )


def test_prefill() -> None:
    renderer = make("qwen3")
    prompt = renderer.build_generation_prompt([Q1], prefill="<think>\nFirst")
    assert prompt == renderer.build_generation_prompt([Q1]) + ids_of("qwen3", "<think>\nFirst")
    message, ended = renderer.parse_response(ids_of("qwen3", " this.\n</think>\n\nA<|im_end|>"), prompt)
    assert message["content"] == [{"type": "thinking", "thinking": " this."}, {"type": "text", "text": "A"}]
    assert ended


def test_what_cannot_be_written_is_an_error() -> None:
    for name in ("role_colon", "llama3"):
        with pytest.raises(RendererError):
            make(name).build_generation_prompt([Q1, THOUGHT, Q2])
        with pytest.raises(RendererError):
            make(name).build_generation_prompt([Q1, {**PLAIN, "tool_calls": [CALL]}])
        with pytest.raises(RendererError):
            make(name).create_conversation_prefix_with_tools([TOOL])
    with pytest.raises(RendererError):
        make("qwen3_disable_thinking").build_supervised_example([Q1, THOUGHT], "all_assistant_messages")
    with pytest.raises(RendererError):
        make("deepseekv3_thinking").build_generation_prompt([Q1, SYSTEM])
    make("deepseekv3_thinking", system_role_as_user=True).build_generation_prompt([Q1, SYSTEM])
    for broken in ({}, {"role": "user", "content": 3}, {"role": "user", "content": [{"type": "image"}]}):
        with pytest.raises(RendererError):
            make("qwen3").build_generation_prompt([broken])
    with pytest.raises(RendererError):
        make("qwen3").build_generation_prompt([{**PLAIN, "tool_calls": [{"arguments": "{}"}]}])
    with pytest.raises(RendererError):
        make("qwen3", history="sometimes")


def test_names() -> None:
    assert set(HOMES) <= set(renderers())
    assert type(get_renderer("Qwen3-Disable-Thinking", tokenizer("qwen3"))).__name__ == "Qwen3DisableThinking"
    with pytest.raises(RendererError, match="did you mean qwen3"):
        get_renderer("qwen33", tokenizer("qwen3"))
    with pytest.raises(asides.UsageError):
        register_renderer("qwen3", make)
    register_renderer("mine", lambda tokenizer, **options: make("qwen3"), replace=True)
    assert get_renderer("mine", None).name == "qwen3"


# Reading.

READINGS: list[tuple[str, str, Any, bool]] = [
    ("qwen3", "Hello.<|im_end|>", "Hello.", True),
    ("qwen3", "Hello.", "Hello.", False),
    ("qwen3", "<think></think>Hello.<|im_end|>", "Hello.", True),
    ("qwen3", "<think>\n\n</think>\n\nHello.<|im_end|>", "Hello.", True),
    ("qwen3", "<think>\na\n</think>\n\nb<|im_end|>", ["=a", "b"], True),
    ("qwen3", "<think>a</think>b<think>c</think>d<|im_end|>", ["=a", "b", "=c", "d"], True),
    ("qwen3", "<think>a</think>b<think>c</think>d", ["=a", "b", "=c", "d"], False),
    ("qwen3", "<think>never closed<|im_end|>", ["=never closed"], True),
    ("qwen3", "<think>never closed", ["=never closed"], False),
    ("qwen3", "opened in the prompt</think>b<|im_end|>", ["=opened in the prompt", "b"], True),
    ("qwen3", "  \n<|im_end|>", "  \n", True),
    ("qwen3", "<|im_end|>", "", True),
    ("qwen3", "", "", False),
    ("qwen3", "a<|im_end|>b<|im_end|>", "a\n\nb", False),
    ("deepseekv3_thinking", "a</think>b<｜end▁of▁sentence｜>", ["=a", "b"], True),
    ("deepseekv3_thinking", "<think>a</think>b<｜end▁of▁sentence｜>", ["=a", "b"], True),
    ("deepseekv3_thinking", "cut while thinking", ["=cut while thinking"], False),
    ("deepseekv3_thinking", "b<｜end▁of▁sentence｜>", "b", True),
    ("deepseekv3_disable_thinking", "b<｜end▁of▁sentence｜>", "b", True),
    ("kimi_k2", "<think>a</think>b<|im_end|>", ["=a", "b"], True),
    ("gpt_oss", "<|channel|>final<|message|>b<|return|>", "b", True),
    (
        "gpt_oss",
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>c<|end|>"
        "<|start|>assistant<|channel|>final<|message|>b<|return|>",
        ["=a", "=c", "b"],
        True,
    ),
    (
        "gpt_oss",
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>p<|end|>"
        "<|start|>assistant<|channel|>final<|message|>b<|return|>",
        ["=a", "p", "b"],
        True,
    ),
    ("gpt_oss", "<|channel|>final<|message|>use to=functions.x here<|return|>", "use to=functions.x here", True),
    ("gpt_oss", "<|channel|>analysis<|message|>a", ["=a"], False),
    ("llama3", '{"name": "f"} <think>a</think><|eot_id|>', '{"name": "f"} <think>a</think>', True),
    ("role_colon", " A\n\nUser:", "A", True),
    ("role_colon", " A", "A", False),
    ("role_colon", " A<|im_end|>", "A", True),
]


@pytest.mark.parametrize(("name", "text", "content", "ended"), READINGS)
def test_readings(name: str, text: str, content: Any, ended: bool) -> None:
    """Parts in the order they appear; a string where there is no thinking."""
    if isinstance(content, list):
        kinds = [("thinking", part[1:]) if part.startswith("=") else ("text", part) for part in content]
        content = [{"type": kind, kind: words} for kind, words in kinds]
    assert make(name).parse_response(ids_of(name, text)) == ({"role": "assistant", "content": content}, ended)


def test_calls_are_taken_out_in_order() -> None:
    renderer = make("qwen3")
    call = '<tool_call>\n{"name": "%s", "arguments": {"é":  1}}\n</tool_call>'
    text = f"<think>\na\n</think>\n\nb\n{call % 'f'}\n{call % 'g'}\nc<|im_end|>"
    message, ended = renderer.parse_response(ids_of("qwen3", text))
    assert ended
    assert message["content"] == [
        {"type": "thinking", "thinking": "a"},
        {"type": "text", "text": "b"},
        {"type": "text", "text": "\nc"},
    ]
    assert [call["function"] for call in message["tool_calls"]] == [
        {"name": name, "arguments": '{"é":  1}'} for name in "fg"
    ]
    assert "unparsed_tool_calls" not in message


BROKEN = [
    ("qwen3", '<tool_call>\n{"name": "f", "arguments": {no}}\n</tool_call><|im_end|>', "invalid_json"),
    ("qwen3", '<tool_call>\n{"name": "f", "argum', "incomplete"),
    (
        "deepseekv3_disable_thinking",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>[1]<｜tool▁call▁end｜>"
        "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        "not_object",
    ),
    (
        "kimi_k2",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{no"
        "<|tool_call_end|><|tool_calls_section_end|><|im_end|>",
        "invalid_json",
    ),
    ("gpt_oss", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>no<|call|>", "invalid_json"),
]


@pytest.mark.parametrize(("name", "text", "error"), BROKEN)
def test_unreadable_calls_are_kept_with_the_reason(name: str, text: str, error: str) -> None:
    message, _ = make(name).parse_response(ids_of(name, text))
    assert "tool_calls" not in message
    (unparsed,) = message["unparsed_tool_calls"]
    assert unparsed["error"] == error
    assert unparsed["reason"]
    assert unparsed["raw"] in text


@pytest.mark.parametrize("name", THINKING[:3])
def test_drafted_calls_are_not_run(name: str) -> None:
    renderer = make(name)
    call = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    ids, weights = renderer.build_supervised_example([Q1, call])
    drafted = shown(renderer, [id for id, weight in zip(ids, weights, strict=True) if weight])
    for marker in ("<think>\n\n</think>\n\n", "<think></think>", "</think>", *map(str, renderer.stops)):
        drafted = drafted.replace(marker, "")
    message, _ = renderer.parse_response(ids_of(name, f"<think>maybe {drafted} no</think>b{renderer.stops[0]}"))
    assert "tool_calls" not in message
    assert [part["type"] for part in message["content"]] == ["thinking", "text"]
    assert drafted.strip() in message["content"][0]["thinking"]


def _collected(events: Iterator[Event]) -> list[tuple[str, str]]:
    parts: dict[int, tuple[str, str]] = {}
    ended = set()
    for event in events:
        if isinstance(event, PartStart):
            assert event.index == len(parts)
            parts[event.index] = (event.kind, "")
        elif isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            parts[event.index] = (parts[event.index][0], parts[event.index][1] + event.text)
        elif isinstance(event, PartEnd):
            ended.add(event.index)
    assert ended == set(parts)
    return list(parts.values())


@pytest.mark.parametrize(("name", "text", "content", "ended"), READINGS)
def test_a_stream_says_the_same(name: str, text: str, content: Any, ended: bool) -> None:
    renderer = make(name)
    prompt = None if name == "role_colon" else renderer.build_generation_prompt([Q1])
    ids = ids_of(name, text)
    message, _ = renderer.parse_response(ids, prompt)
    parts = _collected(renderer.parse_response_streaming(iter(ids), prompt))
    if isinstance(message["content"], str):
        assert [kind for kind, _ in parts] in ([], ["text"], ["text", "text"])
        assert "".join(words for _, words in parts) == message["content"].replace("\n\nb", "b") or len(parts) < 2
    else:
        assert [{"type": kind, kind: words} for kind, words in parts] == message["content"]


@pytest.mark.parametrize("name", HOMES)
def test_a_stream_does_not_wait(name: str) -> None:
    """Words are told before the next id is asked for."""
    renderer = make(name)
    ids, weights = renderer.build_supervised_example([Q1, {"role": "assistant", "content": "one two three four"}])
    answer = [id for id, weight in zip(ids, weights, strict=True) if weight]
    asked = 0

    def sampled() -> Iterator[int]:
        nonlocal asked
        for id in answer:
            asked += 1
            yield id

    for event in renderer.parse_response_streaming(sampled()):
        if isinstance(event, TextDelta):
            break
    assert asked < len(answer) - 2


# Each undoes the other.

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(lambda text: text.strip())
marked = st.one_of(
    words, st.sampled_from(["</think>", "a<think>b", "<|im_end|>", "\n\nx\n", " <tool_call> ", "<|end|>"])
)
arguments = st.dictionaries(
    marked, st.one_of(marked, st.integers(), st.none(), st.lists(marked, max_size=2)), max_size=2
)


@st.composite
def answers(draw: st.DrawFn, thinks: bool, calls: bool) -> dict[str, Any]:
    """A message as `parse_response` would give it."""
    import json

    kinds = draw(st.lists(st.booleans(), max_size=4)) if thinks else []
    kinds = [kind for index, kind in enumerate(kinds) if kind or index == 0 or kinds[index - 1]]
    content: Any = [
        {"type": "thinking", "thinking": draw(marked)} if kind else {"type": "text", "text": draw(marked)}
        for kind in kinds
    ]
    if True not in kinds:
        content = draw(marked)
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls and draw(st.booleans()):
        names = draw(st.lists(st.sampled_from(["f", "get_weather", "a-b", "x.y"]), min_size=1, max_size=2))
        message["tool_calls"] = [
            {
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(draw(arguments), ensure_ascii=draw(st.booleans()))},
            }
            for name in names
        ]
        if isinstance(content, str) and draw(st.booleans()):
            message["content"] = ""
    return message


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    calls = [{key: call[key] for key in ("type", "function")} for call in message.get("tool_calls", ())]
    return {**message, "tool_calls": calls} if calls else message


@pytest.mark.parametrize("name", HOMES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_round_trip(name: str, data: st.DataObject) -> None:
    """Reading what was written gives the message; writing what was read gives the ids."""
    renderer = make(name)
    message = data.draw(answers(name in THINKING, renderer.calls))
    if name == "role_colon":
        message["content"] = message["content"].rstrip("\n").replace("User:", "")
    ids, weights = renderer.build_supervised_example([Q1, message])
    prompt = renderer.build_generation_prompt([Q1])
    assert ids[: len(prompt)] == prompt
    answer = ids[len(prompt) :]
    for read, ended in (renderer.parse_response(answer), renderer.parse_response(answer, prompt)):
        assert without_ids(read) == message
        # Harmony stops at the first call, so an answer with two of them goes on behind a stop token.
        assert ended or (name == "gpt_oss" and len(message["tool_calls"]) > 1)
    again = renderer.build_supervised_example([Q1, read])
    assert again == (ids, weights), "token for token"


@pytest.mark.parametrize("name", CALLING)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_ids_can_be_read(name: str, data: st.DataObject) -> None:
    """Whatever was sampled, there is a message, and the stream says the same of it."""
    renderer = make(name)
    known = [id for marker, id in renderer.vocabulary.added.items() if len(marker) < 30]
    ids = data.draw(st.lists(st.one_of(st.sampled_from(known), st.integers(0, 100_000)), max_size=25))
    prompt = renderer.build_generation_prompt([Q1])
    message, _ = renderer.parse_response(ids, prompt)
    parts = _collected(renderer.parse_response_streaming(ids, prompt))
    calls = len(message.get("tool_calls", ())) + len(message.get("unparsed_tool_calls", ()))
    assert sum(kind == "tool_call" for kind, _ in parts) == calls
    if isinstance(message["content"], list):
        said = [{"type": kind, kind: text} for kind, text in parts if kind != "tool_call"]
        assert said == message["content"]


# Longer conversations.


@st.composite
def conversations(draw: st.DrawFn, thinks: bool, calls: bool) -> list[dict[str, Any]]:
    """Turns of a user and an assistant, with tools in between; the last is an assistant's."""
    messages: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(words)})
        message = draw(answers(thinks, calls))
        while "tool_calls" in message:
            message["tool_calls"] = [{**message["tool_calls"][0], "id": f"functions.f:{len(messages)}"}]
            message["tool_calls"][0]["function"]["name"] = "f"
            messages += [message, {**RESULT, "tool_call_id": f"functions.f:{len(messages)}"}]
            message = draw(answers(thinks, calls))
        messages.append(message)
    return messages


@pytest.mark.parametrize(("name", "history"), OPTIONS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_the_extension_property_is_true(name: str, history: str, data: st.DataObject) -> None:
    """Where it is claimed, a longer conversation's prompt begins with the shorter one's example."""
    renderer = make(name, history=history)
    if not renderer.has_extension_property:
        return
    messages = data.draw(conversations(name in THINKING, renderer.calls))
    if name == "role_colon":
        messages = [{**message, "content": str(message["content"]).strip() or "x"} for message in messages]
    for index, message in enumerate(messages):
        if message["role"] == "assistant":
            example = renderer.build_supervised_example(messages[: index + 1]).ids
            more = [{"role": "user", "content": "next"}]
            if message.get("tool_calls"):
                more = [{**RESULT, "tool_call_id": message["tool_calls"][0]["id"]}]
            prompt = renderer.build_generation_prompt(messages[: index + 1] + more)
            assert prompt[: len(example)] == example


NOT_EXTENDING = [(name, history) for name, history in OPTIONS if not make(name, history=history).has_extension_property]


def test_where_the_extension_property_is_denied_it_is_false() -> None:
    assert {name for name, _ in NOT_EXTENDING} == {*THINKING, "qwen3_disable_thinking"}
    for name, history in NOT_EXTENDING:
        renderer = make(name, history=history)
        target = THOUGHT if name in THINKING else PLAIN
        example = renderer.build_supervised_example([Q1, target]).ids
        prompt = renderer.build_generation_prompt([Q1, target, Q2])
        assert prompt[: len(example)] != example


@pytest.mark.parametrize(("name", "history"), OPTIONS)
@pytest.mark.parametrize("answer", [PLAIN, THOUGHT, CALLED, {**PLAIN, "tool_calls": [CALL]}])
@pytest.mark.parametrize("result", [True, False])
def test_extend(name: str, history: str, answer: dict[str, Any], result: bool) -> None:
    """The next prompt begins with what was sampled and is what the family would write, or there is none."""
    renderer = make(name, history=history)
    if ("tool_calls" in answer and not renderer.calls) or (answer["content"] != "A1" and name not in THINKING):
        return
    if result and "tool_calls" not in answer:
        return
    new = [RESULT] if result else [Q2]
    prompt = renderer.build_generation_prompt([Q1])
    completion = renderer.build_supervised_example([Q1, answer]).ids[len(prompt) :]
    extended = renderer.extend(prompt, completion, new)
    written = renderer.build_generation_prompt([Q1, answer, *new])
    if extended is None:
        assert not renderer.has_extension_property
        assert written[: len(prompt + completion)] != prompt + completion
    else:
        assert extended == written
    assert renderer.extend(prompt, completion[:-1], new) is None
    if renderer.has_extension_property:
        assert extended is not None


def test_extend_keeps_what_was_sampled() -> None:
    """Ids that no tokenizer would write for this text stay as they are."""
    renderer = make("llama3")
    prompt = renderer.build_generation_prompt([Q1])
    odd = [id for letter in "hello" for id in renderer.vocabulary.encode(letter)]
    completion = [*odd, *ids_of("llama3", "<|eot_id|>")]
    assert odd != renderer.vocabulary.encode("hello")
    extended = renderer.extend(prompt, completion, [Q2])
    assert extended is not None
    assert extended[: len(prompt) + len(completion)] == prompt + completion
    assert renderer.extend(prompt, completion[:-1], [Q2]) is None
