"""Tags that many models are asked for in prompts, and the models that write nothing else."""

from __future__ import annotations

from .._engine.format import Format
from .._engine.tag_markers import TagRule
from ._family import Family, Model, Switch
from ._shared import ASSISTANT, HERMES, STOPS, TURNS, with_siblings

THINKING_TAGS = ("think", "thinking", "reasoning", "thought")
"""Names of tags for thoughts that mean little else."""
WEAK_TAGS = ("internal", "scratchpad")
"""Names that are also words of configuration files and prompts: in `auto` they count only where output begins."""
FIELD_TAGS = ("reason", "reflection")
"""Names that are also fields of answers, a judge's above all: in `auto` they are text."""
_NAMES = (*THINKING_TAGS, *WEAK_TAGS, *FIELD_TAGS)

THINK_TAG = Format.tags(
    (*(f"<{name}>" for name in _NAMES), "<|begin_of_thought|>"),
    (*(f"</{name}>" for name in _NAMES), "<|end_of_thought|>"),
    name="think_tag",
    aliases=("think", "default", "basic", "base"),
    source="the tags that prompts ask for; NexRL's think_tag, default of NexRL, basic of Dynamo; Sky-T1 and others "
    "write begin_of_thought",
    wrappers=("<|begin_of_solution|>", "<|end_of_solution|>"),
    ignore_case=True,
    attributes=True,
    stops=STOPS,
    other_turns=TURNS,
    calls=with_siblings(HERMES),
    assistant=ASSISTANT,
)
FAMILY = Family(
    name="think tags",
    formats=(THINK_TAG,),
    models=(
        Model(r"openthinker|sky-t1", "think_tag", True, who="a model that writes begin_of_thought", line="OpenThinker"),
        Model(r"marco-o1", "think_tag", True, who="Marco-o1", line="Marco"),
        Model(
            r"exaone-?deep|(?<!k-)exaone-?{}",
            "think_tag",
            True,
            "4 4.0",
            "EXAONE Deep or 4",
            line="EXAONE",
            switch=Switch(),
        ),
        Model(r"(?<!kimi-)\bk2-think\b", "think_tag", True, line="K2 Think"),
    ),
    plain={
        **{f"{head}{name}>": "a word of configuration files" for name in WEAK_TAGS for head in ("<", "</")},
        **{f"{head}{name}>": "a field of answers, a judge's above all" for name in FIELD_TAGS for head in ("<", "</")},
    },
    tags={
        **{f"{head}{name}>": TagRule() for name in THINKING_TAGS for head in ("<", "</")},
        # Types and lists have these names in code, in lower case too: `vec<thought>`.
        **{f"<{name}>": TagRule(glued=False) for name in ("thought", "reasoning")},
        **{f"{head}{name}>": TagRule(weak=True) for name in WEAK_TAGS for head in ("<", "</")},
    },
    rank=8,
    generic=True,
)
