"""Which path means what: a table. Knows no upstream and no model.

A path is normalised before it is looked up: runs of `/` are one, `/v1` may be missing or doubled, case does not matter.
So no spelling of a path that generates text is taken for one that is handed on unread. What is handed on is a list of
its own (`PASSED_ON`): files, batches, fine-tuning and administration are not in it, because with the operator's key a
client could delete models or stop the server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote

from ..dialects import Dialect, anthropic, ollama, openai_chat, openai_completions, openai_responses


class Route(NamedTuple):
    """What a path means."""

    name: str
    """Which handler takes it."""
    dialect: Dialect
    """Whose shape the answer has, an error too."""
    rest: str = ""
    """What follows the path: a model's name."""


POSTED = {
    "/chat/completions": Route("generate", openai_chat),
    "/completions": Route("generate", openai_completions),
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
PASSED_ON = (
    *("POST /embeddings", "POST /rerank", "POST /v2/rerank", "POST /score", "POST /moderations"),
    *("POST /audio/*", "GET /audio/*", "POST /images/*", "POST /tokenize", "POST /detokenize"),
    *("POST /api/embed", "POST /api/embeddings"),
)
"""What goes to the upstream as it is, beside what is answered here; `pass_on` of the configuration adds to it."""
CONTROL = "/chat/completions/control"
"""llama.cpp's path for ending a running reply's thought; passed on for a reply of the same credential."""
_VERSIONED = re.compile(r"(/v1)+(?=/|$)")
_SLASHES = re.compile(r"/{2,}")
_OPENAI = re.compile(
    r"/(embeddings|audio|images|moderations|files|batches|rerank|score|realtime|fine_tuning|responses)\b"
)


def plain(path: str) -> str:
    """A path as the tables have it: in lower case, without `/v1` before it, no slash doubled or at the end."""
    return _cut_version(path)[0].rstrip("/") or "/"


def _cut_version(path: str) -> tuple[str, bool]:
    """A path with no slash doubled and without `/v1` before it, and whether it had one."""
    path = _SLASHES.sub("/", path)
    found = _VERSIONED.match(path.lower())
    return (path[found.end() :], True) if found else (path, False)


def find(method: str, path: str) -> Route:
    """What a path means; what nobody here knows is passed on, if it may be."""
    whole = plain(path)
    short = whole.lower()
    dialect: Dialect = (
        ollama if short.startswith("/api/") else anthropic if short.startswith("/messages") else openai_chat
    )
    if method == "OPTIONS":
        return Route("options", dialect)
    table = POSTED if method == "POST" else GOT if method in ("GET", "HEAD") else {}
    route = table.get(short)
    if route is not None:
        return route
    if method in ("GET", "HEAD") and short.startswith("/models/"):
        return Route("model", openai_chat, whole[len("/models/") :])
    if method not in ("GET", "HEAD") and short in GOT and short not in POSTED and short != "/models":
        return Route("not_allowed", dialect)
    if method in ("GET", "HEAD") and short in POSTED:
        return Route("not_allowed", dialect)
    if method == "POST" and short == CONTROL:
        return Route("control", dialect)
    return Route("pass_on", dialect)


def may_pass(method: str, path: str, more: Sequence[str]) -> bool:
    """Whether a path goes to the upstream as it is. `more` are those of the configuration; `*` ends what may follow.

    A path without a method is for GET and POST.
    """
    if "all" in more:
        return True
    short = plain(path).lower()
    method = "GET" if method == "HEAD" else method
    for entry in (*PASSED_ON, *more):
        verb, _, wanted = entry.rpartition(" ")
        if method not in ((verb,) if verb else ("GET", "POST")):
            continue
        wanted = wanted.lower()
        known = plain(wanted.removesuffix("*"))
        if short == known or (wanted.endswith("*") and short.startswith(f"{known}/")):
            return True
    return False


def is_below(path: str) -> bool:
    """Whether a path as it came stays below the root to which it is added: nobody may climb out of that."""
    steps = re.split(r"[/\\]", unquote(path))
    return path.startswith("/") and not any(step in (".", "..") for step in steps)


def upstream_path(path: str) -> str:
    """The path under which an upstream knows what is passed on: OpenAI's under `/v1`, others as they are."""
    short, versioned = _cut_version(path)
    return f"/v1{short}" if versioned or _OPENAI.match(short.lower()) else short
