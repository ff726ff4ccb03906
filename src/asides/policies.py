"""The choices that a caller may make, with their types. The README says what each means."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict

CallsInThinking = Literal["resolve", "never", "always"]
Start = Literal["text", "thinking", "undecided"]
Mentions = Literal["literal", "marker"]
Whitespace = Literal["tidy", "exact"]


class ReadingPolicies(TypedDict, total=False):
    """How to read, wherever reading begins."""

    calls_in_thinking: CallsInThinking | None
    mentions: Mentions
    whitespace: Whitespace
    tools: Sequence[Mapping[str, Any]] | None
    seed: int
    strict: bool | Collection[str]
    limit: int
    collect: bool
    calls: bool
    repair: bool


class Policies(ReadingPolicies, total=False):
    """Every choice."""

    start: Start | None
    prompt: str | None
