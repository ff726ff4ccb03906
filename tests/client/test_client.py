"""The client against real sockets: both kinds of server, what is split, what is sent, what goes wrong."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from asides.client._client import Client, UpstreamError
from asides.events import PartStart, TextDelta, ThinkingDelta
from asides.reply._fold import Fold
from asides.reply._items import ReplyEvent
from tests.client.upstream import Script, Upstream, chat, fails, lines, serve, think
from tests.ports import held_port
from tests.waiting import PATIENCE

ANSWER = chat(think("2+2"), "It is ", "4.")


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_an_address_may_name_the_api_or_not(ending: str) -> None:
    """The same server is found with and without `/v1` at the end of its address."""
    with serve(ANSWER) as upstream:
        reply = Client(upstream.url + ending).ask("2+2?", model="m")
    assert (reply.thinking, reply.text, reply.reason, reply.complete) == ("2+2", "It is 4.", "stop", True)
    assert upstream.paths[-1] == "/v1/chat/completions"
    assert reply.usage is not None
    assert reply.usage.output_tokens == 5


@pytest.mark.parametrize("number", [1, 7, -1])
def test_the_only_choice_may_have_any_number(number: int) -> None:
    """Not every server counts from zero: the answer is kept."""
    frames = [frame.replace(b'"index": 0', b'"index": %d' % number) for frame in ANSWER]
    with serve(frames) as upstream:
        reply = Client(upstream.url).ask("2+2?", model="m")
    assert (reply.thinking, reply.text, reply.complete) == ("2+2", "It is 4.", True)


def test_ollama_is_found_by_its_version() -> None:
    """A server that answers `/api/version` is spoken to in Ollama's own dialect."""
    with serve(lines({"thinking": "2+2"}, "It is ", "4."), kind="ollama") as upstream:
        client = Client(upstream.url)
        reply = client.ask("2+2?", model="m")
        assert client.kind == "ollama"
    assert (reply.thinking, reply.text, reply.complete) == ("2+2", "It is 4.", True)
    assert upstream.asked[0]["messages"] == [{"role": "user", "content": "2+2?"}]


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_models_are_listed(kind: Any) -> None:
    """The names that a server lists, whatever it speaks."""
    with serve([], kind=kind, models=["a", "b"]) as upstream:
        assert Client(upstream.url).models() == ["a", "b"]


@pytest.mark.parametrize(
    ("think", "openai", "ollama"),
    [
        (None, None, None),
        (True, "medium", True),
        (False, "none", False),
        ("low", "low", "low"),
        ("max", "max", "max"),
    ],
)
def test_thinking_is_asked_for_in_the_servers_words(think: Any, openai: Any, ollama: Any) -> None:
    """`think` becomes an effort for OpenAI's servers and `think` for Ollama; None says nothing."""
    with serve(ANSWER) as upstream:
        Client(upstream.url).ask("hi", model="m", think=think)
        assert upstream.asked[0].get("reasoning_effort") == openai
        assert "think" not in upstream.asked[0]
    with serve(lines("hi"), kind="ollama") as upstream:
        Client(upstream.url).ask("hi", model="m", think=think)
        assert upstream.asked[0].get("think") == ollama
        assert "reasoning_effort" not in upstream.asked[0]


@pytest.mark.parametrize(
    ("model", "think", "sent"),
    [
        ("Qwen/Qwen3-8B", False, {"enable_thinking": False}),
        ("Qwen/Qwen3-8B", None, None),
        ("deepseek-v3.1", True, {"thinking": True}),
        ("ibm-granite/granite-3.3-8b-instruct", True, {"thinking": True}),
        ("ibm-granite/granite-3.2-8b-instruct", False, {"thinking": False}),
        ("NousResearch/Hermes-4-14B", True, {"thinking": True}),
        ("LGAI-EXAONE/EXAONE-4.0-32B", True, {"enable_thinking": True}),
        # No keyword of its template turns it off.
        ("moonshotai/Kimi-K2-Thinking", False, None),
        ("moonshotai/Kimi-K3", "xhigh", {"thinking": True, "thinking_effort": "max"}),
        ("gpt-oss:20b", "high", {"reasoning_effort": "high"}),
        ("gpt-oss:20b", True, None),
        ("tencent/Hy3", True, {"reasoning_effort": "high"}),
        ("tencent/Hy3", "medium", {"reasoning_effort": "high"}),
        ("tencent/Hy3", False, {"reasoning_effort": "no_think"}),
        ("upstage/Solar-Open-100B", False, {"reasoning_effort": "minimal"}),
        ("upstage/Solar-Open-100B", "low", {"reasoning_effort": "medium"}),
        ("MiniMaxAI/MiniMax-M3", True, {"thinking_mode": "enabled"}),
        ("ByteDance-Seed/Seed-OSS-36B-Instruct", False, {"thinking_budget": 0}),
        ("somebody/unheard-of-7b", True, None),
    ],
)
def test_open_models_are_switched_in_their_template_too(model: str, think: Any, sent: Any) -> None:
    """A model whose name is known gets its chat template's switch; without thinking options it gets nothing."""
    with serve(ANSWER) as upstream:
        Client(upstream.url).ask("hi", model=model, think=think)
    assert upstream.asked[0].get("chat_template_kwargs") == sent


def test_a_format_that_was_named_has_its_switch_whatever_the_model_is_called() -> None:
    """As in the gateway, where a model's settings name its format."""
    with serve(ANSWER) as upstream:
        Client(upstream.url).ask("hi", model="somebody/unheard-of-7b", think=True, format="granite-3.3")
    assert upstream.asked[0]["chat_template_kwargs"] == {"thinking": True}


def test_a_server_without_templates_is_asked_again_without_the_switch() -> None:
    """A server that refuses `chat_template_kwargs` by name still gets its question."""
    refusal = fails(400, {"error": {"message": "property 'chat_template_kwargs' is unsupported"}})
    with serve(refusal, ANSWER) as upstream:
        assert Client(upstream.url).ask("hi", model="qwen3", think=True).text == "It is 4."
    assert "chat_template_kwargs" not in upstream.asked[1]


def test_a_server_that_does_not_count_is_asked_without_counting() -> None:
    """A server that refuses `stream_options` by name still answers; another refusal is told and not repeated."""
    refusal = fails(422, {"error": {"message": "extra fields not permitted: stream_options"}})
    with serve(refusal, ANSWER) as upstream:
        assert Client(upstream.url).ask("hi", model="m").text == "It is 4."
    assert "stream_options" not in upstream.asked[1]
    with serve(refusal) as upstream, pytest.raises(UpstreamError, match="stream_options"):
        Client(upstream.url).ask("hi", model="m")
    assert len(upstream.asked) == 2


def test_other_fields_are_translated() -> None:
    """`extra` is in OpenAI's names, whatever the server speaks."""
    with serve(lines("hi"), kind="ollama") as upstream:
        Client(upstream.url).ask("hi", model="m", extra={"temperature": 0, "max_tokens": 9})
    assert upstream.asked[0]["options"] == {"temperature": 0, "num_predict": 9}


def test_no_parameter_is_lost() -> None:
    """One that no dialect has a name for stands beside the others, and in Ollama's options."""
    extra = {"temperature": 0.2, "num_ctx": 8192, "keep_alive": "5m"}
    with serve(ANSWER) as upstream:
        Client(upstream.url).ask("?", model="m", extra=extra)
    assert extra.items() <= upstream.asked[0].items()
    with serve(lines("Hi"), kind="ollama") as upstream:
        Client(upstream.url).ask("?", model="m", extra=extra)
    assert upstream.asked[0]["options"] == {"temperature": 0.2, "num_ctx": 8192}
    assert upstream.asked[0]["keep_alive"] == "5m"


def test_raw_markers_are_split_by_the_models_name() -> None:
    """Words with markers are split by the format that the model's name tells, or `auto`."""
    harmony = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi"
    with serve(chat(harmony[:30], harmony[30:])) as upstream:
        assert Client(upstream.url).ask("hi", model="gpt-oss-20b").text == "Hi"
    with serve(chat("<thi", "nk>hm</think>Hi")) as upstream:
        reply = Client(upstream.url).ask("hi", model="nobody-knows-it")
    assert (reply.thinking, reply.text) == ("hm", "Hi")


def test_a_format_and_a_start_may_be_told() -> None:
    """The caller's format and start win over the name."""
    with serve(chat("hm</think>Hi")) as upstream:
        client = Client(upstream.url)
        told = client.ask("hi", model="m", format="qwen3", start="thinking")
        assert (told.thinking, told.text) == ("hm", "Hi")
        assert client.ask("hi", model="qwen3", format="passthrough").text == "hm</think>Hi"


def test_words_of_a_model_that_begins_in_thinking_wait_until_they_tell() -> None:
    """Whether such a server splits or not, no thought is taken for the answer and no answer for a thought."""
    with serve(chat("hm</think>Hi"), chat("hm</think>Ho"), chat("Plain.")) as upstream:
        client = Client(upstream.url)
        first = client.ask("hi", model="deepseek-r1")
        assert (first.thinking, first.text) == ("hm", "Hi")
        # It is known now that the prompt opens the thinking, so the next thought is told as it comes.
        events = [item.event for item in client.talk("hi", model="deepseek-r1") if isinstance(item, ReplyEvent)]
        assert [event.kind for event in events if isinstance(event, PartStart)] == ["thinking", "text"]
        assert Client(upstream.url).ask("hi", model="deepseek-r1").text == "Plain."


def test_a_server_that_splits_is_believed() -> None:
    """Where thinking comes in a field, an answer without markers is an answer at once, also in the next reply."""
    with serve(ANSWER, chat("Just ", "so."), Script(chat("Live", end=None), hangs=True)) as upstream:
        client = Client(upstream.url)
        assert client.ask("hi", model="deepseek-r1").text == "It is 4."
        assert client.ask("hi", model="deepseek-r1").text == "Just so."
        reading = client.talk("hi", model="deepseek-r1")
        assert any(isinstance(item, ReplyEvent) and item.event == TextDelta(0, "Live") for item in reading)
        reading.close()  # type: ignore[attr-defined]  # a generator, which an Iterator need not be
        assert upstream.left.wait(PATIENCE)


def test_a_whole_reply_is_read_too() -> None:
    """A server that does not stream answers in one piece of JSON."""
    body = b'{"choices": [{"message": {"content": "<think>hm</think>Hi"}, "finish_reason": "stop"}]}'
    with serve(Script([body], type="application/json")) as upstream:
        reply = Client(upstream.url).ask("hi", model="m")
    assert (reply.thinking, reply.text, reply.reason) == ("hm", "Hi", "stop")


def test_calls_are_read_and_thinking_goes_back_with_them_only() -> None:
    """A tool turn carries its thinking in the field that the server uses; an ordinary turn carries none."""
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}
    with serve(chat({"reasoning": "must call"}, {"tool_calls": [call]}), chat("Done.")) as upstream:
        client = Client(upstream.url)
        tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        talk: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
        first = client.ask(talk, model="m", tools=tools)
        assert [(made.name, made.arguments, made.error) for made in first.tool_calls] == [("f", '{"a": 1}', None)]
        talk += [first.to_message(), {"role": "tool", "tool_call_id": "c1", "content": "2"}]
        talk.append({"role": "assistant", "content": "It is 2.", "reasoning_content": "an old thought"})
        talk.append({"role": "user", "content": "thanks"})
        client.ask(talk, model="m", tools=tools)
    sent = upstream.asked[1]["messages"]
    assert (sent[1]["reasoning"], sent[1]["content"]) == ("must call", "")
    assert sent[1]["tool_calls"][0]["id"] == "c1"
    assert sent[3] == {"role": "assistant", "content": "It is 2."}


def test_a_fold_tells_what_has_come_so_far() -> None:
    """An unfinished reply has its parts, and says that it is not complete."""
    with serve(chat(think("hm"), "Hi")) as upstream:
        fold = Fold()
        for item in Client(upstream.url).talk("hi", model="m"):
            fold.add(item)
            if isinstance(item, ReplyEvent) and isinstance(item.event, ThinkingDelta):
                break
    assert (fold.reply.thinking, fold.reply.text, fold.reply.complete) == ("hm", "", False)


# What goes wrong.


def test_nothing_listens() -> None:
    """A refused connection is told as such, and nothing was reached."""
    with held_port() as port, pytest.raises(UpstreamError, match="nothing listens at http://") as caught:
        Client(f"127.0.0.1:{port}").ask("hi", model="m")
    assert not caught.value.reached


def test_tls_towards_a_server_without() -> None:
    """https:// to a plain server says what may be wrong."""
    with serve(ANSWER) as upstream, pytest.raises(UpstreamError, match=r"TLS failed: .*plain http://"):
        Client(upstream.url.replace("http://", "https://")).ask("hi", model="m")


def test_a_host_that_does_not_exist() -> None:
    """A name that nobody knows is told as such."""
    with pytest.raises(UpstreamError, match=r"no host is called 'nowhere\.invalid'"):
        Client("http://nowhere.invalid").ask("hi", model="m")


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://h:port", "http://[::1", "http://h/?key=secret", "http://me:secret@h"]
)
def test_what_is_no_address(url: str) -> None:
    """A wrong address is an error of ours, at once."""
    with pytest.raises(UpstreamError) as caught:
        Client(url)
    assert "secret" not in str(caught.value)


def test_a_missing_key_and_a_wrong_one() -> None:
    """401 says whether a key was missing or wrong, with the server's words."""
    with serve(ANSWER, key="right") as upstream:
        with pytest.raises(UpstreamError, match=r"wants a key \(401\): no good key"):
            Client(upstream.url).ask("hi", model="m")
        with pytest.raises(UpstreamError, match="refuses this key"):
            Client(upstream.url, "wrong").ask("hi", model="m")
        assert Client(upstream.url, "right").ask("hi", model="m").text == "It is 4."


def test_a_key_that_cannot_be_one_is_not_shown() -> None:
    """Whitespace around a key is nothing; what no header can carry is refused, without the key in the words."""
    with serve(ANSWER, key="right") as upstream:
        assert Client(upstream.url, " right\n").ask("hi", model="m").text == "It is 4."
    with pytest.raises(UpstreamError) as caught:
        Client("http://localhost", "se\ncret")
    assert "cret" not in str(caught.value)


def test_a_model_that_is_not_there() -> None:
    """404 names the models that the server lists."""
    missing = fails(404, {"error": "model 'x' not found"})
    names = [f"m{number}" for number in range(14)]
    with (
        serve(missing, kind="ollama", models=names) as upstream,
        pytest.raises(UpstreamError, match=r"model 'x' not found; it has m0, .*, m11 and 2 more$"),
    ):
        Client(upstream.url).ask("hi", model="x")
    told = fails(404, {"error": "there is no x; there are a and b"})
    with serve(told, models=["a", "b"]) as upstream, pytest.raises(UpstreamError, match=r"a and b$"):
        Client(upstream.url).ask("hi", model="x")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (fails(400, {"error": {"message": "too long"}}), "answered 400: too long"),
        (fails(503, b"overloaded", "text/plain"), "answered 503: overloaded"),
        (fails(502, b"<html>bad</html>", "text/html"), "answered 502: a web page"),
        (fails(200, b"<html>hello</html>", "text/html"), "web page; is this the address"),
        (fails(200, b"[1, 2", "application/json"), "not JSON"),
        (Script([], 302, location="https://elsewhere"), "moved to https://elsewhere"),
    ],
)
def test_refusals_are_told_in_words(script: Script, words: str) -> None:
    """Whatever a server answers instead of a reply is told in words, never as a page."""
    with serve(script) as upstream, pytest.raises(UpstreamError, match=words):
        Client(upstream.url).ask("hi", model="m")


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (chat("Half <thi", end=None), "broke off in the middle of the reply"),
        ([*chat("Half <thi", end=None), b'data: {"error": {"message": "out of memory"}}\n\n'], "out of memory"),
    ],
)
def test_a_reply_that_dies_is_given_first(pieces: list[bytes], words: str) -> None:
    """What had come, what was held back too, comes before the error."""
    fold = Fold()
    with serve(pieces) as upstream:
        client = Client(upstream.url)
        with pytest.raises(UpstreamError, match=words):
            _gather(fold, client)
    assert fold.reply.text == "Half <thi"


def _gather(fold: Fold, client: Client) -> None:
    for item in client.talk("hi", model="m"):
        fold.add(item)


def test_a_silent_server_is_given_up() -> None:
    """A server that stops sending is left after `idle` seconds."""
    with serve(Script(chat("Hi", end=None), hangs=True)) as upstream:
        with pytest.raises(UpstreamError, match=r"has sent nothing for 1 second"):
            Client(upstream.url, idle=1.0).ask("hi", model="m")
        assert upstream.left.wait(PATIENCE)


# Stopping.


@pytest.fixture
def hanging() -> Iterator[Upstream]:
    with serve(Script(chat(think("hm"), "Hi <th", end=None), hangs=True)) as upstream:
        yield upstream


def test_stop_ends_a_reply_and_keeps_what_had_come(hanging: Upstream) -> None:
    """`stop` from another thread ends a blocked reading; what was held back is given, and the socket is closed."""
    client = Client(hanging.url)
    fold = Fold()
    assert not client.stop()
    for item in client.talk("hi", model="m"):
        fold.add(item)
        if isinstance(item, ReplyEvent) and isinstance(item.event, TextDelta) and "Hi" in item.event.text:
            threading.Timer(0.01, client.stop).start()
    assert fold.reply.text == "Hi <th"
    assert not fold.reply.complete
    assert hanging.left.wait(PATIENCE)


def test_stop_from_a_signal_handler(hanging: Upstream) -> None:
    """A signal handler may stop a reply: no exception is torn through the reading."""
    client = Client(hanging.url)
    previous = signal.signal(signal.SIGUSR1, lambda *_: client.stop())
    main = threading.main_thread().ident
    assert main is not None
    sending = threading.Timer(0.01, signal.pthread_kill, (main, signal.SIGUSR1))
    try:
        fold = Fold()
        for item in client.talk("hi", model="m"):
            fold.add(item)
            if isinstance(item, ReplyEvent) and isinstance(item.event, TextDelta) and "Hi" in item.event.text:
                sending.start()
        sending.join()  # once more, and later, it would end the tests themselves
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert fold.reply.text == "Hi <th"


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A certificate of our own that the client trusts."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    made, key = str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    name = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1,DNS:model.test"]
    command = [openssl, "req", "-x509", *curve, *name, "-keyout", key, "-out", made]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    monkeypatch.setenv("SSL_CERT_FILE", made)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    return context


def test_tls(certificate: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trusted server is read and stopped as any other; one that nobody vouches for is not spoken to."""
    hangs = Script(chat("Hi <th", end=None), hangs=True)
    with serve(ANSWER, hangs, tls=certificate) as upstream:
        client = Client(upstream.url)
        assert client.ask("hi", model="m").text == "It is 4."
        fold = Fold()
        for item in client.talk("hi", model="m"):
            fold.add(item)
            if isinstance(item, ReplyEvent) and isinstance(item.event, PartStart):
                threading.Timer(0.01, client.stop).start()
        assert fold.reply.text == "Hi <th"
        assert upstream.left.wait(PATIENCE)
        monkeypatch.setenv("SSL_CERT_FILE", os.devnull)
        with pytest.raises(UpstreamError, match="certificate is not trusted"):
            client.ask("hi", model="m")


def test_stop_before_the_first_byte_gives_an_empty_reply() -> None:
    """A server that has not answered yet is left at once."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")

        def stop_after_the_request() -> None:
            with silent.accept()[0] as connection:
                connection.recv(9)
                client.stop()

        server = threading.Thread(target=stop_after_the_request)
        server.start()
        assert client.ask("hi", model="m").parts == ()
        server.join()
