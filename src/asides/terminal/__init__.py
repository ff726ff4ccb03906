"""Showing thoughts to a person: headed, indented, wrapped, coloured. Knows events, no formats and no models."""

from __future__ import annotations

import typing as _typing

from ._layout import describe
from ._screen import Screen
from ._thoughts import Mode, Thoughts, render

if _typing.TYPE_CHECKING:
    from ._style import Style

__all__ = ["Mode", "Screen", "Style", "Thoughts", "describe", "render"]


def __getattr__(name: str) -> _typing.Any:
    if name != "Style":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._style import Style  # here, because only a terminal with colours needs it

    return Style
