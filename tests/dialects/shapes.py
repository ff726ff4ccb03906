"""The shapes that a reply can have, made by running the real parser over what a model would write.

Every dialect's writer is held to each of them, streamed and whole. Knows no dialect.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import asides
from asides._engine.format import Format
from asides.events import PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from asides.families import get_format
from asides.reply._choice import MakeParser
from asides.reply._items import Begin, Ended, Failed, RawText, Reason, ReplyEvent, ReplyItem, Usage
from asides.reply._splitter import Splitter

DEATH = Failed("the upstream ended its reply without saying that it was over", 502, "api_error", "upstream_ended")
REFUSED = Failed("the model is not loaded", 503, "service_unavailable_error", "not_loaded")


class Shape(NamedTuple):
    """One reply."""

    name: str
    raw: tuple[str, ...]
    """What the model writes, choice by choice."""
    reason: Reason = "stop"
    show: bool = True
    """Whether the caller wants to see thinking."""
    failure: Failed | None = None
    """How it fails, where it does."""

    @property
    def whole(self) -> bool:
        """Whether a whole reply comes of it."""
        return self.failure is None


FIND = '<tool_call>\n{"name": "find", "arguments": {"query": "Zürich \\u2028 <b>", "limit": 3}}\n</tool_call>'
OPEN = '<tool_call>\n{"name": "open", "arguments": {}}\n</tool_call>'

SHAPES = (
    Shape("thinking", ("<think>\nTwo and two: naïve, but 4.\n</think>\n\nIt is 4 \u2028 or vier 🙂.",)),
    Shape("none", ("It is 4.\n\nNothing\x85more.",)),
    Shape("empty", ("",)),
    Shape("only_thinking", ("<think>Nothing to say.</think>",)),
    Shape("calls", (f"<think>Look it up.</think>\n\nI will look.\n{FIND}\n{OPEN}",)),
    Shape("only_calls", (f"{FIND}\n{OPEN}",)),
    Shape("interleaved", (f"<think>One.</think>\n\nFirst.\n{FIND}\n<think>Two.</think>\n\nSecond.",)),
    Shape("drafted", (f"<think>Perhaps {FIND}? No.</think>\n\nI know it already.",)),
    Shape("cut_in_thinking", ("<think>Two and two and",), "length"),
    Shape("cut_in_text", ("<think>Easy.</think>\n\nIt is",), "length"),
    Shape(
        "cut_in_call",
        ('<think>Find it.</think>\n\n<tool_call>\n{"name": "find", "arguments": {"query": "Zü',),
        "length",
    ),
    Shape("cut_in_name", ('Wait.\n<tool_call>\n{"name": "fi',), "length"),
    Shape("broken_call", ('Look:\n<tool_call>\n{"name": "find", "arguments": {"query": Zürich}}\n</tool_call>\nSo.',)),
    Shape("nameless_call", ('Look:\n<tool_call>\n{"arguments": {"query": "Zürich"}}\n</tool_call>\nSo.',)),
    Shape("filtered", ("<think>Hm.</think>\n\nI had better",), "content_filter"),
    Shape("two", ("<think>A.</think>\n\nFirst answer.", f"<think>B.</think>\n\nSecond.\n{OPEN}")),
    Shape("hidden", (f"<think>A secret.</think>\n\nIt is 4.\n{OPEN}",), show=False),
    Shape("hidden_only", ("<think>A secret.</think>",), show=False),
    Shape("refused", ("",), failure=REFUSED),
    Shape("death", ("<think>Two and two.</think>\n\nIt is 4, I think <",), failure=DEATH),
    Shape("death_in_thinking", ("<think>Two and two.</thi",), failure=DEATH),
)
BY_NAME = {shape.name: shape for shape in SHAPES}
WHOLE = tuple(shape for shape in SHAPES if shape.whole)
FAILING = tuple(shape for shape in SHAPES if not shape.whole)


def make_parser(**policies: Any) -> MakeParser:
    """How a choice is read: the format it is given, with these policies."""

    def make(format: Format) -> asides.Parser:
        return asides.Parser(format, **{"seed": 0, **policies})

    return make


def items(shape: Shape, *, size: int = 3, usage: Usage | None = None, **policies: Any) -> list[ReplyItem]:
    """The items of a shape, its choices taking turns, each piece of `size` characters."""
    splitter = Splitter(get_format("qwen3"), make_parser(**policies), seed=0)
    found: list[ReplyItem] = []
    if shape.failure is None or any(shape.raw):
        found += splitter.feed(Begin("reply_1", "qwen3-8b", 1_700_000_000))
    longest = max(map(len, shape.raw))
    for start in range(0, longest, size):
        for choice, raw in enumerate(shape.raw):
            if raw[start : start + size]:
                found += splitter.feed(RawText(choice, raw[start : start + size]))
    if shape.failure is not None:
        return found + splitter.feed(shape.failure)
    for choice in range(len(shape.raw)):
        found += splitter.feed(Ended(choice, shape.reason))
    return found + splitter.feed(usage or Usage(11, 22))


class Told(NamedTuple):
    """What the parts of a choice say, in order: `("thinking", text)`, `("text", text)`, `("call", name, arguments)`."""

    parts: tuple[tuple[str, ...], ...]
    reason: str = ""


def told(found: Iterable[ReplyItem], choice: int = 0, *, show: bool = True) -> Told:
    """The parts of a choice, whatever the size of its deltas. `show`: those of thinking too."""
    parts: dict[int, list[str]] = {}
    reason = ""
    for item in found:
        if isinstance(item, Ended) and item.choice == choice:
            reason = item.reason
        if not isinstance(item, ReplyEvent) or item.choice != choice:
            continue
        event = item.event
        if isinstance(event, PartStart):
            kind = "call" if event.kind == "tool_call" else event.kind
            parts[event.index] = [kind, event.name, ""] if kind == "call" else [kind, ""]
        elif isinstance(event, ThinkingDelta | TextDelta | ToolCallDelta):
            parts[event.index][-1] += event.text
    shown = (tuple(part) for _, part in sorted(parts.items()) if show or part[0] != "thinking")
    return Told(tuple(shown), reason)


def expected(shape: Shape, choice: int = 0) -> asides.Message:
    """The message that the parser reads; what a writer must tell, as far as its dialect can."""
    parser = asides.Parser("qwen3", seed=0)
    parser.feed(shape.raw[choice])
    parser.finish()
    return parser.message
