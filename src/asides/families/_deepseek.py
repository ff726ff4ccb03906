"""DeepSeek: `<think>` tags; four generations of call syntax.

The thinking markers never changed, so the formats differ in two things: whether the generation prompt opens thinking
(R1 and V4.1 do by default, V3.1 to V4 close it), and how calls are written:

    V3, R1    name on a line, arguments in a code block        V3.1    name, separator, arguments
    V3.2      DSML: invokes and parameters in tags             V4      the same in a section of another name
    V4.1      DSML with a space before the name of every tag
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from .._engine.calls.named_calls import NamedCalls
from .._engine.calls.syntax import CallSyntax
from .._engine.format import THINKING, Format
from ._family import NO_SWITCH, EarlierThinking, Family, MarkerIds, Model, RendererEntry, Switch
from ._shared import invokes

V3_CALLS = NamedCalls(
    section=("<｜tool▁calls▁begin｜>",),
    section_close=("<｜tool▁calls▁end｜>",),
    open=("<｜tool▁call▁begin｜>",),
    close=("<｜tool▁call▁end｜>",),
    before_name="function<｜tool▁sep｜>",
    direct=True,
    fenced=True,
)
"""The name on a line, the arguments in a code block: V3 and R1."""
V31_CALLS = replace(V3_CALLS, before_name="", direct=False, separators=("<｜tool▁sep｜>",))
"""`<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>` in a section: V3.1."""
_DSML: dict[str, Any] = {
    "never_shown": True,
    "string": ("string", "true"),
    "json": True,
    "anywhere": True,
    "unwraps": ("arguments", "input"),  # slips that vLLM has seen
}
DSML_V32 = invokes("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "｜DSML｜", **_DSML)
"""V3.2. Its parameters say whether they are strings; one JSON object may stand in their place."""
_V4_SECTIONS = ("tool_calls", "toolcalls", "tool")
DSML_V4 = replace(
    DSML_V32,
    section=tuple(f"<｜DSML｜{name}>" for name in _V4_SECTIONS),
    section_close=tuple(f"</｜DSML｜{name}>" for name in _V4_SECTIONS),
)
"""V4: the same in a section of another name, of which slips are known."""
DSML_V41 = invokes("<｜DSML｜ calls>", "</｜DSML｜ calls>", "｜DSML｜ ", namespaced=True, **_DSML)
"""V4.1: a space stands before the name of every tag; tools may have a namespace, `weather::f`."""


def _with_slips(own: CallSyntax) -> tuple[CallSyntax, ...]:
    """The syntax of one generation, and those of the others in DSML, into which models slip and out of it again."""
    others = [syntax for syntax in (DSML_V32, DSML_V4, DSML_V41) if syntax != own]
    return (own, *(replace(other, section_close=_ends(other, own), sibling=True) for other in others))


def _ends(other: CallSyntax, own: CallSyntax) -> tuple[str, ...]:
    return tuple(dict.fromkeys(other.section_close + own.section_close))


_TOOL_OUTPUT = (
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
)
"""Tokens around what a tool answered, which a model may write when it invents the answer."""

DEEPSEEK_R1 = Format.tags(
    "<think>",
    "</think>",
    name="deepseek_r1",
    aliases=("cogito",),
    source="chat template of R1-Distill-Llama-8B: the generation prompt ends with the opener; Ollama reads Cogito "
    "the same way",
    start=THINKING,
    stops=("<｜end▁of▁sentence｜>",),
    other_turns=("<｜User｜>", "<｜Assistant｜>", "<｜tool▁outputs▁begin｜>", "<｜tool▁output▁begin｜>"),
    calls=_with_slips(V3_CALLS),
    strays=(*_TOOL_OUTPUT, "<｜tool▁sep｜>"),
    assistant=("<｜Assistant｜>",),
)
DEEPSEEK_V3 = DEEPSEEK_R1.but(
    name="deepseek_v3",
    aliases=("deepseekv3_disable_thinking",),
    source="chat template of DeepSeek-V3.1, whose generation prompt closes thinking by default (Dynamo starts in "
    "thinking); the name serves V3 and V3.1, so both call syntaxes",
    start="text",
    calls=(V3_CALLS, *_with_slips(V31_CALLS)),
)
DEEPSEEK_V3_THINKING = DEEPSEEK_V3.but(
    name="deepseek_v3_thinking",
    aliases=("deepseek3",),
    source="DeepSeek-V3.1 with thinking on: the generation prompt ends with the opener, as Ollama's deepseek3 and "
    "tinker's renderer have it",
    start=THINKING,
)
DEEPSEEK_V31 = DEEPSEEK_V3.but(
    name="deepseek_v31",
    source="chat template of DeepSeek-V3.1: thinking is closed in the generation prompt by default (Dynamo starts "
    "in thinking)",
    calls=(replace(V3_CALLS, sibling=True), *_with_slips(V31_CALLS)),
)
DEEPSEEK_V32 = DEEPSEEK_V3.but(
    name="deepseek_v32",
    source="chat template of DeepSeek-V3.2: thinking is closed in the generation prompt by default (Dynamo starts "
    "in thinking); calls in DSML",
    calls=_with_slips(DSML_V32),
)
DEEPSEEK_V4 = DEEPSEEK_V3.but(
    name="deepseek_v4",
    source="chat template of DeepSeek-V4: the generation prompt ends with the closer by default (vLLM starts in "
    "thinking); calls in DSML",
    calls=_with_slips(DSML_V4),
)
DEEPSEEK_V41 = DEEPSEEK_V3.but(
    name="deepseek_v41",
    source="DeepSeek-V4.1 as vLLM and SGLang read it: the generation prompt ends with the opener by default; calls in "
    "DSML with a space before the name of every tag",
    start=THINKING,
    calls=_with_slips(DSML_V41),
)
_SWITCH = Switch(keyword="thinking")
_WITH_TOOLS = EarlierThinking(with_tools=True)
"""DeepSeek's own API answers 400 to a request with tools whose earlier turns come back without a thought."""
_R1 = "DeepSeek R1 or a distillation of it"
TEMPLATE = r"""{{- '<｜begin▁of▁sentence｜>' }}
{%- for message in messages %}
    {%- set after_result = not loop.first and loop.previtem.role == 'tool' %}
    {%- if message.role == 'assistant' %}
        {%- set has_thoughts = message.is_target or history == 'keep' or message.thinks %}
        {%- set has_block = not closed and message.keeps and has_thoughts %}
        {%- if not after_result %}{{ '<｜Assistant｜>' + ('<think>' if has_block else '</think>') }}{% endif %}
        {%- generation %}
            {%- if has_block %}
                {%- set begins = message.parts and message.parts[0].thinks %}
                {{- '<think>' if after_result else '' }}
                {{- (message.parts[0].text if begins else '') + '</think>' }}
                {%- for part in message.parts[1 if begins else 0:] %}
                    {{- '<think>' + part.text + '</think>' if part.thinks else part.text }}
                {%- endfor %}
            {%- else %}
                {{- message.text }}
            {%- endif %}
            {%- for call in message.calls %}
                {{- '<｜tool▁calls▁begin｜>' if loop.first else '' }}
                {{- '<｜tool▁call▁begin｜>' + call.name + '<｜tool▁sep｜>' + call.arguments + '<｜tool▁call▁end｜>' }}
                {{- '<｜tool▁calls▁end｜>' if loop.last else '' }}
            {%- endfor %}
            {{- '<｜end▁of▁sentence｜>' }}
        {%- endgeneration %}
    {%- elif message.role == 'tool' %}
        {%- generation %}{{ '<｜tool▁output▁begin｜>' + message.text + '<｜tool▁output▁end｜>' }}{% endgeneration %}
    {%- elif message.role == 'system' and loop.first %}
        {%- generation %}
            {{- message.text }}
            {%- if message.tools %}
                {{- '\n\n' if message.text else '' }}
                {{- '## Tools\nYou have access to the following tools:\n' }}
                {%- for tool in message.tools %}
                    {{- '\n### ' + tool.name + '\nDescription: ' ~ (tool.description | default('')) }}
                    {{- '\n\nParameters: ' ~ ((tool.parameters or {}) | tojson) ~ '\n' }}
                {%- endfor %}
                {{- '\nIMPORTANT: ALWAYS adhere to this exact format for tool use:\n' }}
                {{- '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tool_call_name<｜tool▁sep｜>tool_call_arguments' }}
                {{- '<｜tool▁call▁end｜>{additional_tool_calls}<｜tool▁calls▁end｜>\n\nWhere:\n' }}
                {{- '- `tool_call_name` must be an exact match to one of the available tools\n' }}
                {{- "- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters Schema\n" }}
                {{- '- For multiple tool calls, chain them directly without separators or spaces\n' }}
            {%- endif %}
        {%- endgeneration %}
    {%- elif message.role == 'user' or message.role == 'system' and system_role_as_user %}
        {{- '<｜User｜>' }}
        {%- generation %}{{ message.text }}{% endgeneration %}
    {%- elif message.role == 'system' %}
        {{- raise_exception("only the first message may be the system's, unless system_role_as_user") }}
    {%- else %}
        {{- raise_exception('there is no role ' ~ message.role) }}
    {%- endif %}
{%- endfor %}
{%- if opens and opens != 'assistant' %}
    {{- '<｜User｜>' }}
{%- elif opens and not (messages and messages[-1].role == 'tool') %}
    {{- '<｜Assistant｜>' + ('</think>' if closed else '<think>') }}
{%- endif %}
"""
"""How the renderers of DeepSeek V3.1 write, as tinker-cookbook does; `closed`: the prompt ends with the closer."""

_TOOL_IDS = {
    "<｜end▁of▁sentence｜>": 1,
    "<｜User｜>": 128803,
    "<｜Assistant｜>": 128804,
    "<｜tool▁calls▁begin｜>": 128806,
    "<｜tool▁calls▁end｜>": 128807,
    "<｜tool▁call▁begin｜>": 128808,
    "<｜tool▁call▁end｜>": 128809,
    "<｜tool▁outputs▁begin｜>": 128810,
    "<｜tool▁output▁begin｜>": 128812,
    "<｜tool▁sep｜>": 128814,
}
"""The ids that all tokenizers of the family share."""
FAMILY = Family(
    name="DeepSeek",
    formats=(
        DEEPSEEK_V3,
        DEEPSEEK_R1,
        DEEPSEEK_V4,
        DEEPSEEK_V41,
        DEEPSEEK_V31,
        DEEPSEEK_V32,
        DEEPSEEK_V3_THINKING,
    ),
    models=(
        Model(r"r1-distill|deepseek-reasoner", "deepseek_r1", True, who=_R1, switch=NO_SWITCH),
        Model(r"deepseek-?r{}", "deepseek_r1", True, "1", _R1, switch=NO_SWITCH),
        Model(r"deepseek-?math-?v{}", "deepseek_r1", True, "2", "DeepSeek Math"),
        Model(r"deepseek-?v{}-exp", "deepseek_v31", True, "3.2", "DeepSeek V3.2 Exp with the calls of V3.1"),
        Model(r"deepseek-?v{}", "deepseek_v41", True, "4.1", earlier=_WITH_TOOLS),
        Model(r"deepseek-?v{}", "deepseek_v4", True, "4", earlier=_WITH_TOOLS),
        Model(r"deepseek-?v{}", "deepseek_v32", True, "3.2"),
        Model(r"deepseek-?v{}", "deepseek_v31", True, "3.1"),
        Model(r"deepseek-?v{}", "deepseek_v3", False, "3"),
        Model(
            r"skywork-or1|acereason|light-r1|openreasoning",
            "deepseek_r1",
            True,
            who="a model made from an R1 distillation",
            switch=NO_SWITCH,
        ),
        Model(
            r"cogito(?:-v?{})?",
            "deepseek_r1",
            True,
            "1 2 2.1",
            "Cogito, which thinks when asked to",
            "text",
            "Cogito",
        ),
    ),
    switch={
        "deepseek_r1": Switch(),  # Cogito, and templates of R1 that servers ship
        **dict.fromkeys(("deepseek_v3", "deepseek_v3_thinking", "deepseek_v31", "deepseek_v32"), _SWITCH),
        "deepseek_v4": Switch(keyword="thinking", efforts=("high", "max")),
        "deepseek_v41": Switch(keyword="thinking", efforts=("low", "high", "max")),
    },
    rank=2,
    renderers={
        "deepseekv3_thinking": RendererEntry("DeepSeekV3Thinking", TEMPLATE),
        "deepseekv3_disable_thinking": RendererEntry("DeepSeekV3DisableThinking", TEMPLATE),
        "deepseekv3": RendererEntry("DeepSeekV3DisableThinking", TEMPLATE),
    },
    marker_ids={
        "DeepSeek-R1": MarkerIds(
            ("deepseek_r1", "deepseek_v3", "deepseek_v3_thinking", "deepseek_v31"),
            {"<think>": 128798, "</think>": 128799, **_TOOL_IDS},
        ),
        "DeepSeek-V4": MarkerIds(("deepseek_v4",), {"<think>": 128821, "</think>": 128822, **_TOOL_IDS}),
    },
)
