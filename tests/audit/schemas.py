"""A validator for the part of JSON Schema that the schemas of the data use; an unknown keyword is an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
KNOWN = {
    *("$schema", "$defs", "$ref", "title", "description", "type", "enum", "const", "oneOf", "required"),
    *("properties", "additionalProperties", "items", "minItems", "minimum"),
}


def problems(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: str = "") -> Iterator[str]:
    """What is wrong with a value."""
    assert schema.keys() <= KNOWN, f"unknown keywords: {sorted(schema.keys() - KNOWN)}"
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_is(value, name) for name in types):
        yield f"{at}: {value!r} is no {' or '.join(types)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{at}: {value!r} is less than {schema['minimum']}"
    if "oneOf" in schema:
        fitting = sum(not list(problems(value, each, root, at)) for each in schema["oneOf"])
        if fitting != 1:
            yield f"{at}: {value!r} fits {fitting} of the shapes"
    if isinstance(value, dict):
        yield from _object(value, schema, root, at)
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{at}: too few items"
        for place, item in enumerate(value):
            yield from problems(item, schema.get("items", {}), root, f"{at}[{place}]")


def _object(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], at: str) -> Iterator[str]:
    own, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (f"{at}: {name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, item in value.items():
        if name in own:
            yield from problems(item, own[name], root, f"{at}.{name}")
        elif isinstance(others, Mapping):
            yield from problems(item, others, root, f"{at}.{name}")
        elif not others:
            yield f"{at}: there is no field {name}"


def _is(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and not (name == "integer" and isinstance(value, bool))
