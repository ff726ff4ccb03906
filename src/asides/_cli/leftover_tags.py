"""Tags around a thought that `auto` has left in the answer, for a hint. Changes nothing that is read or shown."""

from __future__ import annotations

import re
from collections import deque
from functools import cache

from .._engine.fences import Fences
from .._engine.parser import Parser
from ..events import PartEnd, PartStart
from ..policies import Policies
from ..reading import Reading

_MOST_LINE = 4096
"""Characters of the line that is being written: a tag may come in pieces, and what stands before it on its line says
whether it is talked about."""


@cache
def _tag() -> re.Pattern[str]:
    from ..families._think_tag import THINKING_TAGS, WEAK_TAGS  # here, because most answers hold no tag

    return re.compile(rf"<(?:{'|'.join((*THINKING_TAGS, *WEAK_TAGS))})(?=[\s>])[^<>\n]{{0,200}}>", re.IGNORECASE)


class LeftoverTags:
    """Looks through the answer as it comes.

    From the first line that holds such a tag, the answer is read again by the format that knows all of them. So a tag
    in quotes, in a code block or in a sentence about tags is no thought here either.
    """

    def __init__(self) -> None:
        self.found = ""
        """The opening tag of the first thought that was left in the answer, as it was written."""
        self._line = ""
        self._at = 0  # offset of `_line` in the answer
        self._fences = Fences()
        self._tags: deque[tuple[int, str]] = deque(maxlen=64)  # where a tag ends, and the tag
        self._again: Parser | None = None
        self._base = 0  # offset in the answer of what is read again
        self._thoughts: set[int] = set()

    def add(self, text: str) -> None:
        """The next piece of the answer."""
        if self.found:
            return
        seen = self._line + text
        # Those that end in this piece; the others were seen before.
        new = ">" in text and "<" in seen
        tags = [tag for tag in _tag().finditer(seen) if tag.end() > len(self._line)] if new else []
        self._tags += [(self._at + tag.end(), tag[0]) for tag in tags]
        if self._again is None and tags:
            begin = seen.rfind("\n", 0, tags[0].start()) + 1
            self._fences.advance(seen, self._at, begin, 0)
            fence = "```\n" if self._fences.inside else ""
            self._base = self._at + begin - len(fence)
            self._again = Reading.of(format="think_tag", policies=Policies(collect=False, calls=False)).parser()
            text = fence + seen[begin:]
        if self._again is not None:
            self._read_again(self._again, text)
        line = max(seen.rfind("\n") + 1, len(seen) - _MOST_LINE)
        if self._again is None:
            self._fences.advance(seen, self._at, line, 0)
        self._line, self._at = seen[line:], self._at + line

    def _read_again(self, parser: Parser, text: str) -> None:
        for event in parser.feed(text):
            if isinstance(event, PartStart) and event.kind == "thinking":
                self._thoughts.add(event.index)
            elif isinstance(event, PartEnd) and event.complete and event.index in self._thoughts and event.span:
                begun = event.span[0] + self._base
                self.found = next((tag for end, tag in reversed(self._tags) if end <= begun), "")
                if self.found:
                    return
