"""What a gateway holds on to once a reply is over, found by following every reference of the application itself."""

from __future__ import annotations

import gc
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from asides._config.schema import Config, ModelSettings, UpstreamSettings
from asides._gateway.app import Gateway
from asides._gateway.protocol import limited
from asides._gateway.server import bind
from tests.gateway.clients import FUNCTION, post
from tests.gateway.upstream import upstream
from tests.waiting import PATIENCE, eventually

SECRETS = ("asked-in-secret", "thought-in-secret", "said-in-secret", "called-in-secret")
SPEECH = (
    f"<think>{SECRETS[1]}</think>\n\n{SECRETS[2]}\n\n"
    f'<tool_call>\n{{"name": "find", "arguments": {{"query": "{SECRETS[3]}"}}}}\n</tool_call>'
)
CODE = (types.ModuleType, types.FunctionType, types.CodeType, type)
"""What is not followed: it leads from one object to all of the program, this file included."""


@contextmanager
def running(gateway: Gateway) -> Iterator[str]:
    """The application in this process, served from a thread as `asides serve` does it; yields its address."""
    listening = bind("127.0.0.1", 0)
    settings = uvicorn.Config(gateway, http=limited(65536), ws="none", lifespan="on", log_config=None)
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        eventually(lambda: server.started, "it does not listen")
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listening.close()


def held(root: object) -> str:
    """Every text that can be reached from an object, joined."""
    gc.collect()
    seen = {id(root)}
    pending, texts = [root], []
    while pending:
        found = pending.pop()
        if isinstance(found, str | bytes):
            texts.append(found if isinstance(found, str) else found.decode("utf-8", "replace"))
        for each in gc.get_referents(found):
            if id(each) not in seen and not isinstance(each, CODE):
                seen.add(id(each))
                pending.append(each)
    return "\n".join(texts)


def found(gateway: Gateway) -> list[bool]:
    """Which of the secrets it holds."""
    texts = held(gateway)
    return [secret in texts for secret in SECRETS]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("store", [False, True])
def test_what_shall_not_be_stored_is_not_held(store: bool, stream: bool) -> None:
    """`store: false` leaves no text of question, thought, answer or call behind; what is stored is all there."""

    with upstream() as server:
        server.say(SPEECH)
        config = Config(upstreams=(UpstreamSettings(url=server.url),), defaults=ModelSettings(format="qwen3"))
        gateway = Gateway(config)
        with running(gateway) as url:
            tools = [{"type": "function", **FUNCTION}]
            body = {"model": "m", "input": SECRETS[0], "tools": tools, "store": store, "stream": stream}
            reply = post(url, "/v1/responses", body)
            assert (reply.status_code, SECRETS[3] in reply.text) == (200, True)
            eventually(lambda: not gateway._open, "the request does not end")
            # What ends a request may still be at work.
            eventually(lambda: found(gateway) == [store] * 4, f"not {'held' if store else 'let go of'}: {SECRETS}")
