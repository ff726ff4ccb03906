"""`auto` settles step by step, and the same settling always gives the same format."""

from __future__ import annotations

import re

import pytest

import asides
from asides import Format, Thinking
from asides._engine.format import END, HEADER, TEXT, THINKING
from asides.families import Family, families
from asides.families._auto import AUTO
from asides.families._auto_markers import MARKERS

PAIRS, STOPS, WRAPPERS, SYNTAXES = MARKERS.pairs, MARKERS.stops, MARKERS.wrappers, MARKERS.syntaxes
SAID = '{"name": "f", "arguments": {}}'


def settle(format: Format, met: object) -> Format:
    """What `format` goes on with."""
    assert format.settle is not None
    return format.settle(met)  # type: ignore[arg-type]


@pytest.mark.parametrize(("opener", "closer"), PAIRS)
def test_a_pair_settles_thinking_and_leaves_calls_open(opener: str, closer: str) -> None:
    settled = settle(AUTO, opener)
    assert settled is settle(AUTO, closer)
    assert settled.states["text"] == {
        opener: "thinking",
        **dict.fromkeys(WRAPPERS, "text"),
        **dict.fromkeys(STOPS, "end"),
    }
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


KNOWN = [(family, format) for family in families() for format in family.formats if format.settle is None]


@pytest.mark.parametrize(("family", "format"), KNOWN, ids=[format.name for _, format in KNOWN])
def test_auto_reads_the_calls_of_every_family_whose_openers_are_distinctive(family: Family, format: Format) -> None:
    openers = {opener for syntax in format.calls for opener in syntax.openers} - family.plain.keys()
    assert openers <= {opener for syntax in SYNTAXES for opener in syntax.openers}


def distinctive(state: str, target: str) -> list[str]:
    """Every marker that leads from one state to the other in some format that does not call it plain."""
    found = {
        marker: None
        for family, format in KNOWN
        for marker, leads_to in format.states.get(state, {}).items()  # type: ignore[call-overload]
        if leads_to == target and marker not in family.plain
    }
    return list(found)


def pairs() -> list[tuple[str, str]]:
    """Every opener and its closer, of formats without headers."""
    found: dict[tuple[str, str], None] = {}
    for family, format in KNOWN:
        text, thinking = format.states.get(TEXT, {}), format.states.get(THINKING, {})
        opens = [marker for marker, target in text.items() if target == THINKING]
        closes = [marker for marker, target in thinking.items() if target == TEXT and marker not in text]
        if format.header is None:
            closes += closes[-1:] * (len(opens) - len(closes))  # several openers, one closer
            chosen = zip(opens, closes, strict=False)
            found.update(dict.fromkeys(pair for pair in chosen if not family.plain.keys() & set(pair)))
    return list(found)


@pytest.mark.parametrize(("opener", "closer"), pairs())
def test_every_distinctive_pair_is_read(opener: str, closer: str) -> None:
    message = asides.parse(f"{opener}a plan{closer}the answer")
    assert (message.thinking, message.text) == ("a plan", "the answer")
    assert asides.parse(f"a plan{closer}the answer").text == "the answer"


@pytest.mark.parametrize("stop", distinctive(TEXT, END))
def test_every_distinctive_stop_is_read(stop: str) -> None:
    """Before anything is settled, behind the thought of any family, and inside it."""
    assert asides.parse(f"the answer{stop}").text == "the answer"
    assert asides.parse(f"the answer{stop}", start="text").text == "the answer"
    for opener, closer in PAIRS:
        message = asides.parse(f"{opener}a plan{closer}the answer{stop}")
        assert (message.thinking, message.text, message.termination) == ("a plan", "the answer", "stop")
    message = asides.parse(f"<think>a plan{stop}")
    assert (message.thinking, message.text, message.termination) == ("a plan", "", "stop")


@pytest.mark.parametrize("wrapper", distinctive(TEXT, TEXT))
def test_every_distinctive_wrapper_is_left_out(wrapper: str) -> None:
    assert wrapper not in asides.parse(f"<think>a plan</think>{wrapper}the answer{wrapper}").text
    assert wrapper not in asides.parse(f"{wrapper}the answer").text


LEFT_OUT = {
    " to=",
    "\n\nUser:",
    "</answer>",
    "</assistant>",
    "</internal>",
    "</reason>",
    "</reflection>",
    "</response>",
    "</s>",
    "</scratchpad>",
    "<answer>",
    "<assistant>",
    "<eos>",
    "<internal>",
    "<invoke name=",
    "<reason>",
    "<reflection>",
    "<response>",
    "<scratchpad>",
    "<sep>",
    "<|tool_call:name|>",
    ">>>",
    ">>>all\n",
    "Action:",
    "Assistant:",
    "Here are my reasoning steps:",
    "Here is my response:",
    "Here is my thought process:",
    "Here's my response:",
    "Here's my thought process:",
    "[TOOL_CALLS]",
    "[BEGIN FINAL RESPONSE]",
    "[END FINAL RESPONSE]",
    "all\n",
    "assistant:",
    "function call<|role_sep|>",
    "functools [",
    "functools[",
    "thought\n",
}
"""What cards call plain; the reasons stand with them. A new one is a decision, so it is written down here too."""
COMMON = {
    "<think>",
    "</think>",
    "<thinking>",
    "</thinking>",
    "<thought>",
    "</thought>",
    "<reasoning>",
    "</reasoning>",
}
"""What takes part although it looks like a tag of anybody's."""


def test_what_is_left_out_is_decided() -> None:
    plain = {marker: reason for family in families() for marker, reason in family.plain.items()}
    assert plain.keys() == LEFT_OUT
    assert all(reason.strip() for reason in plain.values())
    for family in families():
        own = {marker for format in family.formats for table in format.states.values() for marker in table}
        own |= {marker for format in family.formats for marker in format.assistant}
        own |= {opener for format in family.formats for syntax in format.calls for opener in syntax.openers}
        assert family.plain.keys() <= own, f"{family.name} calls markers plain that it does not have"


@pytest.mark.parametrize("marker", sorted(LEFT_OUT - {"<internal>", "<scratchpad>", "[TOOL_CALLS]"}))
def test_what_is_left_out_is_text(marker: str) -> None:
    text = f"Well, {marker} it is. {marker} too."
    assert asides.parse(text).text == text


def test_what_looks_like_a_common_tag_is_decided() -> None:
    """A new marker without any sign of its own must be called plain, or be named here."""
    markers = {marker for table in AUTO.states.values() for marker in table} - {"<internal>", "<scratchpad>"}
    common = {marker for marker in markers if re.fullmatch(r"</?[a-z]+>|[\w\s:']+", marker)}
    assert common == COMMON


def test_every_distinctive_marker_is_noticed_where_no_format_knows_it() -> None:
    """Thinking markers and call openers, as far as they begin with `<`: see `_engine/foreign.py`."""
    nobody = Format.tags("<nobody>", "</nobody>", name="nobody")
    told = {
        marker
        for state, target in ((TEXT, THINKING), (TEXT, HEADER), (THINKING, TEXT), (HEADER, THINKING))
        for marker in distinctive(state, target)
    }
    told |= {
        opener
        for family, format in KNOWN
        for syntax in format.calls
        for opener in syntax.openers
        if opener not in family.plain
    }
    silent = {marker for marker in told if not asides.parse(f"So {marker} it is.", nobody).notices}
    assert silent == {"[/THINK]", "[THINK]", "[TOOL_CALLS]", "◁/think▷", "◁think▷"}
