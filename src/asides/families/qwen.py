"""Qwen and its like: `<think>` tags, ChatML turns, calls as JSON or XML in `<tool_call>` tags."""

from __future__ import annotations

from msgspec.structs import replace

from .._engine.format import THINKING, Format
from .family import Family, Model, RendererEntry, Switch
from .shared import ASSISTANT, HERMES, QWEN_XML, STOPS, with_siblings

QWEN3 = Format.tags(
    "<think>",
    "</think>",
    name="qwen3",
    aliases=(
        "qwen",
        "qwen25",
        "qwen2d5",
        "qwen3_json",
        "qwen3_disable_thinking",
        "qwen3_instruct",
        "qwen3_vl",
        "qwen3_vl_instruct",
    ),
    source="chat template of Qwen3-0.6B, whose generation prompt opens no thinking (vLLM starts in thinking, "
    "SGLang and Dynamo in text); added tokens 151657, 151658, 151667, 151668",
    stops=STOPS,
    calls=with_siblings(HERMES),
    assistant=ASSISTANT,
)
QWEN3_THINKING = QWEN3.but(
    name="qwen3_thinking",
    aliases=("qwen3_vl_thinking", "qwq", "qwen_qwq", "holo2"),
    source="Qwen3 2507 Thinking, Qwen3-VL Thinking, QwQ and Holo2: the generation prompt ends with the opener",
    start=THINKING,
)
QWEN3_CODER = QWEN3.but(
    name="qwen3_coder",
    aliases=("qwen3_xml", "nanbeige", "qwen3_5_disable_thinking"),
    source="chat template of Qwen3-Coder: no opener in the generation prompt; calls as XML",
    calls=with_siblings(QWEN_XML),
)
MIMO_XML = replace(QWEN_XML, framed=False)
"""The same with values that are taken to the character."""
MIMO = QWEN3_CODER.but(
    name="mimo",
    source="MiMo-V2 as vLLM reads it: Qwen3-Coder's tags, but no newline around a value is framing",
    calls=with_siblings(MIMO_XML),
)
QWEN3_5 = QWEN3_CODER.but(
    name="qwen3.5",
    aliases=("ornith", "qwen3.6", "qwen3.8", "intern_s2", "interns2_preview", "prime_qwen3"),
    source="chat template of Qwen3.5-4B: the generation prompt ends with the opener unless thinking is off",
    start=THINKING,
)
FAMILY = Family(
    name="Qwen",
    formats=(QWEN3, QWEN3_5, QWEN3_THINKING, QWEN3_CODER, MIMO),
    models=(
        Model(r"\bqwq", "qwen3_thinking", True, who="QwQ"),
        Model(r"\bholo-?{}", "qwen3_thinking", True, "2", line="Holo"),
        Model(r"ornith", "qwen3.5", True, line="Ornith"),
        Model(r"\bmimo-v{}", "mimo", True, "2", line="MiMo"),
        Model(r"\bmimo-(?:vl|7b)", "qwen3", True, who="MiMo before the second", line="MiMo"),
        Model(r"\bmimo$", "mimo", True, line="MiMo"),
        Model(r"tongyi-deepresearch", "qwen3", True, who="Tongyi DeepResearch", line="Tongyi"),
        Model(r"nanbeige-?{}", "qwen3_coder", True, "4.2", line="Nanbeige"),
        Model(r"qwen-?{}", "qwen3.5", True, "3.5 3.6 3.8"),
        Model(r"qwen-?{}.*(?:embedding|reranker|guard)", "qwen3", False, "3", "a Qwen 3 that writes no answers"),
        Model(r"qwen-?{}-?coder", "qwen3_coder", False, "3", "Qwen 3 Coder"),
        Model(r"qwen-?{}.*(?<!disable-)thinking", "qwen3_thinking", True, "3", "Qwen 3 Thinking"),
        Model(r"qwen-?{}.*instruct", "qwen3", False, "3", "Qwen 3 Instruct"),
        Model(r"qwen-?{}-?(?:vl|omni|next)", "qwen3", None, "3", "Qwen 3, of which there are variants that think"),
        Model(r"qwen-?{}", "qwen3", True, "3"),
        Model(r"qwen-?{}", "qwen25", False, "1 1.5 2 2.5"),
        Model(r"qwen-?\d+b|codeqwen", "qwen25", False, who="a Qwen before the third"),
    ),
    base=True,
    switch=Switch(),
    plain_calls=(MIMO_XML,),
    rank=1,
    renderers={
        "qwen3": RendererEntry("qwen3", "Qwen3"),
        "qwen3_disable_thinking": RendererEntry("qwen3", "Qwen3DisableThinking"),
    },
)
