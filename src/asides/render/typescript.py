"""Tool schemas as the TypeScript that gpt-oss was trained to read. Knows JSON Schema and no more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

_NAMES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "null": "null"}


def declarations(tools: Iterable[Mapping[str, Any]]) -> str:
    """A namespace with one function type for each tool."""
    lines = ["namespace functions {", ""]
    for tool in tools:
        lines += [f"// {line}" for line in str(tool.get("description") or "").splitlines()]
        parameters = tool.get("parameters") or {}
        if parameters.get("properties"):
            lines += [f"type {tool['name']} = (_: {{", *_fields(parameters), "}) => any;", ""]
        else:
            lines += [f"type {tool['name']} = () => any;", ""]
    return "\n".join([*lines, "} // namespace functions"])


def _fields(schema: Mapping[str, Any]) -> Iterable[str]:
    required = schema.get("required") or ()
    for name, field in schema["properties"].items():
        for line in str(field.get("description") or "").splitlines():
            yield f"// {line}"
        default = f" // default: {_default(field['default'])}" if "default" in field else ""
        yield f"{name}{'' if name in required else '?'}: {_type(field)},{default}"


def _default(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _type(schema: Mapping[str, Any]) -> str:
    choices = schema.get("enum")
    if choices:
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return " | ".join(dict.fromkeys(_type(choice) for choice in schema[key]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type({**schema, "type": one}) for one in kind)
    if kind == "array":
        items = _type(schema.get("items") or {})
        return f"({items})[]" if " | " in items else f"{items}[]"
    if kind == "object" and schema.get("properties"):
        return "\n".join(["{", *_fields(schema), "}"])
    return _NAMES.get(str(kind), "object" if kind == "object" else "any")
