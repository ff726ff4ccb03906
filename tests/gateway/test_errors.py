"""What goes wrong, in every dialect: the upstream's errors, its deaths, and what the gateway itself refuses."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import anthropic
import httpx
import ollama
import openai
import pytest

from tests.gateway.clients import DIALECTS, PATHS, WITH_TOOLS, Dialect, ask, body_of, chat_deltas, events, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import JSON, NDJSON, SSE, Close, Reply, Reset, Step, Upstream, json_reply, upstream
from tests.waiting import PATIENCE


class Servers(NamedTuple):
    """A gateway before an OpenAI-compatible upstream, Ollama, and one that is not there."""

    gateway: Gateway
    vllm: Upstream
    ollama: Upstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    with upstream() as vllm, upstream("ollama") as native, socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound but not listening: whoever connects is refused
        config = {
            "upstreams": [
                {"url": vllm.url, "name": "vllm", "models": ["*-v"]},
                {"url": native.url, "name": "native", "models": ["*-o"]},
                {"url": f"http://127.0.0.1:{unused.getsockname()[1]}", "name": "absent", "models": ["absent"]},
            ],
            "models": {"*": {"format": "qwen3"}},
            "limits": {"idle": 3.0, "body": 200_000},
        }
        with gateway(config) as running:
            yield Servers(running, vllm, native)


def message_of(dialect: Dialect, body: Any) -> str:
    """The words of an error in the dialect's own shape, which is checked."""
    if dialect.startswith("ollama"):
        assert isinstance(body["error"], str)
        return str(body["error"])
    if dialect == "messages":
        assert body["type"] == "error"
        assert body["error"]["type"]
        return str(body["error"]["message"])
    assert {"message", "type", "param", "code"} <= body["error"].keys()
    return str(body["error"]["message"])


RATES = {"Retry_After": "7", "x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_tokens": "6m0s"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", ["v", "o"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_upstreams_error(servers: Servers, dialect: Dialect, kind: str, stream: bool) -> None:
    """An upstream's error keeps its status, its words and its limits; within one dialect its very bytes."""
    words = "you are too fast"
    body: Any = {"error": words} if kind == "o" else {"error": {"message": words, "type": "odd", "vendor": [1]}}
    servers.vllm.send(json_reply(body, 429, **RATES))
    servers.ollama.send(json_reply(body, 429, **RATES))
    reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model=f"m-{kind}", stream=stream))
    assert reply.status_code == 429
    assert reply.headers["retry-after"] == "7"
    assert reply.headers["x-ratelimit-remaining-requests"] == "0"
    assert reply.headers["x-ratelimit-reset-tokens"] == "6m0s"
    assert reply.headers["x-request-id"]
    same = dialect.startswith("ollama") if kind == "o" else dialect in ("chat", "completions")
    if same:
        assert reply.content == json.dumps(body).encode()
    else:
        assert words in message_of(dialect, reply.json())


def test_in_the_sdks(servers: Servers) -> None:
    """The SDKs raise what they raise for such a status."""
    servers.vllm.send(json_reply({"error": {"message": "no room"}}, 503))
    with pytest.raises(openai.InternalServerError, match="no room"):
        ask("responses", servers.gateway.url, model="m-v", stream=True)
    with pytest.raises(anthropic.APIStatusError, match="no room"):
        ask("messages", servers.gateway.url, model="m-v", stream=True)
    with pytest.raises(ollama.ResponseError, match="no room"):
        ask("ollama_chat", servers.gateway.url, model="m-v", stream=True)


def test_an_error_that_is_no_json(servers: Servers) -> None:
    """A proxy's page of HTML keeps its status and becomes words, which SDKs show: of HTML they show nothing."""
    page = b"<html>\r\n<head><title>502 Bad\r\nGateway</title></head>\r\n<body>nginx</body></html>"
    servers.vllm.send(Reply([page], 502, {"Content-Type": "text/html"}, whole=True))
    for dialect in DIALECTS:
        reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model="m-v"))
        assert (reply.status_code, reply.headers["content-type"]) == (502, "application/json")
        message = "the upstream answered with a web page: 502 Bad Gateway"
        assert message_of(dialect, reply.json()) == message
    with pytest.raises(openai.InternalServerError, match="a web page: 502 Bad Gateway"):
        ask("chat", servers.gateway.url, model="m-v", stream=True)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("body", "words"),
    [(b"Internal Server Error", "Internal Server Error"), (b"", "the upstream answered with status 500")],
)
def test_an_error_of_plain_text_or_of_nothing(servers: Servers, dialect: Dialect, body: bytes, words: str) -> None:
    """So do they."""
    servers.vllm.send(Reply([body], 500, {"Content-Type": "text/plain"}, whole=True))
    reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model="m-v"))
    assert (reply.status_code, message_of(dialect, reply.json())) == (500, words)


# The upstream is not there, or goes away.


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nobody_there(servers: Servers, dialect: Dialect) -> None:
    """An upstream that refuses the connection is a 502 that names it."""
    for stream in (False, True):
        reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model="absent", stream=stream))
        assert reply.status_code == 502
        assert "absent" in message_of(dialect, reply.json())


@pytest.mark.parametrize("step", [Close(), Reset()], ids=["close", "reset"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_gone_before_the_first_byte(servers: Servers, dialect: Dialect, step: Step) -> None:
    """An upstream that hangs up without a word is a 502."""
    servers.vllm.send(Reply(before=[step]))
    for stream in (False, True):
        reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model="m-v", stream=stream))
        assert reply.status_code == 502
        assert message_of(dialect, reply.json())


def test_lists_without_it(servers: Servers) -> None:
    """Models of the others are listed though one upstream is not there."""
    servers.vllm.send(json_reply({"object": "list", "data": [{"id": "m-v"}]}), "/v1/models")
    servers.ollama.send(json_reply({"models": [{"name": "m-o"}]}), "/api/tags")
    for path, list_name, id_name in (("/v1/models", "data", "id"), ("/api/tags", "models", "name")):
        reply = get(servers.gateway.url, path)
        assert reply.status_code == 200
        assert [model[id_name] for model in reply.json()[list_name]] == ["m-v", "m-o"]


def half(*rest: Step, plain: bool = False) -> Reply:
    """A stream that says something of everything and then ends otherwise than it should."""
    pieces = ["<think>One", ".</think>\n\nTwo, and a <", "thi"]
    said = [{"text": piece} if plain else {"delta": {"content": piece}} for piece in pieces]
    frames = [{"id": "1", "model": "m-v", "choices": [{"index": 0, **each}]} for each in said]
    data = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames)
    return Reply([data, *rest])


DEATHS: dict[str, tuple[Step, ...]] = {
    "close": (Close(),),
    "reset": (Reset(),),
    "end": (),
    "half a frame": (b'data: {"id":"1","cho', Close()),
    "half a frame and an end": (b'data: {"id":"1","cho',),
    "an error": (b'data: {"error": {"message": "out of memory", "code": 500}}\n\n',),
    "junk": (b'data: {"choices": [{"index": 0, "delta": {"content": "x"]]}\n\n', b"data: [DONE]\n\n"),
}


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_gone_in_the_middle(servers: Servers, dialect: Dialect, death: str) -> None:
    """An upstream that dies in the middle: all that it said is delivered, what was held back too, then the error."""
    servers.vllm.send(half(*DEATHS[death], plain=dialect == "completions"))
    reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model="m-v", stream=True))
    assert reply.status_code == 200
    if dialect.startswith("ollama"):
        lines = [json.loads(line) for line in reply.text.split("\n") if line]
        said = [line.get("message", line) for line in lines[:-1]]
        assert "".join(each.get("thinking") or "" for each in said) == "One."
        assert "".join(each.get("content") or each.get("response") or "" for each in said) == "Two, and a <thi"
        assert isinstance(lines[-1]["error"], str)
        assert not any(line.get("done") for line in lines)
        return
    found = events(reply.content)
    assert "[DONE]" not in found
    if dialect == "chat":
        assert chat_deltas(found, "reasoning_content") == "One."
        assert chat_deltas(found) == "Two, and a <thi"
        assert found[-1]["error"]["message"]
    elif dialect == "completions":
        choices = [choice for frame in found for choice in frame.get("choices", ())]
        assert "".join(choice.get("reasoning_content") or "" for choice in choices) == "One."
        assert "".join(choice["text"] for choice in choices) == "Two, and a <thi"
        assert found[-1]["error"]["message"]
    elif dialect == "messages":
        deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
        assert "".join(delta.get("thinking", "") for delta in deltas) == "One."
        assert "".join(delta.get("text", "") for delta in deltas) == "Two, and a <thi"
        assert found[-1]["type"] == "error"
        assert "message_stop" not in [event["type"] for event in found]
    else:
        kinds = {"response.reasoning_summary_text.delta": "One.", "response.output_text.delta": "Two, and a <thi"}
        for kind, words in kinds.items():
            assert "".join(event["delta"] for event in found if event["type"] == kind) == words
        assert found[-1]["type"] == "response.failed"


def test_the_upstreams_words_of_a_failure(servers: Servers) -> None:
    """What an upstream says of its failure in the middle reaches the client, whose SDK raises it."""
    servers.vllm.send(half(*DEATHS["an error"]))
    with pytest.raises(openai.APIError, match="out of memory"):
        ask("chat", servers.gateway.url, model="m-v", stream=True)
    with pytest.raises(anthropic.APIError, match="out of memory"):
        ask("messages", servers.gateway.url, model="m-v", stream=True)
    with pytest.raises(ollama.ResponseError, match="out of memory"):
        ask("ollama_chat", servers.gateway.url, model="m-v", stream=True)


def test_ollama_gone_in_the_middle(servers: Servers) -> None:
    """The same for an upstream that speaks Ollama's dialect."""
    lines = [
        {"message": {"role": "assistant", "content": piece}, "done": False} for piece in ("<think>A</think>", "B <")
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    for rest in ((Close(),), (b'{"error": "out of memory"}\n',), (b'{"mess', Close()), ()):
        servers.ollama.send(Reply([data, *rest], headers=NDJSON))
        reply = post(servers.gateway.url, PATHS["chat"], body_of("chat", model="m-o", stream=True))
        found = events(reply.content)
        assert (chat_deltas(found, "reasoning_content"), chat_deltas(found)) == ("A", "B <")
        assert found[-1]["error"]["message"]


def test_a_whole_reply_that_breaks_off(servers: Servers) -> None:
    """A whole reply of which only a part came is a 502."""
    for step in (Close(), Reset()):
        servers.vllm.send(Reply([b'{"choices": [{"mess', step], headers={"Content-Type": "application/json"}))
        for dialect in ("chat", "messages"):
            reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model="m-v"))
            assert reply.status_code == 502


def test_a_whole_reply_that_is_no_reply(servers: Servers) -> None:
    """JSON that is broken, or is not what was asked for, is an error in words and never a crash."""
    for body in (b'{"choices": [}', b"[]", b"null", b'"x"', b"", b"\xff\xfe", b"{}", b'{"choices": null}'):
        servers.vllm.send(Reply([body], headers={"Content-Type": "application/json"}, whole=True))
        for dialect in DIALECTS:
            reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model="m-v"))
            assert reply.status_code in (200, 502), (body, dialect)
            assert isinstance(reply.json(), dict)


@pytest.mark.parametrize(
    "number", ["1e999", "-1e999", "-1", "12345678901234567890123", "1" + "0" * 400, '"x"', "null", "[]"]
)
def test_absurd_numbers(servers: Servers, number: str) -> None:
    """Whatever stands where an upstream should say a number, its words arrive."""
    usage = f'"usage": {{"prompt_tokens": {number}, "completion_tokens": {number}}}'
    head = f'"id": "1", "created": {number}, {usage}'
    choice = '"index": 0, "finish_reason": "stop"'
    content = '{"content": "<think>A</think>B"}'
    whole = f'{{{head}, "choices": [{{{choice}, "message": {content}}}]}}'
    frame = f'data: {{{head}, "choices": [{{{choice}, "delta": {content}}}]}}\n\ndata: [DONE]\n\n'
    counts = f'"prompt_eval_count": {number}, "eval_count": {number}, "total_duration": {number}'
    line = f'{{"created_at": {number}, "message": {content}, "done": true, "done_reason": "stop", {counts}}}\n'
    for dialect in WITH_TOOLS:
        for stream in (False, True):
            servers.vllm.send(Reply([(frame if stream else whole).encode()], headers=SSE if stream else JSON))
            servers.ollama.send(Reply([line.encode()], headers=NDJSON if stream else JSON))
            for model in ("m-v", "m-o"):
                seen = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model=model, stream=stream))
                assert seen.status_code == 200, (dialect, stream, model, seen.text)
                assert '"error":{' not in seen.text, (dialect, stream, model, seen.text)
                assert '"B"' in seen.text


ODD_STREAMS: dict[str, bytes] = {
    "crlf": b'data: {"choices":[{"index":0,"delta":{"content":"<think>A</think>B"}}]}\r\n\r\ndata: [DONE]\r\n\r\n',
    "no space": b'data:{"choices":[{"index":0,"delta":{"content":"<think>A</think>B"}}]}\n\ndata:[DONE]\n\n',
    "comments": b': ping\n\n: ping\ndata: {"choices":[{"index":0,"delta":{"content":"<think>A</think>B"}}]}\n\n:x\n\ndata: [DONE]\n\n',  # noqa: E501  # one stream, one line
    "byte-order mark": b'\xef\xbb\xbfdata: {"choices":[{"index":0,"delta":{"content":"<think>A</think>B"}}]}\n\ndata: [DONE]\n\n',  # noqa: E501  # one stream, one line
    "several lines of data": b'data: {"choices":[{"index":0,\ndata: "delta":{"content":"<think>A</think>B"}}]}\n\ndata: [DONE]\n\n',  # noqa: E501  # one stream, one line
    "keep-alive as data": b'data: : keepalive\n\ndata: {"choices":[{"index":0,"delta":{"content":"<think>A</think>B"}}]}\n\ndata: [DONE]\n\n',  # noqa: E501  # one stream, one line
    "no DONE": b'data: {"choices":[{"index":0,"delta":{"content":"<think>A</think>B"},"finish_reason":"stop"}]}\n\n',
    "events with names": b'event: x\nid: 7\nretry: 10\ndata: {"choices":[{"index":0,"delta":{"content":"<think>A</think>B"}}]}\n\ndata: [DONE]\n\n',  # noqa: E501  # one stream, one line
    "empty choices": b'data: {"choices":[]}\n\ndata: {"choices":[{"index":0,"delta":{"content":"<think>A</think>B"}}]}\n\ndata: {"choices":[],"usage":null}\n\ndata: [DONE]\n\n',  # noqa: E501  # one stream, one line
    "no blank line at the end": b'data: {"choices":[{"index":0,"delta":{"content":"<think>A</think>B"},"finish_reason":"stop"}]}\n\ndata: [DONE]',  # noqa: E501  # one stream, one line
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_STREAMS)
def test_odd_streams(servers: Servers, name: str) -> None:
    """Whatever servers make of event streams is read, wherever it is cut, and written as every client can read it."""
    data = ODD_STREAMS[name]
    for pieces in ([data], [data[i : i + 1] for i in range(len(data))]):
        servers.vllm.send(Reply(pieces))
        seen = ask("chat", servers.gateway.url, model="m-v", stream=True)
        assert (seen.thinking, seen.text, seen.reason) == ("A", "B", "stop")
        seen = ask("messages", servers.gateway.url, model="m-v", stream=True)
        assert (seen.thinking, seen.text, seen.reason) == ("A", "B", "end_turn")


@pytest.mark.parametrize("name", ODD_STREAMS)
@pytest.mark.parametrize("before", ["", "retry: 10\n\n", "id: 5\n\n", ": ping\n\n", "\n\n"])
def test_a_stream_that_nobody_asked_for(servers: Servers, name: str, before: str) -> None:
    """A whole reply that comes as a stream is read as one, however it begins."""
    mark = b"\xef\xbb\xbf" if name == "byte-order mark" else b""
    servers.vllm.send(Reply([mark + before.encode() + ODD_STREAMS[name].removeprefix(mark)]))
    seen = ask("chat", servers.gateway.url, model="m-v")
    assert (seen.thinking, seen.text, seen.reason) == ("A", "B", "stop")


def test_an_upstream_that_does_not_stream(servers: Servers) -> None:
    """A whole reply to a request for a stream is given to the client as a stream."""
    reply = {"id": "1", "choices": [{"index": 0, "message": {"content": "<think>A</think>B"}, "finish_reason": "stop"}]}
    servers.vllm.send(json_reply(reply))
    for dialect in DIALECTS:
        if dialect != "completions":
            seen = ask(dialect, servers.gateway.url, model="m-v", stream=True)
            assert (seen.thinking, seen.text) == ("A", "B")


# What the gateway itself refuses.


WRONG: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", ""),
    "no object": (b"[]", ""),
    "not UTF-8": (b'{"model": "\xff"}', ""),
    "nothing": (b"", ""),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_request_at_all(servers: Servers, dialect: Dialect, wrong: str) -> None:
    """What is no JSON object is a 400 in the dialect's shape."""
    reply = post(servers.gateway.url, PATHS[dialect], WRONG[wrong][0])
    assert reply.status_code == 400
    assert message_of(dialect, reply.json())
    assert reply.headers["x-request-id"]


@pytest.mark.parametrize(
    ("dialect", "changed", "param"),
    [
        ("chat", {"messages": []}, "messages"),
        ("chat", {"messages": "hello"}, "messages"),
        ("chat", {"n": 0}, "n"),
        ("chat", {"tools": "find"}, "tools"),
        ("completions", {"prompt": {}}, "prompt"),
        ("responses", {"input": 5}, "input"),
        ("messages", {"messages": 3}, "messages"),
        ("ollama_chat", {"think": "loudly"}, "think"),
    ],
)
def test_a_wrong_field(servers: Servers, dialect: Dialect, changed: dict[str, Any], param: str) -> None:
    """A field that cannot be understood is a 400 that says which."""
    for model in ("m-v", "m-o"):
        reply = post(servers.gateway.url, PATHS[dialect], {**body_of(dialect, model=model), **changed})
        assert reply.status_code == 400
        assert param in message_of(dialect, reply.json())
        if dialect in ("chat", "completions", "responses"):
            assert reply.json()["error"]["param"] == param


def test_a_field_that_cannot_be_translated(servers: Servers) -> None:
    """What only the upstream of another dialect must understand is a 400 too, not a crash."""
    wrong: tuple[tuple[Dialect, Any], ...] = (
        ("completions", True),
        ("chat", {"type": "json_schema", "json_schema": "x"}),
    )
    for dialect, value in wrong:
        reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model="m-o", response_format=value))
        assert reply.status_code == 400
        assert reply.json()["error"]["param"].startswith("response_format")


def test_a_field_that_has_no_counterpart(servers: Servers) -> None:
    """What changes the question and cannot be said to the upstream is refused by name, not left out in silence."""
    body = body_of("responses", model="m-v", prompt={"id": "pmpt_1"})
    reply = post(servers.gateway.url, PATHS["responses"], body)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == "prompt"


def test_a_deep_request(servers: Servers) -> None:
    """JSON that is nested without end is a 400, not a crash."""
    deep = b'{"model": "m-v", "messages": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    assert post(servers.gateway.url, PATHS["chat"], deep).status_code == 400
    assert ask("chat", servers.gateway.url, model="m-v").text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_request_that_is_too_large(servers: Servers, dialect: Dialect) -> None:
    """A body beyond the limit is a 413, with its length said or not, and the next request works."""
    large = json.dumps(body_of(dialect, model="m-v", question="x" * 250_000)).encode()
    reply = post(servers.gateway.url, PATHS[dialect], large)
    assert reply.status_code == 413
    assert message_of(dialect, reply.json())
    pieces = (large[start : start + 10_000] for start in range(0, len(large), 10_000))
    try:
        chunked = httpx.post(servers.gateway.url + PATHS[dialect], content=pieces, verify=False, timeout=PATIENCE)
        assert chunked.status_code == 413
    except httpx.WriteError:
        pass  # it may hang up on a client that goes on sending
    assert not servers.vllm.questions
    servers.vllm.say("Fine.")
    assert ask(dialect, servers.gateway.url, model="m-v").text == "Fine."


def test_an_answer_that_is_too_large(servers: Servers) -> None:
    """A whole reply beyond the limit is a 502, and is not kept."""
    servers.vllm.say("x" * 300_000)
    assert post(servers.gateway.url, PATHS["chat"], body_of("chat", model="m-v")).status_code == 502


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_a_wrong_method(servers: Servers, method: str) -> None:
    """Asking with another method is an error of the client."""
    reply = httpx.request(method, servers.gateway.url + "/v1/chat/completions", verify=False)
    assert reply.status_code in (404, 405)
    assert reply.headers["x-request-id"]
