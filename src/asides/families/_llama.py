"""Llama 3 and 4, which do not think by themselves; tunes of them do, in `<think>`."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.calls.python_calls import PythonCalls
from .._engine.format import Format
from ._family import Family, MarkerIds, Model, RendererEntry
from ._shared import FUNCTION_JSON

LLAMA3_JSON = JsonCalls(open=("<|python_tag|>",), bare=True)
"""`{"name": "f", "parameters": {}}`, several separated by `;`, with or without `<|python_tag|>`."""
BUILT_IN_CALLS = PythonCalls(open=("<|python_tag|>",), lines=True, method="call", never_shown=True)
"""`<|python_tag|>brave_search.call(query="v")`: the tools that Llama 3.1 was trained with. Code for its interpreter
stands there too and names no tool: that is text."""
PYTHONIC_CALLS = PythonCalls(open=("<|python_start|>",), close=("<|python_end|>",), bare=True)
"""`[f(a="v"), g(b=1)]` as the whole output, with markers around it or without."""

LLAMA3 = Format.tags(
    "<think>",
    "</think>",
    name="llama3_json",
    aliases=("llama", "llama3", "llama4_json"),
    source="chat templates of Llama 3.1 to 3.3; calls as vLLM reads them: JSON, with or without the token before it",
    stops=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|eot|>", "<|eom|>"),
    other_turns=("<|start_header_id|>", "<|header_start|>"),
    calls=(LLAMA3_JSON, BUILT_IN_CALLS, FUNCTION_JSON),
    assistant=("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|header_start|>assistant<|header_end|>\n\n"),
)
PYTHONIC = LLAMA3.but(
    name="pythonic",
    source="Llama 3.2 and ToolACE as vLLM reads them: a Python list of calls, at times with Llama 4's tokens around it",
    calls=(PYTHONIC_CALLS,),
)
LLAMA4 = LLAMA3.but(
    name="llama4_pythonic",
    source="Llama 4 as vLLM reads it: a Python list of calls, with or without tokens around it",
    calls=(PYTHONIC_CALLS,),
)
TEMPLATE = r"""{{- '<|begin_of_text|>' }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' }}
    {%- generation %}{{ message.text + '<|eot_id|>' }}{% endgeneration %}
{%- endfor %}
{%- if opens %}{{ '<|start_header_id|>' + opens + '<|end_header_id|>\n\n' }}{% endif %}
"""
"""How the renderer of Llama 3 writes, as tinker-cookbook does."""

FAMILY = Family(
    name="Llama",
    formats=(LLAMA3, PYTHONIC, LLAMA4),
    models=(
        Model(r"toolace", "pythonic", False, line="ToolACE"),
        Model(r"llama-?{}", "llama4_pythonic", False, "4"),
        Model(r"llama-?{}", "llama3_json", False, "2 3 3.1 3.2 3.3"),
    ),
    base=True,
    plain_calls=(FUNCTION_JSON,),
    rank=6,
    renderers={"llama3": RendererEntry("Llama3", TEMPLATE)},
    marker_ids={
        "Llama-3.2": MarkerIds(
            ("llama3_json",),
            {
                "<|end_of_text|>": 128001,
                "<|start_header_id|>": 128006,
                "<|end_header_id|>": 128007,
                "<|eom_id|>": 128008,
                "<|eot_id|>": 128009,
                "<|python_tag|>": 128010,
            },
        ),
    },
)
