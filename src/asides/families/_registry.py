"""The registry: every name that resolves, and to which format; and the families that users add.

`_index.py` says in which card a name of this package stands, so that a card is imported when a name first asks for it
and importing `asides` stays cheap. Third parties add a `Format` or a whole `Family` with `register`, or by an entry
point in the group `asides.formats`; entry points are loaded when a name is asked for that is not known here, a list
of all, or `auto`. What was registered takes part in `auto` (its distinctive markers) and in detection (its names of
models, its formats).
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from .._engine.format import HEADER, TEXT, THINKING, Format, State, look_up_with
from ..errors import UnknownFormatError, UsageError
from ._index import MODULES, NAMES

if TYPE_CHECKING:
    from ._family import Family, Switch

ENTRY_POINTS = "asides.formats"
"""The entry-point group. Each entry point names a `Format`, a `Family`, or an iterable of them."""

_AUTO = "auto"
_SUFFIX = re.compile(r"(?P<off>disablethinking)|preservethinking|(?:low|medium|high|xhigh|max)(?:reasoning|thinking)")
"""What tinker puts behind the name of a format to name a renderer: whether, how much and how long it thinks."""
_MODEL = re.compile(r"[/:]|\d+b\b", re.IGNORECASE)
"""What only the names of models have: an owner, a tag, a size."""
_MODEL_HINT = "if this is a model's name, give it as the model (`model=`, `--model`), not as the format"
_Item = TypeVar("_Item", "Format", "Family")

_names: dict[str, str] = dict(NAMES)
"""For every name and alias, folded, the canonical name."""
_formats: dict[str, Format] = {}
"""By canonical name: those whose card was imported, and those that were registered."""
_resolved: dict[str, Format] = {}
"""By name as it was given, for the second time it is asked for."""
_registered: list[Family] = []
_loaded = False


def fold(name: str) -> str:
    """How names compare: without case, `-`, `_`, `.` and spaces."""
    return re.sub(r"[-_.\s]", "", name).casefold()


def register(item: _Item, replace: bool = False) -> _Item:
    """Add a format, or a family with all its formats, under their names and aliases.

    With `replace` it takes over names that are in use; else that is a `UsageError`, and nothing is added.

    Examples:
        >>> ours = asides.register(asides.Format.tags("<aside>", "</aside>", name="our_asides"))
        >>> asides.parse("<aside>hm</aside>Yes.", "our_asides").text
        'Yes.'
    """
    _add(item, replace)
    return item


def _add(item: Format | Family, replace: bool) -> None:
    from ._family import Family

    if not isinstance(item, Format | Family):
        raise UsageError(f"{item!r} is no Format and no Family")
    family = item if isinstance(item, Family) else Family(name=item.name, formats=(item,))
    wanted = _check(family)
    taken = next((name for name in wanted if fold(name) in _names), None)
    if taken is not None and not replace:
        owner = _names[fold(taken)]
        raise UsageError(
            f"the name {taken!r} belongs to the format {owner!r}; register(..., replace=True) takes it over"
        )
    for format in family.formats:
        _formats[format.name] = format
    _names.update(wanted_names(family))
    _registered[:] = [family, *(known for known in _registered if fold(known.name) != fold(family.name))]
    if not any(format.name == _AUTO for known in _registered for format in known.formats):
        _formats.pop(_AUTO, None)  # it is made anew when it is next asked for
    _resolved.clear()


def wanted_names(family: Family) -> dict[str, str]:
    """For every name and alias of a family's formats, folded, the canonical name."""
    return {fold(name): format.name for format in family.formats for name in (format.name, *format.aliases)}


def _check(family: Family) -> list[str]:
    """The names that a family wants; a `UsageError` if its markers, its patterns or its own names do not fit."""
    for format in family.formats:
        format.check()
    own = [format.name for format in family.formats]
    for row in family.models:
        try:
            re.compile(row.pattern)
        except re.error as error:
            raise UsageError(f"{row.pattern!r} is no pattern for names of models: {error}") from error
        if row.format not in own:
            get_format(row.format)
    unknown = set(family.switch) - set(own) if isinstance(family.switch, Mapping) else ()
    if family.decisive is not None and family.decisive not in family.formats:
        raise UsageError(f"the decisive format of the family {family.name!r} is none of its formats")
    if unknown:
        raise UsageError(f"the family {family.name!r} switches {', '.join(sorted(unknown))}, which it does not have")
    return [name for format in family.formats for name in (format.name, *format.aliases)]


def get_format(name: str | Format) -> Format:
    """The format of this name or alias; a `Format` is returned as it is.

    Examples:
        >>> asides.get_format("deepseek-r1").name
        'deepseek_r1'
    """
    if isinstance(name, Format):
        return name
    if not isinstance(name, str):
        raise UsageError(f"a format is a name (a str) or an asides.Format, not a {type(name).__name__}")
    found = _resolved.get(name)
    if found is None:
        found = _resolved[name] = _find(name)
    return found


def canonical_name(name: str) -> str | None:
    """The canonical name for a name or alias, perhaps with a suffix; None for one that nobody has."""
    folded = fold(name)
    if folded not in _names:
        _load_entry_points()
    return _names.get(folded) or _names.get(_split_suffix(folded)[0])


def _split_suffix(folded: str) -> tuple[str, State | None]:
    """A name without a renderer's suffix, and where output starts by that; None: as the format says."""
    suffix = next((match for match in _SUFFIX.finditer(folded) if match.end() == len(folded)), None)
    if suffix is None or folded in _names:
        return folded, None
    start = TEXT if suffix["off"] else None if suffix[0] == "preservethinking" else THINKING
    return folded[: suffix.start()], start


def _find(name: str) -> Format:
    """The format of a name; one that a renderer's suffix starts elsewhere is a copy with that start."""
    found = _find_canonical(name)
    start = _split_suffix(fold(name))[1]
    return found if start in (None, found.start) or found.start == HEADER else found.but(start=start)


def _find_canonical(name: str) -> Format:
    canonical = canonical_name(name)
    if canonical is None:
        from difflib import get_close_matches  # here, because it is needed only to explain a mistake

        near = get_close_matches(fold(name), list(_names), n=5, cutoff=0.5)
        hint = _MODEL_HINT if _MODEL.search(name) else _explain_unlisted(name)
        raise UnknownFormatError(name, list(dict.fromkeys(_names[match] for match in near)), hint)
    if canonical not in _formats:
        if canonical == _AUTO:
            from ._auto import build  # here, because it asks for formats itself

            if not _loaded and _has_entry_points():
                _load_entry_points()
            _formats[_AUTO] = build(_registered)
        else:
            for format in card(MODULES[canonical]).formats:
                _formats.setdefault(format.name, format)  # unless it was replaced
    return _formats[canonical]


def _explain_unlisted(name: str) -> str:
    """Where to go on, in a clone of the repository, if a card has this name and the index does not yet; else empty."""
    from pathlib import Path  # here, because it is needed only to explain a mistake

    folder = Path(__file__).parent
    if not (folder.parents[2] / "tools" / "families.py").exists():
        return ""
    for path in sorted(folder.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "\nFAMILY" in source and f'"{name}"' in source:
            return f"src/asides/families/{path.name} has this name, and the index does not list it: run `make families`"
    return ""


def formats() -> list[str]:
    """The canonical names, sorted.

    Examples:
        >>> "qwen3" in asides.formats()
        True
    """
    _load_entry_points()
    return sorted(set(_names.values()))


@cache
def card(module: str) -> Family:
    """The card that a module of this package declares."""
    found: Family = import_module(f"{__package__}.{module}").FAMILY
    return found


def families() -> list[Family]:
    """Every family: those that were registered, the last first, then those of this package.

    Examples:
        >>> from asides.families import families
        >>> "Qwen" in [family.name for family in families()]
        True
    """
    _load_entry_points()
    return [*_registered, *map(card, sorted(set(MODULES.values())))]


def registered() -> tuple[Family, ...]:
    """The families that were registered or that an entry point names, the last first."""
    if not _loaded:  # asked here, because detection comes by for every name
        _load_entry_points()
    return tuple(_registered)


def family_of(format: str | Format) -> Family | None:
    """The family that a format is of; None for one that nobody has registered.

    Examples:
        >>> from asides.families import family_of
        >>> family_of("qwen3").name
        'Qwen'
    """
    name = format if isinstance(format, str) else format.name
    for family in _registered:
        if any(known.name == name for known in family.formats):
            return family
    return card(MODULES[name]) if name in MODULES else None


def switch_of(format: str | Format) -> Switch | None:
    """How thinking is switched for models that write a format; None where nothing in their template does.

    Examples:
        >>> from asides.families import switch_of
        >>> switch_of("qwen3").keyword
        'enable_thinking'
    """
    family = family_of(format)
    return None if family is None else family.switch_of(format if isinstance(format, str) else format.name)


def _has_entry_points() -> bool:
    """Whether an installed package names something in our entry-point group.

    `auto` must not depend on what the process did before, so it asks when it is made; but `importlib.metadata` takes
    longer to import than all that the filter does at its start, and hardly anybody has such a package. So the
    metadata files are searched for the group's name. Packages in archives are not found so, only by a name or a list.
    """
    group = f"[{ENTRY_POINTS}]".encode()
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:  # no folder: an archive, or gone
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                try:
                    with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                        if group in file.read():
                            return True
                except OSError:  # most packages have none
                    continue
    return False


def _load_entry_points() -> None:
    global _loaded
    if _loaded:
        return
    _loaded = True
    from importlib.metadata import entry_points  # here, because importing it costs milliseconds

    for entry_point in entry_points(group=ENTRY_POINTS):
        found = entry_point.load()
        for item in found if isinstance(found, Iterable) and not isinstance(found, str) else (found,):
            try:
                _add(item, replace=False)
            except UsageError as error:
                # A package that the user did not ask for by name must not change what a known name means.
                name = getattr(item, "name", entry_point)
                logging.getLogger("asides").warning("%r from an entry point is left out: %s", name, error)


look_up_with(get_format)
