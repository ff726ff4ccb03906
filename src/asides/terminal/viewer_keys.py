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
BROWSER_KEYS = (
    ("Down Up j k", "move; so do Space, PageDown, PageUp, Home, End, g, G and the wheel"),
    ("Enter, a click", "open it; q comes back to the list"),
    ("/", "search inside thoughts, and in answers behind them"),
    ("c Tab", "conversations, or single replies again"),
    ("?", "this help, or away with it"),
    ("q Escape", "leave what was found, or quit; Ctrl-C quits"),
)
