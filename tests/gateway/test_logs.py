"""The log: one line for a request, no secrets, no forged lines. Read from real processes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from asides._config import Config, UpstreamSettings
from asides._config.schema import Listen, Log
from asides._gateway.observe import logs

REQUEST: dict[str, Any] = {
    "route": "generate",
    "dialect": "openai_chat",
    "status": 200,
    "seconds": 1.23456,
    "model": "qwen3",
    "upstream": "gpu",
    "request_body": "what was asked",
}
PREPARE = """
import logging, msgspec, sys
from asides._config.schema import Log
from asides._gateway.observe import logs
from asides._gateway.record import RequestRecord
from asides.events import Notice, PartStart, TextDelta
from asides.reply._items import ReplyEvent
given = msgspec.json.decode(sys.stdin.buffer.read())
logs.setup(msgspec.convert(given["log"], Log), secrets=given["secrets"])
record = RequestRecord("req_1", "POST", "/v1/chat/completions")
record.begin_reply(None, collect=True, limit=1000)
for event in (PartStart(0, "text"), TextDelta(0, "what was said"), Notice("stray_close", "odd", 0)):
    record.add(ReplyEvent(0, event))
record.folds[0].first_answer = record.started
record.finish()
for name, value in given["request"].items():
    setattr(record, name, value)
bodies = given["log"].get("bodies", False)
"""


def logged(
    script: str = "logs.log_request(record, bodies=bodies)",
    *,
    request: Mapping[str, Any] | None = None,
    secrets: tuple[str, ...] = (),
    terminal: bool = False,
    **settings: Any,
) -> str:
    """What a process that runs this script writes on standard error, which is a pipe or a terminal.

    The script has a `record` of a request; `request` sets fields of it.
    """
    given = msgspec.json.encode({"log": settings, "secrets": secrets, "request": {**REQUEST, **(request or {})}})
    command = [sys.executable, "-c", PREPARE + script]
    if not terminal:
        done = subprocess.run(command, input=given, capture_output=True, check=True)
        return done.stderr.decode()
    ours, theirs = pty.openpty()
    subprocess.run(command, input=given, stderr=theirs, check=True)
    os.close(theirs)
    read = os.read(ours, 65536).decode()
    os.close(ours)
    return read.replace("\r\n", "\n")


def only_line(text: str) -> dict[str, Any]:
    """The one JSON line that was logged."""
    (line,) = text.splitlines()
    found: dict[str, Any] = msgspec.json.decode(line)
    return found


def test_a_request_is_one_line_of_json_on_a_pipe() -> None:
    """It holds what is known; what is empty or never came is left out; no words of the request or the reply."""
    line = only_line(logged())
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "asides.requests",
        "message": "request",
        "request_id": "req_1",
        "method": "POST",
        "path": "/v1/chat/completions",
        "route": "generate",
        "dialect": "openai_chat",
        "status": 200,
        "seconds": 1.2346,
        "model": "qwen3",
        "upstream": "gpu",
        "first_answer": 0.0,
        "notices": {"stray_close": 1},
    }


def test_a_terminal_is_given_text() -> None:
    """A person reads one line with the status first; `json` asks for JSON there too."""
    (line,) = logged(terminal=True).splitlines()
    assert " info    200 POST /v1/chat/completions 1.2346s request_id=req_1 " in line
    assert "notices=stray_close:1" in line
    assert only_line(logged(terminal=True, form="json"))["status"] == 200
    assert "200 POST" in logged(form="text")


def test_bodies_are_logged_only_where_asked() -> None:
    """`bodies` adds the words, on the same line."""
    assert "what was" not in logged() + logged(form="text")
    line = only_line(logged(bodies=True))
    assert (line["request_body"], line["reply_body"]) == ("what was asked", "[thinking]  [text] what was said")


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_line_can_be_forged(form: str) -> None:
    """Line breaks, escape codes and invisible characters from outside are escaped, in messages and traces too."""
    odd = "a\nb\r\x1b[31m\x85\u2028\u202e\x7f"
    text = logged(request=dict.fromkeys(("model", "path", "error", "request_body"), odd), form=form, bodies=True)
    assert len(text.splitlines()) == 1
    assert not set(text.rstrip("\n")) & set(odd) - set("ab[31m")
    text = logged(f"logging.getLogger('asides.x').warning('%s', {odd!r})", form=form)
    assert len(text.splitlines()) == 1
    text = logged(
        f"try: raise ValueError({odd!r})\nexcept ValueError: logging.getLogger('asides').exception('x')", form=form
    )
    lines = text.splitlines()
    assert len(lines) == 1 or all(line.startswith("    | ") for line in lines[1:])
    assert "\x1b" not in text


def test_values_from_outside_are_shortened() -> None:
    """A model's name of a million characters does not fill the disk."""
    text = logged(request={"model": "m" * 1_000_000, "path": "/" + "p" * 1_000_000})
    assert len(text) < 3000
    assert "(1000000 characters)" in text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer sk-abcdefghijkl", "Authorization: "),
        ("{'x-api-key': 'hunter2hunter2'}", "{'x-api-key': "),
        ('"api_key": "hunter2hunter2", "n": 1', '"n": 1'),
        ("(b'authorization', b'Basic aHVudGVyMg==')", "authorization"),
        ("cannot connect to http://me:hunter2@host/v1", "host/v1"),
        ("GET /x?api-key=hunter2&y=1", "GET /x?api-key="),
        ("the key sk-hunter2hunter2 is wrong", "is wrong"),
        ("password=hunter2", "password="),
        ("configured-key-hunter2", ""),
    ],
)
def test_what_looks_like_a_key_is_hidden(text: str, left: str) -> None:
    """Keys, tokens and passwords go; what stands around them stays."""
    scrubbed = logs.scrub(text, ["configured-key-hunter2"])
    assert "hunter2" not in scrubbed
    assert "abcdefghijkl" not in scrubbed
    assert "aHVudGVyMg" not in scrubbed
    assert left in scrubbed
    assert "(hidden)" in scrubbed


@pytest.mark.parametrize(
    "text",
    ["a" * 500_000 + " ://", "://" * 200_000, "?" * 500_000, "bearer " * 100_000, "password " * 90_000 + " " * 90_000],
    ids=["scheme", "slashes", "queries", "bearers", "passwords"],
)
def test_a_hostile_text_does_not_hold_the_gateway_up(text: str) -> None:
    """Looking for secrets is linear; a search that is not would not end before the test's time is up."""
    assert logs.scrub(text)


def test_a_secret_at_the_edge_of_what_is_shown_is_not_cut_in_half() -> None:
    """What is shortened is searched first."""
    assert "hunter" not in logs.one_line("x" * 296 + "my-hunter2-key", 300, ["my-hunter2-key"])


def test_ordinary_words_are_left_alone() -> None:
    """What is no key stays as it is."""
    for text in ("the key is wrong", "max_tokens=5", "http://host:1/v1", "task-based", "asking for a secret recipe"):
        assert logs.scrub(text) == text


def test_exceptions_are_logged_without_secrets() -> None:
    """A trace that quotes a key or a configured secret does not show it."""
    script = (
        "try: raise ValueError('Bearer abcdefgh refused, my-own-secret too')\n"
        "except ValueError: logging.getLogger('asides').exception('failed with %s', 'my-own-secret')"
    )
    for form in ("json", "text"):
        text = logged(script, secrets=("my-own-secret",), form=form)
        assert "ValueError" in text
        assert "refused" in text
        assert "abcdefgh" not in text
        assert "my-own-secret" not in text


def test_a_failure_is_a_warning_and_levels_are_kept() -> None:
    """With `warning`, good requests are silent and a 502 is not; other libraries speak from a warning on."""
    assert logged(level="warning") == ""
    assert only_line(logged(level="warning", request={"status": 502}))["level"] == "warning"
    assert logged("logging.getLogger('uvicorn.error').info('x')") == ""
    assert only_line(logged("logging.getLogger('uvicorn.error').error('x')"))["logger"] == "uvicorn.error"
    assert only_line(logged("logging.getLogger('asides._gateway').debug('x')", level="debug"))["message"] == "x"


def test_setting_up_again_replaces_the_first() -> None:
    """A line is not written twice."""
    assert only_line(logged("logs.setup(Log(form='json'))\nlogs.log_request(record)"))["status"] == 200


def test_a_closed_standard_error_does_not_stop_the_process() -> None:
    """When nobody reads the log any more, requests are still answered."""
    script = (
        "import os\nreading, writing = os.pipe()\nos.dup2(writing, 2)\nos.close(reading)\n"
        "logs.log_request(record)\nprint('answered', flush=True)"
    )
    given = msgspec.json.encode({"log": {}, "secrets": (), "request": REQUEST})
    # Not its exit code: an interpreter that cannot write out its standard error at its end says so by 120.
    done = subprocess.run([sys.executable, "-c", PREPARE + script], input=given, capture_output=True)
    assert done.stdout == b"answered\n"


def test_a_line_may_carry_an_event_for_programs() -> None:
    """`extra` with an event and an address is part of the JSON."""
    line = only_line(logged("logging.getLogger('asides').info('x', extra={'event': 'listening', 'url': 'http://a:1'})"))
    assert (line["event"], line["url"]) == ("listening", "http://a:1")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (Config(listen=Listen(host="0.0.0.0")), ["without keys"]),
        (Config(listen=Listen(host="0.0.0.0"), keys=("k",)), []),
        (Config(listen=Listen(host="::1")), []),
        (Config(listen=Listen(host="localhost")), []),
        (Config(log=Log(bodies=True)), ["log.bodies is on"]),
        (Config(cors=("*",)), ["every origin"]),
        (Config(cors=("*",), keys=("k",)), []),
        (Config(upstreams=(UpstreamSettings(url="http://a/v1", name="a", key="k"),)), ["unencrypted"]),
        (Config(upstreams=(UpstreamSettings(url="http://127.0.0.1/v1", name="a", key="k"),)), []),
        (Config(upstreams=(UpstreamSettings(url="https://a/v1", name="a", key="k"),)), []),
    ],
)
def test_an_unsafe_configuration_is_warned_of(config: Config, words: list[str]) -> None:
    """Each thing that is unsafe is told once; a safe configuration starts silently."""
    warnings = logs.warn_at_start(config)
    assert len(warnings) == len(words)
    assert all(word in warning for word, warning in zip(words, warnings, strict=True))


def test_the_secrets_of_a_configuration_are_known() -> None:
    """Keys of the gateway and of upstreams, and every header's value; not what is too short to be one."""
    upstream = UpstreamSettings(url="http://a", key="first", headers={"A": "second", "B": "1"})
    config = Config(upstreams=(upstream,), keys=("third", "abc"))
    assert set(logs.secrets_of(config)) == {"first", "second", "third"}


def test_many_lines_are_all_written_in_their_order_by_few_writes() -> None:
    """Nothing that waits is lost when the process ends, and the thread is not woken for every line."""
    script = (
        "import asides._gateway.observe.logs as module\n"
        "writes, real = [], module.write_all\n"
        "def write_all(descriptor, data):\n"
        "    writes.append(len(data))\n"
        "    real(descriptor, data)\n"
        "module.write_all = write_all\n"
        "for number in range(3000):\n"
        "    record.model = f'm{number}'\n"
        "    logs.log_request(record)\n"
        "    if number % 1000 == 0: logging.getLogger('asides').info('line %d', number)\n"
        "logs.flush()\n"
        "logging.getLogger('asides').info('writes %d', len(writes))\n"
        "logging.getLogger('asides').info('the last')\n"
    )
    lines = [msgspec.json.decode(line) for line in logged(script).splitlines()]
    assert [line["model"] for line in lines if "model" in line] == [f"m{number}" for number in range(3000)]
    others = [line["message"] for line in lines if "model" not in line]
    assert others[:3] == ["line 0", "line 1000", "line 2000"]
    assert others[-1] == "the last"
    assert int(others[-2].removeprefix("writes ")) < 300
