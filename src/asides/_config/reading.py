"""The text of `asides.yaml` as plain values of the schema's types, each with its line; every mistake is collected.

YAML nodes and the schema's types are walked side by side, because nodes know their lines and plain data does not. The
result is what `msgspec.convert` takes, so that sources can be laid over one another before anything is built. Nothing
is ever constructed from a tag, aliases are followed only so far, and a value that is wrong does not hide the next one.

    reader = DocumentReader("asides.yaml")
    reader.read_document("listen: {port: 1}")     {"listen": {"port": 1}}
    reader.lines                                  {(): 1, ("listen",): 1, ("listen", "port"): 1}

Knows no setting by name and no environment. Needs PyYAML; whoever imports this says so where it is missing.
"""

from __future__ import annotations

from typing import Any

import yaml
from msgspec import inspect

from .schema import RENAMED, Config
from .values import (
    SECTION,
    InvalidValueError,
    Origin,
    Path,
    Problem,
    convert,
    describe,
    file_error,
    is_secret_name,
    name_text,
    path_text,
    suggestion,
    takes_text,
    whole,
)

MOST_NODES = 100_000
"""How many values a file may hold once its aliases are followed: a few lines can name billions."""
_NOTHING = object()
"""What a key that was left empty, or could not be read, holds."""
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = {_TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp", "value", "merge")}
_Item = tuple[str, yaml.Node, yaml.Node]
"""A key of a mapping, its node, and the node of its value."""


class DocumentReader:
    """Reads one document."""

    def __init__(self, file: str) -> None:
        """`file` is its name, as problems show it."""
        self.problems: list[Problem] = []
        """What is wrong, in the order of the file."""
        self.warnings: list[str] = []
        """What is odd but no mistake."""
        self.lines: dict[Path, int] = {}
        """The line of each value that was read."""
        self._file = file
        self._above: set[int] = set()
        self._reported: set[Path] = set()
        self._nodes = 0

    def read_document(self, text: str) -> dict[str, Any]:
        """The values of a whole file. Raises `ConfigError` where it is no YAML; other mistakes are in `problems`."""
        node = self._compose(text)
        values = _NOTHING if node is None else self._read(node, inspect.type_info(Config), ())
        return values if isinstance(values, dict) else {}

    def _compose(self, text: str) -> yaml.Node | None:
        try:
            # Nodes only, with the loader that knows plain data: nothing is ever constructed from a tag.
            node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise file_error(self._file, mark.line + 1 if mark else 0, _explain(error)) from error
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            message = f"holds the character U+{ord(text[error.position]):04X}, which YAML does not allow"
            raise file_error(self._file, line, message) from error
        except RecursionError as error:
            raise file_error(self._file, 0, "nested too deeply") from error
        except (ValueError, OverflowError) as error:
            # PyYAML lets these through: an escape beyond Unicode, a directive with a number of thousands of digits.
            raise file_error(self._file, 0, f"not YAML: {error}") from error
        return node

    def _read(self, node: yaml.Node, wanted: inspect.Type, path: Path) -> Any:
        """The node as a value of this type; `_NOTHING` where it is empty or wrong."""
        # Also of values that turn out wrong: a later check may report them, or what stands beside them.
        self.lines[path] = node.start_mark.line + 1
        self._nodes += 1
        if self._nodes > MOST_NODES:
            # Once, though every further value of the document comes here.
            if self._nodes == MOST_NODES + 1:
                self._report(node, path, "more values than a configuration can hold; are aliases nested?")
            return _NOTHING
        # An alias may stand inside what it names. Nodes on the way from the root, not all that were seen: the same
        # section may be used in several places.
        if id(node) in self._above:
            return self._report(node, path, "an alias of something that it is itself a part of")
        self._above.add(id(node))
        try:
            return self._value(node, wanted, path)
        except InvalidValueError as error:
            return self._report(node, path, str(error))
        finally:
            self._above.discard(id(node))

    def _report(self, node: yaml.Node, path: Path, message: str) -> Any:
        """Add a problem; returns `_NOTHING`, which is what the node then holds."""
        self._reported.add(path)
        self.problems.append(Problem(Origin(self._file, node.start_mark.line + 1), path_text(path), message))
        return _NOTHING

    def _value(self, node: yaml.Node, wanted: inspect.Type, path: Path) -> Any:
        if isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "null":
            return _NOTHING
        _check_tag(node)
        match wanted:
            case inspect.StructType():
                shorthand = getattr(wanted.cls, "SHORTHAND", "")
                if shorthand and isinstance(node, yaml.ScalarNode):
                    inner = next(field.type for field in wanted.fields if field.name == shorthand)
                    return {shorthand: self._value(node, inner, path)}
                return self._struct(node, wanted, path)
            case inspect.UnionType() if isinstance(node, yaml.MappingNode):
                # Of several types that a value may have, a section can be one only.
                section = next((kind for kind in wanted.types if isinstance(kind, inspect.StructType)), None)
                if section is not None:
                    return self._struct(node, section, path)
            case inspect.DictType():
                return self._dict(node, wanted.value_type, path)
            case inspect.VarTupleType():
                return self._list(node, wanted.item_type, path)
            case inspect.AnyType():
                return self._any(node, path)
        if not isinstance(node, yaml.ScalarNode):
            raise InvalidValueError(f"must be {describe(wanted)}, not {_kind(node)}")
        # Before the quotes are looked at: that the value is wrong is the more useful message.
        value = convert(node.value, wanted, secret=any(isinstance(step, str) and is_secret_name(step) for step in path))
        if node.style and not takes_text(wanted):
            raise InvalidValueError(f"must be {describe(wanted)}, without quotes")
        return value

    def _struct(self, node: yaml.Node, wanted: inspect.StructType, path: Path) -> dict[str, Any]:
        fields = {field.name: field for field in wanted.fields}
        found: dict[str, Any] = {}
        for key, key_node, value in self._items(node, path):
            if not path and key in RENAMED:
                where = Origin(self._file, key_node.start_mark.line + 1)
                self.warnings.append(f"{where}: {key} is called {RENAMED[key]} now")
                key = RENAMED[key]
            if key in fields:
                read = self._read(value, fields[key].type, (*path, key))
                if read is not _NOTHING:
                    found[key] = read
            elif wanted.forbid_unknown_fields:
                self._report(key_node, (*path, key), "unknown key" + suggestion(key, list(fields)))
        for field in wanted.fields:
            here = (*path, field.name)
            if field.required and field.name not in found:
                # A required field that was given and is wrong has been reported already.
                if here not in self.lines:
                    self._report(node, path, f"has no {field.name}")
                elif here not in self._reported:
                    self._report(node, here, "is empty")
        return found

    def _dict(self, node: yaml.Node, wanted: inspect.Type, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, _, value in self._items(node, path):
            read = self._read(value, wanted, (*path, key))
            if read is _NOTHING and isinstance(wanted, inspect.StructType):
                read = {}  # a model that is named, with no settings of its own
            if read is _NOTHING and isinstance(wanted, inspect.AnyType):
                read = None
            if read is not _NOTHING:
                found[key] = read
        return found

    def _list(self, node: yaml.Node, wanted: inspect.Type, path: Path) -> list[Any]:
        if isinstance(node, yaml.ScalarNode) and takes_text(wanted):
            return [whole(node.value)]  # one alone needs no list
        if not isinstance(node, yaml.SequenceNode):
            raise InvalidValueError(f"must be a list, not {_kind(node)}; write each entry after a `- `")
        found = []
        for place, item in enumerate(node.value):
            read = self._read(item, wanted, (*path, place))
            if read is _NOTHING and (*path, place) not in self._reported:
                self._report(item, (*path, place), "is empty")
            if read is _NOTHING and isinstance(wanted, inspect.StructType):
                read = {}  # so that those after it keep their places, and with them their lines
            if read is not _NOTHING:
                found.append(read)
        return found

    def _any(self, node: yaml.Node, path: Path) -> Any:
        """A value of `extra_body`, whose type only the upstream knows: what YAML takes it for."""
        if isinstance(node, yaml.MappingNode):
            return self._dict(node, inspect.AnyType(), path)
        if isinstance(node, yaml.SequenceNode):
            items = [self._read(item, inspect.AnyType(), (*path, place)) for place, item in enumerate(node.value)]
            return [None if item is _NOTHING else item for item in items]
        for kind, wanted in (("bool", inspect.BoolType()), ("int", inspect.IntType()), ("float", inspect.FloatType())):
            # `12:30` is a number to the base of 60 for YAML 1.1, and a time for everybody else.
            if node.tag == _TAG + kind and not (kind == "int" and ":" in node.value):
                return convert(node.value, wanted)
        return whole(node.value)

    def _items(self, node: yaml.Node, path: Path) -> list[_Item]:
        """The keys of a mapping with their nodes and values. Those that `<<` brings come after its own."""
        if not isinstance(node, yaml.MappingNode):
            raise InvalidValueError(f"must be {SECTION}, not {_kind(node)}")
        own: dict[str, _Item] = {}
        merged: list[_Item] = []
        for key_node, value in node.value:
            key = key_node.value
            if key_node.tag == _TAG + "merge":
                merged += self._merged(value, path)
            elif not isinstance(key_node, yaml.ScalarNode):
                self._report(key_node, path, f"a key must be text, not {_kind(key_node)}")
            elif key in own:
                first = own[key][1].start_mark.line + 1
                self._report(key_node, (*path, key), f"stands here twice; first on line {first}")
            else:
                own[key] = (whole(key), key_node, value)
        for item in merged:
            # By the rules of `<<` own keys win, and of several merged sections the first.
            own.setdefault(item[0], item)
        return list(own.values())

    def _merged(self, value: yaml.Node, path: Path) -> list[_Item]:
        # Merging reads no values, so it is counted here: sections that merge each other double with every line.
        self._nodes += len(value.value) + 1
        if id(value) in self._above or self._nodes > MOST_NODES:
            self._report(value, path, "`<<` of something that it is itself a part of, or of too much")
            return []
        self._above.add(id(value))
        try:
            if isinstance(value, yaml.MappingNode):
                return self._items(value, path)
            if isinstance(value, yaml.SequenceNode):
                return [item for one in value.value for item in self._merged(one, path)]
        finally:
            self._above.discard(id(value))
        self._report(value, path, f"`<<` takes a section, not {_kind(value)}")
        return []


def _explain(error: yaml.MarkedYAMLError) -> str:
    """What is wrong and what to do, where the parser's own message names a symptom only."""
    problem = error.problem or ""
    if "'\\t'" in problem:
        return "a tab; YAML is indented with spaces"
    if "expected a single document" in (error.context or ""):
        return "a second document begins here (`---`); one file holds one configuration"
    if problem == "mapping values are not allowed here":
        return "not YAML: a `:` where no key can stand; is the indentation right, or does a text need quotes?"
    if "undefined alias" in problem or "cannot start any token" in problem or "duplicate anchor" in problem:
        return f"not YAML: {problem}; a text that begins with a sign needs quotes"
    context = f" {error.context}" if error.context else ""
    return f"not YAML:{context}{',' if context and problem else ''} {problem}".rstrip()


def _check_tag(node: yaml.Node) -> None:
    if isinstance(node, yaml.ScalarNode):
        known = node.tag in _PLAIN_TAGS
    else:
        known = node.tag == _TAG + ("map" if isinstance(node, yaml.MappingNode) else "seq")
    if not known:
        raise InvalidValueError(
            f"the tag {name_text(node.tag.replace(_TAG, '!!'))} is not known here; write the value without it"
        )


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a section"
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"
