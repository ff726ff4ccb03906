"""What was asked before each reply of a record that is imported: the turns of others, or the question beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..._history import text_turn
from ...analysis._traces import FoundReplies, is_of_model, look_up
from ...dialects._request import RequestTurn
from ...families._registry import formats, get_format

ROLES = {
    "user": "user",
    "human": "user",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    "ipython": "tool",
}
"""Who asks, by the names that files use, and by ours."""
QUESTION_FIELDS = ("messages", "prompt", "question", "query", "problem", "instruction", "input")
"""Where a question is looked for beside an output, in this order; the first that holds one is taken."""
_WORDS = ("content", "value", "text")
_PLAIN = re.compile(r"[\w: ]*")


def find_asked(record: Any, found: FoundReplies) -> list[tuple[RequestTurn, ...]]:
    """For each reply that was found in a record what was asked since the one before."""
    nothing: list[tuple[RequestTurn, ...]] = [()] * len(found.replies)
    if not isinstance(record, dict) or not found.replies:
        return nothing
    turns = look_up(record, found.field)
    if _is_conversation(turns):
        asked, _ = _in_turns(turns)
        # A turn of the model may hold several replies, or none: then nobody can say which question each answers.
        return asked if len(asked) == len(nothing) else nothing
    # Several outputs beside one question answer the same.
    return [_beside(record, found.field)] * len(nothing)


def _is_conversation(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(turn, dict) and _speaker(turn) for turn in value)


def _speaker(turn: dict[str, Any]) -> Any:
    return turn.get("role", turn.get("from"))


def _in_turns(turns: list[dict[str, Any]]) -> tuple[list[tuple[RequestTurn, ...]], tuple[RequestTurn, ...]]:
    """What stands before each turn of the model, and what stands after the last."""
    asked: list[tuple[RequestTurn, ...]] = []
    waiting: list[RequestTurn] = []
    for turn in turns:
        if is_of_model(turn):
            asked.append(tuple(waiting))
            waiting = []
        elif (role := ROLES.get(str(_speaker(turn)))) and (text := _text(turn)):
            call = turn.get("tool_call_id")
            waiting.append(text_turn(role, text, call_id=call if isinstance(call, str) else ""))
    return asked, tuple(waiting)


def _text(turn: dict[str, Any]) -> str:
    """The words of a turn: a text, or the texts of its blocks."""
    content = next((turn[name] for name in _WORDS if turn.get(name)), "")
    if isinstance(content, list):
        texts = [block.get("text") for block in content if isinstance(block, dict)]
        return "\n\n".join(text for text in texts if isinstance(text, str) and text)
    return content if isinstance(content, str) else ""


def _beside(record: dict[str, Any], field: str) -> tuple[RequestTurn, ...]:
    taken = field.partition(".")[0]
    for name in QUESTION_FIELDS:
        value = record.get(name)
        if not value or name == taken:
            continue
        if _is_conversation(value):
            return _in_turns(value)[1]
        if isinstance(value, str):
            more = record.get("input") if name == "instruction" and taken != "input" else None
            text = f"{value}\n\n{more}" if isinstance(more, str) and more else value
            return () if _is_rendered(text) else (text_turn("user", text),)
    return ()


@cache
def _headers() -> Sequence[str]:
    found = {header.strip() for name in formats() for header in get_format(name).assistant}
    return sorted(header for header in found if not _PLAIN.fullmatch(header))  # people write `Assistant:` too


def _is_rendered(text: str) -> bool:
    """Whether a question is a whole prompt as a chat template writes it: earlier thoughts may stand in that."""
    return any(header in text for header in _headers())
