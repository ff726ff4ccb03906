"""Renderers by name: those that the cards of the families name, and those that `register_renderer` adds."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from typing import Any

from ..detect._from_name import look_up
from ..errors import UsageError
from ..families._index import RENDERERS
from ..families._registry import canonical_name, fold
from . import _families
from ._base import Renderer
from ._checkpoint import CheckpointRenderer
from ._messages import RendererError

Factory = Callable[..., Renderer]

_factories: dict[str, Factory] = {}
_names: dict[str, str] = {}


def register_renderer(name: str, factory: Factory, replace: bool = False) -> None:
    """Add a renderer: `factory(tokenizer, **options)` makes it. With `replace` it takes over a name that is in use.

    Examples:
        >>> from asides.render import Qwen3, register_renderer, renderers
        >>> register_renderer("our_qwen", Qwen3)
        >>> "our_qwen" in renderers()
        True
    """
    folded = fold(name)
    if folded in _factories and not replace:
        raise UsageError(f"there is a renderer {_names[folded]!r} already; replace=True replaces it")
    _factories[folded], _names[folded] = factory, name


def get_renderer(name: str | None, tokenizer: Any, **options: Any) -> Renderer:
    """The renderer of this name, for a tokenizer. Names compare without case, `-`, `_` and spaces.

    A name of a format or of a model that has no renderer here, or None, gives a `CheckpointRenderer`: it writes with
    the tokenizer's own chat template, or with the one of the option `template`.

    Examples:
        >>> from splintr import Tokenizer
        >>> from asides.render import get_renderer
        >>> tokenizer = Tokenizer.from_pretrained("qwen3")
        >>> sampled = tokenizer.encode_with_special("<think>2+2</think>Four.<|im_end|>")
        >>> message, ended = get_renderer("qwen3", tokenizer).parse_response(sampled)
        >>> message["content"]
        [{'type': 'thinking', 'thinking': '2+2'}, {'type': 'text', 'text': 'Four.'}]
    """
    if name is None:
        return CheckpointRenderer(tokenizer, **options)
    factory = _factories.get(fold(name))
    if factory is None:
        if canonical_name(name) is not None or look_up(name) is not None:
            return CheckpointRenderer(tokenizer, model=name, **options)
        near = difflib.get_close_matches(name, renderers(), 3, 0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {', '.join(renderers())}."
        raise RendererError(f"unknown renderer {name!r}; {hint}")
    return factory(tokenizer, **options)


def renderers() -> list[str]:
    """The names of all renderers, sorted.

    Examples:
        >>> from asides.render import renderers
        >>> "qwen3" in renderers()
        True
    """
    return sorted(_names.values())


for _name, (_, _class, _options) in RENDERERS.items():
    _factory = getattr(_families, _class)
    register_renderer(_name, partial(_factory, **_options) if _options else _factory)
