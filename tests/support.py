"""What the tests share: running a parser over chunks, ways to cut a text, and holding a result against the laws.

Knows the public names and what a format is; nothing of how the machine works.
"""

from __future__ import annotations

import ast
import gc
import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec

import asides
from asides import (
    Format,
    Message,
    Notice,
    PartEnd,
    PartStart,
    Retyped,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
)
from asides._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING
from asides._engine.shortcut import events_of, parse_ordinary
from asides._engine.suffixes import split_suffix, split_tag
from asides.events import NOTICES, Event
from asides.policies import DEFAULTS

Policies = Mapping[str, Any]
Chunks = Sequence[str]

SEPARATORS = frozenset("[](){},;`")
"""What may stand between the calls of a list."""


# Running.


class Outcome(NamedTuple):
    """What a parser made of a text."""

    events: list[Event]
    """Every event, neighbouring deltas joined."""
    message: Message | None
    """The message; None when strictness ended the reading, and without collecting."""
    error: Notice | None
    """The notice that strictness turned into an error."""


def joined(events: Iterable[Event]) -> list[Event]:
    """The events with neighbouring deltas of one part joined, so that those of two ways of cutting can be compared."""
    found: list[Event] = []
    texts: list[str] = []
    for event in events:
        if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            last = found[-1] if found else None
            if type(last) is type(event) and last.index == event.index:
                texts.append(event.text)
                continue
            _write(found, texts)
            texts = [event.text]
        else:
            _write(found, texts)
            texts = []
        found.append(event)
    _write(found, texts)
    return found


def _write(events: list[Event], texts: list[str]) -> None:
    if len(texts) > 1:
        last = events[-1]
        assert isinstance(last, TextDelta | ThinkingDelta | ToolCallDelta)
        events[-1] = type(last)(last.index, "".join(texts))


def run(format: str | Format, chunks: Iterable[str], *, finish_reason: str | None = None, **policies: Any) -> Outcome:
    """Feed a parser chunk by chunk and finish it. Ids that the model did not write are the same every time."""
    parser = asides.Parser(format, **{"seed": 0, **policies})
    events: list[Event] = []
    try:
        for chunk in chunks:
            events += parser.feed(chunk)
        events += parser.finish(finish_reason)
    except asides.StrictError as error:
        return Outcome(joined([*events, *error.events]), None, error.notice)
    return Outcome(joined(events), parser.message if policies.get("collect", True) else None, None)


def as_parse(format: str | Format, policies: Policies) -> dict[str, Any]:
    """The policies with which a `Parser` reads as `parse` does."""
    found = asides.get_format(format)
    if policies.get("start") is None and policies.get("prompt") is None and found.start == TEXT:
        return {**policies, "start": "undecided"}
    return dict(policies)


def without_end(policies: Policies) -> dict[str, Any]:
    """The policies alone, without how the reply is said to have ended."""
    return {name: value for name, value in policies.items() if name != "finish_reason"}


def count_calls(do: Callable[[], object]) -> int:
    """How many functions are called, ours and those written in C: the same on any machine, however busy."""
    count = 0

    def tally(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    before = sys.getprofile()
    sys.setprofile(tally)
    try:
        do()
    finally:
        sys.setprofile(before)
    return count


Item = TypeVar("Item")


def check_each(check: Callable[[Item], object], items: Iterable[Item], name: Callable[[Item], str] = str) -> None:
    """Check every item in one test, also behind one that fails; what failed is raised together, each with its name.

    For many small checks: pytest takes five milliseconds to begin, end and report a test.
    """
    failures: list[Exception] = []
    names: list[str] = []
    for item in items:
        try:
            check(item)
        except Exception as error:
            error.add_note(f"this is {name(item)}")
            failures.append(error)
            names.append(name(item))
    if failures:
        raise ExceptionGroup(f"{len(failures)} failed: {', '.join(names)}", failures)


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a source file: rules of structure read every module, each rule in a test of its own."""
    was_enabled = gc.isenabled()
    gc.disable()  # a tree is nothing but new objects, none of them garbage
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        if was_enabled:
            gc.enable()


# Cutting.


def two_way_splits(text: str) -> Iterator[Chunks]:
    """Every way to cut a text in two."""
    for place in range(1, len(text)):
        yield (text[:place], text[place:])


def every_place(text: str) -> Iterator[Chunks]:
    """A text cut at every place, a few places at a time that lie far from each other.

    What a cut in two finds, this finds, and a long text is read a quarter as often: a marker or a tag meets one cut at
    most, with as much text on either side of it as any of them looks at.
    """
    apart = max(16, -(-len(text) // 4))
    for first in range(1, min(apart + 1, len(text))):
        yield cut(text, range(first, len(text), apart))


def characters(text: str) -> Chunks:
    """A text character by character."""
    return tuple(text)


def cut(text: str, places: Iterable[int]) -> Chunks:
    """A text cut at these places."""
    bounds = [0, *sorted({place for place in places if 0 < place < len(text)}), len(text)]
    return tuple(text[start:stop] for start, stop in pairwise(bounds))


# Saying what is wrong.


def show_parts(message: Message | None) -> str:
    """The parts and notices of a message, one on a line."""
    if message is None:
        return "  (ended by strictness)"
    lines = [f"  {part}" for part in message.parts]
    lines += [f"  notice {notice.code} at {notice.offset}: {notice.message}" for notice in message.notices]
    lines.append(f"  text {message.text!r}, thinking {message.thinking!r}, termination {message.termination!r}")
    return "\n".join(lines)


def show_events(events: Iterable[Event]) -> str:
    """Events, one on a line."""
    return "\n".join(f"  {event}" for event in events)


def fail(law: str, format: str | Format, text: str, policies: Policies, *more: str) -> NoReturn:
    """Say which law broke on which input."""
    name = format if isinstance(format, str) else format.name
    head = f"{law}\nformat {name!r}, policies {dict(policies)!r}\ninput {text!r}"
    raise AssertionError("\n".join([head, *more]))


# The laws over one input.


def check_chunking(
    format: str | Format, text: str, ways: Iterable[Chunks], policies: Policies, expected: Outcome | None = None
) -> Outcome:
    """Law 1: every way of cutting gives the events and the message of the whole text."""
    whole = expected or run(format, (text,), **policies)
    for chunks in ways:
        found = run(format, chunks, **policies)
        if found != whole:
            shown = repr(list(chunks)) if len(chunks) < len(text) or len(text) < 12 else "character by character"
            fail(
                "law 1: the cut changes the result",
                format,
                text,
                policies,
                f"cut {shown}",
                f"whole:\n{show_events(whole.events)}\n{show_parts(whole.message)}",
                f"cut:\n{show_events(found.events)}\n{show_parts(found.message)}",
            )
    return whole


def check_one_path(format: str | Format, text: str, policies: Policies) -> None:
    """Law 2: `parse` is a `Parser` that was fed and finished; so are the events of a text that needs no machine."""
    policies = {"seed": 0, **policies}
    whole = asides.parse(text, format, **policies)
    outcome = run(format, (text,), **as_parse(format, policies))
    fed = outcome.message
    if whole != fed:
        fail(
            "law 2: parse differs from Parser", format, text, policies, f"parse:\n{show_parts(whole)}", show_parts(fed)
        )
    ordinary = parse_ordinary(text, asides.get_format(format), DEFAULTS.but(**without_end(policies)))
    if ordinary is not None and events_of(ordinary) != outcome.events:
        found = show_events(events_of(ordinary))
        fail("law 2: the shortcut's events differ", format, text, policies, found, show_events(outcome.events))


def check_kept(format: str | Format, text: str, outcome: Outcome, policies: Policies) -> None:
    """Law 3: nothing is lost, spans are right, and events and message tell the same."""
    assert outcome.message is not None, "law 3 is asked of a reading that came to its end"
    for problem in _problems(asides.get_format(format), text, outcome.events, outcome.message, policies):
        fail(
            f"law 3: {problem}",
            format,
            text,
            policies,
            f"events:\n{show_events(outcome.events)}",
            f"message:\n{show_parts(outcome.message)}",
        )


def check_held(format: str | Format, text: str, chunks: Iterable[str], policies: Policies) -> None:
    """Law 5: little is held back, `held` says how much, and what was told so far is what stands before it."""
    found = asides.get_format(format)
    final = run(format, (text,), **policies).message
    assert final is not None, "law 5 is asked of a reading that came to its end"
    bound = policies.get("limit", 1_048_576) + max((len(marker) for marker in markers(found)), default=0) + 300
    parser = asides.Parser(format, **{"seed": 0, **without_end(policies)})
    told: dict[int, str] = {}
    fed = 0
    for chunk in chunks:
        fed += len(chunk)
        for event in parser.feed(chunk):
            if isinstance(event, TextDelta | ThinkingDelta):
                told[event.index] = told.get(event.index, "") + event.text
        held = parser.held
        if not 0 <= held <= min(bound, fed):
            fail("law 5: too much is held", format, text, policies, f"{held} of {fed} characters, bound {bound}")
        _check_told(format, text, policies, final, told, fed - held, fed)
        _check_snapshot(format, text[:fed], policies, parser.message, told)
    parser.finish(policies.get("finish_reason"))
    if parser.held != 0:
        fail("law 5: characters are held after finish()", format, text, policies, f"held {parser.held}")


def _check_told(
    format: str | Format, text: str, policies: Policies, final: Message, told: Mapping[int, str], until: int, fed: int
) -> None:
    for index, part in enumerate(final.parts):
        if isinstance(part, ToolCall):
            continue
        start, end = part.span
        expected = text[start : min(end, until)] if start < until else ""
        said = told.get(index, "")
        if index == 0 and any(notice.code == "retyped" for notice in final.notices):
            # Where its words begin is known when it is known what it is.
            said, expected = said.lstrip(), expected.lstrip()
        if said != expected:
            fail(
                f"law 5: `held` does not say what is held after {fed} characters",
                format,
                text,
                policies,
                f"told up to {until}: part {index} should be {expected!r}, events say {told.get(index, '')!r}",
                f"in the end:\n{show_parts(final)}",
            )


def _check_snapshot(
    format: str | Format, fed: str, policies: Policies, snapshot: Message, told: Mapping[int, str]
) -> None:
    said = {index: part.text for index, part in enumerate(snapshot.parts) if not isinstance(part, ToolCall)}
    if any(notice.code == "retyped" for notice in snapshot.notices):
        # The deltas of a part that turned out to be of the other kind stay; whitespace before it moves.
        said, told = ({index: text.lstrip() for index, text in each.items()} for each in (said, told))
    if snapshot.raw != fed or said != told:
        fail(
            f"law 3: the snapshot after {len(fed)} characters differs from the events",
            format,
            fed,
            policies,
            f"events say {dict(told)!r}",
            f"snapshot of {snapshot.raw!r}:\n{show_parts(snapshot)}",
        )


# The details of law 3.


def _problems(
    format: Format, text: str, events: Sequence[Event], message: Message, policies: Policies
) -> Iterator[str]:
    """Everything that is wrong with a result, in words."""
    if message.raw != text:
        yield "message.raw is not the input"
    yield from _order_problems(events, len(text))
    retyped = {event.index: event.kind for event in events if isinstance(event, Retyped)}
    starts = [
        msgspec.structs.replace(event, kind=retyped.get(event.index, event.kind))
        for event in events
        if isinstance(event, PartStart)
    ]
    ends = [event for event in events if isinstance(event, PartEnd)]
    if not len(starts) == len(ends) == len(message.parts):
        yield f"{len(starts)} parts start, {len(ends)} end, the message has {len(message.parts)}"
        return
    if tuple(event for event in events if isinstance(event, Notice)) != message.notices:
        yield "the message's notices are not those of the events"
    told = dict.fromkeys(range(len(starts)), "")
    for event in events:
        if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            told[event.index] += event.text
    for index in retyped:
        # Whitespace at the start of a text stays, at the start of a thought it belongs to the marker.
        told[index] = text[: len(text) - len(text.lstrip())] * (retyped[index] == "text") + told[index].lstrip()
        if policies.get("whitespace") == "exact":
            told[index] = "".join(
                event.text for event in events if isinstance(event, TextDelta | ThinkingDelta) and event.index == index
            )
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        for problem in _part_problems(message, index, start, end, told[index]):
            yield f"part {index}: {problem}"
    yield from _gap_problems(starts, told, message, policies)
    yield from _span_problems(format, message, policies)
    if policies.get("calls") is False and message.tool_calls:
        yield "a call was read although none shall be"
    cut_off = sum(isinstance(part, Thinking) and not part.complete for part in message.parts)
    if cut_off > sum(notice.code == "unclosed_thinking" for notice in message.notices):
        yield "thinking was cut off without a notice"


def _order_problems(events: Sequence[Event], size: int) -> Iterator[str]:
    """Parts are told one after the other, each with a start and an end."""
    count = 0
    opened: PartStart | None = None
    kinds: dict[type[Event], str] = {TextDelta: "text", ThinkingDelta: "thinking", ToolCallDelta: "tool_call"}
    for event in events:
        if isinstance(event, Notice):
            if not 0 <= event.offset <= size:
                yield f"a notice stands outside of the text: {event}"
            if event.code not in NOTICES or not event.message:
                yield f"a notice that is not documented, or says nothing: {event}"
        elif isinstance(event, PartStart):
            if opened is not None or event.index != count:
                yield f"{event} while {opened} is open, after {count} parts"
            opened, count = event, count + 1
        elif opened is None or event.index != opened.index:
            yield f"{event} while {opened} is open"
        elif isinstance(event, Retyped):
            if event.index != 0 or event.kind == opened.kind:
                yield f"{event} of {opened}"
        elif isinstance(event, PartEnd):
            opened = None
        elif kinds[type(event)] != opened.kind or not event.text:
            yield f"{event} in {opened}"
    if opened is not None:
        yield f"{opened} never ends"


def _part_problems(message: Message, index: int, start: PartStart, end: PartEnd, told: str) -> Iterator[str]:
    part = message.parts[index]
    words = message.raw[part.span[0] : part.span[1]]
    if part.span != end.span:
        yield f"its span is {part.span}, its end says {end.span}"
    if isinstance(part, ToolCall):
        if start.kind != "tool_call":
            yield f"it started as {start.kind}"
        if part.raw != words:
            yield f"its raw text is {part.raw!r}, its span holds {words!r}"
        if part.arguments != told:
            yield f"its arguments are {part.arguments!r}, the events say {told!r}"
        if (part.name, part.id) != (start.name, start.id):
            yield f"its name and id differ from those of {start}"
        if (part.complete, part.error, part.error_message) != (end.complete, end.error, end.error_message):
            yield f"how it ended differs from {end}"
        yield from _call_problems(part)
        return
    if start.kind != ("thinking" if isinstance(part, Thinking) else "text"):
        yield f"it started as {start.kind}"
    if not part.text:
        yield "it is empty"
    if not part.text == told == words:
        yield f"its text is {part.text!r}, the events say {told!r}, its span holds {words!r}"
    if isinstance(part, Thinking) and part.complete != end.complete:
        yield f"how it ended differs from {end}"


def _call_problems(call: ToolCall) -> Iterator[str]:
    """`error` is None exactly when the call may be run."""
    if not call.id:
        yield "it has no id"
    if not call.raw:
        yield "its raw text is empty"
    if call.error is None:
        if not (call.name and call.complete and is_object(call.arguments)):
            yield "it may not be run, yet it has no error"
    elif not call.error_message:
        yield f"its error {call.error!r} is not said in words"
    if not call.complete and call.error != "incomplete":
        yield f"it was cut off, yet its error is {call.error!r}"


def is_object(text: str) -> bool:
    """Whether a text is a JSON object, strictly."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        # What is nested too deep for the reader here is no problem of ours.
        return text.startswith("{") and text.count("[") + text.count("{") > 500


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _gap_problems(
    starts: Sequence[PartStart], told: Mapping[int, str], message: Message, policies: Policies
) -> Iterator[str]:
    """A stream that is written with gaps equals the whole."""
    for kind, whole in (("text", message.text), ("thinking", message.thinking)):
        ours = [start for start in starts if start.kind == kind]
        if "".join(start.gap + told[start.index] for start in ours) != whole:
            yield f"message.{kind} is not gap and text, joined"
        if ours and ours[0].gap:
            yield f"the first {kind} has a gap"
        for start in ours:
            if start.gap.strip():
                yield f"a gap that is not whitespace: {start}"
            if start.gap and policies.get("whitespace") == "exact":
                yield f"a gap although whitespace is exact: {start}"


def _span_problems(format: Format, message: Message, policies: Policies) -> Iterator[str]:
    """Spans rise and never overlap; between them stands nothing but markers, headers, separators and whitespace."""
    raw, before = message.raw, 0
    exact = policies.get("whitespace") == "exact"
    # The caller's own word of where it begins outranks the prompt.
    prompt = policies.get("prompt") or "" if policies.get("start") is None else ""
    noted = {notice.code for notice in message.notices}
    for index, part in enumerate(message.parts):
        start, end = part.span
        if not before <= start < end <= len(raw):
            yield f"part {index}: its span {part.span} does not rise from {before} within {len(raw)}"
            return
        beside_call = isinstance(part, ToolCall) or (index > 0 and isinstance(message.parts[index - 1], ToolCall))
        yield from _uncovered_problems(format, raw, before, start, exact and not beside_call, noted, prompt)
        if not exact and not isinstance(part, ToolCall) and "limit" not in noted:
            # Thinking that begins implicitly counts as opened just before the input, unless a prefill began it.
            opened = start > 0 or (isinstance(part, Thinking) and policies.get("prompt") is None)
            yield from _tidy_problems(index, part.text, opened, end < len(raw))
        before = end
    beside_call = bool(message.parts) and isinstance(message.parts[-1], ToolCall)
    stop = len(raw)
    if (message.beyond is not None) != ("after_turn" in noted):
        yield f"beyond is {message.beyond}, the notices say otherwise"
    if message.beyond is not None:
        stop = message.beyond[0]
        if not before <= stop < message.beyond[1] == len(raw):
            yield f"what stands beyond the turn, {message.beyond}, is not the rest behind {before}"
            return
    yield from _uncovered_problems(format, raw, before, stop, exact and not beside_call, noted, prompt)


def _tidy_problems(index: int, text: str, opened: bool, closed: bool) -> Iterator[str]:
    if opened and text != text.lstrip():
        yield f"part {index} begins with whitespace, beside a marker"
    if closed and text != text.rstrip():
        yield f"part {index} ends with whitespace, beside a marker"


def _uncovered_problems(
    format: Format, raw: str, start: int, stop: int, exact: bool, noted: Collection[str], prompt: str
) -> Iterator[str]:
    """What no part covers is only markers and what belongs to them."""
    words = raw[start:stop]
    if not words:
        return
    rest = words
    if format.header is not None:
        # The whitespace of a header is its own, so that exactness cannot be asked for here.
        exact = False
        if format.header.bare is not None and format.header.bare.notice in noted:
            rest = _bare_header_pattern(format).sub("", rest)
        if start == 0:
            rest = _without_end_of_marker(format, rest, prompt)
        # Output may begin inside a header that the prompt has opened.
        rest = _header_pattern(format).sub("", "\0" + rest if start == 0 else rest).removeprefix("\0")
    if stop == len(raw):
        rest = _without_half_marker(format, rest)
    rest = _marker_pattern(format).sub("", rest)
    if any(getattr(syntax, "fenced", False) for syntax in format.calls):
        rest = re.sub(r"```(?:json)?", "", rest)  # the code block around a list of calls
    if exact and not any(name in words for syntax in format.calls for name in syntax.openers + syntax.closers):
        lost = rest
    else:
        lost = "".join(character for character in rest if not _may_separate(character))
    if lost:
        yield f"{lost!r} is in no part: {words!r} at {start}"


def _without_half_marker(format: Format, words: str) -> str:
    """Words without the beginning of a marker at their end, where that is a whole marker already."""
    names = markers(format)
    for name in names:
        for length in range(len(name) - 1, 0, -1):
            if words.endswith(name[:length]) and any(name[:length].startswith(other) for other in names):
                return words[: len(words) - length]
    return words


def _without_end_of_marker(format: Format, words: str, prompt: str) -> str:
    """Words without the end of a marker at their beginning, where the prompt has the beginning of that marker."""
    for name in sorted(markers(format), key=len, reverse=True):
        for length in range(len(name) - 1, 0, -1):
            if prompt.endswith(name[:length]) and words.startswith(name[length:]):
                return words[len(name) - length :]
    return words


def _may_separate(character: str) -> bool:
    return character.isspace() or character in SEPARATORS


# What a format's own words are.


def may_settle_on(format: Format) -> list[Format]:
    """The format, and where it settles on others (`auto`) any that there is."""
    return [format, *map(asides.get_format, asides.formats())] if format.settle is not None else [format]


def ignored(format: Format) -> set[str]:
    """The markers that are left out of a text without a word."""
    return {marker for other in may_settle_on(format) for marker in other.ignored}


def markers(format: Format) -> list[str]:
    """Every marker of a format, the longest first."""
    found = {name for table in format.states.values() for name in table} | set(format.tag_rules)
    found.update(ignored(format))
    for other in may_settle_on(format):
        found.update(other.strays, other.last_stops)
    for syntax in format.calls:
        found.update(syntax.openers, syntax.closers)
    if format.header is not None:
        found |= {format.header.channel_marker, format.header.type_marker, format.header.body}
        for syntax in format.header.calls:
            found.update(syntax.openers, syntax.closers)
    return sorted(found - {""}, key=lambda name: (-len(name), name))


def stop_markers(format: Format) -> list[str]:
    """The markers that end a turn."""
    return sorted({name for table in format.states.values() for name, state in table.items() if state == END and name})


@cache
def _marker_pattern(format: Format) -> re.Pattern[str]:
    """Finds a marker."""
    sources = []
    for name in markers(format):
        if format.suffixed is not None and name.startswith("<"):
            head, tail = split_tag(split_suffix(name)[0])
            sources.append(rf"{re.escape(head)}(?::[\w.\-]{{1,64}})?{re.escape(tail)}")
        elif name in format.tag_rules:
            sources.append(rf"(?ai:{re.escape(name[:-1])})(?:\s[^<>\r\n]{{0,200}})?>")
        elif (format.attributes or name in ignored(format)) and name.startswith("<") and name.endswith(">"):
            sources.append(re.escape(name[:-1]) + r"(?:\s[^<>\r\n]{0,256})?>")
        else:
            sources.append(re.escape(name))
    return re.compile("|".join(sources) or r"(?!)", re.IGNORECASE | re.ASCII if format.ignore_case else re.NOFLAG)


@cache
def _header_pattern(format: Format) -> re.Pattern[str]:
    """Finds a message header: up to the marker that ends it, or else up to the last word that means something."""
    header = format.header
    assert header is not None
    states = {name: state for table in format.states.values() for name, state in table.items()}
    openers = [name for name, state in states.items() if state == HEADER] + [header.channel_marker, "\0"]
    ends = [name for name, state in states.items() if state in (END, OUTSIDE)]
    bodies = [header.body, *(name for name in format.states.get(HEADER, {}) if states[name] in (TEXT, THINKING))]
    if not header.body:
        # The header is ended by what says what the message is; a call's opener stands in the part behind it.
        bodies += [name for name, state in states.items() if state in (TEXT, THINKING)]
        bodies += [name for syntax in format.calls for name in syntax.openers]
    opener, end, body = (_any_of(names) for names in (openers, ends, bodies))
    if format.settle is not None:
        # `auto` knows many headers, so any marker may stand in what one of them takes for its own.
        return re.compile(rf"(?:{opener}).{{0,400}}", re.DOTALL)
    inside = rf"(?:{opener})(?:(?!{end}|{body}).){{0,400}}"
    marks = _any_of([header.channel_marker, header.type_marker])
    said = _any_of([*header.channels, *header.roles, "json", "code", "text", "xml"])
    # A whole header, up to the last word of it that means something, or the marker alone.
    whole = rf"{inside}?(?:{body})" if header.body else rf"{inside}?(?:{body}|\Z)"
    return re.compile(rf"{whole}|{inside}(?:to=[^\s<]*|{marks}|(?:{said})(?![\w|]))|{opener}", re.DOTALL)


@cache
def _bare_header_pattern(format: Format) -> re.Pattern[str]:
    """Finds a message header whose markers are gone: role, channel, recipient and type, of which none need be there."""
    header = format.header
    assert header is not None
    assert header.bare is not None
    channel, types = _any_of(header.channels), _any_of(header.bare.types)
    mark = _any_of([header.type_marker])
    to = r" to=[^\s<{]*"
    role = _any_of(header.roles)
    return re.compile(
        rf"(?:{role})(?:{channel}){{0,2}}(?:{to})?\s{{0,4}}(?:{mark})?(?:{types})?"
        rf"|(?:{channel}){{1,2}}(?:{to})?\s{{0,4}}(?:{mark})?(?:{types})?|\A{to}"
    )


def _any_of(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if name) or r"(?!)"
