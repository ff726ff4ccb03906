"""Errors of Ollama's own API: one string, in a body or in the last line of a stream."""

from __future__ import annotations

from typing import Any

from ...reply._items import Failed
from .._errors import NO_WORDS, text_of, type_of
from .._fields import as_json
from .._whole_calls import to_object
from ._request import NAME


def failed_of(error: Any, status: int = 502) -> Failed:
    """A failure, from whatever stands in `error`."""
    if isinstance(error, dict):
        error = error.get("message") or error
    message = error if isinstance(error, str) else as_json(error) if error else ""
    return Failed(message or NO_WORDS, status, type_of(status), dialect=NAME)


def read_error(status: int, body: bytes) -> Failed:
    """The error that an upstream answered with."""
    found = to_object(body.decode("utf-8", "replace")) or {}
    return failed_of(found.get("error") or text_of(status, body), status)


def write_error(failed: Failed) -> dict[str, Any]:
    """An error in this dialect's shape."""
    return {"error": failed.message}
