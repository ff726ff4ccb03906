"""Streams of a host's model, read chunk by chunk: one way for every plug-in that has streams, in two twins.

What a reader holds back, because it could still become a marker, is the model's: it goes out at the end, and where the
stream fails, before the error. A stream is closed as soon as the one that reads it is, not when it is collected: a
server goes on generating until its connection is closed. Both functions return generators, so what calls them should
return theirs as well: an asynchronous generator that loops over another does not close it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable
from typing import TypeVar

from ..errors import StrictError

Chunk = TypeVar("Chunk")
Made = TypeVar("Made")
Feed = Callable[[Chunk], Iterable[Made]]
"""What is made of a chunk."""
Release = Callable[[bool], Iterable[Made]]
"""What was held back; called with whether the stream failed."""


def read_stream(
    chunks: Iterable[Chunk], feed: Feed[Chunk, Made], release: Release[Made]
) -> Generator[Made, None, None]:
    """What is made of each chunk of a stream, and at its end what was held back."""
    begun = False
    try:
        for chunk in chunks:
            begun = True
            yield from feed(chunk)
        yield from release(False)
    except StrictError:
        raise
    except Exception:
        # Nothing comes before the error of a stream that never began: hosts that see it at once ask another model.
        if begun:
            yield from release(True)
        raise
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


async def aread_stream(
    chunks: AsyncIterable[Chunk], feed: Feed[Chunk, Made], release: Release[Made]
) -> AsyncGenerator[Made, None]:
    """The same for an asynchronous stream."""
    begun = False
    try:
        async for chunk in chunks:
            begun = True
            for made in feed(chunk):
                yield made
        for made in release(False):
            yield made
    except StrictError:
        raise
    except Exception:
        if begun:
            for made in release(True):
                yield made
        raise
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
