"""What the parser says as it reads. Values only; the order of events is the order of writing.

A part starts, grows by deltas and ends; between these stand notices, about anything odd. One event looks back:
`Retyped` says that the first part is of the other kind than its start said.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .parts import Kind, Span


class PartStart(msgspec.Struct, frozen=True, repr_omit_defaults=True, tag="part_start", tag_field="type"):
    """A part begins.

    Examples:
        >>> asides.Parser("qwen3").feed("<think>hm")[0]
        PartStart(index=0, kind='thinking')
    """

    index: int
    """The part's index in `message.parts`, from 0."""
    kind: Kind
    """What the part is: `thinking`, `text` or `tool_call`."""
    gap: str = ""
    """What to write before this part when it is joined to the part of its kind before it; empty for the first of its
    kind."""
    name: str = ""
    """The function's name, for a call; else empty."""
    id: str = ""
    """The call's id, for a call; else empty."""


class ThinkingDelta(
    msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False, tag="thinking_delta", tag_field="type"
):
    """A thinking part grows.

    Examples:
        >>> asides.Parser("qwen3").feed("<think>hm")[1]
        ThinkingDelta(index=0, text='hm')
    """

    index: int
    """The index of its part in `message.parts`."""
    text: str
    """More of the thought, to be appended."""


class TextDelta(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False, tag="text_delta", tag_field="type"):
    """A text part grows.

    Examples:
        >>> asides.Parser("qwen3").feed("It is 4.")[1]
        TextDelta(index=0, text='It is 4.')
    """

    index: int
    """The index of its part in `message.parts`."""
    text: str
    """More of the answer, to be appended."""


class ToolCallDelta(
    msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False, tag="tool_call_delta", tag_field="type"
):
    """A call's argument text grows.

    Examples:
        >>> events = asides.split(['<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'], "qwen3")
        >>> [event.text for event in events if isinstance(event, asides.ToolCallDelta)]
        ['{"a": 2}']
    """

    index: int
    """The index of its part in `message.parts`."""
    text: str
    """More of the arguments, a JSON object as text."""


class PartEnd(msgspec.Struct, frozen=True, repr_omit_defaults=True, tag="part_end", tag_field="type"):
    """A part ends.

    Examples:
        >>> asides.Parser("qwen3").feed("<think>hm</think>")[-1]
        PartEnd(index=0, span=(7, 9))
    """

    index: int
    """The index of its part in `message.parts`."""
    complete: bool = True
    """False when a stop marker or the end of input cut it off."""
    error: str | None = None
    """The code of why a call may not be run; None where it may, and for other parts."""
    span: Span = (0, 0)
    """Where the part is in the raw text: `(start, end)` in characters, half open."""
    error_message: str = ""
    """The error as a sentence; empty when there is none."""


class Retyped(msgspec.Struct, frozen=True, repr_omit_defaults=True, tag="retyped", tag_field="type"):
    """The open first part is of the other kind: what came later shows where the output began. Its deltas stay as they
    are; leading whitespace that its `span` leaves out is no part of it any more.

    Examples:
        >>> events = asides.split(["hm", "</think>Four."])
        >>> [event for event in events if isinstance(event, asides.Retyped)]
        [Retyped(index=0, kind='thinking')]
    """

    index: int
    """The index of its part in `message.parts`."""
    kind: Literal["thinking", "text"]
    """What the part is."""


NoticeCode = Literal[
    "after_stop",
    "after_turn",
    "bare_harmony",
    "draft_call",
    "duplicate_argument",
    "example_call",
    "fenced_call",
    "foreign_marker",
    "implicit_close",
    "incomplete_call",
    "inline_marker",
    "invalid_argument",
    "late_id",
    "limit",
    "malformed_header",
    "missing_close",
    "nested_open",
    "not_a_call",
    "outside_message",
    "partial_marker",
    "repaired",
    "retyped",
    "stray_close",
    "stray_marker",
    "string_arguments",
    "unbalanced_value",
    "unclosed_thinking",
    "unescaped_quote",
    "unknown_channel",
    "unknown_tool",
    "unreadable_call",
    "unreadable_frame",
]
"""The codes of notices; `NOTICES` has the meaning of each."""


class Notice(msgspec.Struct, frozen=True, repr_omit_defaults=True, tag="notice", tag_field="type"):
    """Something odd that was tolerated. Never silent, never fatal unless `strict` says so.

    Examples:
        >>> asides.parse("<think>so this is").notices[0].code
        'unclosed_thinking'
    """

    code: NoticeCode
    """What was odd, as one of the codes of `NOTICES`."""
    message: str
    """What was found and how it was read, as a sentence."""
    offset: int
    """Where in the raw text it was found, in characters from 0."""


Delta = TextDelta | ThinkingDelta | ToolCallDelta
"""A part grows."""
Event = PartStart | Delta | PartEnd | Retyped | Notice
"""What `Parser.feed` and `Parser.finish` return."""

NOTICES: dict[NoticeCode, str] = {
    "after_stop": "something follows a stop marker; words are read as text, a call may not be run",
    "after_turn": "the turn is over and the output goes on as another's; nothing of that is read",
    "bare_harmony": "the server removed the special tokens; the headers of harmony are recognised by their text alone",
    "draft_call": "a call inside thinking was only a draft and stays thinking",
    "duplicate_argument": "an argument is given twice with the same value; it is written once",
    "example_call": "a call is shown in a block, a code span or quotes; it stays in the text and is not run",
    "fenced_call": "a call stands in a block that never closes, and the turn ends with it; it is a call",
    "foreign_marker": "a marker that the format does not know stands in the text; it is left there",
    "implicit_close": "thinking was ended by a call or another message instead of its closing marker",
    "incomplete_call": "the input ended inside a call",
    "inline_marker": "a marker inside a line is talked about, as far as its place shows; it is left in the text",
    "invalid_argument": "an argument is not of the type that its tool gives it; it stays as the model wrote it",
    "late_id": "the call's id came after its arguments had begun; the id that was made for the call stays",
    "limit": "more was held back than `limit` allows; it is read without waiting for the rest",
    "malformed_header": "a message header is not as the format writes it",
    "missing_close": "a call is complete but its closing marker is missing",
    "nested_open": "an opening marker inside thinking is taken literally",
    "not_a_call": "a call's opening marker was followed by no call; it stays in the text as it was written",
    "outside_message": "text outside of any message; it is read as part of the answer",
    "partial_marker": "a marker that lacks a part; it is read as the whole marker",
    "repaired": "the closing brackets of a cut-off call were added, because `repair` is on",
    "retyped": "the output began in the other state than was assumed; its first part is of the other kind",
    "stray_close": "a closing marker with nothing open; it is removed",
    "stray_marker": "a marker without a meaning at its place; it is removed",
    "string_arguments": "the arguments were written as a string that holds JSON; they are unescaped",
    "unbalanced_value": "the tags in a value do not match; it ends at the first closing tag that could be its own",
    "unclosed_thinking": "the output ended inside thinking",
    "unescaped_quote": "a string of a call holds its own quote unescaped; it is taken as part of the string",
    "unknown_channel": "a message names a channel that the format does not know; it is taken as text",
    "unknown_tool": "a call names a tool that is not among those given",
    "unreadable_call": "a call could not be read; it is a part with an `error`",
    "unreadable_frame": "a frame of a server's stream has no shape that its API has; it is left out",
}
"""Every code and what it means; the documentation's list is made from this."""
