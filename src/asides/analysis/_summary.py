"""Many replies together, in constant memory: `Summary` for one group of them, `Groups` by name, such as by model.

Only whole numbers are kept: sums, how many replies have any of something, and the spread of each measure in buckets
(`distribution`). So summaries can be merged in any order with the same result, a trace file of any length takes the
same memory, and no text is kept but a few short excerpts of the replies that stand out.

    summary = summarize(analyze(message) for message in messages)
    summary.fraction("loop"), summary.quantile("thinking_words", 0.5), summary.to_dict()
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Literal

import msgspec

from ._distribution import Distribution
from ._figures import PARTS, Figures
from ._turns import KINDS

Over = Literal["replies", "thinking"]
Unit = Literal["", "percent", "seconds", "score"]


class Measure(msgspec.Struct, frozen=True):
    """A figure whose spread over the replies is kept."""

    name: str
    title: str
    over: Over = "thinking"
    """Counted over all replies, or over those that think."""
    unit: Unit = ""
    scale: int = 1
    """What a figure is multiplied with to be kept as a whole number."""


MEASURES = (
    Measure("thinking_words", "words of thinking"),
    Measure("thinking_characters", "characters of thinking"),
    Measure("thinking_tokens", "tokens of thinking"),
    Measure("text_words", "words of the answer", over="replies"),
    Measure("text_characters", "characters of the answer", over="replies"),
    Measure("text_tokens", "tokens of the answer", over="replies"),
    Measure("share", "share of thinking", over="replies", unit="percent", scale=1000),
    Measure("blocks", "thoughts"),
    Measure("steps", "steps"),
    Measure("questions", "questions"),
    Measure("turns", "backtracking"),
    Measure("repetition", "repetition", unit="percent", scale=1000),
    Measure("seconds", "seconds of thinking", unit="seconds", scale=1000),
    Measure("quality_score", "quality score", unit="score", scale=1000),
)
"""Every figure with a spread, in the order in which it is shown."""
WORD_EDGES = (0, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
"""Bins of the length of thinking, each twice as wide as the one before."""
SHARE_EDGES = tuple(range(0, 1000, 100))
"""Bins of the share of thinking, in thousandths."""

COUNTED = (
    "blocks",
    "steps",
    "thinking_characters",
    "thinking_words",
    "thinking_tokens",
    "text_characters",
    "text_words",
    "text_tokens",
    "call_characters",
    "questions",
    "turns",
    "unclosed",
    "empty",
    "drafts",
    "calls",
    "broken_calls",
    "beyond",
)
"""Figures whose sum is kept."""
HAVING = ("thinking", "questions", "turns", "loop", "unclosed", "empty", "drafts", "calls", "broken_calls", "beyond")
"""What replies are counted for having any of."""
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
NOTABLE = 5
"""How many replies are remembered for being the longest, and for their loops."""
PLACE, EXCERPT = 300, 200
"""Characters of a place and of an excerpt that are kept."""
MOST_GROUPS = 200
"""Groups that are kept apart; a reply of any other is counted under `OTHERS`."""
OTHERS = "(others)"
NAMELESS = "(none)"


class Notable(msgspec.Struct, frozen=True, order=True):
    """A reply that stands out, and where to find it."""

    words: int
    place: str
    excerpt: str


class Summary(msgspec.Struct):
    """What many replies have in common. Whole numbers throughout, so that merging in any order gives the same."""

    replies: int = 0
    """How many replies were counted, with thinking or without."""
    totals: dict[str, int] = {}
    """The sum of each figure that is a count, by the figure's name, such as `thinking_words`."""
    having: dict[str, int] = {}
    """How many replies have any of it, by name: `thinking`, `questions`, `turns`, `loop`, `unclosed` and others."""
    turn_kinds: dict[str, int] = {}
    """Backtracking in all replies together, by kind: `stop`, `correction`, `check`, `alternative`."""
    quality_parts: dict[str, int] = {}
    """The sum of each part of the quality score, in thousandths, over the replies that think."""
    spreads: dict[str, Distribution] = {}
    """The distribution of each measure, by its name; only measures that occurred."""
    longest: list[Notable] = []
    """The replies with the most words of thinking, longest first; at most 5."""
    loops: list[Notable] = []
    """The replies with the longest loops, longest first; at most 5."""

    def add(self, figures: Figures, place: str = "", excerpt: str = "") -> None:
        """Count one reply in. `place` says where it stands, for a person; `excerpt` is how it begins."""
        self.replies += 1
        thinks = figures.blocks > 0
        totals, having, spreads = self.totals, self.having, self.spreads
        # All figures by one call: this runs for every reply.
        for name, count in zip(COUNTED, _COUNTS(figures), strict=True):
            # Most figures of most replies are zero; a name that was never met must get its sum nevertheless.
            if count or (count is not None and name not in totals):
                totals[name] = totals.get(name, 0) + count
        for name in HAVING:
            any_of = thinks if name == "thinking" else getattr(figures, name)
            if any_of or name not in having:
                having[name] = having.get(name, 0) + (1 if any_of else 0)
        for (name, scale, over_all), value in zip(_SPREAD, _VALUES(figures), strict=True):
            if value is not None and (over_all or thinks):
                spread = spreads.get(name)
                if spread is None:
                    spread = spreads[name] = Distribution()
                spread.add(value if scale == 1 else max(0, round(value * scale)))
        if thinks:
            for kind, count in figures.turn_kinds.items():
                self.turn_kinds[kind] = self.turn_kinds.get(kind, 0) + count
            for part, value in figures.quality.parts.items():
                # Most are whole, and a comparison is less than a call of `round`.
                self.quality_parts[part] = self.quality_parts.get(part, 0) + (
                    1000 if value == 1 else round(value * 1000)
                )
            # Few are among the longest: for the others no record is made.
            if len(self.longest) < NOTABLE or figures.thinking_words >= self.longest[-1].words:
                _remember(self.longest, Notable(figures.thinking_words, place[:PLACE], excerpt[:EXCERPT]))
        if figures.loop is not None:
            _remember(self.loops, Notable(figures.loop.words, place[:PLACE], figures.loop.text[:EXCERPT]))

    def merge(self, other: Summary) -> Summary:
        """Count in all that another has counted, and return this one."""
        self.replies += other.replies
        for ours, theirs in (
            (self.totals, other.totals),
            (self.having, other.having),
            (self.turn_kinds, other.turn_kinds),
            (self.quality_parts, other.quality_parts),
        ):
            for name, count in theirs.items():
                ours[name] = ours.get(name, 0) + count
        for name, spread in other.spreads.items():
            self._spread(name).merge(spread)
        for notable in other.longest:
            _remember(self.longest, notable)
        for notable in other.loops:
            _remember(self.loops, notable)
        return self

    @property
    def thinking(self) -> int:
        """How many replies think."""
        return self.having.get("thinking", 0)

    @property
    def quality(self) -> dict[str, float]:
        """The mean of each part of the quality over the replies that think."""
        thinking = self.thinking
        return {part: self.quality_parts.get(part, 0) / 1000 / thinking if thinking else 0.0 for part in PARTS}

    @property
    def share(self) -> float:
        """Characters of thinking in all characters of all replies together."""
        written = sum(self.totals.get(f"{kind}_characters", 0) for kind in ("thinking", "text", "call"))
        return self.totals.get("thinking_characters", 0) / written if written else 0.0

    def fraction(self, having: str) -> float:
        """The share of replies that have any of this."""
        return self.having.get(having, 0) / self.replies if self.replies else 0.0

    def per_thousand_words(self, name: str) -> float:
        """A figure's sum in a thousand words of thinking."""
        counted = self.turn_kinds.get(name, 0) if name in KINDS else self.totals.get(name, 0)
        words = self.totals.get("thinking_words", 0)
        return 1000 * counted / words if words else 0.0

    def mean(self, name: str) -> float:
        """The mean of a measure, in its own unit."""
        spread = self.spreads.get(name)
        return spread.mean / _SCALES[name] if spread else 0.0

    def quantile(self, name: str, share: float) -> float:
        """A quantile of a measure, in its own unit."""
        spread = self.spreads.get(name)
        return spread.quantile(share) / _SCALES[name] if spread else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "replies": self.replies,
            "totals": {name: self.totals[name] for name in COUNTED if name in self.totals},
            "replies_with": {name: self.having.get(name, 0) for name in HAVING},
            "share": round(self.share, 4),
            "turn_kinds": {kind: self.turn_kinds.get(kind, 0) for kind in KINDS},
            "quality_score": round(self.mean("quality_score"), 4),
            "quality_parts": {part: round(value, 4) for part, value in self.quality.items()},
            "distributions": {
                measure.name: self._spread_figures(measure.name) for measure in MEASURES if measure.name in self.spreads
            },
            "longest": [_plain(notable) for notable in self.longest],
            "loops": [_plain(notable) for notable in self.loops],
        }

    def _spread_figures(self, name: str) -> dict[str, float]:
        spread, scale = self.spreads[name], _SCALES[name]
        return {
            "count": spread.count,
            "mean": round(spread.mean / scale, 4),
            "min": spread.lowest / scale,
            **{f"p{share * 100:.0f}": self.quantile(name, share) for share in QUANTILES},
            "max": spread.highest / scale,
        }

    def _spread(self, name: str) -> Distribution:
        return self.spreads.setdefault(name, Distribution())


class Groups(msgspec.Struct):
    """Summaries by the name of a group."""

    summaries: dict[str, Summary] = {}

    most: int = MOST_GROUPS
    """How many are kept apart. What will be merged keeps all of them: which ones stay is decided there."""

    def add(self, group: str, figures: Figures, place: str = "", excerpt: str = "") -> None:
        """Count one reply in."""
        self._summary(group[:PLACE] or NAMELESS).add(figures, place, excerpt)

    def merge(self, other: Groups) -> None:
        """Count in all that another has counted which came after this one and kept all its groups."""
        for name, summary in other.summaries.items():
            self._summary(name).merge(summary)

    def _summary(self, name: str) -> Summary:
        summary = self.summaries.get(name)
        if summary is None:
            if len(self.summaries) >= self.most:
                name = OTHERS
            summary = self.summaries.setdefault(name, Summary())
        return summary

    def largest_first(self) -> list[tuple[str, Summary]]:
        """The groups, those of the most replies first."""
        return sorted(self.summaries.items(), key=lambda item: (-item[1].replies, item[0]))

    def all(self) -> Summary:
        """All groups together."""
        whole = Summary()
        for summary in self.summaries.values():
            whole.merge(summary)
        return whole


_SCALES = {measure.name: measure.scale for measure in MEASURES}
_SPREAD = [(measure.name, measure.scale, measure.over == "replies") for measure in MEASURES]
_COUNTS = attrgetter(*COUNTED)
_VALUES = attrgetter(*("quality.score" if name == "quality_score" else name for name, _, _ in _SPREAD))


def summarize(figures: Iterable[Figures]) -> Summary:
    """The summary of many replies.

    Examples:
        >>> from asides.analysis import analyze, summarize
        >>> summary = summarize([analyze(asides.parse(text)) for text in ("<think>2+2</think>Four.", "Hi!")])
        >>> summary.replies, summary.thinking
        (2, 1)
    """
    summary = Summary()
    for each in figures:
        summary.add(each)
    return summary


def _plain(notable: Notable) -> dict[str, Any]:
    return {"words": notable.words, "place": notable.place, "excerpt": notable.excerpt}


def _remember(notables: list[Notable], notable: Notable) -> None:
    """Keep the greatest few. The order is total, so it does not matter who came first."""
    notables.append(notable)
    notables.sort(reverse=True)
    del notables[NOTABLE:]
