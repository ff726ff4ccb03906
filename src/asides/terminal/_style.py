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

    # No colour of a palette can be read on every background, and a terminal's own foreground can. Faint is that of the
    # terminal too, so that the answer, which has no look, is always the louder one.
    heading: str = "bold"
    """The look of the line above a thought."""
    text: str = "dim"
    """The look of the thought itself."""

    def __post_init__(self) -> None:
        codes(self.heading)
        codes(self.text)

    @classmethod
    def parse(cls, words: str) -> Style:
        """A style from `heading=bold,text=dim` (either may be left out), or from one look for both, such as `dim`."""
        if words == "default":
            return cls()
        if "=" not in words:
            return cls(heading=words, text=words)
        given: dict[str, str] = {}
        for pair in words.split(","):
            name, equals, value = (piece.strip() for piece in pair.partition("="))
            if name not in ("heading", "text") or not equals or name in given:
                raise UsageError(
                    f"cannot read the style {words!r}: write it as heading=bold,text=dim or as one of {NAMES}"
                )
            given[name] = value
        return cls(**given)


NAMES = "default, plain, dim, grey, blue or another colour"


def codes(look: str) -> Codes:
    """The escape codes of one look, such as `bold+blue`, `#8899aa`, `208` or `plain`."""
    numbers = [_number(word) for word in _split(look)]
    sequence = ";".join(number for number in numbers if number)
    return (f"\x1b[{sequence}m", RESET) if sequence else PLAIN


def _split(look: str) -> list[str]:
    return [word.strip().lower().replace("_", "-") for word in look.split("+")]


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


def sheet(style: Style, *, dim: bool) -> dict[str, str]:
    """The style in the words of prompt_toolkit, which has one for `dim` only in newer releases."""
    return {"heading": _words(style.heading, dim), "thought": _words(style.text, dim), "call": "bold"}


def _words(look: str, dim: bool) -> str:
    words: list[str] = []
    for number in (_number(word) for word in _split(look)):
        kind, *values = number.split(";")
        if kind == "38":
            red, green, blue = map(int, values[1:]) if values[0] == "2" else _shade(int(values[1]))
            words.append(f"#{red:02x}{green:02x}{blue:02x}")
        elif number in _WORDS and (dim or _WORDS[number] != "dim"):
            words.append(_WORDS[number])
    return " ".join(words)


_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "gray")
_WORDS = {
    **{str(30 + number): f"ansi{name}" for number, name in enumerate(_NAMES)},
    **{str(90 + number): f"ansibright{name}" for number, name in enumerate(_NAMES[:-1])},
    "97": "ansiwhite",
    "1": "bold",
    "2": "dim",
    "3": "italic",
    "4": "underline",
}


_LEVELS = (0, 95, 135, 175, 215, 255)


def _shade(number: int) -> tuple[int, int, int]:
    """A colour of the table of 256 as red, green and blue. The first sixteen are the terminal's own; these are near."""
    if number < 16:
        level = 255 if number > 7 else 170
        return (number & 1) * level, (number >> 1 & 1) * level, (number >> 2 & 1) * level
    if number > 231:
        grey = 8 + 10 * (number - 232)
        return grey, grey, grey
    red, rest = divmod(number - 16, 36)
    green, blue = divmod(rest, 6)
    return _LEVELS[red], _LEVELS[green], _LEVELS[blue]
