"""The tables of formats and of switches in docs/reference/formats.md, made from the cards.

`python -m tools.formats_table` prints them; with `--write` they go into the page. Run it from the top of the
repository. A test fails while the page is not what this writes.
"""

from __future__ import annotations

import json
from pathlib import Path

from asides._engine.calls.brace_calls import BraceCalls
from asides._engine.calls.json_calls import JsonCalls
from asides._engine.calls.keyed_calls import KeyedCalls
from asides._engine.calls.named_calls import NamedCalls
from asides._engine.calls.nested_calls import NestedCalls
from asides._engine.calls.python_calls import PythonCalls
from asides._engine.calls.syntax import CallSyntax
from asides._engine.calls.xml_calls import XmlCalls
from asides._engine.format import HEADER, Format
from asides.detect._markers import closers, openers
from asides.families import Switch, families
from tools.blocks import main, with_blocks

_KINDS: dict[type[CallSyntax], str] = {
    BraceCalls: "braces",
    JsonCalls: "JSON",
    KeyedCalls: "keys and values",
    NamedCalls: "name, then JSON",
    NestedCalls: "tags",
    PythonCalls: "Python",
    XmlCalls: "tags",
}
PAGE = Path("docs", "reference", "formats.md")
_COLUMNS = ("format", "also known as", "thinking", "starts in", "calls")


def markdown_table() -> str:
    """Every format of this package as a row: name, aliases, thinking markers, where output starts, how calls open."""
    rows = [_COLUMNS, tuple("---" for _ in _COLUMNS)]
    known = [format for family in families() for format in family.formats]
    rows += [_row(format) for format in sorted(known, key=lambda format: format.name)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_tables(text: str) -> str:
    """A document with the tables between their two comments brought up to date."""
    return with_blocks(text, BLOCKS)


def switch_table() -> str:
    """Every way of switching thinking as a row: the keyword, its values, the efforts, the formats."""
    found: dict[Switch, list[str]] = {}
    for family in families():
        for format in family.formats:
            if (switch := family.switch_of(format.name)) is not None:
                found.setdefault(switch, []).append(format.name)
    rows: list[tuple[str, ...]] = [("keyword", "on", "off", "efforts", "formats"), ("---",) * 5]
    for switch, names in sorted(found.items(), key=lambda item: (-len(item[1]), item[0].keyword)):
        efforts = ", ".join(switch.efforts)
        efforts += f" ({_code(switch.effort)})" if efforts and switch.effort != switch.keyword else ""
        values = ("" if value is None else _code(json.dumps(value)) for value in (switch.on, switch.off))
        rows.append((_code(switch.keyword), *values, efforts, ", ".join(map(_code, sorted(names)))))
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(format: Format) -> tuple[str, ...]:
    if format.settle is not None:
        return (_code(format.name), "", "settled by the first marker", "text", "settled by the first call")
    aliases = ", ".join(_code(alias) for alias in format.aliases)
    return (_code(format.name), aliases, _thinking(format), _start(format), _calls(format))


def _thinking(format: Format) -> str:
    """The first opener and the first closer; the others differ little."""
    opens, closes = openers(format), closers(format)
    return f"{_code(opens[0])} … {_code(closes[0])}" if opens and closes else ""


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


BLOCKS = {"formats": markdown_table, "switches": switch_table}

if __name__ == "__main__":
    main(PAGE, BLOCKS)
