"""Tools of chat completions: functions, and custom tools, which other APIs are offered as functions of one string."""

from __future__ import annotations

from typing import Any

from .._custom_tools import custom_function
from .._request import Request, RequestError, Tool
from .._request_fields import Shape, expect, optional, read_nested_tool, unknown_fields

_NAMED: dict[str, Shape | None] = {"type": None, "function": {"name": None}, "custom": {"name": None}}
_CHOICE: Shape = {**_NAMED, "allowed_tools": {"mode": None, "tools": [_NAMED]}}
_GRAMMAR: Shape = {"type": None, "grammar": dict.fromkeys(("syntax", "definition"))}
_CUSTOM: Shape = {"type": None, "custom": {"name": None, "description": None, "format": _GRAMMAR}}
"""What is understood of a choice, and of a custom tool."""


class ChatTools:
    """The tools of a request, and what the client chooses among them."""

    def __init__(self, tools: list[Any]) -> None:
        self.functions: list[Tool] = []
        """What the model is offered."""
        self.others: list[dict[str, Any]] = []
        """Tools that are no functions, as they were, for the same dialect."""
        self.unknown: bool = False
        """Whether some of those have no counterpart anywhere else."""
        self.strange: list[str] = []
        """The places of what is not understood of a choice among them."""
        self._customs: dict[str, str] = {}
        """By the name of a custom tool: that of its function."""
        self._number = 1
        self._taken: set[str] = set()
        others: list[tuple[str, dict[str, Any]]] = []
        for index, tool in enumerate(tools):
            place = f"tools[{index}]"
            if expect(tool, dict, place).get("type", "function") == "function":
                self.functions.append(read_nested_tool(tool, place))
            else:
                others.append((place, tool))
        for place, tool in others:  # behind the functions, so that these keep their names
            if tool["type"] == "custom":
                self._add_custom(tool, place)
            else:
                self.unknown = True
                self.others.append(tool)

    def _add_custom(self, tool: dict[str, Any], place: str) -> None:
        custom = expect(tool.get("custom"), dict, f"{place}.custom")
        name = expect(custom.get("name"), str, f"{place}.custom.name")
        about = optional(custom, "description", str, "", f"{place}.custom.")
        format = optional(custom, "format", dict, {}, f"{place}.custom.")
        strange = dict.fromkeys(unknown_fields(tool, _CUSTOM, place))
        self.functions.append(custom_function(self.custom_name(name), about, format, name, strange))
        self.others.append(tool)

    def custom_name(self, name: str) -> str:
        """The name by which a model knows a custom tool: its own, unless a function has that."""
        if name in self._customs:
            return self._customs[name]
        if not self._customs:
            self._taken = {tool.name for tool in self.functions}
        found = name
        while found in self._taken:
            self._number += 1  # never used again, so that many alike cost no more each
            found = f"{name}_{self._number}"
        self._taken.add(found)
        self._customs[name] = found
        return found

    def choose(self, value: Any) -> str:
        """`auto`, `none`, `required` or `function:NAME`. Drops tools that are not allowed."""
        if value in ("auto", "none", "required"):
            return str(value)
        choice = value if isinstance(value, dict) else {}
        self.strange = list(unknown_fields(choice, _CHOICE, "tool_choice"))
        if choice.get("type") == "allowed_tools":
            return self._allow(expect(choice.get("allowed_tools"), dict, "tool_choice.allowed_tools"))
        return f"function:{self._named(choice, 'tool_choice')}"

    def _named(self, choice: dict[str, Any], place: str) -> str:
        function, custom = choice.get("function"), choice.get("custom")
        if isinstance(function, dict):
            return expect(function.get("name"), str, f"{place}.function.name")
        if isinstance(custom, dict):
            return self.custom_name(expect(custom.get("name"), str, f"{place}.custom.name"))
        raise RequestError(f"{place} must be auto, none, required, allowed_tools, or name a tool", place)

    def _allow(self, allowed: dict[str, Any]) -> str:
        place = "tool_choice.allowed_tools"
        mode = optional(allowed, "mode", str, "auto", f"{place}.")
        if mode not in ("auto", "required"):
            raise RequestError(f"{place}.mode must be auto or required", f"{place}.mode")
        listed = optional(allowed, "tools", list, [], f"{place}.")
        names = {
            self._named(expect(tool, dict, f"{place}.tools[{index}]"), f"{place}.tools[{index}]")
            for index, tool in enumerate(listed)
        }
        self.functions = [tool for tool in self.functions if tool.name in names]
        customs = [tool.origin.name for tool in self.functions if tool.origin is not None]
        self.others = [tool for tool in self.others if "custom" not in tool or tool["custom"]["name"] in customs]
        return mode


def write_choice(request: Request, same: bool) -> str | dict[str, Any]:
    """A choice of tools, in this dialect's shape."""
    _, colon, name = request.tool_choice.partition(":")
    if not colon:
        return request.tool_choice
    # Other dialects' tools are functions here, whatever they were.
    custom = next((tool.origin for tool in request.tools if tool.name == name), None) if same else None
    if custom is not None:
        return {"type": "custom", "custom": {"name": custom.name}}
    return {"type": "function", "function": {"name": name}}
