"""`asides formats`: the registry as a table, or one format in detail."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from .._engine.calls.syntax import CallSyntax
from .._engine.format import END, HEADER, TEXT, THINKING, Format
from ..families import family_of, formats, get_format, switch_of
from ..terminal.table import aligned, cut
from . import OK
from .filter import find_format
from .options import Arguments, write_out
from .streams import STDOUT, OutputStream

DESCRIPTION = """\
Lists the formats, with the names that each answers to. Names compare without
case, `-`, `_`, `.` and spaces. With a name, shows that format in detail: its
family, its markers, how it writes calls, how its thinking is switched.
"""
COLUMNS = ("name", "start", "calls", "aliases", "source")
MOST_ALIASES = 32
"""Columns that aliases take on a terminal."""
EXIT_CODES = """\
exit codes:
  0    all was well
  2    wrong usage, or there is no such format
  141  the reader of the output has gone, as in `asides formats | head -1`
"""


def run(arguments: list[str]) -> int:
    """`asides formats`."""
    parser = Arguments(prog="asides formats", description=DESCRIPTION, epilog=EXIT_CODES)
    parser.add_argument("name", nargs="?", metavar="NAME", help="a name or an alias of a format")
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    options = parser.parse_args(arguments)
    if options.name is not None:
        details = detail(find_format(options.name))
        write_out(_json(details) if options.json else _list(details))
    else:
        rows = [summary(get_format(name)) for name in formats()]
        write_out(_json(rows) if options.json else _table(rows, _width()))
    return OK


def summary(format: Format) -> dict[str, Any]:
    """What the table says of a format."""
    return {
        "name": format.name,
        "aliases": list(format.aliases),
        "start": format.start,
        "calls": _unique(_syntax_name(syntax) for syntax in _syntaxes(format)),
        "source": format.source,
    }


def detail(format: Format) -> dict[str, Any]:
    """What can be said of one format: its markers and how it reads them. Empty fields are left out."""
    text, thinking = format.states.get(TEXT, {}), format.states.get(THINKING, {})
    header = format.header
    family = family_of(format)
    details = {
        **summary(format),
        "family": "" if family is None or family.generic else family.name,
        "switch": str(switch_of(format) or ""),
        "thinking_opens": [marker for marker, leads_to in text.items() if leads_to == THINKING],
        "thinking_closes": [marker for marker, leads_to in thinking.items() if leads_to not in (END, HEADER)],
        "stops": [marker for marker, leads_to in text.items() if leads_to == END],
        "headers": [marker for marker, leads_to in text.items() if leads_to == HEADER],
        "channels": dict(header.channels) if header else {},
        "call_opens": _unique(marker for syntax in _syntaxes(format) for marker in syntax.openers),
        "call_closes": _unique(marker for syntax in _syntaxes(format) for marker in syntax.closers),
        "calls_in_thinking": format.calls_in_thinking,
        "any_case": format.ignore_case,
        "attributes": format.attributes,
    }
    return {key: value for key, value in details.items() if value not in ([], {}, "", False)}


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))


def _syntaxes(format: Format) -> list[CallSyntax]:
    header = format.header
    return [*format.calls, *(header.calls if header is not None else ())]


def _syntax_name(syntax: CallSyntax) -> str:
    """The name of a grammar, from its class: `JsonCalls` is `json`."""
    words = re.findall(r"[A-Z][a-z0-9]*", type(syntax).__name__.removesuffix("Calls").removesuffix("Call"))
    return "-".join(words).lower()


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _list(details: dict[str, Any]) -> str:
    width = max(map(len, details))
    return "".join(f"{key.replace('_', ' '):<{width}}  {_cell(value)}\n" for key, value in details.items())


def _table(rows: list[dict[str, Any]], width: int | None) -> str:
    """Aligned columns, the widest last. Lines are cut to the width of a terminal."""
    cells = [{column: _cell(row[column]) or "-" for column in COLUMNS} for row in rows]
    if width is not None:
        for row in cells:
            row["aliases"] = cut(row["aliases"], MOST_ALIASES)
    lines = aligned([COLUMNS, *(tuple(row.values()) for row in cells)])
    return "".join((line if width is None else cut(line, width)).rstrip() + "\n" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(repr(item)[1:-1] for item in value)
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    return "yes" if value is True else str(value)


def _width() -> int | None:
    """The width of the terminal; None where everything is to be written."""
    if not OutputStream(STDOUT).terminal:
        return None
    from shutil import get_terminal_size  # here, because the filter does without it

    return get_terminal_size().columns
