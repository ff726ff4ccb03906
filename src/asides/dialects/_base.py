"""The protocol of a dialect: everything in which one API differs from another, as members.

A dialect is a module (`openai_chat`, `openai_completions`, `openai_responses`, `anthropic`, `ollama`) that has the
members of `Dialect`; the type checker compares each of them with it, in `dialects.ALL`. Gateway and client hold a
dialect and use its members; they never ask which one it is. What kind of *server* answers (which paths it has besides
replies) is another question: `_servers.py`.

    dialect = dialects.get("anthropic")
    request = dialect.read_request(body)
    writer = dialect.ReplyWriter(request)
    out = b"".join(map(writer.feed, items)) + writer.finish()

**The fast path.** Nearly all frames of a stream are one more delta like the frame before. For these a reader
may have `text_frame` and a writer `delta`: the pipeline then passes a choice's number and its text, and builds none of
the records that lie between reader and writer. Both are optional, and None where an API has no such short way; a test
holds the bytes equal to those of the ordinary path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from ..events import Event
from ..reply._items import Chunk, Failed, ReplyItem
from ._framing import Framing
from ._request import PLAIN, Request, WriteOptions

THINKING_CHOICES = ("raw", "summary", "both", "drop")
"""How a client of any dialect may be sent thinking: as the thought itself, as what its API calls a summary (the same
text), as both where there are two places, or not at all."""


class Frames(Protocol):
    """Cuts bytes into frames."""

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not whole yet: a caller may find that it is too large to wait for."""


class StreamReader(Protocol):
    """Reads the bytes of a streamed reply, cut anywhere. Never raises for what an upstream sent."""

    @property
    def text_frame(self) -> Callable[[bytes], tuple[int, Any] | None] | None:
        """Fast path: the choice and the text of bytes that are exactly one more frame of content; None: `feed` them.

        Where ids are handed over it may be the text and its id, or the text and its ids: `Splitter.fast_path` takes
        either."""

    @property
    def frames(self) -> Frames:
        """What cuts the bytes into frames."""

    def feed(self, chunk: bytes) -> list[Chunk]:
        """Read bytes and return the chunks of the reply that are whole in them."""

    def finish(self) -> list[Chunk]:
        """The stream is over. If the upstream did not say so before, the last chunk is a failure."""


class FrameReader(StreamReader, Protocol):
    """Reads frames that somebody else has cut and decoded, too: an SDK."""

    def read_frame(self, frame: dict[str, Any]) -> list[Chunk]:
        """Read a frame and return the chunks of the reply in it. Not to be mixed with `feed`."""


class StreamWriter(Protocol):
    """Writes a streamed reply; without its thinking where the request does not want to see it (`thinking.show`)."""

    @property
    def delta(self) -> Callable[[int, Event], bytes] | None:
        """Fast path: the bytes of one more delta of an open part of a choice, which came with nothing else."""

    def feed(self, item: ReplyItem) -> bytes:
        """The bytes that an item adds to the stream."""

    @property
    def written(self) -> dict[str, Any] | None:
        """After `finish`, where replies may be kept (`Dialect.KEPT`): the reply as it would be in one piece. None where
        it failed."""

    def finish(self) -> bytes:
        """The bytes that end the stream."""


class Recall(NamedTuple):
    """What a request says of replies that were kept."""

    store: bool
    """Whether the reply to it shall be kept too."""
    previous: str
    """The id of the reply that it goes on from; empty where it names none."""
    references: tuple[str, ...]
    """The ids of single items of kept replies that it refers to."""


class KeptReplies(Protocol):
    """The part of an API that is about replies which the server keeps. A document is what is kept of one reply."""

    def stands_alone(self, body: dict[str, Any], raw: bytes) -> bool:
        """Whether a request refers to no kept reply and wants none kept; then what says so is taken out of the body.

        `raw`: the body as it came.
        """

    def read_recall(self, body: dict[str, Any]) -> Recall:
        """What a request says of them; a `RequestError` names the field that cannot be honoured."""

    def expand(
        self, body: dict[str, Any], before: Sequence[dict[str, Any]], items: Mapping[str, dict[str, Any]]
    ) -> tuple[dict[str, Any], list[Any]]:
        """The body with the whole conversation, for `read_request`; and its own input, to be kept.

        `before`: the documents of the replies that it goes on from; `items`: those that it refers to, by their ids.
        """

    def response_of(self, item: str) -> str:
        """The id of the reply that an item's id belongs to; empty for an id that this API never made."""

    def find_item(self, document: dict[str, Any], id: str) -> dict[str, Any] | None:
        """An item of a document."""

    def write_document(self, response: dict[str, Any], own: list[Any]) -> bytes:
        """What is kept of a reply and of its own input."""

    def read_document(self, data: bytes) -> dict[str, Any]:
        """The reverse."""

    def write_response(self, document: dict[str, Any], query: Mapping[str, Sequence[str]]) -> Any:
        """The answer to a request for a kept reply; a `RequestError` for a query that cannot be honoured."""

    def write_deleted(self, id: str) -> dict[str, Any]:
        """The answer to a request that has deleted one."""

    def list_items(self, documents: Sequence[dict[str, Any]], query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """The answer to a request for what the last of these replies was given."""


class Dialect(Protocol):
    """The shape of one API, for clients and for upstreams."""

    NAME: str
    """Its name in configuration, logs and metrics."""
    CARRIES: Literal["calls", "everything"] | None
    """Which proofs of an upstream of this API pass to its clients as they are: those of calls alone, or all; None where
    replies have no field that clients send back."""
    PATHS: dict[str, str]
    """The paths at which it is served, without `/v1`, and those at which an upstream is asked for the same."""
    FRAMING: Framing
    """How streams are cut into frames; has their media type. A whole reply is `application/json` everywhere."""
    STREAMS_BY_DEFAULT: bool
    """Whether a request that does not say so gets a stream."""
    THINKING_FIELDS: tuple[str, ...]
    """The values of `reasoning` (where thinking is written) that the writer takes; none where the API has one place for
    thinking. An operator or a header may choose any of `THINKING_CHOICES` besides: a place that the API does not have
    is its usual one."""
    CANNOT_SAY: tuple[str, ...]
    """What is lost when a reply or a request is written in this dialect."""

    def ReplyReader(self, *, ids: bool = False) -> FrameReader:
        """Make the reader of one streamed reply. `ids`: those of tokens are handed over with their text, where the API
        has such, and not as fields to pass on."""

    @property
    def ReplyWriter(self) -> Callable[..., StreamWriter]:
        """Makes the writer of one: `ReplyWriter(request)`, with `reasoning=` where there are `THINKING_FIELDS`."""

    def read_request(self, body: Any, path: str = "") -> Request:
        """Read a request that was posted to `path`; a `RequestError` names the field that cannot be read."""

    def write_request(self, request: Request, options: WriteOptions = PLAIN) -> dict[str, Any]:
        """The body for an upstream of this dialect; `RequestError` for what it cannot do without and cannot say."""

    def upstream_path(self, request: Request) -> str:
        """The path at an upstream where the body of `write_request` belongs."""

    def read_reply(self, body: Any) -> list[Chunk]:
        """The chunks of a whole reply. Never raises."""

    @property
    def write_reply(self) -> Callable[..., dict[str, Any]]:
        """`write_reply(items, request)`, with `reasoning=` as above: a whole reply; an error's body where it failed."""

    def read_error(self, status: int, body: bytes) -> Failed:
        """Read the failure from an upstream's response that has an error status."""

    def write_error(self, failed: Failed) -> dict[str, Any]:
        """The body of an error, for a client."""

    @property
    def write_count(self) -> Callable[[int], dict[str, Any]] | None:
        """The answer to a request that asks how many tokens it has; None where the API has no such request."""

    @property
    def KEPT(self) -> KeptReplies | None:
        """What the API says of replies that the server keeps; None where it has no such thing."""

    def keep_alive(self, request: Request, style: str) -> bytes:
        """Bytes that every client passes over (`style`: `comment` or `empty`); empty where there are none such."""
