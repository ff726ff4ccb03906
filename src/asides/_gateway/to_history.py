"""Replies that pass, as history keeps them. Writes nothing itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from .._history import Reply
from .._history import Turn as Kept
from ..dialects.framing import to_json
from ..dialects.request import Request, Turn
from .plan import RequestPlan
from .record import RequestRecord


def kept_replies(plan: RequestPlan, record: RequestRecord, credential: str) -> Iterator[Reply]:
    """Each choice of a reply, whole or as far as it came, with what was asked since the model's turn before it."""
    request = plan.request
    for fold in record.folds.values():
        reply = fold.reply
        yield Reply.of(
            reply.message,
            model=request.model,
            source="gateway",
            conversation=conversation_of(request, credential),
            client=credential,
            format=plan.format.name,
            asked=asked(request.turns) or ((Kept("user", request.prompt),) if request.prompt else ()),
            seconds=reply.times.seconds,
            # A reply in one piece was folded after it had come: how long its thoughts took is not known.
            thought_seconds=reply.times.thoughts if request.stream else (),
        )


def asked(turns: Sequence[Turn]) -> tuple[Kept, ...]:
    """The turns since the model's last: what users wrote and tools answered."""
    since = max((index + 1 for index, turn in enumerate(turns) if turn.role == "assistant"), default=0)
    return tuple(Kept(turn.role, turn.text, call_id=turn.call_id) for turn in turns[since:])


def conversation_of(request: Request, credential: str) -> str:
    """A name that all requests of one conversation share: the same client, the same model, the same first message."""
    first = next((turn.text for turn in request.turns if turn.role == "user"), request.prompt or "")
    return hashlib.blake2b(to_json([credential, request.model, first]), digest_size=8).hexdigest()
