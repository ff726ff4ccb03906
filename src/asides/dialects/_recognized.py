"""Which dialect a reply is of that somebody else has received, by its looks; and what is a part of no reply."""

from __future__ import annotations

from typing import Any

from ..errors import UsageError
from . import anthropic, ollama, openai_chat, openai_completions, openai_responses
from ._base import Dialect


class UnreadableError(UsageError):
    """Nothing shows what this is: a server may have sent it. Other mistakes are those of a program."""


def recognize(frame: dict[str, Any]) -> Dialect:
    """The dialect of a whole reply or of a frame of a stream; a `UsageError` for what is of none."""
    if isinstance(frame.get("choices"), list):
        plain = frame.get("object") == "text_completion" or any("text" in each for each in _choices(frame))
        return openai_completions if plain else openai_chat
    if frame.get("object") == "chat.completion.chunk":
        return openai_chat
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
    unknown = "this is no chunk and no reply of an SDK: it has no choices, no message and no type of one"
    if "role" in frame:
        raise UsageError(f"{unknown}; give the whole response, not its message alone")
    if kind:
        raise UsageError(f"{unknown}; of chat.completions.stream() give the `chunk` of its events that have one")
    raise UnreadableError(unknown)


def _choices(frame: dict[str, Any]) -> list[dict[str, Any]]:
    found = frame.get("choices")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def says_nothing(frame: dict[str, Any]) -> bool:
    """Whether a frame is sent to keep the connection open, in any API: proxies write Anthropic's into others too."""
    return frame.get("type") == "ping"


def is_broken(frame: dict[str, Any], dialect: Dialect) -> bool:
    """Whether a frame of a stream, from which nothing was read, has no shape that its API has.

    What names a type may be a newer one.
    """
    if "choices" in frame:
        choices = frame["choices"]
        return (
            dialect not in (openai_chat, openai_completions)
            or not isinstance(choices, list)
            or not all(map(_is_choice, choices))
        )
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
    if isinstance(frame.get("choices"), list):
        return any("delta" in each for each in _choices(frame))
    return frame.get("done") is False or frame.get("object") == "chat.completion.chunk"
