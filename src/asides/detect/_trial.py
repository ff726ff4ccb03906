"""Which format reads back what a template writes: every registered one is tried on the rendered turns.

A format that gives back the thought, the answer and the call that were put into a conversation is the right one,
whatever it is called. What cannot be told apart so is decided by what the template's source names.
"""

from __future__ import annotations

import re

import msgspec

from .._engine.format import Format
from .._engine.parser import Parser, read_prompt
from ..message import Message
from ._markers import call_literals, closers, openers, wrappers
from ._result import Start


class RenderedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """An assistant's turn as a template writes it, and what was put in."""

    written: str
    """All that follows the user's words."""
    thought: str = ""
    answer: str = ""
    function: str = ""
    """The name of the function that it calls."""
    argument: str = ""
    """A string that must come back as the value of an argument."""


# The order of the fields is the order of trust: what came back out of a turn, then what the template writes, last what
# its source merely names. A field counts only where all before it are equal.
class Score(msgspec.Struct, frozen=True, order=True):
    """How well a format reads a template. Compared field by field."""

    thoughts: int
    """Turns whose thought came back."""
    endings: bool
    """Whether it has the markers that generation prompts end with."""
    instructed: int
    """Its thinking markers among those that the prompt instructs the model to write."""
    header: bool
    """Whether it has what opens the assistant's turn."""
    calls: int
    """Calls that came back."""
    apart: int
    """Turns with calls of which nothing was left over: no marker around a call that the format does not have."""
    stops: int
    """Turns whose end it has as a stop."""
    answers: int
    """Turns whose answer came back alone."""
    named: int
    """Markers of its calls that the template's source names."""
    start: bool
    """Whether its own start is the template's."""
    cover: float
    """How many of its thinking markers the template names."""

    @property
    def seen(self) -> tuple[float, ...]:
        """All that shows in what the template writes and names; where a format begins is its own word alone."""
        return (
            self.thoughts,
            self.endings,
            self.instructed,
            self.header,
            self.calls,
            self.apart,
            self.stops,
            self.answers,
            self.named,
        )


def score(
    format: Format, turns: list[RenderedTurn], prompt: str, endings: set[str], instructions: str, source: str
) -> Score:
    """Try one format. `prompt` is the plain one, `endings` are the thinking markers that any prompt ends with."""
    own = [*openers(format), *closers(format)]
    readings = [(turn, _read(format, turn, prompt)) for turn in turns]
    return Score(
        thoughts=sum(_same(turn.thought, message.thinking) for turn, message in readings if turn.thought),
        endings=bool(endings) and endings <= {*openers(format), *closers(format)},
        instructed=_instructed(format, instructions),
        header=any(header.strip() in prompt for header in format.assistant),
        calls=sum(_has_call(turn, message) for turn, message in readings if turn.function),
        apart=sum(_same(turn.answer, message.text) for turn, message in readings if turn.function),
        stops=sum(message.termination == "stop" for turn, message in readings if not turn.function),
        answers=sum(_same(turn.answer, message.text) for turn, message in readings if turn.answer),
        named=sum(literal in source for literal in call_literals(format)),
        start=read_prompt(format, prompt).state == format.start,
        cover=sum(marker.strip() in source for marker in own) / len(own) if own else 0.0,
    )


def _instructed(format: Format, instructions: str) -> int:
    """How many of a format's markers the model is instructed to write; none unless a whole pair is there."""
    opens = [marker for marker in openers(format) if marker in instructions]
    closes = [marker for marker in closers(format) if marker in instructions]
    if not opens or not closes:
        return 0
    return len(opens) + len(closes) + sum(marker in instructions for marker in wrappers(format))


def _has_call(turn: RenderedTurn, message: Message) -> bool:
    """Whether the one call that was put in came back, and could be run."""
    # One was put in. A format that makes two of it has taken a marker of the call for a call.
    if len(message.tool_calls) != 1:
        return False
    call = message.tool_calls[0]
    return call.error is None and call.name == turn.function and turn.argument in call.arguments


def reads(format: Format, turn: RenderedTurn, prompt: str) -> bool:
    """Whether a format gives back the thought and the answer of a turn."""
    message = _read(format, turn, prompt)
    return _same(turn.thought, message.thinking) and _same(turn.answer, message.text)


def _same(put: str, came: str) -> bool:
    return put == came.strip()


def _read(format: Format, turn: RenderedTurn, prompt: str) -> Message:
    written = turn.written[_begin(format, turn, prompt) :]
    start: Start | None = None
    if format.header is None:
        # Some templates write thoughts of the past with nothing before them.
        before = written.partition(turn.thought)[0] if turn.thought else ""
        start = (
            "text" if not turn.thought or any(opener.strip() in before for opener in openers(format)) else "thinking"
        )
    parser = Parser(format, start=start)
    parser.feed(written)
    parser.finish()
    return parser.message


def _begin(format: Format, turn: RenderedTurn, prompt: str) -> int:
    """Where the assistant's own words begin in a turn: behind the header, the format's own if it has one here."""
    places = [turn.written.find(word) for word in (turn.thought, turn.answer, turn.function) if word]
    before = turn.written[: min(places)]
    place, header = max(((before.rfind(header), header) for header in format.assistant), default=(-1, ""))
    if place >= 0:
        return place + len(header)
    # No header of this format is here, so the one that the turn shares with the generation prompt is taken.
    shared = header_of(before, prompt).rstrip()
    # What turn and prompt share may already hold the opener.
    for opener in sorted(openers(format), key=len, reverse=True):
        if shared.endswith(opener.strip()):
            return len(shared) - len(opener.strip())
    return len(header_of(before, prompt))


def header_of(before: str, prompt: str) -> str:
    """What a turn shares with a prompt: the header of the assistant's turn. It does not end within a tag."""
    shared = next((at for at, pair in enumerate(zip(before, prompt, strict=False)) if pair[0] != pair[1]), None)
    header = before[: min(len(before), len(prompt))] if shared is None else before[:shared]
    # Turn and prompt may part in the middle of a tag (`<think>` and `<thinking>`): the tag belongs to what was written.
    return re.sub(r"[<\[][^<>\[\]]*\Z", "", header)
