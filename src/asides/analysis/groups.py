"""Replies counted by group, such as by model: at most so many groups, whatever the data says. Knows no file."""

from __future__ import annotations

import msgspec

from .figures import Figures
from .summary import PLACE, Summary

MOST_GROUPS = 200
"""Groups that are kept apart; a reply of any other is counted under `OTHERS`."""
OTHERS = "(others)"
NAMELESS = "(none)"


class Groups(msgspec.Struct):
    """Summaries by the name of a group."""

    summaries: dict[str, Summary] = {}

    def add(self, group: str, figures: Figures, place: str = "", excerpt: str = "") -> None:
        """Count one reply in."""
        name = group[:PLACE] or NAMELESS
        if name not in self.summaries and len(self.summaries) >= MOST_GROUPS:
            name = OTHERS
        self.summaries.setdefault(name, Summary()).add(figures, place, excerpt)

    def largest_first(self) -> list[tuple[str, Summary]]:
        """The groups, those of the most replies first."""
        return sorted(self.summaries.items(), key=lambda item: (-item[1].replies, item[0]))

    def all(self) -> Summary:
        """All groups together."""
        whole = Summary()
        for summary in self.summaries.values():
            whole.merge(summary)
        return whole
