"""Displays that start over with each input."""

from __future__ import annotations

from asides._cli.display import CallDisplay, call_line
from asides._cli.streams import STDOUT, OutputStream
from asides.events import Event, PartEnd, PartStart, ToolCallDelta
from asides.message import OpenCalls


class Lines(OutputStream):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__(STDOUT)
        self.written = b""

    def write_bytes(self, data: bytes) -> None:
        """Keep it."""
        self.written += data


def test_a_call_that_an_input_left_open_is_not_ended_by_the_next() -> None:
    """With `--strict` an input may end inside a call; the next one counts its parts from zero again."""
    out = Lines()
    display = CallDisplay(out)
    display.begin("a.txt")
    display.show([PartStart(0, "tool_call", name="f"), ToolCallDelta(0, "{")])
    display.begin("b.txt")
    display.show([PartStart(0, "text"), PartEnd(0)])
    assert out.written == b""


def test_calls_that_a_server_has_split_off_may_end_together() -> None:
    """They are told apart by their index."""
    calls = OpenCalls()
    events: list[Event] = [
        PartStart(0, "tool_call", name="f"),
        PartStart(1, "tool_call", name="g"),
        ToolCallDelta(1, "{}"),
        ToolCallDelta(0, '{"a":1}'),
        PartEnd(0),
        PartEnd(1, error="incomplete", complete=False),
    ]
    shown = [call_line(call) for event in events if (call := calls.add(event))]
    assert shown == ['call f {"a":1}', "call g {} [incomplete: not to be run]"]
