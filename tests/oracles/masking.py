"""Why a mask of others and what a model samples differ, token by token: what the oracles of masks share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.oracles.comparing import Answers

SUPPLIED = "they train what the prompt supplies"
AFTER = "they train what follows the token that ends the turn, where sampling has stopped"
OTHERWISE = "they train the token that an earlier turn is ended with, which is not the one that the model ends it with"
NOT_TRAINED = "they do not train what the model writes"
UNEXPLAINED = "unexplained"
REASONS = (SUPPLIED, AFTER, OTHERWISE, NOT_TRAINED)
HEAD = ("tokens", "same", "supplied", "after the end", "other end", "not trained")


def count_masks(found: Counter[str], prompt: Any, answers: Answers, mask: Sequence[Any]) -> None:
    """Count the tokens of a prompt by whether the masks agree, and else why not."""
    for at, trained in enumerate(mask):
        found["tokens"] += 1
        same = bool(trained) == prompt.sampled[at]
        found["same" if same else reason(prompt, answers, at, bool(trained))] += 1


def reason(prompt: Any, answers: Answers, at: int, trained: bool) -> str:
    """Why the two differ."""
    owner = prompt.message[at]
    supplied = owner is not None and answers.is_supplied(at, owner)
    if not trained:
        return UNEXPLAINED if supplied or owner is None else NOT_TRAINED
    if supplied:
        return SUPPLIED
    last = next((before for before in range(at - 1, -1, -1) if prompt.sampled[before]), None)
    if last is None or any(prompt.message[each] not in (prompt.message[last], None) for each in range(last, at + 1)):
        return UNEXPLAINED
    if answers.text(last) in prompt.conversation.stops:
        return AFTER
    return OTHERWISE if at == last + 1 and answers.is_marker(at) else UNEXPLAINED


def cells(found: Counter[str]) -> list[str | int]:
    """The counts as cells of a table, as `HEAD` names them."""
    return [found[key] for key in ("tokens", "same", *REASONS)]
