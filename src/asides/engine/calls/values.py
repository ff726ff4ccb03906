"""Arguments that the model did not write as JSON: our encoding of them, and the type of each value.

Owns how a value's text becomes JSON text, a stretch at a time. Knows JSON schemas; knows nothing of tags or calls.

A value known to be a string flows as it arrives. Any other waits for its end, or until its first characters rule out
everything but a string. With a schema, a value is what the schema allows: where strings are allowed too, only what
has one of the other types is no string. Without one, it is a number, boolean or null only if it is exactly that JSON
literal, an object or a list only if it parses whole, and otherwise a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from .json_scan import JsonScanner
from .reader import Sink
from .steps import escape

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_NOT_NUMBER = re.compile(r"[^-+.0-9eE]")
_NOT_SPACE = re.compile(r"[^ \t\n\r]")
_SPACE = " \t\n\r"

_WORDS = {"true": "boolean", "false": "boolean", "null": "null"}
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_NAMES = {"integer": "number"}
_STRING = frozenset({"string"})
_NOTHING: Mapping[str, Any] = {}

Kind = Literal["string", "json", "untyped"]


def quote(text: str) -> str:
    """`text` as a JSON string."""
    return f'"{escape(text)}"'


class Schema:
    """A JSON schema as far as it tells types. Whatever a caller gave, asking it never raises."""

    __slots__ = ("_node", "_root", "strings", "types")

    def __init__(self, node: object, root: object | None = None) -> None:
        self._node = node
        self._root = node if root is None else root
        self.types: frozenset[str] | None
        """Which types are allowed, an integer being a number; None when it does not say."""
        self.strings: frozenset[str]
        """The strings that it lists."""
        self.types, self.strings = self._read()

    @property
    def only_string(self) -> bool:
        """Whether nothing but a string is allowed."""
        return self.types == _STRING

    def member(self, key: str) -> Schema | None:
        """What it says of a member."""
        fallback: Schema | None = None
        for node in self._reach(into_typed=True):
            members = node.get("properties")
            if isinstance(members, Mapping) and key in members:
                return Schema(members[key], self._root)
            others = node.get("additionalProperties")
            if fallback is None and isinstance(others, Mapping):
                fallback = Schema(others, self._root)
        return fallback

    @property
    def items(self) -> Schema | None:
        """What it says of the elements of a list."""
        for node in self._reach(into_typed=True):
            if isinstance(node.get("items"), Mapping):
                return Schema(node["items"], self._root)
        return None

    def _read(self) -> tuple[frozenset[str] | None, frozenset[str]]:
        types: set[str] = set()
        strings: set[str] = set()
        unknown = False
        for node in self._reach(into_typed=False):
            own = _own_types(node)
            unknown = unknown or (own is None and not _branches(node))
            types |= own or set()
            listed = node.get("enum")
            if isinstance(listed, list | tuple):
                strings |= {value for value in listed if isinstance(value, str)}
        return (frozenset(types) if types and not unknown else None), frozenset(strings)

    def _reach(self, into_typed: bool) -> Iterator[Mapping[str, Any]]:
        """Every schema that this one refers to or is made of, each once."""
        waiting: list[tuple[object, bool]] = [(self._node, False)]
        seen: set[int] = set()
        for node, is_condition in waiting:  # grows as it is walked
            if not isinstance(node, Mapping) or id(node) in seen:
                continue
            seen.add(id(node))
            own = _own_types(node)
            branches = _branches(node)
            if own is not None or branches or not is_condition:
                yield node
            if own is None or into_typed:
                waiting += [(self._follow(branch), condition) for branch, condition in branches]

    def _follow(self, branch: object) -> object:
        """Where a reference leads; only those into the same document can be followed."""
        if not isinstance(branch, str):
            return branch
        if not branch.startswith("#"):
            return _NOTHING
        node = self._root
        for step in branch[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping):
                node = node.get(step)
            elif isinstance(node, list) and step.isdecimal() and int(step) < len(node):
                node = node[int(step)]
            else:
                return _NOTHING
        return node if node is not None else _NOTHING


def _branches(node: Mapping[str, Any]) -> list[tuple[object, bool]]:
    """What a schema refers to, and whether it is only a further condition, which may say nothing of types."""
    found: list[tuple[object, bool]] = []
    if isinstance(node.get("$ref"), str):
        found.append((node["$ref"], False))
    for key in ("anyOf", "oneOf", "allOf"):
        members = node.get(key)
        if isinstance(members, list | tuple):
            found += [(member, key == "allOf") for member in members]
    return found


def _own_types(node: Mapping[str, Any]) -> set[str] | None:
    """The types that a schema itself names."""
    named = node.get("type")
    types: set[str] | None = None
    if isinstance(named, str):
        types = {named}
    elif isinstance(named, list | tuple):
        types = {name for name in named if isinstance(name, str)}
    elif isinstance(node.get("enum"), list | tuple):
        types = {_type_of(value) for value in node["enum"]}
    elif "const" in node:
        types = {_type_of(node["const"])}
    elif isinstance(node.get("properties"), Mapping):
        types = {"object"}
    elif "items" in node:
        types = {"array"}
    if not types:
        return None
    if node.get("nullable") is True:
        types.add("null")
    return {_NAMES.get(name, name) for name in types}


def _type_of(value: object) -> str:
    if isinstance(value, str):
        return "string"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "object" if isinstance(value, Mapping) else "array"


class ValueWriter:
    """Writes one value as JSON."""

    __slots__ = ("_held", "_loose", "_pieces", "_scanner", "_shape", "_sink", "_strings", "_tail", "_types", "_write")

    def __init__(self, sink: Sink, schema: Schema | None, kind: Kind = "untyped") -> None:
        self._sink = sink
        self._write = sink.arguments
        self._types = schema.types if schema is not None and kind == "untyped" else None
        self._strings = schema.strings if schema is not None else frozenset()
        # Where it is known that the value need not be a string, whitespace around it means nothing.
        self._loose = kind == "json" or self._types is not None
        self._pieces: list[str] | None = []
        self._held = 0
        self._shape = ""
        self._tail = ""
        self._scanner: JsonScanner | None = JsonScanner() if kind == "json" else None
        if kind == "string" or self._types == _STRING:
            self._flow()

    @property
    def flows(self) -> bool:
        """Whether it is a string that is written as it comes."""
        return self._pieces is None

    def add(self, text: str) -> None:
        """More of the value's text."""
        if not text:
            return
        if self._pieces is None:
            self._write(escape(text))
            return
        room = self._sink.limit + 1 - self._held
        if len(text) > room:
            self.add(text[:room])
            self.add(text[room:])
            return
        self._pieces.append(text)
        self._held += len(text)
        if self._is_string(text):
            self._flow()
        elif self._held > self._sink.limit:
            self._sink.limited()
            self._flow()

    def close(self) -> None:
        """The value ends."""
        if self._pieces is None:
            self._write('"')
            return
        text = "".join(self._pieces)
        self._write(self._as_json(text) or quote(text))

    def _flow(self) -> None:
        """It is a string."""
        assert self._pieces is not None
        self._write('"' + escape("".join(self._pieces)))
        self._pieces = None

    def _allows(self, type: str) -> bool:
        return self._types is None or type in self._types or "string" not in self._types

    def _is_string(self, text: str) -> bool:
        """Whether what has come, `text` being the last of it, rules out everything but a string."""
        if not self._shape:
            first = _NOT_SPACE.search(text)
            if first is None:
                return False
            if not self._begin(first.group(), spaced=self._held - len(text) + first.start() > 0):
                return True
            text = text[first.start() :]
        if self._shape == "number":
            found = _NOT_NUMBER.search(text.rstrip(_SPACE) if self._loose else text)
            return found is not None
        if self._shape == "word":
            word = self._tail + text
            bare = word.rstrip(_SPACE) if self._loose else word
            self._tail = bare if len(bare) == len(word) else bare + " "
            return not any(known.startswith(bare) for known in (*_WORDS, *_PYTHON_WORDS))
        return self._scan(text)

    def _begin(self, first: str, spaced: bool) -> bool:
        """What the value could be by its first character; False when only a string."""
        if first in "{[" or (first == '"' and self._scanner is not None):
            self._shape = {"{": "object", "[": "array"}.get(first, "string")
            self._scanner = JsonScanner()
            return self._allows(self._shape)
        if spaced and not self._loose:
            return False
        if first in "-0123456789":
            self._shape = "number"
            return self._allows("number")
        self._shape = "word"
        return first in ("tfnTFN" if self._loose else "tfn") and (self._allows("boolean") or self._allows("null"))

    def _scan(self, text: str) -> bool:
        scanner = self._scanner
        assert scanner is not None
        text = self._tail + text
        stop = scanner.scan(text, 0, len(text)) if not scanner.done else 0
        self._tail = "" if scanner.done else text[stop:]
        if scanner.error is not None:
            return True
        return scanner.done and _NOT_SPACE.search(text, stop) is not None

    def _as_json(self, text: str) -> str:
        """The whole text as JSON, if it is no string."""
        bare = text.strip(_SPACE) if self._loose or self._shape in ("object", "array") else text
        if self._shape == "number":
            return bare if _NUMBER.fullmatch(bare) and text not in self._strings else ""
        if self._shape == "word":
            if self._loose and (self._types is None or "string" not in self._types):
                bare = _PYTHON_WORDS.get(bare, bare)
            known = bare in _WORDS and self._allows(_WORDS[bare]) and text not in self._strings
            return bare if known else ""
        return bare if self._scanner is not None and self._scanner.done and self._shape else ""
