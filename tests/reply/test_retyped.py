"""A stream that corrects where it began: its record is that of the whole reply, and counts and times move along."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asides import Policies, Retyped, Text, Thinking
from asides.families import get_format
from asides.reading import Reading
from asides.reading._seen import shown_by
from asides.reply import CallChunk, Chunk, Ended, Fold, RawText, ReplyEvent, ReplyItem, Splitter, ThinkingChunk, Usage
from asides.reply import _choice as choice_module
from asides.reply._corrected import corrected
from tests.dialects.shapes import make_parser

LATE = " hm so\n</think>\n\nFour."
NEVER = "\n It is 4."


def guess(start: str, **policies: Any) -> Reading:
    """A reading whose start is a guess."""
    return Reading.of(format="qwen3", policies=Policies(start=start, retype=True, **policies))  # type: ignore[arg-type]  # a word of `Start`


def read(reading: Reading, *chunks: Chunk) -> tuple[list[ReplyItem], Splitter]:
    splitter = reading.splitter()
    return [item for chunk in chunks for item in splitter.feed(chunk)], splitter


def by_character(text: str, reason: str = "stop") -> list[Chunk]:
    return [*(RawText(0, character) for character in text), Ended(0, reason)]  # type: ignore[arg-type]  # a `Reason`


def folded(items: list[ReplyItem]) -> Fold:
    fold = Fold()
    for item in items:
        fold.add(item)
    return fold


@pytest.mark.parametrize(("start", "text"), [("text", LATE), ("thinking", NEVER), ("thinking", LATE), ("text", NEVER)])
def test_streamed_and_whole_give_one_record(start: str, text: str) -> None:
    whole, counted = read(guess("undecided"), RawText(0, text), Ended(0))
    streamed, splitter = read(guess(start), *by_character(text))
    one, other = folded(whole).reply, folded(streamed).reply
    assert one.parts == other.parts
    assert (one.thinking, one.text, one.termination) == (other.thinking, other.text, other.termination)
    assert splitter.thinking_characters == counted.thinking_characters
    assert splitter.answer_characters == counted.answer_characters
    assert folded(corrected(streamed)).reply.parts == one.parts
    assert not [item for item in corrected(streamed) if isinstance(item, ReplyEvent) and type(item.event) is Retyped]


@given(st.text("a \n<", max_size=8), st.booleans(), st.text("b \n", max_size=8), st.sampled_from(["text", "thinking"]))
def test_generated_texts_give_one_record(before: str, closes: bool, behind: str, start: str) -> None:
    text = before + "</think>" * closes + behind
    assume(text.strip())  # of whitespace alone a thought has no part, and so nothing to correct
    whole = folded(read(guess("undecided"), RawText(0, text), Ended(0))[0]).reply
    streamed = read(guess(start), *by_character(text))[0]
    assert folded(streamed).reply.parts == whole.parts
    assert folded(corrected(streamed)).reply.parts == whole.parts


def test_a_cut_thought_stays_one() -> None:
    reply = folded(read(guess("thinking"), *by_character(NEVER, "length"))[0]).reply
    assert [type(part) for part in reply.parts] == [Thinking]


def test_tokens_are_shared_out_by_what_the_words_are() -> None:
    """Usage comes last, and the estimate counts the corrected parts."""
    items, _ = read(guess("text"), *by_character("ab</think>cd"), Usage(output_tokens=10))
    usage = items[-1]
    assert isinstance(usage, Usage)
    assert usage.reasoning_tokens == 5


def test_a_call_of_the_server_ends_the_guess() -> None:
    """Words before a call that the server has read itself, and no close: they are text, as in a whole reply."""
    chunks: list[Chunk] = [RawText(0, "I look."), CallChunk(0, 0, "c", "f", "{}"), Ended(0)]
    for reading in (guess("thinking"), guess("undecided")):
        assert folded(read(reading, *chunks)[0]).reply.text == "I look."


def test_text_after_something_split_off_is_never_corrected() -> None:
    splitter = Splitter(get_format("qwen3"), make_parser())
    items = [
        item
        for chunk in (CallChunk(0, 0, "c", "f", "{}"), *by_character("a</think>b"))
        for item in splitter.feed(chunk)
    ]
    assert folded(items).reply.text == "ab"
    items, _ = read(guess("text"), ThinkingChunk(0, "hm"), *by_character("a</think>b"))
    assert folded(items).reply.text.startswith("a")


def test_times_move() -> None:
    moments = iter(range(100))
    fold = Fold(clock=lambda: float(next(moments)))
    for item in read(guess("text"), *by_character("ab</think>c"))[0]:
        fold.add(item)
    times = fold.reply.times
    assert times.first_thought is not None
    assert times.first_answer is not None
    assert times.first_thought < times.first_answer
    assert times.thoughts[0] is not None
    fold = folded(read(guess("thinking"), *by_character("ab"))[0])
    assert fold.answered


def test_what_such_replies_show() -> None:
    """A thought that nothing closed: once it could be an accident. A lone close is none."""
    assert shown_by(folded(read(guess("thinking"), *by_character(NEVER))[0]), "thinking") == "silent"
    assert shown_by(folded(read(guess("text"), *by_character(LATE))[0]), "text") == "thinking"


def test_long_thoughts_keep_their_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of a thought are needed again where it was the answer; up to a bound, beyond which it stays one."""
    words = "word " * 3000
    assert folded(read(guess("thinking"), *by_character(words))[0]).reply.text == words
    monkeypatch.setattr(choice_module, "MOST_COMPARED", 4000)
    assert folded(read(guess("thinking"), *by_character(words))[0]).reply.text == ""


def test_log_probabilities_move_with_a_whole_reply() -> None:
    chunks = [RawText(0, text, ({"token": text, "logprob": -1.0},)) for text in ("hm", "</think>", "4")]
    items = corrected(read(guess("text"), *chunks, Ended(0))[0])
    texts = [token["token"] for item in items if isinstance(item, ReplyEvent) for token in item.logprobs]
    assert texts == ["4"]
    chunks = [RawText(0, text, ({"token": text, "logprob": -1.0},)) for text in ("It ", "is 4")]
    items = corrected(read(guess("thinking"), *chunks, Ended(0))[0])
    texts = [token["token"] for item in items if isinstance(item, ReplyEvent) for token in item.logprobs]
    assert texts == ["It ", "is 4"]
    assert [type(part) for part in folded(items).reply.parts] == [Text]
