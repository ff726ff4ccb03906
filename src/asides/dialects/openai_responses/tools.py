"""Tools of the Responses API that are no plain functions, as functions; and back.

A model server behind chat completions or Ollama knows functions only. So every tool that the *client* runs is offered
to the model as one:

- a member of a `namespace` under a joined name, `multi_agent__spawn`;
- a `custom` tool, which takes free text, with one string as its parameter; its grammar is kept in the description.

`Tool.origin` holds what the client calls it. The writer of replies turns calls back by it, and calls that come back in
`input` are given the model's name again (`RequestTools.name_of`). What only OpenAI's servers could run (`web_search`,
`file_search`, `mcp`...) and tools whose parameters only its models know have no counterpart: they are `hosted`.

    tools = RequestTools({"tools[0]": {"type": "namespace", "name": "files", "tools": [{"name": "read"}]}})
    tools.functions[0].name                      # "files__read"
    tools.name_of("read", "files")               # "files__read"
"""

from __future__ import annotations

import re
from typing import Any

from ..framing import to_json
from ..request import RequestError, Tool, ToolOrigin
from ..request_fields import expect, optional, read_tool, without
from ..whole_calls import to_object

INPUT = "input"
"""The one parameter of a custom tool as a function."""
LONGEST = 60
"""Characters of a name that is made here: OpenAI takes 64, and a number may come behind it."""
_UNFIT = re.compile("[^a-zA-Z0-9_-]")
"""What OpenAI allows in no name of a function."""
_FREE_TEXT = {
    "type": "object",
    "properties": {INPUT: {"type": "string", "description": "The whole input of the tool, as one string."}},
    "required": [INPUT],
    "additionalProperties": False,
}


class RequestTools:
    """The tools of a request: as the model is offered them, and what the client chooses among them."""

    def __init__(self, tools: dict[str, Any]) -> None:
        """`tools`: by their places in the request, which errors name."""
        self.functions: list[Tool] = []
        """What the model is offered."""
        self.others: dict[str, dict[str, Any]] = {}
        """Tools that are no plain functions, as they were, by place and type."""
        self.hosted: list[str] = []
        """Those of `others` that the model cannot be offered."""
        self._places: list[str] = []
        """Which of `others` each function was made of; empty for one that always was a function."""
        self._names: dict[ToolOrigin, str] = {}
        self._taken: set[str] = set()
        checked = {place: expect(tool, dict, place) for place, tool in tools.items()}
        # Plain functions first, so that they keep their names, whatever else would be joined to the same.
        for place in sorted(checked, key=lambda place: checked[place].get("type", "function") != "function"):
            self._read(checked[place], place)

    def _read(self, tool: dict[str, Any], place: str) -> None:
        kind = tool.get("type", "function")
        if kind == "function":
            extra = without(tool, "type", "name", "description", "parameters", "strict", "function")
            nested = tool.get("function")
            self._add(read_tool(nested if isinstance(nested, dict) else tool, place, extra), "")
            return
        entry = f"{place}.{kind}"
        self.others[entry] = tool
        if kind == "custom":
            self._add(self._offered(tool, place, "", ""), entry)
        elif kind == "namespace":
            self._read_namespace(tool, place, entry)
        else:
            self.hosted.append(entry)

    def _read_namespace(self, tool: dict[str, Any], place: str, entry: str) -> None:
        namespace = expect(tool.get("name"), str, f"{place}.name")
        # With its first member alone: with each of them it would be as long as all their own descriptions.
        about = optional(tool, "description", str, "", f"{place}.")
        for index, member in enumerate(optional(tool, "tools", list, [], f"{place}.")):
            inner = f"{place}.tools[{index}]"
            kind = expect(member, dict, inner).get("type", "function")
            if kind in ("function", "custom"):
                self._add(self._offered(member, inner, namespace, about), entry)
                about = ""
            else:
                self.hosted.append(f"{inner}.{kind}")

    def _offered(self, tool: dict[str, Any], place: str, namespace: str, about: str) -> Tool:
        """The function that stands for a custom tool, or for a member of a namespace."""
        origin = ToolOrigin(
            expect(tool.get("name"), str, f"{place}.name"), namespace, custom=tool.get("type") == "custom"
        )
        found = read_tool({**tool, "parameters": _FREE_TEXT} if origin.custom else tool, place, {})
        described = (
            f"Part of {namespace}: {about}" if about else "",
            found.description,
            _grammar(optional(tool, "format", dict, {}, f"{place}.")) if origin.custom else "",
        )
        return Tool(
            self._new_name(origin), "\n\n".join(filter(None, described)), found.parameters, found.strict, origin=origin
        )

    def _add(self, tool: Tool, entry: str) -> None:
        self._taken.add(tool.name)
        self.functions.append(tool)
        self._places.append(entry)

    def _new_name(self, origin: ToolOrigin) -> str:
        joined = f"{origin.namespace.rstrip('_')}__{origin.name}" if origin.namespace else origin.name
        name = joined = _UNFIT.sub("_", joined)[:LONGEST]
        number = 1
        while name in self._taken:
            number += 1
            name = f"{joined}_{number}"
        self._taken.add(name)
        self._names[origin] = name
        return name

    def name_of(self, name: str, namespace: str = "", custom: bool = False) -> str:
        """The name by which the model knows a tool that the client names so."""
        found = self._names.get(ToolOrigin(name, namespace, custom))
        if found is not None:
            return found
        if namespace or custom:
            return self._new_name(ToolOrigin(name, namespace, custom))  # of an earlier turn, and no longer offered
        # Some clients leave out the namespace; it is clear where no other tool has the name.
        members = [tool.name for tool in self.functions if tool.origin is not None and tool.origin.name == name]
        known = any(tool.name == name for tool in self.functions)
        return members[0] if len(members) == 1 and not known else name

    # What the client chooses.

    def choose(self, value: Any) -> str | None:
        """`auto`, `none`, `required` or `function:NAME`; None for a hosted tool. Drops tools that are not allowed."""
        choice = self._choice(value)
        # What is forced must then be a tool that nobody here can run.
        return None if choice == "required" and self.hosted and not self.functions else choice

    def _choice(self, value: Any) -> str | None:
        if value in (None, "auto", "none", "required"):
            return value or "auto"
        if not isinstance(value, dict):
            raise RequestError("tool_choice must be auto, none, required, or name a tool", "tool_choice")
        kind, tools = value.get("type"), value.get("tools")
        if kind in ("function", "custom"):
            return f"function:{self._named(value, 'tool_choice')}"
        if kind != "allowed_tools" or not isinstance(tools, list):
            return None
        self._allow([expect(tool, dict, f"tool_choice.tools[{index}]") for index, tool in enumerate(tools)])
        return "required" if value.get("mode") == "required" else "auto"

    def _named(self, choice: dict[str, Any], place: str) -> str:
        nested = choice.get("function")
        name = nested.get("name") if isinstance(nested, dict) else choice.get("name")
        namespace = optional(choice, "namespace", str, "", f"{place}.")
        return self.name_of(expect(name, str, f"{place}.name"), namespace, choice.get("type") == "custom")

    def _allow(self, choices: list[dict[str, Any]]) -> None:
        named = [choice for choice in choices if choice.get("type") in ("function", "custom")]
        names = {self._named(choice, f"tool_choice.tools[{index}]") for index, choice in enumerate(named)}
        spaces = {choice.get("name") for choice in choices if choice.get("type") == "namespace"}
        kinds = {choice.get("type") for choice in choices}
        kept = [
            (tool, entry)
            for tool, entry in zip(self.functions, self._places, strict=True)
            if tool.name in names or (tool.origin is not None and tool.origin.namespace in spaces - {""})
        ]
        self.functions = [tool for tool, _ in kept]
        self._places = [entry for _, entry in kept]
        self.hosted = [entry for entry in self.hosted if entry.rpartition(".")[2] in kinds]
        self.others = {
            entry: tool for entry, tool in self.others.items() if entry in self._places or entry in self.hosted
        }


def _grammar(format: dict[str, Any]) -> str:
    """What a custom tool's input must look like, for a model that nothing holds to it."""
    if format.get("type") != "grammar":
        return ""
    return f"The input must match this {format.get('syntax', '')} grammar:\n\n{format.get('definition', '')}"


def input_of(arguments: str) -> str:
    """The free text in the arguments that a model wrote for a custom tool."""
    value = to_object(arguments)
    texts = list(value.values()) if value is not None else []
    # Under whatever name, as long as there is nothing besides. All else goes to the tool as it is: nothing the model
    # wrote is lost, and the tool's complaint is what makes it try again.
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else arguments


def arguments_of(text: str) -> str:
    """The arguments of a call whose free text comes back."""
    return to_json({INPUT: text}).decode()


def write_choice(choice: str, tools: tuple[Tool, ...]) -> str | dict[str, Any]:
    """A choice of tools, in this dialect's shape."""
    kind, colon, name = choice.partition(":")
    if not colon:
        return choice
    origin = next((tool.origin for tool in tools if tool.name == name), None)
    if origin is None:
        return {"type": kind, "name": name}
    return {"type": "custom" if origin.custom else kind, "name": origin.name, **in_namespace(origin)}


def in_namespace(origin: ToolOrigin) -> dict[str, str]:
    """The field that names a tool's namespace, where it has one."""
    return {"namespace": origin.namespace} if origin.namespace else {}
