"""What a prompt's end says: where it leaves the model, and whose header it ends with.

Reads the tail as the engine does. A prompt that ends with nothing known gives a finding without formats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._engine.format import TEXT, THINKING, Format
from .._engine.parser import read_prompt
from .._engine.tokens import read_prompt_ids
from ..families import get_format
from ._markers import candidates, closers, openers
from ._result import BEGIN_NAMES, Begin, Finding, begin_of

TAIL = 1 << 16
"""Characters of a prompt that are looked at, from its end."""


def probe(prompt: str) -> Finding:
    """What a prompt alone says."""
    tail = prompt[-TAIL:]
    known = candidates()
    marker = max((_marker(tail, known, openers), _marker(tail, known, closers)), key=len)
    headed = _headed(tail, known)
    fitting = [format for format in headed or known if _has(format, marker)] if marker else headed
    if not fitting:
        return Finding(source="prompt", reasons=("ends with no marker and no header that is known",))
    names = tuple(format.name for format in fitting)
    if len({(openers(format), closers(format), format.assistant) for format in fitting}) > 1:
        # Several families write this. Other sources may choose among them; alone, `auto` reads them all.
        names = ("auto", *names)
    begins = begin(get_format(names[0]), tail)
    what = f"ends with {marker!r}" if marker else "opens the model's turn"
    return Finding(
        source="prompt",
        formats=names,
        thinks=True if marker or begins == "thinking" else None,
        begin=begins,
        reasons=(f"{what}, so output begins in {BEGIN_NAMES[begins]}",),
    )


def _headed(tail: str, known: list[Format]) -> list[Format]:
    """The formats whose assistant header comes last, the longest if several end there."""
    ends = [(tail.rfind(header) + len(header), len(header), format) for format in known for header in format.assistant]
    found = [(end, length, format) for end, length, format in ends if end >= length]
    best = max(((end, length) for end, length, _ in found), default=None)
    return [format for end, length, format in found if (end, length) == best]


def _has(format: Format, marker: str) -> bool:
    return marker in openers(format) or marker in closers(format)


def _marker(tail: str, known: list[Format], kind: Callable[[Format], tuple[str, ...]]) -> str:
    """The thinking marker that ends the tail, the longest if several do."""
    tail = tail.rstrip()
    markers = (marker for format in known if format.header is None for marker in kind(format))
    return max((marker for marker in markers if tail.endswith(marker.rstrip())), key=len, default="")


def begin(format: Format, prompt: str) -> Begin:
    """Where a prompt leaves a model that speaks this format."""
    return begin_of(read_prompt(format, prompt[-TAIL:]).state)


def begin_after(format: Format, written: str) -> Begin:
    """The same where `written` is known to be the whole end of the prompt, as a template or a server writes it."""
    closed = any(written.rstrip().endswith(closer.rstrip()) for closer in closers(format))
    # Such a format cannot tell an open thought from its prompt, only a closed one.
    if not openers(format) and format.start == THINKING and not closed:
        return "thinking"  # nothing opens it, so a model that thinks begins with it
    if not any(header in written for header in format.assistant) and format.start == THINKING:
        format = format.but(start=TEXT)  # which it would fall back to, but here the prompt is known
    return begin(format, written)


def begin_of_ids(format: Format, tokenizer: Any, ids: Sequence[int]) -> Begin:
    """The same in ids, where a marker typed with ordinary tokens is no marker."""
    return begin_of(read_prompt_ids(tokenizer, format, ids).state)
