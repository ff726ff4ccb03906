"""The library's front door: the engine with formats found by name."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Unpack

from ._engine.format import TEXT, Format
from ._engine.parser import Parser, check_text
from ._engine.shortcut import parse_ordinary
from .errors import StrictError
from .events import Event
from .families import get_format
from .message import Message
from .policies import DEFAULTS, Policies, PolicyOptions

__all__ = ["Parser", "asplit", "clean", "parse", "split"]

_UNDECIDED = DEFAULTS.but(start="undecided")


def parse(
    text: str, format: str | Format = "auto", policies: Policies = DEFAULTS, **options: Unpack[PolicyOptions]
) -> Message:
    """Take a whole output apart.

    The same as feeding a `Parser`, but for one default: without `start` and `prompt`, a lone closing marker makes all
    before it thinking (`start="undecided"`), where the format starts in text.
    """
    found = get_format(format)
    if text.__class__ is not str:
        check_text(text)
    if options:
        policies = policies.but(**options)
    return parse_ordinary(text, found, policies) or read_whole(text, found, policies).message


def for_whole(policies: Policies, format: Format) -> Policies:
    """The policies for an output that is read as a whole, with the one default that differs from a stream's."""
    if policies.start is None and policies.prompt is None and format.start == TEXT:
        return _UNDECIDED if policies is DEFAULTS else policies.but(start="undecided")
    return policies


def read_whole(text: str, format: Format, policies: Policies) -> Parser:
    """A `Parser` that has read a whole output."""
    parser = Parser(format, for_whole(policies, format))
    parser.feed(text)
    parser.finish()
    return parser


def clean(
    text: str, format: str | Format = "auto", policies: Policies = DEFAULTS, **options: Unpack[PolicyOptions]
) -> str:
    """The answer alone, as a person would want to read it."""
    return parse(text, format, policies, **options).text


def split(
    chunks: Iterable[str],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    **options: Unpack[PolicyOptions],
) -> Iterator[Event]:
    """The events of a stream. Where it fails, what was held back comes before the error."""
    parser = Parser(format, policies, **options)
    try:
        for chunk in chunks:
            yield from parser.feed(chunk)
    except StrictError:
        raise
    except Exception:
        yield from parser.finish()
        raise
    yield from parser.finish()


async def asplit(
    chunks: AsyncIterable[str],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    **options: Unpack[PolicyOptions],
) -> AsyncIterator[Event]:
    """The events of an asynchronous stream, as `split`."""
    parser = Parser(format, policies, **options)
    try:
        async for chunk in chunks:
            for event in parser.feed(chunk):
                yield event
    except StrictError:
        raise
    except Exception:
        for event in parser.finish():
            yield event
        raise
    for event in parser.finish():
        yield event
