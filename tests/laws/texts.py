"""Texts that are hard on a format: its own markers, whole, broken, quoted, fenced and cut off, between words.

Everything is derived from the format's data, so a new format is held to the laws without being named here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st

import asides
from asides import Format
from tests.laws.calls import BODIES, samples, syntaxes
from tests.support import markers, stop_markers

WORDS = ("zebra7", "a", "It is 4.", "x" * 40, "é", "🙂", "日本", "\ud800", "\udc00", "\x00", "<", ">", "|", "</", "0")
SPACES = (" ", "\n", "\n\n", "\t", "\r\n", "   ", "\n \n\n", " " * 20, "\u3000", "\x1f")
QUOTES = ('"', "'", "`", "``", "“", "”", "‘", "’", "«", "»")
PAIRS = (('"', '"'), ("'", "'"), ("`", "`"), ("``", "``"), ("“", "”"), ("«", "»"), ("'", '"'), ("x`", "`"))
FENCES = ("```", "```\n", "\n```\n", "\n```python\n", "~~~\n", "\n~~~\n", "````\n", "  ```\n", "``` `\n", "\n``` \n")


def tool(name: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    """OpenAI's definition of a tool with these arguments."""
    parameters = {"type": "object", "properties": properties, **more}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS: tuple[tuple[dict[str, Any], ...], ...] = (
    (tool("f", {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "object"}}),),
    (
        tool("f", {"a": {"type": "string"}, "b": {"type": "array"}}, additionalProperties=False),
        tool("g", {"b": {"type": ["number", "null"]}, "a": {"type": "boolean"}}, additionalProperties=True),
    ),
    (tool("g", {"a": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}), {"type": "function", "function": {}}),
    (),
)
"""What a caller may give: types for every argument of the samples, for some, for another tool, for none."""


def grammar_words(format: Format) -> Iterator[str]:
    """The literal strings that its call syntaxes and its header are made of."""
    holders: list[Any] = [*syntaxes(format), *([format.header] if format.header else [])]
    for holder in holders:
        for field in msgspec.structs.fields(holder):
            value = getattr(holder, field.name)
            found = [value] if isinstance(value, str) else value if isinstance(value, tuple) else []
            yield from (word for word in found if isinstance(word, str) and len(word) > 1)
    if format.header is not None:
        yield from (
            *format.header.channels,
            *format.header.roles,
            " to=functions.f",
            "to=",
            " to=user",
            " json",
            "code",
        )
        for channel in (*format.header.channels, "zebra7", ""):
            for tail in ("", " to=functions.f", " to=user json"):
                yield f"{format.header.channel_marker}{channel}{tail}{format.header.body}"


def near_misses(marker: str) -> Iterator[str]:
    """What looks like a marker and is none, or not yet."""
    yield marker[:-1]
    yield marker[: len(marker) // 2]
    yield marker[1:]
    yield marker[:1] * 2 + marker[1:]
    yield marker[:-1] + " " + marker[-1:]
    yield marker.upper()
    yield marker[:-1] + ' id="1">'


@cache
def pieces(name: str) -> tuple[str, ...]:
    """What texts for a format are made of. The simplest first: that is where failing examples shrink to."""
    format = asides.get_format(name)
    own = sorted(set(markers(format)), key=lambda marker: (len(marker), marker))[:60]
    mentioned = [f"{first}{marker}{last}" for marker in own for first, last in PAIRS]
    pairs = [f"`{opener}{{}}{closer}`" for opener in own[:8] for closer in own[:8] if opener != closer]
    mentioned += [pair.format("a") for pair in pairs]
    fenced = [f"\n```\n{marker}\n```\n" for marker in own]
    misses = [miss for marker in own for miss in near_misses(marker) if miss]
    within = [marker for marker in own if not {"<", ">", "\n"} & set(marker)][:6]
    misses += [f"{tag[:-1]} a='{marker}' >" for tag in own if tag[:1] + tag[-1:] == "<>" for marker in within]
    stops = [stop + space for stop in stop_markers(format) for space in ("", "\n", " zebra7")]
    calls = samples(format) or list(BODIES)
    grammar = list(grammar_words(format)) or ["zebra7"]
    groups = [
        (20, list(WORDS)),
        (14, list(SPACES)),
        (40, own),
        (8, list(QUOTES)),
        (6, list(FENCES)),
        (8, misses),
        (10, mentioned),
        (3, fenced),
        (4, stops),
        (16, calls),
        (6, grammar),
        (3, list(BODIES)),
    ]
    return tuple(piece for weight, group in groups for piece in _spread(group, weight * 4))


def _spread(group: list[str], count: int) -> list[str]:
    """About `count` pieces, evenly from the group."""
    if not group:
        return []
    return [group[number * len(group) // count] for number in range(count)]


@cache
def texts(name: str, least: int = 0, most: int = 12) -> st.SearchStrategy[str]:
    """Texts of so many pieces."""
    return st.lists(st.sampled_from(pieces(name)), min_size=least, max_size=most).map("".join)


def prompts(format: Format) -> list[str]:
    """Prompts that leave a format in its different states."""
    heads = format.assistant or ("",)
    thinking = [marker for marker, state in format.states.get("text", {}).items() if state == "thinking"][:2]
    found = [heads[0], *(heads[0] + opener + space for opener in thinking for space in ("", "\n"))]
    return [*found, *(head + words for head in heads[:2] for words in ("It is", "```\n", "<"))]


@cache
def policies(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Any choice a caller may make but `strict` and `collect`, which have laws of their own: with the one a reading may
    end early, with the other there is no message to look at.
    """
    format = asides.get_format(name)
    choices: dict[str, st.SearchStrategy[Any]] = {
        "start": st.sampled_from(("text", "thinking", "undecided")),
        "mentions": st.just("marker"),
        "whitespace": st.just("exact"),
        "calls_in_thinking": st.sampled_from(("resolve", "never", "always")),
        "limit": st.integers(1, 300),
        "tools": st.sampled_from(TOOLS),
        "prompt": st.sampled_from(prompts(format)),
        "calls": st.just(False),
        "repair": st.just(True),
        "seed": st.integers(0, 3),
    }
    return st.fixed_dictionaries({}, optional=choices)
