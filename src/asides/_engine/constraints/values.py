"""What the value of one argument may be: as raw text between tags, or as a literal of a grammar that is no JSON.

A string between tags is written as it is, anything else as JSON. So a value's schema is taken apart as far as strings
may stand at its top, and the rest is left to xgrammar's own reading of schemas. Python's literals and bare keys in
braces are no JSON at any depth, so there the whole schema is taken apart (`Literals`).

A text that is not JSON has no escapes: it cannot hold what ends it. `minLength` and `maxLength` hold because such a
text is then written without the first character of its end; `pattern` where it is plain that it cannot match that
character, and else not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...errors import UsageError
from ..calls.values import Schema
from .pieces import GAP, Piece, any_text, const, either, json_schema, optional, regex, repeat, sequence

_CANNOT_LEAVE = re.compile(r"(?>(?:\\[dws\-./+*?^$|(){}\[\]]|\[(?!\^)|[^.\\\[])*)")
"""A pattern that matches no more characters than it names: without `.`, `[^...]` and the rarer escapes."""
_NOT_IN_JSON = r'"\\\u0000-\u001f'
"""What stands in no JSON string as it is, for a class of characters."""
_QUOTES = ('"', "'")
_BRANCHES = ("anyOf", "oneOf")


class ToolArguments:
    """The arguments of one tool: its schema, and what each member may be."""

    def __init__(self, tool: str, parameters: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> None:
        self.tool = tool
        """The tool's name."""
        members = parameters.get("properties")
        members = dict(members) if isinstance(members, Mapping) else {}
        required = parameters.get("required")
        listed = required if isinstance(required, list | tuple) else ()
        self._required = {key for key in listed if isinstance(key, str)}
        self.members: dict[str, Any] = {**members, **{key: {} for key in sorted(self._required - members.keys())}}
        """The schema of each member, in the order in which they are written."""
        self._open: list[int] = []
        self._composed = [key for key in ("$ref", "allOf", *_BRANCHES) if parameters.get(key)]
        closed = {"type": "object", "properties": self.members, "additionalProperties": False}
        # Members that are not listed could come twice, and such a call may not be run.
        self.schema: dict[str, Any] = dict(parameters) if self._composed else {**parameters, **closed}
        """The schema of all of them."""
        self.root = parameters if root is None else root
        """The schema in which references are looked up."""

    @contextmanager
    def inside(self, schema: Any) -> Iterator[None]:
        """While a schema is taken apart; one that leads back to itself has no end."""
        if id(schema) in self._open:
            raise UsageError(f"the parameters of {self.tool!r} refer to themselves, which only JSON can say")
        self._open.append(id(schema))
        yield
        self._open.pop()

    def each(self, write: Callable[[str, Any], Piece]) -> Iterator[tuple[Piece, bool]]:
        """Every member as `write` writes it, and whether it must be there."""
        if self._composed:
            raise UsageError(
                f"the parameters of {self.tool!r} are made with {self._composed[0]!r}; "
                "where arguments are not one JSON object, they have to be listed in 'properties'"
            )
        for key, schema in self.members.items():
            yield write(key, schema), key in self._required

    def one_by_one(self, write: Callable[[str, Any], Piece]) -> Piece:
        """All members, one behind the other, those that need not be there left out or not."""
        return sequence(*(piece if must else optional(piece) for piece, must in self.each(write)))

    def resolve(self, schema: Any) -> Any:
        """The schema that a reference leads to."""
        return Schema(schema, self.root).resolved()

    def whole(self, schema: Any, excludes: tuple[str, ...] = ()) -> Piece:
        """A value as JSON; references keep what they lead to."""
        definitions = {key: self.root[key] for key in ("$defs", "definitions") if key in self.root}
        whole = {**schema, **definitions} if isinstance(schema, Mapping) else schema
        return json_schema(_lengths_as_patterns(whole, _none_of(excludes, _NOT_IN_JSON)), excludes)

    def raw(self, schema: Any, excludes: tuple[str, ...], end: str) -> Piece:
        """A value between tags: a string as it is, anything else as JSON. `end` follows it."""
        return either([piece for _, piece in self.raw_by_type(schema, excludes, end)])

    def raw_by_type(self, schema: Any, excludes: tuple[str, ...], end: str) -> Iterator[tuple[str, Piece]]:
        """The same, each thing that it may be with the name of its type."""
        schema = self.resolve(schema)
        if not isinstance(schema, Mapping) or not schema:
            yield "string", any_text(excludes)
            return
        for branch in allowed(schema):
            if branch is not schema:
                yield from self.raw_by_type(branch, excludes, end)
            elif (listed := _listed(branch)) is not None:
                for value in listed:
                    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                    if not isinstance(value, str) or not any(marker in text for marker in excludes):
                        yield _type_of(value), const(text)
            elif Schema(branch, self.root).excludes_strings:
                yield str(branch.get("type", "object")), self.whole(branch, excludes)
            else:
                yield "string", _raw_string(branch, excludes, end)


class Literals:
    """Values of a grammar that is no JSON, at any depth."""

    def __init__(
        self,
        arguments: ToolArguments,
        string: Callable[[Mapping[str, Any]], Piece],
        key: Callable[[str], Piece],
        words: tuple[str, str, str],
    ) -> None:
        self._arguments = arguments
        self._string = string
        self._key = key
        self._words = words  # true, false, null

    def write(self, schema: Any) -> Piece:
        """A value that the schema allows."""
        schema = self._arguments.resolve(schema)
        if not isinstance(schema, Mapping):
            schema = {}
        with self._arguments.inside(schema):
            branches = allowed(schema)
            return either([self._one(branch) if branch is schema else self.write(branch) for branch in branches])

    def _one(self, schema: Mapping[str, Any]) -> Piece:
        listed = _listed(schema)
        if listed is not None:
            return either([self._value(value) for value in listed])
        named = schema.get("type")
        true, false, null = self._words
        if named == "array" or (named is None and "items" in schema):
            return self._array(schema)
        if named == "object" or (named is None and "properties" in schema):
            return self._object(schema)
        if named in ("integer", "number"):
            return self._arguments.whole(schema)
        if named == "boolean":
            return either([const(true), const(false)])
        if named == "null":
            return const(null)
        if named == "string":
            return self._string(schema)
        # Nothing is known of its type: whatever is not nested.
        return either([self._string({}), json_schema({"type": "number"}), *map(const, self._words)])

    def _value(self, value: Any) -> Piece:
        """A value that the schema lists."""
        true, false, null = self._words
        if isinstance(value, bool) or value is None:
            return const(null if value is None else true if value else false)
        if isinstance(value, str):
            return self._string({"const": value})
        if isinstance(value, int | float):
            return const(json.dumps(value))
        raise UsageError(f"the parameters of {self._arguments.tool!r} list a value that is nested; only JSON can")

    def _array(self, schema: Mapping[str, Any]) -> Piece:
        item = self.write(schema.get("items", {}))
        least, most = count(schema, "minItems", 0), count(schema, "maxItems", -1)
        if most == 0:
            return const("[]")
        comma = sequence(const(","), GAP)
        more = repeat(sequence(comma, item), max(least - 1, 0), most - 1 if most > 0 else -1)
        items = sequence(item, more)
        return sequence(const("["), items if least else optional(items), const("]"))

    def _object(self, schema: Mapping[str, Any]) -> Piece:
        nested = ToolArguments(self._arguments.tool, schema, self._arguments.root)
        members = list(nested.each(lambda key, member: sequence(self._key(key), self.write(member))))
        return sequence(const("{"), comma_separated(members), const("}"))


def comma_separated(members: list[tuple[Piece, bool]]) -> Piece:
    """Members in their order with commas between. Each that may be the first is written with what may follow it."""
    comma = sequence(const(","), GAP)
    options: list[Piece] = []
    for number, (piece, must) in enumerate(members):
        rest = (sequence(comma, other) for other, _ in members[number + 1 :])
        musts = (must for _, must in members[number + 1 :])
        options.append(
            sequence(piece, *(one if must else optional(one) for one, must in zip(rest, musts, strict=True)))
        )
        if must:
            return either(options)
    return optional(either(options)) if options else const("")


def count(schema: Mapping[str, Any], key: str, default: int) -> int:
    """A bound that a schema gives, if it is a number that can be one."""
    value = schema.get(key)
    return value if type(value) is int and value >= 0 else default


def allowed(schema: Mapping[str, Any]) -> list[Any]:
    """What a schema allows one of; itself where it is not made of others."""
    for key in _BRANCHES:
        if isinstance(schema.get(key), list | tuple) and schema[key]:
            return list(schema[key])
    named = schema.get("type")
    if isinstance(named, list | tuple) and named and _listed(schema) is None:
        return [{**schema, "type": name} for name in named]
    if schema.get("nullable") is True:
        return [{**schema, "nullable": False}, {"type": "null"}]
    return [schema]


def _listed(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values that a schema lists."""
    if "const" in schema:
        return [schema["const"]]
    listed = schema.get("enum")
    return list(listed) if isinstance(listed, list | tuple) else None


def _type_of(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    return "null" if value is None else "boolean" if isinstance(value, bool) else "number"


def _raw_string(schema: Mapping[str, Any], excludes: tuple[str, ...], end: str) -> Piece:
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and _CANNOT_LEAVE.fullmatch(pattern) and _spelled(end[0]) not in pattern:
        return regex(pattern)
    if bounds := _lengths(schema):
        return regex(_none_of(excludes) + bounds)
    return any_text(excludes)


def _spelled(character: str) -> str:
    """A character as a pattern has to spell it."""
    return "\\" + character if character in "[]" else character


def _none_of(markers: tuple[str, ...], others: str = "") -> str:
    """The pattern of a character that begins none of these."""
    firsts = sorted({marker[0] for marker in markers})
    return f"[^{others}{''.join(map(re.escape, firsts))}]" if firsts or others else r"[\s\S]"


def _lengths(schema: Mapping[str, Any]) -> str:
    """The bounds of a string's length, as a pattern repeats; empty where there are none."""
    least, most = count(schema, "minLength", 0), count(schema, "maxLength", -1)
    return f"{{{least},{most if most >= 0 else ''}}}" if least or most >= 0 else ""


def _lengths_as_patterns(schema: Any, character: str) -> Any:
    """The same schema with patterns in place of lengths, because with lengths xgrammar lets control characters in."""
    if isinstance(schema, list | tuple):
        return [_lengths_as_patterns(each, character) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    copied = {
        key: value if key in ("enum", "const") else _lengths_as_patterns(value, character)
        for key, value in schema.items()
    }
    bounds = _lengths(copied)
    if not bounds:
        return copied
    without = {key: value for key, value in copied.items() if key not in ("minLength", "maxLength")}
    return {"pattern": f"^{character}{bounds}$", **without}


def python_string(schema: Mapping[str, Any]) -> Piece:
    """A string as Python writes it, in either kind of quotes; without escapes where its length or form is bounded."""
    listed = _listed(schema)
    if listed is not None:
        return either([const(text) for value in listed for text in dict.fromkeys((json.dumps(value), repr(value)))])
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        free = _CANNOT_LEAVE.fullmatch(pattern) and not any(quote in pattern for quote in _QUOTES)
        return regex(_in_quotes(pattern.removeprefix("^").removesuffix("$"))) if free else json_schema(schema)
    bounds = _lengths(schema)
    return regex("|".join(_quoted(quote, bounds) for quote in _QUOTES))


def _quoted(quote: str, bounds: str) -> str:
    plain = rf"[^{quote}\\\u0000-\u001f]"
    return f"{quote}{plain}{bounds}{quote}" if bounds else rf"{quote}({plain}|\\[\\nrt{quote}])*{quote}"


def _in_quotes(pattern: str) -> str:
    return "|".join(f"{quote}({pattern}){quote}" for quote in _QUOTES)
