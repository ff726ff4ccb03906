"""Kimi: three generations that share a name and little else."""

from __future__ import annotations

from .._engine.format import END, TEXT, THINKING, Format
from .other_syntaxes import KIMI_K2 as K2_CALLS
from .tagged_syntaxes import KIMI_K3 as K3_CALLS

_ASSISTANT = ("<|im_assistant|>assistant<|im_middle|>",)

KIMI = Format.tags(
    "◁think▷",
    "◁/think▷",
    name="kimi",
    aliases=("kimi_vl", "kimi_dev"),
    source="Kimi-VL Thinking as SGLang and Dynamo read it; it writes no calls",
    stops=("<|im_end|>",),
    assistant=_ASSISTANT,
)
KIMI_K2 = Format.tags(
    "<think>",
    "</think>",
    name="kimi_k2",
    source="chat templates of Kimi-K2 Instruct and Thinking: no opener in the generation prompt (vLLM starts in "
    "thinking)",
    stops=("<|im_end|>",),
    calls=(K2_CALLS,),
    strays=K2_CALLS.separators,
    assistant=_ASSISTANT,
)
KIMI_K25 = KIMI_K2.but(
    name="kimi_k25",
    aliases=("kimi_k26", "kimi_thinking"),
    source="Kimi-K2.5 renderers: the generation prompt ends with the opener unless thinking is off (SMG starts in "
    "text)",
    start=THINKING,
)
_RESPONSE = "<|open|>response<|sep|>"
KIMI_K3 = Format(
    name="kimi_k3",
    source="chat template of Kimi-K3: the generation prompt ends with the opener; the answer is wrapped, and its "
    "wrapper also ends thinking",
    start=THINKING,
    states={
        TEXT: {
            "<|open|>think<|sep|>": THINKING,
            _RESPONSE: TEXT,
            "<|close|>response<|sep|>": TEXT,
            "<|close|>response": TEXT,
            "<|close|>message<|sep|>": END,
            "<|end_of_msg|>": END,
        },
        THINKING: {
            "<|close|>think<|sep|>": TEXT,
            "<|close|>think": TEXT,
            _RESPONSE: TEXT,
            "<|close|>message<|sep|>": END,
            "<|end_of_msg|>": END,
        },
    },
    calls=(K3_CALLS,),
    partial=frozenset({"<|close|>think", "<|close|>response"}),
    calls_in_thinking_ids="always",
    behind_calls=frozenset({"<|close|>think<|sep|>", "<|close|>think", _RESPONSE}),
    assistant=('<|open|>message role="assistant"<|sep|>',),
)
FORMATS = (KIMI, KIMI_K2, KIMI_K25, KIMI_K3)
