"""Detection from names: the hub's, Ollama's, a file's."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import asides
from asides.detect import _from_name as from_name
from asides.detect import detect
from asides.detect._from_name import _find
from asides.families._model_names import MODELS
from tests.detect.test_tokenizer import write
from tests.support import check_each

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
    "XiaomiMiMo/MiMo-VL-7B-RL": ("qwen3", True),
    "XiaomiMiMo/MiMo-7B-RL": ("qwen3", True),
    "XiaomiMiMo/MiMo-V2-Flash": ("mimo", True),
    "baidu/ERNIE-4.5-21B-A3B-Thinking": ("ernie45", True),
    "baidu/ERNIE-4.5-21B-A3B-PT": ("ernie45", False),
    "NousResearch/Hermes-4-14B": ("hermes", True),
    "poolside/Laguna-XS.2": ("poolside_v1", True),
    "deepseek-ai/DeepSeek-V3-0324": ("deepseek_v3", False),
    "deepseek-ai/DeepSeek-V3.2-Exp": ("deepseek_v31", True),
    "deepseek-ai/DeepSeek-V4-Flash-0731": ("deepseek_v4", True),
    "deepseek-ai/DeepSeek-Math-V2": ("deepseek_r1", True),
    "stepfun-ai/Step3-VL-10B": ("qwen3_thinking", True),
    "inclusionAI/Ring-2.6-1T": ("ling3", True),
    "inclusionAI/Ring-mini-2.0": ("think_tag", True),
    "inclusionAI/Ling-2.5-1T": ("qwen3", False),
    "inclusionAI/Ling-2.6-flash": ("qwen3", True),
    "inclusionAI/Ling-3.0-flash": ("ling3", True),
    "internlm/Intern-S2-Preview": ("qwen3.5", True),
    "mistralai/Mistral-Medium-3.5-128B": ("mistral", True),
    "mistralai/Mistral-Large-Instruct-2407": ("mistral", False),
    "zai-org/Glyph": ("glm45", True),
    "zai-org/GLM-5.3-Flash": ("glm47", True),
    "THUDM/GLM-4.1V-9B-Thinking": ("think_tag", True),
    "Qwen/Qwen3.8-27B": ("qwen3.5", True),
    "Qwen/Qwen-7B-Chat": ("qwen3", False),
    "moonshotai/Kimi-K2-Instruct-0905": ("kimi_k2", False),
    "moonshotai/Kimi-K2.6": ("kimi_k25", True),
    "arcee-ai/Trinity-Large-Thinking": ("qwen3.5", True),
    "arcee-ai/Trinity-Mini": ("hermes", None),
    "Nanbeige/Nanbeige4.2-3B": ("qwen3_coder", True),
    "IQuestLab/IQuest-Coder-V1-7B-Thinking": ("qwen3_thinking", True),
    "openbmb/MiniCPM-V-4_5": ("qwen3", True),
    "openbmb/MiniCPM5-1B": ("minicpm5", True),
    "ibm-granite/granite-4.1-8b": ("granite4", False),
    "ibm-granite/granite-3.1-8b-instruct": ("granite", False),
    "ai-sage/GigaChat3.1-10B-A1.8B": ("gigachat3", False),
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5": ("nemotron_deci", True),
    "LGAI-EXAONE/EXAONE-4.0-32B": ("think_tag", True),
    "meetkai/functionary-small-v3.2": ("functionary_v3_2", False),
    "meta-models/Muse-Spark-Open-816B-A42B": ("muse_spark", True),
    "stepfun-ai/Step-5": ("step5", True),
    "poolside/Laguna-S-2.1": ("laguna_s2.1", True),
    "LiquidAI/LFM2.5-1.2B-Instruct": ("lfm2", False),
    "deepseek-ai/DeepSeek-V4.1-Flash": ("deepseek_v41", True),
    "deepseek-ai/DeepSeek-V4.1-Flash-1017": ("deepseek_v41", True),
    "nvidia/DeepSeek-V4.1-Flash-NVFP4": ("deepseek_v41", True),
    "ibm-granite/granite-4.2-8b": ("nemotron_v3", True),
    "ai-sage/GigaChat3.5-10B": ("gigachat35", True),
    "openbmb/MiniCPM-V-4.6": ("minicpmv", True),
    "openbmb/MiniCPM-V-4_7": ("minicpmv", True),
    "XHToken/Spark-X2.5-4B": ("spark25", True),
    "IQuestLab/IQuest-Q1": ("iquest_q1", True),
    "meetkai/functionary-medium-v3.1": ("functionary_v3_1", False),
    "fireworks-ai/llama-3-firefunction-v2": ("firefunction_v2", False),
    "CohereLabs/c4ai-command-r-plus": ("command_r_plus", False),
    "CohereLabs/c4ai-command-r-v01": ("command_r_plus", False),
    "IFM/K2-Horizon-7B": ("k2_horizon", True),
    "pfnet/plamo-3-8b": ("plamo3", None),
    "reflection/Beam-1.0-501B-A23B": ("beam", True),
    "tencent/Hy4-preview-FP8": ("hy_v4", True),
    "somebody/unheard-of-7b": ("auto", None),
}

UNKNOWN = {
    # Versions that no format is known for, and what they are of.
    "deepseek-ai/DeepSeek-V4.2": "DeepSeek",
    "deepseek-ai/DeepSeek-V5": "DeepSeek",
    "deepseek-ai/DeepSeek-R2": "DeepSeek",
    "tencent/Hy5": "Hunyuan",
    "openbmb/MiniCPM-V-5.1": "MiniCPM",
    "ai-sage/GigaChat4-10B": "GigaChat",
    "pfnet/plamo-4-8b": "PLaMo",
    "XHToken/Spark-X3": "Spark",
    "IQuestLab/IQuest-Q2": "IQuest",
    "reflection/Beam-2.0": "Beam",
    "fireworks-ai/firefunction-v3": "Firefunction",
    "deepseek-ai/DeepSeek-VL2": "DeepSeek",
    "ibm-granite/granite-5.0": "Granite",
    "ibm-granite/granite-guardian-3.2-5b": "Granite",
    "baidu/ERNIE-5.0": "ERNIE",
    "LGAI-EXAONE/K-EXAONE-236B-A23B": "EXAONE",
    "LGAI-EXAONE/K-EXAONE-2.0-750B-A37B": "EXAONE",
    "poolside/Laguna-S-3": "Laguna",
    "deepcogito/cogito-v3-preview": "Cogito",
    "Qwen/Qwen4-8B": "Qwen",
    "Qwen/Qwen3.7-9B": "Qwen",
    "zai-org/GLM-6": "GLM",
    "moonshotai/Kimi-K2.9": "Kimi",
    "moonshotai/Kimi-Audio-7B": "Kimi",
    "google/gemma-5-9b": "Gemma",
    "mistralai/Mistral-Small-5-24B": "Mistral",
    "nvidia/Nemotron-4-340B-Instruct": "Nemotron",
    "meta-llama/Llama-5-8B": "Llama",
    # Models of which only something is known.
    "skt/A.X-K1": "A.X",
    "tiiuae/Falcon-H1R-7B": "Falcon",
    "naver-hyperclovax/HyperCLOVAX-SEED-Think-32B": "HyperCLOVA X",
    "PrimeIntellect/INTELLECT-3.1": "INTELLECT",
}


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    found = detect(name)
    assert (found.format, found.thinks) == NAMES[name]
    assert name in found.reasons[0]


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_has_no_grammar_is_left_to_auto(name: str) -> None:
    found = detect(name)
    assert found.format == "auto"
    assert UNKNOWN[name] in found.reasons[0]
    assert name in found.reasons[0]


@pytest.mark.parametrize("name", [name for name in NAMES if _find(name).version])
def test_a_version_that_no_row_lists_is_not_read_as_an_older_one(name: str) -> None:
    """Tried on every name above: with another version it has no format, and how it begins is a guess that says so."""
    known = _find(name)
    spelled = "[.p_-]?".join(known.version.replace(".", ""))
    for version in ("97", "9.7"):
        other = re.sub(rf"{spelled}(?![^/]*/)", version, name, count=1)
        found = detect(other)
        assert found.format == "auto", other
        assert found.confidence in ("near", "guess"), other
        assert known.family.split()[-1] in found.reasons[0], other


@pytest.mark.parametrize(
    ("name", "start", "like"),
    [
        ("MiniMaxAI/MiniMax-M2.7", "thinking", "MiniMax 2.5"),
        ("zai-org/GLM-5.2", "thinking", "GLM 5.1"),
        ("moonshotai/Kimi-K2.7-Code", "thinking", "Kimi 2.6"),
        ("Qwen/Qwen3.7-9B", "thinking", "Qwen 3.6"),
        ("meituan/LongCat-2.0", "text", "LongCat 1"),
        ("google/gemma-5", "text", "Gemma 4"),
    ],
)
def test_a_version_that_no_row_lists_begins_like_the_nearest_older_one(name: str, start: str, like: str) -> None:
    found = detect(name)
    assert (found.format, found.start, found.confidence) == ("auto", start, "near")
    assert like in found.reasons[0]


def test_the_nearest_older_version_is_mostly_right_about_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The version of each name above is struck from the rows of its line and guessed from the rest.

    Counted are steps within a major version, once for each row: the documentation says what is claimed here.
    """
    guesses: dict[tuple[str, str], tuple[str | None, str | None]] = {}
    for name in NAMES:
        known, found = _find(name), detect(name)
        if known.row is None or not known.version:
            continue
        version = known.version.replace(".", "")
        rows = tuple(
            msgspec.structs.replace(
                row, versions=" ".join(each for each in row.versions.split() if each.replace(".", "") != version)
            )
            if row.line == known.family
            else row
            for row in MODELS
        )
        with monkeypatch.context() as patch:
            patch.setattr(from_name, "MODELS", rows)
            _forget_rows()
            near, guess = _find(name), detect(name)
        _forget_rows()
        if near.near is not None and near.near_version.split(".")[0] == known.version.split(".")[0]:
            guesses[known.row.pattern, known.version] = (found.start, guess.start)
    right = sum(start == guessed for start, guessed in guesses.values())
    assert len(guesses) > 30
    assert right >= len(guesses) - 2, {step: pair for step, pair in guesses.items() if pair[0] != pair[1]}
    assert ("text", "thinking") not in guesses.values(), "an answer would be swallowed"


def _forget_rows() -> None:
    from_name._patterns.cache_clear()
    from_name._search.cache_clear()


def test_an_older_name_in_the_files_does_not_speak_for_a_newer_model(tmp_path: Path) -> None:
    """The architecture of a new model may still be called by the old one's name."""
    folder = tmp_path / "DeepSeek-V4.2-Flash"
    folder.mkdir()
    write(folder / "tokenizer_config.json", {"chat_template": "{{ messages[0].content }}"})
    write(folder / "config.json", {"model_type": "deepseek_v4"})
    assert detect(tokenizer=folder).format == "auto"
    assert detect("deepseek-ai/DeepSeek-V4.2", tokenizer=folder).format == "auto"


def test_the_name_of_a_format_means_that_format() -> None:
    for name in (
        "deepseekv4_1",
        "granite_thinking_parser",
        "gigachat35",
        "qwen3_8_low_reasoning",
        "llama4_json",
        "qwen3_xml",
        "hunyuan",
        "deepseekv3_thinking",
        "granite",
        "glm",
        "kimi",
    ):
        assert detect(name).format == asides.get_format(name).name


def test_the_suffix_of_a_renderers_name_says_where_output_begins() -> None:
    assert detect("deepseekv4_1_low_reasoning").start == "thinking"
    assert detect("deepseekv4_1_disable_thinking").start == "text"
    assert detect("qwen3_high_thinking").start == "thinking"
    assert detect("gpt_oss_low_reasoning").start is None


def test_a_laguna_that_opens_its_turns_in_thinking() -> None:
    assert detect("poolside/Laguna-S-2.1").start == "thinking"
    assert detect("poolside/Laguna-XS.2").start == "text"


def test_a_model_that_does_not_think_starts_in_text() -> None:
    assert asides.get_format("ernie45").start == "thinking"
    assert detect("baidu/ERNIE-4.5-21B-A3B-PT").start == "text"
    assert detect("baidu/ERNIE-4.5-21B-A3B-Thinking").start == "thinking"


def test_every_row_names_a_format() -> None:
    check_each(lambda row: asides.get_format(row.format), MODELS, lambda row: row.pattern)


@pytest.mark.usefixtures("_clean_registry")
def test_registered_formats_answer_to_their_names() -> None:
    asides.register(asides.Format.tags("<zz>", "</zz>", name="zzmodel"))
    assert detect("someone/ZZ-Model-7B").format == "zzmodel"
    assert detect("someone/ZZ-Model-2-7B").format == "auto"
    assert detect("someone/ZZ-Modelled").format == "auto"


@pytest.mark.usefixtures("_clean_registry")
def test_a_registered_format_may_be_of_a_newer_version() -> None:
    asides.register(asides.Format.tags("<zz>", "</zz>", name="granite_9.7"))
    assert detect("ibm-granite/granite-9.7-8b").format == "granite_9.7"
    assert detect("ibm-granite/granite-9.8-8b").format == "auto"


@pytest.mark.parametrize(
    ("name", "switch"),
    [
        ("Qwen/Qwen3-8B", ("enable_thinking", True, False)),
        ("ibm-granite/granite-3.3-8b-instruct", ("thinking", True, False)),
        ("tencent/Hy3", ("reasoning_effort", "high", "no_think")),
        ("NousResearch/Hermes-4-14B", ("thinking", True, False)),
        ("openai/gpt-oss-20b", (None, None, None)),  # nothing turns its thinking off
        ("meta-llama/Llama-3.1-8B", (None, None, None)),
    ],
)
def test_a_name_tells_how_thinking_is_switched(name: str, switch: tuple[object, ...]) -> None:
    found = detect(name)
    assert (found.switch, found.on, found.off) == switch


def test_a_template_that_shows_no_switch_has_none() -> None:
    found = detect("Qwen/Qwen3-8B", chat_template="{{ messages[0].content }}")
    assert found.switch is None


def test_long_and_odd_names() -> None:
    for name in ("", " ", "x" * 1_000_000, "a\0b", "\ud800", "/" * 1000, "../" * 1000):
        assert detect(name).format == "auto"
