"""`Format.structural_tag`: everything that an output of a format may be, given the tools.

    thinking (where the output starts in it), then text in which thoughts and calls stand, in any number and order

Free text holds no marker of the format but those that open something here, so what the grammar takes for a call is
what the parser reads as one, and nothing else is. Thinking is free up to its closing marker and holds no calls: a call
that is drafted in a thought could not be told from one that is meant. Where nothing closes a call, only further calls
may follow it. Stop markers are no part of it: they are the tokens at which a server ends the turn.

Formats whose messages have headers (harmony) are a row of messages instead, of which only the last may be a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ...errors import UsageError
from ..calls.named_calls import BodyCalls
from ..calls.syntax import CallSyntax
from ..calls.tools import Tools
from ..states import HEADER, OUTSIDE, TEXT, THINKING, TO, Header, State, States
from .calls import ConstrainedCalls, call_region, json_arguments, written_name
from .pieces import GAP, Piece, any_text, const, either, optional, repeat, sequence, tag, triggered
from .values import ToolArguments


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """What counts here of a format; each field is the format's of that name, and is described there."""

    name: str
    start: State
    states: States
    calls: tuple[CallSyntax, ...]
    header: Header | None
    ignored: tuple[str, ...]
    strays: tuple[str, ...]
    partial: frozenset[str]
    leading: frozenset[str]
    ignore_case: bool
    attributes: bool
    tag_rules: Mapping[str, Any]
    suffixed: Any
    settle: Any


def structural_tag(format: Outline, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The structural tag; a `UsageError` that names the reason where there is none."""
    schemas = Tools(tools).schemas
    if not schemas:
        raise UsageError("a structural tag needs at least one tool that has a name")
    arguments = [ToolArguments(name, schema) for name, schema in schemas.items()]
    try:
        output = _Output(format)
        content = output.of_messages(arguments) if format.header is not None else output.of_text(arguments)
    except UsageError as error:
        raise UsageError(f"{format.name} has no structural tag for these tools: {error}") from None
    return {"type": "structural_tag", "format": content}


class _Output:
    """The output of one format."""

    def __init__(self, format: Outline) -> None:
        start = format.start
        if format.settle is not None:
            raise UsageError("it is settled while reading; name the model's own format")
        if format.suffixed is not None:
            raise UsageError("its tags have a suffix of the checkpoint's own; format.for_tokens(tokens) gives it")
        if format.ignore_case or format.attributes or format.tag_rules:
            raise UsageError("its markers act in any case and with attributes, which no list of markers covers")
        if not format.calls and (format.header is None or not format.header.calls):
            raise UsageError("no call syntax is known for it")
        if (start == HEADER) != (format.header is not None) or start not in (TEXT, HEADER, *format.states):
            raise UsageError(f"its output cannot start in {start!r}")
        self._format = format

    def _leading_to(self, state: State, to: State) -> tuple[str, ...]:
        return tuple(marker for marker, leads in self._format.states.get(state, {}).items() if leads == to)

    # Formats with tags.

    def of_text(self, tools: Sequence[ToolArguments]) -> Piece:
        """Thoughts between markers, and calls."""
        format = self._format
        markers = self._markers()
        opens = _shortest(marker for marker in self._leading_to(TEXT, THINKING) if marker not in format.partial)
        closes = [marker for marker in self._leading_to(THINKING, TEXT) if marker not in format.partial]
        regions = self._regions(tools, markers)
        thought = any_text((*closes, *markers))
        thoughts = [tag(opener, thought, closes) for opener in opens if opener not in format.leading]
        calls = [tag(opener, region.content, region.close) for region in regions for opener in region.openers]
        closed = all(region.close for region in regions)
        kept = (*self._leading_to(TEXT, TEXT), *format.ignored)
        self._check(calls, kept)
        tags = [*self._whole_wrappers(), *thoughts, *(calls if closed else ())]
        begins = tuple(each["begin"] for each in tags)
        text = triggered(tags, [each for each in _outside(markers, (*kept, *begins)) if not each.startswith(begins)])
        if not closed:
            text = sequence(text, repeat(either([_untagged(call) for call in calls])))
        if format.start == THINKING:
            return sequence(tag("", thought, closes), text)
        first = [tag(opener, thought, closes) for opener in opens if opener in format.leading]
        return sequence(GAP, optional(either(first)), text) if first else text

    def _markers(self) -> tuple[str, ...]:
        """Every marker that must not stand in free text, thinking or a value that is not JSON."""
        states = self._format.states
        acting = [marker for state in (TEXT, THINKING) for marker, to in states.get(state, {}).items() if to != state]
        called = [marker for syntax in self._format.calls for marker in (*syntax.openers, *syntax.closers)]
        return tuple(dict.fromkeys((*acting, *called, *self._format.strays)))

    def _regions(self, tools: Sequence[ToolArguments], markers: tuple[str, ...]) -> list[ConstrainedCalls]:
        """What the family writes: its own syntaxes, and not those that share an opener with them."""
        own = [syntax for syntax in self._format.calls if not syntax.sibling]
        return [call_region(syntax, tools, markers) for syntax in own]

    def _whole_wrappers(self) -> list[Piece]:
        """Wrappers that are also read without their last part: here it must follow."""
        wrappers, partial = self._leading_to(TEXT, TEXT), self._format.partial
        pairs = [(part, whole) for part in wrappers if part in partial for whole in wrappers if whole.startswith(part)]
        return [tag(part, const(""), whole.removeprefix(part)) for part, whole in pairs if part != whole]

    def _check(self, calls: Iterable[Piece], wrappers: Sequence[str]) -> None:
        for call in calls:
            for wrapper in wrappers:
                if wrapper.startswith(call["begin"]):
                    raise UsageError(f"{call['begin']!r} opens calls and also text, as {wrapper!r}")

    # Formats whose messages have headers.

    def of_messages(self, tools: Sequence[ToolArguments]) -> Piece:
        """Messages in a row. The prompt has opened the first one's header."""
        header = self._format.header
        assert header is not None
        if not header.calls or not header.channel_marker or not isinstance(header.calls[0], BodyCalls):
            raise UsageError("the headers of its messages are not a channel and a recipient, followed by JSON")
        excludes = (*self._markers(), header.channel_marker, header.type_marker, header.body)
        words = any_text(excludes)
        every = list(header.channels)
        answers = [channel for channel, leads in header.channels.items() if leads == TEXT]
        call = either(
            [_message_call(header, header.calls[0].prefix + written_name(tool.tool), every, tool) for tool in tools]
        )
        again = self._leading_to(TEXT, OUTSIDE)[0] + self._leading_to(TEXT, HEADER)[0] + header.roles[0]
        before = sequence(_channel(header, every), const(header.body), words, const(again))
        return sequence(repeat(before), either([sequence(_channel(header, answers), const(header.body), words), call]))


def _untagged(call: Piece) -> Piece:
    return sequence(const(call["begin"]), call["content"], const(call["end"]))


def _channel(header: Header, names: Iterable[str]) -> Piece:
    return sequence(const(header.channel_marker), either(map(const, names)))


def _message_call(header: Header, recipient: str, channels: Iterable[str], tool: ToolArguments) -> Piece:
    """A message to a tool: the recipient stands before the channel or behind it."""
    to, channel = const(TO + recipient), _channel(header, channels)
    typed = sequence(GAP, optional(const(header.type_marker + "json")), const(header.body))
    return sequence(either([sequence(to, channel), sequence(channel, to)]), typed, json_arguments(tool))


def _shortest(markers: Iterable[str]) -> list[str]:
    """The markers that do not begin with another one of them."""
    every = list(markers)
    return [marker for marker in every if not any(other != marker and marker.startswith(other) for other in every)]


def _outside(markers: Iterable[str], allowed: Iterable[str]) -> list[str]:
    """The markers that are no part of an allowed one."""
    whole = "\0".join(allowed)
    return [marker for marker in markers if marker not in whole]
