"""The keys of the viewer, in words: for its own help and for that of the command, which does not load the viewer."""

from __future__ import annotations

KEYS = (
    ("Down Up j k", "move; so do PageDown, PageUp, Home, End, g, G and the wheel"),
    ("Tab n, Shift-Tab p", "next, previous thought"),
    ("Enter Space, a click", "open or close the thought"),
    ("a", "open or close all thoughts"),
    ("/", "search, also in closed thoughts; with nothing typed, find the next"),
    ("y, Y", "copy the answer, or the selected thought (if the terminal allows it)"),
    ("w FILE", "write the raw output to a new file"),
    ("?", "show or hide this help"),
    ("q, Ctrl-C", "quit"),
)
BROWSER_KEYS = (
    ("Down Up j k", "move; so do Space, PageDown, PageUp, Home, End, g, G and the wheel"),
    ("Enter, a click", "open the selected entry; q returns to the list"),
    ("/", "search thoughts first, then answers"),
    ("c Tab", "switch between single replies and conversations"),
    ("?", "show or hide this help"),
    ("q Escape", "leave the search results, or quit; Ctrl-C quits"),
)
