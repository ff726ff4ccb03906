"""Message headers whose markers are gone: role, recipient, channel and type run together with the words.

Servers that leave special tokens out of the text (`skip_special_tokens`) turn a format with headers into
`analysisNeed it.assistantcommentary to=functions.f json{}assistantfinalDone.`. Two questions are answered here: whether
an output begins so, and what one such header says. A header behind the first always has its role before it and no
whitespace before that: it is *joined*. What is read behind the first header is `bare_format`: the same format with
the joined words as markers beside its own, of which a server may have left some.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

import msgspec

from .calls.named_calls import BodyCalls
from .calls.steps import marker_at
from .calls.syntax import CallSyntax
from .calls.tools import Tools
from .format import HEADER, TEXT, THINKING, TO, Format, Header, State
from .headers import LONGEST, HeaderResult
from .members import members

_RECIPIENT = re.compile(r"[^\s<{]*+")
_SPACE = re.compile(r"\s{0,4}")
_NAME_GOES_ON = "_-."
"""Behind one of these, a channel's or a type's name belongs to the tool's: `run_analysis`, `to_json`."""


class BareStart(Enum):
    """Whether an output begins with a bare header."""

    NO = "it does not"
    WAIT = "more must be seen"
    MAYBE = "a joined header must follow"
    YES = "it does"
    JOINED = "it does, and the role stands before it"


BareStarts = members(BareStart)


def starts_bare(header: Header, text: str, at: int, end: int, final: bool) -> BareStart:
    """Whether `text[at:end]`, where a message may begin, begins with a bare header."""
    bare = header.bare
    if bare is None:
        return BareStarts.NO
    word = marker_at(text, at, end, bare.words, final)
    role = marker_at(text, at, end, header.roles, final)
    place = at + len(role or "")
    channel = marker_at(text, place, end, tuple(header.channels), final)
    if word or channel is None or role is None:
        return BareStarts.NO if word else BareStarts.WAIT
    place += len(channel)
    if role and channel:
        return BareStarts.JOINED
    followers = (TO, header.body, *header.joined) if role or channel else (TO, header.body)
    marker = marker_at(text, place, end, followers, final)
    if marker is None or word is None:
        return BareStarts.WAIT
    if marker == TO:
        return _starts_with_recipient(header, text, place, end, final, bool(role), bool(channel))
    if not channel or place == end:
        return BareStarts.NO
    if marker or _begins_words(text[place]):
        return BareStarts.YES
    again = marker_at(text, place, end, tuple(header.channels), final)
    if again is None or (again and not final and place + len(again) == end):
        return BareStarts.WAIT
    if again and _begins_words(text[place + len(again) : place + len(again) + 1]):
        return BareStarts.YES
    return BareStarts.MAYBE if text[place].islower() else BareStarts.NO


def _starts_with_recipient(
    header: Header, text: str, place: int, end: int, final: bool, role: bool, channel: bool
) -> BareStart:
    """The recipient in front: certain behind a channel; else the channel must be found at its end."""
    found = _recipient(header, text, place, end, final)
    if found is None:
        return BareStarts.WAIT
    name, _ = found
    if not name:
        return BareStarts.NO
    if channel:
        return BareStarts.YES
    if not name.endswith(tuple(header.channels)):
        return BareStarts.NO
    return BareStarts.JOINED if role else BareStarts.YES


def _begins_words(character: str) -> bool:
    """Whether words begin here that a channel's name cannot be part of: no letter of a script with case, but capitals.

    `finally` goes on in lower case, `analysis: none` and `final answer` do not go on with a letter at all.
    """
    if character.isdigit() or character.isupper() or character.istitle():
        return True
    return character.isalpha() and character.lower() == character.upper()


def read_bare_header(
    header: Header, text: str, start: int, end: int, final: bool, tools: Tools | None
) -> HeaderResult | None:
    """Read the bare header at `start`. None when more must be seen; one that says nothing has no state."""
    assert header.bare is not None
    # Neither is cut off: a header is read once its first words were found, whole.
    role = marker_at(text, start, end, header.roles, True) or ""
    channel = marker_at(text, start + len(role), end, tuple(header.channels), True) or ""
    at = start + len(role) + len(channel)
    again = marker_at(text, at, end, tuple(header.channels), final)
    if again is None or (again and not final and at + len(again) == end):
        return None
    if again and _begins_words(text[at + len(again) : at + len(again) + 1]):
        channel, at = again, at + len(again)
    led = marker_at(text, at, end, (TO,), final)
    if led is None:
        return None
    recipient = ""
    if led:
        found = _recipient(header, text, at, end, final)
        if found is None:
            return None
        recipient, at = found
    if not channel and not recipient:
        return HeaderResult(max(at, start + len(role) + len(led)))
    typed = _behind_type(header, text, at, end, final, bool(recipient))
    if typed is None:
        return None
    recipient, glued = _resolve(header, recipient, tools, typed == at and text.startswith("{", at))
    channel = glued or channel  # the last channel decides
    body = marker_at(text, typed, end, (header.body,), final)
    if body is None:
        return None
    stop = typed + len(body)
    if recipient and recipient not in header.recipients and header.calls:
        return HeaderResult(stop, None, header.calls, recipient, header.channel_marker)
    state = header.recipients.get(recipient) or header.channels.get(channel, header.default)
    return HeaderResult(stop, state, marker=header.channel_marker, addressed=recipient in header.recipients)


def _recipient(header: Header, text: str, at: int, end: int, final: bool) -> tuple[str, int] | None:
    """The recipient behind the `to=` at `at`, and where it stops; None when more must be seen.

    It stops before whitespace, a brace or a marker, and behind the channel where it is none of the tools: in
    `to=assistantanalysisNeed it.` the words follow at once. What has no end is none: it stops where it would begin.
    """
    start = at + len(TO)
    known = tuple(name + channel for name in (*header.roles, *header.recipients) for channel in header.channels)
    whole = marker_at(text, start, end, known, final)
    if whole is None:
        return None
    if whole:
        return whole, start + len(whole)
    match = _RECIPIENT.match(text, start, min(end, start + LONGEST))
    stop = match.end() if match else start
    if stop == end and not final and stop - start < LONGEST:
        return None
    if stop - start >= LONGEST or (stop == start and stop < end):
        return "", at
    return text[start:stop], stop


def _behind_type(header: Header, text: str, at: int, end: int, final: bool, addressed: bool) -> int | None:
    """Behind the content type, or `at` where there is none. None when more must be seen.

    Without a recipient and its marker, a type is one only before what it says is there: `final json{`.
    """
    assert header.bare is not None
    match = _SPACE.match(text, at, end)
    place = match.end() if match else at
    marked = marker_at(text, place, end, (header.type_marker,), final)
    found = marker_at(text, place + len(marked or ""), end, header.bare.types, final)
    if marked is None or found is None:
        return None
    stop = place + len(marked) + len(found)
    if not found or marked or addressed:
        return stop if found or marked else at
    if stop == end and not final:
        return None
    return stop if text.startswith(("{", "[", header.body), stop) else at


def _resolve(header: Header, recipient: str, tools: Tools | None, untyped: bool) -> tuple[str, str]:
    """The recipient without the channel, or the type, that ran into it; and that channel. Known names decide first."""
    assert header.bare is not None
    types = header.bare.types if untyped else ()
    bases = dict.fromkeys((recipient, _without(recipient, types)[0]))
    readings = dict.fromkeys((base, "") for base in bases)
    readings |= dict.fromkeys(_without(base, tuple(header.channels)) for base in bases)
    for name, channel in readings:
        if _is_known(header, name, tools):
            return "" if name in header.roles else name, channel
    return list(readings)[-1]


def _without(name: str, endings: tuple[str, ...]) -> tuple[str, str]:
    for ending in endings:
        rest = name.removesuffix(ending)
        if rest != name and rest and rest[-1] not in _NAME_GOES_ON:
            return rest, ending
    return name, ""


def _is_known(header: Header, name: str, tools: Tools | None) -> bool:
    if name in header.roles or name in header.recipients:
        return True
    prefixes = [syntax.prefix for syntax in header.calls if isinstance(syntax, BodyCalls)]
    return tools is not None and any(name.removeprefix(prefix) in tools.names for prefix in prefixes)


@lru_cache(maxsize=64)
def bare_format(format: Format) -> Format:
    """The format behind a bare header: its own markers and the joined words. Cached by the format's identity."""
    header = format.header
    assert header is not None
    joined: dict[str, State] = dict.fromkeys(header.joined, HEADER)
    states = {**format.states, **{state: {**format.states[state], **joined} for state in (TEXT, THINKING)}}
    calls = tuple(_unmarked(syntax, header.joined) for syntax in header.calls)
    return format.but(states=states, header=msgspec.structs.replace(header, calls=calls))


def _unmarked(syntax: CallSyntax, ends: tuple[str, ...]) -> CallSyntax:
    """A message to a tool that also ends before a joined header; JSON ends by itself."""
    if not isinstance(syntax, BodyCalls):
        return syntax
    return msgspec.structs.replace(syntax, close=syntax.close + ends, marked=False)
