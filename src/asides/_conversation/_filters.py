"""Jinja's filters that write text, so that what they write keeps its origins.

Each gives the same characters as Jinja's own, or transformers' where that has one. The rest of Jinja's filters are run
as they are: those in `KEEP_ORIGINS` give back what they were given, the others may lose an origin, which the
environment notes. What a filter may cost is in `_budget`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jinja2
from jinja2.filters import make_attrgetter, sync_do_join
from markupsafe import Markup

from ._budget import PIECE, check_replacing
from ._origin import OriginDict, OriginList, OriginText, Runs, join, join_with, plain, replace, runs_of
from ._writing import percent, write, write_json

if TYPE_CHECKING:
    from ._environment import ChatEnvironment

KEEP_ORIGINS = frozenset({
    "abs", "attr", "batch", "capitalize", "count", "d", "default", "dictsort", "first", "float", "groupby", "int",
    "items", "last", "length", "list", "lower", "map", "max", "min", "random", "reject", "rejectattr", "reverse",
    "round", "select", "selectattr", "slice", "sort", "sum", "trim", "unique", "upper", "wordcount",
})  # fmt: skip
"""Filters that give back what they were given, or something that is no text, or what `OriginText` itself does."""
_WORD_BEGINNING = re.compile(r"([-\s({\[<]+)")


class OriginMarkup(Markup):
    """What the filter `safe` makes of a string: Jinja's own class, which escapes what is put to it, with origins."""

    __slots__ = ("runs",)
    runs: Runs

    @staticmethod
    def of(text: str) -> OriginMarkup:
        """A string marked safe."""
        made = OriginMarkup(plain(text))
        made.runs = runs_of(text)
        return made

    def __str__(self) -> str:
        return OriginText(plain(self), getattr(self, "runs", ()))

    def __add__(self, other: Any) -> Any:
        return self._joined(Markup(plain(self)) + other, str(self), other)

    def __radd__(self, other: Any) -> Any:
        return self._joined(other + Markup(plain(self)), other, str(self))

    def _joined(self, result: Markup, left: Any, right: Any) -> Markup:
        joined = join((left, right)) if isinstance(left, str) and isinstance(right, str) else ""
        return OriginMarkup.of(joined) if joined == str(result) else result


def _tojson_filter(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    if value.__class__ is not OriginDict and value.__class__ is not OriginList:
        return write_json(value, ensure_ascii, indent, separators, sort_keys)
    # Tools are written with every prompt, and nothing changes them.
    try:
        written: str | None = value.written.get(key := (ensure_ascii, indent, separators, sort_keys))
    except TypeError:  # separators that are a list
        return write_json(value, ensure_ascii, indent, separators, sort_keys)
    if written is None:
        written = value.written[key] = write_json(value, ensure_ascii, indent, separators, sort_keys)
    return written


@jinja2.pass_eval_context
def _join_filter(context: Any, value: Any, d: Any = "", attribute: Any = None) -> str:
    if context.autoescape:
        return sync_do_join(context, value, d, attribute)
    if attribute is not None:
        value = map(make_attrgetter(context.environment, attribute), value)
    environment = context.environment
    items, separator = list(map(environment.written, value)), write(d)
    environment.state.check(sum(map(len, items)) + len(items) * len(separator))
    return join_with(separator, items)


@jinja2.pass_environment
def _replace_filter(environment: ChatEnvironment, s: Any, old: Any, new: Any, count: int | None = None) -> str:
    text, found, put = write(s), write(old), write(new)
    check_replacing(environment.state, text, found, put)
    return replace(text, found, put, -1 if count is None else count)


def _string_filter(value: Any) -> str:
    return value if isinstance(value, str) else write(value)


def _title_filter(value: Any) -> str:
    text = write(value)
    pieces: list[str] = []
    at = 0
    if not isinstance(text, OriginText):
        text = OriginText(text)
    for piece in _WORD_BEGINNING.split(plain(text)):
        if piece:
            pieces += [text.cut(at, at + 1).upper(), text.cut(at + 1, at + len(piece)).lower()]
        at += len(piece)
    return join(pieces)


@jinja2.pass_environment
def _indent_filter(
    environment: ChatEnvironment, s: Any, width: int | str = 4, first: bool = False, blank: bool = False
) -> str:
    indention = width if isinstance(width, str) else " " * width
    # Jinja splits the text with a line break put to it, so that a last one counts as the end of an empty line.
    lines = join((write(s), "\n")).splitlines()
    environment.state.check(len(lines) * len(indention))
    environment.state.keep(PIECE * len(lines))
    pieces: list[str] = [indention] if first else []
    for place, line in enumerate(lines):
        if place:
            pieces.append("\n")
            if line or blank:
                pieces.append(indention)
        pieces.append(line)
    return join(pieces)


def _format_filter(value: Any, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise jinja2.exceptions.FilterArgumentError("can't handle positional and keyword arguments at the same time")
    return percent(write(value), kwargs or args)


def _safe_filter(value: Any) -> Markup:
    return OriginMarkup.of(write(value))


FILTERS: dict[str, Callable[..., Any]] = {
    "tojson": _tojson_filter,
    "string": _string_filter,
    "join": _join_filter,
    "replace": _replace_filter,
    "title": _title_filter,
    "indent": _indent_filter,
    "format": _format_filter,
    "safe": _safe_filter,
}
"""Those that are replaced."""
