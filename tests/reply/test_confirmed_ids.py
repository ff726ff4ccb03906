"""Ids that come beside text: read when the text confirms them, and given up for the text where it does not."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asides
from asides.events import TextDelta, ThinkingDelta
from asides.reading import Reading
from asides.reply._confirmed_ids import MOST_AHEAD, ConfirmedIds
from asides.reply._items import Ended, RawText, ReplyEvent, ReplyItem
from asides.reply._splitter import Splitter
from tests.render.real import vocabulary

NAME = "deepseek_v4"
READING = Reading.of("deepseek-ai/DeepSeek-R1")
CLOSE, STOP, OTHER = "</think>", "<｜end▁of▁sentence｜>", "<｜fim▁end｜>"
WORDS = st.lists(
    st.sampled_from(
        ["Hm", " so", "\n", " </", "think", ">", CLOSE, "你好", "𓂀", "é", "🎉", "`", " `x`", "<", OTHER, " "]
    ),
    max_size=12,
)


def read(chunks: Sequence[RawText], reason: str = "stop") -> tuple[list[ReplyItem], Splitter]:
    """The items of a stream."""
    splitter = READING.splitter(tokenizer=vocabulary(NAME).tokenizer, keep=1 << 20)
    items = [item for chunk in chunks for item in splitter.feed(chunk)]
    return [*items, *splitter.feed(Ended(0, "stop" if reason == "stop" else "length"))], splitter


def told(items: Sequence[ReplyItem]) -> tuple[str, str]:
    """Thought and text."""
    events = [item.event for item in items if isinstance(item, ReplyEvent)]
    thought = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
    return thought, "".join(event.text for event in events if isinstance(event, TextDelta))


def wanted(ids: Sequence[int]) -> tuple[str, str]:
    """The same of the ids alone."""
    parser = READING.token_parser(vocabulary(NAME).tokenizer)
    events = parser.feed(ids) + parser.finish()
    thought = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
    return thought, "".join(event.text for event in events if isinstance(event, TextDelta))


@given(words=WORDS, data=st.data())
def test_however_text_and_ids_are_cut(words: list[str], data: st.DataObject) -> None:
    """Ids may come long before their text; the same parts come of it as of the ids alone, and of text all of it."""
    known = vocabulary(NAME)
    ids = [id for word in words for id in ([known.added[word]] if word in known.added else known.encode(word))]
    text = known.text(ids)
    chunks: list[RawText] = []
    sent = at = 0
    while at < len(ids):
        stop = data.draw(st.integers(at + 1, len(ids)))
        # No more text than its ids have.
        most = len(known.text(ids[:stop]).rstrip("\ufffd"))
        shown = data.draw(st.integers(sent, max(sent, most)))
        chunks.append(RawText(0, text[sent:shown], (), tuple(ids[at:stop])))
        sent, at = shown, stop
    chunks.append(RawText(0, text[sent:]))
    items, splitter = read(chunks)
    if splitter.id_use == "read":
        assert told(items) == wanted(ids)
    assert splitter.id_use != "disagree"
    assert splitter.written(0) == text


@given(words=WORDS, wrong=st.integers(0, 20), shift=st.integers(1, 5))
def test_nothing_is_lost_where_ids_are_wrong(words: list[str], wrong: int, shift: int) -> None:
    """From any place on: all that the server says is read, and what is written like a marker is one."""
    known = vocabulary(NAME)
    ids = [id for word in words for id in ([known.added[word]] if word in known.added else known.encode(word))]
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    chunks = [
        RawText(0, decoder.decode(known.bytes_of(id)), (), (id + shift if at >= wrong else id,))
        for at, id in enumerate(ids)
    ]
    items, splitter = read(chunks)
    assert splitter.written(0) == known.text(ids)
    thought, answer = told(items)
    said = "".join(known.text(ids).split()).replace(CLOSE, "")
    assert "".join((thought + answer).split()).replace(CLOSE, "") == said


def test_a_marker_that_comes_in_two_pieces_of_text() -> None:
    """After the ids have proved wrong."""
    known = vocabulary(NAME)
    first, wrong = known.encode("Hm")[0], known.encode("zebra")[0]
    chunks = [RawText(0, known.text([first]), (), (first,)), RawText(0, " so", (), (wrong,))]
    items, splitter = read([*chunks, RawText(0, "</thi"), RawText(0, "nk>Fo"), RawText(0, "ur.")])
    assert told(items) == (known.text([first]) + " so", "Four.")
    assert splitter.id_use == "disagree"


def test_text_without_ids_goes_on_with_what_ids_began() -> None:
    """As where the gateway ends a thought itself, and another reply goes on: that is no disagreement."""
    known = vocabulary(NAME)
    splitter = READING.splitter(tokenizer=known.tokenizer, keep=1 << 20)
    items = [item for id in known.encode("Hm so") for item in splitter.feed(RawText(0, known.text([id]), (), (id,)))]
    thought = splitter.thought(0)
    assert thought is not None
    assert (thought.text, thought.opening, thought.closing) == ("Hm so", "<think>", CLOSE)
    for text in (CLOSE, "Fo", "ur."):
        items += splitter.feed(RawText(0, text))
    items += splitter.feed(Ended(0))
    assert told(items) == ("Hm so", "Four.")
    assert splitter.id_use == "read"
    assert splitter.written(0) == f"Hm so{CLOSE}Four."


def test_a_token_that_is_not_shown_and_is_no_marker_says_nothing() -> None:
    """The server has left it out of its text."""
    known = vocabulary(NAME)
    hm = known.encode("Hm")
    chunks = [RawText(0, known.text([id]), (), (id,)) for id in hm] + [RawText(0, "", (), (known.added[OTHER],))]
    items, splitter = read([*chunks, RawText(0, "", (), (known.added[STOP],))])
    assert told(items) == ("Hm", "")
    assert splitter.written(0) == "Hm" + STOP
    assert splitter.id_use == "read"


def test_ids_whose_text_never_comes_are_not_waited_for_for_ever() -> None:
    """Work stays in proportion, whatever a server sends."""
    known = vocabulary(NAME)
    confirmed = ConfirmedIds(READING.token_parser(known.tokenizer))
    word = known.encode(" word")[0]
    confirmed.feed(" word", (word,))
    for _ in range(MOST_AHEAD + 1):
        confirmed.feed("", (word,))
    assert confirmed.by_text
    assert confirmed.feed(" more", (word,))[1] == " more"


@pytest.mark.parametrize("text", ["a\ufffdb", "\ufffd"])
def test_a_broken_character_is_no_other_tokenizer(text: str) -> None:
    """Servers write a sign for bytes that are none; the reply is read as text from there on."""
    known = vocabulary(NAME)
    half = next(id for id in range(300) if known.pieces[id] is None)
    ids = [*(known.encode("a") if text[0] == "a" else ()), half, *(known.encode("b") if text[-1] == "b" else ())]
    items, splitter = read([RawText(0, text, (), tuple(ids))])
    assert told(items) == (text, "")
    assert splitter.id_use == "read"


def test_reading_without_a_tokenizer_passes_over_ids() -> None:
    """As before."""
    splitter = asides.Reading.of("deepseek-ai/DeepSeek-R1").splitter()
    items = [*splitter.feed(RawText(0, "Hm</think>", (), (5,))), *splitter.feed(Ended(0))]
    assert told(items) == ("Hm", "")
