"""The library's front door: the engine with formats found by name.

`parse` and `clean` read a whole output, `split` and `asplit` one that comes in chunks. What stands above the engine and
is needed here only by some callers (models by name, messages as servers want them back) is imported when it is asked
for, so that importing `asides` stays cheap.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Unpack

from ._engine.format import Format, read_models_with
from ._engine.given import check_stream, check_text
from ._engine.parser import Parser
from ._engine.shortcut import parse_ordinary
from ._engine.whole import read_whole
from .errors import StrictError
from .events import Event
from .families import get_format
from .message import Message, _write_messages_with
from .policies import DEFAULTS, Policies, PolicyOptions

if TYPE_CHECKING:
    from .reading import Reading

__all__ = ["Parser", "asplit", "clean", "parse", "split"]


def parse(
    text: str,
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    finish_reason: str | None = None,
    **options: Unpack[PolicyOptions],
) -> Message:
    """Take a whole output apart.

    The same as feeding a `Parser`, but for one default: without `start` and `prompt`, a lone closing marker makes all
    before it thinking (`start="undecided"`), where the format starts in text. `model` is the name of the model that
    wrote it: it says where the output begins, and with `format="auto"` also which format it is. `finish_reason` is what
    the server says of the end, as in `Parser.finish`.

    Examples:
        >>> message = asides.parse("<think>2+2</think>It is 4.")
        >>> message.thinking, message.text
        ('2+2', 'It is 4.')
        >>> asides.parse("hm</think>Four.", model="Qwen/Qwen3-4B-Thinking-2507").parts
        (Thinking(text='hm', span=(0, 2)), Text(text='Four.', span=(10, 15)))
    """
    if text.__class__ is not str:
        check_text(text)
    if options:
        policies = policies.but(**options)
    if model is not None:
        from .reading import Reading

        return Reading.named(model, format, policies).parse(text, finish_reason)
    found = get_format(format)
    message = parse_ordinary(text, found, policies)
    if message is None:
        return read_whole(text, found, policies, finish_reason).message
    return message if finish_reason is None else message.ended(finish_reason)


def clean(
    text: str,
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    finish_reason: str | None = None,
    **options: Unpack[PolicyOptions],
) -> str:
    """The answer alone, as a person would want to read it: the text, without thoughts, calls and markers.

    A thought that was never closed is no answer, so an output that is one is answered with `""`; so is one of calls
    alone. With `calls=False` calls stay in the text as they were written.

    Examples:
        >>> asides.clean("<think>2+2</think>It is 4.")
        'It is 4.'
        >>> asides.clean("<think>so this is")
        ''
    """
    return parse(text, format, policies, model=model, finish_reason=finish_reason, **options).text


def split(
    chunks: Iterable[str | None],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    **options: Unpack[PolicyOptions],
) -> Iterator[Event]:
    """The events of a stream. Where it fails, what was held back comes before the error.

    A chunk that is None is no text: servers send such deltas. `model` is the name of the model, as in `parse`.

    Examples:
        >>> for event in asides.split(["<thi", "nk>2+2</think>It", " is 4."]):
        ...     print(event)
        PartStart(index=0, kind='thinking')
        ThinkingDelta(index=0, text='2+2')
        PartEnd(index=0, span=(7, 10))
        PartStart(index=1, kind='text')
        TextDelta(index=1, text='It')
        TextDelta(index=1, text=' is 4.')
        PartEnd(index=1, span=(18, 26))
    """
    check_stream(chunks, "split")
    parser = Parser(format, policies, model=model, **options)
    try:
        for chunk in chunks:
            yield from parser.feed(chunk)
    except StrictError:
        raise
    except Exception:
        yield from parser.finish("length")
        raise
    yield from parser.finish()


async def asplit(
    chunks: AsyncIterable[str | None],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    **options: Unpack[PolicyOptions],
) -> AsyncIterator[Event]:
    """The events of an asynchronous stream, as `split`.

    Examples:
        >>> import asyncio
        >>> async def chunks():
        ...     yield "<think>2+2</think>It is"
        ...     yield " 4."
        >>> async def answer():
        ...     events = asides.asplit(chunks())
        ...     return "".join([event.text async for event in events if isinstance(event, asides.TextDelta)])
        >>> asyncio.run(answer())
        'It is 4.'
    """
    check_stream(chunks, "asplit")
    parser = Parser(format, policies, model=model, **options)
    try:
        async for chunk in chunks:
            for event in parser.feed(chunk):
                yield event
    except StrictError:
        raise
    except Exception:
        for event in parser.finish("length"):
            yield event
        raise
    for event in parser.finish():
        yield event


def _read_model(model: str, format: str | Format, policies: Policies) -> tuple[Format, Policies]:
    # Here, because nobody who names no model shall pay for it.
    from .reading import Reading

    reading = Reading.named(model, format, policies)
    return reading.format, reading.policies


def _write_message(
    api: str, message: Message, thinking: str, model: str | None, reading: Reading | None
) -> list[dict[str, Any]]:
    # Here, because most programs send nothing back.
    from .detect._from_name import find_earlier
    from .dialects._sent_back import write_back
    from .reading import Reading

    if reading is None and model is not None:
        reading = Reading.named(model)
    earlier = find_earlier(reading.model, reading.format) if reading is not None else None
    return write_back(api, message, thinking, earlier)


read_models_with(_read_model)
_write_messages_with(_write_message)
