"""`asides run -c`: the last conversation that `asides run` kept, to go on with."""

from __future__ import annotations

from typing import Any

import msgspec

from ..._history import KeptReply, ReplyFilter, chat_message, open
from ...errors import UsageError
from ..history.common import find_store, warn

MOST_REPLIES = 10_000


class LastTalk(msgspec.Struct, frozen=True):
    """A conversation of the history."""

    id: str
    messages: list[dict[str, Any]]
    """What a model is reminded of, in OpenAI's shape, a system prompt first where there is one."""
    replies: list[KeptReply]
    """In the order in which they came, thoughts included."""

    @property
    def model(self) -> str:
        """The model that wrote the last of them."""
        return self.replies[-1].reply.model


def last_talk(store: str) -> LastTalk:
    """The conversation with the newest reply."""
    with open(find_store(store)) as history:
        warn(history)
        newest = history.newest(ReplyFilter(sources=("run",)), limit=1)
        if not newest or not newest[0].conversation:
            raise UsageError("there is no saved conversation to continue; `asides run --save` saves them")
        id = newest[0].conversation
        messages: list[dict[str, Any]] = []
        for message in map(chat_message, history.conversation(id)):
            # An answer that was asked for again: the later one counts.
            if message["role"] == "assistant" and messages and messages[-1]["role"] == "assistant":
                messages.pop()
            messages.append(message)
        replies = history.newest(ReplyFilter(conversation=id), limit=MOST_REPLIES)
    return LastTalk(id, messages, replies[::-1])
