"""The registry: every name that resolves, and to which format. Third parties add theirs by an entry point.

Families are imported when a name first asks for them, so that importing `asides` stays cheap.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from importlib import import_module

from .._engine.format import Format
from ..errors import UnknownFormatError, UsageError

FAMILIES = (
    "apertus",
    "apriel",
    "auto",
    "cohere",
    "deepseek",
    "dots",
    "ernie",
    "functionary",
    "gemma",
    "generic",
    "gigachat",
    "glm",
    "granite",
    "harmony",
    "hunyuan",
    "inkling",
    "internlm",
    "jamba",
    "kimi",
    "lfm",
    "llama",
    "longcat",
    "minicpm",
    "minimax",
    "mistral",
    "muse",
    "nemotron",
    "olmo",
    "phi",
    "qwen",
    "reka",
    "rwkv",
    "seed",
    "solar",
    "step",
    "xlam",
)
"""The modules beside this one that hold formats, each in a tuple `FORMATS`. A new family adds its name here."""

ENTRY_POINTS = "asides.formats"
"""The entry-point group. Each entry point names a `Format` or an iterable of them."""

_formats: dict[str, Format] = {}
_names: dict[str, str] = {}
_resolved: dict[str, Format] = {}
_imported: set[str] = set()
_loaded = False


def fold(name: str) -> str:
    """How names compare: without case, `-`, `_`, `.` and spaces."""
    return re.sub(r"[-_.\s]", "", name).casefold()


def register(format: Format, replace: bool = False) -> Format:
    """Add a format under its name and aliases. With `replace` it takes over names that are in use."""
    format.check()
    _import(FAMILIES)
    return _register(format, replace)


def get_format(name: str | Format) -> Format:
    """The format of this name or alias; a `Format` is returned as it is."""
    if isinstance(name, Format):
        return name
    found = _resolved.get(name)
    if found is None:
        found = _resolved[name] = _find(name)
    return found


def _find(name: str) -> Format:
    folded = fold(name)
    if folded not in _names:
        # Most names begin with their family's, so that the others need not be imported.
        _import(family for family in FAMILIES if folded.startswith(family))
    if folded not in _names:
        _import(FAMILIES)
    if folded not in _names:
        _load_entry_points()
    if folded not in _names:
        from difflib import get_close_matches  # here, because it is needed only to explain a mistake

        near = get_close_matches(folded, list(_names), n=5, cutoff=0.5)
        raise UnknownFormatError(name, list(dict.fromkeys(_names[match] for match in near)))
    return _formats[_names[folded]]


def formats() -> list[str]:
    """The canonical names, sorted."""
    _import(FAMILIES)
    _load_entry_points()
    return sorted(_formats)


def _register(format: Format, replace: bool) -> Format:
    wanted = [format.name, *format.aliases]
    if not replace:
        for name in wanted:
            taken = _names.get(fold(name))
            if taken is not None:
                raise UsageError(
                    f"the name {name!r} belongs to the format {taken!r}; register(..., replace=True) takes it over"
                )
    _formats[format.name] = format
    _resolved.clear()
    for name in wanted:
        _names[fold(name)] = format.name
    return format


def formats_of(family: str) -> tuple[Format, ...]:
    """The formats that a family's module holds."""
    held: tuple[Format, ...] = import_module(f"{__package__}.{family}").FORMATS
    return held


def _import(families: Iterable[str]) -> None:
    for family in families:
        if family not in _imported:
            for format in formats_of(family):
                _register(format, replace=False)
            _imported.add(family)


def _load_entry_points() -> None:
    global _loaded
    if _loaded:
        return
    _loaded = True
    from importlib.metadata import entry_points  # here, because importing it costs milliseconds

    for entry_point in entry_points(group=ENTRY_POINTS):
        found = entry_point.load()
        for format in (found,) if isinstance(found, Format) else found:
            try:
                _register(format, replace=False)
            except UsageError as error:
                # A package that the user did not ask for by name must not change what a known name means.
                logging.getLogger("asides").warning("format %r from an entry point is left out: %s", format.name, error)
