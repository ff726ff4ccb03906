"""Audits of a scripted server: one that is right passes, and each way to be wrong is found by the check for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import repeat
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from asides import UsageError, dialects
from asides.audit._audit import AuditReport, first_model, fitting, planned, run_audit
from asides.audit._judge import judge_script
from asides.audit._manifest import ParrotScript
from asides.audit._reports import to_html, to_junit
from asides.audit._verdicts import CODES, GROUPS
from asides.audit._wire import MOST_BYTES, Answer, Arrival, AuditLimits, Sender, needs_consent
from asides.client._http import read_address
from tests.audit.wrong_server import CALL, SCRIPTS, ParrotServer, manifest, script
from tests.gateway.speech import Speech
from tests.gateway.upstream import JSON, OPENAI, SSE, Asked, Close, Hang, Reply, Upstream, json_reply, upstream

FAST = AuditLimits(per_second=1e9, idle=5.0, seconds=20.0)


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    """A server, made wrong by each test anew."""
    with upstream() as running:
        yield running


def audit(server: Upstream, limits: AuditLimits = FAST, *, scripted: bool = True, key: str = "") -> AuditReport:
    """Audit chat completions."""
    sender = Sender(read_address(server.url), key, limits)
    return run_audit(sender, "m", ["chat"], manifest() if scripted else None)


def codes(report: AuditReport, *, result: str = "fail") -> set[tuple[str, str, str]]:
    """What was found: case, whole or streamed, code."""
    return {(each.check, each.how, each.code) for each in report.results if each.result == result}


def test_a_server_that_is_right_passes(server: Upstream) -> None:
    """Nothing is wrong, and what cannot be judged is said."""
    ParrotServer(server)
    report = audit(server)
    assert not codes(report)
    assert codes(report, result="inconclusive") == {("thinking off", "", "no_switch"), ("disconnect", "", "not_shown")}
    assert codes(report, result="differs") == {("reasoning tokens", "", "reasoning_not_counted")}
    assert report.count("pass") == 27
    assert report.requests <= planned(["chat"], manifest(), Sender(read_address(server.url)), "m")


def only(name: str, **changes: Any) -> Callable[[ParrotScript, Speech], Speech]:
    """A change of what is sent for one script."""
    return lambda said, speech: replace(speech, **changes) if said.name == name else speech


WRONG_WORDS = {
    "thought_in_text": ("thought", only("thought", words="two and two is four It is four.", thought="")),
    "text_missing": ("plain", only("plain", words="It is four")),
    "text_in_thought": ("plain", only("plain", words="", thought="It is four, and that is all.")),
    "thought_missing": ("thought", only("thought", thought="")),
    "call_missing": ("call", only("call", calls=())),
    "call_in_text": ("call", only("call", words=CALL, calls=())),
    "call_changed": ("call", only("call", calls=(("add", '{"a": 2}'),))),
    "call_not_said": ("draft", only("draft", calls=(("add", '{"a": 1}'),))),
    "marker_in_text": ("thought", only("thought", words="It is four.</think>")),
    "stop_in_output": ("plain", only("plain", words="It is four, and that is all.<|im_end|>")),
    "text_added": ("plain", only("plain", words="It is four, and that is all. Anything else?")),
}


@pytest.mark.parametrize("code", WRONG_WORDS)
def test_wrong_words_are_found(server: Upstream, code: str) -> None:
    """Each is found in its script, whole and streamed, and nowhere else."""
    name, wrong = WRONG_WORDS[code]
    ParrotServer(server, wrong=wrong)
    found = codes(audit(server))
    by_script = {each for each in found if each[0] in {script.name for script in SCRIPTS}}
    assert {each[:2] for each in by_script} == {(name, "whole"), (name, "streamed")}
    worst = {each[2] for each in by_script}
    all_codes = {code for each in audit(server).results if each.check == name for code in (each.code, *each.also)}
    assert code in all_codes
    assert {CODES[each].group for each in worst} <= set(GROUPS[: GROUPS.index(CODES[code].group) + 1])


def replaced(old: bytes, new: bytes, *, streamed: bool | None = None) -> Callable[[Asked, bytes], bytes]:
    """A change of the bytes of all replies, or of those that are streamed or not."""

    def patch(asked: Asked, data: bytes) -> bytes:
        wanted = streamed is None or bool(asked.body.get("stream")) == streamed
        return data.replace(old, new) if wanted else data

    return patch


WRONG_BYTES = {
    "field_wrong": (replaced(b'"object": "chat.completion"', b'"object": "reply"'), ("shape", "whole")),
    "frame_unreadable": (replaced(b'data: {"id"', b"data: {'id'", streamed=True), ("transport", "streamed")),
    "no_end": (replaced(b"data: [DONE]\n\n", b"", streamed=True), ("shape", "streamed")),
    "finish_wrong": (replaced(b'"tool_calls"}', b'"stop"}'), ("finish reason", "whole")),
    "id_missing": (lambda asked, data: _without_ids(data), ("call ids", "whole")),
    "usage_wrong": (
        lambda asked, data: data.replace(b'"completion_tokens": ', b'"completion_tokens": 0, "was": '),
        ("usage", "whole"),
    ),
    "error_in_stream": (
        replaced(b"data: [DONE]", b'data: {"error": {"message": "boom"}}\n\ndata: [DONE]', streamed=True),
        ("transport", "streamed"),
    ),
}


def _without_ids(data: bytes) -> bytes:
    import re

    return re.sub(rb'"id": "call[^"]*", ', b"", data)


@pytest.mark.parametrize("code", WRONG_BYTES)
def test_wrong_shapes_are_found(server: Upstream, code: str) -> None:
    """Each is found by what looks at all replies."""
    patch, where = WRONG_BYTES[code]
    ParrotServer(server, patch=patch)
    assert (*where, code) in codes(audit(server))


def test_other_ways_to_be_wrong(server: Upstream) -> None:
    """Ids that come twice, a thought that is dropped, a cut that is not said, errors in place of replies."""
    ParrotServer(server, wrong=lambda said, speech: replace(speech, ids="call_always"))
    assert ("call ids", "whole", "id_twice") in codes(audit(server))
    ParrotServer(server, puts_back=False)
    assert codes(audit(server)) == {("thought put back", "", "thought_not_put_back")}
    ParrotServer(server, wrong=lambda said, speech: replace(speech, reason="eos"))
    found = codes(audit(server))
    assert {("cut", "whole", "finish_wrong"), ("finish reason", "streamed", "finish_wrong")} <= found
    ParrotServer(server, status=lambda said: 500 if said is not None and said.name == "call" else 200)
    assert ("call", "whole", "server_error") in codes(audit(server))


def test_a_second_step_that_is_refused(server: Upstream) -> None:
    """A server that takes no results of tools fails both checks of a second step."""
    parrot = ParrotServer(server)

    def refuse(asked: Asked) -> Reply:
        turns = asked.body["messages"]
        if isinstance(turns, list) and turns[-1]["role"] == "tool":
            return json_reply({"error": {"message": "no tools"}}, 400)
        parrot.reply = None
        try:
            return parrot.answer(asked)
        finally:
            parrot.reply = refuse

    parrot.reply = refuse
    found = codes(audit(server))
    assert ("second step", "", "second_step_failed") in found


def test_refusals(server: Upstream) -> None:
    """A wrong request that is answered, and an error that has no shape."""
    parrot = ParrotServer(server)
    ordinary = parrot.answer

    def with_error(reply: Reply) -> Callable[[Asked], Reply]:
        return lambda asked: ordinary(asked) if isinstance(asked.body["messages"], list) else reply

    server.send(with_error(Reply([b"no"], 400, JSON, whole=True)), "/v1/chat/completions")
    assert {("refusal", "whole", "error_shape"), ("refusal", "streamed", "error_shape")} == codes(audit(server))
    server.send(with_error(json_reply({"ok": True})), "/v1/chat/completions")
    assert {("refusal", "whole", "error_status"), ("refusal", "streamed", "error_status")} == codes(audit(server))


def test_a_quoted_marker_that_acts_differs(server: Upstream) -> None:
    """A server for which every marker acts makes another choice; it is not wrong."""
    ParrotServer(server, wrong=only("quoted", words='" here, and go on with the words.', thought='I say "'))
    report = audit(server)
    assert {("quoted", "whole", "marker_reading"), ("quoted", "streamed", "marker_reading")} <= codes(
        report, result="differs"
    )
    assert not codes(report)


@pytest.mark.parametrize("start", ["header", "stream"])
def test_a_script_that_begins_in_a_header_is_judged(start: str) -> None:
    """Those starts are the format's own, which no policy names; a wrong reply to such a script is told as any other."""
    begun = msgspec.structs.replace(SCRIPTS[0], start=start)
    answer = Answer(
        api=dialects.get("openai_chat"), streamed=False, body={}, arrival=Arrival(status=200), text="It is", calls=[]
    )
    assert [code for code, _ in judge_script(begun, answer)] == ["text_missing"]


def test_a_script_that_the_server_does_not_let_the_model_say(server: Upstream) -> None:
    """A call that a grammar made of a broken one is counted for nobody."""
    ParrotServer(
        server,
        wrong=only("draft", calls=(("add", '{"a": 7}'),)),
        patch=lambda asked, data: data.replace(b'"completion_tokens": ', b'"completion_tokens": 9'),
    )
    assert ("draft", "whole", "not_sayable") in codes(audit(server), result="inconclusive")
    # A grammar that allows nothing after a call, or a stop of the server's own: the rest was never said.
    ParrotServer(
        server,
        wrong=only("plain", words="It is four"),
        patch=lambda asked, data: data.replace(b'"completion_tokens": 10', b'"completion_tokens": 4'),
    )
    assert ("plain", "whole", "not_sayable") in codes(audit(server), result="inconclusive")


def test_without_counts_nothing_of_scripts_is_judged(server: Upstream) -> None:
    """No usage: every script is inconclusive, and says why."""
    ParrotServer(server, counts=False)
    report = audit(server)
    unsure = {each.check: each.code for each in report.results if each.result == "inconclusive"}
    assert {unsure[script.name] for script in SCRIPTS} == {"no_usage"}
    assert not codes(report)


def test_a_prompt_that_cannot_be_filled(server: Upstream) -> None:
    """Prompts longer than a script's position, and lengths that are never met, are inconclusive."""
    parrot = ParrotServer(server)
    parrot._length = lambda body: 700  # type: ignore[method-assign] # a server that counts something else
    unsure = codes(audit(server), result="inconclusive")
    assert ("plain", "whole", "no_exact_length") in unsure


def say(server: Upstream, words: str, **choices: Any) -> None:
    """Let the model say this to every request that has messages."""
    server.say(words, **choices)
    path = "/v1/chat/completions"
    refusal = json_reply({"error": {"message": "messages must be a list"}}, 400)
    speak = OPENAI["POST", path]
    server.send(lambda asked: speak(server, asked) if isinstance(asked.body["messages"], list) else refusal, path)


def test_any_model(server: Upstream) -> None:
    """Without scripts: markers in the answer, calls of tools that nobody offered, thinking that is not off."""
    server.forget()
    server.replies.clear()
    say(server, "<think>hm, four</think>It is 4.")
    found = codes(audit(server, scripted=False))
    assert {("answer", "whole", "thought_in_text"), ("answer", "streamed", "thought_in_text")} <= found
    say(server, "It is 4.", thought="hm, four", calls=(("rm", "{}"),))
    found = codes(audit(server, scripted=False))
    assert {("call", "whole", "call_not_said"), ("thinking off", "", "thinking_not_off")} <= found
    say(server, CALL.replace("add", "get_weather"))
    assert ("call", "whole", "call_in_text") in codes(audit(server, scripted=False))


def test_leaving_is_judged_where_the_server_shows_it(server: Upstream) -> None:
    """A server whose counter goes on after the client has left is wrong; one that stops is right."""
    server.forget()
    server.replies.clear()
    say(server, " ".join(["one"] * 60), usage=(11, 60))
    state = {"written": 0, "per": 60}

    def metrics(asked: Asked) -> Reply:
        state["written"] += state["per"]
        page = (
            f'# TYPE x gauge\nvllm:num_requests_running{{m="m"}} 0\nvllm:generation_tokens_total {state["written"]}\n'
        )
        return Reply([page.encode()], headers={"Content-Type": "text/plain"}, whole=True)

    server.send(metrics, "/metrics")
    assert ("disconnect", "", "goes_on") in codes(audit(server, scripted=False))
    state["per"] = 3
    report = audit(server, scripted=False)
    assert ("disconnect", "", "") in codes(report, result="pass")


HOSTILE: dict[str, Reply | Callable[[Asked], Reply]] = {
    "hangs": Reply(before=[Hang()]),
    "hangs in the middle": Reply([b"data: {", Hang()]),
    "garbage": Reply([b"\x00\xff\xfe garbage \x1b[2J" * 100], headers=SSE),
    "garbage as JSON": Reply([b"\x00\xff\xfe {" * 100], headers=JSON, whole=True),
    "redirects": Reply([], 302, {"Location": "http://192.0.2.1/"}, whole=True),
    "closes": Reply([b"data: {", Close()]),
    "closes at once": Reply(before=[Close()]),
    "large": lambda asked: Reply(repeat(b"data: " + b"x" * 1_048_576 + b"\n\n", 100), headers=SSE),
    "never ends": lambda asked: Reply(repeat(b": wait\n\n"), headers=SSE),
    "wrong JSON": json_reply({"choices": {"index": [[]], "message": 7}, "usage": [1], "id": {}, "object": None}),
    "numbers": json_reply({"choices": [7, None, {"message": {"content": 1e308, "tool_calls": [None, 3]}}], "usage": 3}),
    "deep": Reply([b'{"choices": ' + b"[" * 100_000], headers=JSON, whole=True),
    "web page": Reply([b"<html><title>hello</title>"], headers={"Content-Type": "text/html"}, whole=True),
    "502": Reply([b"bad gateway"], 502, {"Content-Type": "text/plain"}, whole=True),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("scripted", [True, False])
def test_hostile_servers(server: Upstream, kind: str, scripted: bool) -> None:
    """Whatever a server sends, the audit ends with a report, and nothing passes for it but silence."""
    server.forget()
    server.replies.clear()
    server.send(HOSTILE[kind], "/v1/chat/completions")
    limits = AuditLimits(per_second=1e9, idle=0.2, seconds=0.4, requests=6)
    report = audit(server, limits, scripted=scripted)
    assert report.requests <= 6
    assert not {each.check for each in report.results if each.result == "pass"} & {"answer", "plain", "shape"}
    ElementTree.fromstring(to_junit(report))
    assert "<script" not in to_html(report)
    json.dumps(report.to_dict())


def test_no_more_is_read_than_a_reply_can_be(server: Upstream) -> None:
    """100 MB are not read: the connection is closed after `MOST_BYTES`, and that is a failure."""
    server.forget()
    server.replies.clear()
    server.send(HOSTILE["large"], "/v1/chat/completions")
    report = audit(server, scripted=False)
    assert ("transport", "streamed", "too_large") in codes(report)
    # The buffers of the two sockets take some megabytes beside what was read.
    assert server.questions[0].sent < 16 * MOST_BYTES


def test_a_server_that_is_still_loading(server: Upstream) -> None:
    """llama.cpp answers 503 until it has loaded the model; that is no server without models."""
    server.forget()
    server.replies.clear()
    server.send(json_reply({"error": {"message": "Loading model"}}, 503), "/v1/models")
    with pytest.raises(UsageError, match="is not ready"):
        first_model(Sender(read_address(server.url), "", FAST))


def test_five_errors_in_a_row_end_it(server: Upstream) -> None:
    """It stops, and says which checks were not run."""
    server.forget()
    server.replies.clear()
    server.send(HOSTILE["502"], "/v1/chat/completions")
    report = audit(server, scripted=False)
    assert report.requests == 5
    assert "5 requests in a row" in report.stopped
    assert ("refusal", "", "not_run") in codes(report, result="inconclusive")


def test_the_limits_are_kept(server: Upstream) -> None:
    """So many requests at most, and so many a second: the clock and the sleep are the test's own."""
    ParrotServer(server)
    now = [0.0]
    sender = Sender(
        read_address(server.url),
        limits=AuditLimits(requests=9),
        clock=lambda: now[0],
        sleep=lambda seconds: now.__setitem__(0, now[0] + seconds),
    )
    report = run_audit(sender, "m", ["chat"], manifest())
    assert report.requests == 9
    assert "--requests" in report.stopped
    assert now[0] == 4.0


def test_scripts_are_chosen_from_all_over() -> None:
    """Where there are more than the requests allow, and none that begins in a thought."""
    many = [script(100 + number, str(number), "abc", [{"text": "abc"}]) for number in range(300)]
    inside = script(900, "inside", "a</think>b", [{"thinking": "a"}, {"text": "b"}], start="thinking")
    chosen = fitting(manifest([*many, inside]), ["chat", "messages"], 400).scripts
    assert len(chosen) == (200 - 36) // 3
    assert int(chosen[-1].name) > 270
    assert len(fitting(manifest(), ["chat"], 1).scripts) == 1


def test_keys_and_headers_are_in_no_report(server: Upstream) -> None:
    """The key is sent, and nowhere written: neither in curl commands nor in what came."""
    key = "sk-very-secret-0123"
    ParrotServer(server, wrong=only("plain", words="no"))
    server.asked.clear()
    report = audit(server, key=key)
    assert all(asked.headers["authorization"] == f"Bearer {key}" for asked in server.questions)
    written = json.dumps(report.to_dict()) + to_junit(report) + to_html(report)
    assert key not in written
    assert "$OPENAI_API_KEY" in written
    assert "asides-audit" not in written


def test_control_characters_act_nowhere(server: Upstream) -> None:
    """What a server says is a picture in XML and on the page."""
    ParrotServer(server, wrong=only("plain", words="\x1b[2J\x00\u202e\ufffe <script>alert(1)</script> ]]>"))
    report = audit(server)
    ElementTree.fromstring(to_junit(report))
    for written in (to_junit(report), to_html(report)):
        assert not {"\x1b", "\x00", "\u202e"} & set(written)
        assert "<script>" not in written


@pytest.mark.parametrize("url", ["http://93.184.215.14", "http://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:80"])
def test_public_addresses_need_consent(url: str) -> None:
    """An address outside private networks is named by the person who means it."""
    assert needs_consent(read_address(url))


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[::1]:1", "http://10.1.2.3", "http://192.168.0.7:8000"])
def test_private_addresses_do_not(url: str) -> None:
    """Loopback and private networks are audited without a word."""
    assert not needs_consent(read_address(url))


def test_a_curl_command_does_the_same_again(server: Upstream) -> None:
    """The printed command sends the same body to the same address."""
    import shlex

    ParrotServer(server)
    report = audit(server)
    result = next(each for each in report.results if each.check == "call")
    words = shlex.split(result.curl)
    assert words[:3] == ["curl", "-sN", f"{server.url}/v1/chat/completions"]
    assert json.loads(words[-1]) == result.sent


def test_a_script_that_was_cut(server: Upstream) -> None:
    """A script that ends by its length asks for as many tokens as it has."""
    cut = script(100, "cut short", "It is four, and that", [{"text": "It is four, and that"}], ended="length")
    asked: list[int] = []

    def noted(each: Asked, data: bytes) -> bytes:
        asked.append(each.body["max_tokens"])
        return data

    parrot = ParrotServer(server, patch=noted)
    parrot.wrong = lambda said, speech: replace(speech, words="It is four, and that", reason="length")
    report = run_audit(Sender(read_address(server.url), limits=FAST), "m", ["chat"], manifest([cut]))
    assert len(cut.ids) in asked
    assert ("cut short", "whole", "") in codes(report, result="pass")
