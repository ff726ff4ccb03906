"""Call syntaxes as data: JSON, names in headers, Python and braces. How they are read is the engine's."""

from __future__ import annotations

from .._engine.calls.brace_calls import BraceCalls
from .._engine.calls.json_calls import JsonCalls
from .._engine.calls.named_calls import BodyCalls, NamedCalls
from .._engine.calls.python_calls import PythonCalls

# JSON.

HERMES = JsonCalls(open=("<tool_call>",), close=("</tool_call>",))
"""`<tool_call>{"name": "f", "arguments": {}}</tool_call>`: Hermes, Qwen, ERNIE 4.5, Granite 4 and many more."""
LONGCAT = JsonCalls(open=("<longcat_tool_call>",), close=("</longcat_tool_call>",))
"""LongCat-Flash."""
DOTS_JSON = JsonCalls(open=("<dots_function_call>",), close=("</dots_function_call>",))
"""dots, where it writes JSON."""
TOOL_CALLS_LIST = JsonCalls(open=("<tool_calls>",), close=("</tool_calls>",))
"""`<tool_calls>[{"name": "f", "arguments": {}}]</tool_calls>`: Jamba, Hunyuan A13B."""
APERTUS = JsonCalls(open=("<|tools_prefix|>",), close=("<|tools_suffix|>",), keyed=True)
"""`<|tools_prefix|>[{"f": {}}]<|tools_suffix|>`: Apertus."""
COHERE = JsonCalls(
    open=("<|START_ACTION|>",),
    close=("<|END_ACTION|>",),
    names=("tool_name", "name"),
    ids=("tool_call_id",),
)
"""`<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {}}]<|END_ACTION|>`: Command."""
GRANITE = JsonCalls(open=("<|tool_call|>", "<tool_call>"))
"""`<|tool_call|>[{"name": "f", "arguments": {}}]`, with no closing marker: Granite 3."""
GRANITE_20B = JsonCalls(open=("<function_call>",))
"""`<function_call> {"name": "f", "arguments": {}}`, with no closing marker: Granite 20B."""
INTERNLM = JsonCalls(open=("<|action_start|>",), close=("<|action_end|>",), lead="<|plugin|>")
"""`<|action_start|><|plugin|>{"name": "f", "parameters": {}}<|action_end|>`: InternLM, Intern-S1."""
LLAMA3_JSON = JsonCalls(open=("<|python_tag|>",), bare=True)
"""`{"name": "f", "parameters": {}}`, several separated by `;`, with or without `<|python_tag|>`: Llama 3 and 4."""
PHI4 = JsonCalls(open=("functools[",))
"""`functools[{"name": "f", "arguments": {}}]`: Phi-4-mini."""
GIGACHAT = JsonCalls(open=("function call<|role_sep|>", "<|function_call|>"))
"""`function call<|role_sep|>{"name": "f", "arguments": {}}`: GigaChat 3."""
INKLING = JsonCalls(open=("<|content_invoke_tool_json|>",), close=("<|end_message|>",), arguments=("args", "arguments"))
"""`<|content_invoke_tool_json|>{"name": "f", "args": {}}<|end_message|>`: Inkling."""
NEMOTRON = JsonCalls(open=("<TOOLCALL>",), close=("</TOOLCALL>",))
"""`<TOOLCALL>[{"name": "f", "arguments": {}}]</TOOLCALL>`: Nemotron."""
MISTRAL_CLOSE = "[/TOOL_CALLS]"
"""Written behind Mistral's calls by some templates and models; none of its own asks for it."""
MISTRAL_LIST = JsonCalls(open=("[TOOL_CALLS]",), section_close=(MISTRAL_CLOSE,), id_shape="mistral")
"""`[TOOL_CALLS] [{"name": "f", "arguments": {}, "id": "..."}]`: Mistral before its eleventh tokenizer."""
JSON_BARE = JsonCalls(bare=True, fenced=True)
"""JSON and nothing else, perhaps in a code block."""
XLAM = (
    JsonCalls(bare=True, fenced=True, fenced_behind_prose=True),
    JsonCalls(open=("[TOOL_CALLS]",)),
    HERMES,
)
"""xLAM: a bare list, perhaps in a code block, or behind a marker of others."""

# Names in headers.

KIMI_K2 = NamedCalls(
    section=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
    section_close=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    open=("<|tool_call_begin|>",),
    close=("<|tool_call_end|>",),
    separators=("<|tool_call_argument_begin|>",),
    numbered=True,
    id_shape="kimi",
)
"""`<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>` in a section: Kimi K2."""
DEEPSEEK_V3 = NamedCalls(
    section=("<｜tool▁calls▁begin｜>",),
    section_close=("<｜tool▁calls▁end｜>",),
    open=("<｜tool▁call▁begin｜>",),
    close=("<｜tool▁call▁end｜>",),
    before_name="function<｜tool▁sep｜>",
    direct=True,
    fenced=True,
)
"""The name on a line, the arguments in a code block: DeepSeek V3 and R1."""
DEEPSEEK_V31 = NamedCalls(
    section=("<｜tool▁calls▁begin｜>",),
    section_close=("<｜tool▁calls▁end｜>",),
    open=("<｜tool▁call▁begin｜>",),
    close=("<｜tool▁call▁end｜>",),
    separators=("<｜tool▁sep｜>",),
    fenced=True,
)
"""`<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>` in a section: DeepSeek V3.1."""
MISTRAL_NAMED = NamedCalls(
    open=("[TOOL_CALLS]",),
    section_close=(MISTRAL_CLOSE,),
    separators=("[ARGS]",),
    direct=True,
    call_id="[CALL_ID]",
    id_shape="mistral",
)
"""`[TOOL_CALLS]f[ARGS]{}` or `[TOOL_CALLS]f{}`: Mistral from its eleventh tokenizer on."""
NAME_AND_JSON = NamedCalls(open=("<tool_call>",), close=("</tool_call>",), direct=True)
"""`<tool_call>f` and the arguments on the next line: Laguna, where it does not write keys and values."""
HARMONY_BODY = BodyCalls(prefix="functions.", close=("<|call|>", "<|end|>", "<|return|>", "<|start|>", "<|channel|>"))
"""The body of a harmony message to a tool."""

# Python.

PYTHONIC = PythonCalls(open=("<|python_start|>",), close=("<|python_end|>",), bare=True)
"""`[f(a="v"), g(b=1)]` as the whole output, with markers around it or without: Llama 3.2 and 4, ToolACE."""
LFM2 = (
    PythonCalls(open=("<|tool_call_start|>",), close=("<|tool_call_end|>",), lines=True),
    JsonCalls(open=("<|tool_call_start|>",), close=("<|tool_call_end|>",)),
)
"""`<|tool_call_start|>[f(a="v")]<|tool_call_end|>`, or a JSON list there: LFM2."""
OLMO3 = PythonCalls(open=("<function_calls>",), close=("</function_calls>",), lines=True)
"""`<function_calls>` and one call a line: Olmo 3."""

# Braces.

GEMMA4 = BraceCalls(open=("<|tool_call>",), close=("<tool_call|>",), quote='<|"|>')
"""`<|tool_call>call:f{a:<|"|>v<|"|>,n:42}<tool_call|>`: Gemma 4."""
FUNCTIONGEMMA = BraceCalls(open=("<start_function_call>",), close=("<end_function_call>",), quote="<escape>")
"""`<start_function_call>call:f{a:<escape>v<escape>}<end_function_call>`: FunctionGemma."""
