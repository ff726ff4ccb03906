"""Output that ends inside a thought shows none of it: not in the text, and not as the answer of any API.

Every case is cut at every character of its thoughts, and of calls that stand in one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import asides
from asides import Message, Text, Thinking, ToolCall
from asides._engine.parser import Parser
from asides.dialects import anthropic, ollama, openai_chat, openai_responses
from asides.dialects import openai_completions as completions
from asides.dialects._request import Request
from asides.families import get_format
from asides.reply._items import Ended, RawText, ReplyItem
from asides.reply._splitter import Splitter
from tests.laws.effort import LONG
from tests.support import run, show_parts, without_end
from tests.test_cases import ALL, Case

DIALECTS = (openai_chat, completions, openai_responses, anthropic, ollama)
MOST = 400
"""Of a stretch longer than this, only some characters are tried."""
ENDS = 3
"""So many cuts at each end of a stretch are read with every API."""


class Stretch(NamedTuple):
    """A thought, or a call that stands in one."""

    text: str
    """The whole output."""
    start: int
    """Where the thought begins."""
    cuts: tuple[int, ...]
    """Where the output is cut."""
    options: dict[str, Any]
    in_call: bool


def read(format: str, text: str, options: dict[str, Any], finish_reason: str | None = None) -> Message:
    message = run(format, (text,), finish_reason=finish_reason, **options).message
    assert message is not None
    return message


def stretches(case: Case) -> Iterator[Stretch]:
    """The thoughts of a case, and the calls that were begun in one."""
    options = {name: value for name, value in without_end(case.options).items() if name != "strict"}
    text = "".join(case.chunks)
    message = read(case.format, text, options)
    thoughts = [part for part in message.parts if isinstance(part, Thinking)]
    if thoughts and not read(case.format, text[: thoughts[0].span[1]], options).thinking:
        # What was settled by a close that came later is text as long as it does not come.
        options["start"] = "thinking"
        message = read(case.format, text, options)
    start = -1
    for part in message.parts:
        if isinstance(part, Thinking):
            start = part.span[0]
        elif isinstance(part, Text):
            start = -1
        if start >= 0 and (isinstance(part, Thinking) or _in_thought(case.format, message)):
            first, last = part.span
            step = 1 if LONG else 1 + (last - first) // MOST
            yield Stretch(text, start, (*range(first + 1, last, step), last), options, isinstance(part, ToolCall))


def _in_thought(format: str, message: Message) -> bool:
    """Whether calls of the message interrupt thinking."""
    if get_format(format).calls_in_thinking == "always":
        return True
    return any(notice.code == "implicit_close" for notice in message.notices)


@cache
def of_format(name: str) -> list[Stretch]:
    """Every stretch of every case of a format."""
    # Cut off inside the words that show it to be a mention, a close acts: nobody can know.
    own = [case for case in ALL if get_format(case.format).name == name and case.file != "mentions"]
    lenient = [case for case in own if case.said.get("options", {}).get("strict") is None]
    return [stretch for case in lenient for stretch in stretches(case)]


@pytest.mark.parametrize("name", asides.formats())
def test_no_thought_in_the_text(name: str) -> None:
    """Of the text that the message has, none stands where the thought does."""
    for stretch in of_format(name):
        for cut in stretch.cuts:
            text = stretch.text[:cut]
            message = read(name, text, stretch.options)
            leaked = [part for part in message.parts if isinstance(part, Text) and part.span[1] > stretch.start]
            assert not leaked, f"{name} {stretch.options} {text!r}:\n{show_parts(message)}"


@pytest.mark.parametrize("name", asides.formats())
def test_no_thought_in_an_answer(name: str) -> None:
    """As a client of each API reads it: a thought of every format, and calls that were begun in one.

    An ordinary run takes the APIs in turn, and all of them near both ends of a stretch, where markers are.
    """
    found = of_format(name)
    calls = [stretch for stretch in found if stretch.in_call]
    for stretch in [*(calls if LONG else calls[:2]), *found[:1]]:
        for number, cut in enumerate(stretch.cuts):
            text = stretch.text[:cut]
            message = read(name, text, stretch.options, "length")
            items = split(name, text, stretch.options)
            at_an_end = not ENDS <= number < len(stretch.cuts) - ENDS
            for dialect in DIALECTS if LONG or at_an_end else (DIALECTS[number % len(DIALECTS)],):
                if dialect is completions and any(call.error is None for call in message.tool_calls):
                    continue  # it writes a call that may be run as text, for it has no other place
                answer = answered(dialect, items)
                where = f"{dialect.NAME} {name} {text!r}"
                assert answer.strip() == message.text.strip(), f"{where}:\n{show_parts(message)}"


def split(name: str, text: str, options: dict[str, Any]) -> list[ReplyItem]:
    """What every dialect is written from."""
    splitter = Splitter(get_format(name), lambda format: Parser(format, **options))
    return [*splitter.feed(RawText(0, text)), *splitter.feed(Ended(0, "length")), *splitter.finish()]


def answered(dialect: ModuleType, items: list[ReplyItem]) -> str:
    """What a client shows as the answer."""
    writer = dialect.ReplyWriter(Request(dialect=dialect.NAME, model="m"))
    reader = dialect.ReplyReader()
    data = b"".join(map(writer.feed, items)) + writer.finish()
    pieces = [*reader.feed(data), *reader.finish()]
    return "".join(piece.text for piece in pieces if isinstance(piece, RawText))
