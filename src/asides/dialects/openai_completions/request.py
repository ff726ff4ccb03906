"""Requests for plain completions, read and written: a bare prompt, or several, and what tunes sampling."""

from __future__ import annotations

from typing import Any

from ..checks import expect, expect_object, optional
from ..openai_chat.request import (
    SAMPLING,
    THINKING,
    read_options,
    read_stop,
    read_thinking_options,
    write_thinking_options,
)
from ..request import Request, RequestError, WriteOptions, leave_out

NAME = "completions"

_KNOWN = frozenset(
    {
        "model",
        "prompt",
        "stream",
        "stream_options",
        "n",
        "max_tokens",
        "stop",
        "logprobs",
        "chat_template_kwargs",
        "response_format",
        "user",
        *SAMPLING,
        *THINKING,
    }
)
_ESSENTIAL = frozenset({"best_of", "echo", "grammar", "guided_json", "guided_regex", "json_schema", "suffix"})


def read_request(body: Any, path: str = "") -> Request:
    """Understand a request; `RequestError` names the field that cannot be."""
    body = expect_object(body)
    prompt = body.get("prompt")
    extra = {name: value for name, value in body.items() if name not in _KNOWN}
    essential = sorted(name for name in _ESSENTIAL & extra.keys() if extra[name])
    prompts = 1
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    if isinstance(prompt, list) and prompt:
        # Several prompts, or token ids: only this API has them.
        extra["prompt"] = prompt
        essential.append("prompt")
        prompts = 1 if isinstance(prompt[0], int) else len(prompt)
        prompt = ""
    template = optional(body, "chat_template_kwargs", dict, {})
    include_usage, more = read_options(body)
    if more:
        extra["stream_options"] = more
    choices = optional(body, "n", int, 1)
    if choices < 1:
        raise RequestError("n must be at least 1", "n")
    logprobs = body.get("logprobs")
    return Request(
        dialect=NAME,
        model=optional(body, "model", str, ""),
        prompt=expect(prompt, str, "prompt"),
        thinking=read_thinking_options(body, template),
        stream=optional(body, "stream", bool, False),
        include_usage=include_usage,
        choices=choices * prompts,
        max_tokens=None if body.get("max_tokens") is None else expect(body["max_tokens"], int, "max_tokens"),
        stop=read_stop(body.get("stop")),
        sampling={ours: body[name] for name, ours in SAMPLING.items() if body.get(name) is not None},
        response_format=body.get("response_format"),
        logprobs=logprobs is not None and logprobs is not False,
        top_logprobs=logprobs if type(logprobs) is int else None,
        template_arguments=template,
        user=None if body.get("user") is None else expect(body["user"], str, "user"),
        extra=extra,
        essential=tuple(essential),
    )


def write_request(request: Request, options: WriteOptions = WriteOptions()) -> dict[str, Any]:  # noqa: B008
    """The request for an upstream that completes bare prompts."""
    leave_out(request, NAME)
    if request.prompt is None:
        raise RequestError("messages have no counterpart in plain completions; send a prompt", "messages")
    if request.turns:
        raise RequestError("plain completions take a bare prompt and no messages", "messages")
    if request.tools:
        raise RequestError("tools have no counterpart in plain completions", "tools")
    same = request.dialect == NAME
    extra = dict(request.extra) if same else {}
    prompt = extra.pop("prompt", request.prompt)
    body: dict[str, Any] = {"model": options.model or request.model, "prompt": prompt}
    stream_options = extra.pop("stream_options", {})
    if request.stream if options.stream is None else options.stream:
        body["stream"] = True
        if request.include_usage or options.usage or not same:
            stream_options = {**stream_options, "include_usage": True}
        if stream_options:
            body["stream_options"] = stream_options
    several = isinstance(prompt, list) and not isinstance(prompt[0], int)
    choices = request.choices // (len(prompt) if several else 1)
    if choices > 1:
        body["n"] = choices
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.stop:
        body["stop"] = list(request.stop)
    body.update({name: request.sampling[ours] for name, ours in SAMPLING.items() if ours in request.sampling})
    if request.logprobs:
        body["logprobs"] = request.top_logprobs or 0
    if request.response_format is not None:
        body["response_format"] = request.response_format
    if request.user is not None:
        body["user"] = request.user
    write_thinking_options(body, request, options, same)
    if options.special_tokens:
        extra.setdefault("skip_special_tokens", False)
    return {**body, **extra}
