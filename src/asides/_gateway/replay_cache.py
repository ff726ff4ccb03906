"""The replay cache: what a model thought before its calls, for clients that drop thinking between tool turns.

A client sends its conversation anew with every request. Where a turn with calls comes back without its thinking, the
thinking is put back here before the upstream sees it. It must never come from another conversation, so it is found in
two ways only, both under the same credential and model:

- by the id of a call that this gateway made at random itself. An id that a model or an upstream wrote is no proof:
  Kimi K2 writes `functions.f:0` and Cohere `0` in every conversation;
- by a hash of everything that stands before the turn (texts, calls, results of tools, images), of the calls of the
  turn itself, and of the user and session that the client names.

A client may send a turn of several calls as several messages, each with its result: by the first call it is found, and
where the others follow, all of it is put together again. One that repeats its question before the answer counts as if
it had asked once.

What is found by neither is a miss: it is counted, and never answered by a nearby entry. In memory only, bounded by the
`replay_cache` section of the configuration; the client that has most lets its oldest entries go (`shares.py`).

Where a stream turned out to have begun in a thought (`Retyped`), the client has that thought in its text, and sends it
back there. What was sent is known here: a turn that comes back with all of it, and nothing else, is put right.

Thoughts and arguments go back as the model wrote them, to the byte, also where the client does send them: it was sent
thoughts without the whitespace around them, and some clients write arguments anew. A server then finds the turn in its
prefix cache.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from .._config.schema import ReplayCacheSettings
from .._engine.calls.ids import make_id
from ..dialects._framing import to_json
from ..dialects._request import (
    OWN_SIGNATURE,
    CallPiece,
    ImagePiece,
    OtherPiece,
    Request,
    RequestPiece,
    RequestTurn,
    TextPiece,
    ThinkingPiece,
    piece_kinds,
)
from ..parts import Thinking, ToolCall
from ..reply._items import PlacedProof
from ..reply._reply import Reply
from .proofs import has_proof, place_proofs
from .shares import Shares

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
"""Only so many of the last turns are looked up: the thoughts of older ones have left the cache."""
MOST_PARTS = 64
"""A call that stands behind more parts than this is found by its hash alone."""


class ConversationHash:
    """Where a conversation stands: whose it is, and a hash of every turn so far.

    It is hashed when a key is asked for: most requests have no calls, and no key is ever wanted.
    """

    __slots__ = ("_asked", "_hash", "_headers", "_owner", "_request", "_turns", "credential")

    def __init__(
        self, credential: str, request: Request, headers: Mapping[str, str], turns: Iterable[RequestTurn] = ()
    ) -> None:
        """It stands behind these turns."""
        self.credential = credential
        self._request = request
        self._headers = headers
        self._owner = b""
        self._hash: hashlib.blake2b | None = None
        self._turns = list(turns)
        """Those that are not in the hash yet."""
        self._asked = ""
        """What the user has asked and nobody has answered yet but by calls."""

    @property
    def owner(self) -> bytes:
        """Whose ids count: those of one credential and one model."""
        if not self._owner:
            self._owner = _digest(self.credential, self._request.model)
        return self._owner

    @property
    def session(self) -> bytes:
        """The user and the session that the client names."""
        request = self._request
        metadata = request.extra.get("metadata")
        session = [
            *(self._headers.get(name) for name in SESSION_HEADERS),
            *(request.extra.get(name) for name in SESSION_FIELDS),
            metadata.get("user_id") if isinstance(metadata, dict) else None,
        ]
        return to_json([request.user or "", session])

    def _begin(self) -> hashlib.blake2b:
        hash = hashlib.blake2b(digest_size=32)
        _update(hash, (self.owner, self.session))
        return hash

    @property
    def before(self) -> str:
        """A hash of all that a reply here comes after: instructions, tools and turns."""
        return _digest(self.key(()), to_json([tool.definition for tool in self._request.tools])).hex()[:32]

    def add_turn(self, turn: RequestTurn) -> None:
        """Go on behind a turn."""
        self._turns.append(turn)

    def key(self, calls: Iterable[tuple[str, str]], text: str = "") -> bytes:
        """The key of a turn here that makes these calls (name, arguments), or makes none and says this."""
        # Copied, so that each turn costs its own length and not that of the conversation before it: 4,000 turns with
        # calls froze the gateway when each was hashed from the start.
        if self._hash is None:
            self._hash = self._begin()
        for turn in self._turns:
            if not self._repeats(turn):
                _update_turn(self._hash, turn)
        self._turns.clear()
        here = self._hash.copy()
        called = list(calls)
        for name, arguments in called:
            _update(here, ("call", name, _canonical(arguments)))
        if not called:
            # Without its whitespace: APIs differ in what they keep of it between two texts and at their ends.
            _update(here, ("said", "".join(text.split())))
        return here.digest()

    def _repeats(self, turn: RequestTurn) -> bool:
        """Whether the user asks once more what is just being answered: semantic-kernel sends its question again."""
        if turn.role == "assistant" and not _calls(turn):
            self._asked = ""
        if turn.role != "user":
            return False
        asked = turn.text if all(isinstance(piece, TextPiece) for piece in turn.pieces) else ""
        repeats, self._asked = bool(asked) and asked == self._asked, asked
        return repeats


def beginning_of(credential: str, request: Request, headers: Mapping[str, str]) -> bytes:
    """By which a conversation is known again: a hash of all before the first turn of the assistant."""
    turns = request.turns
    first = next((number for number, turn in enumerate(turns) if turn.role == "assistant"), len(turns))
    return ConversationHash(credential, request, headers, turns[:first]).key(())


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
    proofs: tuple[PlacedProof, ...] = ()
    """What the upstream wants back with its thoughts and calls."""
    issuer: str = ""
    """The upstream and the model that made them: nobody else takes them."""

    @property
    def size(self) -> int:
        """Characters that it holds."""
        proofs = len(msgspec.json.encode(self.proofs)) if self.proofs else 0
        return len(self.thinking) + len(self.written) + sum(map(len, self.arguments)) + proofs


class Restored(msgspec.Struct, frozen=True):
    """A request as the upstream shall see it."""

    request: Request
    hits: int
    """How many thoughts were put back that the client has dropped, or has in its text because they were sent there."""
    misses: int
    """How many were not known."""
    exact: int
    """Turns that the client did send with their thinking, and that go back as the model wrote them instead."""
    missed: tuple[bytes, ...]
    """The keys of turns that are not in the cache: another process may have them (`shared_thoughts`)."""
    conversation: ConversationHash
    """Where its reply will stand."""


class ReplayCache:
    """Thoughts by what they led to: calls, or an answer. Safe to use from threads: large requests are planned there."""

    def __init__(self, limits: ReplayCacheSettings) -> None:
        self._limits = limits
        self._entries: dict[int, tuple[str, ReplayEntry]] = {}
        """By number: whose it is, and the entry."""
        self._shares: Shares[int] = Shares()
        self._by_key: dict[bytes, int] = {}
        self._retyped: dict[str, set[int]] = {}
        """By credential: the entries of thoughts that went out as text. Most clients have none, and pay nothing."""
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
        *,
        uncalled: bool = False,
        issuer: str = "",
    ) -> ReplayEntry | None:
        """Keep what was thought before the calls of a reply, if there are both; returns what is kept.

        `uncalled`: also what was thought before an answer without calls; `issuer`: who made the proofs of the reply.

        `seed`: that of the ids made for it; `raw`: the text that the spans of its parts count, where it was kept;
        `framing`: the whitespace that the template writes around thoughts, where it is known.
        """
        thinking = reply.thinking
        # Calls that may not be run are not sent to clients as calls, so none of them comes back.
        calls = [
            (place, call) for place, call in enumerate(reply.parts) if isinstance(call, ToolCall) and call.error is None
        ]
        if not (calls or uncalled) or not (thinking or reply.proofs) or len(thinking) > self.limit:
            return None
        keys = [conversation.key(((call.name, call.arguments) for _, call in calls), reply.text)]
        # An id that the model wrote may occur in every conversation; only a random one of our own shows which it is.
        keys += [
            _digest(conversation.owner, "id", call.id) for place, call in calls if _is_own_id(call.id, place, seed)
        ]
        if len(calls) > 1:
            keys.append(_split_key(conversation, calls[0][1].name, calls[0][1].arguments))
        arguments = tuple(call.arguments for _, call in calls)
        written = written_thought(reply, raw, framing)
        entry = ReplayEntry(thinking, written, arguments, tuple(keys), reply.proofs, issuer if reply.proofs else "")
        self.add(conversation.credential, entry)
        return entry

    def put_retyped(self, conversation: ConversationHash, reply: Reply) -> None:
        """Keep the thought of a streamed reply that went out as the beginning of its text."""
        first = reply.parts[0] if reply.parts else None
        if not isinstance(first, Thinking) or not first.text or len(first.text) > self.limit:
            return
        if any(notice.code == "retyped" for notice in reply.notices):
            calls = [(call.name, call.arguments) for call in reply.tool_calls if call.error is None]
            key = _retyped_key(conversation, calls, first.text + reply.text)
            self.add(conversation.credential, ReplayEntry(first.text, "", (), (key,)), retyped=True)

    def add(self, credential: str, entry: ReplayEntry, *, retyped: bool = False) -> None:
        """Keep what another process has found for a client, or this one."""
        with self._lock:
            self._count += 1
            if retyped:
                self._retyped.setdefault(credential, set()).add(self._count)
            self._entries[self._count] = (credential, entry)
            self._shares.put(credential, self._count, entry.size)
            # The same conversation may be answered twice: the later reply is the one that the client has seen last.
            self._by_key.update(dict.fromkeys(entry.keys, self._count))
            self._evict()

    def resize(self, limits: ReplayCacheSettings) -> None:
        """Hold to other limits from now on."""
        with self._lock:
            self._limits = limits
            self._evict()

    def _evict(self) -> None:
        """Let the oldest of whoever has most go, until the rest is within the limits."""
        limits, shares = self._limits, self._shares
        while shares.count > limits.entries or shares.size > limits.characters:
            credential, number = shares.next_to_go(by_size=shares.size > limits.characters)
            shares.drop(credential, number)
            _, entry = self._entries.pop(number)
            if number in (retyped := self._retyped.get(credential, set())):
                retyped.remove(number)
                if not retyped:
                    del self._retyped[credential]
            for key in entry.keys:
                if self._by_key.get(key) == number:  # a later reply may have taken the key over
                    del self._by_key[key]

    def restore(
        self,
        credential: str,
        request: Request,
        headers: Mapping[str, str],
        *,
        uncalled: bool = False,
        issuer: str = "",
    ) -> Restored:
        """Put back the thoughts that the client has dropped, or has in its text. Linear in the size of the request.

        `uncalled`: also those of turns without calls; `issuer`: who is asked, and takes the proofs that it made.
        """
        retyped = credential in self._retyped
        if not uncalled and not retyped and CallPiece not in piece_kinds(request):  # most have no calls
            return Restored(request, 0, 0, 0, (), ConversationHash(credential, request, headers, request.turns))
        conversation = ConversationHash(credential, request, headers)
        wanted = [
            number
            for number, turn in enumerate(request.turns)
            if turn.role == "assistant" and (uncalled or _calls(turn))
        ]
        dropped = {number for number in wanted if _has_dropped(request.turns[number])}
        looked_up = set(wanted[-MOST_TURNS:])
        turns: list[RequestTurn | None] = list(request.turns)
        hits = misses = exact = 0
        missed: list[bytes] = []
        for number, sent in enumerate(request.turns):
            if turns[number] is None:  # a part of a turn before it
                conversation.add_turn(sent)
                continue
            words = self._find_retyped(conversation, sent) if retyped and sent.role == "assistant" else ""
            turn = _without_words(sent, words) if words else sent
            entry = self._find(conversation, turn, missed) if number in looked_up else None
            if entry is None and number in looked_up and number in dropped and _calls(turn):
                entry, parts = self._find_split(conversation, request.turns, number, missed)
                if entry is not None:
                    pieces = tuple(piece for place in parts for piece in request.turns[place].pieces)
                    turn = msgspec.structs.replace(turn, pieces=pieces)
                    for place in parts[1:]:
                        turns[place] = None
            restored = turn if entry is None else _put_back(turn, entry, issuer, dropped=number in dropped)
            if words and (entry is None or number not in dropped):  # else it is among the thoughts of the entry
                restored = msgspec.structs.replace(restored, pieces=(ThinkingPiece(words), *restored.pieces))
            turns[number] = restored
            hits += bool(words) or (entry is not None and number in dropped)
            misses += not words and entry is None and number in dropped
            exact += not words and number not in dropped and restored is not turn
            # The turn as the client sent it: thinking does not count in the hash, so restored or not it is the same.
            conversation.add_turn(sent)
        if hits or exact:
            request = msgspec.structs.replace(request, turns=tuple(turn for turn in turns if turn is not None))
        return Restored(request, hits, misses, exact, tuple(missed), conversation)

    def _find_retyped(self, conversation: ConversationHash, turn: RequestTurn) -> str:
        """The thought that a turn has at the beginning of its text, where it was sent there; else an empty string."""
        calls = [(piece.name, piece.arguments) for piece in turn.pieces if isinstance(piece, CallPiece)]
        key = _retyped_key(conversation, calls, turn.text)
        with self._lock:
            found = self._by_key.get(key)
            if found is None or found not in self._entries:
                return ""
            credential, entry = self._entries[found]
            self._shares.use(credential, found)
            return entry.thinking

    def _find(self, conversation: ConversationHash, turn: RequestTurn, missed: list[bytes]) -> ReplayEntry | None:
        """The entry of a turn; where there is none, its keys go to `missed`."""
        calls = [piece for piece in turn.pieces if isinstance(piece, CallPiece)]
        ids = [_digest(conversation.owner, "id", call.id) for call in calls if call.id]
        key = conversation.key(((call.name, call.arguments) for call in calls), turn.text)
        with self._lock:
            # An id that is not known adds None, so ids decide only where all of them belong to one reply.
            by_id = {self._by_key.get(id) for id in ids}
            found = by_id.pop() if len(by_id) == 1 else None  # ids of several replies prove nothing
            if found is None:
                found = self._by_key.get(key)
            if found is None or found not in self._entries:
                missed += [*ids, key]
                return None
            credential, entry = self._entries[found]
            # A conversation that goes on sends all its turns each time, and its entries are used again.
            self._shares.use(credential, found)
            return entry

    def _find_split(
        self, conversation: ConversationHash, turns: Sequence[RequestTurn], number: int, missed: list[bytes]
    ) -> tuple[ReplayEntry | None, list[int]]:
        """The entry of a turn whose calls the client has sent as several messages, and the places of these."""
        calls = [piece for piece in turns[number].pieces if isinstance(piece, CallPiece)]
        key = _split_key(conversation, calls[0].name, calls[0].arguments)
        with self._lock:
            _, entry = self._entries.get(self._by_key.get(key, -1), ("", None))
        if entry is None:
            missed.append(key)
            return None, []
        parts = [number]
        for place in range(number + 1, len(turns)):
            turn = turns[place]
            if len(calls) >= len(entry.arguments) or turn.role not in ("assistant", "tool"):
                break
            if turn.role == "assistant":
                if not all(isinstance(piece, CallPiece) for piece in turn.pieces):
                    break  # it says or thinks something, so it is a turn of its own
                calls += [piece for piece in turn.pieces if isinstance(piece, CallPiece)]
                parts.append(place)
        whole = conversation.key((call.name, call.arguments) for call in calls)
        return (entry, parts) if whole in entry.keys else (None, [])


def _split_key(conversation: ConversationHash, name: str, arguments: str) -> bytes:
    """By which a turn of several calls is found by its first alone."""
    return _digest("split", conversation.key([(name, arguments)]))


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


def _put_back(turn: RequestTurn, entry: ReplayEntry, issuer: str, *, dropped: bool) -> RequestTurn:
    """A turn with its thinking and its arguments as the model wrote them; the same turn where that is how they are."""
    if entry.proofs and entry.issuer == issuer and not has_proof(turn):
        turn, dropped = place_proofs(turn, entry.proofs, entry.thinking), False
    pieces = list(turn.pieces)
    if dropped and entry.thinking:
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


def _retyped_key(conversation: ConversationHash, calls: Iterable[tuple[str, str]], text: str) -> bytes:
    """The key of a turn by all of its text, which begins with a thought; without its whitespace, as in `key`."""
    said = "".join(text.split())
    return _digest("retyped", conversation.key(calls, said), said)


def _without_words(turn: RequestTurn, words: str) -> RequestTurn:
    """A turn without the words that its text begins with, whatever the whitespace around and in them."""
    left = len("".join(words.split()))
    pieces: list[RequestPiece] = []
    for piece in turn.pieces:
        if left and isinstance(piece, TextPiece):
            at = 0
            while left and at < len(piece.text):
                left -= not piece.text[at].isspace()
                at += 1
            piece = msgspec.structs.replace(piece, text=piece.text[at:].lstrip())
            if not piece.text:
                continue
        pieces.append(piece)
    return msgspec.structs.replace(turn, pieces=tuple(pieces))


def _calls(turn: RequestTurn) -> bool:
    """Whether a turn calls something."""
    return any(isinstance(piece, CallPiece) for piece in turn.pieces)


def _has_dropped(turn: RequestTurn) -> bool:
    """Whether a turn comes without its thinking: with none, or with a block of ours left empty."""
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


def _update_turn(hash: hashlib.blake2b, turn: RequestTurn) -> None:
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
