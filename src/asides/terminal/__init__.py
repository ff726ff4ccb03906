"""Showing thoughts to a person: headed, indented, wrapped, coloured. Knows events, no formats and no models."""

from __future__ import annotations

import typing as _typing

from .screen import Screen
from .thoughts import Mode, Thoughts

if _typing.TYPE_CHECKING:
    from .headings import describe
    from .style import Style
    from .whole import render

__all__ = ["Mode", "Screen", "Style", "Thoughts", "describe", "render"]

_LATER = {"Style": "style", "describe": "headings", "render": "whole"}
"""Names that the filter needs at times only, and where they are."""


def __getattr__(name: str) -> _typing.Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_LATER[name]}", __name__), name)
