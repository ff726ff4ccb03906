"""`TokenParser` with formats found by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._engine import tokens
from ._engine.format import Format
from .families import get_format


class TokenParser(tokens.TokenParser):
    """Takes a model's token ids apart as they come. `feed` ids, then `finish`; both return a list of events."""

    __slots__ = ()

    def __init__(
        self, tokenizer: Any, format: str | Format = "auto", *, prompt_ids: Sequence[int] | None = None, **policies: Any
    ) -> None:
        super().__init__(tokenizer, get_format(format), prompt_ids=prompt_ids, **policies)
