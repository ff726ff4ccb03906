"""Errors of the Responses API: the shapes are those of chat completions, the codes of a failed reply its own."""

from __future__ import annotations

from typing import Any

import msgspec

from ...reply._items import Failed
from ..openai_chat import _errors as chat_errors
from ._request import NAME

STATUSES = {"rate_limit_exceeded": 429, "invalid_prompt": 400}
"""Statuses of the codes with which a reply fails, where they are no 502."""
CODES = {status: code for code, status in STATUSES.items()}
"""Codes with which a reply fails, by status; any other is a `server_error`."""


def failed_of(body: dict[str, Any], status: int = 502) -> Failed:
    """The failure that a body or frame describes."""
    failed = chat_errors.failed_of(body, status)
    return msgspec.structs.replace(failed, dialect=NAME, status=STATUSES.get(failed.code or "", failed.status))


def read_error(status: int, body: bytes) -> Failed:
    """A reply with an error status, whatever its body holds."""
    return msgspec.structs.replace(chat_errors.read_error(status, body), dialect=NAME)


def write_error(failed: Failed) -> dict[str, Any]:
    """The body of an error, for a client of this dialect."""
    if failed.dialect == NAME and failed.body is not None and isinstance(failed.body.get("error"), dict):
        return failed.body
    return chat_errors.write_error(msgspec.structs.replace(failed, dialect=NAME))
