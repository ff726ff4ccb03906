"""Where the clients of these interfaces get replies: a server, or any callable.

The client for servers is imported with the first request: most who import an interface only parse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._engine.format import Format
from ..families import get_format
from ..policies import Policies, Start

if TYPE_CHECKING:
    from ..client._client import Client
    from ..reply._items import Chunk, ReplyItem

Message = Mapping[str, Any]
Transport = Callable[..., str | Mapping[str, Any] | Iterable[str]]
"""Called with the messages, and with `model` and other fields by their names. Returns the model's raw text, whole or in
chunks, or a reply in OpenAI's chat shape."""


class ReplySource:
    """A server, or a callable that answers in its place."""

    def __init__(self, origin: str | Client | Transport, key: str = "") -> None:
        self._client: Client | None = None
        self._transport: Transport | None = None
        if callable(origin):
            self._transport = origin
        elif isinstance(origin, str):
            from ..client._client import Client

            self._client = Client(origin, key)
        else:
            self._client = origin

    def items(
        self,
        messages: Sequence[Message],
        *,
        model: str = "",
        format: Format | None = None,
        start: Start | None = None,
        **extra: Any,
    ) -> Iterator[ReplyItem]:
        """The items of a reply as they come, read as `format`; without one everything is text."""
        found = format or get_format("passthrough")
        if self._client is not None:
            yield from self._client.talk(messages, model=model, format=found, start=start, extra=extra)
        else:
            yield from self._ask(messages, model, found, start, extra)

    def _ask(
        self, messages: Sequence[Message], model: str, found: Format, start: Start | None, extra: Mapping[str, Any]
    ) -> Iterator[ReplyItem]:
        """The same from the callable."""
        from ..client._client import UpstreamError
        from ..reading import Reading
        from ..reply._items import Failed

        splitter = Reading.of(format=found, policies=Policies(start=start, retype=False)).splitter()
        assert self._transport is not None
        for piece in _pieces(self._transport(messages, **({"model": model} if model else {}), **extra)):
            for item in splitter.feed(piece):
                if isinstance(item, Failed):
                    raise UpstreamError(item.message, status=item.status)
                yield item
        yield from splitter.finish(None)

    def reply(self, messages: Sequence[Message], *, model: str = "", **extra: Any) -> dict[str, Any]:
        """The whole reply in OpenAI's chat shape, its content as the server or the callable gave it."""
        from ..dialects import openai_chat

        request = openai_chat.read_request({"model": model or "model", "messages": [dict(said) for said in messages]})
        return openai_chat.write_reply(self.items(messages, model=model, **extra), request)


def _pieces(answer: str | Mapping[str, Any] | Iterable[str]) -> Iterator[Chunk]:
    from ..dialects import openai_chat
    from ..reply._items import Begin, Ended, RawText

    if isinstance(answer, Mapping):
        yield from openai_chat.read_reply(dict(answer))
        return
    yield Begin()
    for words in [answer] if isinstance(answer, str) else answer:
        yield RawText(0, words)
    yield Ended(0)
