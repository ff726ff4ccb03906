"""A response template as data: checked, and its anchors made ready for reading.

Owns the standard's keys (version 1) and what may stand in each. A template that transformers would refuse is refused
here too, with the key named; so is an anchor that cannot be read in one pass (`_anchors.py` says which those are).

    Template.load({"start_anchor": "<|assistant|>", "fields": {"content": {"close": "<|end|>"}}})
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import Error
from ._anchors import Anchor, PatternProblem, compile_pattern, finite_literals, literal_anchor, pattern_anchor
from ._budget import PatternBudget, PatternTimeout, needs_regex

TOP_KEYS = frozenset({"version", "defaults", "fields", "start_anchor", "start_anchor_pattern"})
FIELD_KEYS = frozenset(
    {
        "open",
        "open_pattern",
        "close",
        "close_pattern",
        "content",
        "content_args",
        "repeats",
        "join",
        "optional",
        "transform",
        "transform_each",
    }
)
PARSERS = frozenset({"text", "int", "float", "bool", "json", "xml-inline", "kv-lines"})
"""The content parsers of the standard."""
RAW_PARSERS = frozenset({"json", "xml-inline", "kv-lines"})
"""Those whose value is known only when the region closes."""
PLACEHOLDER = re.compile(r"\{(\w+(?:\.\w+)*)\}")
"""A value to be put in: `{name}`, `{content.arguments}`."""


class TemplateError(Error, ValueError):
    """A response template that cannot be read, or cannot be written."""

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        """The key at fault, with dots: `fields.tool_calls.open_pattern`."""
        self.reason = reason
        """What is wrong with it."""
        super().__init__(f"{key}: {reason}")


class TemplateField(msgspec.Struct, frozen=True, kw_only=True):
    """One field of the message and where it is found."""

    name: str
    open: Anchor | None = None
    close: Anchor | None = None
    content: str = "text"
    arguments: Mapping[str, Any] = {}
    repeats: bool = False
    join: str | None = None
    optional: bool = True
    transform: Any = None
    transform_each: bool = False

    @property
    def dirty(self) -> bool:
        """Whether its chunks are raw, because only the whole of it means something."""
        return self.content in RAW_PARSERS

    def check_runs(self) -> None:
        """`UsageError` where a pattern would have to run that nothing can stop."""
        for key, pattern in (
            ("open_pattern", self.open and self.open.pattern),
            ("close_pattern", self.close and self.close.pattern),
            ("content_args.tag_pattern", self.arguments.get("tag_pattern")),
        ):
            if isinstance(pattern, re.Pattern):
                raise needs_regex(f"fields.{self.name}.{key}")


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """A response template that was checked."""

    start: Any
    """What opens the assistant's turn in a prompt: literals, or a pattern."""
    fields: Mapping[str, TemplateField]
    defaults: Mapping[str, Any] = {}
    implicit: str | None = None
    """The field that takes what is outside of all others."""

    @classmethod
    def load(cls, given: Any) -> Template:
        """Check a template as it stands in a file; one that was loaded before is returned as it is."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise TemplateError("response_template", f"must be an object, not {type(given).__name__}")
        if given.get("version", 1) != 1:
            raise TemplateError("version", f"{given['version']!r} is not supported, only 1 is")
        _known(given, TOP_KEYS, "")
        defaults, fields = given.get("defaults", {}), given.get("fields")
        if not isinstance(defaults, Mapping):
            raise TemplateError("defaults", "must be an object")
        if not isinstance(fields, Mapping) or not fields:
            raise TemplateError("fields", "must be an object with at least one field")
        loaded = {str(name): _field(str(name), field) for name, field in fields.items()}
        implicit = [name for name, field in loaded.items() if field.open is None]
        if len(implicit) > 1:
            raise TemplateError("fields", f"only one field may have no opener, but {', '.join(implicit)} have none")
        return cls(
            start=_start(given),
            fields=loaded,
            defaults=copy.deepcopy(dict(defaults)),
            implicit=implicit[0] if implicit else None,
        )

    def check_runs(self) -> None:
        """`UsageError` where a pattern would have to run that nothing can stop."""
        for field in self.fields.values():
            field.check_runs()
        if isinstance(self.start, re.Pattern):
            raise needs_regex("start_anchor_pattern")

    def behind_start(self, prompt: str) -> tuple[str, str]:
        """What of a prompt belongs to the answer; and why that is all of it, where the start anchor was not found."""
        if isinstance(self.start, tuple):
            ends = [place + len(each) for each in self.start if (place := prompt.rfind(each)) >= 0]
            return (prompt[max(ends) :], "") if ends else (prompt, "is not in the prompt")
        budget = PatternBudget()
        budget.grow(len(prompt))
        try:
            found = budget.find_all(self.start, prompt)
        except PatternTimeout as problem:
            return prompt, f"was given up: {problem}"
        return (prompt[found[-1].end() :], "") if found else (prompt, "is not in the prompt")


def _known(given: Mapping[str, Any], keys: frozenset[str], scope: str) -> None:
    for key in given:
        if key not in keys:
            raise TemplateError(f"{scope}{key}", "is no key of the standard")


def _start(given: Mapping[str, Any]) -> Any:
    literals = _literals(given, "start_anchor", "")
    if literals is not None:
        return literals
    if "start_anchor_pattern" not in given:
        raise TemplateError("start_anchor", "is missing; it or start_anchor_pattern says where the answer begins")
    compiled = _compiled(given["start_anchor_pattern"], "start_anchor_pattern")
    return finite_literals(given["start_anchor_pattern"]) or compiled


def _compiled(pattern: Any, key: str) -> Any:
    if not isinstance(pattern, str):
        raise TemplateError(key, "must be a string")
    try:
        return compile_pattern(pattern)
    except PatternProblem as problem:
        raise TemplateError(key, str(problem)) from problem


def _literals(given: Mapping[str, Any], name: str, scope: str) -> tuple[str, ...] | None:
    """The literals of a key, or None; both forms of an anchor at once are a mistake."""
    if name not in given:
        return None
    key = scope + name
    if f"{name}_pattern" in given:
        raise TemplateError(key, f"cannot stand beside {name}_pattern")
    value = given[name]
    literals = [value] if isinstance(value, str) else value
    if not isinstance(literals, list | tuple) or not literals:
        raise TemplateError(key, "must be a string or a list of strings")
    if not all(isinstance(each, str) and each for each in literals):
        raise TemplateError(key, "must hold strings that are not empty")
    return tuple(dict.fromkeys(literals))


def _anchor(given: Mapping[str, Any], name: str, scope: str) -> Anchor | None:
    literals = _literals(given, name, scope)
    if literals is not None:
        return literal_anchor(literals)
    key = f"{name}_pattern"
    if key not in given:
        return None
    compiled = _compiled(given[key], scope + key)
    try:
        return pattern_anchor(given[key], compiled)
    except PatternProblem as problem:
        raise TemplateError(scope + key, str(problem)) from problem


def _field(name: str, given: Any) -> TemplateField:
    scope = f"fields.{name}."
    if not isinstance(given, Mapping):
        raise TemplateError(f"fields.{name}", "must be an object")
    _known(given, FIELD_KEYS, scope)
    content = given.get("content", "text")
    if content not in PARSERS:
        raise TemplateError(
            f"{scope}content", f"{content!r} is no content parser; there are {', '.join(sorted(PARSERS))}"
        )
    arguments = given.get("content_args", {})
    if not isinstance(arguments, Mapping):
        raise TemplateError(f"{scope}content_args", "must be an object")
    if content == "xml-inline":
        arguments = {**arguments, "tag_pattern": _tag_pattern(arguments.get("tag_pattern"), scope)}
    join = given.get("join")
    if join is not None and (not isinstance(join, str) or not given.get("repeats", False)):
        raise TemplateError(f"{scope}join", "must be a string, and needs repeats")
    transform, each = given.get("transform"), given.get("transform_each", False)
    if not isinstance(each, bool) or (each and transform is None):
        raise TemplateError(f"{scope}transform_each", "must be true or false, and needs a transform")
    _check_transform(transform, f"{scope}transform")
    opened, closed = _anchor(given, "open", scope), _anchor(given, "close", scope)
    if transform is None and (names := [*(opened.names if opened else ()), *(closed.names if closed else ())]):
        raise TemplateError(f"{scope}transform", f"is missing, so the groups {', '.join(sorted(names))} reach nobody")
    return TemplateField(
        name=name,
        open=opened,
        close=closed,
        content=content,
        arguments=arguments,
        repeats=bool(given.get("repeats", False)),
        join=join,
        optional=bool(given.get("optional", True)),
        transform=transform,
        transform_each=each,
    )


def _tag_pattern(pattern: Any, scope: str) -> Any:
    key = f"{scope}content_args.tag_pattern"
    if pattern is None:
        raise TemplateError(key, "is missing; xml-inline needs it")
    compiled = _compiled(pattern, key)
    if "key" not in compiled.groupindex:
        raise TemplateError(key, "has no group called key")
    return compiled


def _check_transform(transform: Any, key: str) -> None:
    """No string may hold a placeholder beside other text."""
    if isinstance(transform, Mapping):
        for name, value in transform.items():
            _check_transform(value, f"{key}.{name}")
    elif isinstance(transform, list):
        for value in transform:
            _check_transform(value, key)
    elif isinstance(transform, str) and PLACEHOLDER.search(transform) and not PLACEHOLDER.fullmatch(transform):
        raise TemplateError(key, f"{transform!r} holds a placeholder beside other text")
