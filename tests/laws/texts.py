"""Texts that are hard on a format: its own markers, whole, broken, quoted, fenced and cut off, between words.

A text is a row of pieces. Most come from a list (`pieces`); a third are built (`Shown`): one or two of the format's
markers, calls or turn headers in quotes, in a code span, in a fenced or an indented block, inside a sentence. Who
chooses is a parameter (`Choose`): hypothesis in the tests, a seeded generator in `seeded.py`.

Everything is derived from the format's data, so a new format is held to the laws without being named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

import asides
from asides import Format
from tests.laws.calls import BODIES, samples, syntaxes
from tests.support import markers, stop_markers

Choose = Callable[[Sequence[Any]], Any]
"""Takes one of several."""
WORDS = ("zebra7", "a", "It is 4.", "x" * 40, "é", "🙂", "日本", "\ud800", "\udc00", "\x00", "<", ">", "|", "</", "0")
SPACES = (" ", "\n", "\n\n", "\t", "\r\n", "   ", "\n \n\n", " " * 20, "\u3000", "\x1f")
QUOTES = ('"', "'", "`", "``", "“", "”", "‘", "’", "«", "»", "「", "」", "„", "<code>", "</code>", "« ", " »")
PAIRS = (
    ('"', '"'),
    ("'", "'"),
    ("`", "`"),
    ("``", "``"),
    ("``a` ", "''"),
    ("“", "”"),
    ("„", "“"),
    ("«", "»"),
    ("« ", " »"),
    ("「", "」"),
    ("<code>", "</code>"),
    ("<pre>\n", "\n</pre>"),
    ('日本"', '"'),
    ('stop="', '"'),
    ("'", '"'),
    ("x`", "`"),
    ("`a ", " b`"),
    ("` ", " `"),
    ("`a ", "\n b`"),
    ("**", "**"),
    ("日本", "です"),
    ("日本、", "。"),
    ("The ", " token"),
    ("The ", " Token"),
    ("The ", "."),
    ("It ends with ", ", I see"),
    ("It is 4. ", " and"),
    ("e.g. ", " is one"),
    ("1. ", " opens"),
    ("a=", ";"),
    ("- ", "\n"),
    ("\n    ", "\n"),
    ("a\n\t", " b\n"),
    ("\n> ", "\n"),
    ("| ", " | use |"),
    ("\n```\n", "\n```\n"),
    ("\n```python\na = '", "'\n```\n"),
    ("\n~~~\n", "\n~~~ \n"),
    ("\n```\n", ""),
)
"""What may stand around a marker that is talked about, or nearly."""
BETWEEN = ("", "a", " ", "\n", " and ", "`", ".*?", "zebra7 b")
"""What may stand between two markers that are shown together."""
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


def turn_headers(format: Format) -> list[str]:
    """What a template writes before another turn; where the format's card names none, a common one."""
    own = [*format.other_turns, *(header for found in format.other_turns_after.values() for header in found)]
    return list(dict.fromkeys(own)) or ["<|im_start|>"]


@cache
def pieces(name: str) -> tuple[str, ...]:
    """What texts for a format are made of. The simplest first: that is where failing examples shrink to."""
    format = asides.get_format(name)
    own = _own(format)
    misses = [miss for marker in own for miss in near_misses(marker) if miss]
    within = [marker for marker in own if not {"<", ">", "\n"} & set(marker)][:6]
    misses += [f"{tag[:-1]} a='{marker}' >" for tag in own if tag[:1] + tag[-1:] == "<>" for marker in within]
    stops = [stop + space for stop in stop_markers(format) for space in ("", "\n", " zebra7")]
    headers = turn_headers(format)
    turns = [
        f"{stop}{space}{header}{words}"
        for stop in stop_markers(format)
        for header in headers
        for space in ("", "\n")
        for words in ("user\n zebra7", "", "assistant\nIt is 4.")
    ]
    calls = samples(format) or list(BODIES)
    grammar = list(grammar_words(format)) or ["zebra7"]
    groups = [
        (20, list(WORDS)),
        (14, list(SPACES)),
        (40, own),
        (8, list(QUOTES)),
        (6, list(FENCES)),
        (8, misses),
        (4, stops),
        (4, turns),
        (2, headers),
        (16, calls),
        (6, grammar),
        (3, list(BODIES)),
    ]
    return tuple(piece for weight, group in groups for piece in _spread(group, weight * 4))


def _own(format: Format) -> list[str]:
    """The format's markers, or of very many the shortest."""
    return sorted(set(markers(format)), key=lambda marker: (len(marker), marker))[:60]


class Shown(NamedTuple):
    """What is shown and not meant, and how."""

    around: tuple[tuple[str, str], ...]
    first: tuple[str, ...]
    between: tuple[str, ...]
    last: tuple[str, ...]


@cache
def shown(name: str) -> Shown:
    """A format's markers, calls and turn headers, one or two at a time, with what may stand around them."""
    format = asides.get_format(name)
    own = tuple(_own(format)) or ("zebra7",)
    calls = _spread(samples(format), 8)
    alone = max(4, len(own))  # more often one than two
    return Shown(PAIRS, (*own, *own, *own, *calls, *turn_headers(format)[:8]), BETWEEN, (*[""] * alone, *own))


def _spread(group: list[str], count: int) -> list[str]:
    """About `count` pieces, evenly from the group."""
    if not group:
        return []
    return [group[number * len(group) // count] for number in range(count)]


def make_text(name: str, choose: Choose, count: int) -> str:
    """A text of so many pieces."""
    listed, built = pieces(name), shown(name)
    return "".join(
        _join_shown(tuple(map(choose, built))) if choose(_IN_THREE) else choose(listed) for _ in range(count)
    )


_IN_THREE = (False, False, True)


@cache
def texts(name: str, least: int = 0, most: int = 12) -> st.SearchStrategy[str]:
    """Texts of so many pieces."""
    built = st.tuples(*map(st.sampled_from, shown(name))).map(_join_shown)
    listed = st.sampled_from(pieces(name))
    return st.lists(st.one_of(listed, listed, built), min_size=least, max_size=most).map("".join)


def _join_shown(chosen: tuple[Any, ...]) -> str:
    (before, after), *inside = chosen
    return "".join((before, *inside, after))


def prompts(format: Format) -> list[str]:
    """Prompts that leave a format in its different states."""
    heads = format.assistant or ("",)
    thinking = [marker for marker, state in format.states.get("text", {}).items() if state == "thinking"][:2]
    found = [heads[0], *(heads[0] + opener + space for opener in thinking for space in ("", "\n"))]
    return [*found, *(head + words for head in heads[:2] for words in ("It is", "```\n", "<"))]


def choices(name: str) -> dict[str, tuple[Any, ...]]:
    """How the reply is said to have ended, and any choice a caller may make but `strict` and `collect`, which have laws
    of their own: with the one a reading may end early, with the other there is no message to look at.
    """
    return {
        "start": ("text", "thinking", "undecided"),
        "mentions": ("marker",),
        "whitespace": ("exact",),
        "calls_in_thinking": ("resolve", "never", "always"),
        "limit": tuple(range(1, 301)),
        "tools": TOOLS,
        "prompt": tuple(prompts(asides.get_format(name))),
        "calls": (False,),
        "repair": (True,),
        "seed": (0, 1, 2, 3),
        "retype": (False, True),
        "finish_reason": ("stop", "length"),
    }


@cache
def policies(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the choices."""
    return st.fixed_dictionaries({}, optional={key: st.sampled_from(found) for key, found in choices(name).items()})
