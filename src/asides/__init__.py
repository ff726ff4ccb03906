"""asides: what a model thinks, what it says and what it calls, taken apart."""

from __future__ import annotations

from .api import Parser, asplit, clean, parse, split
from .engine.format import Format
from .engine.message import Message
from .errors import Error, StrictError, UnknownFormatError, UsageError
from .events import Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from .formats import formats, get_format, register
from .parts import Text, Thinking, ToolCall

__all__ = [
    "Error",
    "Format",
    "Message",
    "Notice",
    "Parser",
    "PartEnd",
    "PartStart",
    "StrictError",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "ToolCall",
    "ToolCallDelta",
    "UnknownFormatError",
    "UsageError",
    "asplit",
    "clean",
    "formats",
    "get_format",
    "parse",
    "register",
    "split",
]
