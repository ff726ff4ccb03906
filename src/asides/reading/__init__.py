"""How a reply is read: which format, where it begins, whether it may call, and the evidence for each.

`Reading.of` is the one place that decides it, for every surface: the library with a model's name, the filter, `run`,
the gateway, columns, plug-ins. It asks nobody; whoever can ask a server hands in what it was told (`ServerFacts`) and
what replies have shown (`Seen`). A `Reading` is also the one maker of parsers and splitters.

    reading = Reading.of("Qwen/Qwen3-4B-Thinking-2507")
    reading.begins                          # Begins(start='thinking', sure=True, reason="'Qwen/…' is Qwen 3 Thinking…")
    reading.parse("2+2</think>4").thinking  # '2+2'
"""

from __future__ import annotations

from ._reading import Begins, EvidenceKind, Reading, RowReader, ServerFacts, start_after
from ._seen import Seen, SeenReplies, Shown, shown_by

__all__ = [
    "Begins",
    "EvidenceKind",
    "Reading",
    "RowReader",
    "Seen",
    "SeenReplies",
    "ServerFacts",
    "Shown",
    "shown_by",
    "start_after",
]
