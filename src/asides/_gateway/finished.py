"""What is known of a request once it is over: one record for the log and for the metrics. Counts, times, no words."""

from __future__ import annotations

import msgspec


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is over, however it ended. Times are seconds since it came; None is never."""

    id: str
    """The request id."""
    method: str
    path: str
    """Without its query, which may hold a key."""
    route: str
    """The name of the route, as `routes.find` gives it."""
    dialect: str
    """The client's."""
    status: int
    """What the client was told; 0 where it left before it was told anything."""
    seconds: float
    model: str = ""
    """As the client wrote it."""
    upstream: str = ""
    """Its configured name; empty where none was asked."""
    upstream_status: int = 0
    upstream_error: str = ""
    """Why the upstream failed, one of `metrics.UPSTREAM_ERRORS`; empty where it did not."""
    stream: bool = False
    cancelled: bool = False
    """The client left before the end."""
    first_byte: float | None = None
    """The first byte of the upstream's answer."""
    first_thought: float | None = None
    first_answer: float | None = None
    input_tokens: int = 0
    thinking_tokens: int = 0
    answer_tokens: int = 0
    thinking_characters: int = 0
    answer_characters: int = 0
    notices: dict[str, int] = {}
    """How many of each code."""
    empty_answers: int = 0
    """Choices that neither said nor called anything."""
    cache_hits: int = 0
    """Dropped thoughts that the replay cache put back."""
    cache_misses: int = 0
    """Dropped thoughts that it did not have."""
    error: str = ""
    """What went wrong, in words; shortened and without secrets when it is logged."""
    request_body: str = ""
    """Filled only where `log.bodies` is on."""
    reply_body: str = ""
