"""Texts that are hard on readers of think tags, and ways to cut them. Shared by the tests of the interfaces."""

from __future__ import annotations

import re

from hypothesis import strategies as st

from tests.support import cut

PIECES = (
    *("zebra", "a", "It is 4.", "é", "日本", "<", "</", ">", "0", "?"),
    *(" ", "\n", "\n\n", "  "),
    *("<think>", "</think>", "<Think>", "</THINK>", "<thinking>", "</thinking>", "<thi"),
    *("`<think>`", '"</think>"', "<think></think>", "<think>\n\n</think>\n\n", "\n```\n<think>\n```\n"),
    *('<tool_call>{"name": "f", "arguments": {}}</tool_call>', "<tool_call>", "<|im_end|>"),
)
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
places = st.lists(st.integers(1, 120), max_size=8)

TAGS = ("<think>", "</think>", "<thinking>", "</thinking>", "<|im_end|>")


def chunkings(text: str, where: list[int]) -> list[list[str]]:
    """A text whole, character by character, and cut at these places. Even an empty one is a chunk."""
    return [[text], list(text) or [""], list(cut(text, where))]


def letters(*parts: str) -> list[str]:
    """The characters of texts, sorted: without whitespace, and without markers, which may act."""
    found: list[str] = []
    for part in parts:
        # What stands on both sides of a marker must not become one.
        folded = re.sub("|".join(map(re.escape, TAGS)), "\0", part.casefold())
        found += "".join(folded.replace("\0", "").split())
    return sorted(found)
