"""What a call may be, for each call syntax: the same markers, keys and tags by which it is read.

A syntax becomes a `ConstrainedCalls`: what opens it, every call that the given tools allow, as the family writes it,
and what closes it. Where a syntax reads more than one spelling (key names, a fence, brackets), those that families
write are all allowed, and what is read only because models slip is not.

    HERMES, a tool f   ->  "<tool_call>", then `{"name": "f", "arguments": ` and JSON that f's schema allows and `}`
    GLM, a tool f      ->  "<tool_call>", then `f` and for each parameter `<arg_key>a</arg_key><arg_value>`, a value...

In values that are not JSON no marker of the format may stand, because there the first one ends the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ...errors import UsageError
from ..calls.brace_calls import BraceCalls
from ..calls.json_calls import JsonCalls
from ..calls.keyed_calls import KeyedCalls
from ..calls.named_calls import NamedCalls
from ..calls.nested_calls import NestedCalls
from ..calls.python_calls import PythonCalls
from ..calls.syntax import CallSyntax
from ..calls.tagged_value import CDATA, CDATA_CLOSE
from ..calls.xml_calls import Tag, XmlCalls
from .pieces import GAP, JSON_GAP, Piece, const, either, literal, optional, regex, repeat, separated, sequence
from .values import Literals, ToolArguments, allowed, comma_separated, count, python_string

_NAME = re.compile(r"[\w./:$@-]++")
"""Names of tools and arguments that stand in tags and headers as they are."""
_NUMBERS = {name: ["integer", "number"] for name in ("integer", "number")}


class ConstrainedCalls(msgspec.Struct, frozen=True):
    """The calls behind one opener."""

    openers: tuple[str, ...]
    """What may open it."""
    content: Piece
    """What follows, up to what closes it."""
    close: str = ""
    """What closes it. Where nothing does, only further calls may follow."""


def call_region(syntax: CallSyntax, tools: Sequence[ToolArguments], markers: tuple[str, ...]) -> ConstrainedCalls:
    """The calls that a syntax may write. `markers` are the format's: no value that is not JSON holds one.

    Raises a `UsageError` for a syntax that cannot be constrained.
    """
    if syntax.bare:
        raise UsageError("its calls need no opening marker, so nothing shows where free text ends and a call begins")
    if syntax.open_at_line and not syntax.section:
        raise UsageError(f"{syntax.open[0]!r} opens a call only where a line begins, which no tag can test")
    for kind, write in _WRITERS:
        if isinstance(syntax, kind):
            return write(syntax, tools, markers)
    raise UsageError(f"{type(syntax).__name__} cannot be constrained")


def _first(markers: tuple[str, ...]) -> str:
    return markers[0] if markers else ""


def written_name(name: str, what: str = "tool") -> str:
    """A name that stands in a tag or a header as it is."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"the name of the {what} {name!r} cannot be written where calls are not JSON")
    return name


def _sectioned(syntax: CallSyntax, call: Piece) -> ConstrainedCalls:
    """Calls, each with its own markers, in a section."""
    return ConstrainedCalls(syntax.section[:1], sequence(GAP, separated(call, GAP), GAP), syntax.section_close[0])


def _json(syntax: JsonCalls, tools: Sequence[ToolArguments], markers: tuple[str, ...]) -> ConstrainedCalls:
    call = either([_json_call(syntax, tool) for tool in tools])
    if syntax.listed:
        call = sequence(separated(call, regex(rf",{JSON_GAP}")), regex(rf"{JSON_GAP}\]"))
    bracket = syntax.listed and not syntax.open[0].endswith("[")
    indent = regex(JSON_GAP) if syntax.listed else const("")
    lead = optional(const(syntax.lead)) if syntax.lead else const("")
    opened = sequence(GAP, lead, GAP if syntax.lead else const(""), const("[" if bracket else ""), indent, call)
    return ConstrainedCalls(syntax.open, sequence(opened, GAP) if syntax.close else opened, _first(syntax.close))


def _json_call(syntax: JsonCalls, tool: ToolArguments) -> Piece:
    name = literal(json.dumps(tool.tool, ensure_ascii=False))
    begin, end = rf"\{{{JSON_GAP}", regex(rf"{JSON_GAP}\}}")
    if syntax.keyed:
        return sequence(regex(rf"{begin}{name}:{JSON_GAP}"), json_arguments(tool), end)
    id = rf'("({_keys(syntax.ids)})":{JSON_GAP}"[\w-]{{1,64}}",{JSON_GAP})?'
    named = rf'"({_keys(syntax.names)})":{JSON_GAP}{name},{JSON_GAP}'
    return sequence(regex(rf'{begin}{id}{named}"({_keys(syntax.arguments)})":{JSON_GAP}'), json_arguments(tool), end)


def _keys(keys: tuple[str, ...]) -> str:
    return "|".join(map(literal, keys))


def json_arguments(tool: ToolArguments) -> Piece:
    """ToolArguments that are one JSON object."""
    return tool.whole(tool.schema)


def _named(syntax: NamedCalls, tools: Sequence[ToolArguments], markers: tuple[str, ...]) -> ConstrainedCalls:
    call = either([_named_call(syntax, tool) for tool in tools])
    close = _first(syntax.close)
    if syntax.section:
        begin = next(marker for marker in syntax.open if marker != syntax.before_name)
        return _sectioned(syntax, sequence(const(begin), GAP, call, const(close)))
    return ConstrainedCalls(syntax.open, sequence(GAP, call), close)


def _named_call(syntax: NamedCalls, tool: ToolArguments) -> Piece:
    name = written_name(tool.tool)
    pieces = [const(syntax.before_name)]
    pieces += [const(f"functions.{name}:"), regex(r"[0-9]{1,4}")] if syntax.numbered else [const(name)]
    if syntax.call_id:
        pieces.append(optional(sequence(const(syntax.call_id), regex(r"[A-Za-z0-9_-]{1,64}"))))
    if syntax.separators:
        separator = const(syntax.separators[0])
        pieces.append(optional(separator) if syntax.direct else separator)
    if syntax.before_arguments:
        pieces.append(optional(const(syntax.before_arguments)))
    arguments = json_arguments(tool)
    if syntax.fenced and not syntax.separators:
        return sequence(*pieces, const("\n```json\n"), arguments, const(f"\n```{syntax.behind_arguments}"), GAP)
    return sequence(*pieces, GAP, arguments, GAP, const(syntax.behind_arguments))


def _opening(tag: Tag, name: str, more: str = "") -> str:
    """A tag with its name, and what else it has."""
    if not tag.attribute:
        return f"{tag.start}{written_name(name, 'function or parameter')}{tag.stop}"
    written_name(name, "function or parameter")
    return f'{tag.start} {tag.attribute}="{name}"{more}{tag.stop}'


def _xml(syntax: XmlCalls, tools: Sequence[ToolArguments], markers: tuple[str, ...]) -> ConstrainedCalls:
    call = either([_xml_call(syntax, tool, markers) for tool in tools])
    if syntax.wrappers:
        preface = optional(const(syntax.preface)) if syntax.preface else const("")
        call = sequence(GAP, preface, call, GAP)
        if not syntax.section:
            return ConstrainedCalls(syntax.wrappers, call, syntax.close[0])
        call = sequence(const(syntax.wrappers[0]), call, const(syntax.close[0]))
    if syntax.section:
        return _sectioned(syntax, call)
    # The tag of the call itself opens it, and a name follows what is common to all.
    start = syntax.open[0]
    calls = [_between(start, _xml_call(syntax, tool, markers), syntax.call_close) for tool in tools]
    return ConstrainedCalls((start,), either(calls), syntax.call_close)


def _between(start: str, piece: Piece, end: str) -> Piece:
    """A sequence without what its first text begins with and its last one ends with."""
    first, *rest, last = piece["elements"]
    begun, ended = first["value"].removeprefix(start), last["value"].removesuffix(end)
    return sequence(const(begun), *rest, const(ended))


def _xml_call(syntax: XmlCalls, tool: ToolArguments, markers: tuple[str, ...]) -> Piece:
    excludes = (syntax.parameter_close, syntax.parameter.literal, *(text for text, _ in syntax.pieces), *markers)
    if syntax.cdata:
        excludes = (CDATA, CDATA_CLOSE, *excludes)
    frame = const("\n") if syntax.framed else const("")
    end = ("\n" if syntax.framed else "") + syntax.parameter_close

    def parameter(key: str, schema: Any) -> Piece:
        return sequence(tagged(key, schema), const(end), GAP)

    def tagged(key: str, schema: Any) -> Piece:
        attribute, word = syntax.string
        if not attribute:
            value = tool.raw(schema, excludes, syntax.parameter_close)
            if syntax.cdata:
                value = either([value, sequence(const(CDATA), value, const(CDATA_CLOSE))])
            return sequence(const(_opening(syntax.parameter, key)), frame, value)
        options: list[Piece] = []
        for type, value in tool.raw_by_type(schema, excludes, syntax.parameter_close):
            # A number may be called either; the others have one name each.
            names = [word] if type == "string" else ["false"] if word == "true" else _NUMBERS.get(type, [type])
            opened = either([const(_opening(syntax.parameter, key, f' {attribute}="{name}"')) for name in names])
            options.append(sequence(opened, value))
        return either(options)

    begin = _opening(syntax.call, tool.tool)
    if syntax.call.counted:
        counted = optional(sequence(const(f' {syntax.call.counted}="'), regex("[0-9]{1,4}"), const('"')))
        opened = sequence(const(begin.removesuffix(syntax.call.stop)), counted, const(syntax.call.stop))
    else:
        opened = const(begin)
    body = tool.one_by_one(parameter)
    if syntax.json and not syntax.json_tag and not syntax.wrappers and not syntax.section:
        body = json_arguments(tool)  # Functionary 3.1, Llama's own style: the parameters are read, but not written
    return sequence(opened, GAP, body, const(syntax.call_close))


def _keyed(syntax: KeyedCalls, tools: Sequence[ToolArguments], markers: tuple[str, ...]) -> ConstrainedCalls:
    tags = (syntax.key, syntax.key_close, syntax.value, syntax.value_close)
    # Where the word null is nothing, no string may be that word.
    null = "null" if syntax.nulls else ""
    excludes = tuple(marker for marker in (*tags, syntax.separator, syntax.type, *markers, null) if marker)

    def call(tool: ToolArguments) -> Piece:
        def pair(key: str, schema: Any) -> Piece:
            value = tool.raw(schema, excludes, syntax.value_close)
            named = const(syntax.key + written_name(key, "parameter") + syntax.key_close)
            typed = const("")
            if syntax.type:
                typed = optional(sequence(const(syntax.type), regex(r"[a-z]{1,16}"), const(syntax.type_close)))
            return sequence(named, typed, GAP, const(syntax.value), value, const(syntax.value_close), GAP)

        separator = optional(const(syntax.separator)) if syntax.separator else const("")
        return sequence(const(written_name(tool.tool)), separator, GAP, tool.one_by_one(pair))

    calls = sequence(GAP, either([call(tool) for tool in tools]))
    if syntax.section:
        return _sectioned(syntax, sequence(const(syntax.open[0]), calls, const(syntax.close[0])))
    return ConstrainedCalls(syntax.open, calls, syntax.close[0])


def _brace(syntax: BraceCalls, tools: Sequence[ToolArguments], markers: tuple[str, ...]) -> ConstrainedCalls:
    excludes = (syntax.quote, *markers)

    def call(tool: ToolArguments) -> Piece:
        def string(schema: Mapping[str, Any]) -> Piece:
            value = tool.raw({"type": "string", **schema}, excludes, syntax.quote)
            return sequence(const(syntax.quote), value, const(syntax.quote))

        literals = Literals(
            tool, string, lambda key: const(written_name(key, "parameter") + ":"), ("true", "false", "null")
        )
        return sequence(
            const(syntax.prefix + written_name(tool.tool)), literals.write({**tool.schema, "type": "object"})
        )

    return ConstrainedCalls(syntax.open, either([call(tool) for tool in tools]), syntax.close[0])


def _python(syntax: PythonCalls, tools: Sequence[ToolArguments], markers: tuple[str, ...]) -> ConstrainedCalls:
    def call(tool: ToolArguments) -> Piece:
        def key(name: str) -> Piece:
            return sequence(regex(rf'"{literal(name)}"|\'{literal(name)}\''), const(":"), GAP)

        def argument(name: str, schema: Any) -> Piece:
            if not name.isidentifier():
                raise UsageError(f"the name of the parameter {name!r} cannot be written where calls are Python")
            return sequence(const(f"{name}="), literals.write(schema))

        literals = Literals(tool, python_string, key, ("True", "False", "None"))
        return sequence(const(written_name(tool.tool) + "("), comma_separated(list(tool.each(argument))), const(")"))

    call_of_any = either([call(tool) for tool in tools])
    comma = sequence(const(","), GAP)
    calls = sequence(const("["), separated(call_of_any, comma), const("]"))
    if syntax.lines:
        calls = either([calls, separated(call_of_any, const("\n"))])
    return ConstrainedCalls(syntax.open, sequence(GAP, calls, GAP), syntax.close[0])


def _nested(syntax: NestedCalls, tools: Sequence[ToolArguments], markers: tuple[str, ...]) -> ConstrainedCalls:
    start = syntax.parameter.start
    excludes = (start, *markers)

    def call(tool: ToolArguments) -> Piece:
        def tagged(name: str, schema: Any) -> Piece:
            return sequence(const(f"{start}{name}>"), value(schema), const(f"{start}/{name}>"))

        def value(schema: Any) -> Piece:
            with tool.inside(schema := tool.resolve(schema)):
                branches = allowed(schema) if isinstance(schema, Mapping) else [schema]
                return either([one(branch) if branch is schema else value(branch) for branch in branches])

        def one(schema: Any) -> Piece:
            named = schema.get("type") if isinstance(schema, Mapping) else None
            if named == "object":
                return ToolArguments(tool.tool, schema, tool.root).one_by_one(member)
            if named == "array":
                # A list without elements cannot be written: no tag at all is an empty text.
                least, most = max(count(schema, "minItems", 1), 1), count(schema, "maxItems", -1)
                return repeat(tagged(syntax.element, schema.get("items", {})), least, most)
            return tool.raw(schema, excludes, start)

        def member(key: str, schema: Any) -> Piece:
            return sequence(tagged(written_name(key, "parameter"), schema), GAP)

        return sequence(const(_opening(syntax.call, tool.tool)), GAP, tool.one_by_one(member), const(syntax.call_close))

    return _sectioned(syntax, either([call(tool) for tool in tools]))


_WRITERS: tuple[
    tuple[type[CallSyntax], Callable[[Any, Sequence[ToolArguments], tuple[str, ...]], ConstrainedCalls]], ...
] = (
    (JsonCalls, _json),
    (NamedCalls, _named),
    (NestedCalls, _nested),
    (XmlCalls, _xml),
    (KeyedCalls, _keyed),
    (BraceCalls, _brace),
    (PythonCalls, _python),
)
"""The nested kind before the kind that it is made from."""
