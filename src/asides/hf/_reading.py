"""`format_from`: a format of ours from any response template, so that the engine reads by it and its laws hold.

The standard's flat machine maps onto a format: the thinking field's anchors are thinking markers, the closers of the
content field are stops, the calls are a call syntax. What the standard lets a reader lose, a format keeps: text outside
of any region is text, a second thought is a second part, and a call that cannot be read is a part with its error.

    format = asides.hf.format_from(tokenizer.response_template)
    asides.parse(text, format, prompt=prompt)

A field that is no part of a message, and an anchor that is no set of literals where the engine needs one, is refused
with a `TemplateError` that names the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._engine.calls.json_calls import JsonCalls
from .._engine.calls.syntax import CallSyntax
from .._engine.format import END, TEXT, THINKING, Format, State
from ..errors import UsageError
from ._anchors import finite_literals
from ._template import Template, TemplateError, TemplateField
from ._template_calls import TemplateCalls

THINKING_NAMES = ("thinking", "reasoning_content", "reasoning")
"""What consumers call the field of thoughts."""
SHORTEST = 3
"""Characters of the shortest literal at which a call may open."""
_WHOLE = re.compile(r"\{content\}")
_KEY = re.compile(r"\{(?:content\.)?(\w+)\}")


def format_from(template: Mapping[str, Any], *, name: str = "response_template") -> Format:
    """A format that reads what a response template describes; a `TemplateError` where that cannot be done lawfully.

    Examples:
        >>> from asides.hf import format_from, template_for
        >>> asides.parse("<think>2+2</think>It is 4.", format_from(template_for("qwen3").template)).thinking
        '2+2'
    """
    loaded = Template.load(template)
    fields = dict(loaded.fields)
    named = [fields.pop(key) for key in THINKING_NAMES if key in fields]
    if len(named) > 1:
        raise TemplateError(f"fields.{named[1].name}", f"is a second field of thoughts beside {named[0].name}")
    content, calls = fields.pop("content", None), fields.pop("tool_calls", None)
    if fields:
        raise TemplateError(f"fields.{next(iter(fields))}", "is no part of a message: thinking, content or tool_calls")
    thinking = named[0] if named else None
    for field in (thinking, content):
        if field is not None and (field.content != "text" or field.transform is not None):
            raise TemplateError(f"fields.{field.name}.content", "must be text, without a transform")
    return _format(name, template, thinking, content, calls)


def _format(
    name: str,
    template: Mapping[str, Any],
    thinking: TemplateField | None,
    content: TemplateField | None,
    calls: TemplateField | None,
) -> Format:
    syntax = _syntax(calls) if calls is not None and calls.open is not None else None
    headers = _headers(template)
    opens = _literals(thinking, True) if thinking is not None else ()
    closes = _literals(thinking, False) if thinking is not None else ()
    text: dict[str, State] = dict.fromkeys(opens, THINKING)
    if content is not None:
        shown = _literals(content, True)
        text |= dict.fromkeys(shown, TEXT)
        pairs = {_letters(opener) for opener in opens}
        for closer in _literals(content, False):
            if syntax is not None and closer in syntax.closers:
                continue
            between = _letters(closer) in pairs or (shown and closer in closes)
            if not (between and closer in closes and not shown):
                text.setdefault(closer, TEXT if between else END)
    if content is None or content.open is not None:
        # Between messages nothing is said; what opens the next one is no words.
        text |= {header: TEXT for header in headers if header not in text}
    stops = {marker for marker, leads in text.items() if leads == END}
    states: dict[State, dict[str, State]] = {TEXT: text}
    if thinking is not None:
        # A template may leave its stops out here; the end of a turn ends a thought all the same.
        states[THINKING] = {**dict.fromkeys(closes, TEXT), **dict.fromkeys(stops, END)}
        if content is not None:
            ahead = _ahead(thinking)
            states[THINKING] |= {each: TEXT for each in _literals(content, True) if ahead and each.startswith(ahead)}
    begins = thinking is not None and (thinking.open is None or bool(thinking.open.ahead))
    format = Format(
        name=name,
        source="a response template",
        states=states,
        start=THINKING if begins else TEXT,
        calls=(syntax,) if syntax is not None else (),
        assistant=headers,
    )
    try:
        format.check()
    except UsageError as error:
        raise TemplateError("fields", str(error)) from error
    return format


def _letters(marker: str) -> str:
    """The word in a marker, by which an opener and its closer are known to be a pair."""
    return re.sub(r"[\W_]", "", marker).lower()


def _headers(template: Mapping[str, Any]) -> tuple[str, ...]:
    """What opens the assistant's turn, as far as it is a set of literals."""
    given = template.get("start_anchor")
    if given is None:
        return tuple(finite_literals(template["start_anchor_pattern"]) or ())
    return (given,) if isinstance(given, str) else tuple(given)


def _literals(field: TemplateField, opens: bool) -> tuple[str, ...]:
    """The literals of an anchor of a text; refused where it is more than literals."""
    anchor = field.open if opens else field.close
    if anchor is None or anchor.ahead:
        return ()
    if anchor.pattern is not None and (opens or not anchor.before_literals):
        key = "open_pattern" if opens else "close_pattern"
        raise TemplateError(f"fields.{field.name}.{key}", "is no set of literals, which the markers of a text must be")
    blank = next((literal for literal in anchor.literals if not literal.strip()), None)
    if blank is not None:
        raise TemplateError(f"fields.{field.name}.{'open' if opens else 'close'}", f"{blank!r} is blank")
    return anchor.stands if anchor.before_literals else anchor.literals


def _ahead(field: TemplateField) -> tuple[str, ...]:
    return field.close.before_literals if field.close is not None else ()


def _syntax(field: TemplateField) -> CallSyntax:
    """How calls are read: by our own reader of JSON where the field is no more than that."""
    opened, closed = field.open, field.close
    assert opened is not None
    if opened.ahead or opened.at_start or any(len(each.strip()) < SHORTEST for each in opened.literals):
        reason = f"must begin with a literal of at least {SHORTEST} characters; shorter ones stand in every text"
        raise TemplateError("fields.tool_calls.open_pattern", reason)
    # Of literals that begin alike the shortest will do: the pattern decides what follows it.
    openers = tuple(
        each
        for each in opened.literals
        if opened.simple or not any(other != each and each.startswith(other) for other in opened.literals)
    )
    closers = closed.literals if closed is not None and closed.simple else ()
    if opened.simple and field.content == "json" and not field.arguments and (closed is None or closed.simple):
        keys = _json_keys(field)
        if keys is not None:
            names, arguments = keys
            return JsonCalls(
                open=openers,
                close=closers,
                names=names,
                arguments=arguments,
                listed=field.transform_each,
            )
    field.check_runs()
    return TemplateCalls(open=openers, close=closers, field=field)


def _json_keys(field: TemplateField) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The keys of the name and of the arguments, where the transform puts nothing else into a call."""
    transform = field.transform
    function = transform.get("function") if isinstance(transform, Mapping) else None
    if isinstance(function, str) and _WHOLE.fullmatch(function) and not field.transform_each:
        return ("name",), ("arguments", "parameters")
    if not isinstance(function, Mapping) or function.keys() != {"name", "arguments"}:
        return None
    found = [_KEY.fullmatch(str(function[key])) for key in ("name", "arguments")]
    if not all(found) or any(match and match[1] == "content" for match in found):
        return None
    return tuple((match[1],) for match in found if match)  # type: ignore[return-value]
