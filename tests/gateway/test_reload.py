"""SIGHUP: the configuration is read again, and no stream is cut for it."""

from __future__ import annotations

import os
import pty
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import yaml

from tests.gateway.clients import PATHS, ask, body_of, chat_deltas, events, get, post
from tests.gateway.running import Gateway
from tests.gateway.sockets import connected
from tests.gateway.upstream import Gate, Reply, upstream
from tests.waiting import PATIENCE, eventually

FIRST = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"<think>One"}}]}\n\n'
REST = b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"</think>Two"},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


class Served:
    """A gateway whose configuration file a test rewrites."""

    def __init__(self, path: Path, config: dict[str, Any]) -> None:
        self.path = path
        self.write(config)
        self.gateway = Gateway("--port", "0", config=path)

    def write(self, config: dict[str, Any]) -> None:
        self.path.write_text(yaml.safe_dump(config))

    def reload(self, event: str = "reloaded") -> None:
        """Send the signal, and wait until the log reports the outcome."""
        before = self._count(event)
        self.gateway.signal(signal.SIGHUP)
        eventually(lambda: self._count(event) > before, f"no {event} was logged")

    def _count(self, event: str) -> int:
        return sum(record.get("event") == event for record in self.gateway.records)

    def __enter__(self) -> Served:
        self.gateway.wait_until_ready()
        return self

    def __exit__(self, *error: object) -> None:
        self.gateway.close()


def test_another_upstream_from_now_on(tmp_path: Path) -> None:
    """New requests go by the new file; a stream that was open ends under the old one."""
    gate = Gate()
    with upstream() as old, upstream() as new:
        config = {"upstreams": [{"url": old.url}], "defaults": {"format": "qwen3"}}
        with Served(tmp_path / "asides.yaml", config) as served:
            url = served.gateway.url
            old.send(Reply([FIRST, gate, REST, DONE]))
            new.say("<think>A.</think>from the new one")
            with connected(url) as client:
                client.post(PATHS["chat"], body_of("chat", stream=True))
                client.read_until(b"One")
                served.write({**config, "upstreams": [{"url": new.url}], "keys": ["k-new"]})
                served.reload()
                assert post(url, PATHS["chat"], body_of("chat")).status_code == 401
                assert ask("chat", url, key="k-new").text == "from the new one"
                gate.open()
                client.read_until(b"[DONE]")
                found = events(client.read)
                assert (chat_deltas(found, "reasoning_content"), chat_deltas(found)) == ("One", "Two")
            assert ask("chat", url, key="k-new").text == "from the new one"
        assert "Traceback" not in served.gateway.log


def test_a_mistake_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """A file that cannot be used is reported with its line; the gateway goes on as before."""
    with upstream() as server:
        config: dict[str, Any] = {"upstreams": [{"url": server.url}]}
        with Served(tmp_path / "asides.yaml", config) as served:
            served.write({**config, "limitz": {"idle": 3}})
            served.reload("reload_failed")
            [line] = [each for each in served.gateway.records if each.get("event") == "reload_failed"]
            assert "limitz" in line["message"]
            assert "asides.yaml:" in line["message"]
            assert ask("chat", served.gateway.url).text == "It is 4."


def test_what_needs_a_restart_is_named(tmp_path: Path) -> None:
    """A new port is not taken, and the log names the setting."""
    with upstream() as server:
        config: dict[str, Any] = {"upstreams": [{"url": server.url}]}
        with Served(tmp_path / "asides.yaml", config) as served:
            served.write({**config, "limits": {"shutdown": 3}})
            served.reload()
            served.gateway.wait_for_record(lambda line: "limits.shutdown has changed" in line["message"])
            assert get(served.gateway.url, "/healthz").status_code == 200


def test_thoughts_outlive_a_reload(tmp_path: Path) -> None:
    """A client that drops thinking between tool turns gets it back across a reload."""
    with upstream() as server:
        config: dict[str, Any] = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}}
        with Served(tmp_path / "asides.yaml", config) as served:
            url = served.gateway.url
            server.say('<think>I look.</think><tool_call>{"name": "find", "arguments": {"query": "x"}}</tool_call>')
            call = ask("chat", url, tools=True).raw.choices[0].message.tool_calls[0]
            served.reload()
            server.say("done")
            messages = [
                {"role": "user", "content": "2+2?"},
                {"role": "assistant", "content": "", "tool_calls": [call.model_dump()]},
                {"role": "tool", "tool_call_id": call.id, "content": "found"},
            ]
            ask("chat", url, tools=True, messages=messages)
            assert "I look." in str(server.question().body["messages"])


def test_closing_the_terminal_ends_it() -> None:
    """SIGHUP of a terminal that was closed asks for no reload: nothing may be left running behind it."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "asides", "serve", "--port", "0"])
    written = b""
    while not written.endswith(b"/v1/models\r\n\r\n"):  # all that it prints at its start
        written += os.read(terminal, 4096)
    os.close(terminal)
    codes: list[int] = []
    waiting = threading.Thread(target=lambda: codes.append(os.waitpid(pid, 0)[1]), daemon=True)
    waiting.start()
    waiting.join(PATIENCE)
    assert codes == [0]


def test_stored_responses_outlive_a_reload(tmp_path: Path) -> None:
    """As long as they are kept in the same place; with other bounds those past them go."""
    with upstream() as server:
        config: dict[str, Any] = {"upstreams": [{"url": server.url}], "defaults": {"format": "qwen3"}}
        with Served(tmp_path / "asides.yaml", config) as served:
            url = served.gateway.url
            made = [post(url, PATHS["responses"], body_of("responses")).json()["id"] for _ in range(2)]
            served.reload()
            assert [get(url, f"/v1/responses/{id}").status_code for id in made] == [200, 200]
            served.write({**config, "responses": {"entries": 1}})
            served.reload()
            assert [get(url, f"/v1/responses/{id}").status_code for id in made] == [404, 200]
            places = {"responses": {"store": "history"}, "history": {"store": str(tmp_path / "h.db")}}
            served.write({**config, **places})
            served.reload()
            assert get(url, f"/v1/responses/{made[1]}").status_code == 404
            later = post(url, PATHS["responses"], body_of("responses")).json()["id"]
            served.reload()
            assert get(url, f"/v1/responses/{later}").status_code == 200
