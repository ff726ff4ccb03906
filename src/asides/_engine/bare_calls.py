"""Whether a call without an opening marker may stand behind prose: where a line begins, and no example is announced."""

from __future__ import annotations

import re

REACH = 512
"""How far, in characters, one looks back for the last line with words."""

_WORD = re.compile(r"\w")
_ENDS = ".!?…。！？｡؟।"
_COLONS = ":：﹕"
_LAST = re.compile(rf".*([\w{_ENDS}{_COLONS},;，；、(\[{{<=\-–—])")
"""The last character that counts: behind it stand only quotes, closing brackets, emphasis, pictures."""


def may_follow(before: str) -> bool:
    """Whether a call may stand behind this text, which ends where a line begins.

    The last line with words must not announce what follows with a colon, and must either end its sentence or be
    separated by a blank line.
    """
    # The text ends where a line begins, so the last piece is empty or the call's indent.
    *lines, _ = before.split("\n")
    words = next((line for line in reversed(lines) if _WORD.search(line)), None)
    if words is None:
        return False
    match = _LAST.match(words)
    return match is not None and match[1] not in _COLONS and (match[1] in _ENDS or not lines[-1].strip())
