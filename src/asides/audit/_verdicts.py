"""Verdicts of an audit: what was checked, what came, why that is wrong and whom it hurts. Values only.

Every code has one row in `CODES`. The words of a row say why the thing is wrong whichever server did it; `detail` of a
verdict says what was seen this time. A failure belongs to a group, and groups come in the order of the harm they do.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

Result = Literal["pass", "fail", "differs", "inconclusive"]
RESULTS: tuple[Result, ...] = ("fail", "differs", "inconclusive", "pass")
Group = Literal["leaked thought", "lost call", "runnable wrong call", "lost text", "wrong shape", ""]
GROUPS: tuple[Group, ...] = ("leaked thought", "lost call", "runnable wrong call", "lost text", "wrong shape")
"""By severity."""


class CodeMeaning(NamedTuple):
    """What a code says."""

    group: Group
    """Empty where it is no failure."""
    why: str
    """Why it is wrong; of a verdict that is no failure, what it means."""
    hurts: str = ""
    """Who is hurt by it."""


CODES: dict[str, CodeMeaning] = {
    # Failures.
    "thought_in_text": CodeMeaning(
        "leaked thought",
        "words of the thought are in the answer",
        "users, who are shown what was not meant for them; every program that reads the answer",
    ),
    "marker_in_text": CodeMeaning(
        "leaked thought",
        "a marker of a thought is in the answer",
        "users, who see tags; programs that read the answer as data",
    ),
    "thinking_not_off": CodeMeaning(
        "leaked thought",
        "a thought came though thinking was turned off",
        "who pays for the tokens and waits for them; clients that show the answer alone",
    ),
    "call_missing": CodeMeaning(
        "lost call", "a call that the model made is not among the calls of the reply", "agents, which stop working"
    ),
    "call_in_text": CodeMeaning(
        "lost call", "a call was left in the answer as text", "agents, which stop working; users, who see markup"
    ),
    "second_step_failed": CodeMeaning(
        "lost call",
        "the request with the call's result was refused or failed",
        "agents, which cannot go on after a call",
    ),
    "call_not_said": CodeMeaning(
        "runnable wrong call",
        "a call may be run that the model did not make: a draft, a broken or a quoted one",
        "whoever the tool acts upon",
    ),
    "call_changed": CodeMeaning(
        "runnable wrong call",
        "a call may be run with a name or arguments that the model did not write",
        "whoever the tool acts upon",
    ),
    "text_missing": CodeMeaning("lost text", "words of the answer are missing", "users, who get half an answer"),
    "text_in_thought": CodeMeaning(
        "lost text", "the answer, or a part of it, was sent as a thought", "users, who are shown no answer"
    ),
    "thought_missing": CodeMeaning(
        "lost text", "words of the thought are missing", "agents whose next step needs it; who wants to see why"
    ),
    "thought_not_put_back": CodeMeaning(
        "lost text",
        "the thought before a call, sent back with the call's result, is not in the prompt",
        "agents: the model has forgotten its plan at each step, and plans again",
    ),
    "server_error": CodeMeaning(
        "lost text",
        "the server answered an ordinary request with an error, and what the model wrote is lost",
        "everyone who made this request",
    ),
    "text_added": CodeMeaning(
        "wrong shape", "the reply has words that the model did not write there", "programs that read the answer"
    ),
    "stop_in_output": CodeMeaning(
        "wrong shape", "the marker that ends the turn is in the reply", "users, who see it; the next turn's prompt"
    ),
    "field_wrong": CodeMeaning(
        "wrong shape", "a field that the API's reference requires is missing or of another type", "typed clients"
    ),
    "frame_unreadable": CodeMeaning(
        "wrong shape", "a frame of the stream is no JSON object", "clients, which end with an exception"
    ),
    "media_type_wrong": CodeMeaning(
        "wrong shape", "the content type is not the API's", "clients that choose their reader by it"
    ),
    "no_end": CodeMeaning(
        "wrong shape",
        "the stream stops without the API's last frame",
        "clients, which cannot tell a whole reply from a broken one",
    ),
    "error_in_stream": CodeMeaning(
        "wrong shape", "the stream of an ordinary request ends with an error", "everyone who made this request"
    ),
    "finish_wrong": CodeMeaning(
        "wrong shape",
        "the reason of the end is not the one that the API has for this end",
        "agents, which look there for whether to run calls; who has to know that an answer was cut",
    ),
    "usage_wrong": CodeMeaning("wrong shape", "the counts of tokens contradict the reply", "who pays by them"),
    "id_missing": CodeMeaning(
        "wrong shape", "a call has no id", "clients that send its result back: it cannot be matched to the call"
    ),
    "id_twice": CodeMeaning(
        "wrong shape",
        "two calls have the same id",
        "clients that send results back: they are matched to the wrong call",
    ),
    "error_status": CodeMeaning(
        "wrong shape", "a request that cannot be honoured was not refused with 400 to 499", "clients that retry"
    ),
    "error_shape": CodeMeaning(
        "wrong shape", "the body of an error has not the API's shape", "clients, which cannot say what was wrong"
    ),
    "goes_on": CodeMeaning(
        "wrong shape",
        "the model goes on writing after its client has left",
        "everyone else on the server; who pays for the machine",
    ),
    "too_large": CodeMeaning("wrong shape", "the reply is larger than 256 tokens can be", "clients' memory"),
    "never_ends": CodeMeaning("wrong shape", "the reply was still coming when its time was over", "waiting clients"),
    # What differs by choice.
    "marker_reading": CodeMeaning(
        "",
        "a marker that the model quotes was taken for one that acts. In ids the two look alike, so this is a choice",
    ),
    "reasoning_not_counted": CodeMeaning("", "tokens of thinking are not counted apart; the field is optional"),
    # What cannot be judged.
    "not_served": CodeMeaning("", "the server does not offer this API"),
    "no_usage": CodeMeaning(
        "", "the server does not say how long the prompt is, so it cannot be made to fit the script"
    ),
    "no_exact_length": CodeMeaning("", "the prompt could not be brought to the script's exact length"),
    "not_sayable": CodeMeaning("", "the server kept the model from saying the script, by a grammar or a stop"),
    "no_answer": CodeMeaning("", "no reply came that could be judged"),
    "no_call": CodeMeaning("", "the model made no call"),
    "no_thought": CodeMeaning("", "the model did not think"),
    "no_switch": CodeMeaning("", "it is not known how thinking of this model is switched off"),
    "not_shown": CodeMeaning("", "the server does not show whether it is still writing (/slots, /metrics)"),
    "too_short": CodeMeaning("", "the reply is too short to leave in its middle"),
    "too_long": CodeMeaning("", "the script is longer than the tokens that an audit asks for"),
    "not_repeatable": CodeMeaning("", "the model answered the same request differently"),
    "not_run": CodeMeaning("", "the audit ended before this"),
}
"""Every code of a verdict, with why it is wrong and whom it hurts."""

MOST_SHOWN = 2000
"""Characters of a reply that a verdict shows."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one case."""

    check: str
    """The name of the check; for a script, its name."""
    api: str
    """The name of the API, as `--api` takes it."""
    how: str = ""
    """`whole` or `streamed`; empty where a check is about neither."""
    result: Result
    code: str = ""
    """A row of `CODES`; empty for a pass."""
    detail: str = ""
    """What was seen."""
    also: tuple[str, ...] = ()
    """Further codes of the same reply."""
    sent: dict[str, Any] | None = None
    """The body of the request."""
    came: str = ""
    """How the reply begins, as it came."""
    curl: str = ""
    """The command that sends the same request."""

    @property
    def group(self) -> Group:
        """The group of a failure."""
        return CODES[self.code].group if self.code else ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it, with the meaning of its code."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        meaning = CODES.get(self.code)
        return fields | ({"group": meaning.group, "why": meaning.why, "hurts": meaning.hurts} if meaning else {})
