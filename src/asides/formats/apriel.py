"""ServiceNow Apriel: the answer is announced, thinking is not closed."""

from __future__ import annotations

from ..engine.format import THINKING, Format
from .other_syntaxes import TOOL_CALLS_LIST

_STEPS = "Here are my reasoning steps:"

APRIEL = Format.tags(
    (_STEPS, "<thinking>"),
    ("[BEGIN FINAL RESPONSE]", "</thinking>"),
    name="apriel",
    aliases=("apriel_1.5",),
    source="chat template of Apriel 1.5: nothing opens thinking in the generation prompt; before calls it thinks in "
    "<thinking>",
    leading=frozenset({_STEPS}),
    wrappers=("[END FINAL RESPONSE]",),
    stops=("<|end|>",),
    calls=(TOOL_CALLS_LIST,),
    assistant=("<|assistant|>\n", "<|begin_assistant|>\n"),
)
APRIEL_16 = APRIEL.but(
    name="apriel_1.6",
    source="chat template of Apriel 1.6: the generation prompt ends with the sentence that opens thinking",
    start=THINKING,
)
FORMATS = (APRIEL, APRIEL_16)
