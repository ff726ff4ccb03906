"""Tools of the Responses API that are no plain functions, as functions; and back.

A model server behind chat completions or Ollama knows functions only. So every tool that the *client* runs is offered
to the model as one:

- a member of a `namespace` under a joined name, `multi_agent__spawn`;
- a `custom` tool, which takes free text, with one string as its parameter; its grammar is kept in the description;
- a `tool_search` that the client carries out; what it finds (`tool_search_output`) is offered from then on.

`Tool.origin` holds what the client calls it. The writer of replies turns calls back by it, and calls that come back in
`input` are given the model's name again (`RequestTools.name_of`). What only OpenAI's servers could run (`web_search`,
`file_search`, `mcp`...) and tools whose parameters only its models know have no counterpart: they are `hosted`.

    tools = RequestTools({"tools[0]": {"type": "namespace", "name": "files", "tools": [{"name": "read"}]}})
    tools.functions[0].name                      # "files__read"
    tools.name_of("read", "files")               # "files__read"
"""

from __future__ import annotations

import re
from typing import Any, Literal

from .._custom_tools import FREE_TEXT, describe_format
from .._request import RequestError, Tool, ToolOrigin
from .._request_fields import Shape, expect, optional, read_tool, unknown_fields, without

ToolKind = Literal["function", "custom", "tool_search"]
LONGEST = 60
"""Characters of a name that is made here: OpenAI takes 64, and a number may come behind it."""
_UNFIT = re.compile("[^a-zA-Z0-9_-]")
"""What OpenAI allows in no name of a function."""

_NAMED: dict[str, Shape | None] = {**dict.fromkeys(("name", "namespace", "type")), "function": {"name": None}}
_CHOICE: Shape = {**_NAMED, "mode": None, "tools": [_NAMED]}
_OFFERED: Shape = {
    **dict.fromkeys(("description", "execution", "name", "parameters", "strict", "type")),
    "format": dict.fromkeys(("definition", "syntax", "type")),
}
_NAMESPACE: Shape = dict.fromkeys(("description", "name", "tools", "type"))
"""What is understood of a choice, of a tool that the model is offered as a function, and of a namespace."""


class RequestTools:
    """The tools of a request: as the model is offered them, and what the client chooses among them."""

    def __init__(self, tools: dict[str, Any], found: dict[str, Any] | None = None) -> None:
        """`tools`: by their places in the request, which errors name; `found`: those that a search has found."""
        self.functions: list[Tool] = []
        """What the model is offered."""
        self.others: dict[str, dict[str, Any]] = {}
        """Tools that are no plain functions, as they were, by place and type."""
        self.hosted: list[str] = []
        """Those of `others` that the model cannot be offered."""
        self.strange: list[str] = []
        """The places of what is not understood of a choice among them."""
        self._places: list[str] = []
        """Which of `others` each function was made of; empty for one that always was a function."""
        self._names: dict[ToolOrigin, str] = {}
        self._plain: set[str] = set()
        """The names of functions that always were functions."""
        self._strange: dict[str, list[str]] = {}
        """By the entry of a namespace: the places of what is not understood of it."""
        self._numbers: dict[str, int] = {}
        """By name: how many tools would have it."""
        self._members: dict[str, list[str]] = {}
        """By its own name: the names under which a tool is offered."""
        checked = {place: expect(tool, dict, place) for place, tool in (tools | (found or {})).items()}
        # Plain functions first, so that they keep their names, whatever else would be joined to the same.
        for place in sorted(checked, key=lambda place: checked[place].get("type", "function") != "function"):
            self._read(checked[place], place, place in (found or {}))

    def _read(self, tool: dict[str, Any], place: str, found: bool) -> None:
        kind = tool.get("type", "function")
        entry = f"{place}.{kind}"
        if kind != "function" and not found:  # what was found stays where it stands in the input
            self.others[entry] = tool
        if kind == "function" and not found:
            extra = without(tool, "type", "name", "description", "parameters", "strict", "function")
            nested = tool.get("function")
            plain = read_tool(nested if isinstance(nested, dict) else tool, place, extra)
            self._plain.add(plain.name)
            self._numbers.setdefault(plain.name, 1)
            self._add(plain, "")
        elif kind in ("function", "custom"):
            self._offer(tool, place, entry)
        elif kind == "tool_search" and tool.get("execution") == "client":
            self._offer({**tool, "name": kind}, place, entry)
        elif kind == "namespace":
            self._read_namespace(tool, place, entry)
        else:
            self.hosted.append(entry)

    def _read_namespace(self, tool: dict[str, Any], place: str, entry: str) -> None:
        namespace = expect(tool.get("name"), str, f"{place}.name")
        self._strange[entry] = list(unknown_fields(tool, _NAMESPACE, place))
        # With its first member alone: with each of them it would be as long as all their own descriptions.
        about = optional(tool, "description", str, "", f"{place}.")
        for index, member in enumerate(optional(tool, "tools", list, [], f"{place}.")):
            inner = f"{place}.tools[{index}]"
            kind = expect(member, dict, inner).get("type", "function")
            if kind in ("function", "custom"):
                self._offer(member, inner, entry, namespace, about)
                about = ""
            else:
                self.hosted.append(f"{inner}.{kind}")

    def _offer(self, tool: dict[str, Any], place: str, entry: str, namespace: str = "", about: str = "") -> None:
        """Add the function that stands for a tool which is none, or is a member of a namespace."""
        origin = ToolOrigin(expect(tool.get("name"), str, f"{place}.name"), namespace, tool.get("type", "function"))
        # Two searches may find the same tool.
        if origin in self._names or (origin.name in self._plain and origin == ToolOrigin(origin.name)):
            return
        custom = origin.kind == "custom"
        read = read_tool({**tool, "parameters": FREE_TEXT} if custom else tool, place, {})
        described = (
            f"Part of {namespace}: {about}" if about else "",
            read.description,
            describe_format(optional(tool, "format", dict, {}, f"{place}.")) if custom else "",
        )
        name = self._new_name(origin)
        self._members.setdefault(origin.name, []).append(name)
        # It is written by no other dialect as it was: what is not understood of it is only named.
        strange = dict.fromkeys([*unknown_fields(tool, _OFFERED, place), *self._strange.pop(entry, ())])
        text = "\n\n".join(filter(None, described))
        self._add(Tool(name, text, read.parameters, read.strict, strange, origin), entry)

    def _add(self, tool: Tool, entry: str) -> None:
        self.functions.append(tool)
        self._places.append(entry)

    def _new_name(self, origin: ToolOrigin) -> str:
        joined = f"{origin.namespace.rstrip('_')}__{origin.name}" if origin.namespace else origin.name
        name = joined = _UNFIT.sub("_", joined)[:LONGEST]
        # A numbered name may itself be taken. The count goes on where it stood, so that many alike cost no more each.
        while name in self._numbers:
            self._numbers[joined] += 1
            name = f"{joined}_{self._numbers[joined]}"
        self._numbers[name] = 1
        self._names[origin] = name
        return name

    def name_of(self, name: str, namespace: str = "", kind: ToolKind = "function") -> str:
        """The name by which the model knows a tool that the client names so."""
        origin = ToolOrigin(name, namespace, kind)
        if origin in self._names:
            return self._names[origin]
        if namespace or kind != "function":
            return self._new_name(origin)  # of an earlier turn, and no longer offered
        # Some clients leave out the namespace; it is clear where no other tool has the name.
        members = self._members.get(name, ())
        return members[0] if len(members) == 1 and name not in self._plain else name

    def names_of(self, tools: list[Any]) -> list[str]:
        """The names by which the model knows all of these, which a search has found."""
        found: list[str] = []
        for tool in tools:
            space = tool["name"] if tool.get("type") == "namespace" else ""
            members = optional(tool, "tools", list, []) if space else [tool]
            kinds = [(each.get("type", "function"), each) for each in members]
            found += [self.name_of(each["name"], space, kind) for kind, each in kinds if kind in ("function", "custom")]
        return found

    # What the client chooses.

    def choose(self, value: Any) -> str | None:
        """`auto`, `none`, `required` or `function:NAME`; None for a hosted tool. Drops tools that are not allowed."""
        choice = self._choice(value)
        self.strange = list(unknown_fields(value, _CHOICE, "tool_choice")) if isinstance(value, dict) else []
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
        return self.name_of(expect(name, str, f"{place}.name"), namespace, choice["type"])

    def _allow(self, choices: list[dict[str, Any]]) -> None:
        named = [choice for choice in choices if choice.get("type") in ("function", "custom")]
        names = {self._named(choice, f"tool_choice.tools[{index}]") for index, choice in enumerate(named)}
        spaces = {str(choice.get("name")) for choice in choices if choice.get("type") == "namespace"} - {""}
        kinds = {str(choice.get("type")) for choice in choices} - {"function", "custom"}
        kept = [
            (tool, entry)
            for tool, entry in zip(self.functions, self._places, strict=True)
            if tool.name in names
            or (tool.origin is not None and (tool.origin.namespace in spaces or tool.origin.kind in kinds))
        ]
        self.functions = [tool for tool, _ in kept]
        self._places = [entry for _, entry in kept]
        self.hosted = [entry for entry in self.hosted if entry.rpartition(".")[2] in kinds]
        left = {*self._places, *self.hosted}
        self.others = {entry: tool for entry, tool in self.others.items() if entry in left}


def write_choice(choice: str, tools: tuple[Tool, ...]) -> str | dict[str, Any]:
    """A choice of tools, in this dialect's shape."""
    kind, colon, name = choice.partition(":")
    if not colon:
        return choice
    origin = next((tool.origin for tool in tools if tool.name == name), None)
    if origin is None:
        return {"type": kind, "name": name}
    return {"type": origin.kind, "name": origin.name, **in_namespace(origin)}


def in_namespace(origin: ToolOrigin) -> dict[str, str]:
    """The field that names a tool's namespace, where it has one."""
    return {"namespace": origin.namespace} if origin.namespace else {}
