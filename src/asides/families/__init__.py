"""Every format that asides knows: one card per family of models, found by name in the registry."""

from __future__ import annotations

import typing as _typing

from ._registry import families, family_of, formats, get_format, register, switch_of

if _typing.TYPE_CHECKING:
    from ._family import EarlierThinking, Family, MarkerIds, Model, Switch

__all__ = [
    "EarlierThinking",
    "Family",
    "MarkerIds",
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
    from . import _family as family

    return getattr(family, name)
