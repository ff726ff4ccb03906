"""Replies, errors and requests of every dialect, with anything whatever put in the place of any of their nodes.

Shared by the tests and by the fuzz targets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from asides.dialects import anthropic, ollama, openai_chat, openai_responses
from asides.dialects import openai_completions as completions
from asides.dialects._framing import to_json
from asides.dialects._request import Request, RequestError
from asides.families import get_format
from asides.reply._items import Chunk, Failed, ReplyItem
from asides.reply._splitter import Splitter
from tests.dialects.shapes import BY_NAME, items, make_parser

Path = tuple[str | int, ...]

DIALECTS: dict[str, Any] = {
    module.NAME: module for module in (openai_chat, openai_responses, anthropic, ollama, completions)
}
ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    5,
    10**30,
    1.5,
    float("nan"),
    1e308,
    "",
    "text",
    "\ud800",
    "error",
    [],
    [5],
    [None, "\udc00"],
    [[]],
    {},
    {"type": 5},
    {"\ud800": "\udfff"},
    {"message": {"message": []}, "type": ["text"], "text": {}, "index": "0", "code": ["\ud800"]},
    [{"type": "text", "text": 5, "name": [], "function": {}, "token": "a", "bytes": [300, "x"]}],
)
"""What stands where something else should."""

_CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}
_TOKENS = [
    {"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": [{"token": "Hi", "logprob": -0.5}]},
    {"token": " \u00fc", "logprob": -1.5, "bytes": None, "top_logprobs": []},
]
_DETAILS = [
    {"type": "reasoning.text", "text": "Hm.", "signature": "s", "index": 0},
    {"type": "reasoning.encrypted", "data": "abc", "index": 1},
]
_CHAT_USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 5,
    "completion_tokens_details": {"reasoning_tokens": 2, "estimated": False},
    "prompt_tokens_details": {"cached_tokens": 1},
}
_CHAT_ERROR = {"error": {"message": "no", "type": "t", "param": "p", "code": 503}}


def _chat(*deltas: dict[str, Any], **more: Any) -> list[Any]:
    head = {"id": "1", "object": "chat.completion.chunk", "created": 17, "model": "m", "system_fingerprint": "f"}
    frames: list[Any] = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    frames.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": "x", **more}]})
    return [*frames, {**head, "choices": [], "usage": _CHAT_USAGE, "timings": {"a": 1}}]


STREAMS: dict[str, list[list[Any]]] = {
    "openai_chat": [
        _chat(
            {"role": "assistant", "content": "", "reasoning_content": "Hm."},
            {"content": "<think>Hm.</think>Hi ü", "annotations": [{"a": 1}]},
            {"tool_calls": [_CALL]},
            {"tool_calls": [{"index": 0, "function": {"arguments": " "}}, {"index": 1, "custom": {"name": "x"}}]},
        ),
        _chat({"reasoning": "Hm.", "reasoning_details": _DETAILS}, {"content": "Hi"}, {"refusal": "No."}),
        _chat({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"text": "Hi"}]}),
        [
            {"choices": [{"index": 1, "delta": {"content": "Hi ü"}, "logprobs": {"content": _TOKENS}}]},
            {"choices": [{"index": 0, "message": {"function_call": {"name": "f", "arguments": {"a": 1}}}}]},
            {"choices": [{"index": 1, "delta": {"thinking": "Hm."}, "logprobs": {"content": _TOKENS}}]},
            {"choices": [{"index": 0, "delta": {"content": "Hi"}}], **_CHAT_ERROR},
        ],
        [{"detail": "no", **_CHAT_ERROR}],
        [{"object": "error", "message": "no", "code": "x"}],
    ],
    "openai_responses": [
        [
            {
                "type": "error",
                "code": "rate_limit_exceeded",
                "message": "no",
                "param": None,
                "error": {"message": "no"},
            },
        ],
        [
            {"type": "response.created", "response": {"id": "r", "model": "m", "created_at": 5, "metadata": {}}},
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {"type": "web_search_call", "id": "w", "action": {}},
            },
            {"type": "response.refusal.delta", "output_index": 1, "item_id": "m", "delta": "No."},
            {
                "type": "response.output_item.done",
                "output_index": 2,
                "item": {
                    "type": "message",
                    "id": "m2",
                    "content": [
                        {"type": "output_text", "text": "Hi", "logprobs": _TOKENS, "annotations": [{"type": "a"}]},
                        {"type": "refusal", "refusal": "No."},
                    ],
                },
            },
            {"type": "response.output_text.delta", "output_index": 4, "delta": "Hi ü", "logprobs": _TOKENS},
            {
                "type": "response.output_item.done",
                "item": {
                    "type": "reasoning",
                    "id": "rs",
                    "summary": [{"type": "summary_text", "text": "Hm."}],
                    "content": [{"type": "reasoning_text", "text": "Hm."}],
                    "encrypted_content": "asides1:SG0u",
                },
            },
            {
                "type": "response.incomplete",
                "response": {
                    "status": "incomplete",
                    "incomplete_details": {"reason": "max_output_tokens"},
                    "usage": {
                        "input_tokens": 1,
                        "output_tokens": 2,
                        "input_tokens_details": {"cached_tokens": 1},
                        "output_tokens_details": {"reasoning_tokens": 1, "estimated": True},
                    },
                },
            },
        ],
        [
            {
                "type": "response.failed",
                "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "no"}},
            }
        ],
    ],
    "anthropic": [
        [
            {
                "type": "message_start",
                "message": {"id": "m", "model": "c", "usage": {"input_tokens": 1, "cache_read_input_tokens": 2}},
            },
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "content_block_start",
                "index": 1,
                "content_block": {"type": "server_tool_use", "id": "t", "name": "w", "input": {}},
            },
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
            {"type": "content_block_stop", "index": 1},
            {
                "type": "content_block_start",
                "index": 2,
                "content_block": {"type": "tool_use", "id": "t", "name": "w", "input": {"a": 1}},
            },
            {"type": "content_block_stop", "index": 2},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "stop_sequence", "stop_sequence": "x", "stop_details": {}, "container": {}},
                "usage": {"output_tokens": 2, "output_tokens_details": {"thinking_tokens": 1, "estimated": True}},
            },
            {"type": "message_stop"},
        ],
        [{"type": "error", "error": {"type": "overloaded_error", "message": "no"}, "message": "no"}],
    ],
    "ollama": [
        [
            {
                "model": "m",
                "created_at": "2026-01-01T00:00:00Z",
                "message": {"role": "assistant", "content": "Hi", "thinking": "Hm."},
                "logprobs": _TOKENS,
                "done": False,
            },
            {"message": {"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]}},
            {
                "done": True,
                "done_reason": "length",
                "context": [1, 2],
                "prompt_eval_count": 1,
                "eval_count": 2,
                "total_duration": 5,
                "load_duration": 5,
            },
        ],
        [{"response": "Hi", "thinking": "Hm."}, {"response": "", "done": True, "done_reason": "unload"}],
        [{"error": {"message": "no", "code": 5}}],
    ],
    "completions": [
        [
            {
                "id": "1",
                "choices": [
                    {
                        "index": 0,
                        "text": "Hi ü",
                        "reasoning_content": "Hm.",
                        "logprobs": {
                            "tokens": ["Hi", " ü"],
                            "token_logprobs": [-1.0, None],
                            "top_logprobs": [{"Hi": -1.0}, None],
                            "text_offset": [0, 2],
                        },
                    }
                ],
            },
            {"id": "1", "choices": [{"index": 0, "text": "", "finish_reason": "length"}], "usage": _CHAT_USAGE},
        ],
        [_CHAT_ERROR],
    ],
}
"""Streams, frame by frame, made to have every field that is read; those of every shape are added below."""
WHOLE: dict[str, list[Any]] = {
    "openai_chat": [
        {
            "id": "1",
            "created": 5,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "content": "Hi ü",
                        "reasoning_content": "Hm.",
                        "reasoning_details": _DETAILS,
                        "tool_calls": [_CALL],
                        "refusal": "No.",
                    },
                    "logprobs": {"content": _TOKENS},
                    "finish_reason": "stop",
                },
                {"index": 1, "message": {"content": [{"type": "text", "text": "Hi"}]}},
            ],
            "usage": _CHAT_USAGE,
        },
        _CHAT_ERROR,
        {"detail": [{"loc": ["body"], "msg": "no"}]},
    ],
    "openai_responses": [
        {
            "id": "r",
            "status": "completed",
            "output": [frame["item"] for stream in STREAMS["openai_responses"] for frame in stream if "item" in frame],
            "usage": {"input_tokens": 1, "output_tokens_details": {"reasoning_tokens": 1}},
        },
        {"status": "failed", "output": [], "error": {"code": "server_error", "message": "no"}},
        _CHAT_ERROR,
    ],
    "anthropic": [
        {
            "id": "m",
            "type": "message",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "Hi", "citations": []},
                {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
            ],
            "stop_reason": "pause_turn",
            "usage": {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 3},
        },
        {"type": "error", "error": {"type": "api_error", "message": "no"}},
    ],
    "ollama": [{**STREAMS["ollama"][0][0], **STREAMS["ollama"][0][2]}, *STREAMS["ollama"][1], {"error": "no"}],
    "completions": [{**STREAMS["completions"][0][0], "usage": _CHAT_USAGE}, _CHAT_ERROR],
}
"""Whole replies and errors."""
_FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}, "strict": True}
_TOOL = {"type": "function", "function": _FUNCTION}
REQUESTS: dict[str, list[Any]] = {
    "openai_chat": [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "s", "name": "n"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Hi", "cache_control": {}},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
                        {"type": "input_audio", "input_audio": {}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": "<think>Hm.</think>Hi",
                    "reasoning_content": "Hm.",
                    "reasoning_details": _DETAILS,
                    "tool_calls": [_CALL, {"type": "custom", "custom": {"name": "x", "input": "y"}}],
                },
                {
                    "role": "assistant",
                    "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}],
                    "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}],
                },
                {"role": "tool", "tool_call_id": "call_1", "name": "f", "content": "4"},
            ],
            "tools": [_TOOL, {"type": "custom", "custom": {"name": "x"}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "parallel_tool_calls": True,
            "stream": True,
            "stream_options": {"include_usage": True, "x": 1},
            "n": 2,
            "max_completion_tokens": 5,
            "max_tokens": 5,
            "stop": ["x"],
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
            "logprobs": True,
            "top_logprobs": 2,
            "chat_template_kwargs": {"enable_thinking": True, "reasoning_effort": "low"},
            "temperature": 1,
            "reasoning": {"effort": "low", "max_tokens": 5, "exclude": False},
            "thinking": {"type": "enabled", "budget_tokens": 5},
            "think": True,
            "modalities": ["text"],
            "user": "u",
            "metadata": {},
            "verbosity": "low",
        }
    ],
    "openai_responses": [
        {
            "model": "m",
            "instructions": "s",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "Hi"}, {"type": "input_file"}]},
                {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]},
                {
                    "type": "reasoning",
                    "id": "r",
                    "summary": [{"type": "summary_text", "text": "Hm."}],
                    "content": [{"type": "reasoning_text", "text": "Hm."}],
                    "encrypted_content": "x",
                },
                {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]},
                {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c", "id": "i"},
                {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "4"}]},
                {"type": "web_search_call", "id": "w"},
                {"type": "function_call", "name": "g", "namespace": "n", "arguments": "{}", "call_id": "d"},
                {"type": "custom_tool_call", "name": "p", "namespace": "n", "input": "x", "call_id": "e"},
                {"type": "custom_tool_call_output", "call_id": "e", "output": "y"},
                {"type": "tool_search_call", "execution": "client", "call_id": "s", "arguments": {"query": "q"}},
                {
                    "type": "tool_search_output",
                    "execution": "client",
                    "call_id": "s",
                    "tools": [{"type": "namespace", "name": "o", "tools": [{"type": "function", "name": "h"}]}],
                },
                {"type": "additional_tools", "tools": [{"type": "custom", "name": "q"}]},
            ],
            "tools": [
                {"type": "function", **_FUNCTION},
                _TOOL,
                {"type": "web_search"},
                {"type": "tool_search", "execution": "client", "description": "d", "parameters": {}},
                {"type": "custom", "name": "p", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
                {
                    "type": "namespace",
                    "name": "n",
                    "description": "d",
                    "tools": [{"type": "function", "name": "g"}, {"type": "custom", "name": "p"}],
                },
            ],
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [
                    {"type": "function", "name": "f"},
                    {"type": "namespace", "name": "n"},
                    {"type": "web_search"},
                ],
            },
            "include": ["reasoning.encrypted_content"],
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}, "verbosity": "low"},
            "reasoning": {"effort": "low", "summary": "auto", "context": "current_turn", "mode": "standard"},
            "thinking": {"type": "enabled"},
            "chat_template_kwargs": {"enable_thinking": True},
            "stream": True,
            "max_output_tokens": 5,
            "top_logprobs": 2,
            "previous_response_id": "x",
            "metadata": {},
            "stop": ["x"],
        }
    ],
    "anthropic": [
        {
            "model": "m",
            "max_tokens": 5,
            "system": [{"type": "text", "text": "s", "cache_control": {}}],
            "messages": [
                {"role": "user", "content": "Hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                        {"type": "redacted_thinking", "data": "x"},
                        {"type": "text", "text": "<think>a</think>Hi"},
                        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "4"}]},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
                        {"type": "image", "source": {"type": "url", "url": "http://x"}},
                    ],
                },
            ],
            "tools": [{"name": "f", "description": "d", "input_schema": {}}, {"type": "web_search_1", "name": "w"}],
            "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
            "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "omitted"},
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
            "stop_sequences": ["x"],
            "metadata": {"user_id": "u"},
            "stream": True,
            "temperature": 1,
            "container": "c",
            "context_management": {
                "edits": [{"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}]
            },
        }
    ],
    "ollama": [
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "Hi", "images": ["AAAA"]},
                {
                    "role": "assistant",
                    "content": "<think>a</think>Hi",
                    "thinking": "Hm.",
                    "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}],
                },
                {"role": "tool", "content": "4", "tool_name": "f"},
            ],
            "tools": [_TOOL],
            "think": "low",
            "format": {"type": "object"},
            "options": {"num_predict": 5, "stop": ["x"], "temperature": 1, "num_ctx": 5},
            "stream": False,
            "keep_alive": 5,
            "logprobs": True,
            "top_logprobs": 2,
        },
        {"model": "m", "prompt": "Hi", "system": "s", "images": ["AA"], "raw": False, "suffix": "x", "context": [1]},
        {"model": "m", "prompt": "Hi", "raw": True},
    ],
    "completions": [
        {
            "model": "m",
            "prompt": ["Hi", "Ho"],
            "n": 2,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": 5,
            "stop": ["x"],
            "logprobs": 2,
            "echo": True,
            "response_format": {"type": "text"},
            "chat_template_kwargs": {},
            "reasoning": {"effort": "low"},
            "user": "u",
            "temperature": 1,
        },
        {"model": "m", "prompt": "Hi", "stream": False},
        {"model": "m", "prompt": [1, 2, 3]},
    ],
}
"""Requests with every field that is read."""


def frames_of(data: bytes) -> list[Any]:
    """The JSON of each frame of a stream that one of our writers wrote."""
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n") if line[:1] == b"{" or line[:7] == b"data: {"]
    return [json.loads(line) for line in lines]


def to_stream(dialect: str, frames: Sequence[Any]) -> list[bytes]:
    """Frames as a server of this dialect sends them, one by one."""
    texts = [json.dumps(frame).encode() for frame in frames]
    if dialect == "ollama":
        return [text + b"\n" for text in texts]
    if dialect in ("openai_chat", "completions"):
        return [*(b"data: %b\n\n" % text for text in texts), b"data: [DONE]\n\n"]
    names = [frame.get("type") if isinstance(frame, dict) else None for frame in frames]
    heads = [name.encode("ascii", "replace") if isinstance(name, str) else b"x" for name in names]
    return [b"event: %b\ndata: %b\n\n" % pair for pair in zip(heads, texts, strict=True)]


for _name, _module in DIALECTS.items():
    for _shape in ("thinking", "calls", "interleaved", "two", "refused"):
        _request = Request(dialect=_name, model="m", include_usage=True)
        _writer = _module.ReplyWriter(_request)
        _items = items(BY_NAME[_shape], size=9)
        STREAMS[_name].append(frames_of(b"".join(map(_writer.feed, _items)) + _writer.finish()))
        WHOLE[_name].append(_module.write_reply(_items, _request))


# Putting something else in a place.


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where every node of a value stands, the value itself included."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def at(value: Any, path: Path) -> Any:
    """What stands in a place."""
    for step in path:
        value = value[step]
    return value


def replaced(value: Any, path: Path, other: Any) -> Any:
    """The value with something else in one place; unchanged where it has no such place."""
    if not path:
        return other
    key, *rest = path
    if isinstance(value, dict) and key in value:
        return {**value, key: replaced(value[key], tuple(rest), other)}
    if isinstance(value, list) and isinstance(key, int) and key < len(value):
        return [*value[:key], replaced(value[key], tuple(rest), other), *value[key + 1 :]]
    return value


# What must never fail.


class Told(NamedTuple):
    """What a reader made of something."""

    pieces: list[Chunk]
    items: list[ReplyItem]


def read_stream(dialect: str, chunks: Sequence[bytes]) -> Told:
    """Read a stream, and write what it told as every dialect does."""
    reader = DIALECTS[dialect].ReplyReader()
    pieces = [piece for chunk in chunks for piece in reader.feed(chunk)] + reader.finish()
    return _written(pieces)


def read_whole(dialect: str, body: Any) -> Told:
    """Read a whole reply, and write what it told as every dialect does."""
    return _written(DIALECTS[dialect].read_reply(body))


def _written(pieces: list[Chunk]) -> Told:
    splitter = Splitter(get_format("qwen3"), make_parser())
    found = [item for piece in pieces for item in splitter.feed(piece)] + splitter.finish()
    for name, module in DIALECTS.items():
        request = Request(dialect=name, model="m", include_usage=True, logprobs=True)
        writer = module.ReplyWriter(request)
        for item in found:
            writer.feed(item).decode()
            if isinstance(item, Failed):
                to_json(module.write_error(item))
        writer.finish().decode()
        to_json(module.write_reply(found, request))
    return Told(pieces, found)


def read_failure(dialect: str, status: int, body: bytes) -> None:
    """Read the body of an error, and write it as every dialect does."""
    failed = DIALECTS[dialect].read_error(status, body)
    for module in DIALECTS.values():
        to_json(module.write_error(failed))


def read_asked(dialect: str, body: Any) -> Request | None:
    """Read a request, and write it as every dialect does; None where it is refused, with our own error."""
    try:
        request: Request = DIALECTS[dialect].read_request(body)
    except RequestError:
        return None
    for module in DIALECTS.values():
        try:
            to_json(module.write_request(request))
        except RequestError:
            continue
    return request
