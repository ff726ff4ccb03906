"""Errors of chat completions, read in the shapes that servers use, and written in OpenAI's."""

from __future__ import annotations

from typing import Any

import msgspec

from ...reply._items import Failed
from .._errors import text_of, type_of
from .._fields import as_json, as_text, maybe_text
from ._request import NAME


def failed_of(body: dict[str, Any], status: int) -> Failed:
    """The failure that a body or frame describes."""
    error = body.get("error") or body.get("detail") or body.get("message") or body
    if not isinstance(error, dict):
        message = error if isinstance(error, str) else as_json(error)
        error = {**body, "message": message} if isinstance(body.get("message"), str) else {"message": message}
    code = error.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        status = code
    return Failed(
        as_text(error.get("message")) or as_json(error),
        status,
        as_text(error.get("type")) or type_of(status),
        None if code is None else str(code),
        maybe_text(error.get("param")),
        NAME,
        body,
    )


def read_error(status: int, body: bytes) -> Failed:
    """A reply with an error status, whatever its body holds."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        found = None
    if isinstance(found, list) and found:
        found = found[0]
    if isinstance(found, dict) and found:
        return msgspec.structs.replace(failed_of(found, status), status=status)
    return Failed(text_of(status, body), status, type_of(status))


def write_error(failed: Failed) -> dict[str, Any]:
    """The body of an error, for a client of this dialect."""
    if failed.dialect == NAME and failed.body is not None and isinstance(failed.body.get("error"), dict):
        return {"error": failed.body["error"]}
    return {"error": {"message": failed.message, "type": failed.kind, "param": failed.param, "code": failed.code}}
