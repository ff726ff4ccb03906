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
from .._engine.format import THINKING, Format
from .family import Family, Model, RendererEntry, Switch
from .shared import invokes

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
    "string": ("string", "true"),
    "json": True,
    "anywhere": True,
    "unwraps": ("arguments", "input"),  # slips that vLLM has seen
}
DSML_V32 = invokes("<｜DSML｜function_calls>", "</｜DSML｜function_calls>", "｜DSML｜", **_DSML)
"""V3.2. Its parameters say whether they are strings; one JSON object may stand in their place."""
DSML_V4 = replace(
    DSML_V32,
    section=("<｜DSML｜tool_calls>", "<｜DSML｜toolcalls>", "<｜DSML｜tool>"),
    section_close=("</｜DSML｜tool_calls>", "</｜DSML｜toolcalls>", "</｜DSML｜tool>"),
)
"""V4: the same in a section of another name, of which slips are known."""
DSML_V41 = invokes("<｜DSML｜ calls>", "</｜DSML｜ calls>", "｜DSML｜ ", namespaced=True, **_DSML)
"""V4.1: a space stands before the name of every tag; tools may have a namespace, `weather::f`."""

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
    calls=(V3_CALLS,),
    strays=(*_TOOL_OUTPUT, "<｜tool▁sep｜>"),
    assistant=("<｜Assistant｜>",),
)
DEEPSEEK_V3 = DEEPSEEK_R1.but(
    name="deepseek_v3",
    aliases=("deepseekv3_disable_thinking",),
    source="chat template of DeepSeek-V3.1, whose generation prompt closes thinking by default (Dynamo starts in "
    "thinking); the name serves V3 and V3.1, so both call syntaxes",
    start="text",
    calls=(V3_CALLS, V31_CALLS),
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
    calls=(V31_CALLS,),
)
DEEPSEEK_V32 = DEEPSEEK_V3.but(
    name="deepseek_v32",
    source="chat template of DeepSeek-V3.2: thinking is closed in the generation prompt by default (Dynamo starts "
    "in thinking); calls in DSML",
    calls=(DSML_V32,),
)
DEEPSEEK_V4 = DEEPSEEK_V3.but(
    name="deepseek_v4",
    source="chat template of DeepSeek-V4: the generation prompt ends with the closer by default (vLLM starts in "
    "thinking); calls in DSML",
    calls=(DSML_V4,),
)
DEEPSEEK_V41 = DEEPSEEK_V3.but(
    name="deepseek_v41",
    source="DeepSeek-V4.1 as vLLM and SGLang read it: the generation prompt ends with the opener by default; calls in "
    "DSML with a space before the name of every tag",
    start=THINKING,
    calls=(DSML_V41,),
)
_SWITCH = Switch(keyword="thinking")
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
        Model(r"r1-distill|deepseek-reasoner", "deepseek_r1", True, who="DeepSeek R1 or a distillation of it"),
        Model(r"deepseek-?r{}", "deepseek_r1", True, "1", "DeepSeek R1 or a distillation of it"),
        Model(r"deepseek-?math-?v{}", "deepseek_r1", True, "2", "DeepSeek Math"),
        Model(r"deepseek-?v{}-exp", "deepseek_v31", True, "3.2", "DeepSeek V3.2 Exp with the calls of V3.1"),
        Model(r"deepseek-?v{}", "deepseek_v41", True, "4.1"),
        Model(r"deepseek-?v{}", "deepseek_v4", True, "4"),
        Model(r"deepseek-?v{}", "deepseek_v32", True, "3.2"),
        Model(r"deepseek-?v{}", "deepseek_v31", True, "3.1"),
        Model(r"deepseek-?v{}", "deepseek_v3", False, "3"),
        Model(
            r"skywork-or1|acereason|light-r1|openreasoning",
            "deepseek_r1",
            True,
            who="a model made from an R1 distillation",
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
        "deepseekv3_thinking": RendererEntry("deepseek", "DeepSeekV3Thinking"),
        "deepseekv3_disable_thinking": RendererEntry("deepseek", "DeepSeekV3DisableThinking"),
        "deepseekv3": RendererEntry("deepseek", "DeepSeekV3DisableThinking"),
    },
)
