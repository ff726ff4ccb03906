"""Calls as a response template describes them: a region between two anchors, its body read by a content parser.

The syntax is the template's field itself. Its reader keeps the region's text until the closing anchor, because only the
whole of it means something to the standard's parsers; more than the limit is no call. Then the field's parser and
transform say what the call is, and its arguments are written as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .._engine.calls.reader import Reader, Sink
from .._engine.calls.steps import StepReader, wait
from .._engine.calls.syntax import CallSyntax
from ._anchors import WINDOW_LIMIT, AnchorMatch, Search
from ._budget import REGION_SECONDS, PatternBudget, PatternTimeout
from ._content import ContentProblem, cast_calls, misfits, repeated_key, value_of
from ._template import TemplateField


class TemplateCalls(CallSyntax, frozen=True, kw_only=True):
    """Calls as the field `tool_calls` of a template has them."""

    field: TemplateField

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """The opener has decided. A region whose pattern then does not match is a call that could not be read."""
        return True

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for one region."""
        return TemplateReader(self, sink, opener)


class TemplateReader(StepReader):
    """Reads one region."""

    def __init__(self, syntax: TemplateCalls, sink: Sink, opener: str) -> None:
        super().__init__(sink)
        self._field = syntax.field
        self._opener = opener
        self._pieces: list[str] = []
        self._size = 0
        self._begun = False
        close = syntax.field.close
        searched = close is not None and (close.literals or close.pattern is not None)
        self._search = Search(close, PatternBudget(REGION_SECONDS)) if close is not None and searched else None

    def _lead(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """The whole region: what cannot be the beginning of its closing anchor is taken, the rest waits."""
        if not self._begun:
            self._sink.begin(base + at)
            self._begun = True
        found, stop = None, end
        if self._search is not None:
            # One more than the offset: no pattern of a closer may take this for the beginning of the output.
            found, stop = self._search.scan(text[:end], at, base + at + 1, final)
        stop = found.start if found is not None else stop
        left = self._sink.limit - self._size
        if stop - at > left:
            self._sink.limited("a call was held for too long")
            return self._reject(at + left, "the call is too long")
        self._pieces.append(text[at:stop])
        self._size += stop - at
        if found is None and not final:
            return wait(stop)
        return self._read("".join(self._pieces), stop, base, found)

    def _read(self, body: str, stop: int, base: int, close: AnchorMatch | None) -> int:
        """The region is whole, up to its closing anchor or to the end of the input."""
        try:
            body, groups = self._opened(body)
            name, id, arguments = self._call(body, groups)
        except ContentProblem as problem:
            return wait(stop) if close is None else self._reject(stop, str(problem))
        self._sink.head(name, id)
        if (key := repeated_key(self._field, body)) is not None:
            self._sink.repeated(key)
        tools = self._sink.tools
        schema = tools.parameters(name) if tools is not None else None
        properties = schema.get("properties") if schema is not None else None
        if isinstance(properties, dict):
            cast_calls({"function": {"name": name, "arguments": arguments}}, {name: properties})
            for key in misfits(arguments, properties):
                self._sink.invalid(key)
        self._sink.arguments(json.dumps(arguments, ensure_ascii=False))
        if close is not None:
            stop = close.stop
        elif self._search is not None:
            self._sink.missing_close(base + stop)
        self._sink.end(base + stop, alone=True)
        return self._done(stop)

    def _opened(self, body: str) -> tuple[str, dict[str, str]]:
        """The body behind the whole of the opener, and what the opener's groups hold."""
        anchor = self._field.open
        if anchor is None or anchor.pattern is None:
            return body, {}
        budget = PatternBudget(REGION_SECONDS)
        budget.grow(min(len(body), WINDOW_LIMIT))
        try:
            match = budget.run(anchor.pattern.match, self._opener + body, 0, len(self._opener) + WINDOW_LIMIT)
        except PatternTimeout as problem:
            raise ContentProblem(f"open_pattern was given up: {problem}") from problem
        if match is None:
            raise ContentProblem("what follows the opening marker is not as the template has it")
        groups = {name: value for name, value in match.groupdict().items() if value is not None}
        return body[match.end() - len(self._opener) :], groups

    def _call(self, body: str, groups: Mapping[str, str]) -> tuple[str, str | None, dict[str, Any]]:
        value = value_of(self._field, body, groups)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        function = value.get("function") if isinstance(value, dict) else None
        if not isinstance(function, dict):
            raise ContentProblem("the region is not one call")
        name, arguments = function.get("name"), function.get("arguments", {})
        if not isinstance(name, str) or not name.strip():
            raise ContentProblem("the call names no function")
        if not isinstance(arguments, dict):
            raise ContentProblem("the arguments are no object")
        id = value.get("id")
        return name.strip(), id if isinstance(id, str) else None, arguments
