"""What callers give to a conversation, checked: a mistake is refused in words, or would change ids unseen."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from ..errors import UsageError
from ._layout import Role
from ._template import as_json

MOST_ID = (1 << 32) - 1
"""The highest id that any tokenizer can have: servers and trainers hold them in 32 bits."""
_ROLES: tuple[Role, ...] = get_args(Role)


def read_messages(
    given: Iterable[Mapping[str, Any]], none: str = "a conversation needs at least one message"
) -> tuple[Mapping[str, Any], ...]:
    """Messages of a conversation. `none`: what is wrong where there are none."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise UsageError(f"messages are a list of dictionaries with `role` and `content`, not a {_kind(given)}")
    messages = tuple(given)
    if not messages:
        raise UsageError(none)
    # Dataclasses and models of pydantic are messages too.
    found = tuple(message if isinstance(message, Mapping) else as_json(message) for message in messages)
    for place, message in enumerate(found):
        if not isinstance(message, Mapping):
            raise UsageError(f"message {place} is no dictionary but a {_kind(messages[place])}")
    return found


def read_texts(given: Iterable[str], name: str) -> tuple[str, ...]:
    """Several texts. One alone is that one, and not its letters."""
    if isinstance(given, str):
        return (given,)
    texts = tuple(given) if isinstance(given, Iterable) else None
    if texts is None or not all(isinstance(each, str) for each in texts):
        raise UsageError(f"{name} is a list of texts, not {given!r}"[:300])
    return texts


def read_roles(given: Iterable[str]) -> tuple[str, ...]:
    """Whose words are protected. One that nobody has would protect nothing."""
    roles = read_texts(given, "protect")
    unknown = [role for role in roles if role not in _ROLES]
    if unknown:
        raise UsageError(f"protect names some of {', '.join(_ROLES)}; not {unknown[0]!r}")
    return roles


def read_ids(given: Iterable[int]) -> tuple[int, ...]:
    """Ids that were sampled."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise UsageError(f"ids of tokens are a list of whole numbers, not a {_kind(given)}")
    ids = tuple(given)
    # Nearly always plain numbers, of which there are thousands: no call for each.
    if set(map(type, ids)) != {int}:
        ids = tuple(map(_read_id, ids))
    if not ids or (min(ids) >= 0 and max(ids) <= MOST_ID):
        return ids
    wrong = next(place for place, id in enumerate(ids) if not 0 <= id <= MOST_ID)
    # Whole rows of a batch are given at times, or labels with what is left out of the loss.
    raise UsageError(f"id {wrong} is {str(ids[wrong])[:40]}, which no token has: padding is left out, and labels")


def _read_id(given: Any) -> int:
    try:
        if not isinstance(given, bool):
            return operator.index(given)
    except TypeError:
        pass
    raise UsageError(f"an id of a token is a whole number, not {given!r}"[:300])


def read_logprobs(given: Iterable[float] | None, count: int) -> tuple[float, ...] | None:
    """The log probability of each of so many ids."""
    if given is None:
        return None
    try:
        found = tuple(map(float, given)) if not isinstance(given, str | bytes) else None
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None:
        raise UsageError("logprobs are a list of numbers, one for each id; without them, None")
    if len(found) != count:
        raise UsageError(f"there are {len(found)} log probabilities for {count} ids")
    return found


def check_encodable(text: str) -> None:
    """Refuse half of a surrogate pair: it is no character, and no tokenizer has an id for it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"the conversation has half of a surrogate pair, U+{ord(text[error.start]):X}, after "
            f"{text[max(0, error.start - 20) : error.start]!r}: it is no character, and no token has it. "
            "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace') puts whole ones in place of halves"
        ) from None


def _kind(value: object) -> str:
    return type(value).__name__
