"""`asides formats`: the registry as a table, one format in detail, a family, or the formats that have a marker.

The table shows what a person knows of an output that lies before them: how thoughts open and close, and whether the
output begins in one. All of it is there at every width: aliases move below their format, and in a narrow window
everything does. `--json` has everything that is known of each.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec

from .._engine.calls.syntax import CallSyntax
from .._engine.format import END, HEADER, TEXT, THINKING, Format
from ..errors import UsageError
from ..families import families, family_of, formats, get_format, switch_of
from ..families._family import Family
from ..families._registry import canonical_name, fold
from ..terminal._table import GAP, aligned, columns, cut, fitted
from . import OK
from .filter import find_format
from .options import Arguments, write_out
from .streams import STDOUT, OutputStream

DESCRIPTION = """\
Lists the formats: which markers open and close thinking, where output begins,
and the other names of each. With a NAME it shows that format in detail: its
model family, markers, syntax of tool calls, and how thinking is switched on
and off. With the name of a family it lists that family's formats and models,
with a marker the formats that use it. Upper and lower case, `-`, `_`, `.` and
spaces make no difference in names.
"""
COLUMNS = ("name", "opens", "closes", "start", "aliases")
WIDEST_MARKER = 18
"""Columns that a marker takes; a longer one is cut, and `asides formats NAME` has it whole."""
NARROWEST_TABLE = 72
"""Where a terminal has fewer columns, the format's name stands above what is said of it."""
NARROWEST_ALIASES = 24
EXAMPLES = """\
examples:
  asides formats                 list all formats
  asides formats qwen3           one format in detail
  asides formats deepseek        a family: its formats and models
  asides formats '[THINK]'       the formats that use this marker
  asides formats --json          every detail of every format
  asides formats --data vendor   formats and cases as files, for other parsers

"""
EXIT_CODES = """\
exit codes:
  0    success
  2    wrong usage, or there is no such format
  141  the reader of the output closed it, as in `asides formats | head -1`
"""


def run(arguments: list[str]) -> int:
    """`asides formats`."""
    parser = Arguments(prog="asides formats", description=DESCRIPTION, epilog=EXAMPLES + EXIT_CODES)
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="a format's name or alias, a family's name, or a marker"
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument(
        "--data", metavar="DIR", help="write all formats and test cases into this folder, as data for other parsers"
    )
    options = parser.parse_args(arguments)
    if options.data is not None:
        if options.name is not None or options.json:
            raise UsageError("--data writes everything: it takes neither a NAME nor --json")
        from ..audit import export_data

        write_out("".join(f"{path}\n" for path in export_data(options.data)))
        return OK
    rows = None if options.name is None else _with_marker(options.name)
    family = None if options.name is None else _family(options.name)
    if family is not None:
        write_out(_json(_family_detail(family)) if options.json else _family_page(family, terminal_width()))
    elif options.name is not None and not rows:
        if not re.search(r"\w", options.name) or not options.name[0].isalnum():
            raise UsageError(f"no format has the marker {options.name!r}; `asides formats` lists all markers")
        details = detail(find_format(options.name))
        write_out(_json(details) if options.json else _list(_with_family(details)))
    else:
        rows = rows or [whole_detail(name) for name in formats()]
        write_out(_json(rows) if options.json else _table(rows, terminal_width()))
    return OK


def _with_marker(wanted: str) -> list[dict[str, Any]]:
    """The formats that have a marker, or one that this is a part of; none where it can only be a name."""
    if canonical_name(wanted) is not None or not wanted.strip():
        return []
    folded = wanted.casefold()
    rows = [whole_detail(name) for name in formats()]
    exact = [row for row in rows if folded in _markers(row)]
    # A word is mostly a name that was misspelled; `<thi` is the beginning of a marker.
    part = [] if re.fullmatch(r"[\w.\- ]+", wanted) else rows
    return exact or [row for row in part if any(folded in marker for marker in _markers(row))]


def _family(name: str) -> Family | None:
    """The family of this name, where no format has it: `-f` takes formats, so theirs come first."""
    if canonical_name(name) is not None:
        return None
    return next((family for family in families() if not family.generic and fold(family.name) == fold(name)), None)


def _family_detail(family: Family) -> dict[str, Any]:
    rows = {row.who or f"{row.line} {row.versions.replace(' ', ', ')}".strip(): row for row in family.rows()[::-1]}
    models = [{"models": models, "format": row.format, "thinks": row.thinks} for models, row in rows.items()][::-1]
    formats = [whole_detail(format.name) for format in family.formats]
    return {"family": family.name, "formats": formats, "models": models}


def _family_page(family: Family, width: int | None) -> str:
    """Its formats as the table has them, and which of its models write which."""
    details = _family_detail(family)
    thinks = {True: "yes", False: "no", None: "some"}
    columns = {
        "format": [row["format"] for row in details["models"]],
        "think": [thinks[row["thinks"]] for row in details["models"]],
        "models": [row["models"] for row in details["models"]],
    }
    models = fitted([[head, *cells] for head, cells in columns.items()], width, spare=("think",))
    page = [f"The family {family.name}; `asides formats NAME` has each format in detail.", ""]
    page += [*_table(details["formats"], width).splitlines(), *(["", *models] if details["models"] else ())]
    return "".join(f"{line}\n" for line in page)


def _with_family(details: dict[str, Any]) -> dict[str, Any]:
    """The details for a person: the family with its other formats."""
    family = family_of(details["name"])
    others = [] if family is None else [format.name for format in family.formats if format.name != details["name"]]
    if not details.get("family") or not others:
        return details
    return {**details, "family": f"{details['family']}, with {' '.join(others)}"}


def _markers(row: dict[str, Any]) -> list[str]:
    fields = ("thinking_opens", "thinking_closes", "stops", "headers", "call_opens", "call_closes")
    return [marker.casefold() for field in fields for marker in row.get(field, ())]


def whole_detail(name: str) -> dict[str, Any]:
    """What can be said of a format, with the fields that every one has."""
    format = get_format(name)
    return {**summary(format), "thinking_opens": [], "thinking_closes": [], **detail(format)}


def summary(format: Format) -> dict[str, Any]:
    """What the table says of a format."""
    return {
        "name": format.name,
        "aliases": list(format.aliases),
        "start": format.start,
        "calls": _unique(syntax_name(syntax) for syntax in _syntaxes(format)),
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


def syntax_name(syntax: CallSyntax) -> str:
    """The name of a grammar, from its class: `JsonCalls` is `json`."""
    words = re.findall(r"[A-Z][a-z0-9]*", type(syntax).__name__.removesuffix("Calls").removesuffix("Call"))
    return "-".join(words).lower()


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _list(details: dict[str, Any]) -> str:
    width = max(map(len, details))
    return "".join(f"{key.replace('_', ' '):<{width}}  {_cell(value)}\n" for key, value in details.items())


def _table(rows: list[dict[str, Any]], width: int | None) -> str:
    """Aligned columns, the aliases last, or below where a terminal has no room for them beside the rest."""
    narrow = width is not None and width < NARROWEST_TABLE
    widest = WIDEST_MARKER if width is not None and not narrow else sys.maxsize
    cells = [(row["name"], *(_first(markers, widest) for markers in _pairs(row)), row["start"]) for row in rows]
    aliases = [" ".join(row["aliases"]) for row in rows]
    if width is not None and narrow:
        return "".join(map(partial(_stacked, width=width), cells, aliases))
    lines = aligned([COLUMNS[:4], *cells])
    beside = width is None or width - columns(lines[0]) - len(GAP) >= NARROWEST_ALIASES
    table = [f"{lines[0]}{GAP}{COLUMNS[4]}" if beside else lines[0]]
    for line, names in zip(lines[1:], aliases, strict=True):
        indent = columns(line) + len(GAP) if beside else 4
        wrapped = [names] if width is None else _wrapped(names, width - indent)
        first = f"{line}{GAP}{wrapped.pop(0)}" if beside else line
        table += [first, *(" " * indent + more for more in wrapped)]
    return "".join(line.rstrip() + "\n" for line in table if line.strip())


def _stacked(cells: tuple[str, ...], aliases: str, width: int) -> str:
    name, opens, closes, start = cells
    about = f"{opens} {closes} {start}" + (f" {aliases}" if aliases else "")
    return f"{name}\n" + "".join(f"  {line}\n" for line in _wrapped(about, width - 2))


def _wrapped(text: str, width: int) -> list[str]:
    from textwrap import wrap  # here, because a pipe needs none

    return wrap(text, max(width, 8), break_on_hyphens=False) or [""]


def _pairs(row: dict[str, Any]) -> tuple[list[str], list[str]]:
    """How thoughts open and close."""
    opens, closes = row["thinking_opens"], row["thinking_closes"]
    if not opens and row.get("headers"):  # a header says what follows
        headers = row["headers"]
        channel = next((name for name, kind in row.get("channels", {}).items() if kind == THINKING), "")
        named = next((marker for marker in headers if "think" in marker), headers[-1])
        opens = [f"{headers[-1]}{channel}" if channel else named]
    return opens, closes


def _first(markers: list[str], widest: int) -> str:
    more = f" +{len(markers) - 1}" if len(markers) > 1 else ""
    return f"{cut(_cell(markers[:1]), widest - len(more))}{more}" if markers else "-"


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(repr(item)[1:-1] for item in value)
    if isinstance(value, dict):
        return " ".join(f"{key}={item}" for key, item in value.items())
    return "yes" if value is True else str(value)


def terminal_width() -> int | None:
    """The width of the terminal; None where everything is to be written."""
    if not OutputStream(STDOUT).terminal:
        return None
    from shutil import get_terminal_size  # here, because the filter does without it

    return get_terminal_size().columns
