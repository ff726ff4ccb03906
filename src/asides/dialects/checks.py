"""Looking into JSON that a stranger sent: the value if it is of the kind that is wanted, else a clear refusal."""

from __future__ import annotations

from typing import Any, TypeVar

from .request import RequestError

T = TypeVar("T")

_WORDS: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "true or false",
    int: "a whole number",
}


def expect(value: Any, kind: type[T], param: str) -> T:
    """The value, if it is of this kind."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RequestError(f"{param} must be {_WORDS[kind]}", param)
    return value


def expect_object(body: Any) -> dict[str, Any]:
    """The body of a request, if it is an object."""
    if not isinstance(body, dict):
        raise RequestError("the request must be a JSON object")
    return body


def optional(body: dict[str, Any], name: str, kind: type[T], default: T, within: str = "") -> T:
    """A field of the body, if it is there and not null."""
    value = body.get(name)
    return default if value is None else expect(value, kind, f"{within}{name}")
