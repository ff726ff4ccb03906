"""Showing thoughts to a person: headed, indented, wrapped, coloured. Knows events, no formats and no models."""

from __future__ import annotations

import typing as _typing

from .layout import describe
from .screen import Screen
from .thoughts import Mode, Thoughts, render

if _typing.TYPE_CHECKING:
    from .style import Style

__all__ = ["Mode", "Screen", "Style", "Thoughts", "describe", "render"]


def __getattr__(name: str) -> _typing.Any:
    if name != "Style":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .style import Style  # here, because only a terminal with colours needs it

    return Style
