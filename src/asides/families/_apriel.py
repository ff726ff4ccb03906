"""ServiceNow Apriel: the answer is announced, thinking is not closed."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from ._family import Family, Model
from ._shared import TOOL_CALLS_LIST

_STEPS = "Here are my reasoning steps:"
_BEGIN, _END = "[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"

APRIEL = Format.tags(
    (_STEPS, "<thinking>"),
    (_BEGIN, "</thinking>"),
    name="apriel",
    aliases=("apriel_1.5",),
    source="chat template of Apriel 1.5: nothing opens thinking in the generation prompt; before calls it thinks in "
    "<thinking>",
    leading=frozenset({_STEPS}),
    wrappers=(_END,),
    stops=("<|end|>",),
    other_turns=(
        "<|user|>",
        "<|system|>",
        "<|tool_result|>",
        "<|assistant|>",
        "<|begin_user|>",
        "<|begin_system|>",
        "<|begin_assistant|>",
    ),
    calls=(TOOL_CALLS_LIST,),
    assistant=("<|assistant|>\n", "<|begin_assistant|>\n"),
)
APRIEL_16 = APRIEL.but(
    name="apriel_1.6",
    source="chat template of Apriel 1.6: the generation prompt ends with the sentence that opens thinking",
    start=THINKING,
)
FAMILY = Family(
    name="Apriel",
    formats=(APRIEL, APRIEL_16),
    models=(
        Model(r"apriel-?{}", "apriel_1.6", True, "1.6"),
        Model(r"apriel-?{}", "apriel", True, "1.5"),
        Model(r"apriel", "apriel", True),
    ),
    plain={_STEPS: "a sentence", **dict.fromkeys((_BEGIN, _END), "words in brackets, closing what a sentence opens")},
)
