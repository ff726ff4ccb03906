"""`auto` settles step by step, and the same settling always gives the same format."""

from __future__ import annotations

import pytest

import asides
from asides import Format, Thinking
from asides.formats.auto import AUTO, PAIRS, STOPS, SYNTAXES

SAID = '{"name": "f", "arguments": {}}'


def settle(format: Format, met: object) -> Format:
    """What `format` goes on with."""
    assert format.settle is not None
    return format.settle(met)  # type: ignore[arg-type]


@pytest.mark.parametrize(("opener", "closer"), PAIRS)
def test_a_pair_settles_thinking_and_leaves_calls_open(opener: str, closer: str) -> None:
    settled = settle(AUTO, opener)
    assert settled is settle(AUTO, closer)
    assert settled.states["text"] == {opener: "thinking", **dict.fromkeys(STOPS, "end")}
    assert settled.calls == SYNTAXES


def test_a_call_settles_calls_and_leaves_thinking_open() -> None:
    settled = settle(AUTO, SYNTAXES[0])
    assert settled.calls == (SYNTAXES[0],)
    assert settled.states["text"] == AUTO.states["text"]
    assert settled is settle(AUTO, SYNTAXES[0])


def test_both_orders_of_settling_meet() -> None:
    one = settle(settle(AUTO, "<think>"), SYNTAXES[1])
    other = settle(settle(AUTO, SYNTAXES[1]), "<think>")
    assert one is other
    assert one.settle is None


@pytest.mark.parametrize(
    ("marker", "name"),
    [
        ("<|channel|>", "harmony"),
        ("<|content_thinking|>", "inkling"),
        ("<|think|>", "solar_open"),
        ("<|channel>", "gemma4"),
        ("<channel|>", "gemma4"),
        ("<|open|>think<|sep|>", "kimi_k3"),
        ("<|END_THINKING|>", "cohere_command3"),
    ],
)
def test_a_family_with_markers_of_its_own_settles_everything(marker: str, name: str) -> None:
    assert settle(AUTO, marker) is asides.get_format(name)


def test_what_settles_nothing_changes_nothing() -> None:
    assert settle(AUTO, "</tool_call>") is AUTO
    pair = settle(AUTO, "<think>")
    assert settle(pair, "<think>") is pair


def test_it_is_the_default() -> None:
    message = asides.parse(f"[THINK]a[/THINK]b<tool_call>{SAID}</tool_call>")
    assert message.thinking == "a"
    assert message.text == "b"
    assert [call.name for call in message.tool_calls] == ["f"]
    assert asides.clean("a</think>b") == "b"


def test_two_streams_settle_apart() -> None:
    one, other = asides.Parser(), asides.Parser()
    one.feed("<think>a")
    other.feed("[THINK]a</think>")
    one.feed("[/THINK]</think>b")
    other.feed("[/THINK]b")
    one.finish()
    other.finish()
    assert [part.text for part in one.message.parts if isinstance(part, Thinking)] == ["a[/THINK]"]
    assert [part.text for part in other.message.parts if isinstance(part, Thinking)] == ["a</think>"]


def test_no_marker_of_auto_is_a_sentence_a_bare_call_or_a_common_tag() -> None:
    markers = {marker for markers in AUTO.states.values() for marker in markers}
    markers |= {opener for syntax in SYNTAXES for opener in syntax.openers}
    assert not [marker for marker in markers if marker[0].isalnum() or marker[0].isspace()]
    assert not markers & {"<answer>", "<response>", "<reason>", "<reflection>", "</s>", "<eos>", "<sep>"}
    assert not markers & {"</internal>", "</scratchpad>"}  # these act only where their opener has
    assert not any(syntax.bare for syntax in SYNTAXES)


@pytest.mark.parametrize("format", [name for name in asides.formats() if name not in {"auto", "passthrough"}])
def test_auto_reads_the_calls_of_every_family_whose_openers_are_distinctive(format: str) -> None:
    left_out = {"functools[", "function call<|role_sep|>", ">>>", "<invoke name="}
    openers = {opener for syntax in asides.get_format(format).calls for opener in syntax.openers} - left_out
    known = {opener for syntax in SYNTAXES for opener in syntax.openers}
    assert openers <= known | {"<|tool_call:name|>"}
