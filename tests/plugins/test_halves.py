"""A reply read in two stages comes to what one stage makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import pytest

from asides import get_format, parse
from asides.plugins._halves import CallDelta, CallHalf, ThoughtHalf
from asides.policies import DEFAULTS, Start
from asides.reading import Reading
from tests.plugins.stages import DIFFERENT, Outcome, Reply, check, replies
from tests.support import characters, check_each, count_calls, stop_markers

QWEN3 = get_format("qwen3")
CODER = get_format("qwen3_coder")
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "<think>"}}\n</tool_call>'


def read(reply: Reply, chunks: Iterable[str], *, whole: bool) -> Outcome:
    """A reply through both stages."""
    start: Start | None = None if reply.format.start == "header" else "text"
    names = {tool["function"]["name"] for tool in reply.tools}
    thoughts = ThoughtHalf(Reading.of(format=reply.format, policies=DEFAULTS.but(**reply.policies(whole))))
    policies = DEFAULTS.but(start=start, tools=reply.tools or None)
    calls = CallHalf(Reading.of(format=reply.format, policies=policies), names)
    pieces = [*(thoughts.feed(chunk) for chunk in chunks), thoughts.finish()]
    thinking = "".join(piece.thinking for piece in pieces)
    if whole:
        found = calls.read_whole("".join(piece.rest for piece in pieces))
        return Outcome(thinking, found.text, [(call.name, call.arguments) for call in found.calls], calls.unfinished)
    ends = [*(calls.feed(piece.rest) for piece in pieces), calls.finish()]
    return Outcome(thinking, "".join(end.text for end in ends), _joined(ends_of(ends)), calls.unfinished)


def ends_of(pieces: Sequence[tuple[str, list[CallDelta]]]) -> list[CallDelta]:
    """The deltas of all calls."""
    return [call for _, calls in pieces for call in calls]


def _joined(deltas: list[CallDelta]) -> list[tuple[str, str]]:
    found: dict[int, tuple[str, str]] = {}
    for number, name, arguments, id in deltas:
        assert (number not in found) == bool(name) == bool(id), "a name comes first and once, with the id"
        before = found.get(number, ("", ""))
        found[number] = (before[0] + name, before[1] + arguments)
    return list(found.values())


def _check(reply: Reply) -> None:
    check(reply, read(reply, [reply.text], whole=True), reply.message(True), whole=True)
    message = reply.message(False)
    for chunks in reply.cuts():
        check(reply, read(reply, chunks, whole=False), message, whole=False)


def test_every_case_comes_to_the_same_in_two_stages() -> None:
    """Thoughts, text and calls of all cases, whole and in any cut."""
    given = [reply for reply in replies() if "input_schema" not in str(reply.tools)]
    assert len(given) > 2_500
    check_each(_check, [reply for reply in given if reply.name not in DIFFERENT], lambda reply: reply.name)


def test_what_differs_does_differ() -> None:
    """A case that no longer differs leaves the list."""
    named = [reply for reply in replies() if reply.name in DIFFERENT]
    assert len(named) == len(DIFFERENT)
    for reply in named:
        with pytest.raises(AssertionError):
            _check(reply)


def _after_turn(reply: Reply) -> Reply | None:
    """A reply with calls that may be run, after an answer and the end of its turn."""
    stops = [stop for stop in stop_markers(reply.format) if stop not in reply.format.goes_on]
    message = reply.message(True)
    if not stops or reply.options.get("prompt") is not None or not message.tool_calls:
        return None
    return reply._replace(text=f"Hi.{stops[0]}\n{reply.text}")


def test_no_call_after_the_turn_is_run_whoever_reads_calls() -> None:
    """Neither those that the first stage reads nor what another reader could take for one."""
    given = [late for reply in replies() if (late := _after_turn(reply)) is not None]
    taken = [reply for reply in given if Random(reply.name).random() < 0.3]
    assert len(taken) > 200

    def check_late(reply: Reply) -> None:
        for whole in (True, False):
            found = read(reply, [reply.text] if whole else characters(reply.text), whole=whole)
            assert not found.calls, reply
            openers = [opener for syntax in reply.format.calls for opener in syntax.openers]
            assert not any(opener in found.text for opener in openers), reply

    check_each(check_late, taken, lambda reply: reply.name)


@pytest.mark.parametrize(
    "text",
    [
        f"Hi.<|im_end|>\n{CALL}",
        f"{CALL}<|im_end|>{CALL}",
        f"Hi.<|im_end|>I show:\n```\n{CALL}",
        f"Hi. `<tool_call>` is<|im_end|> ` {CALL}",
        "Hi. <tool_<|im_end|>" + CALL.removeprefix("<tool_"),
        "Hi. <t<|im_end|>ool_<|im_end|>" + CALL.removeprefix("<tool_"),
        f"Hi. {CALL[:40]}<|im_end|>{CALL[40:]}",
        f"{CALL}<|im_end|>\n<|im_start|>user\nAgain.\n{CALL}",
        'Hi. "<tool_call>{"name": "f", "arguments": {}}<|im_end|></tool_call>',
        f"So: ` {CALL} `<|im_end|>```",
        f"Hi.<|im_end|>{'word ' * 300_000}{CALL}",
    ],
)
def test_what_is_after_the_turn_makes_no_call(text: str) -> None:
    """Not with what stands before it either. Nothing is lost, but for markers and another turn."""
    runnable = [call for call in parse(text, QWEN3).tool_calls if call.error is None]
    size = 1 if len(text) < 1_000 else 100_000
    for chunks in ([text], [text[at : at + size] for at in range(0, len(text), size)]):
        thoughts = ThoughtHalf(Reading.of(format=QWEN3, policies=DEFAULTS))
        pieces = [*map(thoughts.feed, chunks), thoughts.finish()]
        rest, thinking = ("".join(getattr(piece, name) for piece in pieces) for name in ("rest", "thinking"))
        calls = CallHalf(Reading.of(format=QWEN3, policies=DEFAULTS.but(start="text"))).read_whole(rest).calls
        assert [call.arguments for call in calls] == [call.arguments for call in runnable]
        assert rest.count("<tool_call>") <= max(len(runnable), "<tool_call>" in text.partition("<|im_end|>")[0])
        assert "word " * 300_000 not in text or "word " * 299_999 in (rest, thinking)[len(chunks) > 1]


def test_words_after_the_turn_are_text() -> None:
    half = ThoughtHalf(Reading.of(format=QWEN3, policies=DEFAULTS))
    pieces = [*map(half.feed, "<think>a</think>Hi.<|im_end|>\nAnd more!<think>c</think>\nBye."), half.finish()]
    assert "".join(piece.rest for piece in pieces) == "Hi.\nAnd more!\nBye."
    assert "".join(piece.thinking for piece in pieces) == "a\n\nc"


@pytest.mark.parametrize("chunks", [characters, lambda text: [text]])
def test_calls_go_on_as_they_were_written(chunks: object) -> None:
    """Second thoughts do not leak, and a marker in an argument is none."""
    assert callable(chunks)
    text = f"<think>one</think>\n\nHi.\n{CALL}\n<think>two</think> Bye.<|im_end|>"
    half = ThoughtHalf(Reading.of(format=QWEN3, policies=DEFAULTS))
    pieces = [*map(half.feed, chunks(text)), half.finish()]
    assert "".join(piece.thinking for piece in pieces) == "one\n\ntwo"
    assert "".join(piece.rest for piece in pieces) == f"Hi.\n{CALL}\n\nBye."


def test_a_call_behind_a_thought_that_nothing_closed_goes_on() -> None:
    half = ThoughtHalf(Reading.of(format=QWEN3, policies=DEFAULTS))
    pieces = [half.feed(f"<think>I call it.\n{CALL}"), half.finish()]
    assert [piece.thinking for piece in pieces] == ["I call it.", ""]
    assert "".join(piece.rest for piece in pieces).strip() == CALL


def test_words_that_went_on_cannot_be_taken_back() -> None:
    """A lone close sets the answer apart from the thought; a thought that was the answer goes on once more."""
    for start, text, thinking, rest in (
        ("text", "hm so</think>Four.", "", "hm so\n\nFour."),
        ("thinking", "It is 4.", "It is 4.", "It is 4."),
        ("thinking", "word " * 200, "word " * 199 + "word", "word " * 200),
    ):
        policies = DEFAULTS.but(start=start, retype=True)  # type: ignore[arg-type]  # a word of `Start`
        half = ThoughtHalf(Reading.of(format=QWEN3, policies=policies))
        pieces = [*map(half.feed, text), half.finish()]
        assert "".join(piece.thinking for piece in pieces).rstrip() == thinking
        assert "".join(piece.rest for piece in pieces) == rest


def test_an_answer_under_a_grammar_has_no_markers() -> None:
    half = ThoughtHalf(Reading.of(format=QWEN3, policies=DEFAULTS), answer_verbatim=True)
    text = '<think>a</think>\n{"x": <think> <tool_call>}'
    pieces = [*map(half.feed, text), half.finish()]
    assert "".join(piece.thinking for piece in pieces) == "a"
    assert "".join(piece.rest for piece in pieces) == '{"x": <think> <tool_call>}'
    assert half.verbatim


def test_without_the_first_stage_thoughts_stay_in_the_text() -> None:
    """Every character but those of calls is as it was."""
    text = f"<think>\none\n</think>\n\nHi. <think>two</think>\n</think> Ho.\n{CALL}\nBye.<|im_end|>"
    for chunks in ([text], characters(text)):
        half = CallHalf(Reading.of(format=QWEN3, policies=DEFAULTS.but(start="text")))
        pieces = [*map(half.feed, chunks), half.finish()]
        before, after = text.split(f"\n{CALL}\n")
        assert "".join(piece.text for piece in pieces) == f"{before}\n{after}"
        assert _joined(ends_of(pieces)) == [("f", '{"a": "<think>"}')]


def test_calls_that_may_not_be_run() -> None:
    """One of an unknown name is text; a broken one is text where nothing of it went out, else it is unfinished."""
    unknown = CALL.replace('"f"', '"g"')
    half = CallHalf(Reading.of(format=QWEN3, policies=DEFAULTS.but(start="text")), {"f"})
    assert half.read_whole(f"a {unknown} b").text == f"a {unknown} b"
    assert half.left == ["g"]
    broken = '<tool_call>\n{"name": "f", "arguments": {"a": 1'
    half = CallHalf(Reading.of(format=QWEN3, policies=DEFAULTS.but(start="text")), {"f"})
    assert half.read_whole(f"a {broken}") == (f"a {broken}", [])
    half = CallHalf(Reading.of(format=QWEN3, policies=DEFAULTS.but(start="text")), {"f"})
    pieces = [*map(half.feed, f"a {broken}"), half.finish()]
    assert _joined(ends_of(pieces)) == [("f", '{"a": 1')]
    assert half.unfinished == {0}


@pytest.mark.parametrize("size", [1, 1_000])
def test_a_broken_call_that_went_out_cannot_be_run(size: int) -> None:
    """After the end of the turn, where no first stage has taken it away: its arguments are no object any more."""
    text = f"Hi.<|im_end|>{CALL}"
    half = CallHalf(Reading.of(format=QWEN3, policies=DEFAULTS.but(start="text")), {"f"})
    pieces = [*(half.feed(text[at : at + size]) for at in range(0, len(text), size)), half.finish()]
    expected = '{"a": "<think>"} (the call stands after the end of the turn)'
    assert _joined(ends_of(pieces)) == [("f", expected)]
    assert half.unfinished == {0}


def test_a_long_argument_costs_the_same_for_each_character() -> None:
    """In both stages, and nothing that was read is kept for longer than it is needed."""

    def cost(size: int) -> int:
        text = "<tool_call>\n<function=f>\n<parameter=a>\n" + "word " * (size // 5) + "\n</parameter>\n</function>"
        thoughts = ThoughtHalf(Reading.of(format=CODER, policies=DEFAULTS))
        calls = CallHalf(Reading.of(format=CODER, policies=DEFAULTS.but(start="text")))

        def run() -> None:
            for place in range(0, len(text), 4):
                calls.feed(thoughts.feed(text[place : place + 4]).rest)
            calls.feed(thoughts.finish().rest)
            calls.finish()

        return count_calls(run)

    small, large = cost(24_000), cost(96_000)
    assert large < 4.2 * small
    assert large < 40 * 24_000  # 30 for each chunk; twice that before most were passed on as they are
