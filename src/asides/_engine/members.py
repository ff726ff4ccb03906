"""The members of an enum at the price of an ordinary attribute."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import TypeVar, cast

_E = TypeVar("_E", bound=Enum)


def members(enum: type[_E]) -> type[_E]:
    """An object with the enum's members as attributes, for `is` comparisons: `marker.action is Actions.STOP`.

    Until 3.12 looking a member up in the class itself costs as much as a call, and the machine asks about actions,
    verdicts and outcomes all the time.
    """
    return cast(type[_E], SimpleNamespace(**enum.__members__))
