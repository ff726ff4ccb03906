"""The gateway's part of `asides demo`: three kinds of client ask a real gateway over loopback. No model runs.

The gateway is a process of its own on a free port, started without the user's configuration and variables, so that it
has nothing but its recordings. Each client is a request and the two places in the reply's lines where it finds thinking
and answer; what stands there is written beside the name of the field, as it comes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ..._extras import install_command, own_command
from ...errors import Error
from ..streams import BOLD, DIM, PLAIN, OutputStream
from .command import LabelledText

PATIENCE = 60.0
"""Seconds that the gateway has to start, and to send the next line: long, since one that ends is noticed at once."""
SECONDS_PER_TOKEN = 0.015
NEEDED = ("httptools", "uvicorn", "yaml")
ABSENT = """
The gateway shows the same over HTTP, to every client. It needs a few packages more:
  {install}
Then `{asides} demo` shows it too, and `{asides} serve` starts it.

Your turn: pipe a model's output into `{asides}`. `{asides} --help` has examples.
"""
TRY = """
Your turn. Pipe a model's output into `{asides}`; `{asides} --help` has examples.
Or start the gateway, with these recordings until you name a model server:
  {asides} serve

and in another terminal talk with it, thoughts shown:
  {asides} run recorded-qwen3

or ask it with curl:
  curl -N http://127.0.0.1:8777/v1/chat/completions \\
    -H 'content-type: application/json' -d '{"model": "recorded-qwen3",
    "stream": true, "messages": [{"role": "user", "content": "A haiku?"}]}'

or with any SDK, in Python:
  openai.OpenAI(base_url="http://127.0.0.1:8777/v1", api_key="none")
  anthropic.Anthropic(base_url="http://127.0.0.1:8777", api_key="none")
  ollama.Client("http://127.0.0.1:8777")

In front of a real model server:
  {asides} serve --upstream http://127.0.0.1:8000/v1

Or watch it think in a browser:
  {asides} serve --open
"""


class DemoClient(NamedTuple):
    """One kind of client: what it asks, and where it finds thinking and answer."""

    name: str
    path: str
    body: dict[str, Any]
    thinking: tuple[str, ...]
    """Where thinking stands in a line of the reply."""
    answer: tuple[str, ...]


def _asked(question: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}]


CLIENTS = (
    DemoClient(
        "An OpenAI client, and a model that writes <think>",
        "/v1/chat/completions",
        {"model": "recorded-qwen3", "stream": True, "messages": _asked("What is 17 times 23?")},
        ("choices", "delta", "reasoning_content"),
        ("choices", "delta", "content"),
    ),
    DemoClient(
        "An Anthropic client, and a model whose output begins inside its thought",
        "/v1/messages",
        {
            "model": "recorded-deepseek-r1",
            "max_tokens": 1000,
            "stream": True,
            "messages": _asked('How many r are in "strawberry"?'),
        },
        ("delta", "thinking"),
        ("delta", "text"),
    ),
    DemoClient(
        "An Ollama client, and a model that writes channels",
        "/api/chat",
        {"model": "recorded-gpt-oss", "messages": _asked("A haiku, please.")},
        ("message", "thinking"),
        ("message", "content"),
    ),
)


def show_gateway(out: OutputStream, *, number: int, wait: bool) -> None:
    """Start a gateway, let each kind of client ask it, and say how to go on. `number` is that of the first."""
    bold, dim = out.style(BOLD), out.style(DIM)
    if not all(find_spec(package) for package in NEEDED):
        out.write(ABSENT.format(install=install_command("gateway"), asides=own_command()))
        out.flush()
        return
    with _gateway(SECONDS_PER_TOKEN if wait else 0.0) as port:
        for client in CLIENTS:
            out.write(f"\n{number}. {client.name}\n", bold)
            question = client.body["messages"][0]["content"]
            out.write(f"\n  POST {client.path}  {client.body['model']}: {question}\n\nasides serve sends it:\n")
            _show(out, dim, client, port)
            number += 1
    out.write(TRY.replace("{asides}", own_command()))
    out.flush()


def _show(out: OutputStream, dim: tuple[str, str], client: DemoClient, port: int) -> None:
    """Write what the client gets, each field beside its name."""
    labels = {client.thinking: ".".join(client.thinking), client.answer: ".".join(client.answer)}
    width = max(map(len, labels.values()))
    fields = (client.thinking, client.answer)
    found = ((field, text) for line in _ask(client, port) for field in fields if (text := _find(line, field)))
    for field, texts in groupby(found, key=itemgetter(0)):
        beside = LabelledText(out, labels[field], width, dim if field == client.thinking else PLAIN)
        for _, text in texts:
            beside.write(text)
            out.flush()
        beside.end()


def _ask(client: DemoClient, port: int) -> Iterator[Any]:
    """The lines of JSON in a streamed reply, whether server-sent events or plain lines."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(
            "POST", client.path, json.dumps(client.body), {"content-type": "application/json", "x-api-key": "none"}
        )
        reply = connection.getresponse()
        if reply.status != 200:
            raise Error(f"the gateway answered {reply.status}: {reply.read().decode(errors='replace')}")
        while line := reply.readline():
            data = line.removeprefix(b"data:").strip()
            if data.startswith(b"{"):
                yield json.loads(data)
    except HTTPException as error:
        raise Error(f"the gateway broke off: {error!r}") from error
    finally:
        connection.close()


def _find(line: Any, field: tuple[str, ...]) -> str:
    """The text at a place in a line; empty where there is none. Of a list, the first is taken."""
    found = line
    for key in field:
        if isinstance(found, list):
            found = found[0] if found else None
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


@contextmanager
def _gateway(pace: float) -> Iterator[int]:
    """A gateway of our own on a free port of the loopback, with nothing but the recordings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ASIDES_")}
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "asides.yaml")
        settings.write_text(json.dumps({"listen": {"port": 0}, "defaults": {"extra_body": {"pace": pace}}}))
        output = Path(folder, "output")
        with output.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "asides", "serve", "--config", str(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        try:
            yield _port(process, output)
        finally:
            process.terminate()
            process.wait()


def _port(process: subprocess.Popen[bytes], output: Path) -> int:
    """The port, as soon as the gateway has written it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(rb"listening on http://127\.0\.0\.1:(\d+)", output.read_bytes())
        if found:
            return int(found[1])
        time.sleep(0.02)
    raise Error(f"the gateway did not start. It said:\n{output.read_text(errors='replace')}")
