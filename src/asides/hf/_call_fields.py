"""From a call syntax of ours to the field `tool_calls` of a response template.

A template has one such field, so a format's first syntax is written and the others are a loss. Each kind of syntax has
a function here that says how its region opens (usually up to and with the name, which a named group captures), how it
closes, and which of the standard's content parsers reads what is between:

    HERMES    open <tool_call>, close </tool_call>, content json, name and arguments by dotted placeholders
    QWEN_XML  open <tool_call>\\s*<function=(?P<name>...)>, close </function>..., content xml-inline

Markers around several calls (sections) belong to no call: they are returned as `around`, and the writer makes them
closers of the text, so that they reach nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .._engine.calls.brace_calls import BraceCalls
from .._engine.calls.json_calls import JsonCalls
from .._engine.calls.keyed_calls import KeyedCalls
from .._engine.calls.named_calls import NamedCalls
from .._engine.calls.nested_calls import NestedCalls
from .._engine.calls.python_calls import PythonCalls
from .._engine.calls.syntax import CallSyntax
from .._engine.calls.xml_calls import Tag, XmlCalls
from ._patterns import SPACE, SPACE_BEFORE, any_literal, escape

NAME = r"(?P<name>[^\s<>{}\[\]()\"'|｜]+)"
"""A function's name, captured for the transform."""
_FENCE = r"```[a-z]*\s+"
"""The beginning of a code block. An optional word behind it would be read differently by each cutting of the stream."""
_QUOTED_VALUE = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\{[^}]*\}|[^,()]+"""
"""A flat Python value."""


class CallField(msgspec.Struct, kw_only=True):
    """A syntax as the standard can say it."""

    open: str
    """A pattern for what opens a call; empty where the standard has no way to say it."""
    close: str = ""
    """A pattern for what closes it, without the whitespace behind; empty where nothing of its own does."""
    content: dict[str, Any]
    """The keys that say how the body is read."""
    each: bool = False
    """Whether the body is a list of calls."""
    again: str = ""
    """A pattern for what opens the next call, where that alone ends this one."""
    stops: bool = False
    """Whether it may also end with the turn, its closer left out."""
    around: tuple[str, ...] = ()
    """Markers that stand around several calls."""
    loses: tuple[str, ...] = ()
    """Codes of what is lost."""


def call_field(syntax: CallSyntax, portable: bool) -> CallField | None:
    """How a syntax is written; None for one that no template can say. `portable`: without look-around."""
    for kind, write in _WRITERS:
        if isinstance(syntax, kind):
            return write(syntax, portable)
    return None


def _function(arguments: Any = "{content}", name: str = "{name}", **more: Any) -> dict[str, Any]:
    return {"type": "function", **more, "function": {"name": name, "arguments": arguments}}


def _json(syntax: JsonCalls, portable: bool) -> CallField | None:
    name, arguments = syntax.names[0], syntax.arguments[0]
    loses: tuple[str, ...] = ("key_names",) if syntax.listed else ("several", "key_names")
    if syntax.bare and not syntax.open:
        return _bare_json(syntax, portable)
    if syntax.keyed:
        return CallField(open="", content={}, loses=("keyed_names",))
    opener = any_literal(syntax.open)
    if syntax.lead:
        opener += SPACE + escape(syntax.lead)
    again = opener
    if syntax.open and syntax.open[0].endswith("["):
        # The bracket belongs to the list, so the opener must not take it.
        opener = any_literal(each[:-1] for each in syntax.open) + (r"(?=\[)" if not portable else "")
        again = opener
    close = any_literal(syntax.closers) if syntax.closers else ""
    if syntax.fenced:
        opener, close = opener + SPACE + _FENCE, rf"```{close}"
        loses = (*loses, "unfenced")
    if syntax.listed:
        content = {"content": "json", "transform": _function(f"{{{arguments}}}", f"{{{name}}}"), "transform_each": True}
        return CallField(open=opener, close=close, content=content, each=True, again=again, loses=loses)
    placed = _function(f"{{content.{arguments}}}", f"{{content.{name}}}")
    content = {"content": "json", "transform": placed}
    return CallField(open=opener, close=close, content=content, again=again, loses=loses)


def _bare_json(syntax: JsonCalls, portable: bool) -> CallField | None:
    """An object at the beginning of the output; its last brace belongs to the closer."""
    keys = "|".join(syntax.arguments)
    spelled = rf'\{{\s*"{syntax.names[0]}"\s*:\s*"(?P<name>[^"]+)"\s*,\s*"(?:{keys})"\s*:\s*'
    opener = spelled if portable else rf"\A{SPACE_BEFORE}{spelled}"
    content = {"content": "json", "transform": _function()}
    return CallField(open=opener, close=r"\}\s*", content=content, loses=("bare", "several", "key_names"))


def _named(syntax: NamedCalls, portable: bool) -> CallField:
    name, more = NAME, {}
    if syntax.numbered:
        name = r"(?P<id>(?:functions\.)?(?P<name>[^\s<>:]+)(?::\d+)?)\s*"
        more = {"id": "{id}"}
    begin = any_literal(marker for marker in syntax.open if marker != syntax.before_name)
    opener = begin + SPACE + escape(syntax.before_name) + name
    loses = ["cut_value"]
    if syntax.call_id:
        opener += rf"(?:{escape(syntax.call_id)}\w+)?"
        loses.append("id")
    if syntax.separators:
        separator = any_literal(syntax.separators)
        opener += rf"(?:{separator})?\s*(?=\{{)" if syntax.direct and not portable else separator
    elif not syntax.fenced and not portable:
        opener += r"\s*(?=\{)"
    opener += escape(syntax.before_arguments)
    close = escape(syntax.behind_arguments) + (any_literal(syntax.close) if syntax.close else "")
    if syntax.fenced and not syntax.separators:
        opener += SPACE + _FENCE
        close = rf"```\s*{close}"
    return CallField(
        open=opener,
        close=close,
        content={"content": "json", "transform": _function(**more)},
        again=any_literal(syntax.open),
        around=(*syntax.section, *syntax.section_close),
        loses=tuple(loses),
    )


def _tag(tag: Tag, group: str) -> str:
    """The pattern of an opening tag, its name captured; other attributes are passed over."""
    if not tag.attribute:
        return rf"{escape(tag.start)}(?P<{group}>[^<>\n]+){escape(tag.stop)}"
    others = r"[^<>]*" if tag.stop == ">" else r"[^<]*"
    named = rf"""\s+{escape(tag.attribute)}=["'](?P<{group}>[^"'<>]+)["']"""
    return escape(tag.start) + named + others + escape(tag.stop)


def _xml(syntax: XmlCalls, portable: bool) -> CallField:
    opener = _tag(syntax.call, "name")
    if wrappers := syntax.wrappers:
        # An optional end (`</a>(</b>)?`) is read differently by each cutting of the stream, so the wrapper is a must.
        preface = rf"(?:{escape(syntax.preface)}\s*)?" if syntax.preface else ""
        opener = any_literal(wrappers) + SPACE + preface + opener
    close = any_literal(syntax.close if wrappers else (syntax.call_close,))
    space = r"\n?" if syntax.framed else ""
    value = rf"{space}(?P<value>.*?){space}"
    parameter = _tag(syntax.parameter, "key") + value + escape(syntax.parameter_close)
    return CallField(
        open=opener + SPACE,
        close=close,
        content={"content": "xml-inline", "content_args": {"tag_pattern": parameter}, "transform": _function()},
        around=(*syntax.section, *syntax.section_close),
        loses=("cut_value", "untyped", *(("unwrapped",) if wrappers and len(syntax.open) > len(wrappers) else ())),
    )


def _nested(syntax: NestedCalls, portable: bool) -> CallField:
    start = escape(syntax.parameter.start)
    parameter = rf"{start}(?P<key>[^<>/\n]+)>(?P<value>.*?){start}/(?P=key)>"
    return CallField(
        open=_tag(syntax.call, "name") + SPACE,
        close=escape(syntax.call_close),
        content={"content": "xml-inline", "content_args": {"tag_pattern": parameter}, "transform": _function()},
        around=(*syntax.section, *syntax.section_close),
        loses=("cut_value", "untyped", "nested"),
    )


def _keyed(syntax: KeyedCalls, portable: bool) -> CallField:
    # No `.*?` between two `\s*`: on a run of whitespace these three cost its cube.
    key = rf"{escape(syntax.key)}\s*(?P<key>[^\s<]+(?:\s+[^\s<]+)*)\s*{escape(syntax.key_close)}"
    value = rf"{escape(syntax.value)}(?P<value>.*?){escape(syntax.value_close)}"
    if syntax.type:
        value = rf"(?:{escape(syntax.type)}.*?{escape(syntax.type_close)}\s*)?{value}"
    return CallField(
        open=any_literal(syntax.open) + SPACE + NAME + SPACE,  # a separator stays in the body, where it is passed over
        close=any_literal(syntax.close),
        content={
            "content": "xml-inline",
            "content_args": {"tag_pattern": rf"{key}\s*{value}"},
            "transform": _function(),
        },
        around=(*syntax.section, *syntax.section_close),
        loses=("cut_value", "untyped"),
    )


def _brace(syntax: BraceCalls, portable: bool) -> CallField:
    return CallField(
        open=any_literal(syntax.open) + SPACE + escape(syntax.prefix) + NAME,
        close=any_literal(syntax.close),
        content={
            "content": "json",
            "content_args": {"unquoted_keys": True, "string_delims": [[syntax.quote, syntax.quote]]},
            "transform": _function(),
        },
        loses=("cut_value", "several"),
    )


def _python(syntax: PythonCalls, portable: bool) -> CallField | None:
    if not syntax.open and portable:
        return None
    opener = any_literal(syntax.open) + SPACE if syntax.open else rf"\A{SPACE_BEFORE}"
    if syntax.bare and syntax.open and not portable:
        opener = rf"(?:{opener}|\A{SPACE_BEFORE})"
    bracket = r"(?:\[\s*)?" if syntax.lines else r"\[\s*"
    value = {"name": "json", "args": {"string_delims": [["'", "'"]], "allow_non_json": True}}
    return CallField(
        open=opener + bracket + r"(?P<name>[A-Za-z_][\w.]*)\(",
        close=any_literal(syntax.close) if syntax.close else "",
        content={
            "content": "xml-inline",
            "content_args": {
                "tag_pattern": rf"(?P<key>[A-Za-z_]\w*)\s*=\s*(?P<value>{_QUOTED_VALUE})",
                "value_parser": value,
            },
            "transform": _function(),
        },
        stops=syntax.bare,
        loses=("several", "nested", "cut_value", *(("bare",) if syntax.bare else ())),
    )


_WRITERS: tuple[tuple[type[CallSyntax], Callable[[Any, bool], CallField | None]], ...] = (
    (JsonCalls, _json),
    (NamedCalls, _named),
    (NestedCalls, _nested),
    (XmlCalls, _xml),
    (KeyedCalls, _keyed),
    (BraceCalls, _brace),
    (PythonCalls, _python),
)
"""The nested kind before the kind that it is made from."""
