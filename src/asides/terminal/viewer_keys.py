"""The keys of the viewer, in words: for its own help and for that of the command, which does not load the viewer."""

from __future__ import annotations

KEYS = (
    ("Down Up j k", "move; so do PageDown, PageUp, Home, End, g, G and the wheel"),
    ("Tab n, Shift-Tab p", "next, previous thought"),
    ("Enter Space, a click", "show or hide the thought"),
    ("a", "show or hide all"),
    ("/", "search, in hidden thoughts too; with nothing typed, search on"),
    ("y, Y", "copy the answer, or the selected thought (where the terminal allows it)"),
    ("w FILE", "write it to a new file, as it came"),
    ("?", "this help, or away with it"),
    ("q, Ctrl-C", "quit"),
)
WIDEST = max(len(keys) for keys, _ in KEYS)


def list_keys(width: int) -> list[str]:
    """A line for each of them, or two where a line is not wide enough."""
    from .answer import fit  # here, because `--help` alone needs it

    lines: list[str] = []
    for keys, meaning in KEYS:
        if width > WIDEST + 30:
            first, *others = fit(meaning, width - WIDEST - 2).split("\n")
            lines += [f"{keys:<{WIDEST}}  {first}", *(" " * (WIDEST + 2) + other for other in others)]
        else:
            lines += [*fit(keys, width).split("\n"), *fit(meaning, width, "    ").split("\n")]
    return lines
