"""The facts of 68 real chat templates, where they are at hand: markers around a thought, ends of prompts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides.detect._evidence import ANSWER, THOUGHT, Echo, Evidence, RenderedPrompt
from asides.detect._from_template import conclude
from asides.detect._trial import RenderedTurn

FACTS = Path(__file__).parents[3] / "shared" / "data" / "chat_template_facts.json"

if not FACTS.exists():
    pytest.skip("the facts of real templates are not at hand", allow_module_level=True)

TEMPLATES: dict[str, dict[str, Any]] = {
    fact["template"]: fact for fact in json.loads(FACTS.read_text(encoding="utf-8"))
}
FORMATS = {
    "Apriel-1.6-15b-Thinker-fixed": "apriel_1.6",
    "ByteDance-Seed-OSS": "seed_oss",
    "Cohere2MoE": "cohere",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere_command3",
    "GLM-4.6": "glm45",
    "GLM-4.7-Flash": "glm47",
    "Kimi-K3": "kimi_k3",
    "MiniMax-M2": "minimax_m2",
    "MiniMax-M3": "minimax_m3",
    "NVIDIA-Nemotron-Nano-v2": "nemotron_nano_v2",
    "Qwen-Qwen3-0.6B": "qwen3",
    "Reka-Edge": "reka_edge",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek_r1",
    "deepseek-ai-DeepSeek-V3.1": "deepseek_v3",
    "google-gemma-4-31B-it": "gemma4",
    "llama-cpp-rwkv-world": "rwkv_world",
    "muse-glimmer": "muse",
    "openai-gpt-oss-120b": "harmony",
    "poolside-Laguna-S-2.1": "laguna_s2.1",
    "tencent-Hy3": "hy_v3",
    "upstage-Solar-Open-100B": "solar_open",
}
"""Those whose markers and headers are nobody else's, or shared by formats that differ in their calls alone: call syntax
is not among the facts."""
HEADERS = ("<|start|>assistant", "<|begin|>assistant")
IN_THE_PROMPT = {
    "HuggingFaceTB-SmolLM3-3B",
    "NVIDIA-Nemotron-Nano-v2",
    "Qwen-QwQ-32B",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
    "deepseek-ai-DeepSeek-V3.1",
    "llama-cpp-deepseek-r1",
    "llama-cpp-rwkv-world",
}
"""Those that write no thought back, but open or close thinking in a prompt."""


def evidence(fact: dict[str, Any]) -> Evidence:
    """The facts of a template as if it had just been rendered."""
    turns: list[RenderedTurn] = []
    if fact["reasoning_field"]:
        after = fact["after"].partition("ASST_PART_Y")
        said = ANSWER if after[1] else ""
        written = fact["before"].rpartition("U_USER")[2] + THOUGHT + after[0] + said + after[2]
        turns.append(RenderedTurn(written=written, thought=THOUGHT, answer=said))
    prompts = [
        RenderedPrompt(switches=switches, written=fact["gen_prompt"][key].replace("(same)", ""), before="")
        for key, switches in (("def", {}), ("on", {"enable_thinking": True}), ("off", {"enable_thinking": False}))
    ]
    return Evidence(
        echoes=[Echo(fact["reasoning_field"], turn) for turn in turns],
        turns=turns,
        prompts=prompts,
        instructions="",
        source="",
        switches={"enable_thinking": [True, False]},
    )


@pytest.mark.parametrize("name", TEMPLATES)
def test_thinking_is_found_where_it_shows_and_nowhere_else(name: str) -> None:
    found = conclude(evidence(TEMPLATES[name]))
    shows = bool(TEMPLATES[name]["reasoning_field"]) or name in IN_THE_PROMPT
    assert found.thinks is shows


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_is_found(name: str) -> None:
    found = conclude(evidence(TEMPLATES[name])).formats
    assert found[0] == FORMATS[name] or (found[0] == "auto" and FORMATS[name] in found)


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_start_is_found(name: str) -> None:
    fact = TEMPLATES[name]
    found = conclude(evidence(fact))
    tail = fact["gen_prompt"]["def"].rstrip()
    opens = ("<think>", "<|START_THINKING|>", "<|open|>think<|sep|>", "Here are my reasoning steps:")
    expected = "thinking" if tail.endswith(opens) else "header" if tail.endswith(HEADERS) else "text"
    assert (found.begin or "text") == expected
