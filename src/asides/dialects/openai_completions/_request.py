"""Requests for plain completions, read and written: a bare prompt, or several, and what tunes sampling."""

from __future__ import annotations

from typing import Any

from .._request import PLAIN, Request, WriteOptions
from .._request_fields import Field, FieldTable, Moot, Refused, WrittenApart, expect, expect_object, refuse, without
from ..openai_chat._request import (
    SHARED,
    THINKING,
    read_options,
    read_thinking_options,
    unknown_options,
    write_options,
)

NAME = "completions"

FIELDS = FieldTable(
    *SHARED,
    Field("response_format", "response_format", lambda value, param: value),
    Refused("turns", "messages"),
    Refused("tools", "tools"),
    *map(WrittenApart, ("prompt", "thinking", "include_usage", "logprobs", "top_logprobs")),
    *(Moot(name, "there are no tools") for name in ("other_tools", "tool_choice", "parallel_calls")),
    Moot("names", "no field has a second name"),
    apart=("prompt", "logprobs", "stream_options", *THINKING),
)
_ESSENTIAL = frozenset({"best_of", "echo", "grammar", "guided_json", "guided_regex", "json_schema", "suffix"})


def read_request(body: Any, path: str = "") -> Request:
    """Understand a request; `RequestError` names the field that cannot be."""
    body = expect_object(body)
    prompt = body.get("prompt")
    fields, extra = FIELDS.read(body), FIELDS.rest(body)
    essential = sorted(name for name in _ESSENTIAL & extra.keys() if extra[name]) + unknown_options(body)
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    if isinstance(prompt, list) and prompt:
        # Several prompts, or token ids: only this API has them.
        fields["choices"] = fields.get("choices", 1) * _prompts(prompt)
        extra["prompt"], prompt = prompt, ""
        essential.append("prompt")
    include_usage, more = read_options(body)
    if more:
        extra["stream_options"] = more
    logprobs = body.get("logprobs")
    return Request(
        dialect=NAME,
        prompt=expect(prompt, str, "prompt"),
        thinking=read_thinking_options(body),
        include_usage=include_usage,
        logprobs=logprobs is not None and logprobs is not False,
        top_logprobs=logprobs if type(logprobs) is int else None,
        extra=extra,
        essential=tuple(essential),
        **fields,
    )


def _prompts(prompt: Any) -> int:
    """How many prompts there are: token ids are one."""
    return len(prompt) if isinstance(prompt, list) and not isinstance(prompt[0], int) else 1


def write_request(request: Request, options: WriteOptions = PLAIN) -> dict[str, Any]:
    """The request for an upstream that completes bare prompts."""
    same = FIELDS.leave_out(request, NAME)
    refuse(NAME, messages=request.prompt is None)
    extra = dict(request.extra) if same else {}
    prompt = extra.pop("prompt", request.prompt)
    body = FIELDS.write(options.applied_to(request)) | {"prompt": prompt}
    body["n"] = request.choices // _prompts(prompt)
    if request.logprobs:
        body["logprobs"] = request.top_logprobs or 0
    return without(body, *(("n",) if body["n"] == 1 else ())) | write_options(body, request, options, extra, NAME)
