"""Which dialect a reply is of that somebody else has received, by what it looks like."""

from __future__ import annotations

from typing import Any

from ..errors import UsageError
from . import anthropic, ollama, openai_chat, openai_completions, openai_responses
from ._base import Dialect


def recognize(frame: dict[str, Any]) -> Dialect:
    """The dialect of a whole reply or of a frame of a stream; a `UsageError` for what is of none."""
    choices = frame.get("choices")
    if isinstance(choices, list):
        plain = frame.get("object") == "text_completion" or any("text" in each for each in choices)
        return openai_completions if plain else openai_chat
    kind = frame.get("type")
    error = frame.get("error")
    if isinstance(kind, str):
        if kind == "error":
            return anthropic if error else openai_responses
        if kind.startswith("response."):
            return openai_responses
        if kind in ("message", "ping") or kind.startswith(("message_", "content_block_")):
            return anthropic
    if frame.get("object") == "response":
        return openai_responses
    if "done" in frame or isinstance(frame.get("message"), dict) or isinstance(error, str):
        return ollama
    if error:
        return openai_chat
    hint = "; of chat.completions.stream() give the `chunk` of its events that have one" if kind else ""
    if "role" in frame:
        hint = "; give the whole response, not its message alone"
    raise UsageError(f"this is no chunk and no reply of an SDK: it has no choices, no message and no type of one{hint}")


def is_broken(frame: dict[str, Any]) -> bool:
    """Whether a frame from which nothing was read has a shape that no API has; what names a type may be a newer one."""
    if "choices" in frame:
        choices = frame["choices"]
        return not isinstance(choices, list) or not all(map(_is_choice, choices))
    if isinstance(frame.get("type"), str):
        return False
    try:
        recognize(frame)
    except UsageError:
        return True
    return False


def _is_choice(choice: Any) -> bool:
    if not isinstance(choice, dict) or not isinstance(choice.get("text"), str | None):
        return False
    delta = choice.get("delta")
    return delta is None or (
        isinstance(delta, dict)
        and isinstance(delta.get("content"), str | list | None)
        and isinstance(delta.get("tool_calls"), list | None)
    )


def is_chunk(frame: dict[str, Any]) -> bool:
    """Whether this is a piece of a streamed reply. What looks the same whole and in pieces is none."""
    kind = frame.get("type")
    if isinstance(kind, str):
        return kind not in ("message", "error")
    choices = frame.get("choices")
    if isinstance(choices, list):
        return any("delta" in each for each in choices)
    return frame.get("done") is False
