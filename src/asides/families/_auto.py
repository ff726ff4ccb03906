"""`auto`: no family at first, settled step by step by what is met.

It holds the distinctive markers of all families (see `_distinctive.py`): no sentences, no bare JSON or Python, no
wrappers that are also common tags. The first thinking marker settles how thinking is written, the first call how calls
are; a marker of a decisive format settles both at once. Families that were registered take part: `build` makes an
`auto` that knows them too.

    <think>    thinking is between <think> and </think>; calls are still open
    [TOOL_CALLS]    calls are Mistral's; thinking is still open
    <|channel|>    this is harmony
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache, partial

from msgspec.structs import replace

from .._engine.calls.syntax import CallSyntax
from .._engine.format import END, OUTSIDE, TEXT, THINKING, Format, State, States
from ..errors import UsageError
from ._auto_markers import MARKERS
from ._distinctive import Distinctive, gather, merge_states
from ._family import Family
from ._registry import get_format


class _Auto:
    """One `auto` and every format that it settles on."""

    def __init__(self, markers: Distinctive) -> None:
        self.markers = markers
        self._pairs = {marker: pair for pair in markers.pairs + markers.weak for marker in pair}
        # The engine keeps its tables for each format object, so the same settling must give the same object.
        self.any = cache(self._make_any)
        self._pair = cache(self._make_pair)
        self._messages = cache(self._make_messages)

    def _make_any(self, syntax: CallSyntax | None) -> Format:
        """Thinking is not settled; calls perhaps."""
        markers = self.markers
        openers: dict[str, State] = dict.fromkeys((opener for opener, _ in markers.pairs + markers.weak), THINKING)
        # What closes a weak pair acts only when its opener did, and then the pair is settled.
        closers: dict[str, State] = dict.fromkeys((closer for _, closer in markers.pairs), TEXT)
        stops: dict[str, State] = dict.fromkeys(markers.stops, END)
        left = tuple(stop for stop in markers.stops if markers.states.get(TEXT, {}).get(stop) == OUTSIDE)
        ends: States = {TEXT: {**stops, **dict.fromkeys(markers.wrappers, TEXT)}, THINKING: stops}
        return Format(
            name="auto",
            source="the distinctive markers of every family here",
            # Where a stop of one family only ends a message in another, the latter counts: more follows it.
            states=merge_states({TEXT: openers, THINKING: closers}, markers.states, ends),
            strays=markers.strays,
            partial=markers.partial,
            calls=markers.syntaxes if syntax is None else (syntax,),
            header=markers.header,
            tag_rules=markers.tags,
            goes_on=markers.goes_on,
            last_stops=markers.last_stops + left,
            documents=True,
            other_turns_after=markers.other_turns,
            assistant=markers.assistant,
            settle=partial(self._settle, syntax),
        )

    def _settle(self, syntax: CallSyntax | None, met: str | CallSyntax) -> Format:
        if not isinstance(met, str):
            return self.any(met)
        pair = self._pairs.get(met)
        if pair is not None:
            return self._pair(*pair, syntax)
        name = self.markers.decisive.get(met)
        if name is not None:
            return get_format(name)
        if self.markers.header is not None and met == self.markers.header.body:
            return self._messages()
        return self.any(syntax)

    def _make_pair(self, opener: str, closer: str, syntax: CallSyntax | None) -> Format:
        """Thinking is settled on one pair of markers; calls perhaps too."""
        markers = self.markers
        return Format.tags(
            opener,
            closer,
            name="auto",
            stops=markers.stops,
            wrappers=markers.wrappers,
            strays=markers.strays,
            goes_on=markers.goes_on,
            last_stops=markers.last_stops,
            other_turns_after=markers.other_turns,
            calls=markers.syntaxes if syntax is None else (syntax,),
            assistant=markers.assistant,
            tag_rules={marker: markers.tags[marker] for marker in (opener, closer) if marker in markers.tags},
            settle=partial(self._settle_call, opener, closer) if syntax is None else None,
        )

    def _settle_call(self, opener: str, closer: str, met: str | CallSyntax) -> Format:
        return self._pair(opener, closer, None if isinstance(met, str) else met)

    def _make_messages(self) -> Format:
        """After a header without a channel: a format without channels, unless one shows that it is another's."""
        formats = sorted(map(get_format, self.markers.messages), key=_has_channels)
        header = self.markers.header
        return formats[0].but(
            name="auto",
            states=merge_states(*(format.states for format in formats)),
            header=None if header is None else replace(header, calls=()),
            settle=self._settle_channel,
        )

    def _settle_channel(self, met: str | CallSyntax) -> Format:
        name = self.markers.decisive.get(met) if isinstance(met, str) else None
        return self._messages() if name is None else get_format(name)


def _has_channels(format: Format) -> bool:
    return format.header is not None and bool(format.header.channel_marker)


_OWN = _Auto(MARKERS)
AUTO = _OWN.any(None)
FAMILY = Family(name="auto", formats=(AUTO,), generic=True, detectable=False)


def build(registered: Sequence[Family]) -> Format:
    """`auto` with the families of this package and those that were registered, the last first."""
    found, markers = AUTO, MARKERS
    for family in reversed(registered):
        wider = gather([family], markers)
        made = _Auto(wider).any(None)
        try:
            made.check()
        except UsageError as error:  # it can be read by its name all the same
            logging.getLogger("asides").warning("the family %r takes no part in auto: %s", family.name, error)
        else:
            found, markers = made, wider
    return found
