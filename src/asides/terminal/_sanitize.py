"""The one sanitizer: what others wrote, made safe for a terminal. Nothing in it can act there.

"Others" are models, but also whoever named a model, a tool or a file. What acts on a terminal: control characters (C0
and C1), with which escape sequences begin; bytes that were not UTF-8, which are kept as lone surrogates and could be C1
controls; and the characters that turn the direction of a line around, so that it reads differently from what it is.
Tabs and line feeds are layout and stay. So do LRM, RLM, ALM and the joiners, which real text needs and which cannot
reorder what stands beside it.
"""

from __future__ import annotations

import re

_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys(range(0x202A, 0x202F), 0xFFFD),
    **dict.fromkeys(range(0x2066, 0x206A), 0xFFFD),
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
}
del _PICTURES[0x09], _PICTURES[0x0A]


def sanitize(text: str) -> str:
    """The text with a picture (`␛`, `␇`, `\N{REPLACEMENT CHARACTER}`) for each character that would act on a terminal.

    Line ends of Windows become line feeds.

    >>> sanitize("\\x1b[2J\\u202egpj.exe")
    '␛[2J\N{REPLACEMENT CHARACTER}gpj.exe'
    """
    if _ACTS.search(text) is None:
        return text
    return text.replace("\r\n", "\n").translate(_PICTURES)


class Sanitizer:
    """`sanitize` for a text in pieces."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """The next piece. A carriage return at its end waits for what follows."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        return sanitize(text[: len(text) - len(self._held)])

    def finish(self) -> str:
        """What was held."""
        held, self._held = self._held, ""
        return sanitize(held)
