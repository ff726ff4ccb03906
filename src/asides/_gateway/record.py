"""What is written down of one request while it is carried out, for the log and the metrics."""

from __future__ import annotations

from ..reply.splitter import Splitter
from .pipeline import Noted


class Record:
    """One request, from its first byte to its last."""

    __slots__ = (
        "answered",
        "cache_hits",
        "cache_misses",
        "dialect",
        "error",
        "model",
        "noted",
        "request_body",
        "route",
        "splitter",
        "stream",
        "upstream",
        "upstream_error",
        "upstream_status",
    )

    def __init__(self, route: str, dialect: str) -> None:
        self.route = route
        self.dialect = dialect
        self.model = ""
        self.upstream = ""
        self.upstream_status = 0
        self.upstream_error = ""
        """One of `metrics.UPSTREAM_ERRORS`."""
        self.stream = False
        self.cache_hits = 0
        """Thoughts that the client had dropped and the replay cache put back."""
        self.cache_misses = 0
        """Those that it did not have."""
        self.error = ""
        self.answered: float | None = None
        """When the upstream began to answer, by the monotonic clock."""
        self.noted: Noted | None = None
        self.splitter: Splitter | None = None
        """What took the reply apart, and counted it."""
        self.request_body = b""
        """Kept only where the log may hold bodies."""
