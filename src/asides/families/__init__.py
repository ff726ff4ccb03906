"""Every format that asides knows, one family per file, found by name in the registry."""

from __future__ import annotations

from .registry import formats, get_format, register

__all__ = ["formats", "get_format", "register"]
