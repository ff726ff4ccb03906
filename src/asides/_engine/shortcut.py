"""The shortcut for whole outputs of the ordinary shape: one thought, one text, and nothing else that could matter.

    [<think>] thinking </think> text [<|im_end|>]          or text alone, perhaps with a stop marker at its end
    [<think>] thinking                                     cut off before it closed

Nine of ten replies look so, and taking them through the machine costs twenty times what cutting them costs. So
the first marker of each state is searched for, and if each is the one that this shape has, the message is built at
once. Anything else (a second thought, a call, a quoted or fenced marker, a foreign one, a header, words before the
opener, words behind a stop) is the machine's: `parse` returns None and has decided nothing. The shortcut knows no rule
of its own about what a marker means; it asks the same tables. A law holds it equal to the machine.

    message = parse_ordinary("<think>2+2</think>It is 4.", get_format("qwen3"), DEFAULTS)   # None: not of this shape
    events_of(message)                                                                      # for those who need events
"""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from typing import Final

from ..events import NOTICES, Event, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta
from ..message import Message, Termination
from ..parts import Part, Text, Thinking
from ..policies import DEFAULTS, CallsInThinking, Policies, Start
from .format import TEXT, THINKING, Format, State
from .markers import FOREIGN, Actions, Marker, Table, Tables, compile_tables
from .mentions import LINE, QUOTES

log = logging.getLogger("asides")

_PUNCTUATION = frozenset(",.;:!?)")
_SUSPECT = (
    QUOTES
    | frozenset(" \t\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2028\u2029\u202f\u205f\u3000")
    | frozenset(map(chr, range(0x2000, 0x200B)))
)
"""What a close that is only talked about may stand directly behind."""
_FENCE = re.compile("```|~~~")
_DOCUMENT = re.compile(r"\s*+[{\[<]")
LONG = 400
"""Characters from which on looking for a pattern's first character, before searching for the pattern, costs less."""


_Place = tuple[int, int, Marker]
"""Where a marker stands, and the marker."""
_ODD: _Place = (0, 0, FOREIGN)
"""A marker about which only the machine can say what it does."""
OrdinaryCut = tuple[int, int, int, int, Termination, Format]
"""Start and end of the thought, start and end of the text (no part where they are the same), how it ended (`cut`: the
thought never closes), and the format: the one that `auto` settled on."""
UNCLOSED: Final = "unclosed_thinking"
"""The one notice that a cut has, where the thought never closes."""


def message_of(text: str, cut: OrdinaryCut) -> Message:
    """The message of a text that was cut."""
    first, last, start, end, termination, _ = cut
    words = text[start:end]
    parts: tuple[Part, ...] = (Text(words, (start, end)),) if words else ()
    closed = termination != "cut"
    notices = () if closed else (Notice(UNCLOSED, NOTICES[UNCLOSED], len(text)),)
    if first == last:
        return Message(parts, text, notices, termination, "", words)
    thinking = text[first:last]
    return Message((Thinking(thinking, closed, (first, last)), *parts), text, notices, termination, thinking, words)


class Shortcut:
    """Reads whole outputs of one format, from one start, if they have the ordinary shape."""

    __slots__ = (
        "_calls",
        "_calls_in_thinking",
        "_format",
        "_odd_starts",
        "_settled",
        "_state",
        "_tables",
        "_takes_cut_off",
        "_undecided",
    )

    def __init__(
        self,
        format: Format,
        state: State,
        undecided: bool,
        calls_in_thinking: CallsInThinking,
        calls: bool,
        takes_cut_off: bool,
    ) -> None:
        """`takes_cut_off`: whether a thought that never closes may be cut, as its notice is no error to the caller."""
        self._format = format
        self._state = state
        self._undecided = undecided
        self._calls_in_thinking: CallsInThinking = calls_in_thinking
        self._calls = calls
        self._takes_cut_off = takes_cut_off
        self._tables = compile_tables(format, calls_in_thinking, calls)
        markers = self._tables.text.markers
        first = min(markers, default="")[:1]
        # What is the machine's at a glance: a call whose opener the first pattern does not find, because that one would
        # search all of the text in vain; and what may be a header whose markers were left out.
        self._odd_starts = tuple(
            text for text, marker in markers.items() if marker.action is Actions.CALL and text[0] != first
        ) + (tuple(self._tables.bare_firsts) if undecided else ())
        self._settled: dict[tuple[Format, str], tuple[Format, Tables]] = {}

    @property
    def applies(self) -> bool:
        """Whether there is an ordinary shape: not where a call without a marker may come first."""
        return self._state == THINKING or not self._tables.bare

    def parse(self, text: str) -> Message | None:
        """The message, or None where the machine must read."""
        cut = self.cut(text)
        return message_of(text, cut) if cut is not None else None

    def cut(self, text: str) -> OrdinaryCut | None:
        """Where thought and text stand, or None where the machine must read. For who needs no `Message`."""
        if self._odd_starts and text.startswith(self._odd_starts):
            return None
        long = text[LONG : LONG + 1]  # costs less than a call
        if self._state == THINKING:
            return self._cut_thought(text, 0, None, self._format, self._tables, long)
        place = _find(self._tables.text, text, 0, long)
        if place is None:
            return 0, 0, 0, len(text), "end", self._format
        start, stop, marker = place
        format, tables = self._format, self._tables
        if marker.action is Actions.OPEN:
            # Text before a thought is a part of its own, with whitespace rules that the machine knows.
            if start and not text[:start].isspace():
                return None
            if format.settle is not None:
                format, tables = self._settled.get((format, marker.text)) or self._settle(format, marker)
            return self._cut_thought(text, stop, None, format, tables, long)
        if marker.action is Actions.STRAY and marker.closes_thinking and self._undecided:
            # All before a lone closer is thinking; inside a block of a text it would be words.
            # So it would in a document.
            if _FENCE.search(text, 0, start) or (format.documents and _DOCUMENT.match(text)):
                return None
            return self._cut_thought(text, 0, place, format, tables, long)
        return _cut_end(text, 0, 0, 0, place, format)

    def _cut_thought(
        self, text: str, opened: int, closer: _Place | None, format: Format, tables: Tables, long: object
    ) -> OrdinaryCut | None:
        """A thought that begins at `opened`, and what follows it. Where the closer is not known, it is looked for."""
        if closer is None:
            closer = _find(tables.thinking, text, opened, long)
            if closer is not None and not opened and closer[2].action is Actions.NESTED:
                # The opener that the prompt has written, once more.
                if text[: closer[0]].strip():
                    return None
                opened = closer[1]
                closer = _find(tables.thinking, text, opened, long)
            if closer is None:
                return _cut_off(text, opened, format) if self._takes_cut_off else None
            if closer[2].action is not Actions.CLOSE:
                return None
        start, stop, marker = closer
        if marker.target != TEXT:
            return None
        before = text[start - 1] if start > opened else "\n"
        if before != "\n":
            # Nearly always a word stands there, and its line has no backtick.
            low = start - LINE if start - opened > LINE else opened
            if (before in _SUSPECT or text.find("`", low, start) >= 0) and _may_be_mention(text, low, start, stop):
                return None
        if format.settle is not None:
            format, tables = self._settled.get((format, marker.text)) or self._settle(format, marker)
        if tables.bare:
            return None  # a call may begin behind the thought
        words = text[opened:start].strip()
        if words:
            # The stripped stretch: its first character is the first one there that is no whitespace.
            opened = text.index(words[0], opened)
        return _cut_end(text, opened, opened + len(words), stop, _find(tables.text, text, stop, long), format)

    def _settle(self, format: Format, marker: Marker) -> tuple[Format, Tables]:
        """The format that a marker leads to in `auto`."""
        assert format.settle is not None
        settled = format.settle(marker.text)
        found = settled, compile_tables(settled, self._calls_in_thinking, self._calls)
        self._settled[format, marker.text] = found
        return found


def _may_be_mention(text: str, low: int, start: int, stop: int) -> bool:
    """Whether the machine must say if a close is only talked about."""
    before = text[start - 1]
    if before in QUOTES or (before.isspace() and (text[start - 2] == "«" or text[stop : stop + 1] in _PUNCTUATION)):
        return True
    tick = text.rfind("`", low, start)
    return tick >= 0 and tick > text.rfind("\n", tick, start)


def _cut_off(text: str, opened: int, format: Format) -> OrdinaryCut:
    """The cut of a thought that begins at `opened` and never closes."""
    end = len(text)
    return end - len(text[opened:].lstrip()), end, end, end, "cut", format


def _cut_end(text: str, first: int, last: int, start: int, place: _Place | None, format: Format) -> OrdinaryCut | None:
    """The cut, if the text from `start` on ends as ordinary ones do: with the input, or with a stop marker."""
    if place is None:
        words = text[start:]
    elif place[2].action is Actions.STOP and not text[place[1] :].strip():
        words = text[start : place[0]].rstrip()
    else:
        return None
    end = start + len(words)
    if start:
        start = end - len(words.lstrip())  # whitespace behind a marker is the marker's
    return first, last, start, end, "end" if place is None else "stop", format


def _find(table: Table, text: str, at: int, long: object) -> _Place | None:
    """The first marker behind `at`, if it is what it seems to be, else `_ODD`. `long`: whether the text is."""
    searches = table.searches
    place = text.find(table.shared, at) if long else at
    match = searches[0].search(text, place) if searches and place >= 0 else None
    start = len(text) if match is None else match.start()
    if start > at and table.later_searches:
        # No further than a marker that begins before this one may reach.
        end = start + table.longest
        for shared, search in table.later_searches:
            place = text.find(shared, at, end)
            if place < 0:
                continue
            other = search(text, place, end)
            if other is not None and other.start() < start:
                match, start = other, other.start()
    if match is None:
        return None
    marker = table.ordinary.get(match[0])
    return (start, match.end(), marker) if marker is not None else _ODD


@lru_cache(maxsize=512)
def _shortcut(
    format: Format,
    start: Start | None = None,
    calls_in_thinking: CallsInThinking | None = None,
    calls: bool = True,
    takes_cut_off: bool = True,
) -> Shortcut | None:
    """The shortcut of a format; None where it has no ordinary shape."""
    if start is None and format.start == TEXT:
        start = "undecided"
    state = format.start if start is None else THINKING if start == "thinking" else TEXT
    if state not in (TEXT, THINKING) or format.start not in (TEXT, THINKING):
        return None
    undecided = start == "undecided"
    found = Shortcut(format, state, undecided, calls_in_thinking or format.calls_in_thinking, calls, takes_cut_off)
    return found if found.applies else None


def shortcut_of(format: Format, policies: Policies) -> Shortcut | None:
    """The shortcut for whole outputs of a format under these policies; None where the machine must read all of them.

    As in `asides.parse`, an output without a given start is undecided where the format starts in text. What is longer
    than `policies.limit` is the machine's, and with a log, which says what markers it meets, so is everything.
    """
    if policies is DEFAULTS:
        return _shortcut(format)
    if (
        policies.prompt is not None
        or policies.whitespace != "tidy"
        or policies.mentions != "literal"
        or policies.retype
        or not policies.collect
    ):
        return None
    strict = policies.strict
    takes_cut_off = strict is not True and UNCLOSED not in (strict or ())
    return _shortcut(format, policies.start, policies.calls_in_thinking, policies.calls, takes_cut_off)


def parse_ordinary(text: str, format: Format, policies: Policies) -> Message | None:
    """The message of a whole output that has the ordinary shape, as the machine would read it; else None."""
    if len(text) > policies.limit or log.isEnabledFor(logging.DEBUG):
        return None
    # One argument to hash instead of four, and no call in between: most callers pass no policies.
    found = _shortcut(format) if policies is DEFAULTS else shortcut_of(format, policies)
    return found.parse(text) if found is not None else None


def events_of(message: Message) -> list[Event]:
    """The events of a message of the ordinary shape, as the machine would emit them: each text is one delta."""
    events: list[Event] = []
    for index, part in enumerate(message.parts):
        # At most one thought and one text, so neither has a gap before it. The notice comes before the end of its part.
        if isinstance(part, Thinking):
            events += (
                PartStart(index, "thinking"),
                ThinkingDelta(index, part.text),
                *message.notices,
                PartEnd(index, part.complete, span=part.span),
            )
        elif isinstance(part, Text):  # pragma: no branch (no call has this shape)
            events += (PartStart(index, "text"), TextDelta(index, part.text), PartEnd(index, True, span=part.span))
    return events or [*message.notices]
