"""Suffixes that a checkpoint puts to every tag of its own: `<think:6124c78e>`, `</tool_call:6124c78e>`.

A format that allows them (`Format.suffixed`) writes its markers without one. Until the suffix is known any will do;
the first marker with one that acts, or the tokenizer's vocabulary, says which it is, and from then on no other counts.
"""

from __future__ import annotations

import re

LONGEST_SUFFIX = 64
"""A suffix is no longer than this, in characters, its colon not counted."""
SUFFIX = rf":[\w.\-]{{1,{LONGEST_SUFFIX}}}"
BEGUN_SUFFIX = rf":[\w.\-]{{0,{LONGEST_SUFFIX}}}"
"""A suffix of which more may come."""
_IN_TAG = rf"(?<=.)({SUFFIX})(?=[|｜]?>\Z)"


def split_tag(tag: str) -> tuple[str, str]:
    """What stands before the suffix of a tag, and what behind it."""
    size = 2 if tag[-2:-1] in ("|", "｜") else 1
    return tag[:-size], tag[-size:]


def with_suffix(tag: str, suffix: str) -> str:
    """A tag with a suffix."""
    head, tail = split_tag(tag)
    return head + suffix + tail


def split_suffix(tag: str) -> tuple[str, str]:
    """A tag without its suffix, and the suffix; empty where it has none."""
    match = re.search(_IN_TAG, tag)  # compiled when it is first needed: few formats allow suffixes
    return (tag[: match.start()] + tag[match.end() :], match[0]) if match else (tag, "")
