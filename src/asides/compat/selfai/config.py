"""SelfAI's configuration keys: what becomes of think tags. Values only; reads no file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...errors import UsageError
from ...terminal.style import codes


class ThinkTags(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The section `think_tags`."""

    enabled: bool = True
    """Whether thoughts are taken out at all; without it replies pass as they came."""
    display_in_ui: bool = True
    """Whether thoughts are shown, or only taken out."""
    save_to_memory: bool = False
    """Whether a client's memory keeps the thoughts of a reply beside its clean text."""
    display_style: str = "blue"
    """The colour of headings: blue, cyan, grey or another."""


def read_config(config: Mapping[str, Any] | None) -> ThinkTags:
    """The section out of a whole configuration, or alone; defaults where it is missing."""
    if not config:
        return ThinkTags()
    section = config.get("think_tags")
    if section is None:
        section = config if set(config) & set(ThinkTags.__struct_fields__) else {}
    try:
        found = msgspec.convert(section, ThinkTags)
    except msgspec.ValidationError as error:
        raise UsageError(f"think_tags: {error}; its keys are {', '.join(ThinkTags.__struct_fields__)}") from error
    codes(found.display_style)
    return found
