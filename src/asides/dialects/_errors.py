"""Failures that every dialect meets: a reply that ends too early, a frame that is no JSON, an error without a text."""

from __future__ import annotations

import re

from ..reply._items import Failed

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


_TITLE = re.compile(r"<title>([^<]+)", re.IGNORECASE)
_SHOWN = 200
"""Characters that a message shows of what is no model's reply."""


def web_page(text: str) -> str | None:
    """The message for a web page in place of a reply, with its title or its first line; None for any other text."""
    if not text.startswith("<"):
        return None
    title = _TITLE.search(text, 0, 10_000)
    shown = " ".join(title[1].split()) if title else text.splitlines()[0]
    return f"the upstream answered with a web page: {shown[:_SHOWN]}"


def text_of(status: int, body: bytes) -> str:
    """The message of an error whose body is no JSON."""
    text = body.decode("utf-8", "replace").strip()
    return web_page(text) or text[:2000] or f"the upstream answered with status {status}"


def malformed(data: bytes, what: str = "frame") -> str:
    """The message for a frame or line that is no JSON; shows how it begins."""
    return f"the upstream sent a {what} that is not JSON: {data.rstrip()[:200].decode('utf-8', 'replace')}"
