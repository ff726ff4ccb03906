"""What can go wrong with kept thoughts, in words for the person who keeps them. Knows no store."""

from __future__ import annotations

from ..errors import Error


class HistoryError(Error):
    """The history could not be read or written."""

    def __init__(self, message: str, *, retry: bool = False) -> None:
        super().__init__(message)
        self.retry = retry
        """Whether the same may work later: the store was busy, the disk full, the server away."""


class DamagedError(HistoryError):
    """The file of a history is damaged, or is none."""
