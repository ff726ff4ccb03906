"""`Reply`: the one record of a reply, whoever received it. Values only; `_fold.py` makes it from events.

The filter, `asides run`, the gateway, the history, the interfaces of compat and the renderers all hand on this record,
so the same output gives the same record wherever it came in. The parser's own `Message` is the same thing for somebody
who holds the raw text; `Reply.of` turns one into the other.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..events import Notice
from ..message import Message, Termination
from ..parts import Part, Thinking, ToolCall
from ._items import PlacedProof, Usage


class Times(msgspec.Struct, frozen=True):
    """Times in seconds since the request was sent. None where no clock was given, or where it never came."""

    first_thought: float | None = None
    """Seconds until the first text of a thought."""
    first_answer: float | None = None
    """Seconds until the first text or call."""
    seconds: float | None = None
    """Seconds that the whole reply took, or has taken so far."""
    thoughts: tuple[float | None, ...] = ()
    """Seconds that each `Thinking` part took, in their order; empty where no clock was given."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One reply of a model, or as much of it as had come.

    Examples:
        >>> from asides.reply import Reply
        >>> reply = Reply.of(asides.parse("<think>2+2</think>It is 4."), model="Qwen/Qwen3-8B")
        >>> reply.thinking, reply.text, reply.complete
        ('2+2', 'It is 4.', True)
    """

    parts: tuple[Part, ...] = ()
    """In the order of writing. Where no raw text was read, spans are `(0, 0)`. Only a call that may not be run has its
    `raw` text."""
    thinking: str = ""
    """The thinking parts joined."""
    text: str = ""
    """The text parts joined: the clean answer."""
    notices: tuple[Notice, ...] = ()
    """What was odd and tolerated while the output was read."""
    proofs: tuple[PlacedProof, ...] = ()
    """What the server wants back with thoughts and calls, untouched, in order. No export has them."""
    termination: Termination = "end"
    """`stop`: a stop marker was seen, or the server says that the model ended its turn. `cut`: it was cut off, by a
    limit, a filter or a lost connection. Where nobody says anything (raw text), `cut` if thinking or a call was open,
    else `end`."""
    beyond: int = 0
    """How many characters stand beyond the turn (`Message.beyond`), as far as they came: the model went on as another,
    and nothing of that was read."""
    reason: str = ""
    """The server's own reason for the end: `stop`, `length` or `content_filter`; empty where there was no server."""
    usage: Usage | None = None
    """Tokens of prompt and output; None where the server does not count them."""
    times: Times = Times()
    """When thoughts and answer came, and how long they took; all None where there was no clock."""
    model: str = ""
    """The model's name, as the server gives it."""
    id: str = ""
    """The server's own id of the reply."""

    @classmethod
    def of(cls, message: Message, **fields: Any) -> Reply:
        """The record of a message that a parser has read; `fields` are those that a parser does not know."""
        return cls(
            parts=tuple(
                msgspec.structs.replace(part, raw="") if isinstance(part, ToolCall) and part.error is None else part
                for part in message.parts
            ),
            thinking=message.thinking,
            text=message.text,
            notices=message.notices,
            termination=message.termination,
            beyond=message.beyond[1] - message.beyond[0] if message.beyond is not None else 0,
            **fields,
        )

    @property
    def thoughts(self) -> tuple[Thinking, ...]:
        """The thinking parts, in order."""
        return tuple(part for part in self.parts if isinstance(part, Thinking))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order, the broken ones too."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def complete(self) -> bool:
        """False when it was cut off, or when thinking or a call was open at its end."""
        return self.termination != "cut" and self.message.complete

    @property
    def message(self) -> Message:
        """The same as the parser's message. It has no raw text: servers that split send none."""
        return Message(self.parts, "", self.notices, self.termination, self.thinking, self.text)

    def to_message(self) -> dict[str, Any]:
        """The message to put into the conversation: clean text, calls that may be run, and the thinking beside them.

        Thinking goes along only with calls: servers whose models need it there ask for it back, and nowhere else.
        """
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        calls = [call.to_dict() for call in self.tool_calls if call.error is None]
        if calls:
            message["tool_calls"] = calls
            if self.thinking:
                message["reasoning_content"] = self.thinking
        return message
