"""What people write first, without having read a page: it is right, or refused with a sentence that says what to do.

The loops run with OpenAI's SDK over a socket, against a server that sends what the model wrote and one that separates.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

import asides
import asides.anthropic
import asides.ollama
import asides.openai
from tests.gateway.upstream import Upstream, upstream

MODEL = "Qwen/Qwen3-8B"
ASK: Any = {"model": MODEL, "messages": [{"role": "user", "content": "2+2?"}]}
USAGE: Any = {"stream_options": {"include_usage": True}}


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with upstream(models=(MODEL,)) as found:
        yield found


@pytest.fixture
def client(server: Upstream) -> Iterator[openai.OpenAI]:
    server.say("<think>2+2</think>It is 4.")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as found:
        yield found


def texts(events: Any) -> str:
    return "".join(event.text for event in events if isinstance(event, asides.TextDelta))


# Loops over chunks.


def test_feeding_the_content_of_each_chunk(client: openai.OpenAI) -> None:
    """The last delta has no content."""
    parser = asides.Parser()
    contents: list[str | None] = []
    for chunk in client.chat.completions.create(**ASK, stream=True):
        contents.append(chunk.choices[0].delta.content)
        parser.feed(chunk.choices[0].delta.content)
    parser.finish()
    assert None in contents
    assert (parser.message.thinking, parser.message.text) == ("2+2", "It is 4.")


def test_splitting_the_content_of_each_chunk(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(**ASK, stream=True)
    assert texts(asides.split(chunk.choices[0].delta.content for chunk in stream)) == "It is 4."


def test_a_chunk_without_choices(client: openai.OpenAI) -> None:
    """With `include_usage` the last chunk has none."""
    chunks = list(client.chat.completions.create(**ASK, stream=True, **USAGE))
    assert not chunks[-1].choices
    events = asides.openai.split(chunks)
    assert texts(events) == "It is 4."
    assert events.reply.usage is not None


def test_a_server_that_has_separated(server: Upstream, client: openai.OpenAI) -> None:
    """A loop over the content would never see the thought."""
    server.say("It is 4.", thought="2+2")
    events = asides.openai.split(client.chat.completions.create(**ASK, stream=True))
    assert texts(events) == "It is 4."
    assert events.reply.thinking == "2+2"


def test_the_chunks_themselves_are_refused_by_the_function_for_text(client: openai.OpenAI) -> None:
    with pytest.raises(asides.UsageError, match=r"text \(str\), not ChatCompletionChunk; asides\.openai"):
        list(asides.split(client.chat.completions.create(**ASK, stream=True)))


def test_an_asynchronous_loop(server: Upstream) -> None:
    server.say("<think>2+2</think>It is 4.")

    async def ask() -> str:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(**ASK, stream=True)
            contents = (chunk.choices[0].delta.content async for chunk in stream)
            return "".join(
                [event.text async for event in asides.asplit(contents) if isinstance(event, asides.TextDelta)]
            )

    assert asyncio.run(ask()) == "It is 4."


def test_helpers_that_were_not_entered_and_replies_that_were_not_awaited(server: Upstream) -> None:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
        manager: Any = client.responses.stream(model=MODEL, input="2+2?")
        with pytest.raises(asides.UsageError, match="has to be entered first: `with"):
            asides.openai.split(manager)

    async def forget() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client:
            stream: Any = client.chat.completions.create(**ASK, stream=True)
            try:
                with pytest.raises(asides.UsageError, match=r"has to be awaited first: asplit\(await"):
                    asides.openai.asplit(stream)
                with pytest.raises(asides.UsageError, match="await it first"):
                    asides.openai.read(stream)
            finally:
                stream.close()

    asyncio.run(forget())


# What goes where it does not belong.

CHOICE: Any = {"index": 0, "finish_reason": "stop"}
BASE: Any = {"id": "1", "created": 1, "model": MODEL}
CHUNK = ChatCompletionChunk.model_validate(
    {**BASE, "object": "chat.completion.chunk", "choices": [{**CHOICE, "delta": {"content": "It is 4."}}]}
)
WHOLE = ChatCompletion.model_validate(
    {**BASE, "object": "chat.completion", "choices": [{**CHOICE, "message": {"role": "assistant", "content": "4"}}]}
)


async def later() -> AsyncIterator[Any]:
    yield CHUNK


async def every(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


wrong: Any = asides
"""The library without its types: they would refuse most of this already."""
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "no content": (lambda: wrong.parse(None), "sends no content beside them: asides.openai.read(response) has both"),
    "bytes": (lambda: wrong.Parser().feed(b"It"), "decode it first"),
    "a reply as text": (lambda: wrong.parse(WHOLE), "asides.openai, asides.anthropic and asides.ollama read"),
    "a delta as text": (lambda: wrong.Parser().feed(CHUNK.choices[0].delta), "not ChoiceDelta; asides.openai"),
    "a reply as a stream of text": (lambda: list(wrong.split(WHOLE)), "read() of the SDK's module reads it"),
    "a reply as a stream": (lambda: wrong.openai.split(WHOLE), "is a whole reply and no stream: read()"),
    "a dictionary as a stream": (lambda: wrong.ollama.split({"done": True}), "is a whole reply and no stream: read()"),
    "a chunk as a reply": (lambda: wrong.openai.read(CHUNK), "a piece of a stream and no whole reply: split()"),
    "an event as a reply": (lambda: wrong.anthropic.read({"type": "message_start", "message": {}}), "a piece of a"),
    "a part as a reply": (lambda: wrong.ollama.read({"message": {"content": "It"}, "done": False}), "a piece of a"),
    "a stream as a reply": (lambda: wrong.openai.read(iter([CHUNK])), "split() reads a stream"),
    "a later stream as a reply": (lambda: wrong.openai.read(later()), "asplit() reads a stream"),
    "a message as a reply": (lambda: wrong.openai.read(WHOLE.choices[0].message), "give the whole response"),
    "text as a reply": (lambda: wrong.openai.read("It is 4."), "asides.parse reads text"),
    "text as chunks": (lambda: list(wrong.openai.split(["It is 4."])), "asides.split reads text"),
    "later text": (lambda: list(wrong.split(later())), "is an asynchronous stream: asplit() reads it"),
    "a later stream": (lambda: wrong.openai.split(later()), "is an asynchronous stream: asplit() reads it"),
    "text at once": (lambda: asyncio.run(every(wrong.asplit(["It"]))), "no asynchronous stream: split() reads it"),
    "a stream at once": (lambda: wrong.openai.asplit([CHUNK]), "no asynchronous stream: split() reads it"),
    "a number": (lambda: wrong.openai.split(7), "int is no stream"),
    "a model as a format": (lambda: asides.Parser(MODEL), "give it as the model (`model=`, `--model`)"),
    "a tag as a format": (lambda: asides.Parser("qwen3:8b"), "give it as the model (`model=`, `--model`)"),
    "feeding on": (lambda: [(parser := asides.Parser()).finish(), parser.feed("a")], "make a new Parser"),
    "a kind of part as a role": (lambda: wrong.parse("a").mask("tool_call"), "'thinking', 'text', 'call', 'marker'"),
    "a number as a model": (lambda: wrong.parse("a", model=3), "a model is given by its name"),
    "a misspelt role": (lambda: wrong.parse("a").mask("think"), "'thinking', 'text', 'call', 'marker'"),
    "a mask of text": (lambda: asides.parse("a").mask("text"), "read ids with a TokenParser"),
    "a misspelt field": (lambda: wrong.parse("a").to_openai(thinking="thoughts"), "'reasoning_content', 'reasoning'"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_to_do(mistake: str) -> None:
    make, sentence = REFUSED[mistake]
    with pytest.raises(asides.Error, match=re.escape(sentence)):
        make()


def test_the_modules_need_no_import_of_their_own() -> None:
    """What refuses an SDK's object names them."""
    code = "import asides; print(asides.openai.read({'choices': [{'message': {'content': 'Four.'}}]}).text)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"Four.\n"
    names: dict[str, Any] = {}
    exec("from asides import *", names)
    assert "openai" not in names, "it would hide the SDK"


def test_what_is_printed_of_records_is_short() -> None:
    """Who prints one looks for what was chosen or found in it."""
    assert repr(asides.Policies(seed=0)) == "Policies(seed=0)"
    assert repr(asides.get_format("qwen3")) == "<Format 'qwen3'>"
    assert len(repr(asides.Reading.of(MODEL))) < 500
    assert "roles" not in repr(asides.parse("a"))


def test_a_models_name_where_it_belongs() -> None:
    assert asides.Parser(model=MODEL).feed("<think>hm")[0] == asides.PartStart(0, "thinking")


def test_two_replies_never_share_the_id_of_a_call() -> None:
    """Whoever reads them; with a seed they are the same again."""
    call = '<tool_call>{"name": "add", "arguments": {}}</tool_call>'
    response = {"choices": [{"message": {"content": call}, "finish_reason": "stop"}]}

    def ids(**seed: Any) -> list[str]:
        streamed = asides.Parser(**seed)
        streamed.feed(call)
        streamed.finish()
        read = (asides.parse(call, **seed), streamed.message, asides.openai.read(response, **seed))
        return [found.tool_calls[0].id for found in read]

    assert len({*ids(), *ids()}) == 6
    assert len({*ids(seed=0), *ids(seed=0)}) == 1


def test_what_goes_back_holds_no_thought() -> None:
    """`to_dict`, which does, is for storing; it says so."""
    message = asides.parse("<think>2+2</think>It is 4.")
    assert message.to_openai()["content"] == message.to_ollama()["content"] == "It is 4."
    assert "2+2" not in str([message.to_openai(), message.to_ollama(), message.to_anthropic(), message.to_responses()])
    assert "Not to be sent" in (asides.Message.to_dict.__doc__ or "")
