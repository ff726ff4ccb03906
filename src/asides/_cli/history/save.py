"""Keeping a reply after it was shown, for the filter and `run`. A store that fails costs the reader one line."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ...errors import Error
from ...events import Event
from ...message import Message
from ...reply._fold import Fold
from ...reply._reply import Reply, Times
from ..streams import complain


class StreamTimes:
    """When the parts of a reply came that is read as it is written."""

    def __init__(self) -> None:
        self._now = time.monotonic()
        self._fold = Fold(clock=lambda: self._now)

    def add(self, events: Sequence[Event]) -> None:
        """Take what one chunk brought. All of it came at the same time."""
        self._now = time.monotonic()
        for event in events:
            self._fold.add(event)

    @property
    def times(self) -> Times:
        """The times so far. How long a thought took that came in one chunk is not known."""
        found = self._fold.reply.times
        return Times(
            found.first_thought, found.first_answer, found.seconds, tuple(took or None for took in found.thoughts)
        )


def save_message(message: Message, times: StreamTimes | None, **options: Any) -> bool:
    """`save` for what the filter has read: with the times of its parts where they are known."""
    return save(Reply.of(message, times=times.times if times is not None else Times()), **options)


def save(reply: Reply | Message, store: str = "", **fields: Any) -> bool:
    """Keep a reply whose answer has been written; `fields` are those of `KeptReply.of`. False when it failed."""
    from ..._history import open
    from .common import find_store, warn

    try:
        with open(find_store(store)) as history:
            warn(history)
            history.keep(reply, **fields)
    except Error as error:
        complain(f"this reply was not saved: {error}")
        return False
    return True
