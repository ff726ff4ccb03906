"""Kimi: three generations that share a name and little else.

The first writes its thinking between signs of its own, K2 in tags, its calls in a section, K3 in markers with names.
The template for the renderer is K2's: a token for each role, and a message of its own to declare tools.
"""

from __future__ import annotations

from .._engine.calls.named_calls import NamedCalls
from .._engine.calls.xml_calls import Tag, XmlCalls
from .._engine.format import END, TEXT, THINKING, Format
from ._family import EarlierThinking, Family, MarkerIds, Model, RendererEntry, Switch

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

_TURNS = ("<|im_user|>", "<|im_system|>", "<|im_assistant|>")
_ASSISTANT = ("<|im_assistant|>assistant<|im_middle|>",)

KIMI = Format.tags(
    "◁think▷",
    "◁/think▷",
    name="kimi",
    aliases=("kimi_vl", "kimi_dev"),
    source="Kimi-VL Thinking as SGLang and Dynamo read it; it writes no calls",
    stops=("<|im_end|>",),
    other_turns=_TURNS,
    assistant=_ASSISTANT,
)
KIMI_K2 = Format.tags(
    "<think>",
    "</think>",
    name="kimi_k2",
    source="chat templates of Kimi-K2 Instruct and Thinking: no opener in the generation prompt (vLLM starts in "
    "thinking)",
    stops=("<|im_end|>",),
    other_turns=_TURNS,
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
    other_turns=("<|open|>message",),
    assistant=('<|open|>message role="assistant"<|sep|>',),
)
_KEEPS = EarlierThinking(keywords={"keep": "all", "preserve_thinking": True})
"""The first in `thinking` of Moonshot's API, the second in templates."""
TEMPLATE = r"""{%- set words = 'You are Kimi, an AI assistant created by Moonshot AI.' %}
{%- set default = '<|im_system|>system<|im_middle|>' + words + '<|im_end|>' %}
{%- set is_told = messages | selectattr('role', 'equalto', 'system') | list | length > 0 %}
{%- set is_declared = messages and messages[0].role == 'tool_declare' %}
{%- set tokens = {'user': '<|im_user|>', 'assistant': '<|im_assistant|>'} %}
{%- set numbers = namespace(call=0) %}
{%- if not is_told and not is_declared %}{{ default }}{% endif %}
{%- for message in messages %}
    {%- set named = (message.name or 'tool') if message.role == 'tool' else message.role %}
    {%- if not is_told and is_declared and loop.index0 == 1 %}{{ default }}{% endif %}
    {{- tokens.get(message.role, '<|im_system|>') + named + '<|im_middle|>' }}
    {%- set first = numbers.call %}
    {%- set numbers.call = first + (message.calls | length) %}
    {%- generation %}
        {%- if message.role == 'tool' %}
            {{- '## Return of ' + message.call_id + '\n' + message.text }}
        {%- elif message.role == 'assistant' %}
            {%- if not (message.parts and message.parts[0].thinks) %}{{ '<think></think>' }}{% endif %}
            {%- for part in message.parts %}
                {{- '<think>' + part.text + '</think>' if part.thinks else part.text }}
            {%- endfor %}
            {%- for call in message.calls %}
                {{- '<|tool_calls_section_begin|>' if loop.first else '' }}
                {%- set id = call.id.rpartition(':') %}
                {%- set fits = id[0] == 'functions.' + call.name and id[2].isdigit() %}
                {%- set made = 'functions.' ~ call.name ~ ':' ~ (first + loop.index0) %}
                {{- '<|tool_call_begin|>' + (call.id if fits else made) }}
                {{- '<|tool_call_argument_begin|>' + call.arguments + '<|tool_call_end|>' }}
                {{- '<|tool_calls_section_end|>' if loop.last else '' }}
            {%- endfor %}
        {%- else %}
            {%- for tool in message.tools %}
                {{- '[' if loop.first else ',' }}
                {{- {'type': 'function', 'function': tool} | tojson(separators=(',', ':'), sort_keys=true) }}
                {{- ']' if loop.last else '' }}
            {%- endfor %}
            {{- message.text }}
        {%- endif %}
        {{- '<|im_end|>' }}
    {%- endgeneration %}
{%- endfor %}
{%- if not is_told and is_declared and messages | length == 1 %}{{ default }}{% endif %}
{%- if opens %}{{ tokens.get(opens, '<|im_system|>') + opens + '<|im_middle|>' }}{% endif %}
"""
"""How the renderer of Kimi K2 writes."""

FAMILY = Family(
    name="Kimi",
    formats=(KIMI_K2, KIMI_K25, KIMI_K3, KIMI),
    models=(
        Model(r"kimi-?k{}", "kimi_k3", True, "3", earlier=_KEEPS),
        Model(r"kimi-?k{}", "kimi_k25", True, "2.5 2.6", earlier=_KEEPS),
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
    renderers={"kimi_k2": RendererEntry("KimiK2", TEMPLATE)},
    marker_ids={
        "Kimi-K2": MarkerIds(
            ("kimi_k2",),
            {
                "[EOS]": 163585,
                "<|im_end|>": 163586,
                "<|im_user|>": 163587,
                "<|im_assistant|>": 163588,
                "<|im_system|>": 163594,
                "<|tool_calls_section_begin|>": 163595,
                "<|tool_calls_section_end|>": 163596,
                "<|tool_call_begin|>": 163597,
                "<|tool_call_argument_begin|>": 163598,
                "<|tool_call_end|>": 163599,
                "<|im_middle|>": 163601,
                "<think>": 163606,
                "</think>": 163607,
            },
        ),
    },
)
