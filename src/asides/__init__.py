"""asides: what a model thinks, what it says and what it calls, taken apart."""

from __future__ import annotations

import typing as _typing

from ._api import asplit, clean, parse, split
from ._engine.format import Format
from ._engine.parser import Parser
from .errors import Error, StrictError, UnknownFormatError, UsageError
from .events import Event, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from .families import formats, get_format, register
from .message import Message
from .parts import Part, Text, Thinking, ToolCall
from .policies import Policies

if _typing.TYPE_CHECKING:
    from ._engine.tokens import TokenParser
    from .detect import Detection, detect
    from .families import Family

__version__ = "0.1.0"
"""The version of this package, the one place where it stands."""

__all__ = [
    "Detection",
    "Error",
    "Event",
    "Family",
    "Format",
    "Message",
    "Notice",
    "Parser",
    "Part",
    "PartEnd",
    "PartStart",
    "Policies",
    "StrictError",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "TokenParser",
    "ToolCall",
    "ToolCallDelta",
    "UnknownFormatError",
    "UsageError",
    "__version__",
    "asplit",
    "clean",
    "detect",
    "formats",
    "get_format",
    "parse",
    "register",
    "split",
]

_LATER = {"Detection": "detect", "Family": "families", "TokenParser": "_engine.tokens", "detect": "detect"}
"""Names that most callers do not need, and where they are: importing them costs start-up."""


def __getattr__(name: str) -> _typing.Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value
