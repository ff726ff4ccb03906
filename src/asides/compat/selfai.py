"""SelfAI's think tags: thoughts to the UI, clean text down the pipeline. Over the engine, whole and streamed."""

from __future__ import annotations

from .selfai_analysis import analyze_thinking
from .selfai_buffer import ThinkBuffer
from .selfai_chat import ChatClient, MergeMinimaxInterface, MinimaxInterface, PlanError, PlannerMinimaxInterface
from .selfai_config import ThinkTags, read_config
from .selfai_tags import parse_think_tags, parse_think_tags_streaming
from .selfai_ui import TerminalUI, show_think_tags

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
    "parse_think_tags",
    "parse_think_tags_streaming",
    "read_config",
    "show_think_tags",
]
