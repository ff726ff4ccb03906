"""Failures that every dialect meets: a reply that ends too early, a frame that is no JSON, an error without a text."""

from __future__ import annotations

from ..reply.items import Failed

UPSTREAM_ENDED = Failed(
    "the upstream ended its reply without saying that it was over", 502, "api_error", "upstream_ended"
)
"""The stream is over, and nothing in it marked its end."""
NO_WORDS = "the upstream failed without a word"
"""The message of an error that has none."""

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "service_unavailable_error",
}


def type_of(status: int) -> str:
    """The type of an error by its status, by OpenAI's names."""
    return _TYPES.get(status, "invalid_request_error" if 400 <= status < 500 else "api_error")


def malformed(data: bytes, what: str = "frame") -> str:
    """The message for a frame or line that is no JSON; shows how it begins."""
    return f"the upstream sent a {what} that is not JSON: {data.rstrip()[:200].decode('utf-8', 'replace')}"
