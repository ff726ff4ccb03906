"""The tokens of a request, for Anthropic's `count_tokens`: the upstream's own count, else a marked estimate."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ..dialects import openai_chat
from ..dialects._fields import as_count
from ..dialects._framing import to_json
from ..dialects._request import Request, RequestError, WriteOptions
from ..dialects._servers import ServerKind
from .questions import fetch_json
from .refusals import Refusal
from .upstreams import Upstream, UpstreamLost

COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking")
"""The fields of a request that Anthropic counts, and takes for that."""
ESTIMATE = ((b"x-asides-estimate", b"tokens"),)


async def count(upstream: Upstream, request: Request, model: str, key: str) -> tuple[int, bool]:
    """How many tokens a request has, and whether that is an estimate."""
    exact = 0
    try:
        kind = await upstream.find_kind()
        if kind.count_path:
            exact = await _fetch_own(upstream, kind, request, model, key)
        elif path := kind.tokenize_path:
            exact = await _fetch(upstream, path, request, model, key)
    except (Refusal, UpstreamLost, RequestError):
        pass  # it has no such path, or cannot be asked now; an estimate is better than none
    return (exact, False) if exact else (-(-len(read_text(request)) // 4), True)  # four bytes a token, rounded up


async def _fetch_own(upstream: Upstream, kind: ServerKind, request: Request, model: str, key: str) -> int:
    """The count of an upstream that counts requests of its own dialect; 0 where it gives none."""
    written = kind.chat.write_request(request, WriteOptions(model=model, replay="drop"))
    body = {name: value for name, value in written.items() if name in COUNTED}
    return as_count((await fetch_json(upstream, "POST", kind.count_path, to_json(body), key)).get("input_tokens"))


async def _fetch(upstream: Upstream, path: str, request: Request, model: str, key: str) -> int:
    """The upstream's own count; 0 where it gives none. vLLM takes messages, llama.cpp takes content."""
    written = openai_chat.write_request(request, WriteOptions(model=model, stream=False))
    messages: dict[str, Any] = {name: written[name] for name in ("model", "messages", "tools") if name in written}
    content = {"content": read_text(request).decode()}
    return await _first_count(upstream, path, ({**messages, "add_generation_prompt": True}, content), key)


async def count_text(upstream: Upstream, text: str, model: str, key: str) -> int:
    """How many tokens a text has, by the upstream's own count; 0 where it gives none."""
    prompt = {"model": model, "prompt": text, "add_special_tokens": False}  # vLLM's and SGLang's
    try:
        path = (await upstream.find_kind()).tokenize_path
        return await _first_count(upstream, path, (prompt, {"content": text}), key) if path else 0
    except (Refusal, UpstreamLost):
        return 0


async def _first_count(upstream: Upstream, path: str, bodies: Iterable[dict[str, Any]], key: str) -> int:
    for body in bodies:
        found = _count(await fetch_json(upstream, "POST", path, to_json(body), key))
        if found:
            return found
    return 0


def _count(answer: dict[str, Any]) -> int:
    number, tokens = answer.get("count"), answer.get("tokens")
    if isinstance(number, int):
        return number
    return len(tokens) if isinstance(tokens, list) else 0


def read_text(request: Request) -> bytes:
    """Everything of a request that a model reads, as bytes."""
    pieces = [piece for turn in request.turns for piece in turn.pieces]
    texts = [getattr(piece, name, "") for piece in pieces for name in ("text", "name", "arguments")]
    tools = b"".join(msgspec.json.encode([tool.name, tool.description, tool.parameters]) for tool in request.tools)
    return "".join(texts).encode("utf-8", "replace") + tools
