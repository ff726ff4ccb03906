"""The tools a caller gave: their names, and what type each argument has. Reads OpenAI's list of definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import UsageError


class Tools:
    """Tool definitions by name."""

    __slots__ = ("_parameters", "names")

    def __init__(self, definitions: Sequence[Mapping[str, Any]]) -> None:
        self._parameters: dict[str, Mapping[str, Any]] = {}
        for definition in definitions:
            if not isinstance(definition, Mapping):
                given = type(definitions if isinstance(definitions, str | Mapping) else definition).__name__
                raise UsageError(f"tools is a list of tool definitions, each an object as in OpenAI's API, not {given}")
            function = definition.get("function", definition)
            name = function.get("name") if isinstance(function, Mapping) else None
            if isinstance(name, str):
                schema = function.get("parameters") or function.get("input_schema") or {}
                self._parameters[name] = schema if isinstance(schema, Mapping) else {}
        self.names: frozenset[str] = frozenset(self._parameters)
        """Every name that may be called."""

    @property
    def schemas(self) -> Mapping[str, Mapping[str, Any]]:
        """The JSON schema of each tool's arguments, in the order of the definitions."""
        return self._parameters

    def resolve(self, name: str) -> str:
        """The tool that a name means: `f` for `weather.f` and `weather::f`, unless one is called so."""
        last = name.replace("::", ".").rpartition(".")[2]
        return last if name not in self.names and last in self.names else name

    def lists(self, name: str, key: str) -> bool:
        """Whether a tool has an argument of this name."""
        properties = self._parameters.get(name, {}).get("properties")
        return isinstance(properties, Mapping) and key in properties

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        """The JSON schema of a tool's arguments."""
        return self._parameters.get(name)
