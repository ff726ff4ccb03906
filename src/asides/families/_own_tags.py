"""A format from markers that a user names: `--tags '<a>' '</a>'` on the command line, `tags` in the configuration."""

from __future__ import annotations

from collections.abc import Iterable

from .._engine.format import Format
from ._auto_markers import MARKERS


def own_tags(pairs: Iterable[tuple[str, str]]) -> Format:
    """Thinking stands between these markers; calls and ends of turns are read as by `auto`.

    Raises a `UsageError` where a marker is blank or cannot be told from another.
    """
    opens, closes = zip(*pairs, strict=True)
    stops = tuple(stop for stop in MARKERS.stops if stop not in (*opens, *closes))
    return Format.tags(opens, closes, source="the user's own tags", stops=stops, calls=MARKERS.syntaxes)
