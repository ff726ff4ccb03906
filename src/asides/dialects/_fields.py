"""Looking into JSON that an upstream sent: the value if it is of the kind that is wanted, else what stands for nothing.

Readers of replies never raise: whatever stands in a field, the text around it is good. So they take every field with
one of these, and hand on only what every writer can write. (What a client sends is refused instead: `request_fields`.)
"""

from __future__ import annotations

from typing import Any

from ._framing import to_json

Token = dict[str, Any]
"""One token of log probabilities, in the upstream's own shape."""

_UNCOUNTED = 2**53
"""The first number that nobody has counted to; from there on a float, which clients and metrics make of it, is not the
same number, and a far larger one is no float at all."""
_END_OF_TIME = 253_402_300_800
"""The first second that no date has: the year 10000."""


def as_text(value: Any) -> str:
    """The value if it is text."""
    return value if isinstance(value, str) else ""


def maybe_text(value: Any) -> str | None:
    """The value if it is text; None where there is none."""
    return value if isinstance(value, str) else None


def as_count(value: Any) -> int:
    """The value if it is a number of something."""
    return maybe_count(value) or 0


def maybe_count(value: Any) -> int | None:
    """The value if it is a number of something; None where nobody has counted."""
    return value if type(value) is int and 0 <= value < _UNCOUNTED else None


def as_moment(value: Any) -> int:
    """The value if it is a time that a date can have, in seconds."""
    return int(value) if type(value) in (int, float) and 0 <= value < _END_OF_TIME else 0


def as_object(value: Any) -> dict[str, Any]:
    """The value if it is an object."""
    return value if isinstance(value, dict) else {}


def maybe_object(value: Any) -> dict[str, Any] | None:
    """The value if it is an object; None where there is none."""
    return value if isinstance(value, dict) else None


def as_objects(value: Any) -> list[dict[str, Any]]:
    """The objects in the value, if it is an array."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def as_json(value: Any) -> str:
    """Any value as JSON, half a surrogate pair included."""
    return to_json(value).decode()


def as_tokens(value: Any) -> tuple[Token, ...]:
    """The tokens in an array of log probabilities: those that have text. Bytes that are none are left out."""
    return tuple(_sound(token) for token in as_objects(value) if isinstance(token.get("token"), str))


def _sound(token: Token) -> Token:
    written = token.get("bytes")
    if written is None:
        return token
    if isinstance(written, list):
        try:
            bytes(written)
            return token
        except (TypeError, ValueError):
            pass
    return {**token, "bytes": None}


def as_reply(body: Any) -> dict[str, Any]:
    """The body of a whole reply; for what is no object, an error's body that every dialect reads as a failure."""
    if isinstance(body, dict):
        return body
    return {"error": f"the upstream sent a reply that is no JSON object: {as_json(body)[:200]}"}
