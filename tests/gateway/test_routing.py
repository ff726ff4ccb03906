"""Which upstream is asked, what is listed, and what is passed on as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import anthropic
import ollama
import openai
import pytest

from tests.gateway.clients import DIALECTS, PATHS, Dialect, ask, body_of, get, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Asked, Hang, Reply, Upstream, json_reply, upstream

VLLM_TEXT = "data: héllo \u2028"


class Servers(NamedTuple):
    """A gateway before an OpenAI-compatible upstream and Ollama, each with the models that it lists."""

    gateway: Gateway
    vllm: Upstream
    ollama: Upstream


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    with upstream(models=["Qwen/Qwen3-8B", "plain"]) as vllm, upstream("ollama", models=["qwen3:8b"]) as native:
        config = {
            "upstreams": [{"url": vllm.url + "/v1/", "name": "vllm"}, {"url": native.url, "name": "native"}],
            "models": {"alias": {"upstream": "native", "name": "qwen3:8b", "format": "qwen3"}},
            "pass_on": ["/odd/path", "/nothing/*"],
        }
        with gateway(config) as running:
            yield Servers(running, vllm, native)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_by_what_upstreams_list(servers: Servers, dialect: Dialect) -> None:
    """A request goes to the upstream that lists its model."""
    servers.vllm.say("from vllm")
    servers.ollama.say("from ollama")
    assert ask(dialect, servers.gateway.url, model="plain").text == "from vllm"
    assert ask(dialect, servers.gateway.url, model="qwen3:8b").text == "from ollama"


def test_by_the_models_own_settings(servers: Servers) -> None:
    """A model of the file goes where the file says, under the name that the file says."""
    servers.ollama.say("<think>A.</think>B.")
    seen = ask("chat", servers.gateway.url, model="alias")
    assert (seen.thinking, seen.text) == ("A.", "B.")
    assert servers.ollama.question().body["model"] == "qwen3:8b"
    assert seen.raw.model == "alias"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_unknown_name(servers: Servers, dialect: Dialect) -> None:
    """With several upstreams, an unknown name is a 404 in the dialect's own shape that lists the names."""
    reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model="nobody"))
    assert reply.status_code == 404
    error = reply.json()["error"]
    message = error if isinstance(error, str) else error["message"]
    assert "nobody" in message
    for name in ("Qwen/Qwen3-8B", "plain", "qwen3:8b", "alias"):
        assert name in message
    if dialect == "messages":
        assert reply.json()["type"] == "error"
        assert error["type"] == "not_found_error"
    assert not servers.vllm.questions + servers.ollama.questions


def test_unknown_in_the_sdks(servers: Servers) -> None:
    """The SDKs raise what they raise for such an answer."""
    with pytest.raises(openai.NotFoundError):
        ask("chat", servers.gateway.url, model="nobody")
    with pytest.raises(anthropic.NotFoundError):
        ask("messages", servers.gateway.url, model="nobody")
    with pytest.raises(ollama.ResponseError) as caught:
        ask("ollama_chat", servers.gateway.url, model="nobody", stream=True)
    assert caught.value.status_code == 404


# What is listed.


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
def test_models(servers: Servers, path: str) -> None:
    """Models of all upstreams and of the file, each entry with OpenAI's and Anthropic's fields."""
    reply = get(servers.gateway.url, path).json()
    assert reply["object"] == "list"
    entries = {entry["id"]: entry for entry in reply["data"]}
    assert {"Qwen/Qwen3-8B", "plain", "qwen3:8b", "alias"} <= entries.keys()
    for entry in entries.values():
        assert entry["object"] == "model"
        assert isinstance(entry["created"], int)
        assert isinstance(entry["owned_by"], str)
        assert entry["type"] == "model"
        assert entry["display_name"]
        assert "T" in entry["created_at"]
    assert {"has_more", "first_id", "last_id"} <= reply.keys()


def test_models_in_the_sdks(servers: Servers) -> None:
    """OpenAI's and Anthropic's SDK list them, and get one by a name with a slash in it."""
    with openai.OpenAI(base_url=servers.gateway.url + "/v1", api_key="x", max_retries=0) as sdk:
        assert "Qwen/Qwen3-8B" in [model.id for model in sdk.models.list()]
        assert sdk.models.retrieve("plain").id == "plain"
        assert sdk.models.retrieve("Qwen/Qwen3-8B").id == "Qwen/Qwen3-8B"
        with pytest.raises(openai.NotFoundError):
            sdk.models.retrieve("nobody")
    with anthropic.Anthropic(base_url=servers.gateway.url, api_key="x", max_retries=0) as other:
        assert "qwen3:8b" in [model.id for model in other.models.list()]
        assert other.models.retrieve("qwen3:8b").display_name


def test_ollamas_lists(servers: Servers) -> None:
    """Ollama's SDK lists and shows them: models of Ollama as it says, others from what is known."""
    client = ollama.Client(servers.gateway.url, verify=False)
    try:
        listed = {model.model: model for model in client.list().models}
        assert {"Qwen/Qwen3-8B", "plain", "qwen3:8b", "alias"} <= listed.keys()
        theirs = client.show("qwen3:8b")
        assert theirs.capabilities == ["completion", "tools", "thinking"]
        assert theirs.modelinfo is not None
        assert theirs.modelinfo["general.architecture"] == "qwen3"
        ours = client.show("Qwen/Qwen3-8B")
        assert ours.capabilities is not None
        assert {"completion", "thinking"} <= set(ours.capabilities)
        assert ours.details is not None
        with pytest.raises(ollama.ResponseError) as caught:
            client.show("nobody")
        assert caught.value.status_code == 404
    finally:
        client._client.close()


def test_show_always_has_its_fields(servers: Servers) -> None:
    """`/api/show` has `model_info` and `details` for every model; old clients ask by `name`."""
    for model in ("Qwen/Qwen3-8B", "plain", "qwen3:8b", "alias"):
        for field in ("model", "name"):
            shown = post(servers.gateway.url, "/api/show", {field: model})
            assert shown.status_code == 200, shown.text
            assert isinstance(shown.json()["model_info"], dict)
            assert isinstance(shown.json()["details"], dict)
            assert isinstance(shown.json()["capabilities"], list)


def test_version(servers: Servers) -> None:
    """`/api/version` answers, since clients of Ollama ask for it first."""
    assert isinstance(get(servers.gateway.url, "/api/version").json()["version"], str)


def test_odd_times_of_models() -> None:
    """A list with times that no date can tell is still a list."""
    with upstream() as server:
        entries = [{"id": str(made), "created": made} for made in (1_700_000_000_000, -(10**20), 10**30, 1.5, None)]
        server.send(json_reply({"data": entries}), "/v1/models")
        with gateway({"upstreams": [{"url": server.url}]}) as running:
            assert len(get(running.url, "/v1/models").json()["data"]) == 5
            assert len(get(running.url, "/api/tags").json()["models"]) == 5


def test_each_model_has_a_digest_of_its_own(servers: Servers) -> None:
    """To Ollama's clients two names with one digest are one model; what an Ollama itself says stays."""
    first, again = (get(servers.gateway.url, "/api/tags").json()["models"] for _ in range(2))
    digests = {model["name"]: model["digest"] for model in first}
    assert digests == {model["name"]: model["digest"] for model in again}
    assert digests.pop("qwen3:8b") == "abc"
    assert len(set(digests.values())) == len(digests) == 3
    assert all(len(digest) == 64 for digest in digests.values())


# Counting tokens.


def test_count_tokens_by_the_upstream(servers: Servers) -> None:
    """Anthropic's SDK gets the count of an upstream that can count."""
    servers.vllm.send(json_reply({"count": 37, "max_model_len": 4096, "tokens": list(range(37))}), "/tokenize")
    with anthropic.Anthropic(base_url=servers.gateway.url, api_key="x", max_retries=0) as sdk:
        counted = sdk.messages.with_raw_response.count_tokens(
            model="plain", system="Be brief.", messages=[{"role": "user", "content": "2+2?"}]
        )
    assert counted.parse().input_tokens == 37
    assert "x-asides-estimate" not in counted.headers
    servers.vllm.replies.pop("/tokenize")


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/messages/count_tokens"])
def test_count_tokens_by_estimate(servers: Servers, path: str) -> None:
    """Where nobody counts, bytes / 4 rounded up, and a header says that it is an estimate."""
    counts = []
    for words in ("x" * 4000, "x" * 4004, "é" * 4000):
        body = {"model": "plain", "messages": [{"role": "user", "content": words}]}
        reply = post(servers.gateway.url, path, body)
        assert reply.headers["x-asides-estimate"] == "tokens"
        counts.append(reply.json()["input_tokens"])
    assert counts[1] - counts[0] == 1
    assert counts[2] - counts[0] == 1000
    assert 1000 <= counts[0] < 1100


# What is passed on.


def test_embeddings(servers: Servers) -> None:
    """OpenAI's and Ollama's embeddings go to the upstream of their model and back as they are."""
    with openai.OpenAI(base_url=servers.gateway.url + "/v1", api_key="x", max_retries=0) as sdk:
        assert sdk.embeddings.create(model="plain", input="x", encoding_format="float").data[0].embedding == [1.5]
    assert servers.vllm.asked[-1].path == "/v1/embeddings"
    assert post(servers.gateway.url, "/embeddings", {"model": "plain", "input": "x"}).status_code == 200
    client = ollama.Client(servers.gateway.url, verify=False)
    try:
        assert client.embed("qwen3:8b", "x").embeddings == [[1.5]]
    finally:
        client._client.close()
    assert servers.ollama.asked[-1].path == "/api/embed"


def test_other_paths(servers: Servers) -> None:
    """Bytes, query, status and headers of a path that nobody here knows pass both ways as they are."""
    body = VLLM_TEXT.encode() + b"\x00\xff"
    headers = {"Content-Type": "application/x-odd", "X-Vendor": "yes"}
    servers.vllm.send(Reply([body[:3], body[3:]], status=207, headers=headers), "/odd/path")
    reply = post(servers.gateway.url, "/odd/path?a=1&b=%2F", b"raw\x00", headers={"content-type": "application/x-odd"})
    assert (reply.status_code, reply.content) == (207, body)
    assert (reply.headers["content-type"], reply.headers["x-vendor"]) == ("application/x-odd", "yes")
    asked = servers.vllm.asked[-1]
    assert (asked.raw, asked.query, asked.headers["content-type"]) == (b"raw\x00", "a=1&b=%2F", "application/x-odd")


def test_a_passed_error(servers: Servers) -> None:
    """A path that the upstream does not know either is its own 404."""
    reply = get(servers.gateway.url, "/nothing/here")
    assert reply.status_code == 404
    assert "no GET /nothing/here here" in reply.text
    assert reply.headers["x-request-id"]


# A single upstream.


def test_one_upstream_takes_any_name() -> None:
    """Flags are enough for a simple set-up; a single upstream is asked for whatever name a client uses."""
    with upstream() as vllm:
        vllm.say("Why.\n</think>\n\nSo.")
        with gateway(None, "--upstream", vllm.url, "--format", "qwen3", "--start", "thinking") as running:
            seen = ask("chat", running.url, model="never heard of", stream=True)
            assert (seen.thinking, seen.text) == ("Why.", "So.")
            assert vllm.question().body["model"] == "never heard of"
            vllm.send(json_reply({"error": {"message": "no such model"}}, 404))
            with pytest.raises(openai.NotFoundError, match="no such model"):
                ask("chat", running.url, model="other")


def test_flags_beat_variables_beat_the_file() -> None:
    """Where a setting is said twice, the flag wins over the variable, and the variable over the file."""
    with upstream() as vllm:
        file = {"upstreams": [{"url": vllm.url}], "defaults": {"format": "harmony", "start": "text"}}
        variables = {"ASIDES_FORMAT": "harmony", "ASIDES_START": "thinking"}
        with gateway(file, "--format", "qwen3", variables=variables) as running:
            vllm.say("A.</think>B.")
            seen = ask("chat", running.url, stream=True)
            assert (seen.thinking, seen.text) == ("A.", "B.")


# Which kind of server it is.


def test_ollama_behind_a_key() -> None:
    """An Ollama that wants a key is recognised with the configured one."""
    with upstream("ollama", ["q"]) as server:

        def version(asked: Asked) -> Reply:
            known = asked.headers.get("authorization") == "Bearer sesame" and asked.headers.get("x-tenant") == "t"
            return json_reply({"version": "0.31.4"}) if known else json_reply({"error": "unauthorized"}, 401)

        server.send(version, "/api/version")
        config = {"upstreams": [{"url": server.url, "key": "sesame", "headers": {"X-Tenant": "t"}}]}
        with gateway(config) as running:
            assert ask("chat", running.url, model="q").text == "It is 4."
            assert server.question().path == "/api/chat"


@pytest.mark.parametrize("answer", [Reply([], before=[Hang()]), json_reply({}, 503)], ids=["busy", "in trouble"])
def test_a_server_that_does_not_say_what_it_is(answer: Reply) -> None:
    """A server that is too busy to say what it is, or in trouble, is asked all the same."""
    with upstream() as server:
        server.send(answer, "/api/version")
        with gateway({"upstreams": [{"url": server.url}], "limits": {"connect": 2.0}}) as running:
            for _ in range(2):
                assert ask("chat", running.url).text == "It is 4."
        assert len([asked for asked in server.asked if asked.path == "/api/version"]) == 1


def test_nobody_is_led_away_by_the_first_question() -> None:
    """An upstream cannot send the gateway to another server when it is asked what it is."""
    with upstream() as server, upstream("ollama") as trap:
        moved = Reply([b""], 307, {"Location": f"{trap.url}/api/version"}, whole=True)
        server.send(moved, "/api/version")
        with gateway({"upstreams": [{"url": server.url}]}) as running:
            assert ask("chat", running.url).text == "It is 4."
        assert not trap.asked
