"""What every chat template wants of a request, whichever client wrote it: one place for all dialects.

Most templates write the results of parallel calls without id or name, so that only their order says which call each
answers, and clients send them as they finish; many lose or refuse a second system message; and Claude Code begins its
instructions with a line for its own provider's accounts that differs between conversations, so that no server finds
the 20,000 tokens behind it in its prefix cache. `arrange` mends these three, and nothing else:

    arranged = arrange(request)
    arranged.request, arranged.changes          # ("results", "billing"); empty: the very same request
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

import msgspec

from ._request import CallPiece, Request, RequestPiece, RequestTurn, Role, TextPiece

CHANGES: Final = ("billing", "system", "results")
"""What may be changed, in this order: a line dropped, messages joined, results put in the order of their calls."""
BILLING: Final = "x-anthropic-billing-header"
"""How Claude Code's line begins."""
# By its fields and not up to the end of the line: a program that joined the blocks without a line break between them
# would lose its first instructions.
_BILLING_LINE = re.compile(BILLING + r":(?:[ \t]*[\w-]+=[^;\r\n]*(?:;|(?=[\r\n])|\Z))*[ \t]*[\r\n]*")
_INSTRUCTIONS = ("system", "developer")
_role = attrgetter("role")


class Arranged(msgspec.Struct, frozen=True):
    """A request as chat templates want it."""

    request: Request
    changes: tuple[str, ...]
    """Those of `CHANGES` that it took."""


def may_need_arranging(body: bytes) -> bool:
    """Whether `arrange` may change the request of this body, by a few searches of its bytes; wrong only in saying so.

    For bodies that would otherwise be sent on without being read.
    """
    instructions = body.count(b'"system"') + body.count(b'"developer"')
    return instructions > 1 or body.count(b'"tool"') > 1 or BILLING.encode() in body


def arrange(request: Request) -> Arranged:
    """The request with its leading instructions in one message, without a billing line, and with results in order."""
    turns: Sequence[RequestTurn] = request.turns
    if set(map(_role, turns)) <= {"user"}:  # most of all requests are one question
        return Arranged(request, ())
    changes: list[str] = []
    for change, step in zip(CHANGES, (_without_billing, _joined_instructions, _ordered_results), strict=True):
        changed = step(turns)
        if changed is not turns:
            turns = changed
            changes.append(change)
    if not changes:
        return Arranged(request, ())
    return Arranged(msgspec.structs.replace(request, turns=tuple(turns)), tuple(changes))


def _without_billing(turns: Sequence[RequestTurn]) -> Sequence[RequestTurn]:
    first = turns[0] if turns and turns[0].role in _INSTRUCTIONS and turns[0].pieces else None
    piece = first.pieces[0] if first is not None else None
    if first is None or not isinstance(piece, TextPiece) or not piece.text.startswith(BILLING):
        return turns
    match = _BILLING_LINE.match(piece.text)
    if match is None:
        return turns
    rest = piece.text[match.end() :]
    pieces = ((msgspec.structs.replace(piece, text=rest),) if rest else ()) + first.pieces[1:]
    return [*([msgspec.structs.replace(first, pieces=pieces)] if pieces else []), *turns[1:]]


def _joined_instructions(turns: Sequence[RequestTurn]) -> Sequence[RequestTurn]:
    count = next((number for number, turn in enumerate(turns) if turn.role not in _INSTRUCTIONS), len(turns))
    if count < 2:
        return turns
    leading = turns[:count]
    # Templates that know only one of the two names know `system`.
    role: Role = "system" if any(turn.role == "system" for turn in leading) else "developer"
    extra: dict[str, object] = {}
    for turn in reversed(leading):
        extra |= turn.extra  # where two say different things, the first counts
    return [RequestTurn(role, _joined_pieces(leading), extra=extra), *turns[count:]]


def _joined_pieces(leading: Sequence[RequestTurn]) -> tuple[RequestPiece, ...]:
    pieces = [piece for turn in leading for piece in turn.pieces]
    texts = [piece.text for piece in pieces if isinstance(piece, TextPiece) and not piece.extra]
    if len(texts) == len(pieces):
        return (TextPiece("\n\n".join(text for text in texts if text)),)
    # Pieces that carry something of their own (`cache_control`, an image) stay apart; templates write the texts of a
    # message without anything between them.
    found: list[RequestPiece] = list(leading[0].pieces)
    for turn in leading[1:]:
        first, *others = turn.pieces or (TextPiece(""),)
        if isinstance(first, TextPiece) and first.text and found:
            first = msgspec.structs.replace(first, text=f"\n\n{first.text}")
        found += [first, *others]
    return tuple(found)


def _ordered_results(turns: Sequence[RequestTurn]) -> Sequence[RequestTurn]:
    found: list[RequestTurn] | None = None
    calls: dict[str, int] = {}
    """Places of the calls of the assistant's turns just before, by their ids."""
    start = 0
    while start < len(turns):
        turn = turns[start]
        if turn.role == "assistant":
            for piece in turn.pieces:
                if isinstance(piece, CallPiece) and piece.id:
                    calls.setdefault(piece.id, len(calls))
            start += 1
            continue
        stop = start
        while stop < len(turns) and turns[stop].role == "tool":
            stop += 1
        # Results of calls that are not known stay where they are: nobody can say where they belong.
        places = [place for place in range(start, stop) if turns[place].call_id in calls]
        ordered = [place for _, place in sorted((calls[turns[place].call_id], place) for place in places)]
        if ordered != places:
            found = list(turns) if found is None else found
            for place, source in zip(places, ordered, strict=True):
                found[place] = turns[source]
        calls = {}
        start = max(stop, start + 1)
    return turns if found is None else found
