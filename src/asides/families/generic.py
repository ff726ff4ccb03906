"""Formats of no family: tags that many models are asked for, and no markers at all."""

from __future__ import annotations

from .._engine.format import END, TEXT, Format
from .chatml import ASSISTANT, STOPS
from .other_syntaxes import HERMES, JSON_BARE
from .tool_call_tag import with_siblings

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
    plain={
        **{f"{head}{name}>": "a word of configuration files" for name in WEAK_TAGS for head in ("<", "</")},
        **{f"{head}{name}>": "a field of answers, a judge's above all" for name in FIELD_TAGS for head in ("<", "</")},
    },
    ignore_case=True,
    attributes=True,
    stops=STOPS,
    calls=with_siblings(HERMES),
    assistant=ASSISTANT,
)
JSON = Format.tags(
    "<think>",
    "</think>",
    name="json",
    source="calls as bare JSON with no marker, as SMG's parser of this name reads them",
    stops=STOPS,
    calls=(JSON_BARE,),
    assistant=ASSISTANT,
)
PASSTHROUGH = Format(
    name="passthrough",
    aliases=("identity", "none"),
    source="no markers at all: everything is text, as in Ollama and SMG",
    states={TEXT: {}},
)
ROLE_COLON = Format(
    name="role_colon",
    source="tinker's renderer of this name: turns named by a word and a colon, no thinking, no calls",
    states={TEXT: {"\n\nUser:": END}},
    assistant=("Assistant:",),
    plain=dict.fromkeys(("\n\nUser:", "Assistant:"), "words of any transcript"),
)
FORMATS = (THINK_TAG, JSON, PASSTHROUGH, ROLE_COLON)
