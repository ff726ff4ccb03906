"""The syntaxes behind the opener `<tool_call>`, which many families share: models slip into each other's.

A format that opens calls with it lists its own syntax first and reads the others too; the first characters decide.
"""

from __future__ import annotations

from msgspec.structs import replace

from .._engine.calls.syntax import CallSyntax
from .other_syntaxes import HERMES
from .tagged_syntaxes import GLM, QWEN_XML

OPENER = "<tool_call>"

_SIBLINGS = tuple(replace(syntax, open=(OPENER,), sibling=True) for syntax in (HERMES, QWEN_XML, GLM))


def with_siblings(*own: CallSyntax) -> tuple[CallSyntax, ...]:
    """A format's own syntaxes, then those of the other families behind the same opener, one of each kind."""
    kinds = {type(syntax) for syntax in own if OPENER in syntax.openers}
    return (*own, *(syntax for syntax in _SIBLINGS if type(syntax) not in kinds))
