"""SelfAI's think tags: thoughts to the UI, clean text down the pipeline. Over the engine, whole and streamed."""

from __future__ import annotations

from .analysis import analyze_thinking
from .buffer import ThinkBuffer
from .chat import ChatClient, MergeMinimaxInterface, MinimaxInterface, PlanError, PlannerMinimaxInterface
from .config import ThinkTags, read_config
from .tags import parse_think_tags, parse_think_tags_streaming
from .ui import TerminalUI, show_think_tags

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
