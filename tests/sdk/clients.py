"""The clients of the real SDKs, and a server that answers them, with or without thoughts and calls taken apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import anthropic
import ollama
import openai
import pytest

import asides.anthropic
import asides.ollama
import asides.openai
from asides import dialects
from asides.reading import Reading
from asides.reply._items import Begin, Ended, RawText, ReplyItem, Usage
from tests.gateway import upstream as scripted
from tests.gateway.upstream import Upstream

RAW = (
    '<think>\nTwo and two.\n</think>\n\nLet me see.\n<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call>'
)
MODEL = "Qwen/Qwen3-8B"
USER: Any = [{"role": "user", "content": "2+2?"}]
Found = TypeVar("Found")
SEPARATES = pytest.mark.parametrize("separates", [False, True], ids=["raw", "separated"])


def serve(server: Upstream, api: str, separates: bool, raw: str = RAW) -> None:
    """Let the server answer with this output, in pieces, as text or taken apart, by the dialect's own writer."""
    dialect = dialects.get(api)
    splitter = Reading.of(format="qwen3" if separates else "passthrough").but(seed=0).splitter()

    def answer(asked: scripted.Asked) -> scripted.Reply:
        request = dialect.read_request(asked.body, asked.path)
        items: list[ReplyItem] = [Begin("r1", MODEL)]
        for start in range(0, len(raw), 5):
            items += splitter.feed(RawText(0, raw[start : start + 5]))
        items += [*splitter.feed(Ended(0)), Usage(11, 22)]
        if not request.stream:
            return scripted.json_reply(dialect.write_reply(items, request))
        writer = dialect.ReplyWriter(request)
        pieces = [*map(writer.feed, items), writer.finish()]
        kind = scripted.NDJSON if dialect.FRAMING.takes_json else scripted.SSE
        return scripted.Reply([piece for piece in pieces if piece], headers=kind)

    for path in dialect.PATHS:
        server.send(answer, f"/v1{path}")
        server.send(answer, path)


class Sdk(NamedTuple):
    """One API of an SDK: its clients, how they are asked, and which of our modules reads the answer."""

    api: str
    module: Any
    client: Callable[[str], Any]
    aclient: Callable[[str], Any]
    create: Callable[[Any, bool], Any]

    def ask(self, url: str, stream: bool, read: Callable[[Any], Found]) -> Found:
        """Ask, and read the answer before the client is closed."""
        with self.client(url) as client:
            return read(self.create(client, stream))


CHAT: Any = {"model": MODEL, "messages": USER}
USAGE: Any = {"stream_options": {"include_usage": True}}
KEYS: Any = {"api_key": "none", "max_retries": 0}


def openai_client(url: str) -> openai.OpenAI:
    """OpenAI's client of a server."""
    return openai.OpenAI(base_url=f"{url}/v1", **KEYS)


def async_openai_client(url: str) -> openai.AsyncOpenAI:
    """The same, asynchronous."""
    return openai.AsyncOpenAI(base_url=f"{url}/v1", **KEYS)


def anthropic_client(url: str) -> anthropic.Anthropic:
    """Anthropic's client of a server."""
    return anthropic.Anthropic(base_url=url, **KEYS)


def create_chat(client: Any, stream: bool) -> Any:
    """Chat completions."""
    return client.chat.completions.create(**CHAT, stream=stream, **(USAGE if stream else {}))


def create_response(client: Any, stream: bool) -> Any:
    """Responses."""
    return client.responses.create(model=MODEL, input="2+2?", stream=stream)


def create_message(client: Any, stream: bool) -> Any:
    """Messages."""
    return client.messages.create(**CHAT, max_tokens=99, stream=stream)


def create_ollama_chat(client: Any, stream: bool) -> Any:
    """Ollama's chat."""
    return client.chat(**CHAT, stream=stream)


SDKS = {
    "chat": Sdk("openai_chat", asides.openai, openai_client, async_openai_client, create_chat),
    "responses": Sdk("openai_responses", asides.openai, openai_client, async_openai_client, create_response),
    "messages": Sdk(
        "anthropic",
        asides.anthropic,
        anthropic_client,
        lambda url: anthropic.AsyncAnthropic(base_url=url, **KEYS),
        create_message,
    ),
    "ollama": Sdk("ollama", asides.ollama, ollama.Client, ollama.AsyncClient, create_ollama_chat),
}
EACH = pytest.mark.parametrize("sdk", SDKS.values(), ids=SDKS)
