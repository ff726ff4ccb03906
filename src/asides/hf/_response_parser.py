"""`ResponseParser` and `parse_response`: the drop-in for those of transformers, with the same events and message.

A flat machine: inside a region only that region's closer counts; outside, every opener and the implicit field's closer.
The earliest anchor wins, then the longest, then openers before closers. It differs from the reference where that loses
or raises:

- No model output raises. A region that cannot be read is in the message under `unparsed_<field>`, with the reason.
- Nothing is overwritten: a second region of a field that does not repeat is joined to the first.
- An anchor is found at the same place however the stream is cut, and the cost grows with the stream alone.

    parser = ResponseParser(tokenizer.response_template, prefix=prompt)
    for chunk in stream:
        for event in parser.feed(chunk): ...
    message, events = parser.finalize()
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from ..errors import UsageError
from ._anchors import CONTEXT, WINDOW_LIMIT, AnchorMatch, Search
from ._content import ContentProblem, cast_calls, value_of
from ._template import Template, TemplateField

Tool = Mapping[str, Any] | Callable[..., Any]
"""A tool as chat templates take it: its definition, or a function that has one in its annotations."""

JOIN = "\n\n"
"""What stands between two texts of a field that says nothing of several."""
UNPARSED = "unparsed_"
"""Before a field's name: the regions of it that could not be read."""


def parse_response(
    text: str,
    response_template: Mapping[str, Any] | Template,
    *,
    prefix: str | None = None,
    tools: Sequence[Tool] | None = None,
) -> dict[str, Any]:
    """The message that a whole output is. `prefix` is the prompt, or empty to do without.

    Examples:
        >>> from asides.hf import parse_response, template_for
        >>> parse_response("<think>2+2</think>It is 4.<|im_end|>", template_for("qwen3").template, prefix="")
        {'role': 'assistant', 'reasoning_content': '2+2', 'content': 'It is 4.'}
    """
    parser = ResponseParser(response_template, prefix, tools=tools)
    parser.feed(text)
    return parser.finalize()[0]


class ResponseParser:
    """Reads an output as it comes, by a response template. `feed` chunks, then `finalize`.

    Examples:
        >>> from asides.hf import ResponseParser, template_for
        >>> parser = ResponseParser(template_for("qwen3").template, prefix="")
        >>> parser.feed("<think>2+2</think>It is")[-1]
        {'type': 'region_chunk', 'field': 'content', 'text': 'It is', 'dirty': False}
        >>> message, events = parser.finalize()
        >>> message
        {'role': 'assistant', 'reasoning_content': '2+2', 'content': 'It is'}
    """

    def __init__(
        self,
        response_template: Mapping[str, Any] | Template,
        prefix: str | None = None,
        *,
        tools: Sequence[Tool] | None = None,
    ) -> None:
        if prefix is None:
            raise ValueError(
                "prefix is needed: the prompt, which may hold the beginning of the answer; or an empty one"
            )
        self._template = Template.load(response_template)
        self._template.check_runs()
        self._tools = _properties(tools or ())
        self._message: dict[str, Any] = copy.deepcopy(dict(self._template.defaults))
        self._text = ""
        self._at = 0
        self._base = 0
        self._skipping = False
        self._field: TemplateField | None = self._implicit()
        self._opened = False
        self._groups: dict[str, str] = {}
        self._body: list[str] = []
        self._finalized = False
        self._searches: dict[tuple[str, bool], Search] = {}
        self.initial_events: list[dict[str, Any]] = []
        """What the prompt has already opened, written and closed."""
        self.notices: list[str] = []
        """What was odd: regions that could not be read, fields that are missing, patterns that were given up."""
        self.left_out: list[str] = []
        """Text outside of all regions, where no field takes it."""
        if prefix:
            text, problem = self._template.behind_start(prefix)
            if problem:
                self.notices.append(f"the start anchor {problem}, so all of the prompt is read")
            self._read(text, self.initial_events, False)

    def feed(self, text: str) -> list[dict[str, Any]]:
        """Read a chunk and return its events."""
        if self._finalized:
            raise RuntimeError("feed was called after finalize; make a new ResponseParser for the next message")
        events: list[dict[str, Any]] = []
        self._read(text, events, False)
        return events

    def finalize(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The output is over: the message, and the last events."""
        if self._finalized:
            raise RuntimeError("finalize was called twice")
        self._finalized = True
        events: list[dict[str, Any]] = []
        self._read("", events, True)
        template = self._template
        for name, field in template.fields.items():
            if not field.optional and name not in self._message:
                self.notices.append(f"the field {name} is not optional, but nothing of it came")
        if any(search.limited for search in self._searches.values()):
            self.notices.append(f"a pattern was given up behind {WINDOW_LIMIT} characters")
        for (name, opens), search in self._searches.items():
            if search.stopped:
                key = f"fields.{name}.{'open' if opens else 'close'}_pattern"
                self.notices.append(f"{key} was given up where it took too long: what it stood for is not found there")
        kept = {key: value for key, value in self._message.items() if key in template.defaults or not _empty(value)}
        return kept, events

    # Reading.

    def _implicit(self) -> TemplateField | None:
        name = self._template.implicit
        return None if name is None else self._template.fields[name]

    def _read(self, text: str, events: list[dict[str, Any]], final: bool) -> None:
        self._text += text
        while self._skip_space():
            best, hold = self._scan(final)
            if best is None:
                self._write(self._text[self._at : hold], events)
                self._at = max(self._at, hold)
                break
            found, field, opens = best
            self._write(self._text[self._at : found.start], events)
            self._at, self._skipping = found.stop, found.skip
            self._close(events)
            if opens:
                self._open(field, found.groups, events)
        if final:
            self._close(events)
        drop = self._at - CONTEXT
        if drop > 0:
            self._text = self._text[drop:]
            self._base += drop
            self._at = CONTEXT

    def _skip_space(self) -> bool:
        """Pass over whitespace that belongs to the last anchor; False when all that is here is such."""
        if self._skipping:
            text, at, end = self._text, self._at, len(self._text)
            while at < end and text[at].isspace():
                at += 1
            self._at = at
            self._skipping = at == end
        return not self._skipping

    def _scan(self, final: bool) -> tuple[tuple[AnchorMatch, TemplateField, bool] | None, int]:
        """The anchor that comes first, if that is certain; and from where on one may still be coming."""
        hold = len(self._text)
        best: tuple[AnchorMatch, TemplateField, bool] | None = None
        best_key: tuple[int, int, bool, str] | None = None
        for search, field, opens in self._watched():
            found, waiting = search.scan(self._text, self._at, self._base, final)
            hold = min(hold, waiting)
            if found is None or (found.start == found.stop and not opens and not self._opened):
                continue
            key = (found.start, found.start - found.stop, not opens, field.name)
            if best_key is None or key < best_key:
                best, best_key = (found, field, opens), key
        if best is not None and not final and best[0].start >= hold:
            best = None
        return best, hold

    def _watched(self) -> list[tuple[Search, TemplateField, bool]]:
        """The anchors that count now."""
        fields, name = self._template.fields, self._template.implicit
        current = self._field
        if current is not None and current.name != name:
            return self._search(current, False)
        found = [each for field in fields.values() for each in self._search(field, True)]
        return found + (self._search(fields[name], False) if name is not None else [])

    def _search(self, field: TemplateField, opens: bool) -> list[tuple[Search, TemplateField, bool]]:
        anchor = field.open if opens else field.close
        if anchor is None or (anchor.simple and not anchor.literals):
            return []
        key = (field.name, opens)
        if key not in self._searches:
            self._searches[key] = Search(anchor)
        return [(self._searches[key], field, opens)]

    # Regions.

    def _write(self, text: str, events: list[dict[str, Any]]) -> None:
        field = self._field
        if field is None and text:
            self.left_out.append(text)
        if not text or field is None:
            return
        if not self._opened:
            events.append({"type": "region_open", "field": field.name})
            self._opened = True
        self._body.append(text)
        events.append({"type": "region_chunk", "field": field.name, "text": text, "dirty": field.dirty})

    def _open(self, field: TemplateField, groups: dict[str, str], events: list[dict[str, Any]]) -> None:
        self._field, self._groups, self._opened = field, groups, True
        events.append({"type": "region_open", "field": field.name})

    def _close(self, events: list[dict[str, Any]]) -> None:
        field = self._field
        if field is not None and self._opened:
            body = "".join(self._body)
            event: dict[str, Any] = {"type": "region_close", "field": field.name}
            try:
                value = value_of(field, body, self._groups)
                if self._tools:
                    value = cast_calls(value, self._tools)
                self._keep(field, value)
                event["value"] = value
            except ContentProblem as problem:
                self.notices.append(f"{field.name}: {problem}")
                broken = self._message.setdefault(UNPARSED + field.name, [])
                broken.append({"raw": body, "error": str(problem), **self._groups})
                event |= {"value": None, "error": str(problem)}
            events.append(event)
        self._field, self._groups, self._opened, self._body = self._implicit(), {}, False, []

    def _keep(self, field: TemplateField, value: Any) -> None:
        """Put a value into the message, beside what is there."""
        name, message = field.name, self._message
        before = message.get(name)
        if field.join is not None:
            if not isinstance(value, str):
                raise ContentProblem("only text can be joined")
            message[name] = value if before is None else before + field.join + value
        elif field.repeats:
            message.setdefault(name, []).append(value)
        elif name in message and name not in self._template.defaults and not _empty(before):
            message[name] = _both(before, value)
        else:
            message[name] = value


def _both(before: Any, value: Any) -> Any:
    """Two values of a field that does not repeat: texts joined, lists in a row."""
    if _empty(value):
        return before
    if isinstance(before, str) and isinstance(value, str):
        return before + JOIN + value
    return [*(before if isinstance(before, list) else [before]), *(value if isinstance(value, list) else [value])]


def _empty(value: Any) -> bool:
    return value is None or (isinstance(value, list | dict | str) and not value)


def _properties(tools: Sequence[Tool]) -> dict[str, Mapping[str, Any]]:
    """The schema of each tool's arguments, by its name."""
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        definition = tool if isinstance(tool, Mapping) else _definition(tool)
        function = definition.get("function", definition)
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            parameters = function.get("parameters")
            properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
            found[function["name"]] = properties if isinstance(properties, Mapping) else {}
    return found


def _definition(function: Callable[..., Any]) -> Mapping[str, Any]:
    """The definition of a tool that is a function, as transformers reads it off."""
    try:
        schema: Mapping[str, Any] = import_module("transformers.utils").get_json_schema(function)
    except ImportError as error:
        raise UsageError("a function can be a tool only with transformers; give the tool's definition") from error
    return schema
