"""Mistral: `[THINK]` tokens, or `<think>` in the first Magistral; calls behind `[TOOL_CALLS]`."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.calls.named_calls import NamedCalls
from .._engine.format import Format
from ._family import Family, MarkerIds, Model, Switch
from ._shared import PLAIN_STOPS

_CALLS_CLOSE = "[/TOOL_CALLS]"
"""Written behind calls by some templates and models; none of the family's own asks for it."""
MISTRAL_NAMED = NamedCalls(
    open=("[TOOL_CALLS]",),
    section_close=(_CALLS_CLOSE,),
    separators=("[ARGS]",),
    direct=True,
    call_id="[CALL_ID]",
    id_shape="short",
)
"""`[TOOL_CALLS]f[ARGS]{}` or `[TOOL_CALLS]f{}`: from the eleventh tokenizer on."""
MISTRAL_LIST = JsonCalls(open=("[TOOL_CALLS]",), section_close=(_CALLS_CLOSE,), id_shape="short", listed=True)
"""`[TOOL_CALLS] [{"name": "f", "arguments": {}, "id": "..."}]`: before the eleventh tokenizer."""

MISTRAL = Format.tags(
    ("[THINK]", "<think>"),
    ("[/THINK]", "</think>"),
    name="mistral",
    aliases=("ministral", "ministral_3", "magistral"),
    source="chat templates of Ministral 3 Reasoning and Mistral Small 3.2: nothing opens thinking in the prompt "
    "(Dynamo starts in thinking); Magistral 2506 wrote <think>, later ones [THINK]",
    stops=("</s>",),
    other_turns=("[INST]", "[SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[TOOL_RESULTS]"),
    wrappers=(_CALLS_CLOSE,),
    calls=(MISTRAL_NAMED, MISTRAL_LIST),
    assistant=("[/INST]",),
)
FAMILY = Family(
    name="Mistral",
    formats=(MISTRAL,),
    models=(
        Model(r"magistral|ministral.*reasoning", "mistral", True, who="a Mistral that thinks"),
        Model(r"mistral-small-{}", "mistral", True, "4", "Mistral Small 4"),
        Model(r"mistral-medium-{}", "mistral", True, "3.5", "Mistral Medium 3.5"),
        Model(
            r"mistral-(?:small|medium|large)-{}",
            "mistral",
            False,
            "2 2.1 3 3.1 3.2",
            "a Mistral that does not think",
        ),
        Model(
            r"devstral|ministral|mistral|mixtral|codestral|pixtral",
            "mistral",
            False,
            who="a Mistral that does not think",
        ),
    ),
    base=True,
    switch=Switch(keyword="reasoning_effort", on="high", off="none"),
    plain=PLAIN_STOPS,
    marker_ids={
        "Mistral-Nemo": MarkerIds(
            ("mistral",),
            {
                "</s>": 2,
                "[INST]": 3,
                "[/INST]": 4,
                "[AVAILABLE_TOOLS]": 5,
                "[TOOL_RESULTS]": 7,
                "[TOOL_CALLS]": 9,
            },
        ),
    },
)
