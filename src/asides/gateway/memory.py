"""What a model thought before its calls, remembered for clients that drop thinking between tool turns.

In memory only, bounded. Two conversations share nothing: what is remembered is found again only by the same client
with the same words of the user, the same place in the turn and the same calls.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence

import msgspec

from ..config.schema import Cache
from ..dialects.framing import to_json
from ..dialects.request import CallPiece, Request, ThinkingPiece, Turn

Call = tuple[str, str]
"""A call's name and its arguments as JSON text."""


class Memory:
    """Thoughts by the conversation and the calls that they led to; the oldest go first."""

    def __init__(self, limits: Cache) -> None:
        self._limits = limits
        self._thoughts: OrderedDict[bytes, str] = OrderedDict()
        self._characters = 0

    def __len__(self) -> int:
        return len(self._thoughts)

    def keep(self, credential: str, request: Request, thinking: str, calls: Iterable[Call]) -> None:
        """Remember what was thought before these calls, in answer to this request."""
        if len(thinking) > self._limits.characters or not self._limits.entries:
            return
        key = _key(credential, request.model, request.turns, calls)
        self._characters += len(thinking) - len(self._thoughts.pop(key, ""))
        self._thoughts[key] = thinking
        while len(self._thoughts) > self._limits.entries or self._characters > self._limits.characters:
            self._characters -= len(self._thoughts.popitem(last=False)[1])

    def heal(self, credential: str, request: Request) -> tuple[Request, int, int]:
        """The request with the thoughts that its client has dropped; how many were put back, and how many not."""
        turns = list(request.turns)
        healed = missed = 0
        for index, turn in enumerate(turns):
            calls = [(piece.name, piece.arguments) for piece in turn.pieces if isinstance(piece, CallPiece)]
            if turn.role != "assistant" or not calls:
                continue
            if any(isinstance(piece, ThinkingPiece) for piece in turn.pieces):
                continue
            key = _key(credential, request.model, request.turns[:index], calls)
            thinking = self._thoughts.get(key)
            if thinking is not None:
                self._thoughts.move_to_end(key)
                turns[index] = msgspec.structs.replace(turn, pieces=(ThinkingPiece(thinking), *turn.pieces))
                healed += 1
            else:
                missed += 1
        return (msgspec.structs.replace(request, turns=tuple(turns)) if healed else request), healed, missed


def _key(credential: str, model: str, before: Sequence[Turn], calls: Iterable[Call]) -> bytes:
    """Who asked whom what, and what was called. No id is in it: models repeat ids, and some clients send none."""
    said: list[str] = []
    since = 0
    for turn in before:
        if turn.role in ("system", "developer", "user"):
            # One key may serve many people, whose data stand in the instructions.
            said.append(turn.text)
            since = 0
        elif turn.role == "assistant":
            since += 1  # the same call twice in one turn has two thoughts
    names = [(name, _canonical(arguments)) for name, arguments in calls]
    whole = to_json([credential, model, said, since, names])
    return hashlib.blake2b(whole, digest_size=32).digest()


def _canonical(arguments: str) -> str:
    """Arguments as they are whatever API they went through: some clients send them back as an object."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="deterministic").decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return arguments
