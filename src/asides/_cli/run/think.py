"""The values of `--think` and `/think`: what may be said, and what it means. Asks no server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UsageError

if TYPE_CHECKING:
    from ...client.client import Think

LEVELS = ("low", "medium", "high", "max")
_VALUES: dict[str, Think] = {"": True, "true": True, "false": False, **{level: level for level in LEVELS}}


def read_think(value: str, flag: str = "--think") -> Think:
    """What a value means; what is none is refused in the words that Ollama has for it."""
    if value not in _VALUES:
        raise UsageError(f'invalid value for {flag}: "{value}" (must be true, false, high, medium, low, or max)')
    return _VALUES[value]


def think_in_words(think: Think) -> str:
    """The choice, for the person."""
    words: dict[Think, str] = {None: "as the model likes", True: "on", False: "off"}
    return words.get(think, str(think))


def spell_out(arguments: list[str]) -> list[str]:
    """A bare `--think` is `--think=true`: a value stands only behind `=`, so the next word is never taken for one."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return ["--think=true" if word == "--think" and place < end else word for place, word in enumerate(arguments)]
