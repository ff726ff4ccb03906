"""Thoughts can be read, and the answer is louder: contrast as WCAG counts it, on the palettes that most people have.

A terminal draws the answer in its own foreground. How it draws faint text is its own affair: it keeps two thirds of the
colour (xterm, VTE, Alacritty), or mixes it with the background. Both are computed here, at two thirds.
"""

from __future__ import annotations

import pytest

from asides.terminal._style import Style, codes

LEAST = 4.5
KEPT = 2 / 3
Colour = tuple[float, float, float]


def colour(written: str) -> Colour:
    red, green, blue = bytes.fromhex(written)
    return red, green, blue


PALETTES = {
    # foreground, background, blue, cyan
    "Windows Terminal": ("cccccc", "0c0c0c", "0037da", "3a96dd"),
    "GNOME dark": ("ffffff", "1e1e1e", "12488b", "2aa1b3"),
    "GNOME light": ("1e1e1e", "ffffff", "12488b", "2aa1b3"),
    "xterm, and macOS Basic": ("000000", "ffffff", "0000ee", "00cdcd"),
    "VS Code dark": ("cccccc", "1e1e1e", "2472c8", "11a8cd"),
    "Dracula": ("f8f8f2", "282a36", "bd93f9", "8be9fd"),
}


def luminance(shown: Colour) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in (value / 255 for value in shown)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def mixed(front: Colour, back: Colour) -> Colour:
    red, green, blue = (KEPT * mine + (1 - KEPT) * theirs for mine, theirs in zip(front, back, strict=True))
    return red, green, blue


def drawn(look: str, palette: str, behind: Colour) -> Colour:
    """The colour of text with this look. `behind` is what faint text is mixed with."""
    foreground, _, blue, cyan = map(colour, PALETTES[palette])
    shown = foreground
    faint = False
    for code in codes(look)[0].removeprefix("\x1b[").removesuffix("m").split(";"):
        if code == "2":
            faint = True
        elif code != "1":  # bold is at least as strong
            shown = {"34": blue, "36": cyan}[code]
    return mixed(shown, behind) if faint else shown


@pytest.mark.parametrize("palette", PALETTES)
def test_thoughts_can_be_read(palette: str) -> None:
    """Heading and text, however faint is drawn; and mixed with the background the thought is weaker than the answer."""
    foreground, background, *_ = map(colour, PALETTES[palette])
    style = Style()
    for look in (style.heading, style.text):
        for behind in (background, (0, 0, 0)):
            assert contrast(drawn(look, palette, behind), background) >= LEAST
    assert contrast(drawn(style.text, palette, background), background) < contrast(foreground, background)


@pytest.mark.parametrize("look", ["blue", "cyan"])
def test_no_colour_of_the_palette_could_be_read_on_all(look: str) -> None:
    """Why the default has none; and this test can fail."""
    worst = min(contrast(drawn(look, name, (0, 0, 0)), colour(PALETTES[name][1])) for name in PALETTES)
    assert worst < 3
