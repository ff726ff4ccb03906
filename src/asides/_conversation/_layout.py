"""Whose every character of a rendered conversation is: message, part and kind, and what a model would have sampled.

Two facts are put together: the leaf of each character (whose words these are), and the message at which the template's
loop stood (to whom the markers around them belong). Where a template has no such loop, what stands between two messages
is cut after the first marker. A name that is printed again with another message, as tool results do with the call's, is
part of that message's frame.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from .._engine.token_text import TokenPlaces
from ..parts import Span
from ._origin import NOBODY
from ._template import REASONING, Owner, RenderedChat

Kind = Literal["system", "user", "tool", "tools", "thinking", "text", "call", "marker", "header"]
"""What a token of a conversation is: words of the system, a user or a tool; a definition of tools; the assistant's
thinking, text or call; what a template or a model writes around these; what opens a message."""

KINDS: tuple[Kind, ...] = get_args(Kind)
Role = Literal["system", "user", "tool", "assistant"]
"""Whose words a message has."""

_FRAME_FIELDS = frozenset({"role", "name", "tool_call_id", "id", "type"})
"""Fields that name a message or its parts, and are no words of it."""
_SYSTEM = frozenset({"system", "developer"})
_TOOL = frozenset({"tool", "function", "ipython", "observation", "tool_response"})


def role_kind(role: str) -> Role:
    """Which of the four roles a role is. One that nobody knows is somebody's words, as a user's are."""
    if role == "assistant" or role == "model":
        return "assistant"
    return "system" if role in _SYSTEM else "tool" if role in _TOOL else "user"


class Stretch(NamedTuple):
    """Neighbouring characters that belong to the same."""

    start: int
    stop: int
    owner: Owner | None
    words: bool
    """Whether they are words of the owner, and not what stands around them."""


class ChatLayout:
    """A rendered conversation, character by character."""

    def __init__(
        self,
        chat: RenderedChat,
        roles: Sequence[str],
        markers: Callable[[int, int], Sequence[Span]],
        *,
        begin: str = "",
        end: str = "",
    ) -> None:
        self._chat = chat
        self._roles = [role_kind(role) for role in roles]
        self._markers = markers
        self._begin = begin
        self._end = end

    @cached_property
    def stretches(self) -> list[Stretch]:
        """All characters in their order."""
        atoms = self._atoms()
        self._free_first(atoms)
        self._fill(atoms)
        merged: list[Stretch] = []
        for start, stop, owner, words, _ in atoms:
            if merged and merged[-1].owner == owner and merged[-1].words == words:
                merged[-1] = merged[-1]._replace(stop=stop)
            else:
                merged.append(Stretch(start, stop, owner, words))
        return merged

    def _atoms(self) -> list[tuple[int, int, Owner | None, bool, bool]]:
        """Stretches with their owner, whether they are words, and whether it is known to whom they belong."""
        leaves, runs, places = self._chat.leaves, self._chat.runs, self._chat.places
        found: list[tuple[int, int, Owner | None, bool, bool]] = []
        owners: dict[int, tuple[Owner, str]] = {}
        run = place = at = 0
        while run < len(runs) and place < len(places):
            (run_end, leaf), (place_end, current) = runs[run], places[place]
            end = min(run_end, place_end)
            frame = Owner(current, "") if current != NOBODY else None
            if leaf == NOBODY:
                found.append((at, end, frame, False, frame is not None))
            else:
                if leaf not in owners:
                    owners[leaf] = (leaves.owner(leaf), leaves.field(leaf))
                owner, field = owners[leaf]
                again = frame is not None and owner.message not in (None, current) and _names(owner)
                if again:
                    found.append((at, end, frame, False, True))
                elif owner.message is not None and field in _FRAME_FIELDS:
                    found.append((at, end, Owner(owner.message, ""), False, True))
                else:
                    found.append((at, end, owner, True, True))
            at = end
            run += run_end == end
            place += place_end == end
        return found

    def _free_first(self, atoms: list[tuple[int, int, Owner | None, bool, bool]]) -> None:
        """Give what ends a turn before the first words to nobody: a template's own system text is not the user's."""
        first = next((number for number, atom in enumerate(atoms) if atom[3]), len(atoms))
        text = self._chat.text
        last = atoms[first - 1][1] if first else 0
        cut = text.rfind(self._end, 0, last) if self._end else -1
        # Where the first message is empty, the end of a turn may be its own.
        speaks = any(words and owner is not None and owner.message == 0 for _, _, owner, words, _ in atoms)
        if cut < 0 or not speaks or self._roles[0] == "system":
            return
        cut += len(self._end)
        while cut < last and text[cut] in "\r\n":
            cut += 1
        if cut == last:
            return  # it opens the message: some end a turn with the next role's marker
        number = 0
        while number < len(atoms) and atoms[number][0] < cut:
            start, stop, owner, words, known = atoms[number]
            if owner is not None and stop > cut:
                atoms[number : number + 1] = [(start, cut, None, False, True), (cut, stop, owner, words, known)]
            elif owner is not None:
                atoms[number] = (start, stop, None, False, True)
            number += 1

    def _fill(self, atoms: list[tuple[int, int, Owner | None, bool, bool]]) -> None:
        """Give what stands outside of every loop over messages to the messages that it stands around."""
        number = 0
        while number < len(atoms):
            start, stop, _, _, known = atoms[number]
            if known:
                number += 1
                continue
            before = self._neighbour(atoms, range(number - 1, -1, -1))
            after = self._neighbour(atoms, range(number + 1, len(atoms)))
            pieces = self._divide(start, stop, before, after, number + 1 == len(atoms))
            atoms[number : number + 1] = pieces
            number += len(pieces)

    def _neighbour(
        self, atoms: list[tuple[int, int, Owner | None, bool, bool]], numbers: range
    ) -> tuple[int | None, bool] | None:
        """The message that stands next to a gap, and whether the template's loop stood at it; None for none."""
        for number in numbers:
            start, _, owner, _, known = atoms[number]
            if known and owner is not None and owner.message is not None:
                return owner.message, self._placed(start)
        return None

    def _placed(self, at: int) -> bool:
        places = self._chat.places
        return places[bisect_right(places, at, key=lambda run: run[0])][1] != NOBODY

    def _divide(
        self,
        start: int,
        stop: int,
        before: tuple[int | None, bool] | None,
        after: tuple[int | None, bool] | None,
        last: bool,
    ) -> list[tuple[int, int, Owner | None, bool, bool]]:
        text = self._chat.text
        pieces: list[tuple[int, int, Owner | None, bool, bool]] = []

        def piece(first: int, end: int, message: int | None) -> None:
            if first < end:
                pieces.append((first, end, Owner(message, "") if message is not None else None, False, True))

        # A loop's own text is its own: what stands outside belongs to what was written outside as well.
        left = before[0] if before is not None and not before[1] else None
        right = after[0] if after is not None and not after[1] else None
        if start == 0 and self._begin and text.startswith(self._begin):
            piece(0, len(self._begin), None)
            start = len(self._begin)
        if left is None and right is None and not last and self._is_silent_system:
            piece(start, stop, 0)
            return pieces
        if left == right or (left is not None and right is None and not last):
            piece(start, stop, left)
            return pieces
        if left is None:
            piece(start, stop, right)
            return pieces
        cut = self._after_marker(start, stop)
        piece(start, cut, left)
        piece(cut, stop, right)
        return pieces

    @cached_property
    def _is_silent_system(self) -> bool:
        """Whether the conversation begins with a system that says nothing, so that no character is its own."""
        leaves = self._chat.leaves
        written = (leaf for _, leaf in self._chat.runs if leaf != NOBODY and leaves.message(leaf) == 0)
        placed = any(place == 0 for _, place in self._chat.places)
        return bool(self._roles) and self._roles[0] == "system" and not placed and next(written, None) is None

    def _after_marker(self, start: int, stop: int) -> int:
        """Where the end of a turn ends: after the first of several markers and the line break behind it."""
        text = self._chat.text
        found = self._markers(start, stop)
        if len(found) < 2 or text[start : found[0][0]].strip():
            return start
        cut = found[0][1]
        while cut < stop and text[cut] in "\r\n":
            cut += 1
        return cut

    # Messages.

    @cached_property
    def blocks(self) -> dict[int, Span]:
        """For each message that is written: from its first character to its last, with what stands around."""
        return self._spans(False)

    @cached_property
    def bodies(self) -> dict[int, Span]:
        """For each message whose words are written: from the first to the last of these."""
        return self._spans(True)

    def _spans(self, words: bool) -> dict[int, Span]:
        found: dict[int, Span] = {}
        for stretch in self.stretches:
            if stretch.owner is None or stretch.owner.message is None or (words and not stretch.words):
                continue
            message = stretch.owner.message
            found[message] = (found[message][0] if message in found else stretch.start, stretch.stop)
        return found

    def others_from(self, index: int, after: int) -> int:
        """Where after a place something begins that is not a message's own."""
        for stretch in self._stretches_from(after):
            if stretch.start >= after and (stretch.owner is None or stretch.owner.message != index):
                return stretch.start
        return len(self._chat.text)

    def _stretches_from(self, place: int) -> Iterator[Stretch]:
        """The stretches that end after a place."""
        stretches = self.stretches
        first = bisect_right(stretches, place, key=lambda stretch: stretch.stop)
        return (stretches[number] for number in range(first, len(stretches)))

    def without_others(self, index: int, span: Span, stops: Sequence[str]) -> list[Span]:
        """A span without what belongs to other messages, but for the stop token with which that begins."""
        body = self.bodies.get(index)
        if body is None or body[1] <= span[0]:
            return [span]
        found: list[Span] = []
        start = span[0]
        for stretch in self._stretches_from(start):
            if stretch.start >= body[1]:
                break
            if stretch.owner is not None and stretch.owner.message not in (index, None):
                if start < stretch.start:
                    stop = next((stop for stop in stops if self._chat.text.startswith(stop, stretch.start)), "")
                    found.append((start, stretch.start + len(stop)))
                start = stretch.stop
        return [*found, (start, span[1])]

    def kind(self, stretch: Stretch) -> Kind:
        """What the characters of a stretch are, wherever a model did not write them."""
        owner = stretch.owner
        if owner is None:
            return "header"
        if owner.message is None:
            return "tools" if owner.part.startswith("tools") else "system"
        if not stretch.words:
            body = self.bodies.get(owner.message)
            return "header" if body is None or stretch.start < body[0] else "marker"
        role = self._roles[owner.message]
        if role != "assistant":
            return role
        return part_kind(owner.part)


def part_kind(part: str) -> Kind:
    """What words of an assistant are, by the path that they come from."""
    steps = part.split(".")
    if steps[0] in REASONING or (steps[0] == "content" and steps[-1] in REASONING):
        return "thinking"
    return "call" if steps[0] == "tool_calls" else "text"


def _names(owner: Owner) -> bool:
    """Whether it is the name or id of a message or a call."""
    return owner.part.rsplit(".", 1)[-1] in _FRAME_FIELDS


class TokenOwners(NamedTuple):
    """For each id the stretch that it belongs to."""

    stretch: list[int]

    @staticmethod
    def of(stretches: Sequence[Stretch], places: TokenPlaces) -> TokenOwners:
        """A token over several stretches belongs to the first that has words in it, or else to the first."""
        found: list[int] = []
        at = 0
        many = len(stretches)
        for first, stop in zip(places.firsts, places.stops, strict=True):
            while at + 1 < many and stretches[at].stop <= first:
                at += 1
            chosen = at
            if stop > stretches[at].stop and not stretches[at].words:
                for number in range(at + 1, many):
                    if stretches[number].start >= stop:
                        break
                    if stretches[number].words:
                        chosen = number
                        break
            found.append(chosen)
        return TokenOwners(found)
