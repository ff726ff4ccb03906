"""Detection from names: the hub's, Ollama's, a file's."""

from __future__ import annotations

import pytest

import asides
from asides.detect import detect
from asides.detect.from_name import MODELS, Named

NAMES = {
    "Qwen/Qwen3-8B": ("qwen3", True),
    "Qwen/Qwen3-235B-A22B-Thinking-2507": ("qwen3_thinking", True),
    "Qwen/Qwen3-30B-A3B-Instruct-2507": ("qwen3", False),
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": ("qwen3_coder", False),
    "Qwen/Qwen3.5-4B": ("qwen3.5", True),
    "Qwen/Qwen3-VL-8B-Thinking": ("qwen3_thinking", True),
    "Qwen/Qwen2.5-7B-Instruct": ("qwen3", False),
    "Qwen/QwQ-32B": ("qwen3_thinking", True),
    "qwen3:8b": ("qwen3", True),
    "qwen3:0.6b-q4_K_M": ("qwen3", True),
    "qwen3.5:4b": ("qwen3.5", True),
    "qwen3-coder:30b": ("qwen3_coder", False),
    "hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M": ("qwen3", True),
    "/models/Qwen3-8B-Q5_K_M.gguf": ("qwen3", True),
    "deepseek-ai/DeepSeek-R1": ("deepseek_r1", True),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B": ("deepseek_r1", True),
    "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B": ("deepseek_r1", True),
    "deepseek-r1:7b": ("deepseek_r1", True),
    "deepseek-ai/DeepSeek-V3": ("deepseek_v3", False),
    "deepseek-ai/DeepSeek-V3.1": ("deepseek_v31", True),
    "deepseek-ai/DeepSeek-V3.2": ("deepseek_v32", True),
    "deepseek-ai/DeepSeek-V4-Flash": ("deepseek_v4", True),
    "openai/gpt-oss-20b": ("harmony", True),
    "gpt-oss:120b": ("harmony", True),
    "THUDM/GLM-4.5": ("glm45", True),
    "zai-org/GLM-4.6": ("glm45", True),
    "zai-org/GLM-4.7-Flash": ("glm47", True),
    "moonshotai/Kimi-K2-Thinking": ("kimi_k2", True),
    "moonshotai/Kimi-K2-Instruct": ("kimi_k2", False),
    "moonshotai/Kimi-K2.5": ("kimi_k25", True),
    "moonshotai/Kimi-K3": ("kimi_k3", True),
    "moonshotai/Kimi-VL-A3B-Thinking": ("kimi", True),
    "MiniMaxAI/MiniMax-M2": ("minimax_m2", True),
    "MiniMaxAI/MiniMax-M3": ("minimax_m3", True),
    "google/gemma-4-31B-it": ("gemma4", True),
    "google/gemma-3-27b-it": ("auto", False),
    "google/functiongemma-270m-it": ("functiongemma", False),
    "mistralai/Magistral-Small-2507": ("mistral", True),
    "mistralai/Ministral-3-14B-Reasoning-2512": ("mistral", True),
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": ("mistral", False),
    "ByteDance-Seed/Seed-OSS-36B-Instruct": ("seed_oss", True),
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": ("nemotron_v3", True),
    "nvidia/NVIDIA-Nemotron-Nano-9B-v2": ("nemotron_nano_v2", True),
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": ("nemotron_deci", True),
    "meta-llama/Llama-3.1-8B-Instruct": ("llama3_json", False),
    "llama3.2:3b": ("llama3_json", False),
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": ("llama4_pythonic", False),
    "stepfun-ai/step3": ("step3", True),
    "stepfun-ai/Step-3.5-Flash": ("step3p5", True),
    "tencent/Hunyuan-A13B-Instruct": ("hunyuan_a13b", True),
    "tencent/Hy3": ("hy_v3", True),
    "HuggingFaceTB/SmolLM3-3B": ("hermes", True),
    "ibm-granite/granite-3.3-8b-instruct": ("granite_3.3", True),
    "ibm-granite/granite-4.0-h-small": ("granite4", False),
    "ServiceNow-AI/Apriel-1.6-15b-Thinker": ("apriel_1.6", True),
    "swiss-ai/Apertus-8B-Instruct-2509": ("apertus", None),
    "upstage/Solar-Open-100B": ("solar_open", True),
    "allenai/Olmo-3-32B-Think": ("olmo3_think", True),
    "allenai/Olmo-3-7B-Instruct": ("olmo3", False),
    "microsoft/Phi-4-mini-instruct": ("phi4_mini_json", False),
    "XiaomiMiMo/MiMo-VL-7B-RL": ("qwen3_coder", True),
    "baidu/ERNIE-4.5-21B-A3B-Thinking": ("ernie45", True),
    "baidu/ERNIE-4.5-21B-A3B-PT": ("ernie45", False),
    "NousResearch/Hermes-4-14B": ("hermes", True),
    "poolside/Laguna-XS.2": ("poolside_v1", True),
    "somebody/unheard-of-7b": ("auto", None),
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    found = detect(name)
    assert (found.format, found.thinks) == NAMES[name]
    assert name in found.reasons[0]


def test_a_model_that_does_not_think_starts_in_text() -> None:
    assert asides.get_format("ernie45").start == "thinking"
    assert detect("baidu/ERNIE-4.5-21B-A3B-PT").start == "text"
    assert detect("baidu/ERNIE-4.5-21B-A3B-Thinking").start == "thinking"


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row.pattern)
def test_every_row_names_a_format(row: Named) -> None:
    asides.get_format(row.format)


@pytest.mark.usefixtures("_clean_registry")
def test_registered_formats_answer_to_their_names() -> None:
    asides.register(asides.Format.tags("<zz>", "</zz>", name="zzmodel"))
    assert detect("someone/ZZ-Model-7B").format == "zzmodel"


def test_long_and_odd_names() -> None:
    for name in ("", " ", "x" * 1_000_000, "a\0b", "\ud800", "/" * 1000, "../" * 1000):
        assert detect(name).format == "auto"
