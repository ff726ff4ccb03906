"""Proofs of earlier turns, put back to where they stood: what a provider wants back with its thoughts and calls.

A client sends a turn back as its own API has it: texts may be joined, thoughts may be missing or stand elsewhere. A
proof knows how many texts and calls stood before it, and goes back behind so many of those that are there. The
thoughts that the client sent with the turn make room for it: they are the same, without what the provider wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from ..dialects._providers import Recovery
from ..dialects._request import CallPiece, RequestPiece, RequestTurn, TextPiece, ThinkingPiece
from ..dialects.openai_chat._request import NAME as CHAT
from ..dialects.openai_chat._request import SKIPPED_SIGNATURE
from ..reply._items import PlacedProof
from .capsules import PREFIX


def place_proofs(turn: RequestTurn, proofs: Sequence[PlacedProof], thinking: str = "") -> RequestTurn:
    """The turn with these proofs. `thinking`: the text of its thoughts, for upstreams that have a field for it."""
    waiting = [proof for proof in proofs if not proof.call]
    of_calls = {proof.calls: proof for proof in proofs if proof.call}
    sent = [piece.text for piece in turn.pieces if isinstance(piece, ThinkingPiece)]
    thinking = thinking or "\n\n".join(filter(None, sent))
    pieces: list[RequestPiece] = []
    texts = calls = 0

    def put(*, at_call: bool = False) -> None:
        nonlocal thinking
        # Clients join texts, so before a call those count that can no longer come.
        while waiting and waiting[0].calls <= calls and (at_call or waiting[0].texts <= texts):
            pieces.append(ThinkingPiece(thinking, proof=waiting.pop(0)))
            thinking = ""

    for piece in turn.pieces:
        if isinstance(piece, ThinkingPiece):
            if not proofs or len(of_calls) == len(proofs):
                pieces.append(piece)
            continue
        put(at_call=isinstance(piece, CallPiece))
        if isinstance(piece, CallPiece):
            piece = msgspec.structs.replace(piece, proof=of_calls[calls]) if calls in of_calls else piece
            calls += 1
        elif isinstance(piece, TextPiece) and piece.text:
            texts += 1
        pieces.append(piece)
    pieces += [ThinkingPiece("", proof=proof) for proof in waiting]
    return msgspec.structs.replace(turn, pieces=tuple(pieces))


def has_proof(turn: RequestTurn) -> bool:
    """Whether a turn has what a provider wants back with it already."""
    return any(isinstance(piece, ThinkingPiece | CallPiece) and piece.proof is not None for piece in turn.pieces)


class OpenedTurn(NamedTuple):
    """A turn without capsules: what was in those that opened stands in its place."""

    turn: RequestTurn
    opened: int
    unopened: int


def open_turn(turn: RequestTurn, open_capsule: Callable[[str], PlacedProof | None]) -> OpenedTurn:
    """Open what a client carries with a turn. What does not open is left out; its text stays."""
    proofs: list[PlacedProof] = []
    unopened = 0
    pieces: list[RequestPiece] = []
    for piece in turn.pieces:
        if isinstance(piece, ThinkingPiece) and (carried := _carried(piece)):
            found = [proof for capsule in carried if (proof := open_capsule(capsule)) is not None]
            proofs += found
            unopened += len(carried) - len(found)
            piece = ThinkingPiece(
                piece.text,
                "" if piece.signature.startswith(PREFIX) else piece.signature,
                tuple(detail for detail in piece.details if not _capsule_of(detail)),
                piece.written,
                piece.extra,
            )
            if not (piece.text or piece.signature or piece.details):
                continue
        pieces.append(piece)
    if not proofs and not unopened:
        return OpenedTurn(turn, 0, 0)
    turn = msgspec.structs.replace(turn, pieces=tuple(pieces))
    return OpenedTurn(place_proofs(turn, proofs) if proofs else turn, len(proofs), unopened)


def may_carry(turn: RequestTurn) -> bool:
    """Whether a turn has capsules."""
    return any(isinstance(piece, ThinkingPiece) and bool(_carried(piece)) for piece in turn.pieces)


def _carried(piece: ThinkingPiece) -> list[str]:
    """The capsules of a thought."""
    signed = [piece.signature] if piece.signature.startswith(PREFIX) else []
    return [*signed, *filter(None, map(_capsule_of, piece.details))]


def _capsule_of(detail: dict[str, Any]) -> str:
    """The capsule in a detail or an item; empty where there is none."""
    for name in ("encrypted_content", "data", "signature"):
        if isinstance(held := detail.get(name), str) and held.startswith(PREFIX):
            return held
    return ""


class ThoughtRecovery(NamedTuple):
    """How a conversation goes on in which a provider has refused a thought."""

    how: Recovery
    turns: int
    """How many turns the assistant had then. What it thought later is not concerned."""

    def apply(self, turns: Sequence[RequestTurn]) -> tuple[RequestTurn, ...]:
        """The turns as they are sent from then on: a function of these alone, so each request begins as before."""
        change = {"without": _without_thoughts, "skip_value": _with_skipped_signature}.get(self.how)
        if change is None:
            return tuple(turns)
        found, left = list(turns), self.turns
        for place, turn in enumerate(turns):
            if turn.role == "assistant" and left:
                found[place], left = change(turn), left - 1
        return tuple(found)


def waits_without_thought(turns: Sequence[RequestTurn]) -> bool:
    """Whether results of calls are what was said last, and no thought stands before those calls."""
    if not turns or turns[-1].role != "tool":
        return False
    last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    return last is not None and not any(isinstance(piece, ThinkingPiece) for piece in last.pieces)


def _without_thoughts(turn: RequestTurn) -> RequestTurn:
    """A turn without its thoughts, and without what came with its calls and texts: ids of items bind them to it."""
    pieces: list[RequestPiece] = []
    for piece in turn.pieces:
        if isinstance(piece, CallPiece):
            item = piece.extra.get("item")
            extra = {name: held for name, held in piece.extra.items() if name not in ("id", "extra_content")}
            if isinstance(item, dict):
                extra["item"] = {name: held for name, held in item.items() if name != "id"}
            piece = msgspec.structs.replace(piece, proof=None, extra=extra)
        elif isinstance(piece, TextPiece) and "message" in piece.extra:
            message = {name: held for name, held in piece.extra["message"].items() if name != "id"}
            piece = msgspec.structs.replace(piece, extra={**piece.extra, "message": message})
        if not isinstance(piece, ThinkingPiece):
            pieces.append(piece)
    return msgspec.structs.replace(turn, pieces=tuple(pieces))


def _with_skipped_signature(turn: RequestTurn) -> RequestTurn:
    """A turn whose first call has the value that stands for a signature; its thoughts stay."""
    pieces, calls = list(turn.pieces), 0
    for place, piece in enumerate(pieces):
        if isinstance(piece, CallPiece):
            extra = {name: held for name, held in piece.extra.items() if name not in SKIPPED_SIGNATURE}
            proof = None if calls else PlacedProof(0, 0, CHAT, SKIPPED_SIGNATURE, call=True)
            pieces[place] = msgspec.structs.replace(piece, proof=proof, extra=extra)
            calls += 1
    return msgspec.structs.replace(turn, pieces=tuple(pieces))
