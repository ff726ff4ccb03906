"""The programs of the page "Use it in an application", as they stand in examples/, with the real SDK over a socket.

Each is run against a server that sends what the model wrote, and against one that separates thoughts and calls: it
prints what its docstring says, and sends back what OpenAI's own types and every server take.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pydantic
import pytest
import uvicorn
from openai.types.chat import ChatCompletionMessageParam

from tests.dialects.sent_back import take
from tests.gateway import speech
from tests.gateway.speech import Speech
from tests.gateway.upstream import JSON, SSE, Asked, Hang, Reply, Upstream, json_reply, left, upstream
from tests.ports import held_port
from tests.waiting import eventually
from tools.example_blocks import EXAMPLES, PAGE, printed

ROOT = EXAMPLES.parent
MODEL = "Qwen/Qwen3-Coder-30B-A3B-Thinking"
EACH_SERVER = pytest.mark.parametrize("separates", [False, True], ids=["raw", "separated"])
Answer = Callable[[Asked], Speech | Reply]
CHAT = pydantic.TypeAdapter[Any](ChatCompletionMessageParam)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    with upstream(models=(MODEL,)) as found:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{found.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield found


def script(server: Upstream, answer: Answer) -> None:
    """Let the server answer with what is said to each request."""

    def reply(asked: Asked) -> Reply:
        said = answer(asked)
        if isinstance(said, Reply):
            return said
        if asked.body.get("stream"):
            return Reply([speech.chat_stream(said, asked.body)], headers=SSE)
        return Reply([speech.chat_whole(said, asked.body)], headers=JSON, whole=True)

    server.send(reply, "/v1/chat/completions")


def thinks(separates: bool, thought: str, said: str, **more: Any) -> Speech:
    """A thought and an answer, as one server sends them or as the other does."""
    if separates:
        return Speech(said, thought=thought, **more)
    return Speech(f"<think>\n{thought}\n</think>\n\n{said}", **more)


def run(name: str) -> None:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def sent(server: Upstream) -> list[list[dict[str, Any]]]:
    """The messages of each request, which OpenAI's types take, without thoughts where words belong."""
    found = [asked.body["messages"] for asked in server.questions]
    for message in (message for messages in found for message in messages):
        take(CHAT, message)
        content = message.get("content")
        assert content is None or (isinstance(content, str) and "think" not in content)
    return found


@EACH_SERVER
def test_a_whole_reply(server: Upstream, separates: bool, capsys: pytest.CaptureFixture[str]) -> None:
    script(server, lambda asked: thinks(separates, "Two and two.", "It is 4."))
    run("whole_reply.py")
    assert capsys.readouterr().out == printed(EXAMPLES / "whole_reply.py")


@EACH_SERVER
def test_a_streamed_reply(server: Upstream, separates: bool, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {
        1: thinks(separates, "A capital.", "The capital of France is Paris."),
        3: thinks(separates, "Another.", "Oslo."),
    }
    script(server, lambda asked: answers[len(asked.body["messages"])])
    run("streamed_reply.py")
    shown = capsys.readouterr()
    assert shown.out == printed(EXAMPLES / "streamed_reply.py")
    assert shown.err == "A capital.Another."
    assert sent(server)[1][1] == {"role": "assistant", "content": "The capital of France is Paris."}


@EACH_SERVER
def test_many_replies(server: Upstream, separates: bool, capsys: pytest.CaptureFixture[str]) -> None:
    cut = Speech("", thought="Three and", reason="length") if separates else Speech("<think>Three", reason="length")
    answers: dict[str, Speech | Reply] = {
        "What is 2+2?": thinks(separates, "Two and two.", "It is 4."),
        "What is 3+3?": cut,
        "What is 4+4?": json_reply({"error": {"message": "no memory left"}}, 400),
        "What is 5+5?": thinks(separates, "Five and five.", "It is 10."),
    }
    script(server, lambda asked: answers[asked.body["messages"][0]["content"]])
    run("many_replies.py")
    assert capsys.readouterr().out == printed(EXAMPLES / "many_replies.py")


CALL = (
    "<tool_call>\n<function={}>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
    "</function>\n</tool_call>"
)
OSLO = '{"city": "Oslo", "days": 2}'


def agent_turns(separates: bool) -> list[Speech]:
    """Calls (in the thought only a draft), one of a tool that does not exist; one that is cut; the answer."""
    if separates:
        return [
            Speech("", thought="Or a draft? No.", calls=(("get_weather", OSLO), ("delete_everything", OSLO)), ids="a"),
            Speech("", calls=(("get_weather", '{"city": "Ber'),), reason="length", ids="b"),
            Speech("Pack an umbrella.", thought="Rain on both days."),
        ]
    return [
        Speech(
            f"<think>\nOr {CALL.format('draft')}? No.\n</think>\n\n"
            + CALL.format("get_weather")
            + "\n"
            + CALL.format("delete_everything")
        ),
        Speech("<tool_call>\n<function=get_weather>\n<parameter=city>\nBer", reason="length"),
        Speech("<think>\nRain on both days.\n</think>\n\nPack an umbrella."),
    ]


@EACH_SERVER
def test_an_agent(server: Upstream, separates: bool, capsys: pytest.CaptureFixture[str]) -> None:
    turns = iter(agent_turns(separates))
    script(server, lambda asked: next(turns))
    run("agent.py")
    assert capsys.readouterr().out == printed(EXAMPLES / "agent.py")
    last = sent(server)[-1]
    ids = [call["id"] for message in last for call in message.get("tool_calls", ())]
    assert len(ids) == len(set(ids)) >= 2
    assert [message["tool_call_id"] for message in last if message["role"] == "tool"] == ids
    assert "draft" in last[1]["reasoning_content"], "the thought beside calls goes back"


# The web application, with real requests to it.


@contextmanager
def web_app() -> Iterator[str]:
    """The application while it runs, at its address."""
    app = runpy.run_path(str(EXAMPLES / "web_app.py"))["app"]
    serving = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=lambda: asyncio.run(serving.serve()))
    thread.start()
    try:
        eventually(lambda: serving.started, "the application does not start")
        yield f"http://127.0.0.1:{serving.servers[0].sockets[0].getsockname()[1]}"
    finally:
        serving.should_exit = True
        thread.join()


QUESTION = {"messages": [{"role": "user", "content": "2+2?"}]}


def joined(body: bytes) -> str:
    """Events as the docstring writes them: a line each, those that follow each other with the same name joined."""
    lines: list[tuple[str, Any]] = []
    for event in body.decode().strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in event.splitlines())
        name, data = fields["event"], json.loads(fields["data"])
        if lines and lines[-1][0] == name:
            lines[-1] = (name, lines[-1][1] + data)
        else:
            lines.append((name, data))
    return "".join(f"{name} {json.dumps(data, separators=(',', ':'))}\n" for name, data in lines)


@EACH_SERVER
def test_a_web_application(server: Upstream, separates: bool) -> None:
    script(server, lambda asked: thinks(separates, "Two and two.", "It is 4."))
    with web_app() as url, httpx.stream("POST", f"{url}/chat", json=QUESTION) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert joined(answer.read()) == printed(EXAMPLES / "web_app.py")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")
def test_the_commands_that_start_and_ask_a_web_application(server: Upstream) -> None:
    """As its docstring and the page have them, but for the port."""
    script(server, lambda asked: thinks(False, "Two and two.", "It is 4."))
    docstring = ast.get_docstring(ast.parse((EXAMPLES / "web_app.py").read_text(encoding="utf-8"))) or ""
    start, ask = re.findall(r"^    ((?:uvicorn|curl) .*)$", docstring, re.M)
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert f"\n{start}\n{ask}\n" in page
    with held_port() as port:
        served = [sys.executable, "-m", *shlex.split(start.replace("8080", str(port)))]
        with subprocess.Popen([*served, "--log-level", "warning"], cwd=ROOT) as process:
            try:
                eventually(lambda: _listens(port), "the application does not start")
                asked = subprocess.run(shlex.split(ask.replace("8080", str(port))), capture_output=True, check=True)
            finally:
                process.terminate()
    assert joined(asked.stdout) == printed(EXAMPLES / "web_app.py")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_web_application_says_what_failed(server: Upstream) -> None:
    script(server, lambda asked: json_reply({"error": {"message": "no memory left"}}, 400))
    with web_app() as url:
        assert "no memory left" in joined(httpx.post(f"{url}/chat", json=QUESTION).content)


def test_a_browser_that_leaves_ends_the_request_to_the_model(server: Upstream) -> None:
    piece = speech.chat_stream(Speech("It is"), {"model": MODEL}).partition(b"data: [DONE]")[0]
    script(server, lambda asked: Reply([piece, Hang()], headers=SSE))
    with web_app() as url:
        with httpx.stream("POST", f"{url}/chat", json=QUESTION) as answer:
            assert b"text" in next(answer.iter_bytes())
        assert left(server)
