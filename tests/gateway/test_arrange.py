"""What reaches the upstream is in the order that chat templates want, whichever API the client speaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.clients import get, post
from tests.gateway.servers import Servers, serving
from tests.gateway.upstream import json_reply

BILLING = "x-anthropic-billing-header: cc_version=2.1.197; cc_entrypoint=cli; cch=1f00a;"
CALL = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": f"{BILLING}\nBe brief."},
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", **CALL}, {"id": "b", **CALL}]},
        {"role": "tool", "tool_call_id": "b", "content": "of b"},
        {"role": "tool", "tool_call_id": "a", "content": "of a"},
    ]
}
MESSAGES = {
    "max_tokens": 9,
    "system": [{"type": "text", "text": BILLING}, {"type": "text", "text": "Be brief."}],
    "messages": [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ("a", "b")],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "of b"},
                {"type": "tool_result", "tool_use_id": "a", "content": "of a"},
            ],
        },
    ],
}
RESPONSES = {
    "instructions": f"{BILLING}\nBe brief.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
        {"type": "message", "role": "developer", "content": "Be quick."},
        {"type": "message", "role": "user", "content": "q"},
        *({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"} for id in ("a", "b")),
        *({"type": "function_call_output", "call_id": id, "output": f"of {id}"} for id in ("b", "a")),
    ],
}
OLLAMA = {
    "stream": False,
    "messages": [
        {"role": "system", "content": f"{BILLING}\nBe brief."},
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": id, "function": {"name": "f", "arguments": {}}} for id in ("a", "b")],
        },
        {"role": "tool", "tool_call_id": "b", "content": "of b"},
        {"role": "tool", "tool_call_id": "a", "content": "of a"},
    ],
}
REQUESTS: dict[str, tuple[dict[str, Any], str]] = {
    "/v1/chat/completions": (CHAT, "Be brief.\n\nBe kind."),
    "/v1/messages": (MESSAGES, "Be brief."),
    "/v1/responses": (RESPONSES, "Be brief.\n\nBe kind.\n\nBe quick."),
    "/api/chat": (OLLAMA, "Be brief.\n\nBe kind."),
}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One model that is split, one whose bytes pass."""
    with serving(models={"bytes": {"format": "none"}}, log={"level": "debug"}) as found:
        yield found


@pytest.mark.parametrize("path", REQUESTS)
def test_every_api(servers: Servers, path: str) -> None:
    """Results in the order of the calls, one message of instructions, no billing line."""
    body, instructions = REQUESTS[path]
    reply = post(servers.gateway.url, path, {"model": "m", **body})
    assert reply.status_code == 200, reply.text
    sent = servers.upstream.question().body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "tool"]
    assert sent[0]["content"] == instructions
    assert [(message["tool_call_id"], message["content"]) for message in sent[3:]] == [("a", "of a"), ("b", "of b")]


def test_bodies_that_pass_as_they_are(servers: Servers) -> None:
    """With `format: none` the same; all else stays, byte for byte where nothing is to be changed."""
    odd = {"role": "user", "content": "q", "vendor": [1, None], "reasoning": "kept"}
    messages = [odd if message["role"] == "user" else message for message in CHAT["messages"]]
    post(servers.gateway.url, "/v1/chat/completions", {"model": "bytes", "messages": messages, "x": {"y": None}})
    body = servers.upstream.question().body
    assert body["messages"] == [
        {"role": "system", "content": "Be brief.\n\nBe kind."},
        odd,
        messages[3],
        messages[5],
        messages[4],
    ]
    assert body["x"] == {"y": None}
    untouched = json.dumps({"model": "bytes", "messages": [odd], "x": {"y": None}}, indent=3).encode()
    post(servers.gateway.url, "/v1/chat/completions", untouched)
    assert servers.upstream.question().raw == untouched
    in_order = json.dumps({"model": "bytes", "messages": body["messages"]}, indent=3).encode()
    post(servers.gateway.url, "/v1/chat/completions", in_order)
    assert servers.upstream.question().raw == in_order
    # What we cannot read is the upstream's to refuse.
    odd_body = json.dumps({"model": "bytes", "messages": [{"role": "system"}, {"role": "system"}, 3]}).encode()
    servers.upstream.send(json_reply({"error": {"message": "no"}}, 400))
    assert post(servers.gateway.url, "/v1/chat/completions", odd_body).status_code == 400
    assert servers.upstream.asked[-1].raw == odd_body


def test_it_is_counted_and_logged(servers: Servers) -> None:
    """By what was changed."""

    def figures() -> dict[str, float]:
        lines = get(servers.gateway.url, "/metrics").text.splitlines()
        found = [line.split(" ") for line in lines if line.startswith("asides_requests_arranged_total{")]
        return {name.split('"')[1]: float(value) for name, value in found}

    before = figures()
    reply = post(servers.gateway.url, "/v1/messages", {"model": "m", **MESSAGES})
    after = figures()
    assert {name: after[name] - before.get(name, 0) for name in after} == {"billing": 1, "results": 1, "system": 0}
    line = servers.gateway.wait_for_record(lambda record: reply.headers["x-request-id"] in str(record))
    assert line["arranged"] == ["billing", "results"]


def test_a_thought_is_found_though_the_line_differs(servers: Servers) -> None:
    """The line is no part of the conversation: with another one in the next request, dropped thinking is put back."""
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    tool = {"name": "f", "input_schema": {"type": "object"}}
    servers.upstream.say(f"<think>Why not.</think>\n\n{call}")
    asked = {"model": "m", "max_tokens": 9, "tools": [tool]}
    first = {"role": "user", "content": "q"}
    system = [{"type": "text", "text": BILLING}, {"type": "text", "text": "S"}]
    post(servers.gateway.url, "/v1/messages", {**asked, "system": system, "messages": [first]})
    servers.upstream.say("Done.")
    system = [{"type": "text", "text": BILLING.replace("1f00a", "2b33c")}, {"type": "text", "text": "S"}]
    turns = [
        first,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "its_own", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "its_own", "content": "r"}]},
    ]
    post(servers.gateway.url, "/v1/messages", {**asked, "system": system, "messages": turns})
    assert servers.upstream.question().body["messages"][2]["reasoning_content"] == "Why not."
