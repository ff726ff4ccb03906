"""The effort of a request, clamped to what a model and its server take, and read off a server's refusal.

Clients name efforts from one ladder, none < minimal < low < medium < high < xhigh < max, and hardly any model takes all
of it; servers refuse the rest. `with_effort` puts the nearest one in place of the one that was asked for, in whichever
field it came. What a server takes is written in its refusals:

    allowed_efforts("reasoning_effort must be 'low', 'medium' or 'high'", "max")     # ("low", "medium", "high")
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

from ..families._family import EFFORT, EFFORTS, nearest_effort
from ._request import Request

_NAMES = (*EFFORTS, "none", "default")
_FIELD = re.compile(r"effort|\bthink\b", re.IGNORECASE)
_LISTED = re.compile(
    r"\b(?:support|allow|accept|valid|permit|expect|available|one of|must be|should be|choose|either)", re.IGNORECASE
)
"""What stands before the values that a server takes."""
_NAME = re.compile(rf"(?<![\w-])(?:{'|'.join(_NAMES)})(?![\w-])")


def with_effort(request: Request, known: Collection[str]) -> Request:
    """The request with the nearest of the efforts that are known; without one where none of them can be compared.

    The very same request where nothing is known, no effort is asked for, or it is one of them. An effort that is on no
    ladder is left for the server to judge.
    """
    asked = request.thinking.effort
    if asked is None or not known or asked in known:
        return request
    # The weakest stands for none at all: what cannot be turned off can be kept short.
    found = nearest_effort("minimal" if asked == "none" else asked, known)
    if not found and any(each in EFFORTS for each in known):
        return request
    thinking = msgspec.structs.replace(request.thinking, effort=found or None, sent=_sent(request.thinking.sent, found))
    arguments = request.template_arguments
    if EFFORT in arguments:
        arguments = _replaced(arguments, EFFORT, found)
    return msgspec.structs.replace(request, thinking=thinking, template_arguments=arguments)


def _sent(sent: dict[str, Any], effort: str) -> dict[str, Any]:
    """A client's own fields with another effort."""
    found = _replaced(sent, EFFORT, effort) if EFFORT in sent else dict(sent)
    for name, value in sent.items():
        if isinstance(value, dict) and "effort" in value:
            found[name] = _replaced(value, "effort", effort)
        elif name == "think" and isinstance(value, str):
            found[name] = effort or True
    return found


def _replaced(fields: dict[str, Any], name: str, effort: str) -> dict[str, Any]:
    rest = {each: value for each, value in fields.items() if each != name}
    return rest | {name: effort} if effort else rest


def allowed_efforts(error: str, asked: str) -> tuple[str, ...]:
    """The efforts that a server names as those that it takes, in the text of its refusal of another; else none."""
    if not _FIELD.search(error):
        return ()
    listed = _LISTED.search(error)
    if listed is None:
        return ()
    # What was asked for is repeated by most of them. One name alone may be a word of a sentence about something else.
    found = dict.fromkeys(name for name in _NAME.findall(error, listed.start()) if name != asked)
    return tuple(found) if len(found) > 1 or asked in error else ()
