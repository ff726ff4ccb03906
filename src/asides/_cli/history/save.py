"""Keeping a reply after it was shown, for the filter and `run`. A store that fails costs the reader one line."""

from __future__ import annotations

from typing import Any

from ...errors import Error
from ...message import Message
from ...reply.reply import Reply
from ..streams import complain


def save(reply: Reply | Message, store: str = "", **fields: Any) -> bool:
    """Keep a reply whose answer has been written; `fields` are those of `KeptReply.of`. False when it failed."""
    from ..._history import open
    from .common import find_store, warn

    try:
        with open(find_store(store)) as history:
            warn(history)
            history.keep(reply, **fields)
    except Error as error:
        complain(f"this reply was not kept: {error}")
        return False
    return True
