"""`asides probe --output`: which formats take this output apart, what each makes of it, and the flag that says so.

Every format reads the output as `asides split` would. Those that make the same of it are one reading; readings are
ordered by how well they fit: one that finds thoughts or calls and meets nothing odd stands first. Where none finds
anything, a pair of tags that stands in the output is offered as `--tags`.

    reply.txt: 1 thought, an answer of 3 words
    read it with
      asides reply.txt
      model | asides --start thinking
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote
from textwrap import wrap
from typing import Any

import msgspec

from .._api import parse
from ..families import formats, get_format
from ..families._own_tags import own_tags
from ..message import Message
from ..parts import Text, Thinking, ToolCall
from ..policies import Policies, Start
from ..reading import Reading
from ..terminal._table import amount, clean, cut
from . import ODD, OK
from .formats import terminal_width
from .options import HELP_WIDTH, write_out

UNREAL = ("auto", "passthrough")
"""What is no model's format."""
MOST_ROWS = 8
"""Parts and oddities of a reading that are listed."""
TAG = re.compile(r"(<{1,3}|\[{1,3})(/?)([A-Za-z][\w:.\-]{0,40})(>{1,3}|\]{1,3})")
"""A tag: its brackets, whether it closes, its name, its brackets."""
_NOTHING = {False: ("answer", "all of it, markers included"), True: ("open", "all of it is a thought that never ends")}
_Signature = tuple[tuple[str, str], ...]


class OutputReading(msgspec.Struct):
    """What some formats make of an output."""

    message: Message
    formats: list[str]

    @property
    def finds(self) -> bool:
        """Whether anything was taken apart: a format that begins in thinking makes one thought of any text."""
        return found_in(self.message)

    def rank(self) -> tuple[bool, int, int]:
        """The best sorts first: something found, nothing odd, much found."""
        found = sum(not isinstance(part, Text) for part in self.message.parts)
        odd = len(self.message.notices) + (not self.message.complete)
        return not self.finds, odd, -found

    def to_dict(self) -> dict[str, Any]:
        """The reading as plain data."""
        message = self.message
        return {
            "formats": self.formats,
            "thinking": [part.text for part in message.parts if isinstance(part, Thinking)],
            "text": message.text,
            "calls": [part.name for part in message.tool_calls],
            "complete": message.complete,
            "notices": [f"{notice.code} at character {notice.offset}: {notice.message}" for notice in message.notices],
        }


def found_in(message: Message) -> bool:
    """Whether there is a call, or a thought that is not simply all of it."""
    whole = message.raw.strip()
    return any(not isinstance(part, Text | Thinking) for part in message.parts) or any(
        isinstance(part, Thinking) and part.text.strip() != whole for part in message.parts
    )


def probe_output(path: str, text: str, *, as_json: bool) -> int:
    """Print what formats make of an output. Exit code 1 where none finds anything in it."""
    readings = read_by_all(text)
    best = readings[0]
    if as_json:
        flags = choose_flags(text, best)
        found = {
            "output": path,
            "split": best.finds,
            "flags": flags,
            "streaming_flags": streaming_flags(text, best, flags),
            "readings": [reading.to_dict() for reading in readings],
        }
        write_out(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
    else:
        write_out(_words(path, text, readings, terminal_width() or HELP_WIDTH))
    return OK if best.finds else ODD


def read_by_all(text: str) -> list[OutputReading]:
    """What the formats make of an output, the best first."""
    readings: dict[_Signature, OutputReading] = {}
    for name in formats():
        if name not in UNREAL:
            message = parse(text, name)
            # Those that find nothing differ only in what they make of it: an answer, or a thought that never ends.
            key: _Signature = (("nothing", type(message.parts[0]).__name__ if message.parts else ""),)
            if found_in(message):
                key = (*_signature(message), ("odd", str(len(message.notices))))
            readings.setdefault(key, OutputReading(message, [])).formats.append(name)
    return sorted(readings.values(), key=OutputReading.rank)


def choose_flags(text: str, best: OutputReading) -> list[str]:
    """The flags with which `asides FILE` reads it so; none where `auto` does."""
    if not best.finds:
        pair = find_tags(text)
        return ["--tags", *pair] if pair is not None else []
    if _signature(parse(text)) == _signature(best.message):
        return []
    return ["-f", best.formats[0]]


def find_tags(text: str) -> tuple[str, str] | None:
    """The pair of tags of which one stands first, with all brackets that its opener and its closer have in common.

    In one pass: looking for the closer of each opener by itself takes hours where many never close.
    """
    places: dict[str, int] = {}
    opened: set[tuple[str, str, str]] = set()
    pairs: set[tuple[str, str, str]] = set()
    for tag in TAG.finditer(text):
        before, closes, name, after = tag.groups()
        tags = {(before[:left], name, after[:right]) for left in (1, 2, 3) for right in (1, 2, 3)}
        if closes:
            pairs |= tags & opened
        else:
            places.setdefault(name, tag.start())
            opened |= tags
    if not pairs:
        return None
    before, name, after = min(pairs, key=lambda tag: (places[tag[1]], -len(tag[0] + tag[2])))
    return f"{before}{name}{after}", f"{before}/{name}{after}"


def streaming_flags(text: str, best: OutputReading, flags: Sequence[str]) -> list[str] | None:
    """The flags with which the filter reads it so as it comes; None where none do."""
    name = flags[1] if flags[:1] == ["-f"] else "auto"
    format = own_tags([(flags[1], flags[2])]) if flags[:1] == ["--tags"] else get_format(name)
    wanted = _signature(best.message if best.finds else parse(text, format))
    starts: tuple[Start | None, ...] = (None, "thinking")
    for start in starts:
        parser = Reading.of(format=format, policies=Policies(start=start, retype=False)).parser()
        parser.feed(text)
        parser.finish()
        if _signature(parser.message) == wanted:
            return [*flags, *(("--start", start) if start else ())]
    return None


def _signature(message: Message) -> _Signature:
    """What two readings have in common that are the same to a reader."""
    return tuple(
        ("call", f"{part.name} {part.arguments}")
        if isinstance(part, ToolCall)
        else (type(part).__name__, part.text.strip())
        for part in message.parts
    )


def _words(path: str, text: str, readings: list[OutputReading], width: int) -> str:
    best = readings[0]
    flags = choose_flags(text, best)
    if best.finds:
        lines = [f"{clean(path)}: {_summary(best.message)}", "read it with"]
    elif flags:
        lines = [f"{clean(path)}: no format finds a thought or a call in it. If its tags are markers:"]
    else:
        lines = [f"{clean(path)}: no format finds a thought or a call in it. Other markers: --tags OPEN CLOSE"]
    lines = [part for line in lines for part in wrap(line, width, break_on_hyphens=False)]
    if best.finds or flags:  # not wrapped, because they are for copying
        lines.append(f"  {_command('asides', flags, '' if path == '-' else path)}")
        streaming = streaming_flags(text, best, flags)
        lines += [f"  {_command('model | asides', streaming)}"] if streaming is not None else []
    # Where no format finds anything they all make the same of it, which says nothing.
    for reading in readings if best.finds else ():
        names = f"{amount(len(reading.formats), 'format', 'formats')}: {', '.join(reading.formats)}"
        lines += ["", *wrap(names, width, subsequent_indent="  ")]
        rows = _rows(reading.message) if reading.finds else [_NOTHING[bool(reading.message.thinking)]]
        lines += [f"  {kind:<8} {cut(clean(what[: 4 * width]), width - 11)}" for kind, what in rows]
    return "\n".join(lines) + "\n"


def _command(command: str, flags: Sequence[str], path: str = "") -> str:
    return " ".join((command, *map(quote, (*flags, *((path,) if path else ())))))


def _summary(message: Message) -> str:
    """What there is, in a line."""
    thoughts = [part for part in message.parts if isinstance(part, Thinking)]
    found = [amount(len(thoughts), "thought", "thoughts")] if thoughts else []
    found += [amount(len(message.tool_calls), "call", "calls")] if message.tool_calls else []
    words = len(message.text.split())
    found.append(f"an answer of {amount(words, 'word', 'words')}" if words else "no answer")
    return ", ".join(found)


def _rows(message: Message) -> list[tuple[str, str]]:
    """The parts and the oddities of a reading, each with what it is."""
    rows = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            rows.append(("call", f"{part.name} {part.arguments}"))
        else:
            kind = "answer" if isinstance(part, Text) else "thought" if part.complete else "open"
            rows.append((kind, part.text))
    rows += dict.fromkeys(("odd", f"{notice.code}: {notice.message}") for notice in message.notices)
    shown = rows[:MOST_ROWS]
    return shown if len(shown) == len(rows) else [*shown, ("...", f"{len(rows) - len(shown)} more")]
