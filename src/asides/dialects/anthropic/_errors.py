"""Errors of Anthropic's Messages API, read and written, with the types that this API has for each status."""

from __future__ import annotations

from typing import Any

from ...reply._items import Failed
from .._errors import NO_WORDS, text_of
from .._fields import as_object, as_text
from .._whole_calls import to_object
from ._request import NAME

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STATUSES = {kind: status for status, kind in _TYPES.items()}
"""Of two statuses with one type the last counts: 529 is how this API says that it is overloaded."""
_KINDS = {
    "billing_error": "insufficient_quota",
    "overloaded_error": "server_error",
    "request_too_large": "invalid_request_error",
    "timeout_error": "server_error",
}
"""OpenAI's types for the same, where they differ."""


def failed_of(body: dict[str, Any], status: int | None = None) -> Failed:
    """The failure that a body or event describes."""
    error = body.get("error")
    fields = as_object(error)
    kind = as_text(fields.get("type")) or "api_error"
    return Failed(
        str(fields.get("message") or as_text(error) or body.get("message") or NO_WORDS),
        status or _STATUSES.get(kind, 502),
        _KINDS.get(kind, kind),
        dialect=NAME,
        body=body if body.get("type") == "error" and fields else None,
    )


def read_error(status: int, body: bytes) -> Failed:
    """The error that an upstream answered with."""
    return failed_of(to_object(body.decode("utf-8", "replace")) or {"message": text_of(status, body)}, status)


def write_error(failed: Failed) -> dict[str, Any]:
    """An error in this dialect's shape."""
    if failed.body is not None and failed.dialect == NAME:
        return failed.body
    kind = _TYPES.get(failed.status, "invalid_request_error" if 400 <= failed.status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": failed.message}}
