"""Counting a request's tokens for Anthropic's clients: the upstream's own count, else an estimate that says so."""

from __future__ import annotations

from typing import Any

import msgspec

from ..dialects import openai_chat
from ..dialects.framing import to_json
from ..dialects.request import Request, RequestError, WriteOptions
from .model_profile import fetch_json
from .refusals import Refusal
from .upstreams import Upstream, UpstreamLost

ESTIMATE = ((b"x-asides-estimate", b"tokens"),)


async def count(upstream: Upstream, request: Request, model: str, key: str) -> tuple[int, bool]:
    """How many tokens a request has, and whether that is an estimate."""
    try:
        if path := (await upstream.find_kind()).tokenize_path:
            exact = await _ask(upstream, path, request, model, key)
            if exact is not None:
                return exact, False
    except (Refusal, UpstreamLost, RequestError):
        pass  # it has no such path, or cannot be asked now; an estimate is better than none
    return -(-len(words(request)) // 4), True


async def _ask(upstream: Upstream, path: str, request: Request, model: str, key: str) -> int | None:
    """The upstream's own count: vLLM takes messages, llama.cpp takes content."""
    written = openai_chat.write_request(request, WriteOptions(model=model, stream=False))
    asked: dict[str, Any] = {"model": written["model"], "messages": written["messages"], "add_generation_prompt": True}
    if "tools" in written:
        asked["tools"] = written["tools"]
    told = await fetch_json(upstream, "POST", path, to_json(asked), key)
    found = _count(told)
    if found:
        return found
    told = await fetch_json(upstream, "POST", path, to_json({"content": words(request).decode()}), key)
    return _count(told) or None


def _count(told: dict[str, Any]) -> int:
    number, tokens = told.get("count"), told.get("tokens")
    if isinstance(number, int):
        return number
    return len(tokens) if isinstance(tokens, list) else 0


def words(request: Request) -> bytes:
    """Everything of a request that a model reads, as bytes."""
    said = [piece for turn in request.turns for piece in turn.pieces]
    texts = [getattr(piece, name, "") for piece in said for name in ("text", "name", "arguments")]
    tools = b"".join(msgspec.json.encode([tool.name, tool.description, tool.parameters]) for tool in request.tools)
    return "".join(texts).encode("utf-8", "replace") + tools
