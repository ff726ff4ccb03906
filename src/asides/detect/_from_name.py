"""What a model's name says. No file is opened and no server is asked.

The rows stand in the cards of the families (`Family.models`); those of registered families are tried first, those of
families that others are made from last. One rule holds for every row: a version that stands in a name must be one that
the row lists. A version that no row lists may write quite differently, so it is not read as an older one: its format is
left to the other sources or to `auto`. But mostly it begins where the nearest older version of its line does, so that,
whether it thinks and how thinking is switched are taken from there, and the finding says that this is a guess.

    probe("MiniMaxAI/MiniMax-M2.7").near       # "MiniMax 2.5"
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

import msgspec

from .._engine.format import Format
from ..families import families, get_format, switch_of
from ..families._family import EarlierThinking, Family, Model, Switch
from ..families._model_names import MODELS
from ..families._registry import canonical_name, fold, registered
from ._result import Finding, begin_of, own_begin


class Known(NamedTuple):
    """What a name was found to be."""

    row: Model | None
    """None where nothing but the family is known."""
    family: str = ""
    version: str = ""
    near: Model | None = None
    """Where no row lists the version: the row of the nearest older version of the same line."""
    near_version: str = ""


MOST = 500
"""Characters of a name that are looked at."""

_SIZE = r"\.?\d*[bmt]\b"
"""What follows a number that is a size: 8b, 0.6b, 100m."""
_VERSION = rf"(?P<version>(?>\d{{1,3}}(?!\d|{_SIZE})(?:[.p]\d{{1,2}}(?!\d|{_SIZE})|-\d{{1,2}}(?![\w.]))*))"
"""4, 4.1, 4p1, 4-1, 41; not the size behind it, nor a date (0905, 2507)."""
_GOES_ON = re.compile(rf"[-_.\s]?v?\d{{1,3}}(?!\d|{_SIZE})")
"""A version behind the name of a format."""


def look_up(name: str) -> Model | None:
    """What is known of a model of this name, or None. Organisations, tags and quantisations may stand around it."""
    return _find(name).row


def is_newer(name: str) -> bool:
    """Whether a name is of a known family, but of a version that is not known."""
    found = _find(name)
    return found.row is None and found.version != ""


def find_switch(model: str, format: str | Format) -> Switch | None:
    """How the thinking of a model is switched: by the row of its name, else as for every model of its format."""
    return _switch_of(look_up(model), format)


def find_earlier(model: str, format: Format) -> EarlierThinking | None:
    """When a model wants the thoughts of all its turns back: by the row of its name, else of all rows of its format."""
    row = look_up(model)
    if row is not None:
        return row.earlier
    wishes = [each.earlier for each, _ in _patterns(registered()) if each.format == format.name]
    return wishes[0] if wishes and all(wish == wishes[0] for wish in wishes) else None


def _switch_of(row: Model | None, format: str | Format) -> Switch | None:
    return row.switch if row is not None and row.switch is not None else switch_of(format)


@lru_cache(maxsize=2)
def _patterns(added: tuple[Family, ...]) -> tuple[tuple[Model, re.Pattern[str]], ...]:
    rows = (*(row for family in added for row in family.rows()), *MODELS)
    return tuple((row, re.compile(row.pattern.replace("{}", _VERSION))) for row in rows)


def _find(name: str) -> Known:
    """What a name is by the model's own part of it, or else by the whole, organisation and folders included."""
    added = registered()
    found = _search(_plain(_base(name)), added)
    return found if found.family else _search(_plain(name), added)


@lru_cache(maxsize=4096)  # a server looks the same few names up for every request
def _search(plain: str, added: tuple[Family, ...]) -> Known:
    """The row that fits, or the family whose version no row lists. `added`: the families of users."""
    newer = Known(None)
    for row, pattern in _patterns(added):
        match = pattern.search(plain) if newer.family in ("", row.line) else None
        if match is None:
            continue
        version = re.sub(r"[p-]", ".", match.groupdict().get("version") or "")
        if not version and newer.version:
            continue  # a family's general row is not for versions that its particular ones do not list
        if not version or version.replace(".", "") in row.versions.replace(".", "").split():
            return Known(row, row.line, version)
        # Other versions of the family may follow. What it was made from may not: that is not how it writes.
        newer = newer if newer.family else Known(None, row.line, version)
        older = max((each for each in row.versions.split() if _order(each) < _order(version)), key=_order, default="")
        # Of rows that list the same version the first is the most particular.
        if older and (newer.near is None or _order(older) > _order(newer.near_version)):
            newer = newer._replace(near=row, near_version=older)
    return newer


def _order(version: str) -> tuple[int, ...]:
    """A version as numbers that can be compared."""
    return tuple(map(int, version.split(".")))


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", "-", name[:MOST].strip().lower())


def _base(name: str) -> str:
    return re.split(r"[/\\]", name[:MOST].rstrip("/\\"))[-1]


def probe(name: str) -> Finding:
    """What a name says of its model."""
    found = _find(name)
    row = found.row
    named = _format_named(name)
    # Where a renderer's suffix is part of the name, that says where output begins.
    own_start = get_format(name).start if named else None
    begin = begin_of(own_start) if own_start is not None and own_start != get_format(named).start else None
    if row is not None and row.format != "auto" and named in ("", get_format(row.format).name):
        finding = _finding_of(name, row, found.version)
        return finding if begin is None else msgspec.structs.replace(finding, begin=begin)
    if named:
        reason = f"{name!r} is the name of the format {named}"
        return Finding(source="name", formats=(named,), begin=begin, reasons=(reason,))
    family = found.family or _family(_base(name))
    own = _format_begun(_base(name), family)
    if own:
        return Finding(source="name", formats=(own,), reasons=(f"{name!r} begins with the name of the format {own}",))
    if row is not None:
        return _finding_of(name, row, found.version)
    if found.near is not None:
        return _near(name, found, found.near)
    if found.version:
        reason = f"{name!r} is {family}, but of version {found.version}, which is not known here"
    elif family:
        reason = f"{name!r} is of the family {family}, but not a model of it that is known here"
    else:
        reason = f"{name!r} is not the name of a known model"
    return Finding(source="name", reasons=(reason,))


def _finding_of(name: str, row: Model, version: str) -> Finding:
    """What a row says."""
    format = get_format(row.format)
    known = {True: "thinks", False: "does not think", None: "may think"}[row.thinks]
    who = row.who or f"{row.line} {version}".strip()
    reason = f"{name!r} is {who}" + ("" if "think" in who else f", which {known}")
    reason += " and has no format of its own that is known here" if format.settle is not None else ""
    begin = row.start or own_begin(format, row.thinks)
    switch = _switch_of(row, format)
    return Finding(
        source="name", formats=(format.name,), thinks=row.thinks, begin=begin, reasons=(reason,), switch=switch
    )


def _near(name: str, found: Known, row: Model) -> Finding:
    """What the nearest older version says of one that no row lists: all but how it writes."""
    near = f"{row.line} {found.near_version}"
    like = _finding_of(name, row, found.near_version)
    reason = f"{name!r} is {found.family} {found.version}, which is not known here; taken to begin like {near}"
    begin = like.begin if like.begin != "header" else None  # which only the format itself can read
    return msgspec.structs.replace(like, formats=("auto",), begin=begin, reasons=(reason,), near=near)


def _family(base: str) -> str:
    """The family whose name stands in a model's."""
    plain = _plain(base)
    for family in dict.fromkeys(row.line for row, _ in _patterns(registered())):
        if re.search(rf"\b{re.escape(_plain(family))}(?![a-z])", plain):
            return family
    return ""


def _format_named(name: str) -> str:
    """The format that is called so itself, as somebody who knows its name may call the model."""
    if not name or re.search(r"[/\\:]", name):
        return ""  # a model's name, for which not every family need be imported
    return canonical_name(name[:MOST]) or ""


def _format_begun(base: str, family: str) -> str:
    """The format whose name a model's name begins with, the longest if several do.

    What follows must be no version. Where the family is known, the format must be of it and of a version: `granite`
    alone is one Granite of many.
    """
    found = [
        (len(fold(known)), format.name)
        for card in families()
        if card.detectable
        for format in card.formats
        for known in (format.name, *format.aliases)
        if len(fold(known)) > 3 and _is_of(known, family) and _begins(base, fold(known))
    ]
    return max(found)[1] if found else ""


def _is_of(known: str, family: str) -> bool:
    return not family or (fold(known).startswith(fold(family)) and re.search(r"\d", known) is not None)


def _begins(base: str, plain: str) -> bool:
    match = re.match(r"[-_.\s]*".join(map(re.escape, plain)) + r"(?![^\W_])", base.casefold())
    return match is not None and _GOES_ON.match(base.casefold(), match.end()) is None
