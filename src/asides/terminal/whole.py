"""Whole thoughts as text: headed, indented, wrapped where a width is given. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from .headings import describe, heading
from .indent import Indented, Layout
from .sanitize import sanitize
from .style import PLAIN, Style, codes
from .wrap import Wrapped


def render(
    thoughts: Sequence[str],
    *,
    width: int | None = None,
    style: Style | None = None,
    colour: bool = False,
    collapse: bool = False,
) -> str:
    """All thoughts of a message as lines, a blank line between them. Numbered when there are several.

    With `collapse` each is one line with its length. Control characters in them are made visible.
    """
    style = style or Style()
    before_heading, after_heading = codes(style.heading) if colour else PLAIN
    before_text, after_text = codes(style.text) if colour else PLAIN
    blocks: list[str] = []
    for number, thought in enumerate(thoughts, 1):
        title = f"{before_heading}{heading(number, several=len(thoughts) > 1)}{after_heading}"
        if collapse:
            blocks.append(f"{title} ({describe(len(thought))})\n")
            continue
        layout: Layout = Indented() if width is None else Wrapped(lambda: width, cursor=False)
        lines = layout.feed(sanitize(thought)) + layout.finish()
        blocks.append(f"{title}\n{before_text}{lines}{after_text}\n" if lines else f"{title}\n")
    return ("" if collapse else "\n").join(blocks)
