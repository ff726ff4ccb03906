"""Qwen and its like: `<think>` tags, ChatML turns, calls as JSON or XML in `<tool_call>` tags."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from .chatml import ASSISTANT, STOPS
from .other_syntaxes import HERMES
from .tagged_syntaxes import QWEN_XML
from .tool_call_tag import with_siblings

QWEN3 = Format.tags(
    "<think>",
    "</think>",
    name="qwen3",
    aliases=("qwen", "qwen25", "qwen3_disable_thinking", "qwen3_instruct", "qwen3_vl", "qwen3_vl_instruct"),
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
    aliases=("qwen3_xml", "mimo", "qwen3_5_disable_thinking"),
    source="chat templates of Qwen3-Coder and MiMo-VL: no opener in the generation prompt; calls as XML",
    calls=with_siblings(QWEN_XML),
)
QWEN3_5 = QWEN3_CODER.but(
    name="qwen3.5",
    aliases=("ornith", "qwen3.6"),
    source="chat template of Qwen3.5-4B: the generation prompt ends with the opener unless thinking is off",
    start=THINKING,
)
HERMES_FORMAT = QWEN3.but(
    name="hermes",
    aliases=("trinity", "smollm3", "bielik"),
    source="chat templates of Hermes 2 Pro, Hermes 3, SmolLM3 and Bielik v3: ChatML, JSON calls, no opener in the "
    "generation prompt by default; Hermes 4 and Trinity think in the same tags",
)
FORMATS = (QWEN3, QWEN3_THINKING, QWEN3_CODER, QWEN3_5, HERMES_FORMAT)
