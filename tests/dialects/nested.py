"""Requests with every nested object that a dialect understands, and nothing that another one must refuse.

`objects` names every object of such a request by its path, so that a test can put something unknown into each.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]
PIXEL = "iVBORw0KGgo="
_SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}}
_FUNCTION = {"name": "find", "description": "Finds it.", "parameters": _SCHEMA, "strict": False}
_TOOL = {"type": "function", "function": _FUNCTION}
_FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}}
NESTED: dict[str, list[dict[str, Any]]] = {
    "openai_chat": [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Hi"},
                        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": "Look.",
                    "reasoning_content": "Hm.",
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}},
                        {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "y"}},
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "name": "find", "content": [{"type": "text", "text": "4"}]},
                {"role": "tool", "tool_call_id": "c2", "content": "5"},
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "So."}],
                    "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}],
                },
                {
                    "role": "assistant",
                    "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}],
                },
                {"role": "assistant", "content": "", "thinking_blocks": [{"type": "thinking", "thinking": "Hm."}]},
                {"role": "user", "content": "And?"},
            ],
            "tools": [
                _TOOL,
                {
                    "type": "custom",
                    "custom": {
                        "name": "patch",
                        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}},
                    },
                },
            ],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [
                        {"type": "function", "function": {"name": "find"}},
                        {"type": "custom", "custom": {"name": "patch"}},
                    ],
                },
            },
            "stream": True,
            "stream_options": {"include_usage": True},
            "response_format": _FORMAT,
            "reasoning": {"effort": "low"},
            "thinking": {"type": "enabled"},
            "chat_template_kwargs": {"enable_thinking": True},
        },
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [_TOOL],
            "tool_choice": {"type": "function", "function": {"name": "find"}},
        },
        {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"type": "custom", "custom": {"name": "patch"}}],
            "tool_choice": {"type": "custom", "custom": {"name": "patch"}},
        },
    ],
    "openai_responses": [
        {
            "model": "m",
            "instructions": "Be brief.",
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Really."}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "Hi"},
                        {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                    ],
                },
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": "Hm."}],
                    "content": [{"type": "reasoning_text", "text": "Hm."}],
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "id": "msg_1",
                    "content": [{"type": "output_text", "text": "Look."}, {"type": "refusal", "refusal": "No."}],
                },
                {"type": "function_call", "name": "find", "arguments": "{}", "call_id": "c1"},
                {"type": "function_call", "name": "spawn", "namespace": "agents", "arguments": "{}", "call_id": "c2"},
                {"type": "custom_tool_call", "name": "patch", "input": "x", "call_id": "c3"},
                {"type": "tool_search_call", "execution": "client", "call_id": "c4", "arguments": {"query": "q"}},
                {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "4"}]},
                {"type": "function_call_output", "call_id": "c2", "output": "5"},
                {"type": "custom_tool_call_output", "call_id": "c3", "output": "y"},
                {
                    "type": "tool_search_output",
                    "execution": "client",
                    "call_id": "c4",
                    "tools": [{"type": "function", "name": "found"}],
                },
                {"type": "additional_tools", "tools": [{"type": "function", "name": "more"}]},
                {"role": "user", "content": "And?"},
            ],
            "tools": [
                {"type": "function", **_FUNCTION},
                {"type": "tool_search", "execution": "client", "parameters": _SCHEMA},
                {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
                {
                    "type": "namespace",
                    "name": "agents",
                    "description": "About agents.",
                    "tools": [{"type": "function", "name": "spawn"}, {"type": "custom", "name": "edit"}],
                },
            ],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [
                    {"type": "function", "name": "find"},
                    {"type": "custom", "name": "patch"},
                    {"type": "namespace", "name": "agents"},
                    {"type": "tool_search"},
                    {"type": "function", "name": "found"},
                    {"type": "function", "name": "more"},
                ],
            },
            "text": {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}},
            "reasoning": {"effort": "low", "summary": "auto"},
            "chat_template_kwargs": {"enable_thinking": True},
            "stream": True,
            "stream_options": {"include_obfuscation": False},
        },
        {
            "model": "m",
            "input": "Hi",
            "tools": [{"type": "function", **_FUNCTION}],
            "tool_choice": {"type": "function", "name": "find"},
        },
        {
            "model": "m",
            "input": "Hi",
            "tools": [{"type": "custom", "name": "patch"}],
            "tool_choice": {"type": "custom", "name": "patch"},
        },
    ],
    "anthropic": [
        {
            "model": "m",
            "max_tokens": 5000,
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Hi"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                        {"type": "text", "text": "Look."},
                        {"type": "tool_use", "id": "t", "name": "find", "input": {"query": "x"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "4"}]},
                        {"type": "text", "text": "And?"},
                    ],
                },
            ],
            "tools": [{"name": "find", "description": "Finds it.", "input_schema": _SCHEMA}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "thinking": {
                "type": "enabled",
                "budget_tokens": 1024,
                "block_binding": {"prefix_mismatch_behavior": "drop_block"},
            },
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
            "metadata": {"user_id": "u"},
            "context_management": {
                "edits": [{"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}]
            },
        },
        {
            "model": "m",
            "max_tokens": 5,
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"name": "find", "input_schema": _SCHEMA}],
            "tool_choice": {"type": "tool", "name": "find"},
            "output_format": {"type": "json_schema", "schema": {"type": "object"}},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": {"type": "all"}}]},
        },
    ],
    "ollama": [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi", "images": [PIXEL]},
                {
                    "role": "assistant",
                    "content": "Look.",
                    "thinking": "Hm.",
                    "tool_calls": [{"id": "c", "function": {"name": "find", "arguments": {"query": "x"}}}],
                },
                {"role": "tool", "content": "4", "tool_name": "find"},
            ],
            "tools": [_TOOL],
            "format": {"type": "object"},
            "options": {"num_predict": 5, "stop": ["x"], "temperature": 1},
        },
        {"model": "m", "prompt": "Hi", "system": "Be brief.", "images": [PIXEL], "options": {"seed": 1}},
    ],
    "completions": [
        {
            "model": "m",
            "prompt": "Hi",
            "stream": True,
            "stream_options": {"include_usage": True},
            "reasoning": {"effort": "low"},
            "chat_template_kwargs": {},
        }
    ],
}
"""By dialect."""
WHOLE = frozenset({"cache_control", "chat_template_kwargs", "metadata"})
"""Objects that other dialects leave out as a whole: the log names them, and not what is in them."""
ANEW: dict[str, tuple[Path, ...]] = {
    "openai_chat": (
        ("messages", 6, "content", 0),
        ("messages", 6, "content", 0, "thinking", 0),
        ("messages", 7, "thinking_blocks", 0),
    ),
    "openai_responses": (("input", 12),),
}
"""Objects that are written anew in their own dialect too, so that what is not understood of them is logged: thinking,
which goes where the upstream looks for it, and tools in the input, which become tools like others."""


def objects(body: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every object in a body."""
    if isinstance(body, dict):
        yield path
    for name, value in body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ():
        yield from objects(value, (*path, name))


def with_field(body: dict[str, Any], path: Path, name: str, value: Any) -> dict[str, Any]:
    """The body with a field more, in the object at this path."""
    changed = copy.deepcopy(body)
    at: Any = changed
    for step in path:
        at = at[step]
    at[name] = value
    return changed
