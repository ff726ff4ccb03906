"""Evaluations: the answer that a scorer should see, for any harness and for three by name.

A scorer that reads thoughts finds every number that the model ever considered, and one that cuts at a tag loses what
the tag did not frame. `answer_of` is the whole idea: the text parts of an output, joined. It needs no host. The rest
are the doors of three harnesses:

- lm-evaluation-harness: `AnswerFilter`, a step of a task's `filter_list`;
- lighteval: `AnswerModel`, a model that wraps another one;
- inspect_ai: the model provider `asides`, which inspect finds by its entry point (`asides.plugins._inspect_ai`).

Importing this module imports none of them.

    answer_of("<think>10? No, 12.</think>12", model="Qwen/Qwen3-8B")      # "12"
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._api import clean

__all__ = ["answer_of"]  # the classes of hosts come by name only: `import *` shall need none of them

if TYPE_CHECKING:
    AnswerFilter: Any
    """The filter of lm-evaluation-harness, registered there as `asides` once it has been imported."""
    AnswerModel: Any
    """A model of lighteval that wraps another one."""

_LATER = {"AnswerFilter": "_lm_eval", "AnswerModel": "_lighteval"}
"""Classes of a host, and the modules that import it."""


answer_of = clean
"""The answer in a model's whole output: `asides.clean`, by the name that evaluations know."""


def __getattr__(name: str) -> Any:
    # Also how a host comes to import us: tasks of lm-evaluation-harness name `asides.plugins.evals.AnswerFilter`.
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATER[name]}", __package__), name)
