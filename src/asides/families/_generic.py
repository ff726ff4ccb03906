"""Formats that no family has: bare JSON, turns named by words, no markers at all; and models without a known format."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.format import END, TEXT, Format
from ._family import Family, Model, RendererEntry, Switch
from ._shared import ASSISTANT, STOPS, TURNS

JSON_BARE = JsonCalls(bare=True, fenced=True)
"""JSON and nothing else, perhaps in a code block."""

JSON = Format.tags(
    "<think>",
    "</think>",
    name="json",
    source="calls as bare JSON with no marker, as SMG's parser of this name reads them",
    stops=STOPS,
    other_turns=TURNS,
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
    other_turns=("\n\nUser:",),
    assistant=("Assistant:",),
)
ROLE_COLON_TEMPLATE = r"""{{- bos_token }}
{%- for message in messages %}
    {{- message.role | capitalize + ':' }}
    {%- generation %}{{ ' ' + message.text + '\n\n' }}{% endgeneration %}
{%- endfor %}
{%- if is_example and messages and messages[-1].role == 'assistant' %}
    {%- generation %}{{ 'User:' }}{% endgeneration %}
{%- endif %}
{%- if opens %}{{ opens | capitalize + ':' }}{% endif %}
"""
"""How the renderer `role_colon` writes."""

FAMILY = Family(
    name="generic",
    formats=(JSON, PASSTHROUGH, ROLE_COLON),
    models=(
        # Of these no format is known, or none for certain.
        Model(r"falcon-?h1r", "auto", True, "", "Falcon H1R", "thinking", "Falcon"),
        Model(r"intellect-?{}", "auto", True, "3 3.1", line="INTELLECT"),
        Model(r"hyperclova-?x.*think", "auto", True, line="HyperCLOVA X", switch=Switch(keyword="thinking")),
        Model(r"\ba\.?x-k{}", "auto", None, "1 2", line="A.X"),
    ),
    plain=dict.fromkeys(("\n\nUser:", "Assistant:"), "words of any transcript"),
    generic=True,
    detectable=False,
    renderers={"role_colon": RendererEntry("RoleColon", ROLE_COLON_TEMPLATE)},
)
