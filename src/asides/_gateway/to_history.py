"""Replies that pass, as history keeps them. Writes nothing itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import msgspec

from .._history import KeptReply
from ..dialects._framing import to_json
from ..dialects._request import Request, RequestTurn, TextPiece
from .plan import RequestPlan
from .record import RequestRecord


def kept_replies(plan: RequestPlan, record: RequestRecord, credential: str) -> Iterator[KeptReply]:
    """Each choice of a reply, whole or as far as it came, with what was asked since the model's turn before it."""
    request = plan.request
    for fold in record.folds.values():
        reply = fold.reply
        if not request.stream:
            # A reply in one piece was folded after it had come: when its parts came is not known.
            times = msgspec.structs.replace(reply.times, first_thought=None, first_answer=None, thoughts=())
            reply = msgspec.structs.replace(reply, times=times)
        yield KeptReply.of(
            reply,
            model=request.model,
            source="gateway",
            conversation=conversation_of(request, credential),
            client=credential,
            format=plan.format.name,
            asked=asked(request),
        )


def asked(request: Request) -> Sequence[RequestTurn]:
    """The turns since the model's last: what users wrote and tools answered; or the bare prompt."""
    turns = request.turns
    since = max((index + 1 for index, turn in enumerate(turns) if turn.role == "assistant"), default=0)
    return turns[since:] or ([RequestTurn("user", (TextPiece(request.prompt),))] if request.prompt else [])


def conversation_of(request: Request, credential: str) -> str:
    """A name that all requests of one conversation share: the same client, the same model, the same first message."""
    first = next((turn.text for turn in request.turns if turn.role == "user"), request.prompt or "")
    return hashlib.blake2b(to_json([credential, request.model, first]), digest_size=8).hexdigest()
