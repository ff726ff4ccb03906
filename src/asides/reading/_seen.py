"""What earlier replies of a model have shown about how it writes. Values and rules; asks nobody, reads no clock.

Where a model's start is only a guess (its version is on no list, or nothing is known of it at all), each reply that
came to its end is evidence: a closing marker without an opener shows that the prompt had opened the thought, an opener
shows that it had not. `shown_by` says what one reply shows, `SeenReplies` remembers it by whatever key its owner has
(upstream, model, thinking asked for), and `SeenReplies.get` gives the `Seen` that a `Reading` takes.

    seen = SeenReplies()
    seen.add(key, shown_by(fold, began="text"), source="conversation 1")
    Reading.of(model, seen=seen.get(key)).begins          # ("thinking", False, "an earlier reply began in a thought")

A client must not be able to turn everybody's reading. So a reply that contradicts what was seen counts only when the
next one, of another source, shows the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal

import msgspec

from ..events import Notice, PartEnd, PartStart, Retyped
from ..policies import Start
from ..reply._fold import Fold

Shown = Literal["thinking", "text", "silent"]
"""What one reply shows: it began inside a thought; in text; or it was read from inside a thought and ended without
closing it, as a reply does that holds no thought at all."""
ENDED = frozenset({"stop", "tool_calls"})
"""Reasons of a server for an end that was the model's own."""
UNSURE = frozenset({"implicit_close"})
"""Notices of a thought that no marker closed."""
LONE_CLOSE = frozenset({"stray_close", "retyped"})
"""Notices of a closing marker that nothing had opened, in the first text of a reply that was read from text."""
SHORTEST_OPENER = 3
"""No opener of a thought is shorter: before a thought that begins earlier there is none."""
MOST_KEYS = 10_000
"""Keys that are remembered; names of models come from clients."""


class Seen(msgspec.Struct, frozen=True):
    """What replies have shown of one model, asked in one way."""

    start: Start | None = None
    """Where output was seen to begin; None where nothing was."""
    replies: int = 0
    """How many replies in a row have shown it."""
    foreign: bool = False
    """Whether replies hold markers of another family and none of the format that its name stands for."""


NOTHING = Seen()


def shown_by(fold: Fold, began: Start | None) -> Shown | None:
    """What a reply that has ended shows of where output begins; None where it shows nothing.

    `began`: where it was read from. A reply that was cut shows nothing, nor does one whose thought the server had
    separated by itself.

    Examples:
        >>> from asides.reading import shown_by
        >>> from asides.reply import Ended, Fold, RawText
        >>> splitter = asides.Reading.of("a-new-model").splitter()
        >>> fold = Fold()
        >>> for item in [*splitter.feed(RawText(0, "hm</think>Four.")), *splitter.feed(Ended(0))]:
        ...     fold.add(item)
        >>> shown_by(fold, "text")
        'thinking'
    """
    if not fold.head or not isinstance(first := fold.head[0], PartStart) or fold.reason not in ENDED:
        return None
    until = next((place for place, event in enumerate(fold.head) if getattr(event, "index", 0) > 0), len(fold.head))
    end = next((event for event in fold.head[:until] if isinstance(event, PartEnd)), None)
    if end is None or end.span == (0, 0):
        return None
    if first.kind == "text":
        lone = any(isinstance(event, Notice) and event.code in LONE_CLOSE for event in fold.head[:until])
        return "thinking" if lone else "text"
    if any(isinstance(event, Retyped) for event in fold.head[:until]):
        return "silent"
    if first.kind != "thinking" or (end.complete and fold.notices.keys() & UNSURE):
        return None
    if end.span[0] >= SHORTEST_OPENER:
        return "text"
    if end.complete:
        return "thinking"
    return "silent" if began == "thinking" else None


class _Record(msgspec.Struct):
    """What is remembered of one key."""

    seen: Seen = NOTHING
    contrary: Shown | None = None
    """What the last reply showed against it."""
    source: str = ""
    """Who sent the reply that `contrary` is from."""
    foreign: tuple[str, str] = ("", "")
    """The foreign family of the last reply, and who sent it."""


class SeenReplies:
    """Remembers what replies have shown, by key. The oldest keys are forgotten where there are too many."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._records: dict[Hashable, _Record] = {}
        self._most = most

    def get(self, key: Hashable) -> Seen | None:
        """What was seen under a key; None where nothing was."""
        record = self._records.get(key)
        return record.seen if record is not None and record.seen != NOTHING else None

    def add(self, key: Hashable, shown: Shown | None, source: str = "") -> Seen | None:
        """Remember what a reply has shown; the new `Seen` where that changes how the next one is read.

        `source` tells conversations, or the keys of clients, apart: what was seen is only overturned by two replies in
        a row of different sources.
        """
        if shown is None:
            return None
        record = self._record(key)
        seen = record.seen
        start: Start = "thinking" if shown == "thinking" else "text"
        if seen.start == start:
            record.contrary = None
            record.seen = msgspec.structs.replace(seen, replies=seen.replies + 1)
            return None
        # The first reply that shows anything is believed, but one that merely never closed could be an accident.
        at_once = seen.start is None and shown != "silent"
        confirmed = record.contrary == shown and (record.source != source or not source)
        if not at_once and not confirmed:
            if record.contrary != shown:
                record.contrary, record.source = shown, source
            return None
        record.contrary, record.source = None, ""
        record.seen = msgspec.structs.replace(seen, start=start, replies=1)
        return record.seen

    def add_foreign(self, key: Hashable, family: str, source: str = "") -> Seen | None:
        """Remember that a reply held markers of another family and none of its own; as `add` otherwise.

        An empty `family` is a reply that did hold markers of its own.
        """
        if not family and key not in self._records:
            return None
        record = self._record(key)
        before, who = record.foreign
        record.foreign = (family, source)
        if not family or record.seen.foreign or before != family or (who == source and source):
            return None
        record.seen = msgspec.structs.replace(record.seen, foreign=True)
        return record.seen

    def forget(self, key: Hashable | None = None) -> None:
        """Forget what was seen under a key; None: everything."""
        if key is None:
            self._records.clear()
        else:
            self._records.pop(key, None)

    def load(self, key: Hashable, seen: Seen) -> None:
        """Take over what somebody else has seen, such as another worker."""
        self._record(key).seen = seen

    def __len__(self) -> int:
        """Of how many keys something is remembered."""
        return len(self._records)

    def _record(self, key: Hashable) -> _Record:
        found = self._records.get(key)
        if found is None:
            if len(self._records) >= self._most:
                del self._records[next(iter(self._records))]
            found = self._records[key] = _Record()
        return found
