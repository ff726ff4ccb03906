"""Every format that asides knows: one card per family of models, found by name in the registry."""

from __future__ import annotations

import typing as _typing

from .registry import families, family_of, formats, get_format, register, switch_of

if _typing.TYPE_CHECKING:
    from .family import Family, Model, Switch

__all__ = [
    "Family",
    "Model",
    "Switch",
    "families",
    "family_of",
    "formats",
    "get_format",
    "register",
    "switch_of",
]


def __getattr__(name: str) -> _typing.Any:
    # The records are imported when a card is, or when somebody declares one: the filter needs neither.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import family

    return getattr(family, name)
