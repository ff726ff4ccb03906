"""Every format that asides knows, one family per file."""

from __future__ import annotations

from . import harmony, qwen
from .registry import formats, get_format, register, register_all

for _family in (harmony, qwen):
    register_all(_family.FORMATS)

__all__ = ["formats", "get_format", "register"]
