"""YAML nodes as plain values of the schema's types, each with its line; every mistake is collected.

Walks nodes and types side by side. Knows no setting by name and looks at no environment.
"""

from __future__ import annotations

from typing import Any

import yaml
from msgspec import inspect

from .problems import Origin, Path, Problem, name_text, path_text, suggestion
from .scalars import SECTION, Wrong, convert, describe, is_scalar, takes_text, whole
from .secrets import is_secret_name

NOTHING = object()
"""What a key that was left empty, or could not be read, holds."""
MOST_NODES = 100_000
"""How many values a file may hold once its aliases are followed: a few lines can name billions."""
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp", "value", "merge")}


class Reader:
    """Reads one document."""

    def __init__(self, file: str) -> None:
        self.problems: list[Problem] = []
        """What is wrong, in the order of the file."""
        self.lines: dict[Path, int] = {}
        """The line of each value that was read."""
        self._file = file
        self._above: set[int] = set()
        self._told: set[Path] = set()
        self._nodes = 0

    def read(self, node: yaml.Node, wanted: inspect.Type, path: Path) -> Any:
        """The node as a value of this type; NOTHING where it is empty or wrong."""
        self.lines[path] = node.start_mark.line + 1
        self._nodes += 1
        if self._nodes > MOST_NODES:
            if self._nodes == MOST_NODES + 1:
                self.wrong(node, path, "more values than a configuration can hold; are aliases nested?")
            return NOTHING
        if id(node) in self._above:
            return self.wrong(node, path, "an alias of something that it is itself a part of")
        self._above.add(id(node))
        try:
            return self._read(node, wanted, path)
        except Wrong as error:
            return self.wrong(node, path, str(error))
        finally:
            self._above.discard(id(node))

    def wrong(self, node: yaml.Node, path: Path, message: str) -> Any:
        """Note a mistake."""
        self._told.add(path)
        self.problems.append(Problem(Origin(self._file, node.start_mark.line + 1), path_text(path), message))
        return NOTHING

    def _read(self, node: yaml.Node, wanted: inspect.Type, path: Path) -> Any:
        if isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "null":
            return NOTHING
        _check_tag(node)
        if isinstance(wanted, inspect.StructType):
            return self._struct(node, wanted, path)
        if isinstance(wanted, inspect.DictType):
            return self._dict(node, wanted, path)
        if isinstance(wanted, inspect.VarTupleType):
            return self._list(node, wanted, path)
        if isinstance(wanted, inspect.AnyType):
            return self._any(node, path)
        secret = any(isinstance(step, str) and is_secret_name(step) for step in path)
        if not isinstance(node, yaml.ScalarNode):
            raise Wrong(f"must be {describe(wanted)}, not {_kind(node)}")
        if node.style and not takes_text(wanted):
            convert(node.value, wanted, secret=secret)
            raise Wrong(f"must be {describe(wanted)}, without quotes")
        return convert(node.value, wanted, secret=secret)

    def _struct(self, node: yaml.Node, wanted: inspect.StructType, path: Path) -> Any:
        fields = {field.name: field for field in wanted.fields}
        found: dict[str, Any] = {}
        for key, key_node, value in self._items(node, path):
            if key in fields:
                read = self.read(value, fields[key].type, (*path, key))
                if read is not NOTHING:
                    found[key] = read
            elif wanted.forbid_unknown_fields:
                self.wrong(key_node, (*path, key), "unknown key" + suggestion(key, list(fields)))
        for field in wanted.fields:
            if field.required and field.name not in found and (*path, field.name) not in self.lines:
                self.wrong(node, path, f"has no {field.name}")
            elif field.required and field.name not in found and (*path, field.name) not in self._told:
                self.wrong(node, (*path, field.name), "is empty")
        return found

    def _dict(self, node: yaml.Node, wanted: inspect.DictType, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, _, value in self._items(node, path):
            read = self.read(value, wanted.value_type, (*path, key))
            if read is NOTHING and isinstance(wanted.value_type, inspect.StructType):
                read = {}  # a model that is named and nothing more said of it
            if read is NOTHING and isinstance(wanted.value_type, inspect.AnyType):
                read = None
            if read is not NOTHING:
                found[key] = read
        return found

    def _list(self, node: yaml.Node, wanted: inspect.VarTupleType, path: Path) -> list[Any]:
        if isinstance(node, yaml.ScalarNode) and is_scalar(wanted.item_type):
            return [whole(node.value)]  # one alone needs no list
        if not isinstance(node, yaml.SequenceNode):
            raise Wrong(f"must be a list, not {_kind(node)}; write each entry after a `- `")
        found = []
        for place, item in enumerate(node.value):
            read = self.read(item, wanted.item_type, (*path, place))
            if read is NOTHING and (*path, place) not in self._told:
                self.wrong(item, (*path, place), "is empty")
            if read is NOTHING and isinstance(wanted.item_type, inspect.StructType):
                read = {}  # so that those after it keep their places, and with them their lines
            if read is not NOTHING:
                found.append(read)
        return found

    def _any(self, node: yaml.Node, path: Path) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._dict(node, inspect.DictType(inspect.StrType(), inspect.AnyType()), path)
        if isinstance(node, yaml.SequenceNode):
            items = [self.read(item, inspect.AnyType(), (*path, place)) for place, item in enumerate(node.value)]
            return [None if item is NOTHING else item for item in items]
        for kind, wanted in (("bool", inspect.BoolType()), ("int", inspect.IntType()), ("float", inspect.FloatType())):
            if node.tag == _TAG + kind and not (kind == "int" and ":" in node.value):
                return convert(node.value, wanted)
        return whole(node.value)

    def _items(self, node: yaml.Node, path: Path) -> list[tuple[str, yaml.Node, yaml.Node]]:
        """The keys of a mapping with their nodes and values. Those that `<<` brings come after its own."""
        if not isinstance(node, yaml.MappingNode):
            raise Wrong(f"must be {SECTION}, not {_kind(node)}")
        own: dict[str, tuple[str, yaml.Node, yaml.Node]] = {}
        merged: list[tuple[str, yaml.Node, yaml.Node]] = []
        for key_node, value in node.value:
            if key_node.tag == _TAG + "merge":
                merged += self._merged(value, path)
            elif not isinstance(key_node, yaml.ScalarNode):
                self.wrong(key_node, path, f"a key must be text, not {_kind(key_node)}")
            elif key_node.value in own:
                first = own[key_node.value][1].start_mark.line + 1
                self.wrong(key_node, (*path, key_node.value), f"stands here twice; first on line {first}")
            else:
                key = key_node.value
                own[key] = (whole(key), key_node, value)
        for item in merged:
            own.setdefault(item[0], item)
        return list(own.values())

    def _merged(self, value: yaml.Node, path: Path) -> list[tuple[str, yaml.Node, yaml.Node]]:
        self._nodes += len(value.value) + 1
        if id(value) in self._above or self._nodes > MOST_NODES:
            self.wrong(value, path, "`<<` of something that it is itself a part of, or of too much")
            return []
        self._above.add(id(value))
        try:
            if isinstance(value, yaml.MappingNode):
                return self._items(value, path)
            if isinstance(value, yaml.SequenceNode):
                return [item for one in value.value for item in self._merged(one, path)]
        finally:
            self._above.discard(id(value))
        self.wrong(value, path, f"`<<` takes a section, not {_kind(value)}")
        return []


def _check_tag(node: yaml.Node) -> None:
    if isinstance(node, yaml.ScalarNode):
        known = node.tag in _PLAIN_TAGS
    else:
        known = node.tag == _TAG + ("map" if isinstance(node, yaml.MappingNode) else "seq")
    if not known:
        tag = node.tag.replace(_TAG, "!!")
        raise Wrong(f"the tag {name_text(tag)} is not known here; write the value without it")


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a section"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"
