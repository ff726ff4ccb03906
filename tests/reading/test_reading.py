"""`Reading.of`: which evidence counts more, and what replies show."""

from __future__ import annotations

from typing import Literal

import pytest

import asides
from asides import Policies, Reading
from asides.detect import Detection
from asides.events import Notice, PartEnd, PartStart, TextDelta, ThinkingDelta
from asides.reading import Seen, SeenReplies, ServerFacts, shown_by
from asides.reply._fold import Fold
from asides.reply._items import Ended, ReplyEvent

OPENS = Detection(
    format="qwen3", thinks=True, start="thinking", confidence="known", switch="enable_thinking", on=True, off=False
)
LEAVES = Detection(format="qwen3", thinks=True, start="text", confidence="known")


def test_evidence_ranks() -> None:
    """Each kind of evidence says otherwise than all that rank below it."""
    name, seen, server = "Qwen/Qwen3-8B", Seen("thinking", 1), ServerFacts(template=OPENS)
    asked = ServerFacts(template=OPENS, prompt_end="<|im_start|>assistant\n")
    chosen = Reading.of(
        name, seen=seen, server=asked, prompt="<|im_start|>assistant\n<think>\n", policies=Policies(start="text")
    )
    assert (chosen.begins.start, chosen.evidence) == ("text", "option")
    prompted = Reading.of(name, seen=seen, server=asked, prompt="<|im_start|>assistant\n<think>\n")
    assert (prompted.begins.start, prompted.evidence) == ("thinking", "prompt")
    assert (Reading.of(name, seen=seen, server=asked).begins.start, Reading.of(name, server=asked).evidence) == (
        "text",
        "server",
    )
    assert Reading.of(name, seen=seen, server=server).begins[:2] == ("thinking", True)
    assert Reading.of(name, seen=seen).begins[:2] == ("text", True)
    assert Reading.of("MiniMax-M2.7", seen=Seen("text", 1)).begins[:2] == ("text", False)
    assert Reading.of("MiniMax-M2.7").evidence == "near"
    assert Reading.of("nobody/knows").begins[:2] == ("text", False)


def test_what_replies_showed_counts_more_than_the_name_where_no_thinking_was_asked_for() -> None:
    assert Reading.of("Qwen/Qwen3.5-4B", think=False).begins.start == "text"
    assert Reading.of("Qwen/Qwen3.5-4B", think=False, seen=Seen("thinking", 1)).begins.start == "thinking"


@pytest.mark.parametrize(
    ("model", "off", "start"),
    [
        ("Qwen/Qwen3.5-4B", "known", "text"),
        ("MiniMaxAI/MiniMax-M2", "unknown", "thinking"),
        ("deepseek-ai/DeepSeek-R1", "none", "thinking"),
    ],
)
def test_thinking_asked_off_is_believed_where_something_turns_it_off(model: str, off: str, start: str) -> None:
    reading = Reading.of(model, think=False)
    assert (reading.turns_off, reading.begins.start) == (off, start)
    assert reading.parse("hm so</think>Four.").text == "Four."  # the whole reply is right either way


def test_a_format_that_is_given_is_how_it_writes_and_the_model_adds_the_start() -> None:
    reading = Reading.of("Qwen/Qwen3-4B-Thinking-2507", format="qwen3")
    assert (reading.format.name, reading.begins.start) == ("qwen3", "thinking")
    assert Reading.of("nobody/knows", format="minimax_m2").begins.start == "thinking"


def test_a_template_and_its_switch() -> None:
    turns = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    source = turns + "<|im_start|>assistant\n<think>\n"
    reading = Reading.of(chat_template=source)
    assert (reading.begins.start, reading.evidence) == ("thinking", "template")
    off = Reading.of("m", server=ServerFacts(template=OPENS), think=False)
    assert (off.begins[:2], off.switch and off.switch.keyword) == (("text", False), "enable_thinking")
    assert Reading.of("m", server=ServerFacts(template=LEAVES), think=False).begins[:2] == ("text", True)
    mine = Reading.of("m", server=ServerFacts(template=OPENS), switch="mine").switch
    assert mine is not None
    assert mine.keyword == "mine"


def test_a_server_that_separates_sends_answers() -> None:
    reading = Reading.of("MiniMaxAI/MiniMax-M2", server=ServerFacts(separates=True))
    assert reading.begins[:2] == ("text", False)


def test_markers_of_another_family_make_a_name_auto() -> None:
    assert Reading.of("Qwen/Qwen3-8B", seen=Seen(None, 0, foreign=True)).format.name == "auto"


def test_a_header_says_it_by_itself() -> None:
    reading = Reading.of("openai/gpt-oss-20b", think=False)
    assert (reading.begins.start, reading.begins.sure, reading.calls) == (None, True, True)


def test_makers() -> None:
    reading = Reading.of("Qwen/Qwen3-8B", policies=Policies(seed=0)).but(whitespace="exact")
    assert reading.policies.whitespace == "exact"
    parser = reading.parser()
    parser.feed("<think>a</think>b")
    parser.finish()
    assert (
        parser.message
        == reading.parse("<think>a</think>b")
        == asides.parse("<think>a</think>b", "qwen3", whitespace="exact")
    )
    assert reading.as_whole().policies.start == "undecided"


# What replies show.


def reply(
    *events: PartStart | PartEnd | Notice | TextDelta | ThinkingDelta, reason: Literal["stop", "length"] = "stop"
) -> Fold:
    """A reply that has ended."""
    fold = Fold()
    for event in events:
        fold.add(ReplyEvent(0, event))
    fold.add(Ended(0, reason))
    return fold


TEXT = (PartStart(0, "text"), PartEnd(0, span=(0, 5)))
STRAY = Notice("stray_close", "", 5)


@pytest.mark.parametrize(
    ("fold", "began", "shown"),
    [
        (reply(*TEXT), "text", "text"),
        (reply(*TEXT, STRAY), "text", "thinking"),
        (reply(*TEXT, PartStart(1, "text"), STRAY), "text", "text"),
        (reply(*TEXT, STRAY, reason="length"), "text", None),
        (reply(PartStart(0, "thinking"), PartEnd(0, True, span=(0, 5))), "thinking", "thinking"),
        (reply(PartStart(0, "thinking"), PartEnd(0, True, span=(7, 12))), "text", "text"),
        (reply(PartStart(0, "thinking"), PartEnd(0, False, "incomplete", (0, 5))), "thinking", "silent"),
        (reply(PartStart(0, "thinking"), PartEnd(0, True, span=(0, 0))), "thinking", None),
        (reply(PartStart(0, "tool_call"), PartEnd(0, True, span=(0, 9))), "text", None),
        (reply(), "text", None),
    ],
)  # fmt: skip
def test_what_a_reply_shows(fold: Fold, began: str, shown: str | None) -> None:
    assert shown_by(fold, "thinking" if began == "thinking" else "text") == shown


def test_what_was_seen_is_overturned_by_two_of_different_sources() -> None:
    seen = SeenReplies()
    assert seen.get("k") is None
    assert seen.add("k", "silent", "a") is None
    assert seen.add("k", "silent", "a") is None, "one source twice"
    assert seen.add("k", "silent", "b") == Seen("text", 1)
    assert seen.add("k", "thinking", "a") is None
    assert seen.add("k", "text", "b") is None, "what was seen is confirmed, so the count begins anew"
    assert seen.add("k", "thinking", "b") is None
    assert seen.add("k", "thinking", "c") == Seen("thinking", 1)
    seen.add("k", None)
    assert seen.get("k") == Seen("thinking", 1)


def test_foreign_markers_count_twice() -> None:
    seen = SeenReplies()
    assert seen.add_foreign("k", "") is None
    assert seen.add_foreign("k", "[THINK]", "a") is None
    assert seen.add_foreign("k", "", "b") is None, "a reply with markers of its own"
    assert seen.add_foreign("k", "[THINK]", "a") is None
    assert seen.add_foreign("k", "[THINK]", "b") == Seen(foreign=True)


def test_the_memory_is_bounded() -> None:
    seen = SeenReplies(most=2)
    for key in "abc":
        seen.add(key, "text")
    assert len(seen) == 2
    assert seen.get("a") is None
    seen.load("d", Seen("thinking", 3))
    assert seen.get("d") == Seen("thinking", 3)
    seen.forget("d")
    assert seen.get("d") is None
    seen.forget()
    assert len(seen) == 0
