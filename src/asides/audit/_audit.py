"""An audit of one server: every check for every API, and a report of what was found.

`run_audit` goes through the tables of `_checks.py`, one request after another. An `Auditor` is what a check asks
through: it writes requests in its API, brings prompts to the length of a script, keeps every reply, and makes results
with what was sent, what came and the command that does the same again. Whatever ends an audit early, the report has
all that was found before.

    sender = Sender(read_address("http://127.0.0.1:8080"))
    report = run_audit(sender, "qwen3", ["chat"], manifest=read_manifest("parrots/qwen3"))
    report.count("fail"), report.results[0].curl
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from .._engine.format import THINKING
from ..dialects._framing import to_json
from ..dialects._request import (
    CallPiece,
    Request,
    RequestPiece,
    RequestTurn,
    TextPiece,
    ThinkingOptions,
    ThinkingPiece,
    Tool,
    WriteOptions,
)
from ..dialects._servers import KINDS
from ..errors import UsageError
from ..families import get_format
from ..message import Message
from ..policies import Policies
from ..reading import Reading
from ._apis import APIS, AuditedApi, Wrong
from ._checks import OBSERVED, QUESTION, SCRIPT_COST, SCRIPTED, TOOLS, UNSCRIPTED, Check
from ._judge import reference_of
from ._manifest import Manifest, ParrotScript
from ._verdicts import MOST_SHOWN, RESULTS, CheckResult, Result
from ._wire import Answer, AnsweredCall, Arrival, AuditStopped, Sender, decode, read_answer

MOST_TOKENS = 256
"""Tokens of a reply."""
BEGINNING = "Go"
"""The user's message that a filler follows."""
UNSCRIPTED_COST = 36
"""Requests of the checks beside the scripts, for one API."""
NOT_SERVED = (404, 405, 501)
Thoughts = ThinkingOptions()


class NotServedError(Exception):
    """The server has no such API."""


class AuditReport(msgspec.Struct, kw_only=True):
    """What an audit found."""

    url: str
    model: str
    apis: list[str]
    script: str
    """The name of the parrot; empty where any model was asked."""
    results: list[CheckResult] = []
    requests: int = 0
    """How many were sent."""
    stopped: str = ""
    """Why it ended early."""

    def count(self, result: Result) -> int:
        """How many results of a kind there are."""
        return sum(each.result == result for each in self.results)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        counts = {kind: self.count(kind) for kind in RESULTS}
        return fields | {"counts": counts, "results": [each.to_dict() for each in self.results]}


class Auditor:
    """Asks a server in one API."""

    def __init__(self, sender: Sender, api: AuditedApi, model: str, manifest: Manifest | None) -> None:
        self.sender: Sender = sender
        self.api: AuditedApi = api
        self.scripts: list[ParrotScript] = manifest.scripts if manifest is not None else []
        self.answers: list[Answer] = []
        """Every reply, but those that were provoked to be errors."""
        self.cut_bodies: list[dict[str, Any]] = []
        """The requests whose replies were meant to be cut."""
        self.ids: set[str] = set()
        """The ids of calls so far."""
        self._model = model
        self._manifest = manifest
        self._switch = Reading.of(model, format=manifest.format if manifest is not None else None).switch
        self._lengths: dict[bytes, int] = {}
        self._fillers: dict[str, int] = {}

    # Asking.

    def ask(self, text: str, **choices: Any) -> Answer:
        """Ask one question; the choices are those of `ask_turns`."""
        return self.ask_turns([RequestTurn("user", (TextPiece(text),))], **choices)

    def ask_turns(
        self,
        turns: Sequence[RequestTurn],
        *,
        streamed: bool = False,
        tools: Sequence[dict[str, Any]] | None = None,
        thinking: ThinkingOptions = Thoughts,
        most: int = MOST_TOKENS,
    ) -> Answer:
        """Ask for a reply to a conversation."""
        body = self.write(turns, streamed=streamed, tools=tools, thinking=thinking, most=most)
        if most < MOST_TOKENS:
            self.cut_bodies.append(body)
        answer = self._answer(body, self.sender.post(self._path(), body), streamed=streamed)
        if not self.answers and answer.arrival.status in NOT_SERVED:
            raise NotServedError(f"status {answer.arrival.status}: {answer.failed.message if answer.failed else ''}")
        self.answers.append(answer)
        return answer

    def write(
        self,
        turns: Sequence[RequestTurn],
        *,
        streamed: bool,
        tools: Sequence[dict[str, Any]] | None,
        thinking: ThinkingOptions,
        most: int,
    ) -> dict[str, Any]:
        """The body of a request."""
        functions = [each["function"] for each in tools or ()]
        request = Request(
            dialect="",
            model=self._model,
            turns=tuple(turns),
            tools=tuple(
                Tool(each["name"], each.get("description") or "", each.get("parameters") or {}) for each in functions
            ),
            stream=streamed,
            include_usage=streamed,
            max_tokens=most,
            sampling={"temperature": 0},
            thinking=thinking,
        )
        field = next((answer.field for answer in self.answers if answer.field), "reasoning_content")
        switch = self._switch if thinking.think is not None else None
        return self.api.dialect.write_request(request, WriteOptions(field=field, switch=switch))

    def ask_wrongly(self, *, streamed: bool) -> Answer:
        """Send a request whose messages are a number."""
        turns = [RequestTurn("user", (TextPiece(QUESTION),))]
        body = self.write(turns, streamed=streamed, tools=None, thinking=Thoughts, most=MOST_TOKENS)
        for name in ("messages", "input"):
            if name in body:
                body[name] = 7
        return self._answer(body, self.sender.post(self._path(), body), streamed=streamed)

    def error_is_shaped(self, answer: Answer) -> bool:
        """Whether an error's body has the API's shape."""
        found = decode(answer.arrival.data)
        return isinstance(found, dict) and self.api.error(found)

    def ask_long(self) -> Answer | str:
        """The longest reply that can be had, streamed."""
        if not self.scripts:
            return self.ask("Count from 1 to 200, in words.", streamed=True)
        return self.play(max(self._sayable(), key=lambda each: len(each.ids)), streamed=True)

    def ask_cut(self, most: int, *, streamed: bool) -> Answer | str:
        """A reply that is cut after a few tokens."""
        if not self.scripts:
            return self.ask(QUESTION, streamed=streamed, most=most)
        long = next((each for each in self._sayable() if len(each.ids) > 2 * most), None)
        return "too_short" if long is None else self.play(long, streamed=streamed, most=most)

    def leave(self, whole: Answer) -> Answer:
        """Send the same request again, and leave in the middle of its reply."""
        arrival = self.sender.post(self._path(), whole.body, leave=lambda data: data.count(b"\n") >= 4)
        return self._answer(whole.body, arrival, streamed=True)

    def _path(self) -> str:
        return self.api.dialect.upstream_path(Request(dialect="", model=self._model))

    def _answer(self, body: dict[str, Any], arrival: Arrival, *, streamed: bool) -> Answer:
        return read_answer(self.api.dialect, body, arrival, streamed=streamed)

    # Scripts.

    def length(self, text: str, **choices: Any) -> int | None:
        """The tokens of a prompt, as the server counts them: asked for with a reply of one token."""
        return self._length([RequestTurn("user", (TextPiece(text),))], **choices)

    def _length(self, turns: Sequence[RequestTurn], **choices: Any) -> int | None:
        key = to_json([msgspec.to_builtins(turns), {name: msgspec.to_builtins(each) for name, each in choices.items()}])
        if key not in self._lengths:
            answer = self.ask_turns(turns, most=1, **choices)
            if answer.usage is None or not answer.usage.input_tokens:
                return None
            self._lengths[key] = answer.usage.input_tokens
        return self._lengths[key]

    def _sayable(self) -> list[ParrotScript]:
        return [script for script in self.scripts if script.ended == "stop" and len(script.ids) < MOST_TOKENS]

    def play(self, script: ParrotScript, *, streamed: bool = False, most: int = MOST_TOKENS) -> Answer | str:
        """The reply to a prompt that is as long as the script wants; a code where that cannot be had."""
        most = min(most, len(script.ids)) if script.ended == "length" else most
        if script.ended == "stop" and len(script.ids) >= MOST_TOKENS:
            return "too_long"
        return self._play([RequestTurn("user", (TextPiece(BEGINNING),))], script, script.tools, streamed, most)

    def play_after(
        self, turns: Sequence[RequestTurn], tools: Sequence[dict[str, Any]]
    ) -> tuple[ParrotScript, Answer] | str:
        """A script after a conversation, whose last message is filled up; one with a call where there is one."""
        base = self._length(turns, tools=tools)
        if base is None:
            return "no_usage"
        fitting = [each for each in self._sayable() if each.position > base and each.tools == tools]
        fitting.sort(key=lambda each: not reference_of(each).calls)
        if not fitting:
            return "no_exact_length"
        answer = self._play(turns, fitting[0], tools, streamed=False, most=MOST_TOKENS)
        return answer if isinstance(answer, str) else (fitting[0], answer)

    def _play(
        self,
        turns: Sequence[RequestTurn],
        script: ParrotScript,
        tools: Sequence[dict[str, Any]] | None,
        streamed: bool,
        most: int,
    ) -> Answer | str:
        assert self._manifest is not None  # scripts are the manifest's
        # The length of the prompt before it is filled depends on the conversation and on the tools alone.
        base = self._length(turns, tools=tools)
        if base is None:
            return "no_usage"
        key = f"{len(turns)} {script.position} {tools}"
        for _ in range(2):
            count = self._fillers.get(key, script.position - base)
            if count < 0:
                return "no_exact_length"
            answer = self.ask_turns(
                _filled(turns, self._manifest.filler * count), streamed=streamed, tools=tools, most=most
            )
            if not answer.fine or answer.usage is None or not answer.usage.input_tokens:
                # A stream may count nothing; its prompt is that of the whole reply before it.
                return answer if key in self._fillers or not answer.fine else "no_usage"
            if answer.usage.input_tokens == script.position:
                self._fillers[key] = count
                return answer
            self._fillers[key] = count + script.position - answer.usage.input_tokens
        del self._fillers[key]
        return "no_exact_length"

    def turns_after(self, answer: Answer, script: ParrotScript) -> list[RequestTurn]:
        """The conversation after a reply with calls, each answered."""
        thinking = ThinkingPiece(answer.thinking, answer.signature, answer.details)
        calls = [call for call in answer.calls if call.runnable]
        pieces: list[RequestPiece] = [thinking] if answer.thinking else []
        pieces += [TextPiece(answer.text)] if answer.text.strip() else []
        pieces += [CallPiece(call.name, call.arguments, call.id) for call in calls]
        return [
            RequestTurn("user", (TextPiece(BEGINNING),)),
            RequestTurn("assistant", tuple(pieces)),
            *(RequestTurn("tool", (TextPiece("done"),), call_id=call.id, tool_name=call.name) for call in calls),
        ]

    def is_written(self, call: AnsweredCall) -> bool:
        """Whether the id of a call is the model's own: it may come again with the same words."""
        return call.name in call.id or any(call.id in script.raw for script in self.scripts)

    # Results.

    def read_again(self, text: str, *, calls: bool) -> Message:
        """What the model's format finds in an answer that should hold nothing of it."""
        policies = Policies(start="text", calls=calls, tools=TOOLS if calls else None)
        return Reading.of(self._model, policies=policies).parse(text)

    def result(
        self, check: str, how: str, result: Result, found: Sequence[Wrong], answer: Answer | None = None
    ) -> CheckResult:
        """A result; one that would pass fails where something was found."""
        code, detail = found[0] if found else ("", "")
        return CheckResult(
            check=check,
            api=self.api.name,
            how=how,
            result="fail" if found and result == "pass" else result,
            code=code,
            detail=detail,
            also=tuple(dict.fromkeys(each for each, _ in found if each != code)),
            sent=answer.body if answer is not None else None,
            came=_shown(answer) if answer is not None else "",
            curl=self.sender.curl(self._path(), answer.body) if answer is not None else "",
        )

    def unsure(self, check: str, how: str, code: str, answer: Answer | None = None) -> CheckResult:
        """A result that says nothing, and why."""
        detail = answer.failed.message if answer is not None and answer.failed is not None else ""
        return self.result(check, how, "inconclusive", [(code, detail)], answer)

    def observed(self) -> Iterator[CheckResult]:
        """What all replies together show, whole ones and streamed ones apart."""
        for name, observe in OBSERVED:
            self.ids.clear()
            for how in ("whole", "streamed"):
                seen = [(each, observe(self, each)) for each in self.answers if each.streamed == (how == "streamed")]
                judged = [(answer, found) for answer, found in seen if found is not None]
                wrong = next(((answer, found) for answer, found in judged if found), None)
                if wrong is not None:
                    yield self.result(name, how, "pass", wrong[1], wrong[0])
                elif judged:
                    yield self.result(name, how, "pass", [], judged[0][0])
                else:
                    code = {"usage": "no_usage", "call ids": "no_call"}.get(name, "no_answer")
                    yield self.unsure(name, how, code)


def _filled(turns: Sequence[RequestTurn], filler: str) -> list[RequestTurn]:
    *before, last = turns
    return [*before, msgspec.structs.replace(last, pieces=(TextPiece(last.text + filler),))]


def _shown(answer: Answer) -> str:
    """How a reply begins; no header but the content type."""
    arrival = answer.arrival
    head = f"{arrival.status} {arrival.media_type}\n" if arrival.status else ""
    return head + (arrival.error or arrival.data[: 4 * MOST_SHOWN].decode("utf-8", "replace")[:MOST_SHOWN])


def first_model(sender: Sender) -> str:
    """The first model that the server lists."""
    for kind in KINDS.values():
        arrival = sender.get(kind.models_path)
        listed = kind.read_models(decode(arrival.data)) if arrival.status == 200 else None
        if listed:
            return listed[0].id
        if arrival.error:
            raise UsageError(arrival.error)
        if arrival.status == 503:  # llama.cpp, while it loads
            raise UsageError(f"{sender.address} is not ready (it answered 503); try again when it has loaded its model")
    answered = f" (it answered {arrival.status})" if arrival.status != 200 else ""
    raise UsageError(f"{sender.address} lists no models{answered}; name one with --model")


def planned(apis: Iterable[str], manifest: Manifest | None, sender: Sender, model: str) -> int:
    """How many requests an audit sends at most."""
    auditors = [Auditor(sender, APIS[name], model, manifest) for name in apis]
    return sum(check.cost(auditor) for auditor in auditors for check in _table(manifest))


def fitting(manifest: Manifest, apis: Sequence[str], requests: int) -> Manifest:
    """The manifest with as many scripts, from all over it, as so many requests can ask for in each API.

    Scripts that begin in a thought are for prompts that open one; which prompt a server makes is not in the manifest.
    """
    opens = get_format(manifest.format).start == THINKING
    scripts = [each for each in manifest.scripts if opens or each.start != "thinking"]
    room = max(1, (requests // len(apis) - UNSCRIPTED_COST) // SCRIPT_COST)
    step = max(1.0, len(scripts) / room)
    chosen = [scripts[int(number * step)] for number in range(min(room, len(scripts)))]
    return msgspec.structs.replace(manifest, scripts=chosen)


def _table(manifest: Manifest | None) -> tuple[Check, ...]:
    return UNSCRIPTED if manifest is None else SCRIPTED


def run_audit(
    sender: Sender,
    model: str,
    apis: Sequence[str],
    manifest: Manifest | None = None,
    show: Callable[[int, str], object] = lambda requests, label: None,
) -> AuditReport:
    """Run every check for every API. `show` is called with the requests so far and what comes next."""
    url = str(sender.address)
    report = AuditReport(url=url, model=model, apis=list(apis), script=manifest.name if manifest is not None else "")
    for name in apis:
        auditor = Auditor(sender, APIS[name], model, manifest)
        for check in _table(manifest):
            if report.stopped:
                report.results.append(auditor.unsure(check.name, "", "not_run"))
                continue
            show(sender.sent, f"{name}: {check.name}")
            try:
                for result in check.run(auditor):
                    report.results.append(result)
                    show(sender.sent, f"{name}: {check.name}")
            except AuditStopped as stop:
                report.stopped = str(stop)
                report.results.append(auditor.unsure(check.name, "", "not_run"))
            except NotServedError as reason:
                report.results.append(auditor.result("served", "", "inconclusive", [("not_served", str(reason))]))
                break
        if auditor.answers:
            report.results += auditor.observed()
    report.requests = sender.sent
    return report
