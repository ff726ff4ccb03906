"""Messages to prompts and training examples in ids, per family; and what was sampled back to a message."""

from __future__ import annotations

from ._base import Example, Renderer, TrainOnWhat
from ._checkpoint import CheckpointRenderer
from ._families import (
    DeepSeekV3DisableThinking,
    DeepSeekV3Thinking,
    GptOss,
    KimiK2,
    Llama3,
    Qwen3,
    Qwen3DisableThinking,
    RoleColon,
)
from ._messages import RendererError
from ._registry import get_renderer, register_renderer, renderers

__all__ = [
    "CheckpointRenderer",
    "DeepSeekV3DisableThinking",
    "DeepSeekV3Thinking",
    "Example",
    "GptOss",
    "KimiK2",
    "Llama3",
    "Qwen3",
    "Qwen3DisableThinking",
    "Renderer",
    "RendererError",
    "RoleColon",
    "TrainOnWhat",
    "get_renderer",
    "register_renderer",
    "renderers",
]
