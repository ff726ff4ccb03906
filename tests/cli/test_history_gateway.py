"""`asides serve --save` as a real process before a small real upstream: what passes is kept, and no client waits."""

from __future__ import annotations

import hashlib
import json
import re
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from asides import _history as history
from asides._history import KeptReply
from tests.cli.running import Running
from tests.history.samples import aged
from tests.waiting import PATIENCE, eventually

pytest.importorskip("uvicorn", reason="the gateway is not here: pip install 'asides[gateway]'")
PIECES = ("<thi", "nk>The secret", " plan.</think>", "\n\nClean", " words.")


class Model(BaseHTTPRequestHandler):
    """A model that thinks in tags, whole or streamed."""

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing is said."""

    def do_GET(self) -> None:
        """Which models there are."""
        self._answer("application/json", json.dumps({"object": "list", "data": [{"id": "m"}]}).encode())

    def do_POST(self) -> None:
        """A reply."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if asked.get("stream"):
            if asked["messages"][-1]["content"] == "Long?":
                self._never_ending()
                return
            frames = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in PIECES]
            frames.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            body = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"
            self._answer("text/event-stream", body.encode())
        else:
            message = {"role": "assistant", "content": "".join(PIECES)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._answer("application/json", json.dumps({"choices": [choice]}).encode())

    def _never_ending(self) -> None:
        """A thought that goes on until the client has gone."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for text in ("<think>The secret", " plan", *[" and on"] * 10_000):
            frame = json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]})
            try:
                self.wfile.write(f"data: {frame}\n\n".encode())
            except OSError:
                return
            time.sleep(0.01)

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def upstream() -> Iterator[str]:
    """The address of the model."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def serve(upstream: str, store: Path) -> Running:
    """The gateway, keeping."""
    arguments = ("--upstream", upstream, "--format", "qwen3", "--port", "0", "--log-json", "--save")
    return Running("serve", *arguments, ASIDES_HISTORY=str(store))


def address(gateway: Running) -> str:
    """Where it listens."""
    said = gateway.read_until(gateway.stderr, b'"event":"listening"')
    found = re.search(rb"http://127\.0\.0\.1:\d+", said)
    assert found, said
    return found[0].decode()


def ask(url: str, *messages: str, stream: bool) -> bytes:
    """The body of a reply to messages, the user's and the model's by turns."""
    turns = [{"role": ("user", "assistant")[at % 2], "content": words} for at, words in enumerate(messages)]
    body = json.dumps({"model": "m", "stream": stream, "messages": turns}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer sk-client"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", body, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return bytes(reply.read())


def metrics(url: str) -> bytes:
    """What is told to Prometheus."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE) as reply:
        return bytes(reply.read())


def kept(store: Path, count: int) -> list[KeptReply]:
    """The replies, once so many are there."""
    found: list[KeptReply] = []

    def look() -> bool:
        if store.exists():
            with history.open(str(store)) as opened:
                found[:] = opened.replies()
        return len(found) >= count

    eventually(look, "they were never written")
    return found


def test_what_passes_is_kept(upstream: str, tmp_path: Path) -> None:
    """Whole and streamed: thoughts beside clean words, one conversation, and its memory holds no thought."""
    store = tmp_path / "h.db"
    with serve(upstream, store) as gateway:
        url = address(gateway)
        ask(url, "First?", stream=False)
        ask(url, "First?", "<think>sent back</think>Clean words.", "Second?", stream=True)
        first, second = kept(store, 2)
    for reply in (first, second):
        assert (reply.source, reply.reply.model, reply.format, reply.reply.text) == (
            "gateway",
            "m",
            "qwen3",
            "Clean words.",
        )
        assert [(thought.text, thought.complete) for thought in reply.thoughts] == [("The secret plan.", True)]
        assert reply.client == hashlib.blake2b(b"sk-client", digest_size=16).hexdigest()
    assert all(b"sk-client" not in file.read_bytes() for file in tmp_path.iterdir())
    assert first.conversation == second.conversation != ""
    with history.open(str(store)) as opened:
        memory = [(turn.role, turn.text) for turn in opened.conversation(first.conversation)]
    assert memory == [
        ("user", "First?"),
        ("assistant", "Clean words."),
        ("user", "Second?"),
        ("assistant", "Clean words."),
    ]


def test_replies_that_are_too_old(upstream: str, tmp_path: Path) -> None:
    """`history.keep_days` deletes them when the gateway starts."""
    store = tmp_path / "h.db"
    with history.open(str(store)) as opened:
        opened.add([aged(31, "old thought"), aged(29, "new")])
        arguments = ("--upstream", upstream, "--format", "qwen3", "--port", "0", "--save")
        with Running("serve", *arguments, ASIDES_HISTORY=str(store), ASIDES_HISTORY_KEEP_DAYS="30"):
            eventually(lambda: opened.count().replies == 1, "it was never deleted")
        assert not opened.search("old").hits


def test_a_store_that_fails_costs_the_client_nothing(upstream: str, tmp_path: Path) -> None:
    """The reply arrives, the log says why it waits, and it is written once the store is there."""
    (tmp_path / "folder").touch()
    store = tmp_path / "folder" / "h.db"
    with serve(upstream, store) as gateway:
        reply = json.loads(ask(address(gateway), "Well?", stream=False))
        assert reply["choices"][0]["message"]["content"] == "Clean words."
        assert b"folder is no folder; replies wait" in gateway.read_until(gateway.stderr, b"replies wait")
        (tmp_path / "folder").unlink()
        assert kept(store, 1)[0].thoughts[0].text == "The secret plan."


def test_what_a_client_stopped_is_kept_as_cut_off(upstream: str, tmp_path: Path) -> None:
    """A client that leaves in the middle of a thought: what had come is kept, and the metrics count it."""
    store = tmp_path / "h.db"
    with serve(upstream, store) as gateway:
        url = address(gateway)
        body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "Long?"}]}).encode()
        request = urllib.request.Request(f"{url}/v1/chat/completions", body, {"content-type": "application/json"})
        reply = urllib.request.urlopen(request, timeout=PATIENCE)
        while b" plan" not in reply.readline():
            pass
        reply.close()
        (cut,) = kept(store, 1)
        # It is counted once it is written.
        eventually(lambda: b"asides_history_kept 1.0" in metrics(url), "it was not counted")
    assert cut.reply.termination == "cut"
    assert (cut.thoughts[0].text[:15], cut.thoughts[0].complete) == ("The secret plan", False)
    assert cut.thoughts[0].seconds is not None
