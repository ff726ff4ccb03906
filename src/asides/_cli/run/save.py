"""Replies of `asides run` that are kept with their thoughts, in the history. Shows nothing."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from .reply import Choices, Outcome


class Saving:
    """Keeps the replies of one conversation after another."""

    def __init__(self, store: str) -> None:
        self._store = store
        self.failed = False
        """Whether a reply could not be kept; the person was told."""
        self.begin()

    def begin(self) -> None:
        """Another conversation begins."""
        self._conversation = uuid4().hex

    def keep(self, asked: list[dict[str, Any]], outcome: Outcome, choices: Choices) -> None:
        """Keep what came, and what was asked since the reply before."""
        if not outcome.reply.parts:
            return
        from ..._history import text_turn
        from ..history.save import save

        kept = save(
            outcome.reply,
            self._store,
            model=choices.model,
            source="run",
            conversation=self._conversation,
            format=choices.format or "",
            asked=[text_turn(turn["role"], turn["content"], call_id=turn.get("tool_call_id", "")) for turn in asked],
        )
        self.failed = self.failed or not kept
