"""Prompts, weights and answers as tinker-cookbook's renderers have them, where the recorded cases are there.

The cases stand beside the repository and are not part of it. What differs is listed here and explained in
`docs/how-to/tokens.md`; a difference that is not listed fails, and so does one that no longer is.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from asides.render import Renderer, RendererError, get_renderer
from tests.render.real import encode, tokenizer

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not (DATA / "tinker_cases.json").is_file(), reason="no recorded cases stand beside this repository"
)

HOMES = {
    "role_colon": "qwen3",
    "llama3": "llama3",
    "qwen3": "qwen3",
    "qwen3_disable_thinking": "qwen3",
    "deepseekv3_thinking": "deepseek_v3",
    "deepseekv3_disable_thinking": "deepseek_v3",
    "kimi_k2": "kimi_k2",
    "gpt_oss_no_sysprompt": "gpt-oss",
}
KEEP = "(strip=False)"

PREFILLED = "what the prompt supplies carries no weight, whatever is trained on"
STRAY_CLOSE = "an answer that keeps its thinking is not also told to have closed it before"
RENDERINGS = {
    ("qwen3_disable_thinking", "u_a_u_a", "all_assistant_messages"): "an answer that thinks is no target here",
    ("deepseekv3_thinking", "u_a", "all_assistant_messages"): PREFILLED,
    ("deepseekv3_thinking", "u_a_u_a", "all_assistant_messages"): PREFILLED,
    ("deepseekv3_thinking(strip=False)", "u_a", "all_assistant_messages"): PREFILLED,
    ("deepseekv3_thinking(strip=False)", "u_a_u_a", "all_assistant_messages"): PREFILLED,
    ("deepseekv3_thinking", "u_tc_tr_a", "last_assistant_message"): STRAY_CLOSE,
    ("deepseekv3_thinking", "u_tc_tr", None): STRAY_CLOSE,
    ("deepseekv3_disable_thinking", "u_tc_tr_a", "last_assistant_message"): "thinking goes after a result too",
    ("deepseekv3_disable_thinking", "u_tc_tr_a", "all_assistant_messages"): "thinking goes after a result too",
    ("deepseekv3_thinking(strip=False)", "u_plain_u", None): "an empty block, so that the next prompt extends this one",
}
"""Where we write otherwise, and why."""


@cache
def load(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def cases(name: str, key: str) -> list[Any]:
    return load(name)[key] if (DATA / name).is_file() else []


def make(name: str) -> Renderer:
    base = name.removesuffix(KEEP)
    options = {"history": "keep"} if name.endswith(KEEP) else {}
    return get_renderer(base, tokenizer(HOMES[base]), seed=0, **options)


def segments(renderer: Renderer, messages: Any, what: str) -> list[list[Any]]:
    """The text of an example, cut where the weight changes."""
    found: list[list[Any]] = []
    ids, weights = renderer.build_supervised_example(messages, what)
    for id, weight in zip(ids, weights, strict=True):
        if not found or found[-1][1] != weight:
            found.append([[], weight])
        found[-1][0].append(id)
    return [[renderer.vocabulary.text(some), weight] for some, weight in found]


@pytest.mark.parametrize(
    "case",
    cases("tinker_cases.json", "render_cases"),
    ids=lambda case: f"{case['renderer']}-{case['conversation']}-{case.get('train_on', 'prompt')}",
)
def test_renderings(case: dict[str, Any]) -> None:
    renderer = make(case["renderer"])
    messages = load("tinker_cases.json")["meta"]["conversations"][case["conversation"]]
    expected = case["text"] if case["kind"] == "generation_prompt" else case["segments_text_weight"]
    try:
        if case["kind"] == "generation_prompt":
            found: Any = renderer.vocabulary.text(renderer.build_generation_prompt(messages))
        else:
            found = segments(renderer, messages, case["train_on"])
    except RendererError:
        found = "RAISES"
        expected = "RAISES" if isinstance(expected, str) and expected.startswith("RAISES") else expected
    differs = (case["renderer"], case["conversation"], case.get("train_on")) in RENDERINGS
    assert (found != expected) == differs


@pytest.mark.parametrize(
    "case",
    cases("tinker_cases_tokens.json", "generation_prompts"),
    ids=lambda case: f"{case['renderer']}-{case['conversation']}",
)
def test_prompts_in_ids(case: dict[str, Any]) -> None:
    messages = load("tinker_cases.json")["meta"]["conversations"][case["conversation"]]
    differs = (case["renderer"], case["conversation"], None) in RENDERINGS
    assert (make(case["renderer"]).build_generation_prompt(messages) != case["ids"]) == differs


def outcome(message: dict[str, Any], ended: bool) -> dict[str, Any]:
    """What an answer was made of, as far as both say it."""
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", ())]
    return {
        "content": message["content"],
        "calls": calls,
        "broken": len(message.get("unparsed_tool_calls", ())),
        "ended": ended,
    }


def recorded(expect: dict[str, Any]) -> dict[str, Any]:
    return {
        "content": expect.get("content"),
        "calls": [(call["name"], call["arguments"]) for call in expect.get("tool_calls", ())],
        "broken": len(expect.get("unparsed_tool_calls", ())),
        "ended": expect.get("termination") in ("stop_sequence", "eos"),
    }


def as_string(content: Any) -> Any:
    """Where there is no thinking, ours is a string and theirs may be a list."""
    if isinstance(content, list) and not any(part["type"] == "thinking" for part in content):
        return "".join(part["text"] for part in content if part["text"].strip())
    return content


ANSWERS = {
    "a missing stop token is no reason to give the answer back unread": [
        "qwen3 qwen3_disable_thinking deepseekv3_thinking deepseekv3_disable_thinking kimi_k2: truncated_after_think",
        "qwen3_disable_thinking kimi_k2: close_only_no_stop",
        "deepseekv3_disable_thinking: tool_no_stop",
        "kimi_k2: think_unclosed_no_stop",
    ],
    "a lone closer ends thinking that the prompt opened": [
        "qwen3 qwen3_disable_thinking deepseekv3_disable_thinking kimi_k2: close_only_prefilled",
    ],
    "nothing behind a call is lost, and no two words are glued together": [
        "qwen3 qwen3_disable_thinking deepseekv3_thinking deepseekv3_disable_thinking kimi_k2: tool_then_text",
        "kimi_k2: interleaved",
    ],
    "a call drafted in thinking is not run, and thinking is no text": [
        "deepseekv3_disable_thinking kimi_k2: tool_inside_think",
        "kimi_k2: tool_after_unclosed_think",
    ],
    "a call that can be read is a call, and one that cannot is no text": [
        "qwen3 qwen3_disable_thinking: tool_unterminated",
        "deepseekv3_thinking deepseekv3_disable_thinking kimi_k2: tool_section_unterminated",
        "deepseekv3_thinking deepseekv3_disable_thinking kimi_k2: tool_call_unterminated_in_closed_section",
        "deepseekv3_thinking deepseekv3_disable_thinking: tool_name_with_dash",
        "kimi_k2: tool_without_section",
        "gpt_oss: tool_call tool_invalid_json recipient_before_channel tool_empty_args",
    ],
    "arguments must be a JSON object, which may be written as a string": [
        "qwen3_disable_thinking kimi_k2: tool_args_json_scalar",
        "qwen3_disable_thinking: tool_args_string",
        "deepseekv3_disable_thinking: tool_args_not_object",
        "gpt_oss: scalar_args",
    ],
    "arguments are the model's own characters": ["qwen3 qwen3_disable_thinking: tool_with_id"],
    "whitespace is the model's own, but for what the template writes; a part of nothing else is none": [
        "qwen3 qwen3_disable_thinking deepseekv3_thinking deepseekv3_disable_thinking: "
        "tool_single tool_multi tool_invalid_json tool_valid_plus_invalid",
        "deepseekv3_disable_thinking: think_whitespace_only",
        "role_colon: ws_own_newlines",
        "gpt_oss: whitespace_final",
    ],
    "no marker that acts as one is text": [
        "qwen3 deepseekv3_disable_thinking: nested_open",
        "gpt_oss: unknown_channel no_channel_message",
    ],
    "words that look like a header are words": ["gpt_oss: literal_to_functions_in_text"],
    "what follows a stop token is kept, and the answer is no clean one": [
        "qwen3_disable_thinking deepseekv3_thinking deepseekv3_disable_thinking: double_stop text_after_stop",
        "role_colon: multi_delimiter text_after_delimiter",
    ],
    "the recorded tokenizer has another end token": ["role_colon: eos_only"],
}
"""Where we read otherwise, and why: renderers and the cases of each."""
DIFFERENT = {
    f"{renderer}/{name}"
    for lines in ANSWERS.values()
    for line in lines
    for renderer in line.split(": ")[0].split()
    for name in line.split(": ")[1].split()
}


@pytest.mark.parametrize("case", cases("tinker_cases.json", "parse_cases"), ids=lambda case: case["id"])
def test_answers(case: dict[str, Any]) -> None:
    """Every answer is read as there, or for one of the reasons otherwise."""
    name = case["renderer"].removesuffix(KEEP)
    name = "gpt_oss_no_sysprompt" if name.startswith("gpt_oss") else name
    tokens = load("tinker_cases_tokens.json")["parse"].get(case["id"])
    ids = tokens["ids"] if tokens else encode(HOMES[name], case["response_text"])
    found = outcome(*make(name).parse_response(ids))
    expected = recorded(case["expect"])
    same = {**found, "content": as_string(found["content"])} == {**expected, "content": as_string(expected["content"])}
    assert same != (case["id"] in DIFFERENT), f"{case['response_text']!r}\nfound {found}\nrecorded {expected}"
