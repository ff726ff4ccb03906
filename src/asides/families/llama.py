"""Llama 3 and 4, which do not think by themselves; tunes of them do, in `<think>`."""

from __future__ import annotations

from .._engine.format import Format
from .other_syntaxes import LLAMA3_JSON, PYTHONIC

LLAMA3 = Format.tags(
    "<think>",
    "</think>",
    name="llama3_json",
    aliases=("llama3", "llama4_json"),
    source="chat templates of Llama 3.1 to 3.3; calls as vLLM reads them: JSON, with or without the token before it",
    stops=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|eot|>", "<|eom|>"),
    calls=(LLAMA3_JSON,),
    assistant=("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|header_start|>assistant<|header_end|>\n\n"),
)
PYTHONIC_FORMAT = LLAMA3.but(
    name="pythonic",
    source="Llama 3.2 and ToolACE as vLLM reads them: a Python list of calls, at times with Llama 4's tokens around it",
    calls=(PYTHONIC,),
)
LLAMA4 = LLAMA3.but(
    name="llama4_pythonic",
    source="Llama 4 as vLLM reads it: a Python list of calls, with or without tokens around it",
    calls=(PYTHONIC,),
)
FORMATS = (LLAMA3, PYTHONIC_FORMAT, LLAMA4)
