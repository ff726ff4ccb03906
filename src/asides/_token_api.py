"""`TokenParser` with formats found by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ._engine import tokens
from ._engine.format import Format
from .families import get_format
from .policies import DEFAULTS, Policies, PolicyOptions


class TokenParser(tokens.TokenParser):
    """Takes a model's token ids apart as they come. `feed` ids, then `finish`; both return a list of events."""

    __slots__ = ()

    def __init__(
        self,
        tokenizer: Any,
        format: str | Format = "auto",
        policies: Policies = DEFAULTS,
        *,
        prompt_ids: Sequence[int] | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None:
        super().__init__(tokenizer, get_format(format), policies, prompt_ids=prompt_ids, **options)
