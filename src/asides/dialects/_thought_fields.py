"""Fields of replies that may hold the thought besides the ones that thinking is read from. Knows no API.

Servers repeat what a model thought under names of their own: with a signature beside it, in pieces, as ids of tokens.
Such a field obeys `reasoning` like the thought itself: where thinking is dropped nothing of it passes, elsewhere it
passes without the text that the client is sent already. What is left is what a client has to send back: signatures,
encrypted data.

    without_text([{"type": "reasoning.text", "text": "Hm.", "signature": "s"}], "Hm.")
    # [{"type": "reasoning.text", "signature": "s"}]
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

TEXTS = frozenset(
    {
        "reasoning",
        "reasoning_content",
        "reasoning_summary",
        "reasoning_text",
        "thinking",
        "thinking_content",
        "thought",
        "thoughts",
    }
)
"""Names under which servers write a thought as text."""
ID_FIELDS: frozenset[str] = frozenset(
    {
        "completion_token_ids",
        "output_ids",
        "output_token_ids",
        "prompt_token_ids",
        "reasoning_token_ids",
        "response_token_ids",
        "token_ids",
    }
)
"""Names under which servers write ids of tokens, which spell the thought. They reach nobody who has not asked for ids:
the gateway may have."""
ASKS_FOR_IDS = ("return_token_ids", "return_prompt_token_ids")
"""The request fields by which a client asks for ids."""
THOUGHT_FIELDS: frozenset[str] = (
    TEXTS
    | ID_FIELDS
    | {
        "provider_specific_fields",
        "raw_output",
        "reasoning_details",
        "reasoning_items",
        "reasoning_logprobs",
        "sglext",
        "thinking_blocks",
    }
)
"""Every field of a reply, a choice, a message or a delta that is known to hold a thought, or to have one in it."""
_INNER = TEXTS | {"content", "summary", "text"}
"""Where text stands inside such a field."""
_FRAME = frozenset({"format", "id", "index", "type"})
"""What says nothing without the rest of its object."""
DEEPEST = 100
"""Levels of such a field that are looked into; what is nested deeper is left out of it."""
CALL_FIELDS = frozenset({"extra_content"})
"""Fields of a call that pass whatever happens to thinking: Gemini refuses a call that comes back without its own."""


def without_text(value: Any, thinking: str, depth: int = DEEPEST) -> Any:
    """A field that may hold the thought, without text that is in `thinking`; None where nothing else is in it."""
    if isinstance(value, str):
        return None if value in thinking else value
    if not depth:
        return None
    if isinstance(value, list):
        kept = [each for each in (without_text(each, thinking, depth - 1) for each in value) if each is not None]
        return kept or None
    if not isinstance(value, dict):
        return value
    fields: dict[str, Any] = {}
    for name, inner in value.items():
        # A string of another name is no text: `type` may well be a word of the thought.
        left = inner if isinstance(inner, str) and name not in _INNER else without_text(inner, thinking, depth - 1)
        if left is not None:
            fields[name] = left
    return fields if fields.keys() - _FRAME else None


def unknown_parts(fields: Mapping[str, Any], known: Container[str], thinking: str = "") -> dict[str, Any]:
    """Fields that only the same API understands, without what `thinking` says already; empty ones are left out."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if name in known or value is None or value == [] or value == {}:
            continue
        left = without_text(value, thinking) if name in THOUGHT_FIELDS else value
        if left is not None:
            found[name] = left
    return found


def asks_for_ids(request_fields: Mapping[str, Any]) -> bool:
    """Whether a client that sends these fields asks for ids."""
    return any(request_fields.get(name) for name in ASKS_FOR_IDS)


def shown(
    fields: dict[str, Any],
    *,
    show: bool,
    passed: Container[str] = (),
    hidden: Container[str] = THOUGHT_FIELDS,
    ids: bool = False,
) -> dict[str, Any]:
    """Those that a client is sent. Where it is shown no thinking, none that is `hidden`, but those `passed` by name.

    `ids`: whether it has asked for ids of tokens; else it is sent none.
    """
    if not fields:
        return fields
    if not ids:
        fields = _without_ids(fields, passed)
    if show:
        return fields
    return {name: value for name, value in fields.items() if name in passed or name not in hidden}


def _without_ids(fields: dict[str, Any], passed: Container[str]) -> dict[str, Any]:
    """The same without ids of tokens, those inside of an object (SGLang's `sglext`) included."""
    if not any(name in ID_FIELDS or isinstance(value, dict) for name, value in fields.items()):
        return fields
    kept: dict[str, Any] = {}
    for name, value in fields.items():
        if name in ID_FIELDS and name not in passed:
            continue
        if isinstance(value, dict) and not ID_FIELDS.isdisjoint(value):
            value = {inner: each for inner, each in value.items() if inner not in ID_FIELDS}
        kept[name] = value
    return kept


def retyped_field(characters: int) -> dict[str, Any]:
    """How many characters of text turned out to be a thought once they were sent, for the end of a stream that cannot
    take them back: a field of our own."""
    return {"retyped_characters": characters} if characters else {}


class Everything:
    """Holds every name: what `shown` hides of a message, whose unknown fields nobody can vouch for."""

    def __contains__(self, name: object) -> bool:
        return True


EVERYTHING = Everything()
"""As `hidden` of `shown`: only what is passed by name is sent."""
