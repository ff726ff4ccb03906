"""Recorded cases for a reader in two stages (`asides.plugins._halves`), and what has to come out of it.

A reader of thoughts hands text to a reader of calls, so what comes out is thoughts, text and calls: no order between
them, and of a broken call no error. `DIFFERENT` names the cases in which two stages cannot come to what one does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import asides
from asides import Format, Message, Parser, Thinking
from asides._engine.format import HEADER
from tests.support import characters, cut, is_object
from tests.test_cases import ALL, Case, case_name

OWN = {"start", "prompt", "tools"}
"""The policies that a server's request decides. Cases with others cannot be put to it."""

COMMON = {"f", "get_weather"}
"""Tools that are there although a case calls none: what it quotes could be taken for a call."""

DIFFERENT = {
    "auto_tags-auto-internal behind a stop is text": "after the turn, what is more than words is with the thoughts",
    "formats_auto-auto-call markup in a message to the user is text": "the header is gone from the text",
    "formats_auto_bare-auto-a thought and a call": "headers without their tokens act at the start of a reply only",
    "formats_auto_bare-auto-a call first": "headers without their tokens act at the start of a reply only",
    "formats_beam-beam-a message to oneself after a call": "the header that ends the call opens a thought",
    "formats_harmony_bare-harmony-words before a call": "headers without their tokens act at the start of a reply only",
    "formats_muse-muse-call markup in a message to the user is text": "the header is gone from the text",
    "formats_muse_spark-muse_spark-the end of a header in a message to the user": "the header is gone from the text",
    "formats_muse-muse-a message to the user, then one to a tool": "the header is gone from the text",
    "formats_muse-muse-a prompt that has opened a message to the user": "the prompt is not the second stage's",
}
"""Cases in which two stages differ from one, and why."""


class Outcome(NamedTuple):
    """What came out of the two stages."""

    thinking: str
    text: str
    calls: list[tuple[str, str]]
    """Names and arguments."""
    unfinished: set[int]
    """Which of them may not be run."""


class Reply(NamedTuple):
    """A case as a server gets it."""

    name: str
    format: Format
    text: str
    options: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]]

    def policies(self, whole: bool) -> dict[str, Any]:
        """The policies of the first stage. Only of a whole reply the start can be undecided."""
        start = self.options.get("start")
        if start == "undecided" or (start is None and self.options.get("prompt") is None):
            start = "undecided" if whole and self.format.start == "text" else None
        return {"tools": self.tools or None, "prompt": self.options.get("prompt"), "start": start}

    def message(self, whole: bool) -> Message:
        """What the engine makes of it in one stage."""
        parser = Parser(self.format, **self.policies(whole))
        parser.feed(self.text)
        parser.finish()
        return parser.message

    def cuts(self) -> Iterator[Sequence[str]]:
        """The reply in chunks: characters, and at random."""
        yield characters(self.text)
        places = random.Random(self.name)
        yield cut(self.text, [places.randrange(len(self.text)) for _ in range(3)] if self.text else [])


@cache
def replies() -> tuple[Reply, ...]:
    """The cases that a server can be given."""
    return tuple(_replies())


def _replies() -> Iterator[Reply]:
    for case in ALL:
        format = asides.get_format(case.format)
        # Where a header says what a message is, no start is given.
        if case.said["options"].keys() <= OWN and not (format.start == HEADER and case.said["options"].get("start")):
            yield Reply(case_name(case), format, "".join(case.chunks), case.said["options"], _tools(case))


def _tools(case: Case) -> Sequence[Mapping[str, Any]]:
    """The tools of a case, else one for every call that it has and some more, whose arguments may be anything."""
    given: Sequence[Mapping[str, Any]] | None = case.said["options"].get("tools")
    if given is not None:
        return given
    message = asides.parse("".join(case.chunks), case.format, **case.said["options"])
    names = {call.name for call in message.tool_calls} | COMMON
    return [{"function": {"name": name}} for name in sorted(names - {""})]


def sent(message: Message) -> tuple[str, str]:
    """Thinking and text of a stream that cannot take words back: those that were retyped stay where they were."""
    if not any(notice.code == "retyped" for notice in message.notices):
        return message.thinking, message.text
    first = message.parts[0]
    words = message.raw[: first.span[1]]
    if isinstance(first, Thinking):
        return message.thinking[len(first.text) :], words + ("\n\n" + message.text if message.text else "")
    return words.lstrip() + message.thinking, message.text


def check(reply: Reply, found: Outcome, message: Message, *, whole: bool) -> None:
    """What came out is what the engine finds in one stage."""
    names = {tool.get("function", tool)["name"] for tool in reply.tools}
    withheld = [call for call in message.tool_calls if call.error == "after_stop"]
    calls = [call for call in message.tool_calls if call not in withheld]
    taken = [call for call in calls if call.name in names and (not whole or call.error is None)]
    left = [call for call in calls if call not in taken]
    thinking, text = (message.thinking, message.text) if whole else sent(message)
    # A call after the end of the turn is with the thoughts, where the second stage cannot read it; in a stream without
    # the markers of a section around it.
    shown = "\n\n".join(filter(None, (thinking, *(call.raw for call in withheld))))
    assert found.thinking == shown or (withheld and not whole and found.thinking.startswith(thinking)), reply
    assert all(call.name in found.thinking for call in withheld), reply
    assert [name for name, _ in found.calls] == [call.name for call in taken], reply
    for call, (_, arguments) in zip(taken, found.calls, strict=True):
        # Clients run every call whose arguments they can read.
        assert arguments == call.arguments or (call.error and arguments.startswith(call.arguments)), reply
        assert call.error is None or not is_object(arguments), reply
    assert found.unfinished == {number for number, call in enumerate(taken) if call.error is not None}, reply
    if not left:
        assert found.text == text, reply
    for call in left:
        assert call.raw in found.text, reply
