"""SelfAI's think tags: thoughts to the UI, clean text to the pipeline. Over the engine, whole and streamed."""

from __future__ import annotations

from ._chat import (
    ChatClient,
    MergeMinimaxInterface,
    MinimaxInterface,
    PlanError,
    PlannerMinimaxInterface,
    ThinkTags,
    read_config,
)
from ._tags import (
    ThinkBuffer,
    analyze_thinking,
    calculate_thinking_quality,
    parse_think_tags,
    parse_think_tags_streaming,
)
from ._ui import TerminalUI, show_think_tags

__all__ = [
    "ChatClient",
    "MergeMinimaxInterface",
    "MinimaxInterface",
    "PlanError",
    "PlannerMinimaxInterface",
    "TerminalUI",
    "ThinkBuffer",
    "ThinkTags",
    "analyze_thinking",
    "calculate_thinking_quality",
    "parse_think_tags",
    "parse_think_tags_streaming",
    "read_config",
    "show_think_tags",
]
