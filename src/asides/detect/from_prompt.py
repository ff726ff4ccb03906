"""What a prompt's end says: where it leaves the model, and whose header it ends with.

Reads the tail as the engine does. Prompts that end with nothing known say nothing, and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.format import THINKING, Format
from ..engine.parser import read_prompt
from ..engine.tokens import TokenParser
from ..formats import get_format
from .markers import candidates, closers, openers
from .result import Finding, Start

TAIL = 1 << 16
"""Characters of a prompt that are looked at, from its end."""


def probe(prompt: str) -> Finding:
    """What a prompt alone says."""
    tail = prompt[-TAIL:]
    known = candidates()
    opener, closer = _marker(tail, known, opens=True), _marker(tail, known, opens=False)
    marker = max(opener, closer, key=len)
    headed = _headed(tail, known)
    fitting = [format for format in headed or known if _has(format, marker)] if marker else headed
    families = {(openers(format), closers(format), format.assistant) for format in fitting}
    # Formats that share markers and header cannot be told apart here; `auto` reads them all.
    formats: tuple[str | Format, ...] = tuple(format.name for format in fitting) if len(families) == 1 else ()
    format = fitting[0] if formats else get_format("auto")
    start = state(format, tail)
    if marker:
        reason = f"ends with {marker!r}, so output begins in {start}"
        return Finding(source="prompt", formats=formats, thinks=True, start=start, reasons=(reason,))
    if headed:
        return Finding(source="prompt", formats=formats, start=start, reasons=("opens a turn and no thinking",))
    return Finding(source="prompt", reasons=("ends with no marker and no header that is known",))


def _headed(tail: str, known: list[Format]) -> list[Format]:
    """The formats whose assistant header comes last, the longest if several end there."""
    ends = [(tail.rfind(header) + len(header), len(header), format) for format in known for header in format.assistant]
    found = [(end, length, format) for end, length, format in ends if end >= length]
    best = max(((end, length) for end, length, _ in found), default=None)
    return [format for end, length, format in found if (end, length) == best]


def _has(format: Format, marker: str) -> bool:
    return marker in openers(format) or marker in closers(format)


def _marker(tail: str, known: list[Format], *, opens: bool) -> str:
    """The thinking marker that ends the tail, the longest if several do."""
    of = openers if opens else closers
    return max(
        (m for format in known if format.header is None for m in of(format) if tail.rstrip().endswith(m.rstrip())),
        key=len,
        default="",
    )


def state(format: Format, prompt: str) -> Start:
    """Where a prompt leaves a model that speaks this format."""
    return "thinking" if read_prompt(format, prompt[-TAIL:]).state == THINKING else "text"


def state_of_ids(format: Format, tokenizer: Any, ids: Sequence[int]) -> Start:
    """The same in ids, where a marker typed with ordinary tokens is no marker."""
    return "thinking" if TokenParser(tokenizer, format, prompt_ids=ids).state == "thinking" else "text"


