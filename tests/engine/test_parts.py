"""What a parser is made of, each part built alone: with what it stands on, and nothing that stands on it."""

from __future__ import annotations

import copy
import pickle
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

import asides
from asides import Notice, PartEnd, PartStart, StrictError, TextDelta, ThinkingDelta, ToolCallDelta
from asides._engine.active_markers import ActiveMarkers
from asides._engine.call_region import CallOptions, Region
from asides._engine.call_sink import CallSink
from asides._engine.calls.strings import JSON_BODY, up_to
from asides._engine.calls_in_progress import CallsInProgress
from asides._engine.cursor import Cursor, Tape
from asides._engine.fast_path import ALWAYS, FastPath, OpenString, string_search
from asides._engine.format import OUTSIDE, TEXT, THINKING
from asides._engine.holds import Holds
from asides._engine.literals import Beginnings, any_of
from asides._engine.modes import ReadOutcome
from asides._engine.open_part import OpenPart, PartWriter
from asides._engine.prose import Prose
from asides.events import NOTICES
from asides.message import Collector

QWEN = asides.get_format("qwen3")


def writer_of(text: str, format: str = "qwen3", **options: object) -> PartWriter:
    """A writer that stands before a text."""
    writer = PartWriter(Cursor(), Holds(), ActiveMarkers(asides.get_format(format)), **options)  # type: ignore[arg-type]
    feed(writer, text)
    return writer


def feed(writer: PartWriter, text: str) -> None:
    """Another chunk, with what was left of the one before."""
    rest = writer.cursor.stop()
    writer.cursor.tape.pieces.append(text)
    writer.cursor.start(rest + text)


def prose_of(writer: PartWriter) -> Prose:
    return Prose(writer, CallsInProgress(writer, CallOptions()))


# Cursor.


def test_a_cursor_knows_offsets_and_looks_back() -> None:
    cursor = Cursor()
    for chunk in ("Hello ", "world", "<think>"):
        cursor.tape.pieces.append(chunk)
    cursor.start("<think>")
    assert (cursor.buffer, cursor.at, cursor.base) == ("orld<think>", 4, 7)
    cursor.move(6)
    assert cursor.stop() == "hink>"


def test_a_cursor_reads_again() -> None:
    cursor = Cursor()
    cursor.tape.pieces.append("abcdefghij")
    cursor.start("hij")
    cursor.rewind(5, 6)
    assert (cursor.buffer[cursor.at :], cursor.base + cursor.at, cursor.scan) == ("fghij", 5, 6)
    cursor.reach_back(2)
    assert (cursor.base + cursor.at, cursor.base <= 2) == (5, True)


def test_a_cursor_finds_and_remembers() -> None:
    cursor = Cursor()
    text = "a</think>b<think>c"
    cursor.tape.pieces.append(text)
    cursor.start(text)
    table = ActiveMarkers(QWEN).tables.text
    first = cursor.find(table, 0, len(text))
    assert first is not None
    assert (first.start, first.stop, first.marker.text) == (1, 9, "</think>")
    assert cursor.find(table, 0, 8) is None, "it ends behind the end"
    second = cursor.find(table, 9, len(text))
    assert second is not None
    assert second.marker.text == "<think>"


# Holds.


def test_holds_nest_and_are_released_or_dropped() -> None:
    holds = Holds()
    out = holds.collect()
    holds.emit(TextDelta(0, "a"))
    outer = holds.open()
    holds.emit(TextDelta(0, "b"))
    holds.open()
    holds.emit(TextDelta(0, "c"))
    holds.release()
    assert out == [TextDelta(0, "a")]
    assert holds.stack
    assert outer == [TextDelta(0, "b"), TextDelta(0, "c")]
    holds.open()
    holds.drop(outer)
    assert not holds.stack
    holds.emit(TextDelta(0, "d"))
    assert out == [TextDelta(0, "a"), TextDelta(0, "d")]


def test_an_undecided_start_goes_out_before_what_is_inside_it() -> None:
    holds = Holds()
    out = holds.collect()
    holds.open_undecided()
    holds.emit(TextDelta(0, "a"))
    holds.open()
    holds.emit(TextDelta(0, "b"))
    holds.settle_start()
    assert out == [TextDelta(0, "a")]
    assert holds.stack
    assert not holds.undecided
    holds.release()
    assert out == [TextDelta(0, "a"), TextDelta(0, "b")]


def test_a_strict_notice_is_raised_when_it_goes_out() -> None:
    holds = Holds(Collector(), frozenset({"limit"}))
    holds.open()
    holds.notice("limit", 3)
    with pytest.raises(StrictError):
        holds.release()


# ActiveMarkers.


def test_markers_follow_the_state() -> None:
    markers = ActiveMarkers(QWEN)
    assert markers.table is markers.tables.text
    markers.enter(THINKING)
    assert markers.table is markers.tables.thinking
    markers.let_calls(False)
    markers.enter(TEXT)
    assert markers.table is markers.tables.text_without_calls
    markers.enter(OUTSIDE)
    assert markers.table is markers.tables.text, "behind a message calls run again"


def test_auto_settles_and_stays_in_its_state() -> None:
    markers = ActiveMarkers(asides.get_format("auto"))
    markers.enter(THINKING)
    markers.settle_on("<think>")
    assert markers.format is not asides.get_format("auto")
    assert markers.table is markers.tables.thinking


# OpenPart and PartWriter.


def test_words_are_emitted_and_whitespace_waits() -> None:
    writer = writer_of("Hi there \n")
    out = writer.holds.collect()
    assert writer.flow(10, beside=False)
    assert out == [PartStart(0, "text", ""), TextDelta(0, "Hi there")]
    feed(writer, "you")
    assert not writer.flow(9, beside=False)
    writer.close(True)
    assert out[2:] == [TextDelta(0, " \nyou"), PartEnd(0, True, None, (0, 13))]


def test_whitespace_beside_a_marker_is_the_gap() -> None:
    writer = writer_of("a\n\n")
    out = writer.holds.collect()
    writer.flow(3, beside=True)
    writer.close(True)
    writer.cursor.pass_over(writer.cursor.at)
    writer.begin_content(writer.cursor.scan)
    feed(writer, " b")
    writer.flow(writer.cursor.at + 2, beside=False)
    assert out[-2:] == [PartStart(1, "text", "\n\n"), TextDelta(1, "b")]


def test_a_snapshot_undoes_everything() -> None:
    writer = writer_of("a b")
    writer.flow(3, beside=False)
    before = writer.snapshot()
    fields = {name: getattr(before, name) for name in OpenPart.__slots__}
    writer.open_call(3, 3, True)
    writer.count_call()
    writer.begin_content(3)
    assert writer.part.kind is None
    assert writer.part.count == 2
    writer.restore(before)
    assert {name: getattr(writer.part, name) for name in OpenPart.__slots__} == fields
    assert writer.part.kind == "text"


def test_exact_whitespace_is_the_part() -> None:
    writer = writer_of(" a ", tidy=False)
    out = writer.holds.collect()
    writer.flow(3, beside=True)
    assert out[1] == TextDelta(0, " a ")


# Region and CallsInProgress.


def test_a_region_turns_reports_into_events() -> None:
    writer = writer_of('<tool_call>{"name": "f"}</tool_call>')
    out = writer.holds.collect()
    region = Region(writer, CallOptions(), [QWEN.calls[0]], "<tool_call>", 0, 11, 0)
    sink = CallSink(writer, CallOptions(), region)
    sink.begin(11)
    sink.head("f", "id")
    assert not region.waiting
    sink.arguments('{"a": 1')
    region.hold.meet(20, 22, False)
    sink.arguments("}")
    assert len(out) == 2, "what follows a possible end is held"
    sink.end(24, alone=True)
    assert out == [
        PartStart(0, "tool_call", "", "f", "id"),
        ToolCallDelta(0, '{"a": 1'),
        ToolCallDelta(0, "}"),
        PartEnd(0, True, None, (0, 24)),
    ]


def test_calls_say_what_a_region_came_to() -> None:
    text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    writer = writer_of(text)
    calls = CallsInProgress(writer, CallOptions())
    found = writer.cursor.find(writer.markers.table, 0, len(text))
    assert found is not None
    assert calls.begin(found) is ReadOutcome.CALL
    assert calls.read(len(text), False) is ReadOutcome.GO_ON, "it stands before the closing marker"
    assert calls.read(len(text), False) is ReadOutcome.CLOSED
    assert calls.region is None
    assert calls.start is None


def test_what_is_no_call_is_given_back() -> None:
    text = "<tool_call>7, none"
    writer = writer_of(text)
    calls = CallsInProgress(writer, CallOptions())
    found = writer.cursor.find(writer.markers.table, 0, len(text))
    assert found is not None
    calls.begin(found)
    assert calls.untold == 0
    assert calls.read(len(text), False) is ReadOutcome.REJECTED
    assert calls.read_dead(len(text), True) is ReadOutcome.GIVEN_BACK
    assert writer.cursor.base + writer.cursor.at == 0


# Prose.


def test_prose_reads_up_to_a_marker_and_says_what_it_did() -> None:
    writer = writer_of("Hi <think>a")
    out = writer.holds.collect()
    prose = prose_of(writer)
    assert prose.read(11, False) is ReadOutcome.MARKER
    assert writer.markers.table.state == THINKING
    assert prose.read(11, False) is ReadOutcome.WAIT
    assert out[-1] == ThinkingDelta(1, "a")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("word", ReadOutcome.WAIT),
        ("word ", ReadOutcome.WAIT_FOR_WORDS),
        ("word <thi", ReadOutcome.WAIT),
        ("a <tool_call>", ReadOutcome.CALL),
    ],
)
def test_prose_waits_for_a_reason(text: str, outcome: ReadOutcome) -> None:
    assert prose_of(writer_of(text)).read(len(text), False) is outcome


def test_prose_begins_in_a_header() -> None:
    text = "analysis<|message|>Hm"
    writer = writer_of(text, "harmony")
    prose = Prose(writer, CallsInProgress(writer, CallOptions()), header_before="<|start|>assistant<|channel|>")
    assert prose.read_begin(len(text), False) is ReadOutcome.HEADER
    assert prose.read_header(len(text), False) is ReadOutcome.MESSAGE
    assert writer.markers.table.state == THINKING


# FastPath.


def fast_path(tidy: bool = True, collect: bool = True) -> FastPath:
    table = ActiveMarkers(QWEN).tables.text
    fast = FastPath(Tape(), table, tidy=tidy, limit=1000, collector=Collector() if collect else None)
    fast.hold("", False)
    fast.write_prose(table, 3)
    return fast


def test_the_fast_path_holds_whitespace_and_beginnings() -> None:
    fast = fast_path()
    assert fast.inline is TextDelta
    assert fast.take_spaced("one ", "one") == [TextDelta(3, "one")]
    assert fast.inline is None
    assert fast.take("two") == [TextDelta(3, " two")]
    assert fast.take_doubtful("a < b </thi") == [TextDelta(3, "a < b")]
    assert (fast.held, fast.glance) == (" </thi", ALWAYS)
    assert fast.take("s") == [TextDelta(3, " </this")]
    assert fast.take_doubtful("</think>") is None
    assert "".join(fast.pieces) == "one twoa < b </this"


def test_fences_are_followed_when_a_marker_is_met() -> None:
    """The fast path passes them; the machine catches up."""
    for text, parts in (
        ("Look:\n\n```xml\n<think>a</think>\n```\nDone. <think>b</think>c", 3),
        ("Look: ```xml <think>a</think> ``` Done.", 1),  # a code span
        ("Look: ```xml\n<think>a</think> ``` Done.", 3),
        ("x\n~~~\n<b>\n~~~ \ny <think>z", 2),
    ):
        for size in (1, 2, 5, len(text)):
            parser = asides.Parser("qwen3")
            for place in range(0, len(text), size):
                parser.feed(text[place : place + size])
            parser.finish()
            assert len(parser.message.parts) == parts


def test_the_fast_path_passes_strings() -> None:
    fast = fast_path()
    fast.hold("", False)
    closers = ActiveMarkers(QWEN).tables.closers_of(QWEN.calls[0])
    fast.write_string(5, OpenString(string_search((), ("</",)), JSON_BODY, closers))
    assert fast.take_string("words < more") == [ToolCallDelta(5, "words < more")]
    assert fast.take_string("a<") == [ToolCallDelta(5, "a")]
    assert fast.held == "<"
    assert fast.take_string("b") == [ToolCallDelta(5, "<b")]
    assert fast.take_string("a</p>\\n") == [ToolCallDelta(5, "a</p>\\n")], "whole escapes and other tags pass"
    assert fast.take_string("x\\u00") == [ToolCallDelta(5, "x")]
    assert fast.take_string("e9</tool") == [ToolCallDelta(5, "\\u00e9")]
    assert fast.held == "</tool"
    assert fast.take_string("_call>") is None
    assert fast.take_string('"') is None


def test_long_whitespace_waits_for_a_word() -> None:
    fast = fast_path()
    fast.hold(" " * 300, True)
    assert fast.resume("  ", False) is None
    assert fast.size == 302
    assert fast.resume(" x", False) == " " * 303 + "x"


def test_without_collecting_the_machine_is_asked_now_and_then() -> None:
    fast = fast_path(collect=False)
    for _ in range(512):
        assert fast.take("word")
    assert fast.take("word") is not None
    assert fast.inline is None
    assert fast.take("word") is None


@pytest.mark.parametrize("opening", ["", '<tool_call>{"name": "f", "arguments": {"a": "'], ids=["text", "string"])
@pytest.mark.parametrize(
    "chunks",
    [("word",), ("word ",), ("word", "word "), ("a < b",), ("a <tool b",), ("a</p>",)],
    ids=["words", "spaced", "both", "marks", "doubtful", "tags"],
)
def test_without_collecting_few_chunks_are_kept(chunks: tuple[str, ...], opening: str) -> None:
    parser = asides.Parser("qwen3", collect=False, start="text")
    parser.feed(opening)
    most = 0
    for number in range(20_000):
        assert parser.feed(chunks[number % len(chunks)])
        most = max(most, len(parser._fast.pieces))
    assert most < 6000


def test_what_is_encoded_as_it_passes() -> None:
    body = up_to("</a>")
    assert body.split('1\n"2" </', 8) == ('1\\n\\"2\\" ', 6)
    assert body.split("1 </a>", 6) is None


# Literals.


def test_what_may_become_a_literal() -> None:
    beginnings = Beginnings(("<think>", "[THINK]"))
    assert beginnings.find("a <thi", 0, 6) == 2
    assert beginnings.find("a [THI", 0, 6) == 2
    assert beginnings.find("a <thu", 0, 6) == 6
    assert not beginnings.holds("<think>")


def test_one_pattern_for_several() -> None:
    assert any_of(["<tool>", "<tool", "<to"]) == "<to(?:ol(?:>|)|)"


# A parser as a whole.


def test_a_marker_takes_a_short_way() -> None:
    """`</thi` + `nk>`, counted: `python -m benchmarks calls-per-marker` shows the same by file."""
    root = str(Path(asides.__file__).parent)
    calls: Counter[str] = Counter()

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            calls[frame.f_code.co_filename] += 1

    for counted in (False, True):  # what is made once for each format is no cost of a marker
        parser = asides.Parser("qwen3")
        parser.feed("<think>")
        parser.feed("words")
        before = sys.getprofile()
        sys.setprofile(see if counted else before)
        events = parser.feed("</thi") + parser.feed("nk>")
        sys.setprofile(before)
        assert events == [PartEnd(0, True, None, (7, 12))]
    assert 0 < calls.total() <= 31
    assert len(calls) <= 8


def test_a_parser_can_be_copied_and_pickled_in_the_middle() -> None:
    text = 'a <think>b</think>\n<tool_call>{"name": "f", "arguments": {"x": "y z"}}</tool_call> end </thi'
    for place in range(0, len(text), 3):
        parser = asides.Parser("qwen3", seed=0)
        parser.feed(text[:place])
        others = [copy.deepcopy(parser), pickle.loads(pickle.dumps(parser))]
        for each in (parser, *others):
            each.feed(text[place:])
            each.finish()
            assert each.message.raw == text
            assert each.message == parser.message


def test_a_parser_can_be_made_another() -> None:
    class Counting(asides.Parser):
        def __init__(self) -> None:
            super().__init__("qwen3", collect=False)
            self.chunks = 0

        def feed(self, chunk: str | None) -> list[asides.events.Event]:
            self.chunks += 1
            return super().feed(chunk)

    parser = Counting()
    assert parser.feed("a") == [PartStart(0, "text", ""), TextDelta(0, "a")]
    assert parser.chunks == 1


def test_a_notice_of_the_limit_stands_before_what_was_held() -> None:
    holds = Holds()
    out = holds.collect()
    holds.open()
    holds.emit(TextDelta(0, "a"))
    holds.put_first("limit", 7)
    holds.release()
    assert out == [Notice("limit", NOTICES["limit"], 7), TextDelta(0, "a")]


def test_whitespace_shows_that_a_beginning_was_none() -> None:
    for begun in ("<", "<thi"):
        parser = asides.Parser("qwen3")
        events = [*parser.feed("a"), *parser.feed(begun), *parser.feed("\n\n")]
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == f"a{begun}"
        assert parser.held == 2
