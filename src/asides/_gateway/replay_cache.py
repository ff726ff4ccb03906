"""The replay cache: what a model thought before its calls, for clients that drop thinking between tool turns.

A client sends its conversation anew with every request. Where a turn with calls comes back without its thinking, the
thinking is put back here before the upstream sees it. It must never come from another conversation, so it is found in
two ways only, both under the same credential and model:

- by the id of a call that this gateway made at random itself. An id that a model or an upstream wrote is no proof:
  Kimi K2 writes `functions.f:0` and Cohere `0` in every conversation;
- by a hash of everything that stands before the turn (texts, calls, results of tools, images), of the calls of the
  turn itself, and of the user and session that the client names.

What is found by neither is a miss: it is counted, and never answered by a nearby entry. In memory only, bounded by the
`replay_cache` section of the configuration; the oldest entries go first.

Thoughts and arguments go back as the model wrote them, to the byte, also where the client does send them: it was sent
thoughts without the whitespace around them, and some clients write arguments anew. A server then finds the turn in its
prefix cache.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from .._config.schema import ReplayCacheSettings
from .._engine.calls.ids import make_id
from ..dialects.framing import to_json
from ..dialects.request import (
    OWN_SIGNATURE,
    CallPiece,
    ImagePiece,
    OtherPiece,
    Request,
    TextPiece,
    ThinkingPiece,
    Turn,
    piece_kinds,
)
from ..parts import Thinking, ToolCall
from ..reply.reply import Reply

SESSION_HEADERS = (
    "session_id",
    "session-id",
    "x-session-id",
    "conversation_id",
    "x-conversation-id",
    "x-claude-code-session-id",
)
"""Headers in which clients name their session."""
SESSION_FIELDS = ("prompt_cache_key", "safety_identifier")
"""Fields of a request that differ between users or sessions; besides `user` and `metadata.user_id`."""
MOST_TURNS = 1000
"""Only so many of the last turns with calls are looked up: the thoughts of older ones have left the cache."""
MOST_PARTS = 64
"""A call that stands behind more parts than this is found by its hash alone."""


class ConversationHash:
    """Where a conversation stands: whose it is, and a hash of every turn so far.

    It is hashed when a key is asked for: most requests have no calls, and no key is ever wanted.
    """

    __slots__ = ("_credential", "_hash", "_headers", "_owner", "_request", "_turns")

    def __init__(
        self, credential: str, request: Request, headers: Mapping[str, str], turns: Iterable[Turn] = ()
    ) -> None:
        """It stands behind these turns."""
        self._credential = credential
        self._request = request
        self._headers = headers
        self._owner = b""
        self._hash: hashlib.blake2b | None = None
        self._turns = list(turns)
        """Those that are not in the hash yet."""

    @property
    def owner(self) -> bytes:
        """Whose ids count: those of one credential and one model."""
        if not self._owner:
            self._owner = _digest(self._credential, self._request.model)
        return self._owner

    def _begin(self) -> hashlib.blake2b:
        request = self._request
        metadata = request.extra.get("metadata")
        session = [
            *(self._headers.get(name) for name in SESSION_HEADERS),
            *(request.extra.get(name) for name in SESSION_FIELDS),
            metadata.get("user_id") if isinstance(metadata, dict) else None,
        ]
        hash = hashlib.blake2b(digest_size=32)
        _update(hash, (self.owner, request.user or "", to_json(session)))
        return hash

    def add_turn(self, turn: Turn) -> None:
        """Go on behind a turn."""
        self._turns.append(turn)

    def key(self, calls: Iterable[tuple[str, str]]) -> bytes:
        """The key of a turn here that makes these calls (name, arguments)."""
        # Copied, so that each turn costs its own length and not that of the conversation before it: 4,000 turns with
        # calls froze the gateway when each was hashed from the start.
        if self._hash is None:
            self._hash = self._begin()
        for turn in self._turns:
            _update_turn(self._hash, turn)
        self._turns.clear()
        here = self._hash.copy()
        for name, arguments in calls:
            _update(here, ("call", name, _canonical(arguments)))
        return here.digest()


class ReplayEntry(NamedTuple):
    """What a model thought and called."""

    thinking: str
    """As clients see it."""
    written: str
    """As the model wrote it, with the whitespace inside its markers; empty where the upstream split it off."""
    arguments: tuple[str, ...]
    """Those of the calls, as the model wrote them."""
    keys: tuple[bytes, ...]
    """Under which it is found; they go with it."""

    @property
    def size(self) -> int:
        """Characters that it holds."""
        return len(self.thinking) + len(self.written) + sum(map(len, self.arguments))


class Restored(msgspec.Struct, frozen=True):
    """A request as the upstream shall see it."""

    request: Request
    hits: int
    """How many dropped thoughts were put back."""
    misses: int
    """How many were not known."""
    exact: int
    """Turns that the client did send with their thinking, and that go back as the model wrote them instead."""
    missed: tuple[bytes, ...]
    """The keys of turns that are not in the cache: another process may have them (`shared_thoughts`)."""
    conversation: ConversationHash
    """Where its reply will stand."""


class ReplayCache:
    """Thoughts by the calls that they led to. Safe to use from threads, in which large requests are planned."""

    def __init__(self, limits: ReplayCacheSettings) -> None:
        self._limits = limits
        self._entries: OrderedDict[int, ReplayEntry] = OrderedDict()
        self._by_key: dict[bytes, int] = {}
        self._characters = 0
        self._count = 0
        self._lock = threading.Lock()

    @property
    def limit(self) -> int:
        """Characters beyond which a thought is not stored, so that nobody needs to collect them; 0 where it is off."""
        return self._limits.characters if self._limits.entries else 0

    def put(
        self,
        conversation: ConversationHash,
        reply: Reply,
        seed: int,
        raw: str = "",
        framing: tuple[str, str] | None = None,
    ) -> ReplayEntry | None:
        """Keep what was thought before the calls of a reply, if there are both; returns what is kept.

        `seed`: that of the ids made for it; `raw`: the text that the spans of its parts count, where it was kept;
        `framing`: the whitespace that the template writes around thoughts, where it is known.
        """
        thinking = reply.thinking
        # Calls that may not be run are not sent to clients as calls, so none of them comes back.
        calls = [
            (place, call) for place, call in enumerate(reply.parts) if isinstance(call, ToolCall) and call.error is None
        ]
        if not calls or not thinking or len(thinking) > self.limit:
            return None
        keys = [conversation.key((call.name, call.arguments) for _, call in calls)]
        # An id that the model wrote may occur in every conversation; only a random one of our own shows which it is.
        keys += [
            _digest(conversation.owner, "id", call.id) for place, call in calls if _is_own_id(call.id, place, seed)
        ]
        arguments = tuple(call.arguments for _, call in calls)
        entry = ReplayEntry(thinking, written_thought(reply, raw, framing), arguments, tuple(keys))
        self.add(entry)
        return entry

    def add(self, entry: ReplayEntry) -> None:
        """Keep what another process has found, or this one."""
        with self._lock:
            self._count += 1
            self._entries[self._count] = entry
            # The same conversation may be answered twice: the later reply is the one that the client has seen last.
            self._by_key.update(dict.fromkeys(entry.keys, self._count))
            self._characters += entry.size
            self._evict()

    def resize(self, limits: ReplayCacheSettings) -> None:
        """Hold to other limits from now on."""
        with self._lock:
            self._limits = limits
            self._evict()

    def _evict(self) -> None:
        """Let the oldest go until the rest is within the limits."""
        while len(self._entries) > self._limits.entries or self._characters > self._limits.characters:
            number, entry = self._entries.popitem(last=False)
            self._characters -= entry.size
            for key in entry.keys:
                if self._by_key.get(key) == number:  # a later reply may have taken the key over
                    del self._by_key[key]

    def restore(self, credential: str, request: Request, headers: Mapping[str, str]) -> Restored:
        """Put back the thoughts that the client has dropped. Linear in the size of the request."""
        if CallPiece not in piece_kinds(request):  # most have no calls
            return Restored(request, 0, 0, 0, (), ConversationHash(credential, request, headers, request.turns))
        conversation = ConversationHash(credential, request, headers)
        calling = [number for number, turn in enumerate(request.turns) if _calls(turn)]
        dropped = {number for number in calling if _has_dropped(request.turns[number])}
        looked_up = set(calling[-MOST_TURNS:])
        turns = list(request.turns)
        hits = exact = 0
        missed: list[bytes] = []
        for number, turn in enumerate(request.turns):
            entry = self._find(conversation, turn, missed) if number in looked_up else None
            if entry is not None:
                turns[number] = _put_back(turn, entry, dropped=number in dropped)
                hits += number in dropped
                exact += number not in dropped and turns[number] is not turn
            # The turn as the client sent it: thinking does not count in the hash, so restored or not it is the same.
            conversation.add_turn(turn)
        if hits or exact:
            request = msgspec.structs.replace(request, turns=tuple(turns))
        return Restored(request, hits, len(dropped) - hits, exact, tuple(missed), conversation)

    def _find(self, conversation: ConversationHash, turn: Turn, missed: list[bytes]) -> ReplayEntry | None:
        """The entry of a turn; where there is none, its keys go to `missed`."""
        calls = [piece for piece in turn.pieces if isinstance(piece, CallPiece)]
        ids = [_digest(conversation.owner, "id", call.id) for call in calls if call.id]
        key = conversation.key((call.name, call.arguments) for call in calls)
        with self._lock:
            # An id that is not known adds None, so ids decide only where all of them belong to one reply.
            by_id = {self._by_key.get(id) for id in ids}
            found = by_id.pop() if len(by_id) == 1 else None  # ids of several replies prove nothing
            if found is None:
                found = self._by_key.get(key)
            entry = self._entries.get(found) if found is not None else None
            if entry is None or found is None:
                missed += [*ids, key]
                return None
            # A conversation that goes on sends all its turns each time, and its entries are used again.
            self._entries.move_to_end(found)
            return entry


def written_thought(reply: Reply, raw: str, framing: tuple[str, str] | None) -> str:
    """The one thought of a reply with the whitespace inside its markers; empty where there are several, or no raw text.

    Several are joined for templates that have one place for them, so no template would write them as they were.
    """
    spans = [part.span for part in reply.parts if isinstance(part, Thinking)]
    if len(spans) != 1 or not raw or spans[0] == (0, 0):
        return ""
    before, behind = raw[: spans[0][0]], raw[spans[0][1] :]
    thought = raw[len(before.rstrip()) : len(raw) - len(behind.lstrip())]
    if before.strip():
        return thought
    # The prompt has opened it, and what the template wrote there is a part of it. Where that is not known, it is what
    # `ThinkingPiece.within` takes for the template's.
    return (("\n" if thought[:1] == "\n" or thought[-1:] == "\n" else "") if framing is None else framing[0]) + thought


def _put_back(turn: Turn, entry: ReplayEntry, *, dropped: bool) -> Turn:
    """A turn with its thinking and its arguments as the model wrote them; the same turn where that is how they are."""
    pieces = list(turn.pieces)
    if dropped:
        pieces = [piece for piece in pieces if not isinstance(piece, ThinkingPiece)]
        pieces.insert(0, ThinkingPiece(entry.thinking, written=entry.written))
    thoughts = [place for place, piece in enumerate(pieces) if isinstance(piece, ThinkingPiece)]
    calls = [place for place, piece in enumerate(pieces) if isinstance(piece, CallPiece)]
    for place in thoughts if len(thoughts) == 1 and entry.written else ():
        piece = pieces[place]
        # A client may have sent another thought, or one that it has shortened: that is what it wants the model to see.
        if isinstance(piece, ThinkingPiece) and piece.text.strip() == entry.written.strip():
            pieces[place] = msgspec.structs.replace(piece, written=entry.written)
    for place, arguments in zip(calls, entry.arguments, strict=False):
        piece = pieces[place]
        if isinstance(piece, CallPiece) and _canonical(piece.arguments) == _canonical(arguments):
            pieces[place] = msgspec.structs.replace(piece, arguments=arguments)
    return turn if tuple(pieces) == turn.pieces else msgspec.structs.replace(turn, pieces=tuple(pieces))


def _calls(turn: Turn) -> bool:
    """Whether a turn calls something."""
    return turn.role == "assistant" and any(isinstance(piece, CallPiece) for piece in turn.pieces)


def _has_dropped(turn: Turn) -> bool:
    """Whether a turn that calls something comes without its thinking: with none, or with a block of ours left empty."""
    thoughts = [piece for piece in turn.pieces if isinstance(piece, ThinkingPiece)]
    return all(not thought.text and thought.signature.startswith(OWN_SIGNATURE) for thought in thoughts)


def _is_own_id(id: str, place: int, seed: int) -> bool:
    """Whether the id of a call at this place among the parts was made here at random.

    One that counts the calls is not random, so it never is.
    """
    if place >= MOST_PARTS:
        return False
    # The place that the id was made for may be an earlier one: a parser counts its own parts only.
    places = range(place, -1, -1)
    return any(id == make_id(shape, seed, each, "", 0) for each in places for shape in ("call", "short"))


def _digest(*fields: str | bytes) -> bytes:
    hash = hashlib.blake2b(digest_size=32)
    _update(hash, fields)
    return hash.digest()


def _update(hash: hashlib.blake2b, fields: Iterable[str | bytes]) -> None:
    """Add fields, each with its length, so that no two lists of fields look alike."""
    for field in fields:
        data = field.encode("utf-8", "surrogatepass") if isinstance(field, str) else field
        hash.update(b"%d:" % len(data))
        hash.update(data)


def _update_turn(hash: hashlib.blake2b, turn: Turn) -> None:
    """Add a turn. Thinking does not count: that it may be missing is the point."""
    _update(hash, ("turn", turn.role))
    for piece in turn.pieces:
        match piece:
            case TextPiece(text):
                _update(hash, ("text", text))
            case CallPiece(name, arguments):
                _update(hash, ("call", name, _canonical(arguments)))
            case ImagePiece(url, data):
                _update(hash, ("image", url, data))
            case OtherPiece(data):
                _update(hash, ("other", to_json(data)))


def _canonical(arguments: str) -> str:
    """Arguments as they are whatever API they went through: some clients send them back as an object."""
    try:
        return msgspec.json.encode(msgspec.json.decode(arguments), order="deterministic").decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return arguments
