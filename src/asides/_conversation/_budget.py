"""How much a chat template may do: one budget of work for a rendering, room for what it makes, a limit for each text.

All is counted and nothing timed, so a template is given up at the same place on every machine. A unit is about what it
takes to look at a character. Texts, lists and runs of origins take room by their length, whether or not they are still
there, so that what a template keeps takes no more memory than a small multiple of the limit.
Before something is made its length is known or bounded, so nothing large is made first and refused afterwards.

    budget = WorkBudget(limit=1 << 20, work=1 << 26)  # the work for a short conversation
    budget.made("some text")          # 9 characters
    budget.measure([["a"] * 3] * 3)   # how long it would be when written; a list may hold the same list many times
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from jinja2.runtime import LoopContext
from jinja2.utils import Namespace

from ..errors import UsageError
from ._origin import OriginText

STEP = 64
"""Units of a loop's iteration."""
CALL = 192
"""Units of a call or a filter."""
LOOKUP = 128
"""Units of an item that is looked up."""
MADE = 8
"""Units of a character of a text that is made, or of an item of a list."""
LETTER = 16
"""Units of a character that is handled by itself."""
PIECE = 128
"""Units of a run of origins, of a text that is cut out of another, and of an entry of a dictionary."""
ROOM = 8
"""Texts of the greatest length that may be made."""
MOST_BITS = 1 << 10
"""Bits that a computed number may have."""
DEEPEST = 1000
"""How deep values may be held in each other. Python writes none that is deeper, but hashes it until its stack ends."""
VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), MappingProxyType)
"""What shows the values of a dictionary, and writes and compares all of them."""
CONTAINERS = (dict, list, tuple, Namespace, *VIEWS)


class HeldSize(NamedTuple):
    """How large values are that hold others."""

    size: int
    """Characters of all texts in them, and one for each item."""
    items: int
    depth: int


class WorkBudget:
    """What is left of the work that one rendering may do."""

    __slots__ = ("limit", "room", "work")

    def __init__(self, limit: int, work: int) -> None:
        self.limit = limit
        """Characters that any text may have."""
        self.work = work
        """Units that are left."""
        self.room = ROOM * MADE * limit
        """Units that are left for what is made."""

    def spend(self, units: int) -> None:
        """Count some work."""
        self.work -= units
        if self.work < 0:
            raise UsageError(
                "the chat template was given up: it loops, calls and copies far more than any conversation needs"
            )

    def keep(self, units: int) -> None:
        """Count the work for something that is made, and the room that it takes."""
        self.room -= units
        self.spend(units if self.room >= 0 else self.work + 1)

    def check(self, length: int) -> None:
        """Refuse a text, before it is made, that no conversation needs."""
        if length > self.limit:
            raise UsageError(
                f"the chat template was given up: it writes more than {self.limit:,} characters for this conversation"
            )

    def made(self, value: Any) -> None:
        """Count what was made."""
        if isinstance(value, str):
            self.check(len(value))
            runs = len(value.runs) if value.__class__ is OriginText else 1
            self.keep(MADE * len(value) + PIECE * (runs - 1))
        elif isinstance(value, (list, tuple, bytes, dict)):
            self.check(len(value))
            self.keep((PIECE if isinstance(value, dict) else MADE) * len(value))
        elif isinstance(value, int):
            check_bits(value.bit_length() if value.__class__ is not bool else 1)

    def measure(self, *values: Any) -> HeldSize:
        """How large values are; those that would be too long when written are refused."""
        size = items = depth = 0
        level = [value for value in values if isinstance(value, CONTAINERS)]
        while level:
            depth += 1
            if depth > DEEPEST:
                raise UsageError("the chat template was given up: it holds values in each other too deeply")
            self.spend(STEP * len(level))
            below: list[Any] = []
            for value in level:
                if isinstance(value, Namespace):
                    value = value._Namespace__attrs  # the one name by which it gives all of them
                found: Any = (*value, *value.values()) if isinstance(value, Mapping) else value
                for item in found:
                    size += len(item) + 1 if isinstance(item, (str, bytes)) else 1
                    if isinstance(item, CONTAINERS):
                        below.append(item)
                items += len(found)
                if size > self.limit:
                    self.check(size)
            level = below
        if items:
            self.spend(MADE * items + size)
        return HeldSize(size, items, depth)


def listed_items(value: Any) -> Any:
    """What an iterator would give, as a list that can be measured; any other value as it is."""
    return list(value) if isinstance(value, Iterator) and not isinstance(value, LoopContext) else value


def check_bits(bits: int) -> None:
    """Refuse a number that no conversation needs."""
    if bits > MOST_BITS:
        raise UsageError("the chat template was given up: it computes a number that is far too large")


def numbers(args: Iterable[Any], kwargs: Mapping[str, Any]) -> list[int]:
    """The numbers among arguments."""
    return [value for value in (*args, *kwargs.values()) if isinstance(value, int)]


def _largest(args: Iterable[Any], kwargs: Mapping[str, Any]) -> int:
    return max(map(abs, numbers(args, kwargs)), default=0)


# What is put into a text by `%` and `str.format`.

_WIDTH = re.compile(r"\d{4,}")
_NESTED = re.compile(r":[^{}]*\{")


def check_format(budget: WorkBudget, template: str, values: tuple[Any, ...], *, once: bool = False) -> None:
    """Refuse a format that would write too much: by widths, or by many fields, unless each value is taken `once`."""
    size = budget.measure(values).size
    budget.spend(LETTER * len(template) + size)
    for digits in _WIDTH.findall(template):
        budget.check(int(digits[:20]))
    if "*" in template or _NESTED.search(template):
        budget.check(max(numbers(values, {}), default=0))
    fields = max(template.count("%"), template.count("{"))
    width = 1000 if any(map(str.isdigit, template)) else 0
    budget.check(fields * width)
    budget.check(len(template) + (size if once else fields * size))


# What methods of strings and bytes do.


def check_method(
    budget: WorkBudget, owner: str | bytes, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Count what a method will do, or refuse it; the arguments for it."""
    budget.spend(len(owner))
    rule = _METHODS.get(name)
    if rule is None:
        if name not in _LINEAR:
            budget.spend(len(owner) * len(owner) >> 8)
        return args
    return rule(budget, owner, args, kwargs) or args


Rule = Callable[[WorkBudget, Any, tuple[Any, ...], dict[str, Any]], tuple[Any, ...] | None]


def _pads(budget: WorkBudget, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    budget.check(_largest(args, kwargs))


def _expands_tabs(budget: WorkBudget, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    tab = "\t" if isinstance(owner, str) else b"\t"
    budget.check(owner.count(tab) * max(8, _largest(args, kwargs)))


def _replaces(budget: WorkBudget, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if len(args) > 1 and all(isinstance(each, (str, bytes)) for each in args[:2]):
        check_replacing(budget, owner, args[0], args[1])


def check_replacing(budget: WorkBudget, text: Any, old: Any, new: Any) -> None:
    """Refuse to replace where too much would be written."""
    try:
        found = text.count(old)
    except TypeError:  # a text in bytes, which Python refuses
        return
    budget.check(len(text) + found * len(new))
    budget.keep(found * PIECE)


def _joins(budget: WorkBudget, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    if not args or not isinstance(args[0], Iterable):
        return None
    items = list(args[0])
    budget.check(budget.measure(items).size + len(items) * len(owner))
    return (items, *args[1:])


def _translates(budget: WorkBudget, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    longest = 1
    if args and isinstance(args[0], dict):
        longest = max((len(each) for each in args[0].values() if isinstance(each, str)), default=1)
    budget.check(len(owner) * longest)
    budget.spend(LETTER * len(owner))


def _splits(budget: WorkBudget, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    between = args[0] if args else kwargs.get("sep")
    if isinstance(between, (str, bytes)) and between and isinstance(between, str) == isinstance(owner, str):
        budget.keep(PIECE * owner.count(between))
    else:
        spaces = " \n\r\t" if isinstance(owner, str) else (b" ", b"\n", b"\r", b"\t")
        budget.keep(PIECE * sum(map(owner.count, spaces)))
    _searches_backwards(budget, owner, args, kwargs)


def _searches_backwards(budget: WorkBudget, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Python compares what it looks for at every place, and each character with all that may be stripped."""
    wanted = max((len(each) for each in (*args, *kwargs.values()) if isinstance(each, (str, bytes))), default=0)
    budget.spend(len(owner) * wanted >> 3)


def _encodes(budget: WorkBudget, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    named = {str(each).lower() for each in (*args, *kwargs.values())}
    if named - {"utf-8", "utf8", "ascii", "latin-1", "strict", "ignore", "replace"}:
        budget.spend(len(owner) * len(owner))  # `punycode` takes so long


def _letters(budget: WorkBudget, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if owner.__class__ is OriginText and len(owner.runs) > 1:
        budget.spend(LETTER * len(owner))


_METHODS: dict[str, Rule] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _pads),
    **dict.fromkeys(("rfind", "rindex", "rpartition", "strip", "lstrip", "rstrip"), _searches_backwards),
    **dict.fromkeys(("split", "rsplit", "splitlines"), _splits),
    **dict.fromkeys(("encode", "decode"), _encodes),
    **dict.fromkeys(("upper", "lower", "casefold", "swapcase", "title", "capitalize"), _letters),
    "expandtabs": _expands_tabs,
    "replace": _replaces,
    "join": _joins,
    "translate": _translates,
    "maketrans": _translates,
}
_LINEAR = frozenset((*dir(str), "hex", "fromhex"))
"""Methods that look at each character once. What safe strings have beside takes longer."""


# What filters do.


def check_filter(budget: WorkBudget, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count what a filter will do, or refuse it; `args` without what Jinja passes by itself."""
    budget.spend(CALL)
    value = args[0] if args else ""
    if name in _SHALLOW:
        if isinstance(value, str) and name in ("list", "reverse"):
            budget.keep(PIECE * len(value))
        return
    size = len(value) if isinstance(value, (str, bytes)) else 0
    measured = budget.measure(*args, *kwargs.values())
    size += measured.size
    budget.spend(size)
    rule = _FILTERS.get(name)
    if rule is not None:
        rule(budget, size, measured, args[1:], kwargs)


FilterRule = Callable[[WorkBudget, int, HeldSize, tuple[Any, ...], dict[str, Any]], None]


def _numbered(budget: WorkBudget, size: int, measured: HeldSize, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    budget.check(_largest(args, kwargs))
    budget.keep(MADE * _largest(args, kwargs))


def _json(budget: WorkBudget, size: int, measured: HeldSize, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    named = dict(zip(("ensure_ascii", "indent", "separators"), args, strict=False)) | kwargs
    indent, separators = named.get("indent"), named.get("separators")
    width = len(indent) if isinstance(indent, str) else abs(indent) if isinstance(indent, int) else 0
    between = sum(len(each) for each in separators or () if isinstance(each, str)) if separators else 2
    budget.check(size + (measured.items + 1) * (width * (measured.depth + 1) + between))


def _quadratic(
    budget: WorkBudget, size: int, measured: HeldSize, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    budget.spend(size * size >> 8)


def _prints(budget: WorkBudget, size: int, measured: HeldSize, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Python writes all that stands deeper at every depth."""
    budget.spend(STEP * measured.items * measured.depth)
    _quadratic(budget, size, measured, args, kwargs)


def _wraps(budget: WorkBudget, size: int, measured: HeldSize, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    given = (*args, *kwargs.values())
    budget.check(size * max((len(each) for each in given if isinstance(each, str)), default=1))
    # Python cuts a long word anew for every line of it.
    budget.check(size * size // max(1, *numbers(given, {}), 1) // 1000)
    _quadratic(budget, size, measured, args, kwargs)


def _sums(budget: WorkBudget, size: int, measured: HeldSize, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if any(isinstance(each, CONTAINERS) for each in (*args, *kwargs.values())):
        budget.spend(measured.items * measured.items)


def _each_letter(
    budget: WorkBudget, size: int, measured: HeldSize, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    budget.spend(LETTER * size)


def _each_piece(
    budget: WorkBudget, size: int, measured: HeldSize, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Of a text each letter becomes a text."""
    budget.keep(PIECE * (size - measured.size) + LETTER * size)


_FILTERS: dict[str, FilterRule] = {
    **dict.fromkeys(("batch", "center", "indent", "round", "slice", "truncate"), _numbered),
    **dict.fromkeys(("striptags", "urlize"), _quadratic),
    "pprint": _prints,
    **dict.fromkeys(("sort", "unique", "groupby", "min", "max", "dictsort", "join"), _each_piece),
    **dict.fromkeys(("title", "upper", "lower", "capitalize", "urlencode", "xmlattr", "wordcount"), _each_letter),
    "tojson": _json,
    "wordwrap": _wraps,
    "sum": _sums,
}
COMPARING = frozenset({"groupby", "max", "min", "sort", "sum", "unique", "urlencode"})
"""Filters that hash, compare, add up or write each item, so that all have to be known before."""
_SHALLOW = frozenset({
    "attr", "count", "d", "default", "first", "items", "last", "length", "list", "map", "reject", "rejectattr",
    "reverse", "select", "selectattr",
})  # fmt: skip
"""Filters that do not look into what they are given; what they yield is counted one by one."""
