"""The texts of tokens joined: what `bytes.decode` says of all bytes at once, wherever tokens cut characters."""

from __future__ import annotations

import codecs
from itertools import accumulate, product

from hypothesis import given
from hypothesis import strategies as st

from asides._engine.token_text import TokenTexts, split_last, text_of_bytes, whole_characters

ODD = (0x41, 0x80, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xE4, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5, 0xFF)
"""A byte of each kind that UTF-8 knows."""
PIECES = st.one_of(
    st.binary(max_size=4),
    st.lists(st.sampled_from(ODD), max_size=4).map(bytes),
    st.sampled_from("aé你🤔\ufffd").map(str.encode).flatmap(lambda data: st.sampled_from([data[:1], data[1:], data])),
)
"""What a token may be: nothing, any bytes, characters and what is left of one that another token has cut."""


def texts_of(tokens: list[bytes]) -> TokenTexts:
    return TokenTexts(lambda id: text_of_bytes(tokens[id]))


def decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def check_text(tokens: list[bytes]) -> None:
    joined = texts_of(tokens).join(range(len(tokens)))
    assert whole_characters(joined) == decode(b"".join(tokens))


@given(st.lists(PIECES, max_size=12))
def test_the_text_is_that_of_all_bytes(tokens: list[bytes]) -> None:
    check_text(tokens)


def test_any_three_bytes_and_a_fourth() -> None:
    """All kinds of bytes in all orders, each a token of its own."""
    for data in product(ODD, repeat=4):
        check_text([bytes([byte]) for byte in data])


@given(st.lists(PIECES, max_size=12))
def test_in_several_goes(tokens: list[bytes]) -> None:
    """The beginning of a character at the end of one go waits for the next, as in an incremental decoder."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    waiting = ""
    for token in tokens:
        text, waiting = split_last(waiting + text_of_bytes(token))
        assert text == decoder.decode(token)
    assert whole_characters(waiting) == decoder.decode(b"", True)


@given(st.lists(PIECES, max_size=12), st.data())
def test_places(tokens: list[bytes], data: st.DataObject) -> None:
    """A token holds a character where it holds a byte of it."""
    whole = b"".join(tokens)
    size = len(decode(whole))
    if not size:
        return
    # Which bytes each character is made of. Nothing is longer than four, and no character begins inside another one.
    owners: list[int] = []
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    done = 0
    for place in range(len(whole)):
        done += len(decoder.decode(whole[place : place + 1]))
        waits = len(decoder.getstate()[0])
        owners.append(done if waits else done - 1)
        # An earlier beginning that came to nothing was a character of its own.
        if waits > 1:
            owners[-waits:] = [done] * waits
    places = texts_of(tokens).places(range(len(tokens)))
    start = data.draw(st.integers(0, size - 1))
    stop = data.draw(st.integers(start + 1, size))
    first, last = places.of((start, stop))
    ends = list(accumulate(map(len, tokens), initial=0))
    holding = [
        number
        for number in range(len(tokens))
        if any(start <= owner < stop for owner in owners[ends[number] : ends[number + 1]])
    ]
    # What stands between is all of it, but for tokens that say nothing.
    assert [number for number in range(first, last) if tokens[number]] == holding


def test_ids_that_no_token_has_are_not_remembered() -> None:
    texts = TokenTexts(lambda id: "" if id > 1 else "a")
    assert texts.join([0, 1, 2, 3]) == "aa"
    assert len(texts) == 2
