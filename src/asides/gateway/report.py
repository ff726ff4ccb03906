"""What becomes of the record of a request: a line in the log, figures in the metrics."""

from __future__ import annotations

from .call import Call
from .record import Record


class Reporter:
    """Counts and logs requests."""

    def began(self, record: Record) -> None:
        """A request has begun."""

    def finished(self, call: Call, record: Record) -> None:
        """A request is over."""
