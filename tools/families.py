"""What is derived from the cards of `asides.families` and kept in files, so that starting up imports no card.

`python -m tools.families` names the files that are out of date; with `--write` they are written. Run it from the top of
the repository. A test fails while a file is not what this writes. A card is any module of the package that declares a
`FAMILY`: there is no list of them.

    families/_index.py           the card of every name; the renderers
    families/_auto_markers.py    the markers and call syntaxes that take part in `auto`
    families/_model_names.py     the names of models, for detection
    _engine/foreign_tags.py     the tags that give away that a text was read with the wrong format
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from unicodedata import east_asian_width

import msgspec

from asides.families._family import Family

FOLDER = Path("src", "asides")
WIDTH = 120
_CARD = re.compile(r"^FAMILY\b", re.MULTILINE)
_HEAD = '"""{about} Made by `python -m tools.families --write`."""\n\nfrom __future__ import annotations\n\n'


def modules() -> list[str]:
    """The modules that are cards, sorted."""
    return sorted(
        path.stem for path in (FOLDER / "families").glob("*.py") if _CARD.search(path.read_text(encoding="utf-8"))
    )


def card(module: str) -> Family:
    """The card that a module declares."""
    found: Family = import_module(f"asides.families.{module}").FAMILY
    return found


def index() -> str:
    """Which card has a name."""
    from asides.families._registry import wanted_names

    names: dict[str, str] = {}
    homes: dict[str, str] = {}
    renderers: dict[str, tuple[str, str, Mapping[str, object]]] = {}
    for module in modules():
        family = card(module)
        doubled = wanted_names(family).keys() & names.keys()
        if doubled:
            raise SystemExit(f"{module}.py: names that another card has: {', '.join(sorted(doubled))}")
        names |= wanted_names(family)
        homes |= {format.name: module for format in family.formats}
        renderers |= {name: (module, entry.cls, entry.options) for name, entry in family.renderers.items()}
    return (
        _HEAD.format(about="Which card has a name, so that no other is imported.")
        + _assignment("NAMES", dict(sorted(names.items())))
        + '"""For every name and alias, folded, the canonical name of the format."""\n'
        + _assignment("MODULES", dict(sorted(homes.items())))
        + '"""For every format, the module of its card."""\n'
        + _assignment("RENDERERS: dict[str, tuple[str, str, dict[str, str]]]", renderers)
        + '"""For every renderer the module of its card, its class in `asides.render`, and its options."""\n'
    )


def auto_markers() -> str:
    """What the cards bring to `auto`."""
    from asides.families._distinctive import gather

    markers = gather([card(module) for module in modules() if module != "_auto"])
    return (
        _HEAD.format(about="The distinctive markers of every family, for `auto`.")
        + _imports(markers)
        + _assignment("MARKERS", markers)
    )


def model_names() -> str:
    """The rows of all cards in the order in which they are tried: families that others are made from come last."""
    ordered = sorted(map(card, (module for module in modules() if module != "_auto")), key=lambda family: family.base)
    rows = tuple(row for family in ordered for row in family.rows())
    return (
        _HEAD.format(about="The names of models, in the order in which they are tried.")
        + _imports(rows)
        + _assignment("MODELS", rows)
    )


def foreign_tags() -> str:
    """The distinctive thinking markers and call openers that begin with `<` and do not look like a special token."""
    from asides._engine.foreign import TOKEN
    from asides.detect._markers import closers, openers

    found: set[str] = set()
    for family in map(card, (module for module in modules() if module != "_auto")):
        for format in family.formats:
            own = {opener for syntax in format.calls for opener in syntax.openers}
            found |= (own.union(openers(format), closers(format))) - family.plain.keys()
    token = re.compile(f"<(?:{TOKEN})")
    tags = tuple(sorted(marker for marker in found if marker.startswith("<") and not token.match(marker)))
    return _HEAD.format(about="Tags that some family writes around thoughts or before calls.") + _assignment(
        "TAGS", tags
    )


def _imports(value: object) -> str:
    """Import statements for the records that a value is made of."""
    found: dict[str, set[str]] = {}
    _collect(value, found)
    package = "asides.families"
    lines = []
    for module in sorted(found, key=lambda name: (name.startswith(package), name)):
        relative = "." + module.removeprefix(f"{package}.") if module.startswith(package) else ".." + module[7:]
        lines.append(f"from {relative} import {', '.join(sorted(found[module], key=str.casefold))}\n")
    return "".join(lines) + "\n"


def _collect(value: object, found: dict[str, set[str]]) -> None:
    if isinstance(value, msgspec.Struct):
        found.setdefault(type(value).__module__, set()).add(type(value).__name__)
        for item in _fields(value).values():
            _collect(item, found)
    elif isinstance(value, tuple | frozenset):
        for item in value:
            _collect(item, found)
    elif isinstance(value, Mapping):
        for item in value.values():
            _collect(item, found)


def _fields(struct: msgspec.Struct) -> dict[str, object]:
    """The fields of a record that are not as they are by default."""
    return {
        field.name: getattr(struct, field.name)
        for field in msgspec.structs.fields(type(struct))
        if field.required or getattr(struct, field.name) != _default(field)
    }


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def _assignment(name: str, value: object) -> str:
    return f"{name} = {_source(value, 0, len(name) + 3)}\n"


def _source(value: object, indent: int, used: int) -> str:
    """A value as Python code, broken into lines as the formatter breaks it. `used` is what stands before it."""
    flat = _flat(value)
    if used + _width(flat) <= WIDTH - 1 or not isinstance(value, tuple | Mapping | msgspec.Struct):
        return flat
    inner = indent + 4
    if isinstance(value, Mapping):
        opener, closer = "{", "}"
        items = [(f"{_flat(key)}: ", item) for key, item in value.items()]
    elif isinstance(value, msgspec.Struct):
        opener, closer = f"{type(value).__name__}(", ")"
        items = [(f"{name}=", item) for name, item in _fields(value).items()]
    else:
        opener, closer = "(", ")"
        items = [("", item) for item in value]
    lines = [" " * inner + before + _source(item, inner, inner + len(before)) + "," for before, item in items]
    return opener + "\n" + "\n".join(lines) + "\n" + " " * indent + closer


def _width(text: str) -> int:
    """How wide the formatter takes a text to be: a wide character takes two columns."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _flat(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, frozenset):
        return "frozenset({" + ", ".join(map(_flat, sorted(map(str, value)))) + "})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flat(key)}: {_flat(item)}" for key, item in value.items()) + "}"
    if isinstance(value, msgspec.Struct):
        fields = (f"{name}={_flat(item)}" for name, item in _fields(value).items())
        return f"{type(value).__name__}({', '.join(fields)})"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_flat, value)) + ("," if len(value) == 1 else "") + ")"
    return repr(value)


def _string(text: str) -> str:
    """A string in the quotes that the formatter prefers."""
    body = text.replace("\\", "\\\\").replace("\n", "\\n")
    return f"'{body}'" if '"' in body and "'" not in body else '"' + body.replace('"', '\\"') + '"'


MADE = {
    "families/_auto_markers.py": auto_markers,
    "families/_model_names.py": model_names,
    "families/_index.py": index,
    "_engine/foreign_tags.py": foreign_tags,
}
"""The files, and what makes each. `auto` reads the first itself, so that its card can be imported only then."""


def _main(arguments: list[str]) -> None:
    write = arguments == ["--write"]
    for name, make in MADE.items():
        path, text = FOLDER / name, make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.stdout.write(f"{path} {'written' if write else 'is out of date'}\n")
            if write:
                path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _main(sys.argv[1:])
