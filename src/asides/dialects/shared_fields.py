"""Fields that Chat Completions and Responses share and no other dialect knows: read from either for the other.

They stay in a request's `extra`, where its own dialect finds them as they were.
"""

from __future__ import annotations

from typing import Any

from .request import Request

ALIKE = ("metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "service_tier")
"""Those with the same name and meaning in both."""


def shared_by_chat(request: Request) -> dict[str, Any]:
    """What a request for chat completions says of them, as Responses do."""
    verbosity = request.extra.get("verbosity")
    return _alike(request) | ({} if verbosity is None else {"text": {"verbosity": verbosity}})


def shared_by_responses(request: Request) -> dict[str, Any]:
    """What a request for a response says of them, as chat completions do."""
    text = request.extra.get("text")
    verbosity = text.get("verbosity") if isinstance(text, dict) else None
    return _alike(request) | ({} if verbosity is None else {"verbosity": verbosity})


def _alike(request: Request) -> dict[str, Any]:
    return {name: request.extra[name] for name in ALIKE if request.extra.get(name) is not None}
