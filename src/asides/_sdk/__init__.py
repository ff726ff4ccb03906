"""Replies as the SDKs of model servers hand them over, taken apart: what `asides.openai` and its like have in common.

Which API a reply is of, the reply itself says, so these functions are the same for every SDK.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import Any, Unpack

from .._engine.format import Format
from ..policies import DEFAULTS, Policies, PolicyOptions
from ..reading import Reading
from ..reply import Reply
from .streams import AsyncSplitStream, Options, SdkReader, SplitStream

__all__ = ["AsyncSplitStream", "SplitStream", "asplit", "read", "read_choices", "split"]


def split(
    stream: Iterable[Any],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    reading: Reading | None = None,
    **options: Unpack[PolicyOptions],
) -> SplitStream:
    """The events of a streamed reply, the same whether or not the server has separated thoughts and calls.

    `stream`: what the SDK returns for `stream=True`, or what its `stream()` helper yields. `model`: the model's name;
    without it that which the server sends. `reading`: how the reply is read, instead of all other options.

    Examples:
        >>> import asides.openai
        >>> chunks = [{"choices": [{"delta": {"content": text}}]} for text in ("<think>2+", "2</think>It", " is 4.")]
        >>> events = asides.openai.split(chunks)
        >>> "".join(event.text for event in events if isinstance(event, asides.TextDelta))
        'It is 4.'
        >>> events.reply.thinking
        '2+2'
    """
    return SplitStream(stream, SdkReader(Options(reading, model, format, policies, options)))


def asplit(
    stream: AsyncIterable[Any],
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    reading: Reading | None = None,
    **options: Unpack[PolicyOptions],
) -> AsyncSplitStream:
    """The events of an asynchronous stream, as `split`.

    Examples:
        >>> import asyncio
        >>> import asides.anthropic
        >>> async def stream():
        ...     yield {"type": "message_start", "message": {"id": "m", "model": "m", "content": []}}
        ...     yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        ...     delta = {"type": "text_delta", "text": "<think>2+2</think>It is 4."}
        ...     yield {"type": "content_block_delta", "index": 0, "delta": delta}
        >>> async def answer():
        ...     events = asides.anthropic.asplit(stream())
        ...     return "".join([event.text async for event in events if isinstance(event, asides.TextDelta)])
        >>> asyncio.run(answer())
        'It is 4.'
    """
    return AsyncSplitStream(stream, SdkReader(Options(reading, model, format, policies, options)))


def read(
    response: Any,
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    reading: Reading | None = None,
    **options: Unpack[PolicyOptions],
) -> Reply:
    """A whole reply taken apart: its parts, how it ended, what it cost. Of several choices the first.

    Examples:
        >>> import asides.openai
        >>> response = {"choices": [{"message": {"content": "<think>2+2</think>It is 4."}, "finish_reason": "stop"}]}
        >>> reply = asides.openai.read(response)
        >>> reply.thinking, reply.text, reply.reason
        ('2+2', 'It is 4.', 'stop')
    """
    return read_choices(response, format, policies, model=model, reading=reading, **options)[0]


def read_choices(
    response: Any,
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    *,
    model: str | None = None,
    reading: Reading | None = None,
    **options: Unpack[PolicyOptions],
) -> tuple[Reply, ...]:
    """Every choice of a whole reply taken apart.

    Examples:
        >>> import asides.openai
        >>> choices = [{"index": 0, "message": {"content": "Four."}}, {"index": 1, "message": {"content": "4."}}]
        >>> [reply.text for reply in asides.openai.read_choices({"choices": choices})]
        ['Four.', '4.']
    """
    reader = SdkReader(Options(reading, model, format, policies, options))
    reader.read(response)
    return reader.replies
