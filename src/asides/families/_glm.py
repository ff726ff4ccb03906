"""Z.ai's GLM: calls as keys and values in tags."""

from __future__ import annotations

from .._engine.format import THINKING, Format
from ._family import EarlierThinking, Family, Model, Switch
from ._shared import GLM_KEYED, with_siblings

GLM45 = Format.tags(
    "<think>",
    "</think>",
    name="glm45",
    aliases=("glm", "glm46", "glm_ocr"),
    source="chat template of GLM-4.6: the generation prompt opens no thinking (vLLM starts in thinking)",
    stops=("<|endoftext|>", "<|user|>", "<|observation|>"),
    other_turns=("<|user|>", "<|observation|>", "<|system|>", "<|assistant|>"),
    calls=with_siblings(GLM_KEYED),
    assistant=("<|assistant|>",),
)
GLM47 = GLM45.but(
    name="glm47",
    aliases=("glm5", "glm5.1", "glm5.3"),
    source="chat template of GLM-4.7-Flash: the generation prompt ends with the opener (Dynamo starts in text)",
    start=THINKING,
)
_KEEPS = {"clear_thinking": False}
FAMILY = Family(
    name="GLM",
    formats=(GLM45, GLM47),
    models=(
        Model(r"glm-?{}", "glm45", True, "4.5 4.6"),
        Model(r"glm-?{}", "glm47", True, "4.7 5 5.1", earlier=EarlierThinking(keywords=_KEEPS)),
        Model(r"glm-?{}", "glm47", True, "5.3", earlier=EarlierThinking(keywords=_KEEPS, default=True)),
        Model(r"glm-?z1|glm-?{}v.*thinking", "think_tag", True, "4.1", "GLM Z1 or 4.1V Thinking"),
        Model(r"\bglyph\b", "glm45", True, who="Glyph"),
    ),
    switch=Switch(),
    rank=3,
)
