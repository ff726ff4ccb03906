"""Arguments that the model did not write as JSON: our encoding of them, and the type of each value.

Owns how a value's text becomes JSON text, a stretch at a time. Knows JSON schemas; knows nothing of tags or calls.

A value known to be a string flows as it arrives. Any other waits for its end, or until its first characters rule out
everything but a string. Without a schema, it is a number, boolean or null only if it is exactly that JSON literal, an
object or a list only if it parses whole, and otherwise a string. With a schema, a value is what the schema allows:
where strings are allowed too, only what is JSON of one of the other types is no string; where they are not, other
spellings are read as well (`007`, `TRUE`, a Python literal, escaped JSON) if exactly one reading fits. What does not
fit stays the string that was written, and the sink is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from .json_scan import JsonScanner, unescape
from .steps import escape

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
_NOT_NUMBER = re.compile(r"[^-+.0-9eE]")
_NOT_SPACE = re.compile(r"[^ \t\n\r]")
_SPACE = " \t\n\r"

_NOT_PYTHON_NUMBER = re.compile(r"[^-+.0-9a-fA-FxXoO_]")
_LEADING_ZEROS = re.compile(r"\A([-+]?)0++(?=[0-9])")
_WORDS = {"true": "boolean", "false": "boolean", "null": "null"}
_SPELLINGS = {spelling: word for word in _WORDS for spelling in (word, word.capitalize(), word.upper())}
_SPELLINGS["None"] = "null"
_JSON_WORDS = {word: word for word in _WORDS}
_PYTHON_WORDS = _JSON_WORDS | {"True": "true", "False": "false", "None": "null"}
_NAMES = {name: name for name in ("string", "number", "integer", "boolean", "null", "object", "array")}
_NAMES |= {"str": "string", "float": "number", "double": "number", "int": "integer", "bool": "boolean"}
_NAMES |= {"none": "null", "dict": "object", "list": "array", "tuple": "array"}
"""What schemas call the types, in lower case. Many are made by hand, or from another language's names."""
_STRING = frozenset({"string"})
_NOTHING: Mapping[str, Any] = {}

Kind = Literal["string", "json", "untyped", "nullable", "unquoted"]
"""What the syntax says of a value. Nullable: the word null, in any case, is nothing even where a string is declared.
Unquoted: strings have quotes in this syntax and this has none, so Python's words for constants are constants too."""


class ValueSink(Protocol):
    """What a value is written to: as far as it goes, a reader's sink."""

    @property
    def limit(self) -> int:
        """How many characters may be held back."""

    def arguments(self, text: str) -> None:
        """More of the arguments' JSON text."""

    def limited(self, message: str = "") -> None:
        """A value whose type is not known was held for too long and is taken as a string."""

    def invalid(self, key: str) -> None:
        """A value of this argument is not of the type that the schema gives it."""


def quote(text: str) -> str:
    """`text` as a JSON string."""
    try:
        return msgspec.json.encode(text).decode()
    except UnicodeEncodeError:
        return f'"{escape(text)}"'


class _Types(NamedTuple):
    """What a schema says of the value itself."""

    types: frozenset[str] | None
    strings: frozenset[str]
    whole: bool


_UNTYPED = _Types(None, frozenset(), False)
_PLAIN = {
    name: _Types(frozenset({"number" if type == "integer" else type}), frozenset(), type == "integer")
    for name, type in _NAMES.items()
}
"""What a schema says that says no more than its type."""


class Schema:
    """The types that a JSON schema gives to values. Whatever a caller passed as schema, no method raises."""

    __slots__ = ("_node", "_read", "_root")

    def __init__(self, node: object, root: object | None = None) -> None:
        self._node = node
        self._root = node if root is None else root
        self._read: _Types | None = None

    @property
    def types(self) -> frozenset[str] | None:
        """Which types are allowed, an integer being a number; None when it does not say."""
        return self.facts().types

    @property
    def whole(self) -> bool:
        """Whether a number must be a whole one."""
        return self.facts().whole

    @property
    def only_string(self) -> bool:
        """Whether nothing but a string is allowed."""
        return self.facts().types == _STRING

    @property
    def excludes_strings(self) -> bool:
        """Whether it names types, and a string is none of them."""
        types = self.facts().types
        return types is not None and "string" not in types

    def allows(self, type: str) -> bool:
        """Whether a value may have this type."""
        types = self.facts().types
        return types is None or type in types

    def member(self, key: str) -> Schema | None:
        """What it says of a member."""
        own = self._node.get("properties") if type(self._node) is dict else None
        if type(own) is dict and key in own:  # nearly always
            return Schema(own[key], self._root)
        fallback: Schema | None = None
        for node in self._reach(into_typed=True):
            members = node.get("properties")
            if isinstance(members, Mapping) and key in members:
                return Schema(members[key], self._root)
            others = node.get("additionalProperties")
            if fallback is None and isinstance(others, Mapping):
                fallback = Schema(others, self._root)
        return fallback

    def lists(self, key: str) -> bool:
        """Whether a member of this name is expected: it is listed, none are, or others are welcome."""
        listed = False
        for node in self._reach(into_typed=True):
            members, others = node.get("properties"), node.get("additionalProperties")
            if others is True or isinstance(others, Mapping) or (isinstance(members, Mapping) and key in members):
                return True
            listed = listed or isinstance(members, Mapping)
        return not listed

    def names(self, key: str) -> bool:
        """Whether a member of this name is listed."""
        listed = (node.get("properties") for node in self._reach(into_typed=True))
        return any(isinstance(members, Mapping) and key in members for members in listed)

    @property
    def items(self) -> Schema | None:
        """What it says of the elements of a list."""
        for node in self._reach(into_typed=True):
            if isinstance(node.get("items"), Mapping):
                return Schema(node["items"], self._root)
        return None

    def resolved(self) -> object:
        """The schema itself, behind its references."""
        node, seen = self._node, set[int]()
        while isinstance(node, Mapping) and isinstance(node.get("$ref"), str) and id(node) not in seen:
            seen.add(id(node))
            node = self._follow(node["$ref"])
        return node

    def facts(self) -> _Types:
        """What it says of its own value; of a schema whose members alone are asked for, this is never read."""
        if self._read is None:
            self._read = self._read_types()
        return self._read

    def _read_types(self) -> _Types:
        node = self._node
        if type(node) is dict and "enum" not in node and "nullable" not in node:
            named = node.get("type")
            if isinstance(named, str) and named in _PLAIN:  # nearly always
                return _PLAIN[named]
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
        whole = "integer" in types and "number" not in types
        names = frozenset("number" if name == "integer" else name for name in types)
        return _Types(names if types and not unknown else None, frozenset(strings), whole)

    def _reach(self, into_typed: bool) -> Iterator[Mapping[str, Any]]:
        """Every schema that this one refers to or is made of, each once."""
        waiting: list[tuple[object, bool]] = [(self._node, False)]
        seen: set[int] = set()
        # Each once, by identity: references may lead back to where they came from.
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
            # Nine digits: a list is never longer, and Python refuses to read a number of thousands.
            elif isinstance(node, list) and len(step) < 10 and step.isdecimal() and int(step) < len(node):
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
        types = {_NAMES.get(named.lower(), "")}
    elif isinstance(named, list | tuple):
        types = {_NAMES.get(name.lower(), "") for name in named if isinstance(name, str)}
    elif isinstance(node.get("enum"), list | tuple):
        types = {_type_of(value) for value in node["enum"]}
    elif "const" in node:
        types = {_type_of(node["const"])}
    elif isinstance(node.get("properties"), Mapping):
        types = {"object"}
    elif "items" in node:
        types = {"array"}
    # A union with an unknown type may allow anything, so it decides nothing.
    if not types or "" in types:
        return None  # a name that nobody knows says nothing
    if node.get("nullable") is True:
        types.add("null")
    return types


def _type_of(value: object) -> str:
    if isinstance(value, str):
        return "string"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"  # a number that is listed may be written with a fraction
    return "object" if isinstance(value, Mapping) else "array"


class ValueWriter:
    """Writes one value as JSON. `key` is the argument that it belongs to, for the notice."""

    __slots__ = (
        "_held",
        "_key",
        "_kind",
        "_loose",
        "_must",
        "_pieces",
        "_scanner",
        "_schema",
        "_shape",
        "_sink",
        "_strings",
        "_tail",
        "_types",
        "_words",
        "_write",
        "fits",
    )

    def __init__(self, sink: ValueSink, schema: Schema | None, kind: Kind = "untyped", key: str = "") -> None:
        self._sink = sink
        self._write = sink.arguments
        self._key = key
        self._kind = kind
        self._schema = schema
        self._types, self._strings, _ = schema.facts() if schema is not None else _UNTYPED
        self._must = self._types is not None and "string" not in self._types
        self._words = _SPELLINGS if self._must else _PYTHON_WORDS if kind == "unquoted" else _JSON_WORDS
        # Where it is known that the value need not be a string, whitespace around it means nothing.
        self._loose = kind == "json" or self._types is not None
        self._pieces: list[str] | None = []
        self._held = 0
        self._shape = ""
        self._tail = ""
        self._scanner: JsonScanner | None = None
        self.fits = True
        """Whether the value has the type that its schema wants."""
        if is_string(schema, kind):
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
        # Exactly at the limit, so that the type does not depend on where a chunk ended.
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
        else:
            text = "".join(self._pieces)
            # Other spellings only where the schema allows no string: elsewhere `TRUE` or `007` is what the model meant
            # to write.
            self._write(self._as_json(text) or (self._coerced(text) if self._must else "") or quote(text))
        if not self.fits:
            self._sink.invalid(self._key)

    def _flow(self) -> None:
        """It is a string."""
        assert self._pieces is not None
        self.fits = not self._must
        self._write('"' + escape("".join(self._pieces)))
        self._pieces = None

    def _allows(self, type: str) -> bool:
        return self._types is None or type in self._types

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
            other = _NOT_PYTHON_NUMBER if self._must else _NOT_NUMBER
            return other.search(text.rstrip(_SPACE) if self._loose else text) is not None
        if self._shape == "word":
            word = self._tail + text
            bare = word.rstrip(_SPACE) if self._loose else word
            self._tail = bare if len(bare) == len(word) else bare + " "
            if self._kind == "nullable" and "null".startswith(bare.lower()):
                return False
            return not any(known.startswith(bare) for known in self._words)
        if self._scanner is None or not self._scan(text):
            return False
        self._scanner = None
        return not self._must

    def _begin(self, first: str, spaced: bool) -> bool:
        """What the value could be by its first character; False when only a string."""
        if first in "{[" or (first == '"' and self._kind == "json"):
            self._shape = {"{": "object", "[": "array"}.get(first, "string")
            self._scanner = JsonScanner()
            return self._allows(self._shape)
        # Without a schema a value is a number only if it is exactly one; with spaces before it, it is text.
        if spaced and not self._loose:
            return False
        if first in "-0123456789" or (self._must and first in "+."):
            self._shape = "number"
            return self._allows("number")
        if self._must and first in '("':
            # A tuple, or a string that holds the value.
            self._shape = "array" if first == "(" else "quoted"
            return first == '"' or self._allows("array")
        self._shape = "word"
        if self._must:
            return first in "tfnTFN"
        if self._kind == "nullable" and first in "nN":
            return True
        known = any(word[0] == first for word in self._words)
        return known and (self._allows("boolean") or self._allows("null"))

    def _scan(self, text: str) -> bool:
        """Read on in an object or a list; whether it is not JSON."""
        scanner = self._scanner
        assert scanner is not None
        text = self._tail + text
        stop = scanner.scan(text, 0, len(text)) if not scanner.done else 0
        self._tail = "" if scanner.done else text[stop:]
        if scanner.error is not None:
            return True
        return scanner.done and _NOT_SPACE.search(text, stop) is not None

    def _as_json(self, text: str) -> str:
        """The whole text if it is JSON of a type that is allowed, and no string."""
        bare = text.strip(_SPACE) if self._loose or self._shape in ("object", "array") else text
        if self._shape == "number":
            known = _NUMBER.fullmatch(bare) and self._is_whole_enough(bare) and text not in self._strings
            return bare if known else ""
        if self._shape == "word":
            if self._kind == "nullable" and bare.lower() == "null" and text not in self._strings:
                self.fits = self._allows("null")
                return "null"
            word = self._words.get(bare, "")
            return word if word and self._allows(_WORDS[word]) and text not in self._strings else ""
        return bare if self._scanner is not None and self._scanner.done and self._shape else ""

    def _is_whole_enough(self, number: str) -> bool:
        return self._schema is None or not self._schema.whole or is_whole(number)

    def _coerced(self, text: str) -> str:
        """The text as JSON of a type that is allowed, if exactly one reading of it is; else it does not fit."""
        bare = text.strip(_SPACE)
        found = ""
        if self._shape == "number":
            found = read_number(bare) or ""
            found = found if found and self._is_whole_enough(found) else ""
        elif self._shape == "word":
            found = _SPELLINGS.get(bare, "")
            if found and not self._allows(_WORDS[found]):
                # What is nothing is better told as nothing than as a word, whatever the schema wants.
                self.fits = False
                return found if found == "null" else ""
        elif self._shape == "quoted":
            found = self._unquoted(bare)
        elif self._shape:
            readings = {reading for reading in (read_literal(bare), _unescaped(bare)) if reading}
            if len(readings) == 1:
                found = readings.pop()
            found = found if found and self._allows("object" if found[0] == "{" else "array") else ""
        self.fits = bool(found)
        return found

    def _unquoted(self, text: str) -> str:
        """What a string in quotes holds, if that is of a type that is allowed."""
        scanner = JsonScanner()
        if scanner.scan(text, 0, len(text)) < len(text) or not scanner.done or scanner.error is not None:
            return ""
        heard = _Heard(self._sink.limit)
        inner = ValueWriter(heard, self._schema)
        inner.add(unescape(text[1:-1]))
        inner.close()
        return "".join(heard.pieces) if inner.fits else ""


def write_value(sink: ValueSink, schema: Schema | None, kind: Kind, key: str, opening: str, text: str) -> None:
    """Write a value that is there as a whole, no longer than may be held, behind `opening`."""
    if is_string(schema, kind):
        sink.arguments(opening + quote(text))
        return
    sink.arguments(opening)
    writer = ValueWriter(sink, schema, kind, key)
    writer.add(text)
    writer.close()


def is_string(schema: Schema | None, kind: Kind) -> bool:
    """Whether it is known before its first character that a value is a string."""
    types = schema.types if schema is not None else None
    if kind == "string":
        return types is None or "string" in types
    return kind in ("untyped", "unquoted") and types == _STRING


class StringWriter:
    """Writes a string that the model wrote as one. Where strings are not allowed, it is read as a value is."""

    __slots__ = ("_body", "_key", "_schema", "_sink", "_size", "_typed")

    def __init__(self, sink: ValueSink, schema: Schema | None, key: str) -> None:
        self._sink = sink
        self._schema = schema
        self._key = key
        self._typed = schema is not None and schema.excludes_strings
        self._body: list[str] | None = [] if self._typed else None
        self._size = 0
        if self._body is None:
            sink.arguments('"')

    @property
    def flows(self) -> bool:
        """Whether it is written as it comes."""
        return self._body is None

    def add(self, body: str) -> None:
        """More of it, as it stands inside a JSON string; no escape is cut in two."""
        if self._body is None:
            self._sink.arguments(body)
            return
        self._body.append(body)
        self._size += len(body)
        if self._size > self._sink.limit:
            self._sink.limited()
            self._sink.arguments('"' + "".join(self._body))
            self._body = None

    def close(self) -> None:
        """The string ends."""
        if self._body is not None:
            value = ValueWriter(self._sink, self._schema, "string", self._key)
            value.add(unescape("".join(self._body)))
            value.close()
            return
        self._sink.arguments('"')
        if self._typed:
            self._sink.invalid(self._key)


class _Heard:
    """Collects what a writer writes."""

    __slots__ = ("limit", "pieces")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.pieces: list[str] = []

    def arguments(self, text: str) -> None:
        """Keep it."""
        self.pieces.append(text)

    def limited(self, message: str = "") -> None:
        """The value around it is as long."""

    def invalid(self, key: str) -> None:
        """The writer says so itself."""


def is_whole(number: str) -> bool:
    """Whether a JSON number has no fraction: `5`, `5.0` and `1.5e1` have none."""
    mantissa, _, exponent = number.lower().partition("e")
    fraction = mantissa.partition(".")[2].rstrip("0")
    return not fraction if not exponent else len(exponent) < 6 and len(fraction) <= int(exponent)


def read_number(text: str) -> str | None:
    """A number as other languages write it (`007`, `+5`, `.5`, `1_000`, `0x1F`), as JSON."""
    from .python_reader import read_atom  # here, because few values need it

    return read_atom(_LEADING_ZEROS.sub(r"\1", text))


def read_literal(text: str) -> str | None:
    """A list, tuple or dictionary as Python writes it, as JSON."""
    from .python_reader import read_value  # here, because few values need it

    return read_value(text)


def _unescaped(text: str) -> str:
    """JSON whose quotes are escaped as if it stood in a string, `[{\\"id\\": 1}]`, without these escapes."""
    if "\\" not in text:
        return ""
    import json  # here, because few models need it and importing it costs start-up

    try:
        text = json.loads(f'"{text}"', strict=False).strip(_SPACE)
    except ValueError:
        return ""
    scanner = JsonScanner()
    stop = scanner.scan(text, 0, len(text))
    return text if scanner.done and scanner.error is None and stop == len(text) else ""
