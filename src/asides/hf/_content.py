"""From the text of a region to the field's value: content parsers, transforms, and types by the tools' schemas.

What the standard says of each parser is followed to the letter, with one exception: a body that a parser cannot read is
a `ContentProblem`, which the reader reports beside the raw text. No model output raises anything else.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ._anchors import PatternProblem, compile_pattern
from ._budget import REGION_SECONDS, PatternBudget, PatternTimeout
from ._template import PLACEHOLDER, TemplateField

_BARE_KEY = re.compile(r"(?<=[{,])(\w+):")
_NO_PARSER: Mapping[str, Any] = {}


class ContentProblem(Exception):
    """A region that its field's parser or transform cannot read."""


def value_of(field: TemplateField, body: str, groups: Mapping[str, str]) -> Any:
    """The value of a region, in the shape that the field gives it."""
    try:
        value = _parse(body, field.content, field.arguments)
        if field.transform is None:
            return value
        if not field.transform_each:
            return _fill(field.transform, {**groups, "content": value})
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise ContentProblem("the region is no list of objects")
        return [_fill(field.transform, {**groups, **item}) for item in value]
    except RecursionError as error:
        raise ContentProblem("the region is nested too deeply") from error


def _parse(body: str, parser: str, arguments: Mapping[str, Any]) -> Any:
    if parser == "json":
        return _json(body, arguments)
    if parser == "xml-inline":
        return _tags(body, arguments)
    if parser == "kv-lines":
        return _lines(body, arguments)
    text = _stripped(body, arguments)
    if parser == "bool":
        return text.lower() in ("true", "1")
    if parser == "text":
        return text
    try:
        return int(text) if parser == "int" else float(text)
    except ValueError as error:
        raise ContentProblem(f"{text[:80]!r} is no number") from error


def _stripped(text: str, arguments: Mapping[str, Any]) -> str:
    return text.strip() if arguments.get("strip", True) else text


def _json(body: str, arguments: Mapping[str, Any]) -> Any:
    try:
        return json.loads(_as_json(body, arguments))
    except ValueError as error:
        if arguments.get("allow_non_json"):
            return _stripped(body, arguments)
        raise ContentProblem(f"the region is no JSON: {error}") from error


def _as_json(body: str, arguments: Mapping[str, Any]) -> str:
    """A body in the dialect that the arguments describe, as JSON. Strings are taken out before keys are quoted."""
    delimiters = [pair for pair in arguments.get("string_delims") or () if len(pair) == 2]
    unquoted = bool(arguments.get("unquoted_keys"))
    if not delimiters and not unquoted:
        return body
    pieces = [(body, False)]
    for opening, closing in delimiters:
        pieces = [
            cut for text, string in pieces for cut in ([(text, True)] if string else _cut(text, opening, closing))
        ]
    # A key may stand behind the piece before it, so a mark that no JSON holds stands for each string meanwhile.
    strings = [json.dumps(text) for text, string in pieces if string]
    joined = "\0".join(_runs(pieces))
    if unquoted:
        joined = _BARE_KEY.sub(r'"\1":', joined)
    plain = joined.split("\0")
    if len(plain) != len(strings) + 1:
        raise ValueError("it holds a character that no text has")
    return plain[0] + "".join(string + text for string, text in zip(strings, plain[1:], strict=True))


def _runs(pieces: list[tuple[str, bool]]) -> list[str]:
    """What stands before, between and behind the strings."""
    runs = [""]
    for text, string in pieces:
        if string:
            runs.append("")
        else:
            runs[-1] += text
    return runs


def _cut(text: str, opening: str, closing: str) -> list[tuple[str, bool]]:
    """A text cut into what is outside of strings and what is inside."""
    found: list[tuple[str, bool]] = []
    place = 0
    while True:
        start = text.find(opening, place)
        stop = text.find(closing, start + len(opening)) if start >= 0 else -1
        if stop < 0:
            return [*found, (text[place:], False)]
        found += [(text[place:start], False), (text[start + len(opening) : stop], True)]
        place = stop + len(closing)


def _inner(text: str, arguments: Mapping[str, Any]) -> Any:
    parser = arguments.get("value_parser")
    return text if parser is None else _parse(text, parser.get("name", "text"), parser.get("args", _NO_PARSER))


def _tags(body: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    merge = arguments.get("merge_duplicates", False)
    pattern = arguments.get("tag_pattern")
    if pattern is None or isinstance(pattern, str):  # inside a value parser, where nothing has looked at it before
        try:
            pattern = compile_pattern(pattern or "")
        except PatternProblem as problem:
            raise ContentProblem(str(problem)) from problem
    for match in _matches(pattern, body):
        groups = match.groupdict()
        key = groups.get("key")
        if key is None:
            raise ContentProblem("a tag has no key")
        value = _inner(groups.get("value") or "", arguments)
        if merge and key in found:
            found[key] = [*found[key], value] if isinstance(found[key], list) else [found[key], value]
        else:
            found[key] = value
    return found


def _matches(pattern: Any, body: str) -> list[Any]:
    """Every match of a foreign pattern in a region."""
    budget = PatternBudget(REGION_SECONDS)
    budget.grow(len(body))
    try:
        return budget.find_all(pattern, _ended(body, pattern.pattern))
    except (PatternTimeout, UsageError) as problem:
        raise ContentProblem(f"tag_pattern was given up: {problem}") from problem


_TAIL = re.compile(r"(?<!\\)(?:[^\\()\[\]{}?*+|^$.]|\\[^\w\s])+\Z")


def _ended(body: str, pattern: str) -> str:
    """A body up to the last place where a tag can end: behind it every opening tag would search to the end in vain."""
    tail = _TAIL.search(pattern)
    literal = re.sub(r"\\(.)", r"\1", tail[0]) if tail and "|" not in pattern else ""
    return body[: body.rfind(literal) + len(literal)] if literal and literal in body else "" if literal else body


def _lines(body: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    separator = arguments.get("kv_sep", ":")
    for line in body.split(arguments.get("line_sep", "\n")):
        key, separated, value = _stripped(line, arguments).partition(separator)
        if separated:
            found[_stripped(key, arguments)] = _inner(_stripped(value, arguments), arguments)
    return found


def _fill(transform: Any, scope: Mapping[str, Any]) -> Any:
    """A transform with its placeholders filled in."""
    if isinstance(transform, dict):
        return {key: _fill(value, scope) for key, value in transform.items()}
    if isinstance(transform, list):
        return [_fill(value, scope) for value in transform]
    whole = PLACEHOLDER.fullmatch(transform) if isinstance(transform, str) else None
    if whole is None:
        return transform
    value: Any = scope
    for key in whole[1].split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise ContentProblem(f"the region has no {whole[1]!r}")
        value = value[key]
    return value


# Types of arguments.


def cast_calls(value: Any, tools: Mapping[str, Mapping[str, Any]]) -> Any:
    """Give the arguments of calls the types that the tools' schemas name; what does not fit stays a string."""
    if isinstance(value, list):
        return [cast_calls(item, tools) for item in value]
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(function, dict):
        return value
    name, arguments = function.get("name"), function.get("arguments")
    if isinstance(name, str) and isinstance(arguments, dict):
        properties = tools.get(name, {})
        for key, argument in arguments.items():
            types = _types(properties.get(key))
            if isinstance(argument, str):
                arguments[key] = _cast(argument, types)
            elif isinstance(argument, list) and types and "array" not in types:
                arguments[key] = [_cast(item, types) if isinstance(item, str) else item for item in argument]
    return value


def _types(schema: Any) -> list[str]:
    """The types that a schema names, in its order."""
    if not isinstance(schema, Mapping):
        return []
    declared = schema.get("type")
    found = [declared] if isinstance(declared, str) else []
    if isinstance(declared, list):
        found += [each for each in declared if isinstance(each, str)]
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        for branch in branches if isinstance(branches, list) else ():
            found += _types(branch)
    if schema.get("nullable") and "null" not in found:
        found.append("null")
    return found


def _cast(text: str, types: list[str]) -> Any:
    for type in types:
        try:
            value = _CASTS[type](text) if type in _CASTS else _MISFIT
        except (ValueError, OverflowError, RecursionError):
            continue
        if value is not _MISFIT:
            return value
    return text


_MISFIT = object()


def _integer(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return int(number) if number.is_integer() else _MISFIT


def _number(text: str) -> Any:
    number = float(text)
    if not math.isfinite(number):
        return _MISFIT
    return int(number) if number.is_integer() and "." not in text else number


def _boolean(text: str) -> Any:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower(), _MISFIT)


def _null(text: str) -> Any:
    return None if text.strip() in ("null", "None") else _MISFIT


def _object(text: str) -> Any:
    value = json.loads(text)
    return value if isinstance(value, dict) else _MISFIT


def _array(text: str) -> Any:
    value = json.loads(text)
    return value if isinstance(value, list) else _MISFIT


_CASTS = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "object": _object,
    "array": _array,
}


def misfits(arguments: Mapping[str, Any], properties: Mapping[str, Any]) -> list[str]:
    """The arguments that are still strings though their schema names other types alone."""
    found = []
    for key, value in arguments.items():
        types = _types(properties.get(key))
        if isinstance(value, str) and types and "string" not in types:
            found.append(key)
    return found


def repeated_key(field: TemplateField, body: str) -> str | None:
    """A key that a region holds twice, where one value would hide the other."""
    seen: list[str] = []
    if field.content == "xml-inline" and not field.arguments.get("merge_duplicates"):
        pattern = field.arguments["tag_pattern"]
        return _twice([str(match["key"]) for match in _matches(pattern, body)])
    if field.content != "json":
        return None

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            seen.append(_twice([key for key, _ in pairs]) or "")
        return found

    try:
        json.loads(_as_json(body, field.arguments), object_pairs_hook=collect)
    except (ValueError, RecursionError):
        return None
    return seen[0] if seen else None


def _twice(keys: list[str]) -> str | None:
    met: set[str] = set()
    for key in keys:
        if key in met:
            return key
        met.add(key)
    return None
