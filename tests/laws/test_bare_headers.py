"""Laws 1 to 5 over texts whose header markers a server has left out, for every format that reads such texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides import Format
from tests.laws.effort import examples
from tests.laws.texts import pieces, policies
from tests.support import characters, check_chunking, check_held, check_kept, check_one_path, cut, two_way_splits

NAMES = [name for name in asides.formats() if (header := asides.get_format(name).header) and header.bare]
bare_formats = pytest.mark.parametrize("name", NAMES)
BODIES = ("Need it.", "okay", "4", "日本", "{}", '{"a": "b.assistantfinalX"}', " ", "\n", "`", "```\n", "X.")


def own_pieces(format: Format) -> tuple[str, ...]:
    """The words that headers are made of, whole and in parts."""
    header = format.header
    assert header is not None
    assert header.bare is not None
    recipients = [f" to={name}" for name in ("functions.f", "python", "user", "assistant", "")]
    glued = [f"{recipient}{channel}" for recipient in recipients for channel in header.channels]
    starts = [*header.channels, *header.joined, *header.roles]
    calls = [f'{role}{channel} to=functions.f json{{"a": 1}}' for role in header.roles for channel in header.channels]
    return (*starts, *recipients, *glued, *calls, *(f" {name}" for name in header.bare.types), *header.bare.types)


def bare_texts(name: str) -> st.SearchStrategy[str]:
    """Texts that often begin with a channel's name and go on with words, joined headers and the format's own pieces."""
    header = asides.get_format(name).header
    words = header.bare.words if header is not None and header.bare is not None else ()
    own = st.sampled_from(own_pieces(asides.get_format(name)))
    piece = own | st.sampled_from(BODIES) | st.sampled_from(pieces(name))
    return st.tuples(own | st.sampled_from(words), st.lists(piece, max_size=8)).map(
        lambda drawn: drawn[0] + "".join(drawn[1])
    )


@bare_formats
def test_chunking_does_not_matter(name: str) -> None:
    """Laws 1, 2 and 3."""

    @settings(max_examples=examples(60))
    @given(bare_texts(name), policies(name), st.lists(st.integers(1, 300), max_size=4))
    def law(text: str, chosen: dict[str, Any], places: list[int]) -> None:
        ways = [characters(text), cut(text, places)]
        ways += two_way_splits(text) if len(text) <= 80 else []
        outcome = check_chunking(name, text, ways, chosen)
        check_kept(name, text, outcome, chosen)
        check_one_path(name, text, chosen)

    law()


@bare_formats
def test_little_is_held(name: str) -> None:
    """Law 5, and `limit` with it."""

    @settings(max_examples=examples(30))
    @given(bare_texts(name), policies(name), st.integers(1, 9), st.integers(1, 80))
    def law(text: str, chosen: dict[str, Any], size: int, limit: int) -> None:
        check_held(name, text, cut(text, range(size, len(text), size)), {**chosen, "limit": limit})

    law()
