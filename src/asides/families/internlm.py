"""InternLM and Intern-S1."""

from __future__ import annotations

from .._engine.format import Format
from .chatml import ASSISTANT, STOPS
from .other_syntaxes import INTERNLM

INTERN_S1 = Format.tags(
    "<think>",
    "</think>",
    name="interns1",
    aliases=("internlm", "intern_s1_mini"),
    source="Intern-S1 and InternLM 2.5 as SGLang and vLLM read them: a system prompt asks for <think>, the model "
    "opens it (LMDeploy starts in thinking)",
    stops=STOPS,
    calls=(INTERNLM,),
    assistant=ASSISTANT,
)
FORMATS = (INTERN_S1,)
