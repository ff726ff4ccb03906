"""Replies that pass, as records of history. Knows the store's records; writes nothing itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

from .._history import Call, Reply, Thought
from .._history import Turn as Kept
from ..dialects.framing import to_json
from ..dialects.request import Request, Turn
from .pipeline import Choice


def reply_of(
    request: Request,
    choice: Choice,
    *,
    credential: str,
    format: str,
    seconds: float,
    thought_seconds: float | None = None,
    cut: bool = False,
) -> Reply:
    """One choice of a reply: its clean text, and its thoughts beside it.

    `thought_seconds` is from the first thought to the answer, `cut` whether the client left before the end.
    """
    if len(choice.thoughts) != 1:
        thought_seconds = None  # how long each took is not known
    indices = [index for index, kind in choice.kinds.items() if kind == "thinking"]
    last = len(choice.thoughts) - 1
    return Reply(
        time=datetime.now(UTC),
        model=request.model,
        source="gateway",
        conversation=conversation_of(request, credential),
        client=credential,
        format=format,
        text="".join(choice.texts),
        thoughts=tuple(
            Thought(index, "".join(texts), not (choice.unclosed and number == last), thought_seconds)
            for number, (index, texts) in enumerate(zip(indices, choice.thoughts, strict=False))
        ),
        calls=tuple(Call(name, "".join(arguments), id) for name, id, arguments in choice.calls.values()),
        termination="cut" if cut or choice.unclosed else "end",
        asked=asked(request.turns) or ((Kept("user", request.prompt),) if request.prompt else ()),
        seconds=seconds,
    )


def asked(turns: Sequence[Turn]) -> tuple[Kept, ...]:
    """What was said since the model last spoke. Tools' answers and users' words; thoughts are in none of them."""
    since = max((index + 1 for index, turn in enumerate(turns) if turn.role == "assistant"), default=0)
    return tuple(Kept(turn.role, turn.text, call_id=turn.call_id) for turn in turns[since:])


def conversation_of(request: Request, credential: str) -> str:
    """A name that all requests of one conversation share: they begin with the same words of the same client."""
    first = next((turn.text for turn in request.turns if turn.role == "user"), request.prompt or "")
    return hashlib.blake2b(to_json([credential, request.model, first]), digest_size=8).hexdigest()
