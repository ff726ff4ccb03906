"""One word of a configuration, as the type that the schema wants of it. Knows neither YAML nor the environment."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import inspect

from .problems import quoted

TRUE = frozenset({"true", "yes", "on"})
FALSE = frozenset({"false", "no", "off"})
SECTION = "a section with keys of its own"
LARGEST = 2**63 - 1
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")
_NUMBER = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")


class Wrong(Exception):
    """A word that is not what the schema wants; its message completes `listen.port: ...`."""


def kinds(wanted: inspect.Type) -> tuple[inspect.Type, ...]:
    """The types that a value may have. That it may be missing is not one of them."""
    found = wanted.types if isinstance(wanted, inspect.UnionType) else (wanted,)
    return tuple(kind for kind in found if not isinstance(kind, inspect.NoneType))


def is_scalar(wanted: inspect.Type) -> bool:
    """Whether one word is enough for a value of this type."""
    scalars = (inspect.StrType, inspect.IntType, inspect.FloatType, inspect.BoolType, inspect.LiteralType)
    return all(isinstance(kind, scalars) for kind in kinds(wanted))


def convert(text: str, wanted: inspect.Type, *, secret: bool = False) -> Any:
    """The word as a value of this type, or `Wrong`. A secret is not repeated in the message."""
    wrong = Wrong("must be " + describe(wanted) + ("" if secret else f", not {quoted(text)}"))
    for kind in kinds(wanted):
        if isinstance(kind, inspect.StrType):
            return whole(text)
        if isinstance(kind, inspect.BoolType) and text.lower() in TRUE | FALSE:
            return text.lower() in TRUE
        if isinstance(kind, inspect.LiteralType) and text in kind.values:
            return text
        if isinstance(kind, inspect.IntType | inspect.FloatType):
            value = _number(text, isinstance(kind, inspect.IntType))
            if value is None or not _within(value, kind):
                raise wrong
            return value
    raise wrong


def whole(text: str) -> str:
    """The text, if it can be written anywhere: escapes and other encodings can leave half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Wrong("holds half a character, or bytes that are not UTF-8") from None
    return text


def takes_text(wanted: inspect.Type) -> bool:
    """Whether a word in quotes can be a value of this type."""
    return any(isinstance(kind, inspect.StrType | inspect.LiteralType) for kind in kinds(wanted))


def describe(wanted: inspect.Type) -> str:
    """The type in words."""
    words: list[str] = []
    for kind in kinds(wanted):
        match kind:
            case inspect.BoolType():
                words += ["true", "false"]
            case inspect.LiteralType():
                words += map(str, kind.values)
            case inspect.IntType():
                words.append("a whole number" + _bounds(kind))
            case inspect.FloatType():
                words.append("a number" + _bounds(kind))
            case inspect.StrType():
                words.append("text")
            case inspect.VarTupleType():
                words.append("a list")
            case _:
                words.append(SECTION)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _number(text: str, whole: bool) -> int | float | None:
    if len(text) > 40 or not (_WHOLE if whole else _NUMBER).fullmatch(text):
        return None
    plain = text.replace("_", "")
    value = int(plain) if whole else float(plain)
    return value if math.isfinite(value) and abs(value) <= LARGEST else None


def _within(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    return not (
        (kind.ge is not None and value < kind.ge)
        or (kind.gt is not None and value <= kind.gt)
        or (kind.le is not None and value > kind.le)
    )


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {kind.ge} to {kind.le}"
    if kind.ge is not None:
        return f", {kind.ge} or more"
    return f" above {kind.gt}" if kind.gt is not None else ""
