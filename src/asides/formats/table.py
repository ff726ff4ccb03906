"""The table of formats for the README, made from the registry. Knows how formats are described, not how they are read."""

from __future__ import annotations

from ..engine.format import HEADER, TEXT, THINKING, Format
from .registry import formats, get_format

_CALLS = "calls"
_COLUMNS = ("format", "also known as", "thinking", "starts in", _CALLS)


def markdown_table() -> str:
    """Every format as a row: name, aliases, thinking markers, where output starts, how calls open."""
    rows = [_COLUMNS, tuple("---" for _ in _COLUMNS)]
    rows += [_row(get_format(name)) for name in formats()]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(format: Format) -> tuple[str, ...]:
    if format.settle is not None:
        return (_code(format.name), "", "settled by the first marker", "text", "settled by the first call")
    aliases = ", ".join(_code(alias) for alias in format.aliases)
    return (_code(format.name), aliases, _thinking(format), _start(format), _calls(format))


def _thinking(format: Format) -> str:
    """The first opener and the first closer; the rest differ little."""
    header = format.header
    if header is not None and header.body:
        channels = [f"{header.channel_marker}{name}{header.body}" for name, to in header.channels.items() if to == THINKING]
        channels += [f"to={name}{header.body}" for name, to in header.recipients.items() if to == THINKING]
        openers = channels
    else:
        states = format.states.get(HEADER, {}) | format.states.get(TEXT, {})
        openers = [marker for marker, target in states.items() if target == THINKING]
        openers = openers or [m for m, target in format.states.get(HEADER, {}).items() if target == THINKING]
    closers = [m for m, target in format.states.get(THINKING, {}).items() if target not in (THINKING, HEADER, "end")]
    return f"{_code(openers[0])} … {_code(closers[0])}" if openers and closers else ""


def _start(format: Format) -> str:
    return "a header" if format.start == HEADER else format.start


def _calls(format: Format) -> str:
    """The opener of each call syntax."""
    found = []
    for syntax in format.calls:
        found += [_code(syntax.openers[0])] if syntax.openers else ["no marker"]
    if format.header is not None and format.header.calls:
        found.append("by recipient")
    return ", ".join(dict.fromkeys(found))


def _code(text: str) -> str:
    """As inline code in a table cell, where a bar would end the cell."""
    return "`" + text.replace("\n", "\\n").replace("|", "\\|") + "`"
