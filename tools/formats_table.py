"""The table of formats in the README, made from the cards.

`python -m tools.formats_table` prints it; with `--write` it goes into the README. Run it from the top of the
repository. A test fails while the README is not what this writes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from asides._engine.calls.brace_calls import BraceCalls
from asides._engine.calls.json_calls import JsonCalls
from asides._engine.calls.keyed_calls import KeyedCalls
from asides._engine.calls.named_calls import NamedCalls
from asides._engine.calls.nested_calls import NestedCalls
from asides._engine.calls.python_calls import PythonCalls
from asides._engine.calls.syntax import CallSyntax
from asides._engine.calls.xml_calls import XmlCalls
from asides._engine.format import HEADER, OUTSIDE, TEXT, THINKING, Format
from asides.families import families

_KINDS: dict[type[CallSyntax], str] = {
    BraceCalls: "braces",
    JsonCalls: "JSON",
    KeyedCalls: "keys and values",
    NamedCalls: "name, then JSON",
    NestedCalls: "tags",
    PythonCalls: "Python",
    XmlCalls: "tags",
}
PAGE = Path("README.md")
_PLACE = re.compile(r"(<!-- formats:[^\n]*-->\n).*?(<!-- /formats -->)", re.DOTALL)
_COLUMNS = ("format", "also known as", "thinking", "starts in", "calls")


def markdown_table() -> str:
    """Every format of this package as a row: name, aliases, thinking markers, where output starts, how calls open."""
    rows = [_COLUMNS, tuple("---" for _ in _COLUMNS)]
    known = [format for family in families() for format in family.formats]
    rows += [_row(format) for format in sorted(known, key=lambda format: format.name)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_table(text: str) -> str:
    """A document with the table between its two comments brought up to date."""
    return _PLACE.sub(lambda match: f"{match[1]}\n{markdown_table()}\n{match[2]}", text)


def _row(format: Format) -> tuple[str, ...]:
    if format.settle is not None:
        return (_code(format.name), "", "settled by the first marker", "text", "settled by the first call")
    aliases = ", ".join(_code(alias) for alias in format.aliases)
    return (_code(format.name), aliases, _thinking(format), _start(format), _calls(format))


def _thinking(format: Format) -> str:
    """The first opener and the first closer; the others differ little."""
    header = format.header
    if header is not None and header.body:
        openers = [header.channel_marker + name for name, state in header.channels.items() if state == THINKING]
        openers += [f"to={name}" for name, state in header.recipients.items() if state == THINKING]
        openers = [opener + header.body for opener in openers]
    else:
        openers = [
            marker
            for state in (TEXT, HEADER)
            for marker, target in format.states.get(state, {}).items()
            if target == THINKING
        ]
    closers = [marker for marker, target in format.states.get(THINKING, {}).items() if target in (TEXT, OUTSIDE)]
    return f"{_code(openers[0])} … {_code(closers[0])}" if openers and closers else ""


def _start(format: Format) -> str:
    return "a header" if format.start == HEADER else format.start


def _calls(format: Format) -> str:
    """For each call syntax, how it is written and its opener."""
    found = []
    for syntax in format.calls:
        if syntax.sibling:
            continue
        kind = _KINDS.get(type(syntax), "")
        found.append(f"{kind} in {_code(syntax.openers[0])}" if syntax.openers else f"bare {kind}")
    if format.header is not None and format.header.calls:
        found.append("by recipient")
    return ", ".join(found)


def _code(text: str) -> str:
    """As inline code in a table cell, where a bar would end the cell."""
    return "`" + text.replace("\n", "\\n").replace("|", "\\|") + "`"


def _main(arguments: list[str]) -> None:
    if arguments == ["--write"]:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(markdown_table())


if __name__ == "__main__":
    _main(sys.argv[1:])
