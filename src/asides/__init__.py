"""asides: what a model thinks, what it says and what it calls, taken apart."""

from __future__ import annotations

import typing as _typing

from ._api import asplit, clean, parse, split
from ._engine.format import Format
from ._engine.parser import Parser
from .errors import Error, StrictError, UnknownFormatError, UsageError
from .events import Event, Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from .families import formats, get_format, register
from .message import Message
from .parts import Part, Text, Thinking, ToolCall
from .policies import Policies

if _typing.TYPE_CHECKING:
    from . import anthropic as anthropic
    from . import ollama as ollama
    from . import openai as openai
    from ._conversation import Conversation, Prompt, Turn
    from ._engine.tokens import TokenParser
    from ._sdk.turns import AgentTurn, AsyncAgentTurn, aturn, turn
    from .detect import Detection, detect
    from .families import Family
    from .reading import Reading

__version__ = "0.1.0"
"""The version of this package, the one place where it stands."""

__all__ = [
    "AgentTurn",
    "AsyncAgentTurn",
    "Conversation",
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
    "Prompt",
    "Reading",
    "Retyped",
    "StrictError",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "TokenParser",
    "ToolCall",
    "ToolCallDelta",
    "Turn",
    "UnknownFormatError",
    "UsageError",
    "__version__",
    "asplit",
    "aturn",
    "clean",
    "detect",
    "formats",
    "get_format",
    "parse",
    "register",
    "split",
    "turn",
]

_LATER = {
    "AgentTurn": "_sdk.turns",
    "AsyncAgentTurn": "_sdk.turns",
    "Conversation": "_conversation",
    "Detection": "detect",
    "Family": "families",
    "Prompt": "_conversation",
    "Reading": "reading",
    "TokenParser": "_engine.tokens",
    "Turn": "_conversation",
    "aturn": "_sdk.turns",
    "detect": "detect",
    "turn": "_sdk.turns",
}
"""Names that most callers do not need, and where they are: importing them costs start-up."""
_MODULES = ("anthropic", "ollama", "openai")
"""Modules that need no import of their own: what refuses an SDK's object names them. Not in `__all__`, because
`from asides import *` would hide the SDKs."""


def __getattr__(name: str) -> _typing.Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = value
    return value
