"""GLM and those that write calls as it does: keys and values in tags."""

from __future__ import annotations

from .._engine.format import TEXT, THINKING, Format
from .other_syntaxes import NAME_AND_JSON
from .tagged_syntaxes import GLM
from .tool_call_tag import with_siblings

GLM45 = Format.tags(
    "<think>",
    "</think>",
    name="glm45",
    aliases=("glm", "glm46", "glm_ocr"),
    source="chat template of GLM-4.6: the generation prompt opens no thinking (vLLM starts in thinking)",
    stops=("<|endoftext|>", "<|user|>", "<|observation|>"),
    calls=with_siblings(GLM),
    assistant=("<|assistant|>",),
)
GLM47 = GLM45.but(
    name="glm47",
    aliases=("glm5",),
    source="chat template of GLM-4.7-Flash: the generation prompt ends with the opener (Dynamo starts in text)",
    start=THINKING,
)
LING3 = Format.tags(
    "<think>",
    "</think>",
    name="ling3",
    aliases=("bailing_v3",),
    source="generation prompt of Ling 3 as Ollama renders it: ends with the opener; calls as GLM's",
    start=THINKING,
    stops=("<|role_end|>", "<|endoftext|>"),
    calls=with_siblings(GLM),
    assistant=("<role>ASSISTANT</role>",),
)
POOLSIDE = Format.tags(
    "<think>",
    "</think>",
    name="poolside_v1",
    aliases=("laguna",),
    source="chat template of Laguna XS 2.1: the generation prompt ends with the closer by default (Laguna S 2.1 "
    "opens thinking there: give the prompt); calls as GLM's, at times with JSON behind the name",
    start=TEXT,
    stops=("</assistant>", "〈|EOS|〉"),
    calls=with_siblings(GLM, NAME_AND_JSON),
    assistant=("<assistant>",),
    plain=dict.fromkeys(("<assistant>", "</assistant>"), "a tag of many prompts and of conversations written as XML"),
)
FORMATS = (GLM45, GLM47, LING3, POOLSIDE)
