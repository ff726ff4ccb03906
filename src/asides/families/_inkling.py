"""Inkling: typed blocks, any number in any order."""

from __future__ import annotations

from .._engine.calls.json_calls import JsonCalls
from .._engine.calls.named_calls import BodyCalls
from .._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Format, Header, State
from ._family import Family, Model

INKLING_CALLS = JsonCalls(
    open=("<|content_invoke_tool_json|>",),
    close=("<|end_message|>",),
    arguments=("args", "arguments"),
)
"""`<|content_invoke_tool_json|>{"name": "f", "args": {}}<|end_message|>`."""
INKLING_BODY = BodyCalls(
    close=("<|end_message|>", "<|message_model|>", "<|content_model_end_sampling|>", "<|endoftext|>"),
)
"""`<|message_model|>f<|content_invoke_tool_text|>` and free words: a message to a tool that reads no JSON."""

_KINDS: dict[str, State] = {
    "<|content_thinking|>": THINKING,
    "<|content_text|>": TEXT,
    "<|content_invoke_tool_text|>": TEXT,
    "<|content_tool_error|>": TEXT,
    "<|content_xml|>": TEXT,
}
"""What a block holds. Peers show a tool's error as text, and so do we."""
_MARKERS: dict[str, State] = {
    "<|message_model|>": HEADER,
    **dict.fromkeys(_KINDS, HEADER),
    "<|end_message|>": OUTSIDE,
    **dict.fromkeys(
        (
            "<|content_model_end_sampling|>",
            "<|message_user|>",
            "<|message_system|>",
            "<|message_tool|>",
            "<|endoftext|>",
        ),
        END,
    ),
}

INKLING = Format(
    name="inkling",
    aliases=("tml_v0",),
    source="Inkling as vLLM and SGLang read it: the generation prompt ends inside the header; each block's own "
    "marker says what it holds",
    start=HEADER,
    states={
        TEXT: _MARKERS,
        THINKING: _MARKERS,
        HEADER: _KINDS,
    },
    header=Header(roles=(), tools={"<|content_invoke_tool_text|>": INKLING_BODY}),
    calls=(INKLING_CALLS,),
    strays=("<|content_image|>", "<|content_audio_input|>", "<|audio_end|>"),
    other_turns=("<|message_user|>", "<|message_system|>", "<|message_tool|>"),
    assistant=("<|message_model|>",),
)
FAMILY = Family(
    name="Inkling",
    formats=(INKLING,),
    models=(Model(r"inkling", "inkling", True),),
    decisive=INKLING,
)
