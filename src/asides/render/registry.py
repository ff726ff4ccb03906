"""Renderers by name: those that the cards of the families name, and those that `register_renderer` adds."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from ..errors import UsageError
from ..families.index import RENDERERS
from ..families.registry import fold
from .base import Renderer
from .messages import RendererError

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


for _name, (_module, _class, _options) in RENDERERS.items():
    _factory = getattr(import_module(f".{_module}", __package__), _class)
    register_renderer(_name, partial(_factory, **_options) if _options else _factory)
