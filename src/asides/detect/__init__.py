"""Which format is this? From a prompt, a chat template, a tokenizer or a model's name; no connection is opened.

Each source is a module of its own that returns a `Finding`: the formats that fit, whether the model thinks, where its
output begins, and why. `combine` puts them together.

    detect("Qwen/Qwen3-8B")                          by name
    detect(tokenizer="./Qwen3-8B")                   a folder as it was downloaded: template, tokens, names
    detect(chat_template=template, prompt=prompt)    the prompt decides where output begins
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ._result import Detection

__all__ = ["Detection", "detect"]


def detect(
    model: str | None = None,
    *,
    tokenizer: Any = None,
    chat_template: str | os.PathLike[str] | None = None,
    prompt: str | None = None,
    prompt_ids: Sequence[int] | None = None,
) -> Detection:
    """What a model speaks: its format, whether it thinks, where its output begins, and the reasons.

    Give all that you have. `tokenizer` may be a tokenizer, a `tokenizer.json` (path or dict), a folder or a GGUF; a
    chat template in it counts as well. Where sources disagree the more direct wins: prompt, template, tokenizer, name.

    Examples:
        >>> asides.detect("Qwen/Qwen3-4B-Thinking-2507").start
        'thinking'
        >>> asides.detect("openai/gpt-oss-20b").format
        'harmony'
    """
    from ._combine import combine  # here, because it takes its time, and who reads output needs only `result`

    return combine(model, tokenizer, chat_template, prompt, prompt_ids)


class _Callable(ModuleType):
    """This package, which shares its name with its one function: `asides.detect(...)` works whichever of them it is."""

    def __call__(self, *given: Any, **named: Any) -> Detection:
        return detect(*given, **named)


sys.modules[__name__].__class__ = _Callable
