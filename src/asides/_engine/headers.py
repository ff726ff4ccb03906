"""Reading the header of a message: which channel, to whom. Decides what the message is, and never loses a word.

A header is short. When it is not as the format writes it, reading resynchronises: what can be understood of it counts,
the rest is the message's own text, and a notice says so.
"""

from __future__ import annotations

import re

import msgspec

from ..events import NoticeCode
from .calls.steps import marker_at, skip
from .calls.syntax import CallSyntax
from .format import OUTSIDE, TEXT, TO, Format, Header, State
from .markers import Action, Found, Marker, Table

LONGEST = 256
"""A header is no longer than this, in characters."""
LONGEST_TOOL = 64
"""The name of a tool is no longer than this where only the end of its header is there."""

_RECIPIENT = re.compile(r"\s*\bto=([^\s<]*)")
_WORD = re.compile(r"\s*([\w.\-]+)")
_TOOL = re.compile(r"[\w.\-]++")
_TYPE_WORD = re.compile(r"\s*([\w.\-]+)(?!=)\b")
_TYPE = re.compile(r"\s*(?:json|code|text|xml)\b")


class HeaderResult(msgspec.Struct, frozen=True):
    """What a header says."""

    stop: int
    """The index behind the header, or behind the marker when it was no header."""
    state: State | None = None
    """What the message holds; None when it is a call, or no message at all."""
    syntaxes: tuple[CallSyntax, ...] = ()
    """How the call may be written, when it is one."""
    recipient: str = ""
    """To whom a call is sent."""
    marker: str = ""
    """What `auto` settles by: the marker of the channel where one is named, else the one that ended the header."""
    notices: tuple[tuple[NoticeCode, str], ...] = ()
    bodiless: bool = False
    """Whether the message ended inside its header, so that a call has no body at all."""
    addressed: bool = False
    """Whether it names a recipient that is no tool."""


def starts_header(format: Format, text: str, marker: Marker | None) -> bool | None:
    """Whether the output begins inside a header: True, False, or None when more must be seen.

    `text` is what stands before `marker`, the first marker there is.
    """
    header = format.header
    roles = header.roles if header else ()
    rest = text.lstrip()
    if len(rest) > LONGEST:
        return False
    if marker is not None and marker.action not in (Action.HEADER, Action.BODY, Action.CALL):
        return False
    for role in roles:
        if rest.startswith(role):
            rest = rest[len(role) :].lstrip()
            break
        if rest and role.startswith(rest) and marker is None:
            return None
    if not rest:
        return True if marker is not None else None
    if header is None or not header.body:
        # Where the marker behind the header says what the message is, a single word may stand before it.
        return False if _WORD.fullmatch(rest) is None else True if marker is not None else None
    match = _RECIPIENT.match(rest)
    if match is not None:
        return (True if marker is not None else None) if not rest[match.end() :].strip() else False
    return None if marker is None and "to=".startswith(rest) else False


def read_header(format: Format, table: Table, text: str, start: int, end: int, final: bool) -> HeaderResult | None:
    """Read the header at `start`. None when more must be seen."""
    at = start
    reach = start + LONGEST
    while True:
        # A marker may begin within reach and end a little behind it.
        found = _first(table, text, at, min(end, reach + 64))
        if found is None or found.start > reach:
            if not final and end <= reach + 64:
                return None
            return _broken(format, text, start, min(end, reach))
        if not final and table.may_extend(text, found, end):
            return None
        marker = found.marker
        if marker.action is Action.BODY or marker.action is Action.CALL:
            return _whole(format, text, start, found.start, found.stop, marker)
        # A marker of another kind inside a header: the header has lost its end.
        if found.start > start and not (marker.action is Action.HEADER and _is_channel(format, marker)):
            return _broken(format, text, start, found.start)
        at = found.stop


def _first(table: Table, text: str, at: int, end: int) -> Found | None:
    matches = [match for pattern in table.searches if (match := pattern.search(text, at, end))]
    if not matches:
        return None
    match = min(matches, key=lambda match: match.start())
    return Found(match.start(), match.end(), table.marker(match.group()))


def _is_channel(format: Format, marker: Marker) -> bool:
    header = format.header
    return header is not None and marker.text in (header.channel_marker, header.type_marker)


def _whole(format: Format, text: str, start: int, place: int, stop: int, marker: Marker) -> HeaderResult:
    """A header that its body marker ends."""
    header = format.header
    if header is None or marker.text != header.body:
        if marker.action is Action.CALL and header is not None and header.body:
            return _broken(format, text, start, place)
        words = text[start:place]
        words = _without_openers(format, words)
        odd = words.strip() and _WORD.fullmatch(words.strip()) is None
        if odd and any(opener in words for syntax in format.calls for opener in syntax.openers):
            return _broken(format, text, start, place)  # a call where none is read: its words are words
        notices: tuple[tuple[NoticeCode, str], ...] = ()
        if odd:
            notices = (("malformed_header", f"the header holds words: {words.strip()[:60]!r}"),)
        if marker.action is Action.CALL:
            return HeaderResult(place, state=TEXT, marker=marker.text, notices=notices)
        if header is not None and marker.text in header.tools:
            syntaxes, tool = (header.tools[marker.text],), words.strip()
            return HeaderResult(stop, TEXT, syntaxes, "" if odd else tool, marker.text, notices)
        return HeaderResult(stop, state=marker.target, marker=marker.text, notices=notices)
    said = _understand(format, header, text[start:place])
    odds: list[tuple[NoticeCode, str]] = []
    if said.rest.strip():
        odds.append(("malformed_header", f"the header holds other words: {said.rest.strip()[:60]!r}"))
    elif said.marked and not said.channel:
        odds.append(("malformed_header", "the header names no channel"))
    if said.channel and not said.known:
        odds.append(("unknown_channel", f"there is no channel {said.channel!r}; taken as text"))
    told_by = header.channel_marker if said.channel else marker.text
    return HeaderResult(stop, said.state, said.syntaxes, said.recipient, told_by, tuple(odds), addressed=said.addressed)


def _broken(format: Format, text: str, start: int, place: int) -> HeaderResult:
    """A header that something else ends: keep what is understood, the rest is the message's text."""
    header = format.header
    marker = next((m for m in format.states[TEXT] if text.startswith(m, start)), "")
    words = text[start + len(marker) : place]
    if header is not None:
        said = _understand(format, header, text[start:place])
        if said.known:
            stop = place - len(said.rest.lstrip())
            notice: tuple[NoticeCode, str] = ("malformed_header", "the header does not end as it should")
            bodiless = not said.rest.strip()
            return HeaderResult(
                stop, said.state, said.syntaxes, said.recipient, marker, (notice,), bodiless, said.addressed
            )
    if not words.strip() or (header is not None and words.strip() in header.roles):
        return HeaderResult(place, state=OUTSIDE, marker=marker)
    return HeaderResult(start + len(marker) if marker else place)


class _Understood(msgspec.Struct, frozen=True):
    """What was understood of a header's words."""

    known: bool
    """Whether it names a channel or a recipient that means something."""
    state: State | None
    syntaxes: tuple[CallSyntax, ...]
    recipient: str
    marked: bool
    """Whether a channel's marker stands in it."""
    channel: str
    rest: str
    """What was not understood: the end of the header's text."""
    addressed: bool = False
    """Whether it names a recipient that is no tool."""


def _understand(format: Format, header: Header, text: str) -> _Understood:
    before, mark, after = text.rpartition(header.channel_marker) if header.channel_marker else ("", "", text)
    if not mark:
        before, after = "", _without_openers(format, text).lstrip()
        for role in header.roles:
            after = after.removeprefix(role)
    channel = recipient = ""
    if mark and (match := _WORD.match(after)):
        channel, after = match.group(1), after[match.end() :]
    if match := _RECIPIENT.match(after):
        recipient, after = match.group(1), after[match.end() :]
    # Models write the recipient behind the channel or before it, in the role.
    elif (match := _RECIPIENT.search(before)) or (match := _RECIPIENT.search(after)):
        recipient = match.group(1)
    own = recipient in header.roles
    if own:
        recipient = ""  # written to itself, as tools write to it: the channel says what the message is
    after = _without_type(header, after)
    if recipient and recipient not in header.recipients and header.calls:
        return _Understood(True, None, header.calls, recipient, bool(mark), channel, after)
    if recipient in header.recipients:
        return _Understood(True, header.recipients[recipient], (), "", bool(mark), channel, after, addressed=True)
    known = channel in header.channels or (own and not channel)
    state = header.channels.get(channel, TEXT if recipient else header.default)
    return _Understood(known, state, (), "", bool(mark), channel, after)


def leads_to_call(format: Format, text: str, at: int, end: int, final: bool) -> bool | None:
    """Whether the end of a header to a tool stands behind the ` to=` that ends at `at`, and then a call; None when more
    must be seen. Without the call it could be words about headers."""
    place = leads_to_message(format, text, at, end, final, tool=True)
    if not place:
        return None if place is None else False
    place = skip(text, place, min(end, place + LONGEST_TOOL))
    openers = tuple(opener for syntax in format.calls for opener in syntax.openers)
    found = marker_at(text, place, end, openers, final)
    return None if found is None else bool(found)


def leads_to_message(format: Format, text: str, at: int, end: int, final: bool, *, tool: bool = False) -> int | None:
    """Where the end of a header stops whose ` to=` ends at `at`; 0 if none follows, None when more must be seen.

    `tool`: only a header to a tool.
    """
    header = format.header
    match = _TOOL.match(text, at, min(end, at + LONGEST_TOOL))
    place = match.end() if match else at
    if header is None or place == at + LONGEST_TOOL:
        return 0
    if place == end:
        return 0 if final else None
    if match is None or (tool and match.group() in header.recipients):
        return 0
    body = marker_at(text, place, end, (header.body,), final)
    return None if body is None else place + len(body) if body else 0


def _without_openers(format: Format, text: str) -> str:
    for opener in format.states[TEXT]:
        if opener != TO:  # that is the header's own
            text = text.removeprefix(opener)
    return text


def _without_type(header: Header, text: str) -> str:
    """Leave out the content type: `<marker>json` or the bare word."""
    stripped = text.lstrip()
    if header.type_marker and stripped.startswith(header.type_marker):
        match = _TYPE_WORD.match(text, len(text) - len(stripped) + len(header.type_marker))
        return text[match.end() :] if match else stripped.removeprefix(header.type_marker)
    match = _TYPE.match(text)
    return text[match.end() :] if match else text
