"""A value is balanced: what it may quote and what ends it, the same in every syntax that writes arguments in tags."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides import Message
from tests.engine.calls.reading import format_of
from tests.engine.calls.test_tagged import ONE, Case
from tests.support import characters, check_chunking, check_kept, cut, every_place

# In CDATA nothing is a tag, so nothing of this can happen there.
every_syntax = pytest.mark.parametrize("case", [case for name, case in ONE.items() if "cdata" not in name])
PROPERTIES = ("content", "path", "command", "city", "state", "unit")
TOOLS = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"properties": {name: {"type": "string"} for name in PROPERTIES}}},
    }
]


def read(case: Case, text: str, **policies: Any) -> Message:
    """What a text means, whole and cut in many ways."""
    format = format_of(case[0])
    ways = [characters(text), cut(text, range(7, len(text), 7))]
    ways += list(every_place(text))[::5]
    outcome = check_chunking(format, text, ways, policies)
    check_kept(format, text, outcome, policies)
    assert outcome.message is not None
    return outcome.message


def found(message: Message) -> list[Any]:
    """Names, arguments or errors of the calls, and the codes of the notices."""
    calls = [(call.name, call.error or json.loads(call.arguments)) for call in message.tool_calls]
    return [*calls, *(notice.code for notice in message.notices)]


def opener(case: Case, key: str) -> str:
    return case[1].item.format(key, "\0").split("\0")[0]


def item(case: Case, key: str, value: str) -> str:
    return case[1].item.format(key, value)


def whole(case: Case, name: str, values: dict[str, str]) -> str:
    _, write, before, after = case
    return before + write(name, values) + after


@every_syntax
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["", "tools"])
def test_what_a_value_may_quote(case: Case, tools: Any) -> None:
    """Whatever is balanced, and whatever words follow: it is part of the value, and nothing is said of it."""
    _, write, before, after = case
    one = whole(case, "demo", {"x": "one"})
    for value in (
        f"# How\n{one}\nThat is all.",
        f"# How\n{one}\n{one}\nThat is all.",
        f"# How\n{whole(case, 'demo', {'path': 'b', 'y': 'two'})}.",
        f"Two:\n{item(case, 'x', 'one')}{item(case, 'path', 'two')}\nEnd.",
        f"End a call with\n{write.close}{after}\nas usual.",
        f"A call that is wrong:\n{before}{write.start.format('demo')}{opener(case, 'x')}{write.close}{after}\nIt is.",
        f"All of {before}{write.start.format('{name}')}{item(case, '{key}', '{value}')}{write.close}{after} here.",
    ):
        message = read(case, whole(case, "f", {"content": value, "path": "a.md"}), tools=tools)
        assert found(message) == [("f", {"content": value, "path": "a.md"})]


@every_syntax
def test_a_tag_that_is_only_talked_about(case: Case) -> None:
    """No closing tag is missing, but the count does not come out."""
    value = f"Write\n{opener(case, 'path').strip()}\nand go on."
    text = whole(case, "f", {"content": value, "path": "a.md"})
    assert found(read(case, text, tools=TOOLS)) == [("f", {"content": value, "path": "a.md"}), "unbalanced_value"]
    assert found(read(case, text)) == [("f", {"content": value, "path": "a.md"}), "unbalanced_value"]


@every_syntax
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["", "tools"])
def test_closing_tags_that_are_missing(case: Case, tools: Any) -> None:
    _, write, before, after = case
    cities = {"city": "Dallas", "state": "TX", "unit": "F"}
    open_city, open_state, open_unit = (f"{opener(case, key)}{value}\n" for key, value in cities.items())
    state, unit = (item(case, key, cities[key]) for key in ("state", "unit"))
    for body, values in (
        (open_city + state + unit, cities),
        (item(case, "city", "Dallas") + open_state, {"city": "Dallas", "state": "TX"}),
        (open_city + open_state + open_unit, cities),
        (open_city + open_state + unit, cities),
    ):
        for stop in ("", "<|im_end|>"):
            text = before + write.start.format("f") + body + write.close + after + stop
            assert found(read(case, text, tools=tools)) == [("f", values), "missing_close"]


@every_syntax
def test_the_next_call(case: Case) -> None:
    """Neither a value nor a call that was not closed takes the next call in."""
    _, write, before, after = case
    head, second = write.start.format("f"), write("g", {"command": "pwd"})
    expected = [("f", {"command": "ls"}), "missing_close", ("g", {"command": "pwd"})]
    not_closed = before + head + opener(case, "command") + "ls\n" + write.close
    for text in (
        f"{not_closed}\n{second}{after}",
        f"{not_closed}{after}\n{before}{second}{after}",
        f"{before}{head}{item(case, 'command', 'ls')}\n{second}{after}",
        f"{before}{head}{item(case, 'command', 'ls')}\n{before}{second}{after}",
    ):
        assert sorted(map(str, found(read(case, text)))) == sorted(map(str, expected))


@every_syntax
def test_the_end_of_the_turn(case: Case) -> None:
    _, write, before, _ = case
    closed = before + write.start.format("f") + item(case, "command", "ls")
    assert found(read(case, closed + "<|im_end|>")) == [("f", {"command": "ls"}), "missing_close"]
    assert found(read(case, closed)) == [("f", "incomplete"), "incomplete_call"]


@every_syntax
def test_output_that_is_cut_off_behind_a_quoted_call(case: Case) -> None:
    """It may not be run, and nothing of it is shown as text."""
    _, write, before, _ = case
    text = f"{before}{write.start.format('f')}{opener(case, 'content')}# How\n{whole(case, 'demo', {'x': 'one'})}"
    for behind in ("", "\n", "\nThat is"):
        message = read(case, text + behind)
        assert found(message) == [("f", "incomplete"), "incomplete_call"]
        assert not message.text


@every_syntax
def test_words_behind_a_call_with_a_missing_closing_tag(case: Case) -> None:
    """Whether the value or the call ended is not known, so it may not be run; the words reach the reader."""
    _, write, before, after = case
    text = before + write.start.format("f") + opener(case, "command") + "ls\n" + write.close + after
    message = read(case, text + "\nLet me look.")
    if write.close.endswith("</function>") and case[0].close == ("</tool_call>",):
        assert found(message)[0] == ("f", "incomplete")  # nothing but the call's own tag ends it
        return
    assert found(message)[:2] == [("f", "unclosed"), "unreadable_call"]
    assert message.text == "Let me look."


@every_syntax
def test_no_more_is_held_than_the_limit_allows(case: Case) -> None:
    """Past the limit what is held is part of the value, however the text is cut."""
    value = f"Write\n{opener(case, 'path').strip()}\n" + "and so on " * 20
    text = whole(case, "f", {"content": value, "path": "a.md"})
    for limit in (20, 60, 100, 150):
        assert "limit" in found(read(case, text, limit=limit, tools=TOOLS))
    assert "limit" not in found(read(case, text, limit=1000, tools=TOOLS))


@every_syntax
@pytest.mark.parametrize("words", ["abc", "a\nb", "\nabc", "a < b", "a <"])
def test_an_opening_tag_behind_words(case: Case, words: str) -> None:
    """Whether a line begins at a tag does not depend on where the words before it were cut."""
    _, _, before, _ = case
    text = whole(case, "f", {"content": words + opener(case, "path") + "x"})
    place = text.index(words + opener(case, "path"), len(before))
    format = format_of(case[0])
    ways = [cut(text, [place, place + len(words)]), cut(text, [place, place + 1, place + len(words)])]
    check_chunking(format, text, ways, {"tools": TOOLS})
