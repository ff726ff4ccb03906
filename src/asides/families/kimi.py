"""Kimi: three generations that share a name and little else."""

from __future__ import annotations

from .._engine.calls.named_calls import NamedCalls
from .._engine.calls.xml_calls import Tag, XmlCalls
from .._engine.format import END, TEXT, THINKING, Format
from .family import Family, Model, RendererEntry, Switch

K2_CALLS = NamedCalls(
    section=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
    section_close=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    open=("<|tool_call_begin|>",),
    close=("<|tool_call_end|>",),
    separators=("<|tool_call_argument_begin|>",),
    numbered=True,
    id_shape="counted",
)
"""`<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>` in a section: K2."""
K3_CALLS = XmlCalls(
    section=("<|open|>tools<|sep|>",),
    section_close=("<|close|>tools<|sep|>",),
    call=Tag("<|open|>call", "tool", "<|sep|>", escaped=True, counted="index"),
    call_close="<|close|>call<|sep|>",
    parameter=Tag("<|open|>argument", "key", "<|sep|>", escaped=True),
    parameter_close="<|close|>argument<|sep|>",
    anywhere=True,
    string=("type", "string"),
    json=True,
    json_tag=Tag("<|open|>json", "type", "<|sep|>"),
    json_close="<|close|>json<|sep|>",
)
"""Tags made of three tokens: K3."""

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
FAMILY = Family(
    name="Kimi",
    formats=(KIMI_K2, KIMI_K25, KIMI_K3, KIMI),
    models=(
        Model(r"kimi-?k{}", "kimi_k3", True, "3"),
        Model(r"kimi-?k{}", "kimi_k25", True, "2.5 2.6"),
        Model(r"kimi-?k{}.*thinking", "kimi_k2", True, "2", "Kimi K2 Thinking"),
        Model(r"kimi-?k{}", "kimi_k2", False, "2"),
        Model(r"kimi-?linear|moonlight", "kimi_k2", False, who="Kimi Linear or Moonlight"),
        Model(r"kimi-?vl.*thinking|kimi-?dev", "kimi", True, who="Kimi VL Thinking or Kimi Dev"),
        Model(r"kimi-?vl", "kimi", False, who="Kimi VL"),
    ),
    # The templates of K2, Instruct and Thinking, read no keyword: one thinks, the other does not.
    switch={
        "kimi_k25": Switch(keyword="thinking"),
        "kimi_k3": Switch(keyword="thinking", effort="thinking_effort", efforts=("low", "medium", "high", "max")),
    },
    decisive=KIMI_K3,
    rank=4,
    renderers={"kimi_k2": RendererEntry("kimi", "KimiK2")},
)
