"""Markers of other families, left in a text because the format does not know them: what is told of, and why no more.

A text with `<｜DSML｜` or `<|channel|>` in it was most likely read with the wrong format, and a reader takes a thought
or a call for the answer. So a notice says so. It must cost nothing where there is none: only markers that begin with
`<` are looked for, and only by formats that stop at every `<` anyway. Special tokens are known by their shape, so that
families nobody has registered count too; tags are listed (`foreign_tags.py`, made from the cards of the families),
because a tag alone has no shape of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

LONGEST_TOKEN = 48
"""No special token is longer than this, in characters."""
_WORD = r"[\w▁:.\-]"
TOKEN = rf"\|{_WORD}{{2,40}}\|?>|｜{_WORD}{{2,40}}｜|/｜{_WORD}{{2,40}}｜"
"""What follows the `<` of a special token: `<|im_start|>`, `<|channel>`, `<｜tool▁sep｜>`, `</｜DSML｜`."""
TOKEN_BEGINNING = re.compile(rf"<(?:\|{_WORD}{{0,40}}\|?|/?｜{_WORD}{{0,40}}|/)")
"""What may still become one, from its second character on."""


def strings(value: object) -> Iterator[str]:
    """Every string in a format's data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key in value:
            yield from strings(key)
    elif isinstance(value, tuple | frozenset):
        for item in value:
            yield from strings(item)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from strings(getattr(value, name))
