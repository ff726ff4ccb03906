"""Which path means what: a table. Knows no upstream and no model."""

from __future__ import annotations

import re
from types import ModuleType
from typing import NamedTuple
from urllib.parse import unquote

from ..dialects import anthropic, completions, ollama, openai_chat, openai_responses


class Route(NamedTuple):
    """What a path means."""

    name: str
    """Which handler takes it."""
    dialect: ModuleType
    """Whose shape the answer has, an error too."""
    rest: str = ""
    """What follows the path: a model's name."""


POSTED = {
    "/chat/completions": Route("generate", openai_chat),
    "/completions": Route("generate", completions),
    "/responses": Route("generate", openai_responses),
    "/messages": Route("generate", anthropic),
    "/messages/count_tokens": Route("count_tokens", anthropic),
    "/api/chat": Route("generate", ollama),
    "/api/generate": Route("generate", ollama),
    "/api/show": Route("show", ollama),
}
GOT = {
    "/models": Route("models", openai_chat),
    "/api/tags": Route("tags", ollama),
    "/api/version": Route("version", ollama),
    "/api/ps": Route("running", ollama),
    "/healthz": Route("health", openai_chat),
    "/health": Route("health", openai_chat),
    "/metrics": Route("metrics", openai_chat),
    "/": Route("home", openai_chat),
}
_VERSIONED = re.compile(r"(/v1)+(?=/|$)")
_OPENAI = re.compile(
    r"/(embeddings|audio|images|moderations|files|batches|rerank|score|realtime|fine_tuning|responses)\b"
)


def plain(path: str) -> str:
    """A path without `/v1` before it; some clients write it twice."""
    found = _VERSIONED.match(path)
    return path[found.end() :] if found else path


def find(method: str, path: str) -> Route:
    """What a path means; what nobody here knows is passed on."""
    short = plain(path).rstrip("/") or "/"
    dialect = ollama if short.startswith("/api/") else anthropic if short.startswith("/messages") else openai_chat
    if method == "OPTIONS":
        return Route("options", dialect)
    table = POSTED if method == "POST" else GOT if method in ("GET", "HEAD") else {}
    route = table.get(short)
    if route is not None:
        return route
    if method in ("GET", "HEAD") and short.startswith("/models/"):
        return Route("model", openai_chat, short.removeprefix("/models/"))
    if method not in ("GET", "HEAD") and short in GOT and short not in POSTED and short != "/models":
        return Route("not_allowed", dialect)
    if method in ("GET", "HEAD") and short in POSTED:
        return Route("not_allowed", dialect)
    return Route("pass_on", dialect)


def is_below(path: str) -> bool:
    """Whether a path as it came stays below the root to which it is added: nobody may climb out of that."""
    steps = re.split(r"[/\\]", unquote(path))
    return path.startswith("/") and not any(step in (".", "..") for step in steps)


def upstream_path(path: str) -> str:
    """The path under which an upstream knows what is passed on: OpenAI's under `/v1`, others as they are."""
    short = plain(path)
    return f"/v1{short}" if short != path or _OPENAI.match(short) else path
