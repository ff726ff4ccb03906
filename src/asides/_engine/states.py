"""The states that an output may be in, and how the header of a message decides which. Data only, read by `Format`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ..events import NoticeCode
from .calls.syntax import CallSyntax

State = Literal["text", "thinking", "header", "outside", "end"]

TEXT: State = "text"
"""The answer."""
THINKING: State = "thinking"
"""Thinking, which is no part of the answer."""
HEADER: State = "header"
"""Inside the header of a message, which decides what the message is (harmony and its like)."""
OUTSIDE: State = "outside"
"""Between messages, where such a format expects no words."""
END: State = "end"
"""Where a stop marker leads."""

States = Mapping[State, Mapping[str, State]]


TO = " to="
"""What stands before a recipient in a header."""


class BareHeader(msgspec.Struct, frozen=True, kw_only=True):
    """How headers read where a server has left their markers out: `role``channel to=recipient type` and the words."""

    notice: NoticeCode
    """The notice that is emitted when an output is read so."""
    types: tuple[str, ...] = ()
    """Content types, which the words may follow directly."""
    words: tuple[str, ...] = ()
    """Beginnings of ordinary words that begin like a channel's name."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """How a message header says what the message is. `role to=recipient<channel marker>channel type<body marker>`."""

    channels: Mapping[str, State] = {}
    """What each channel holds. A channel that is not listed is text, with a notice."""
    recipients: Mapping[str, State] = {}
    """Recipients that are no tools. Any other recipient makes the message a call."""
    channel_marker: str = ""
    """The marker before a channel's name, where the format has channels."""
    type_marker: str = ""
    """The marker before a content type."""
    body: str = ""
    """The marker that ends the header."""
    default: State = TEXT
    """What a message without channel and recipient holds."""
    roles: tuple[str, ...] = ("assistant",)
    """Role words that may begin the output, when the prompt ended inside the header."""
    calls: tuple[CallSyntax, ...] = ()
    """How the body of a call may be written; its first characters decide."""
    tools: Mapping[str, CallSyntax] = {}
    """Markers that end a header and say that the message is for the tool that it names, and how its body is written."""
    bare: BareHeader | None = None
    """How headers without markers are read, where the format's outputs are met so."""

    @property
    def joined(self) -> tuple[str, ...]:
        """What a header behind the first begins with where markers are missing: the role, and what runs into it."""
        if self.bare is None:
            return ()
        ends = (*self.channels, TO, self.channel_marker, self.body)
        return tuple(role + end for role in self.roles for end in ends)
