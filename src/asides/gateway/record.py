"""What is written down of one request, for logs and metrics, while it is carried out. No words of it."""

from __future__ import annotations

from .pipeline import Noted


class Record:
    """One request, from its first byte to its last."""

    __slots__ = (
        "answered",
        "dialect",
        "error",
        "healed",
        "model",
        "noted",
        "route",
        "stream",
        "upstream",
        "upstream_status",
    )

    def __init__(self, route: str, dialect: str) -> None:
        self.route = route
        self.dialect = dialect
        self.model = ""
        self.upstream = ""
        self.upstream_status = 0
        self.stream = False
        self.healed = 0
        """Thoughts that the client had dropped and the memory put back."""
        self.error = ""
        self.answered: float | None = None
        """When the upstream began to answer, by the monotonic clock."""
        self.noted: Noted | None = None
