"""Whole calls for clients that take nothing but an object as arguments; what is no such call becomes text.

Knows no API.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..parts import ToolCall
from ._framing import to_json

DEPTH = 100
"""How deep arguments may be nested. Clients give up at a depth of their own, the first of them at 200."""


def arguments_or_text(call: ToolCall, written: str) -> dict[str, Any] | str:
    """The arguments of a call that may be run, else the text that stands for it; empty if nothing is known of it.

    `written` is what the model wrote of it.
    """
    value = to_object(call.arguments) if call.error is None and call.name else None
    if value is not None:
        return value
    known = f'{{"name": "{call.name}", "arguments": {call.arguments}' if call.name or call.arguments else ""
    return written or known


def behind_arguments(arguments: str, raw: str) -> str:
    """What to write behind the arguments of a call that may not be run, so that they are no JSON object.

    Clients run every call whose arguments they can read, also where the API could tell them that it is broken. So what
    the model wrote of it (`raw`) follows where the arguments are an object, or none came: clients take none for `{}`.
    """
    if arguments and to_object(arguments) is None:
        return ""
    return to_json(raw).decode() if not arguments and to_object(raw) is not None else raw


def to_object(arguments: str) -> dict[str, Any] | None:
    """The object that this JSON text says; None if it says none, or one that clients cannot read."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    # Text is never nested deeper than it has brackets, those in strings included: counting them spares most calls the
    # walk.
    brackets = arguments.count("{") + arguments.count("[")
    return value if brackets <= DEPTH or _depth(value) <= DEPTH else None


def _depth(value: object) -> int:
    # Level by level and not by recursion, because the depth is the model's to choose.
    deepest, level = 0, [value]
    while level:
        deepest += 1
        inner: list[object] = []
        for each in level:
            inner.extend(each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        level = [each for each in inner if isinstance(each, dict | list)]
    return deepest
