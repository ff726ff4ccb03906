"""The checks of an audit: a table of small functions, each of which asks and says what it found.

A check is called for one API with an `Auditor`, asks through it, and yields `CheckResult`s. What every reply must be,
whatever it was asked for (its shape, its end, its counts, its ids), is looked at by `OBSERVED` over all replies that
the other checks have brought, so that it costs no request of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dialects._framing import to_json
from ..dialects._request import CallPiece, RequestTurn, TextPiece, ThinkingOptions, ThinkingPiece
from ._apis import Wrong
from ._judge import judge_script, reference_of
from ._running import busy, tokens_written
from ._verdicts import CheckResult, Result
from ._wire import Answer

if TYPE_CHECKING:
    from ._audit import Auditor

QUESTION = "What is 17 times 23? Think briefly, then answer with the number."
TOOL = "get_weather"
TOOL_QUESTION = f"What is the weather in Lisbon? Use the tool {TOOL}."
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
THOUGHT = "They ask about Lisbon. I shall look the weather up first, then say in one short line what to wear there."
HOWS = ("whole", "streamed")
FEW = 8
"""Tokens of a reply that is meant to be cut."""
SCRIPT_COST = 3
"""Requests for a script at most: its length, whole, streamed."""
LEAST_LONG = 24
"""Tokens of a reply that can be left in its middle."""
CHARACTERS_PER_TOKEN = 12
"""More than a token of plain English has."""


class Check(NamedTuple):
    """One row of the table."""

    name: str
    run: Callable[[Auditor], Iterator[CheckResult]]
    cost: Callable[[Auditor], int]
    """Requests at most, for one API."""


def check_scripts(auditor: Auditor) -> Iterator[CheckResult]:
    """Each script of the parrot, whole and streamed: what the server makes of a known output."""
    for script in auditor.scripts:
        for how in HOWS:
            answer = auditor.play(script, streamed=how == "streamed")
            if isinstance(answer, str):
                yield auditor.unsure(script.name, how, answer)
                continue
            found = judge_script(script, answer)
            result: Result = "pass"
            if found:
                code = found[0][0]
                result = {"not_sayable": "inconclusive", "marker_reading": "differs"}.get(code, "fail")  # type: ignore[assignment] # of Result
            yield auditor.result(script.name, how, result, found, answer)


def check_plain(auditor: Auditor) -> Iterator[CheckResult]:
    """A question without tools, whole and streamed: an answer comes, and no marker is left in it."""
    answers = []
    for how in HOWS:
        answer = auditor.ask(QUESTION, streamed=how == "streamed")
        answers.append(answer)
        if answer.fine and not (answer.text or answer.thinking or answer.calls):
            yield auditor.unsure("answer", how, "no_answer", answer)
        else:
            yield auditor.result("answer", how, "pass", _broken(answer) or _left_over(auditor, answer), answer)
    same = all(answer.fine for answer in answers) and len({(each.thinking, each.text) for each in answers}) == 1
    yield auditor.result(
        "whole is streamed",
        "",
        "pass" if same else "inconclusive",
        [] if same else [("not_repeatable", "")],
        answers[0],
    )


def check_call(auditor: Auditor) -> Iterator[CheckResult]:
    """A question that wants a tool: the call is a call, and one of the tools that were offered."""
    for how in HOWS:
        answer = auditor.ask(TOOL_QUESTION, streamed=how == "streamed", tools=TOOLS)
        found = _broken(answer) or _left_over(auditor, answer, calls=True)
        for call in answer.calls:
            if call.runnable and call.name != TOOL:
                found.append(("call_not_said", f"{call.name} was not offered"))
        if not found and not answer.calls:
            yield auditor.unsure("call", how, "no_call", answer)
        else:
            yield auditor.result("call", how, "pass", found, answer)


def check_second_step(auditor: Auditor) -> Iterator[CheckResult]:
    """A thought, a call and its result go back: the server takes them, and the thought is in the prompt again."""
    turns = _history(auditor, THOUGHT)
    answer = auditor.ask_turns(turns, tools=TOOLS)
    refused = [("second_step_failed", f"status {answer.arrival.status}: {_message(answer)}")] if not answer.fine else []
    yield auditor.result("second step", "", "pass", refused, answer)
    if refused:
        yield auditor.unsure("thought put back", "", "no_answer", answer)
        return
    bare = auditor.ask_turns(_history(auditor, ""), tools=TOOLS, most=1)
    lengths = [each.usage.input_tokens if each.usage is not None else 0 for each in (answer, bare)]
    grew = lengths[0] - lengths[1]
    if not all(lengths):
        yield auditor.unsure("thought put back", "", "no_usage", answer)
    elif grew <= 0:
        detail = f"the prompt has {lengths[0]} tokens with the thought and {lengths[1]} without"
        yield auditor.result("thought put back", "", "pass", [("thought_not_put_back", detail)], answer)
    elif grew * CHARACTERS_PER_TOKEN < len(THOUGHT):
        detail = f"the prompt grew by {grew} tokens, which is less than the thought has"
        yield auditor.result("thought put back", "", "pass", [("thought_not_put_back", detail)], answer)
    else:
        yield auditor.result("thought put back", "", "pass", [], answer)


def check_spoken_steps(auditor: Auditor) -> Iterator[CheckResult]:
    """Two scripts after each other: the call of the first goes back with its result, and the second is said."""
    first = next((each for each in auditor.scripts if reference_of(each).calls), None)
    said = None if first is None else auditor.play(first)
    if first is None or isinstance(said, str) or said is None or not any(call.runnable for call in said.calls):
        yield auditor.unsure("two steps", "", "no_call" if not isinstance(said, str) else said)
        return
    turns = auditor.turns_after(said, first)
    spoken = auditor.play_after(turns, first.tools or TOOLS)
    if isinstance(spoken, str):
        yield auditor.unsure("two steps", "", spoken)
        return
    script, answer = spoken
    failed = [("second_step_failed", f"status {answer.arrival.status}: {_message(answer)}")] if not answer.fine else []
    yield auditor.result("two steps", "", "pass", failed or judge_script(script, answer), answer)


def check_thinking_off(auditor: Auditor) -> Iterator[CheckResult]:
    """Thinking turned off by the API's own field and by the model's keyword: no thought comes."""
    off = ThinkingOptions(think=False, effort="none")
    if auditor.scripts:
        # A parrot says its script all the same; that the switch has reached the template shows in the prompt's length.
        lengths = [auditor.length(TOOL_QUESTION, thinking=thinking) for thinking in (ThinkingOptions(), off)]
        changed = None not in lengths and lengths[0] != lengths[1]
        if changed:
            yield auditor.result("thinking off", "", "pass", [], auditor.answers[-1])
        else:
            yield auditor.unsure("thinking off", "", "no_switch", auditor.answers[-1])
        return
    answer = auditor.ask(QUESTION, thinking=off)
    thought = [("thinking_not_off", f"the thought is {answer.thinking[:200]!r}")] if answer.thinking.strip() else []
    if not answer.fine:
        yield auditor.unsure("thinking off", "", "no_switch", answer)
    elif not thought and not any(each.thinking for each in auditor.answers):
        yield auditor.unsure("thinking off", "", "no_thought", answer)
    else:
        yield auditor.result("thinking off", "", "pass", thought or _left_over(auditor, answer), answer)


def check_cut(auditor: Auditor) -> Iterator[CheckResult]:
    """A reply of few tokens says that it was cut."""
    for how in HOWS:
        answer = auditor.ask_cut(FEW, streamed=how == "streamed")
        if isinstance(answer, str):
            yield auditor.unsure("cut", how, answer)
            continue
        reasons = auditor.api.finish(answer.documents)
        right = auditor.api.expected(False, True)
        found = _broken(answer)
        if not found and not set(reasons) & right:
            written = answer.usage.output_tokens if answer.usage is not None else 0
            if written < FEW:
                yield auditor.unsure("cut", how, "too_short", answer)
                continue
            found = [("finish_wrong", f"{reasons or 'no reason'}, not {'or'.join(sorted(right))}")]
        yield auditor.result("cut", how, "pass", found, answer)


def check_reasoning_usage(auditor: Auditor) -> Iterator[CheckResult]:
    """Tokens of thinking, where they are counted, are some and no more than all."""
    thought = [
        answer for answer in auditor.answers if answer.fine and answer.thinking.strip() and answer.usage is not None
    ]
    if not thought:
        yield auditor.unsure("reasoning tokens", "", "no_thought")
        return
    for answer in thought:
        assert answer.usage is not None  # by the line above
        counted, written = answer.usage.reasoning_tokens, answer.usage.output_tokens
        if counted is not None and not 0 < counted <= written:
            detail = f"{counted} reasoning tokens of {written} output tokens, and a thought"
            yield auditor.result("reasoning tokens", "", "pass", [("usage_wrong", detail)], answer)
            return
    if all(answer.usage is None or answer.usage.reasoning_tokens is None for answer in thought):
        yield auditor.result("reasoning tokens", "", "differs", [("reasoning_not_counted", "")], thought[0])
    else:
        yield auditor.result("reasoning tokens", "", "pass", [], thought[0])


def check_error(auditor: Auditor) -> Iterator[CheckResult]:
    """A request that cannot be honoured is refused, in the API's shape, streamed or not."""
    for how in HOWS:
        answer = auditor.ask_wrongly(streamed=how == "streamed")
        status = answer.arrival.status
        found: list[Wrong] = []
        if not 400 <= status < 500:
            found.append(("error_status", f"status {status} for messages that are a number"))
        elif not auditor.error_is_shaped(answer):
            found.append(("error_shape", answer.arrival.data[:200].decode("utf-8", "replace")))
        yield auditor.result("refusal", how, "pass", found, answer)


def check_disconnect(auditor: Auditor) -> Iterator[CheckResult]:
    """A client that leaves ends the generation; judged only where the server shows what it is doing."""
    if busy(auditor.sender) is None:
        yield auditor.unsure("disconnect", "", "not_shown")
        return
    whole = auditor.ask_long()
    if isinstance(whole, str) or whole.usage is None or whole.usage.output_tokens < LEAST_LONG:
        yield auditor.unsure("disconnect", "", "too_short" if not isinstance(whole, str) else whole)
        return
    before = tokens_written(auditor.sender)
    answer = auditor.leave(whole)
    waited = 0
    while (working := busy(auditor.sender)) and waited < FEW:
        waited += 1
    after = tokens_written(auditor.sender)
    written = after - before if before is not None and after is not None else None
    if working or (written is not None and written >= whole.usage.output_tokens):
        detail = f"{written if written is not None else 'more'} tokens were written for a client that had left"
        yield auditor.result("disconnect", "", "pass", [("goes_on", detail)], answer)
    elif written is None and waited:
        yield auditor.unsure("disconnect", "", "not_shown", answer)
    else:
        yield auditor.result("disconnect", "", "pass", [], answer)


SCRIPTED: tuple[Check, ...] = (
    Check("scripts", check_scripts, lambda auditor: SCRIPT_COST * len(auditor.scripts) + 2),
    Check("two steps", check_spoken_steps, lambda auditor: 5),
    Check("second step", check_second_step, lambda auditor: 2),
    Check("thinking off", check_thinking_off, lambda auditor: 2),
    Check("cut", check_cut, lambda auditor: 4),
    Check("reasoning tokens", check_reasoning_usage, lambda auditor: 0),
    Check("refusal", check_error, lambda auditor: 2),
    Check("disconnect", check_disconnect, lambda auditor: 8 + FEW),
)
"""The checks of a server that has loaded a parrot."""
UNSCRIPTED: tuple[Check, ...] = (
    Check("answer", check_plain, lambda auditor: 2),
    Check("call", check_call, lambda auditor: 2),
    Check("second step", check_second_step, lambda auditor: 2),
    Check("thinking off", check_thinking_off, lambda auditor: 1),
    Check("cut", check_cut, lambda auditor: 2),
    Check("reasoning tokens", check_reasoning_usage, lambda auditor: 0),
    Check("refusal", check_error, lambda auditor: 2),
    Check("disconnect", check_disconnect, lambda auditor: 8 + FEW),
)
"""The checks of a server with any model."""


# What every reply must be.


def observe_shape(auditor: Auditor, answer: Answer) -> list[Wrong] | None:
    """The fields that the API's reference requires."""
    if not answer.fine:
        return None
    return [*(auditor.api.stream(answer) if answer.streamed else auditor.api.whole(answer.documents[0]))]


def observe_stream(auditor: Auditor, answer: Answer) -> list[Wrong] | None:
    """A stream has the API's content type, readable frames, and an end that is no error."""
    arrival = answer.arrival
    if arrival.status != 200:
        return None
    found: list[Wrong] = []
    if arrival.too_large:
        found.append(("too_large", f"more than {len(arrival.data)} bytes"))
    if arrival.endless:
        found.append(("never_ends", f"{len(arrival.data)} bytes had come"))
    if answer.unreadable:
        found.append(("frame_unreadable", f"{answer.unreadable} of {answer.unreadable + len(answer.documents)}"))
    wanted = auditor.api.dialect.FRAMING.media_type.partition(";")[0] if answer.streamed else "application/json"
    if arrival.media_type != wanted:
        found.append(("media_type_wrong", f"{arrival.media_type}, not {wanted}"))
    if answer.streamed and answer.failed is not None and not found:
        code = "no_end" if not any("error" in document for document in answer.documents) else "error_in_stream"
        found.append((code, answer.failed.message))
    return found


def observe_finish(auditor: Auditor, answer: Answer) -> list[Wrong] | None:
    """The reason of the end is one, and the one for this end."""
    if not answer.fine or answer.body in auditor.cut_bodies:
        return None
    reasons = auditor.api.finish(answer.documents)
    if len(reasons) != 1:
        return [("finish_wrong", f"{len(reasons)} reasons: {reasons}")]
    right = auditor.api.expected(any(call.runnable for call in answer.calls), False)
    # A real model may need more than the tokens that it was given; and a call that may not be run is a call or is none.
    allowed = right | auditor.api.expected(False, True) | auditor.api.expected(bool(answer.calls), False)
    return [("finish_wrong", f"{reasons[0]}, not {' or '.join(sorted(right))}")] if reasons[0] not in allowed else []


def observe_usage(auditor: Auditor, answer: Answer) -> list[Wrong] | None:
    """Tokens are counted, and there are some where there are words."""
    if not answer.fine or answer.usage is None:
        return None
    words = answer.text or answer.thinking or answer.calls
    if words and not answer.usage.output_tokens:
        return [("usage_wrong", "0 output tokens for a reply that has words")]
    return [("usage_wrong", "0 input tokens")] if not answer.usage.input_tokens else []


def observe_ids(auditor: Auditor, answer: Answer) -> list[Wrong] | None:
    """Calls have ids, and no two the same but those that the model wrote itself."""
    if not answer.calls or not auditor.api.ids:
        return None
    found: list[Wrong] = []
    for call in answer.calls:
        if not call.id:
            found.append(("id_missing", f"{call.name} has none"))
        elif call.id in auditor.ids and not auditor.is_written(call):
            found.append(("id_twice", f"{call.id} of {call.name} has come before"))
        auditor.ids.add(call.id)
    return found


OBSERVED: tuple[tuple[str, Callable[[Auditor, Answer], list[Wrong] | None]], ...] = (
    ("shape", observe_shape),
    ("transport", observe_stream),
    ("finish reason", observe_finish),
    ("usage", observe_usage),
    ("call ids", observe_ids),
)
"""What is looked at in every reply. None: it says nothing about this."""


def _broken(answer: Answer) -> list[Wrong]:
    return [] if answer.fine else [("server_error", f"status {answer.arrival.status}: {_message(answer)}")]


def _message(answer: Answer) -> str:
    return answer.arrival.error or (answer.failed.message if answer.failed is not None else "")


def _left_over(auditor: Auditor, answer: Answer, *, calls: bool = False) -> list[Wrong]:
    """Markers that are left in the answer: read again by the model's format, it has a thought or a call."""
    message = auditor.read_again(answer.text, calls=calls)
    detail = f"the answer is {answer.text[:200]!r}"
    if message.thinking or any(notice.code == "stray_close" for notice in message.notices):
        return [("thought_in_text" if message.thinking else "marker_in_text", detail)]
    if calls and message.tool_calls:
        return [("call_in_text", detail)]
    return []


def _history(auditor: Auditor, thought: str) -> list[RequestTurn]:
    """A conversation in the middle of a tool call, with the thought before it or without."""
    identity = "call_audit_1" if auditor.api.ids else ""
    thinking = (ThinkingPiece(thought),) if thought else ()
    call = CallPiece(TOOL, to_json({"city": "Lisbon"}).decode(), identity)
    return [
        RequestTurn("user", (TextPiece(TOOL_QUESTION),)),
        RequestTurn("assistant", (*thinking, call)),
        RequestTurn("tool", (TextPiece('{"sky": "clear", "celsius": 21}'),), call_id=identity, tool_name=TOOL),
    ]
