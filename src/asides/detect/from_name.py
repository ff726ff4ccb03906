"""What a model's name says. Knows names only: nothing is opened, and nothing is asked of anyone."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..formats import formats, get_format
from ..formats.registry import fold
from .result import Finding, Start, own_begin


class Named(NamedTuple):
    """What is known of the models whose names match a pattern."""

    pattern: str
    format: str
    thinks: bool | None
    who: str
    start: Start | None = None
    """Where output begins, if not where the format says."""


MODELS = (
    # The first that matches decides: tunes and distillations before what they were made from, and the
    # particular before the general. Names are lower case, with hyphens for underscores and spaces.
    Named(r"gpt-?oss", "harmony", True, "gpt-oss"),
    Named(r"\bqwq", "qwen3_thinking", True, "QwQ"),
    Named(r"deepseek-?r1|r1-distill|deepseek-reasoner", "deepseek_r1", True, "DeepSeek R1 or a distillation of it"),
    Named(r"skywork-or1|acereason|light-r1|openreasoning", "deepseek_r1", True, "a model made from an R1 distillation"),
    Named(r"deepseek-?v4", "deepseek_v4", True, "DeepSeek V4"),
    Named(r"deepseek-?v3[.p-]?2", "deepseek_v32", True, "DeepSeek V3.2"),
    Named(r"deepseek-?v3[.p-]?1", "deepseek_v31", True, "DeepSeek V3.1"),
    Named(r"deepseek-?v3", "deepseek_v3", False, "DeepSeek V3"),
    Named(r"deephermes|hermes-?4", "hermes", True, "Hermes"),
    Named(r"hermes-?[23]", "hermes", False, "Hermes"),
    Named(r"nemotron-?3|nemotron.*v3", "nemotron_v3", True, "Nemotron 3"),
    Named(r"nemotron-nano.*v2|nemotron-nano-2", "nemotron_nano_v2", True, "Nemotron Nano 2"),
    Named(r"llama.*nemotron|nemotron.*llama", "nemotron_deci", True, "Llama Nemotron"),
    Named(r"openthinker|sky-t1", "think_tag", True, "a model that writes begin_of_thought"),
    Named(
        r"marco-o1|reka-flash-?3|exaone-?(deep|4)|(?<!kimi-)\bk2-think\b|\bring-",
        "think_tag",
        True,
        "a model that thinks in tags",
    ),
    Named(r"holo-?2", "qwen3_thinking", True, "Holo2"),
    Named(r"ornith", "qwen3.5", True, "Ornith"),
    Named(r"cogito", "deepseek_r1", True, "Cogito, which thinks when asked to", "text"),
    Named(r"mimo\b", "mimo", True, "MiMo"),
    Named(r"tongyi-deepresearch", "qwen3", True, "Tongyi DeepResearch"),
    Named(r"minicpm-?5", "minicpm5", True, "MiniCPM5"),
    Named(r"minicpm.*4[.-][15]", "qwen3", True, "MiniCPM 4.1 or V 4.5"),
    Named(r"intern-?s1", "interns1", True, "Intern-S1"),
    Named(r"internlm-?2", "internlm", False, "InternLM 2"),
    Named(r"qwen-?3(?:[.p-][5-9](?!\d*b)|[56]\b)", "qwen3.5", True, "Qwen 3.5 or later"),
    Named(r"qwen-?3.*(embedding|reranker|guard)", "qwen3", False, "a Qwen 3 that writes no answers"),
    Named(r"qwen-?3-?coder", "qwen3_coder", False, "Qwen 3 Coder"),
    Named(r"qwen-?3.*thinking", "qwen3_thinking", True, "Qwen 3 Thinking"),
    Named(r"qwen-?3.*instruct", "qwen3", False, "Qwen 3 Instruct"),
    Named(r"qwen-?3-?(vl|omni|next)", "qwen3", None, "Qwen 3, of which there are variants that think"),
    Named(r"qwen-?3", "qwen3", True, "Qwen 3"),
    Named(r"qwen-?(1|2|7b|14b|72b)|codeqwen", "qwen25", False, "a Qwen before the third"),
    Named(r"glm-?4[.p-][56]", "glm45", True, "GLM 4.5 or 4.6"),
    Named(r"glm-?(4[.p-]7|5)", "glm47", True, "GLM 4.7 or later"),
    Named(r"glm-?(z1|4[.p-]1v.*thinking)", "think_tag", True, "GLM Z1 or 4.1V Thinking"),
    Named(r"kimi-?k3", "kimi_k3", True, "Kimi K3"),
    Named(r"kimi-?k2[.p-]?[5-9]\b", "kimi_k25", True, "Kimi K2.5 or later"),
    Named(r"kimi-?k2.*thinking", "kimi_k2", True, "Kimi K2 Thinking"),
    Named(r"kimi-?(k2|linear)|moonlight", "kimi_k2", False, "Kimi K2"),
    Named(r"kimi-?(vl|dev).*thinking|kimi-?dev", "kimi", True, "Kimi VL Thinking or Kimi Dev"),
    Named(r"kimi-?vl", "kimi", False, "Kimi VL"),
    Named(r"minimax-?m3", "minimax_m3", True, "MiniMax M3"),
    Named(r"minimax-?m2", "minimax_m2", True, "MiniMax M2"),
    Named(r"minimax-?m1", "auto", True, "MiniMax M1, which opens its thoughts itself"),
    Named(r"functiongemma", "functiongemma", False, "FunctionGemma"),
    Named(r"gemma-?4", "gemma4", True, "Gemma 4"),
    Named(r"gemma", "auto", False, "a Gemma before the fourth"),
    Named(r"magistral|ministral.*reasoning|mistral-small-4", "mistral", True, "a Mistral that thinks"),
    Named(r"devstral|ministral|mistral|mixtral|codestral|pixtral", "mistral", False, "a Mistral that does not think"),
    Named(r"seed-?oss", "seed_oss", True, "Seed-OSS"),
    Named(r"command-?a-?(reasoning|plus)|cohere-?2-?moe", "cohere", True, "a Command that thinks"),
    Named(r"command-?r7b", "cohere_command3", True, "Command R7B, which thinks before it calls"),
    Named(r"command-?(a|r)\b", "cohere_command3", False, "a Command that does not think"),
    Named(r"apriel.*1[.p-]6", "apriel_1.6", True, "Apriel 1.6"),
    Named(r"apriel", "apriel", True, "Apriel"),
    Named(r"apertus", "apertus", None, "Apertus, whose format has thoughts that are off unless asked for"),
    Named(r"solar-?open", "solar_open", True, "Solar Open"),
    Named(r"\bhy-?(v?3)\b|hunyuan-?(v?3)\b", "hy_v3", True, "Hy3"),
    Named(r"hunyuan", "hunyuan_a13b", True, "Hunyuan"),
    Named(r"\bstep-?3[.p-]?[5-9]\b", "step3p5", True, "Step 3.5 or later"),
    Named(r"\bstep-?3", "step3", True, "Step 3"),
    Named(r"smollm-?3", "smollm3", True, "SmolLM3"),
    Named(r"bielik.*v3", "bielik", True, "Bielik v3"),
    Named(r"granite.*3[.p-]2", "granite", True, "Granite 3.2"),
    Named(r"granite.*3[.p-]3", "granite_3.3", True, "Granite 3.3"),
    Named(r"granite.*20b.*func", "granite_20b_fc", False, "Granite 20B for function calls"),
    Named(r"granite-?4", "granite4", False, "Granite 4"),
    Named(r"lfm-?2.*thinking|lfm-?2[.p-]5-8b", "lfm2", True, "an LFM2 that thinks"),
    Named(r"lfm-?2", "lfm2", False, "LFM2"),
    Named(r"olmo-?3.*think", "olmo3_think", True, "Olmo 3 Think"),
    Named(r"olmo-?3", "olmo3", False, "Olmo 3 Instruct"),
    Named(r"phi-?4-mini.*reasoning", "phi4", True, "Phi-4 mini reasoning"),
    Named(r"phi-?4.*reasoning", "think_tag", True, "Phi-4 reasoning"),
    Named(r"phi-?[34]", "phi4", False, "a Phi that does not think"),
    Named(r"jamba.*reasoning", "jamba", True, "Jamba Reasoning"),
    Named(r"jamba", "jamba", False, "Jamba"),
    Named(r"ernie-?4[.p-]5.*thinking", "ernie45", True, "ERNIE 4.5 Thinking"),
    Named(r"ernie-?4[.p-]5", "ernie45", False, "ERNIE 4.5"),
    Named(r"longcat.*thinking", "longcat", True, "LongCat Thinking"),
    Named(r"longcat", "longcat", False, "LongCat"),
    Named(r"\bling-?3", "ling3", True, "Ling 3"),
    Named(r"laguna", "poolside_v1", True, "Laguna"),
    Named(r"gigachat-?3", "gigachat3", False, "GigaChat 3"),
    Named(r"rwkv", "rwkv_world", True, "RWKV World"),
    Named(r"reka-?edge", "reka_edge", True, "Reka Edge"),
    Named(r"functionary", "functionary", False, "Functionary"),
    Named(r"\bmuse\b|glimmer", "muse", True, "Muse Glimmer"),
    Named(r"inkling", "inkling", True, "Inkling"),
    Named(r"xlam", "xlam", False, "xLAM"),
    Named(r"toolace", "pythonic", False, "ToolACE"),
    Named(r"llama-?4", "llama4_pythonic", False, "Llama 4"),
    Named(r"llama-?[23]|llama3", "llama3_json", False, "a Llama that does not think"),
)
"""What names mean. A row is added by looking at the model's own chat template."""

MOST = 500
"""Characters of a name that are looked at."""


def look_up(name: str) -> Named | None:
    """What is known of a model of this name, or None. Organisations, tags and quantisations may stand around it."""
    plain = re.sub(r"[\s_]+", "-", name[:MOST].strip().lower())
    return next((row for row in MODELS if re.search(row.pattern, plain)), None)


def probe(name: str) -> Finding:
    """What a name says of its model."""
    row = look_up(name)
    if row is not None:
        format = get_format(row.format)
        begin = row.start or own_begin(format, row.thinks)
        known = {True: "thinks", False: "does not think", None: "may think"}[row.thinks]
        reason = f"{name!r} is {row.who}" + ("" if "think" in row.who else f", which {known}")
        return Finding(source="name", formats=(format.name,), thinks=row.thinks, begin=begin, reasons=(reason,))
    own = _own_name(name)
    if own:
        return Finding(source="name", formats=(own,), reasons=(f"{name!r} begins with the name of the format {own}",))
    return Finding(source="name", reasons=(f"{name!r} says nothing that is known here",))


def _own_name(name: str) -> str:
    """The format whose name a model's name begins with, the longest if several do."""
    base = fold(re.split(r"[/\\]", name[:MOST].rstrip("/\\"))[-1])
    found = [
        (len(fold(known)), format)
        for format in formats()
        for known in (format, *get_format(format).aliases)
        if len(fold(known)) > 3 and base.startswith(fold(known))
    ]
    return max(found)[1] if found else ""
