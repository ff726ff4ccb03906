"""A model's words made harmless: no control character and no escape sequence of theirs reaches a terminal."""

from __future__ import annotations

import re

# Tabs and line feeds are layout. C1 controls act as escape sequences on some terminals; lone surrogates are bytes
# that were not UTF-8, which could be C1 controls too.
_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
}
del _PICTURES[0x09], _PICTURES[0x0A]


def harmless(text: str) -> str:
    """The text with pictures (`␛`, `␇`) for its control characters. Line ends of Windows become line feeds."""
    if _HARMFUL.search(text) is None:
        return text
    return text.replace("\r\n", "\n").translate(_PICTURES)


class Harmless:
    """The same for a text in pieces."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """The next piece. A carriage return at its end waits for what follows."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        return harmless(text[: len(text) - len(self._held)])

    def finish(self) -> str:
        """What was held."""
        held, self._held = self._held, ""
        return harmless(held)
