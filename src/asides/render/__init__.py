"""Messages to prompts and training examples in ids, per family; and what was sampled back to a message."""

from __future__ import annotations

from .base import Example, Renderer, TrainOnWhat
from .deepseek import DeepSeekV3DisableThinking, DeepSeekV3Thinking
from .gpt_oss import GptOss
from .kimi import KimiK2
from .messages import RendererError
from .plain import Llama3, RoleColon
from .qwen3 import Qwen3, Qwen3DisableThinking
from .registry import get_renderer, register_renderer, renderers

__all__ = [
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
