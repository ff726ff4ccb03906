"""What formats say about themselves that tells them apart: their thinking markers, and every literal in them.

Reads registered formats, so that a marker is written down once. Knows nothing of tokenizers, templates or names.
The idea: whoever wrote a tokenizer or a template wrote the markers of one format, so a format is found by counting how
many of its literals are there. For that each candidate is taken without what it only reads because others slip into
its syntax (`own`), and where a checkpoint chooses a suffix for its tags, with the suffix that is there:

    openers(get_format("qwen3"))                               # ("<think>",)
    with_suffix_of(get_format("hy_v4"), ["<think:0a1b2c3d>"])  # the same format, with this suffix
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from .._engine.format import HEADER, OUTSIDE, TEXT, THINKING, Format
from .._engine.suffixes import split_suffix
from ..families import families, get_format
from ..families._family import UNRANKED, Family


def candidates() -> list[Format]:
    """The formats to choose from, the likeliest first, each with the calls that its own family writes."""
    return list(_candidates(tuple(families())))


@lru_cache(maxsize=2)
def _candidates(known: tuple[Family, ...]) -> tuple[Format, ...]:
    found = [
        (card.rank, place if card.rank < UNRANKED else 0, format)
        for card in known
        if card.detectable
        for place, format in enumerate(card.formats)
    ]
    # Among the others, a format with fewer markers claims less.
    ordered = sorted(found, key=lambda item: (*item[:2], sum(map(len, item[2].states.values())), item[2].name))
    # By name, because a format may have been replaced.
    return tuple(own(get_format(name)) for name in dict.fromkeys(format.name for _, _, format in ordered))


@lru_cache(maxsize=1024)
def own(format: Format) -> Format:
    """The format without syntaxes of other families that it also reads: they do not show which family it is."""
    calls = tuple(syntax for syntax in format.calls if not syntax.sibling)
    return format if calls == format.calls else format.but(calls=calls, aliases=format.aliases)


def with_suffix_of(format: Format, tokens: Iterable[str]) -> Format:
    """The format with the suffix that these tokens have, where it allows any and no card names this one."""
    if format.suffixed is None:
        return format
    plain = {split_suffix(marker)[0] for marker in literals(format)}
    for token in tokens:
        tag, suffix = split_suffix(token)
        if suffix and tag in plain:
            return format if suffix in _named_suffixes() else own(format.suffixed(suffix))
    return format


def _named_suffixes() -> set[str]:
    """The suffixes of checkpoints that are known."""
    formats = [format for format in candidates() if format.suffixed is not None]
    return {split_suffix(marker)[1] for format in formats for marker in literals(format)}


def openers(format: Format) -> tuple[str, ...]:
    """What opens thinking, in the format's own order."""
    header = format.header
    if header is not None and header.body:
        named = [header.channel_marker + name for name, state in header.channels.items() if state == THINKING]
        named += [f"to={name}" for name, state in header.recipients.items() if state == THINKING]
        return tuple(name + header.body for name in named)
    found = [m for state in (TEXT, HEADER) for m, to in format.states.get(state, {}).items() if to == THINKING]
    return tuple(dict.fromkeys(found))


def closers(format: Format) -> tuple[str, ...]:
    """What closes thinking, without what also ends the turn."""
    text = format.states.get(TEXT, {})
    found = [marker for marker, to in format.states.get(THINKING, {}).items() if to in (TEXT, OUTSIDE)]
    # A marker that opens the answer may also end thinking, but is not the pair of the opener.
    return tuple(sorted(found, key=lambda marker: text.get(marker) == TEXT))


def wrappers(format: Format) -> tuple[str, ...]:
    """What stands around the answer."""
    return tuple(marker for marker, to in format.states.get(TEXT, {}).items() if to == TEXT)


def thinks(format: Format) -> bool:
    """Whether the format knows thinking at all."""
    return bool(openers(format) or closers(format))


@lru_cache(maxsize=256)
def literals(format: Format) -> frozenset[str]:
    """Every string of a format that acts as a marker, in prompts and in output; words and names are left out."""
    header = format.header
    values = (format.states, format.calls, header, format.assistant)
    return frozenset(text.strip() for text in _strings(values) if _is_marker(text.strip()))


@lru_cache(maxsize=256)
def call_literals(format: Format) -> frozenset[str]:
    """What only someone writes who calls in this format: the markers of its calls, and those around its tools.

    Tag by tag, because a template may put together what is one marker for us (`function<sep>`).
    """
    texts = [text.strip() for text in _strings((format.calls, format.prompt_markers)) if _is_marker(text.strip())]
    return frozenset(tag for text in texts for tag in re.findall(TAG, text) or [text])


def call_openers(format: Format) -> frozenset[str]:
    """What calls begin with; the empty string where nothing but their own syntax shows them."""
    header = format.header
    syntaxes = (*format.calls, *(header.calls if header is not None else ()))
    return frozenset(opener for syntax in syntaxes for opener in syntax.openers or ("",))


def _is_marker(text: str) -> bool:
    """No word, no lone bracket, no sentence: something that one would make a token for."""
    return len(text) > 2 and re.search(r"\w", text) is not None and re.search(r"[^\w\s]", text) is not None


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _strings((*value.keys(), *value.values()))
    elif isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, msgspec.Struct):
        yield from _strings(tuple(getattr(value, name) for name in value.__struct_fields__))


_SWAPS = (("start", "end"), ("begin", "end"), ("prefix", "suffix"), ("open", "close"))


def counterparts(opener: str) -> list[str]:
    """How the marker that closes this one may be spelled: `<a>` and `</a>`, `[A]` and `[/A]`, `START` and `END`."""
    found = []
    slash = re.match(r"([<\[{(◁«]\|?)(.*)", opener, re.DOTALL)
    if slash is not None:
        found += [f"{slash[1]}/{slash[2]}", f"{slash[1].rstrip('|')}/{slash[1][1:]}{slash[2]}"]
    for one, other in _SWAPS:
        for this, that in ((one, other), (one.upper(), other.upper()), (one.title(), other.title())):
            if this in opener:
                found.append(opener.replace(this, that))
    return list(dict.fromkeys(found))


TAG = r"(?:<[^<>\s][^<>\n]{0,60}>|\[[^\[\]\s][^\[\]\n]{0,60}\]|◁[^◁▷\n]{1,60}▷|«[^«»\n]{1,60}»)"
"""Something that looks like a marker of its own."""
