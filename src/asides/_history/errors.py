"""The errors of a history. Their messages name the store and say what to do."""

from __future__ import annotations

from ..errors import Error


class HistoryError(Error):
    """The history could not be read or written."""

    def __init__(self, message: str, *, retry: bool = False) -> None:
        super().__init__(message)
        self.retry = retry
        """Whether the same may work later: the store was busy, the disk full, the server away."""


class UnknownIdError(HistoryError):
    """No reply or conversation of the store has this id, or one that begins so."""


class DamagedError(HistoryError):
    """The store's own data is damaged: a file that is not whole or no history, a row that no reply could have made."""
