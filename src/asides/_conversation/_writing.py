"""Values as text, with their origins: Python's `str`, `repr` and `%`, and JSON.

Each writes what Python writes, character by character (`json.dumps` as transformers calls it), and says for every
character which leaf it comes from.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any

from ._origin import (
    NOBODY,
    OriginDict,
    OriginFloat,
    OriginInt,
    OriginList,
    OriginText,
    has_origin,
    join,
    one_leaf,
    plain,
    runs_of,
    spread,
    tagged,
)

_CONVERSION = re.compile(r"%(?:\((\w+)\))?([#0\- +]*)(\*|\d+)?(?:\.(\*|\d+))?[hlL]?(.)", re.DOTALL)


def percent(template: str, values: Any) -> str:
    """As `template % values`: what is put in keeps its origin."""
    # By Python first: it knows every rule and every error.
    if isinstance(values, tuple):
        result = plain(template) % tuple(plain(each) if isinstance(each, str) else each for each in values)
    else:
        result = plain(template) % (plain(values) if isinstance(values, str) else values)
    if not isinstance(template, OriginText):
        template = OriginText(template, runs_of(template))
    rest = iter(values if isinstance(values, tuple) else (values,))
    pieces: list[str] = []
    at = 0
    for match in _CONVERSION.finditer(plain(template)):
        pieces.append(template.cut(at, match.start()))
        at = match.end()
        key, flags, width, precision, kind = match.groups()
        if kind == "%":
            pieces.append(template.cut(match.start(), match.start() + 1))
            continue
        if "*" in (width, precision):
            return result
        value = values[key] if key else next(rest)
        if kind == "s" and not flags and width is None and precision is None:
            pieces.append(write(value))
            continue
        written = match[0] if key is None else "%" + match[0][len(key) + 3 :]
        made = written % ((plain(value) if isinstance(value, str) else value),)
        pieces.append(spread(made, write(value)) if has_origin(value) else made)
    pieces.append(template.cut(at, len(template)))
    joined = join(pieces)
    return joined if joined == result else result


def write(value: Any) -> str:
    """As `str(value)`, with origins through lists and dicts."""
    kind = type(value)
    if kind in _PRINTED and value:
        pieces: list[str] = []
        _represent(value, NOBODY, pieces)
        return join(pieces)
    return str(value)


_PRINTED = frozenset({OriginDict, OriginList, dict, list, tuple})


def _represent(value: Any, leaf: int, pieces: list[str]) -> None:
    kind = type(value)
    if kind is OriginText:
        text = plain(value)
        written = repr(text)
        quote = written[0]
        inner = value.mapped(written[1:-1], (_represented(letter, quote) for letter in text))
        own = one_leaf(value)
        pieces += [_mark(quote, own), inner, _mark(quote, own)]
    elif kind is OriginInt or kind is OriginFloat:
        pieces.append(str(value))
    elif kind is dict or kind is OriginDict:
        own = value.leaf if kind is OriginDict else leaf
        pieces.append(_mark("{", own))
        for place, (key, item) in enumerate(value.items()):
            if place:
                pieces.append(_mark(", ", own))
            _represent(key, own, pieces)
            pieces.append(_mark(": ", own))
            _represent(item, own, pieces)
        pieces.append(_mark("}", own))
    elif kind is list or kind is OriginList or kind is tuple:
        own = value.leaf if kind is OriginList else leaf
        opener, closer = "()" if kind is tuple else "[]"
        pieces.append(_mark(opener, own))
        for place, item in enumerate(value):
            if place:
                pieces.append(_mark(", ", own))
            _represent(item, own, pieces)
        pieces.append(_mark(",)" if kind is tuple and len(value) == 1 else closer, own))
    else:
        pieces.append(_mark(repr(value), leaf))


def _represented(letter: str, quote: str) -> int:
    """How many characters Python writes for one."""
    return 2 if letter in (quote, "\\") else 1 if letter.isprintable() else len(repr(letter)) - 2


def _mark(text: str, leaf: int | None) -> str:
    return text if leaf is None or leaf == NOBODY else tagged(text, leaf)


class _Json:
    """Writes JSON as `json.dumps` does, byte for byte, with origins."""

    def __init__(self, ensure_ascii: bool, indent: int | str | None, separators: Any, sort_keys: bool) -> None:
        self._quote = encode_basestring_ascii if ensure_ascii else encode_basestring
        self._ascii = ensure_ascii
        self._indent = " " * indent if isinstance(indent, int) else indent
        comma, colon = separators if separators is not None else ("," if indent is not None else ", ", ": ")
        self._comma, self._colon = comma, colon
        self._sort = sort_keys
        self.pieces: list[str] = []

    def write(self, value: Any, leaf: int, depth: int) -> None:
        kind = type(value)
        if kind is OriginText or isinstance(value, str):
            self.pieces.append(self._string(value, leaf))
        elif isinstance(value, dict):
            self._write_dict(value, getattr(value, "leaf", leaf), depth)
        elif isinstance(value, (list, tuple)):
            self._write_list(value, getattr(value, "leaf", leaf), depth)
        elif kind is OriginInt:
            self.pieces.append(tagged(int.__repr__(value), value.leaf))
        elif kind is OriginFloat:
            self.pieces.append(tagged(json.dumps(float(value)), value.leaf))
        else:
            self.pieces.append(_mark(json.dumps(value), leaf))

    def _string(self, value: str, leaf: int) -> str:
        text = plain(value)
        quoted = self._quote(text)
        if not isinstance(value, OriginText):
            return _mark(quoted, leaf)
        own = one_leaf(value)
        if own is not None:
            return tagged(quoted, own)
        sizes = [1, *(len(self._quote(letter)) - 2 for letter in text), 1]
        return join(('"', value.mapped(quoted[1:-1], sizes[1:-1]), '"'))

    def _lines(self, depth: int) -> str:
        return "\n" + self._indent * depth if self._indent is not None else ""

    def _write_dict(self, value: dict[Any, Any], leaf: int, depth: int) -> None:
        if not value:
            self.pieces.append(_mark("{}", leaf))
            return
        items = sorted(value.items()) if self._sort else value.items()
        before = "{" + self._lines(depth + 1)
        between = self._comma + self._lines(depth + 1)
        for key, item in items:
            self.pieces.append(_mark(before, leaf))
            before = between
            self._write_key(key, leaf)
            self.pieces.append(_mark(self._colon, leaf))
            self.write(item, leaf, depth + 1)
        self.pieces.append(_mark(self._lines(depth) + "}", leaf))

    def _write_key(self, key: Any, leaf: int) -> None:
        if isinstance(key, str):
            self.pieces.append(self._string(key, leaf))
        else:
            # Python turns numbers, true, false and null into strings, and refuses the rest.
            self.pieces.append(_mark(json.dumps({key: 0})[1:-4], leaf))

    def _write_list(self, value: Any, leaf: int, depth: int) -> None:
        if not value:
            self.pieces.append(_mark("[]", leaf))
            return
        before = "[" + self._lines(depth + 1)
        between = self._comma + self._lines(depth + 1)
        for item in value:
            self.pieces.append(_mark(before, leaf))
            before = between
            self.write(item, leaf, depth + 1)
        self.pieces.append(_mark(self._lines(depth) + "]", leaf))


def write_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """As `json.dumps`, with origins."""
    writer = _Json(ensure_ascii, indent, separators, sort_keys)
    writer.write(value, NOBODY, 0)
    return join(writer.pieces)
