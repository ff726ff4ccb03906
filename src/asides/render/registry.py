"""Renderers by name. `register_renderer` adds one."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import UsageError
from ..families.registry import fold
from .base import Renderer
from .deepseek import DeepSeekV3DisableThinking, DeepSeekV3Thinking
from .gpt_oss import GptOss
from .kimi import KimiK2
from .messages import RendererError
from .plain import Llama3, RoleColon
from .qwen3 import Qwen3, Qwen3DisableThinking

Factory = Callable[..., Renderer]

_factories: dict[str, Factory] = {}
_names: dict[str, str] = {}


def register_renderer(name: str, factory: Factory, replace: bool = False) -> None:
    """Add a renderer: `factory(tokenizer, **options)` makes it. With `replace` it takes over a name that is in use."""
    folded = fold(name)
    if folded in _factories and not replace:
        raise UsageError(f"there is a renderer {_names[folded]!r} already; replace=True replaces it")
    _factories[folded], _names[folded] = factory, name


def get_renderer(name: str, tokenizer: Any, **options: Any) -> Renderer:
    """The renderer of this name, for a tokenizer. Names compare without case, `-`, `_` and spaces."""
    factory = _factories.get(fold(name))
    if factory is None:
        near = difflib.get_close_matches(name, renderers(), 3, 0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(renderers())}."
        raise RendererError(f"unknown renderer {name!r}; {hint}")
    return factory(tokenizer, **options)


def renderers() -> list[str]:
    """The names of all renderers, sorted."""
    return sorted(_names.values())


for _class in (
    RoleColon,
    Llama3,
    Qwen3,
    Qwen3DisableThinking,
    DeepSeekV3Thinking,
    DeepSeekV3DisableThinking,
    KimiK2,
    GptOss,
):
    register_renderer(_class.name, _class)
register_renderer("deepseekv3", DeepSeekV3DisableThinking)
register_renderer("gpt_oss_no_sysprompt", GptOss)
for _effort in ("low", "medium", "high"):
    register_renderer(f"gpt_oss_{_effort}_reasoning", partial(GptOss, effort=_effort))
