"""How thoughts are coloured: a style read from words, and the escape codes it stands for. Knows no terminal."""

from __future__ import annotations

import msgspec

from ..errors import UsageError

COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
ATTRIBUTES = {"bold": "1", "dim": "2", "italic": "3", "underline": "4"}
SHADES = {
    **{name: str(30 + number) for number, name in enumerate(COLOURS)},
    **{f"bright-{name}": str(90 + number) for number, name in enumerate(COLOURS)},
    "grey": "90",
    "gray": "90",
}
RESET = "\x1b[0m"
Codes = tuple[str, str]
"""What to write before and after words; both empty where there is no colour."""
PLAIN: Codes = ("", "")


class Style(msgspec.Struct, frozen=True):
    """The look of thoughts. Each is a colour, `bold`, `dim`, `italic`, `underline`, `plain`, or some joined by `+`."""

    heading: str = "blue"
    text: str = "cyan"

    def __post_init__(self) -> None:
        codes(self.heading)
        codes(self.text)

    @classmethod
    def parse(cls, words: str) -> Style:
        """A style from `heading=blue,text=cyan` (either may be left out), or from one look for both, such as `dim`."""
        if words == "default":
            return cls()
        if "=" not in words:
            return cls(heading=words, text=words)
        given: dict[str, str] = {}
        for pair in words.split(","):
            name, equals, value = (piece.strip() for piece in pair.partition("="))
            if name not in ("heading", "text") or not equals or name in given:
                raise UsageError(
                    f"cannot read the style {words!r}: write it as heading=blue,text=cyan or as one of {NAMES}"
                )
            given[name] = value
        return cls(**given)


NAMES = "default, plain, dim, grey, blue or another colour"


def codes(look: str) -> Codes:
    """The escape codes of one look, such as `bold+blue`, `#8899aa`, `208` or `plain`."""
    numbers = [_number(word.strip().lower().replace("_", "-")) for word in look.split("+")]
    sequence = ";".join(number for number in numbers if number)
    return (f"\x1b[{sequence}m", RESET) if sequence else PLAIN


def _number(word: str) -> str:
    if word in ("plain", "none"):
        return ""
    if word in ATTRIBUTES:
        return ATTRIBUTES[word]
    if word in SHADES:
        return SHADES[word]
    if word.isascii() and word.isdigit() and int(word) < 256:
        return f"38;5;{int(word)}"
    if len(word) == 7 and word[0] == "#":
        try:
            red, green, blue = bytes.fromhex(word[1:])
        except ValueError:
            pass
        else:
            return f"38;2;{red};{green};{blue}"
    raise UsageError(
        f"{word!r} is no colour: a look is made of {', '.join(COLOURS)}, grey, bright-blue and so on, "
        f"a number below 256, #rrggbb, {', '.join(ATTRIBUTES)} or plain, joined by +"
    )
