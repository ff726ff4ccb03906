"""Pieces of regular expressions for templates: what every engine that reads templates understands alike.

`re.escape` writes a backslash before characters that Rust's engine does not allow one before, so literals are escaped
here. Bounded whitespace (`\\s{0,16}`) stands before an opener: an unbounded run there makes a search quadratic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SPECIAL = re.compile(r"[\\.^$|?*+()\[\]{}]")
_SPELLED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}

SPACE_BEFORE = r"\s{0,16}"
"""Whitespace before an opener, so that it opens no text of its own."""
SPACE = r"\s*"
"""Whitespace behind a closer."""


def escape(text: str) -> str:
    """A literal as a pattern."""
    escaped = _SPECIAL.sub(r"\\\g<0>", text)
    return "".join(_SPELLED.get(character, character) for character in escaped)


def any_literal(literals: Iterable[str]) -> str:
    """A pattern for any of several literals, the longest first; in a group where there are several."""
    ordered = sorted(dict.fromkeys(literals), key=len, reverse=True)
    joined = "|".join(map(escape, ordered))
    return joined if len(ordered) == 1 else f"(?:{joined})"
