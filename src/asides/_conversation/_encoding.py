"""Text to ids as the tokenizer makes them, but for markers that somebody else than the template has written.

A tokenizer finds its added tokens in a text before anything else, so a marker that a user spells out would act. Most
conversations hold none: they are encoded whole, as everyone does. Where one does, only the markers in the template's
own characters stay tokens. To leave all else as it is (merges over an edge, spaces at a beginning, flags of tokens),
the text is encoded whole by a copy of the tokenizer in which each added token is another character that nobody writes,
put where the template's markers were.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from .._engine.token_text import TokenPlaces
from .._engine.vocabulary import Vocabulary, inner_tokenizer
from ..errors import UsageError
from ..parts import Span
from ._given import check_encodable

FIRST, LAST = 0xF0000, 0xFFFFD
"""Characters that stand for added tokens: a plane for private use, which no conversation has a letter in."""
_PRIVATE = re.compile(f"[{chr(FIRST)}-{chr(LAST)}]")


class Encoded(NamedTuple):
    """A text as ids."""

    ids: list[int]
    places: Callable[[], TokenPlaces]
    """Where each id's characters stand in the text."""


class ChatEncoder:
    """Encodes rendered conversations with one tokenizer."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        inner = inner_tokenizer(vocabulary.tokenizer)
        # The methods of `tokenizers`, which tells offsets and can be copied.
        self._inner: Any = inner if hasattr(inner, "to_str") and hasattr(inner, "id_to_token") else None
        self._added = {text: id for text, id in vocabulary.added.items() if text.strip()}
        self._ids = frozenset(self._added.values())
        self._texts = {id: text for text, id in self._added.items()}

    def encode(self, text: str, protected: Sequence[Span] = (), lead: str = "") -> Encoded:
        """The ids of a text.

        No added token comes from the `protected` stretches, which rise. `lead` is an added token that stands before the
        text, so that nothing is put at its beginning.
        """
        if not text:
            return Encoded([], lambda: TokenPlaces([], []))
        check_encodable(text)
        encoded = self._encode_all(lead + text)
        if lead and (not encoded.ids or encoded.ids[0] != self._added.get(lead)):
            return self.encode(text, protected)
        if protected and self._forged(text, encoded.ids, protected):
            moved = [(start + len(lead), stop + len(lead)) for start, stop in protected]
            encoded = self._encode_apart(lead + text, moved)
        return self._without(lead, encoded)

    def plain(self, text: str, lead: str = "") -> Encoded:
        """The ids of a text as the tokenizer makes them, whoever wrote its markers."""
        return self.encode(text, (), lead)

    def _without(self, lead: str, encoded: Encoded) -> Encoded:
        if not lead:
            return encoded

        def places() -> TokenPlaces:
            firsts, stops = encoded.places()
            size = len(lead)
            return TokenPlaces([max(0, each - size) for each in firsts[1:]], [each - size for each in stops[1:]])

        return Encoded(encoded.ids[1:], places)

    def _encode_all(self, text: str) -> Encoded:
        if self._inner is None:
            ids = self.vocabulary.encode_output(text)
            return Encoded(ids, lambda: self._places(text, ids, None))
        encoding = self._inner.encode(text, add_special_tokens=False)
        ids = list(encoding.ids)
        return Encoded(ids, lambda: self._places(text, ids, encoding.offsets))

    def _places(self, text: str, ids: list[int], offsets: Sequence[Span] | None) -> TokenPlaces:
        """Where ids stand: by their bytes, which leave nothing out; where these are another text, by the offsets."""
        places = self.vocabulary.places(ids)
        if (places.stops[-1] if ids else 0) == len(text) and self.vocabulary.text(ids) == text:
            return places
        if offsets is None:
            raise UsageError("this tokenizer changes the text that it encodes, so it is not known where its ids stand")
        return TokenPlaces([start for start, _ in offsets], [stop for _, stop in offsets])

    def _forged(self, text: str, ids: list[int], protected: Sequence[Span]) -> bool:
        """Whether an added token among the ids has a character of a protected stretch."""
        stops = [stop for _, stop in protected]
        for id in self._ids.intersection(ids):
            token = self._texts[id]
            at = text.find(token)
            while at >= 0:
                if _overlaps(protected, stops, at, at + len(token)):
                    return True
                at = text.find(token, at + len(token))
        return False

    def markers(self, text: str, protected: Sequence[Span]) -> list[Span]:
        """Where added tokens stand that have no character of a protected stretch."""
        stops = [stop for _, stop in protected]
        found: list[Span] = []
        at = 0
        while match := self._marker.search(text, at):
            start, end = match.span()
            if _overlaps(protected, stops, start, end):
                # A shorter one may end before the stretch begins.
                fitting = (each for each in self._longest_first if len(each) < end - start)
                shorter = (each for each in fitting if text.startswith(each, start))
                own = next((e for e in shorter if not _overlaps(protected, stops, start, start + len(e))), None)
                if own is None:
                    at = start + 1
                    continue
                end = start + len(own)
            found.append((start, end))
            at = end
        return found

    def _encode_apart(self, text: str, protected: Sequence[Span]) -> Encoded:
        markers = self.markers(text, protected)
        if self._inner is None or len(self._added) > LAST - FIRST or _PRIVATE.search(text):
            return self._encode_stretches(text, markers)
        pieces: list[str] = []
        at = 0
        for start, stop in markers:
            pieces += [text[at:start], self._stand_ins[text[start:stop]]]
            at = stop
        copy, own_ids = self._copy
        encoding = copy.encode("".join([*pieces, text[at:]]), add_special_tokens=False)
        ids = [own_ids.get(id, id) for id in encoding.ids]
        if sum(id in self._ids for id in ids) != len(markers):
            # A normalizer or a model makes the token of its letters.
            return self._encode_stretches(text, markers)
        return Encoded(ids, lambda: self._places(text, ids, _moved(encoding.offsets, markers)))

    def _encode_stretches(self, text: str, markers: list[Span]) -> Encoded:
        """Every stretch between two markers for itself, by a tokenizer that knows no markers."""
        ids: list[int] = []
        at = 0
        for start, stop in markers:
            ids += [*self.vocabulary.encode(text[at:start]), self._added[text[start:stop]]]
            at = stop
        ids += self.vocabulary.encode(text[at:])
        return Encoded(ids, lambda: self._places(text, ids, None))

    @cached_property
    def _longest_first(self) -> list[str]:
        return sorted(self._added, key=len, reverse=True)

    @cached_property
    def _marker(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self._longest_first)) or r"(?!)")

    @cached_property
    def _stand_ins(self) -> dict[str, str]:
        return {text: chr(FIRST + number) for number, text in enumerate(self._added)}

    @cached_property
    def _copy(self) -> tuple[Any, dict[int, int]]:
        """A tokenizer with other characters for added tokens, and what their ids stand for."""
        description = json.loads(self._inner.to_str())
        for token in description.get("added_tokens") or ():
            token["content"] = self._stand_ins.get(token["content"], token["content"])
        # It would only trim offsets, or put tokens around the text, which is not asked for.
        description["post_processor"] = None
        copy = type(self._inner).from_str(json.dumps(description))
        return copy, {copy.token_to_id(letter): self._added[text] for text, letter in self._stand_ins.items()}


def _overlaps(spans: Sequence[Span], stops: list[int], start: int, stop: int) -> bool:
    place = bisect_right(stops, start)
    return place < len(spans) and spans[place][0] < stop


def _moved(offsets: Sequence[Span], markers: list[Span]) -> list[Span]:
    """Offsets of a text in which each marker was one character, as those of the text itself."""
    # Where each marker stands in the shorter text, and how much longer the text is from after it on.
    places: list[int] = []
    shifts = [0]
    for start, stop in markers:
        places.append(start - shifts[-1])
        shifts.append(shifts[-1] + stop - start - 1)
    return [tuple(at + shifts[bisect_left(places, at)] for at in span) for span in offsets]  # type: ignore[misc] # two
