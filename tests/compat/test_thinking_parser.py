"""`compat.thinking_parser`: Ollama's kind of interface, held to what Ollama does and to what it should not lose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import asides
from asides.compat.thinking_parser import ProcessedChunk, ThinkingParser, ThinkValue
from tests.compat.texts import chunkings, letters, places, texts
from tests.laws.effort import examples

CASES = Path(__file__).parents[3] / "shared" / "data" / "ollama_cases.json"


def read(chunks: list[str], **options: Any) -> tuple[str, str]:
    """All that was thought and all that was said."""
    parser = ThinkingParser(**options)
    told = [*map(parser.process, chunks), parser.finish()]
    return "".join(chunk.thinking or "" for chunk in told), "".join(chunk.content for chunk in told)


def test_a_tag_cut_in_two_is_a_tag() -> None:
    """Deltas come as soon as they are sure, and a chunk that tells nothing says so."""
    parser = ThinkingParser()
    assert parser.process("<thi") == ProcessedChunk(None, "")
    assert parser.process("nk>2+2") == ProcessedChunk("2+2", "")
    assert parser.process("</think>\n\nIt is") == ProcessedChunk(None, "It is")
    assert parser.process(" 4.") == ProcessedChunk(None, " 4.")
    assert parser.finish() == ProcessedChunk(None, "")


def test_what_was_held_comes_at_the_end() -> None:
    """A beginning of a tag that never became one is not lost."""
    parser = ThinkingParser()
    assert parser.process("a <thi") == ProcessedChunk(None, "a")
    assert parser.held == 5
    assert parser.finish() == ProcessedChunk(None, " <thi")


def test_after_the_end_another_reply_begins() -> None:
    """A parser may be used for one reply after another."""
    parser = ThinkingParser()
    for _ in range(2):
        assert parser.process("<think>a</think>b") == ProcessedChunk("a", "b")
        parser.finish()


def test_all_the_thinking_of_a_reply() -> None:
    """`new()` makes a parser, and `thinking` grows with the deltas; the next reply begins with none."""
    parser = ThinkingParser.new()
    assert parser.thinking == ""
    parser.process("<think>a ")
    assert parser.thinking == "a"
    parser.process("b</think>c<think>d")
    assert parser.thinking == "a b\n\nd"
    parser.process("</thi")
    parser.finish()
    assert parser.thinking == "a b\n\nd</thi"
    parser.process("e")
    assert parser.thinking == ""


def test_a_prompt_that_opened_thinking() -> None:
    """`start` and `prompt` say that output begins inside thinking."""
    assert read(["abc</think>def"], start="thinking") == ("abc", "def")
    assert read(["abc</think>def"], format="qwen3", prompt="<|im_start|>assistant\n<think>\n") == ("abc", "def")


def test_calls_stay_where_they_are() -> None:
    """A call is content: whoever reads calls finds it as it was written."""
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert read([f"<think>a</think>b {call}"]) == ("a", f"b {call}")


HARMONY = (
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.f "
    '<|constrain|>json<|message|>{"a":1}<|call|>'
)


def test_a_call_that_is_a_message_of_its_own_is_written_out() -> None:
    """Where a call stands in no text, its name and its arguments are not lost."""
    expected = ("hm", '<tool_call>{"name": "f", "arguments": {"a":1}}</tool_call>')
    assert read([HARMONY]) == read(list(HARMONY)) == expected
    assert asides.parse(expected[1], "qwen3").tool_calls[0].arguments == '{"a":1}'


@settings(max_examples=examples(60))
@given(texts, places)
def test_chunking_does_not_matter(text: str, where: list[int]) -> None:
    """Every cut gives the same, which is what the engine says, and no word is lost."""
    message = asides.parse(text, start="text", calls=False)
    for chunks in chunkings(text, where):
        assert read(chunks) == (message.thinking, message.text)
    assert letters(message.thinking, message.text) == letters(text)


# Ollama's own cases, where they stand beside the repository.

DIFFERENT = {
    "<think>a</think><think>b</think>c": "a second thought is a thought",
    "  abc <think>def</think> ghi": "words before a thought do not make it words",
    "<thi": "nothing held is lost at the end",
    "<think>abc</thi": "nothing held is lost at the end",
    "</think>x": "a marker that acts as one is no content",
    "abc</think>def": "a marker that acts as one is no content",
    "   ": "whitespace alone is content, not lost",
    "<think>a <think> b</think> c": "both tags inside one line with a small letter after them: they are talked about",
}
"""What we read otherwise than Ollama, and why."""


def recorded() -> list[tuple[list[str], str, str]]:
    """Ollama's cases: chunks, thinking and content."""
    if not CASES.is_file():
        return []
    data = json.loads(CASES.read_text(encoding="utf-8"))
    cases = [(case["feed"], case["thinking"], case["content"]) for case in data["one_shot"] + data["observed"]]
    for case in data["streaming"]:
        told = [(step["in"], step["thinking"], step["content"]) for step in case["steps"]]
        cases.append(([step[0] for step in told], "".join(step[1] for step in told), "".join(step[2] for step in told)))
    return cases


@pytest.mark.skipif(not CASES.is_file(), reason="no recorded cases stand beside this repository")
def test_every_difference_from_ollama_is_met() -> None:
    """The list of differences holds no case that is not there."""
    assert set(DIFFERENT) <= {"".join(chunks) for chunks, _, _ in recorded()}


@pytest.mark.parametrize(("chunks", "thinking", "content"), recorded(), ids=lambda value: repr(value))
def test_as_ollama_reads(chunks: list[str], thinking: str, content: str) -> None:
    """We read as Ollama does, but for whitespace at the end of a thought, and for one of the listed reasons."""
    found = read(chunks)
    same = (found[0], found[1]) == (thinking.rstrip(), content) or found == (thinking, content)
    assert same != ("".join(chunks) in DIFFERENT), found


# What a request may ask for.


@pytest.mark.parametrize(
    ("value", "enabled", "level"),
    [(True, True, "medium"), (False, False, None), ("low", True, "low"), ("high", True, "high"), ("max", True, "max")],
)
def test_think_values(value: bool | str, enabled: bool, level: str | None) -> None:
    """A bool or a level; the value itself is what JSON holds."""
    found = ThinkValue.read(value)
    assert found is not None
    assert (found.value, found.enabled, found.level) == (value, enabled, level)


def test_no_think_value() -> None:
    """Absent is neither true nor false."""
    assert ThinkValue.read(None) is None
    assert ThinkValue.from_effort(None) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("extreme", 'invalid think value: "extreme" (must be "high", "medium", "low", "max", true, or false)'),
        ("High", 'invalid think value: "High" (must be'),
        (3, "think must be a boolean or string"),
    ],
)
def test_a_wrong_think_value_is_told_as_ollama_tells_it(value: object, words: str) -> None:
    """A mistake gets Ollama's own words, in an error of ours."""
    with pytest.raises(asides.Error) as caught:
        ThinkValue.read(value)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("effort", "value"), [("none", False), ("minimal", "low"), ("medium", "medium"), ("xhigh", "max")]
)
def test_reasoning_effort_becomes_a_think_value(effort: str, value: bool | str) -> None:
    """OpenAI's efforts are mapped as Ollama maps them."""
    assert ThinkValue.from_effort(effort) == ThinkValue.read(value)


def test_an_unknown_effort_is_an_error() -> None:
    """An effort that nobody knows is told."""
    with pytest.raises(asides.UsageError, match="invalid reasoning effort 'extreme'"):
        ThinkValue.from_effort("extreme")
