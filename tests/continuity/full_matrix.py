"""Every scripted provider with every way of clients, whole and streamed, in one process, across restarts, by workers.

Not part of `make test`: minutes. `make test-continuity` runs it. Ways that carry nothing need the shared store to
survive a restart or another worker; those that carry need no store at all.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gateway import conversations, providers
from tests.gateway.conversations import WAYS, Way
from tests.gateway.providers import TEXTS, Provider
from tests.gateway.running import gateway

CARRYING = (conversations.chat_keeps, conversations.messages_keep, conversations.responses_items)
MODES = ("one process", "restart", "two workers")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("kind", providers.PROVIDERS, ids=lambda kind: kind.name)
def test_a_conversation_goes_on(kind: type[Provider], way: Way, stream: bool, mode: str, tmp_path: Path) -> None:
    """The provider refuses nothing, and each request begins with what the one before it sent, but for one exception."""
    if mode == "two workers" and sys.platform != "linux":
        pytest.skip("workers share a port on Linux alone")
    settings: dict[str, Any] = {"continuity": {"keys": ["k" * 40]}}
    if way not in CARRYING or mode == "two workers":
        settings["history"] = {"store": str(tmp_path / "history.db")}
        settings |= {"replay_cache": {"store": "history"}, "responses": {"store": "history"}}
    if mode == "two workers":
        settings["listen"] = {"workers": 2}
    with providers.provider(kind) as served:
        settings["upstreams"] = [served.upstream]
        url = ""
        talk = way(lambda: url, kind.model, stream)
        answers = []
        if mode == "restart":
            for _ in TEXTS:
                with gateway(settings) as running:
                    url = running.url
                    answers.append(next(talk))
        else:
            with gateway(settings) as running:
                url = running.url
                answers += talk
        assert answers == list(TEXTS)
        assert served.provider.refused == []
        # A worker that has not yet seen in which field this server sends thoughts sends them back in the usual one.
        if mode != "two workers" or kind is not providers.Groq:
            providers.check_append_only(served.provider.requests)
