"""Law 2, for streams: where nothing says where an output begins, a stream ends with the parts that `parse` gives.

A stream cannot wait for a close that may never come. It begins as text and corrects itself (`Retyped`). Two differences
stay: the notice that says so, and calls that had gone out before the close.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

import asides
from asides import Retyped, Text, Thinking
from asides._engine.format import TEXT
from asides.events import Event
from tests.laws.effort import examples
from tests.laws.seeded import differs
from tests.laws.texts import texts
from tests.support import characters, check_chunking, check_kept, fail, run, show_parts

NAMES = [name for name in asides.formats() if asides.get_format(name).start == TEXT]


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_ends_with_the_parts_of_the_whole(name: str) -> None:
    @settings(max_examples=examples(40))
    @given(texts(name, most=8))
    def law(text: str) -> None:
        outcome = check_chunking(name, text, [characters(text)], {"seed": 0})
        check_kept(name, text, outcome, {})
        whole = asides.parse(text, name, seed=0)
        assert outcome.message is not None
        if differs(whole, outcome.message):
            fail("law 2: a stream ends otherwise", name, text, {}, show_parts(whole), show_parts(outcome.message))

    law()


def events(text: str, **policies: Any) -> list[Event]:
    """The events of a text, as it comes."""
    return run("qwen3", characters(text), **policies).events


def test_a_first_text_that_was_a_thought() -> None:
    found = run("qwen3", characters(" 2+2 is 4.\n</think>\n\nIt is 4."))
    assert Retyped(0, "thinking") in found.events
    assert found.message is not None
    assert [type(part) for part in found.message.parts] == [Thinking, Text]
    assert found.message.parts == asides.parse(found.message.raw, "qwen3", seed=0).parts
    assert [notice.code for notice in found.message.notices] == ["retyped"]


def test_what_was_said_of_the_start_stays() -> None:
    text = "2+2 is 4.\n</think>\n\nIt is 4."
    assert Retyped(0, "thinking") not in events(text, start="text")
    assert Retyped(0, "thinking") not in events(text, retype=False)
    assert Retyped(0, "thinking") not in events(text, prompt="<|im_start|>assistant\n")
    assert Retyped(0, "thinking") in events(text, start="text", retype=True)


def test_a_first_thought_that_was_the_answer() -> None:
    """Where its start was a guess, and the turn ended without any marker."""
    for text in (" It is 4. ", "It is 4.<|im_end|>"):
        found = run("qwen3", characters(text), start="thinking", retype=True)
        assert found.message is not None
        assert found.message.parts == asides.parse(text, "qwen3", seed=0).parts
        assert Retyped(0, "text") in found.events
    cut = run("qwen3", characters("It is 4."), start="thinking", retype=True, finish_reason="length")
    assert Retyped(0, "text") not in cut.events


def test_nothing_but_whitespace_in_a_guessed_thought() -> None:
    """It is what `parse` makes of it, and nothing was left unclosed."""
    for text in ("", " ", "\n\n", " \n<|im_end|>", "<|im_end|>"):
        for whitespace in ("tidy", "exact"):
            whole = asides.parse(text, "qwen3", whitespace=whitespace)
            for chunks in ((text,), characters(text)):
                found = run("qwen3", chunks, start="thinking", retype=True, whitespace=whitespace).message
                assert found is not None
                assert (found.parts, found.termination) == (whole.parts, whole.termination)
                assert {notice.code for notice in found.notices} <= {"retyped"}
    cut = run("qwen3", (" ",), start="thinking", retype=True, finish_reason="length").message
    assert cut is not None
    assert [notice.code for notice in cut.notices] == ["unclosed_thinking"]


def test_once_a_call_has_gone_out_nothing_is_taken_back() -> None:
    text = 'Hi.\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>\nb\n</think>\nc'
    found = run("qwen3", characters(text))
    assert found.message is not None
    assert [notice.code for notice in found.message.notices] == ["stray_close"]
