"""Headers of messages in formats that no family has."""

from __future__ import annotations

from msgspec.structs import replace

from asides import Format, ToolCall
from asides._engine.calls.json_calls import JsonCalls
from asides._engine.format import END, TEXT, THINKING
from asides.families import get_format
from tests.support import characters, check_chunking, run, two_way_splits


def read(format: Format, text: str) -> list[object]:
    """What a text means, whole and however it is cut: each part's text, or its name and arguments."""
    check_chunking(format, text, [*two_way_splits(text), characters(text)], {})
    message = run(format, [text]).message
    assert message is not None
    return [(part.name, part.arguments) if isinstance(part, ToolCall) else part.text for part in message.parts]


def test_a_marker_in_a_header_that_may_go_on() -> None:
    """A stream waits for the longer one, as a whole text has it."""
    harmony = get_format("harmony")
    ends = {**harmony.states[TEXT], "<|end|>\n<|stop|>": END}
    format = harmony.but(name="own", states={**harmony.states, TEXT: ends, THINKING: ends})
    begun = "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|end|>\n"
    assert read(format, begun + "<|stop|>b") == ["a", "b"]
    assert read(format, begun + "<|start|>assistant<|channel|>final<|message|>b") == ["a", "b"]


def test_a_format_that_says_nothing_of_its_headers() -> None:
    """Where no marker ends it within reach, it was none."""
    format = get_format("inkling").but(name="own", header=None)
    words = "<|message_model|>" + "words " * 60
    assert read(format, words) == [words]
    assert read(format, "<|message_model|><|content_thinking|>a<|end_message|>") == ["a"]


def test_a_message_to_a_tool_without_markers_whose_syntax_ends_by_itself() -> None:
    harmony = get_format("harmony")
    assert harmony.header is not None
    format = harmony.but(
        name="own", header=replace(harmony.header, calls=(*harmony.header.calls, JsonCalls(bare=True)))
    )
    text = 'analysisNeed it.assistantcommentary to=functions.f json{"a": 1}assistantfinalDone.'
    assert read(format, text) == ["Need it.", ("f", '{"a": 1}'), "Done."]
