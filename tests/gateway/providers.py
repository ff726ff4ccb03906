"""Scripted providers that insist on what the real ones insist on: what of a thought must come back, where, unchanged.

Each is a small HTTP server in a thread. A conversation has four requests: a question, which is answered by a thought, a
few words and two calls at once; their results; and two more questions. What a provider must be sent back is proved by a
hash over it, so that nothing has to be remembered, and a request that breaks a rule is refused in the provider's words.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

THOUGHTS = (
    "I need two facts.\nBoth at once.",
    "Two and two make four.",
    "Asked again: still four.",
    "The end is near.",
)
TEXTS = ("Let me look.", "It is 4.", "Still 4.", "Bye.")
CALLS = (("call_a1", "find", {"query": "a", "limit": 1}), ("call_b2", "find", {"query": "b"}))
KEY = "sk-upstream"
Body = dict[str, Any]


class Broken(Exception):
    """A request breaks a rule of the provider."""

    def __init__(self, message: str, status: int = 400, code: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def prove(*parts: Any) -> str:
    """What only the provider could have made of these."""
    return "sig_" + hashlib.sha256(json.dumps(["secret", *parts], sort_keys=True).encode()).hexdigest()


class Provider:
    """What is common to all: which step of the conversation a request is, and how the answer is cut into events."""

    name = ""
    kind = "openai"
    path = "/v1/chat/completions"
    model = "m-1"

    def __init__(self) -> None:
        self.requests: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.refused: list[str] = []

    def check_headers(self, headers: dict[str, str]) -> None:
        """Refuse a request without the key."""
        if headers.get("authorization") != f"Bearer {KEY}":
            raise Broken("no key", 401)

    def step(self, body: Body) -> int:
        """How many turns of the assistant the request has."""
        return sum(message["role"] == "assistant" for message in body["messages"])

    def check(self, body: Body) -> None:
        """Refuse what the provider refuses."""

    def whole(self, body: Body, step: int) -> Body:
        """The reply in one piece."""
        raise NotImplementedError

    def events(self, body: Body, step: int) -> Iterator[tuple[str, Any]]:
        """The reply as events: their names and data."""
        raise NotImplementedError

    def error(self, broken: Broken) -> Body:
        """A refusal in the provider's shape."""
        return {"error": {"message": str(broken), "type": "invalid_request_error", "code": broken.code or None}}

    def models(self) -> Body:
        """The list of models."""
        return {"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": self.name}]}


# Chat completions.


class Groq(Provider):
    """Thoughts in `reasoning`; nothing has to come back."""

    name = "groq"
    field = "reasoning"

    def extra(self, step: int) -> Body:
        """More fields of the message."""
        return {}

    def extra_events(self, step: int) -> list[Body]:
        """The same in a stream."""
        return [self.extra(step)] if self.extra(step) else []

    def calls(self, step: int) -> list[Body]:
        """The calls of a step."""
        return [
            {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for id, name, arguments in (CALLS if step == 0 else ())
        ]

    def whole(self, body: Body, step: int) -> Body:
        message = {"role": "assistant", "content": TEXTS[step], self.field: THOUGHTS[step], **self.extra(step)}
        if calls := self.calls(step):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return {"id": f"gen-{step}", "object": "chat.completion", "model": self.model, "choices": [choice]}

    def events(self, body: Body, step: int) -> Iterator[tuple[str, Any]]:
        thought, text, calls = THOUGHTS[step], TEXTS[step], self.calls(step)
        deltas: list[Body] = [{"role": "assistant", "content": ""}]
        deltas += [{self.field: thought[at : at + 7]} for at in range(0, len(thought), 7)]
        deltas += self.extra_events(step)
        deltas += [{"content": text[:4]}, {"content": text[4:]}]
        deltas += [{"tool_calls": [{"index": number, **call}]} for number, call in enumerate(calls)]
        for delta in deltas:
            yield "", self._chunk(step, {"delta": delta, "finish_reason": None})
        yield "", self._chunk(step, {"delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
        yield "", "[DONE]"

    def _chunk(self, step: int, choice: Body) -> Body:
        fields = {"id": f"gen-{step}", "object": "chat.completion.chunk", "model": self.model}
        return {**fields, "choices": [{"index": 0, **choice}]}

    def check(self, body: Body) -> None:
        known: set[str] = set()
        for number, message in enumerate(body["messages"]):
            if message["role"] == "tool" and message["tool_call_id"] not in known:
                raise Broken(f"messages[{number}]: no such call")
            known |= {call["id"] for call in message.get("tool_calls") or ()}
            if message["role"] == "assistant":
                self.check_turn(number, message, body)

    def check_turn(self, number: int, message: Body, body: Body) -> None:
        """Refuse an earlier turn that lacks what must come back."""


class DeepSeek(Groq):
    """Every turn must have `reasoning_content` once a request has tools; an empty one will do."""

    name = "deepseek"
    field = "reasoning_content"
    model = "deepseek-v4-pro"

    def check_turn(self, number: int, message: Body, body: Body) -> None:
        if body.get("tools") and not isinstance(message.get("reasoning_content"), str):
            raise Broken("The `reasoning_content` in the thinking mode must be passed back to the API.")


class OpenRouterClaude(Groq):
    """`reasoning_details` must come back unchanged with calls; the text of a stream comes before its signature."""

    name = "openrouter-claude"
    model = "anthropic/claude-sonnet-5.5"

    def details(self, step: int) -> list[Body]:
        """What must come back."""
        text = THOUGHTS[step]
        kind = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
        return [{**kind, "text": text, "signature": prove(text)}]

    def extra(self, step: int) -> Body:
        return {"reasoning_details": self.details(step)}

    def extra_events(self, step: int) -> list[Body]:
        whole = self.details(step)[0]
        kind = {name: whole[name] for name in ("type", "format", "index")}
        text = whole["text"]
        pieces = [{**kind, "text": text[:5]}, {**kind, "text": text[5:]}, {**kind, "signature": whole["signature"]}]
        return [{"reasoning_details": [piece]} for piece in pieces]

    def check_turn(self, number: int, message: Body, body: Body) -> None:
        step = sum(each["role"] == "assistant" for each in body["messages"][:number])
        if message.get("tool_calls") and message.get("reasoning_details") != self.details(step):
            raise Broken(f"messages[{number}].reasoning_details: must be passed back unchanged")


class OpenRouterGpt(OpenRouterClaude):
    """The same with a summary and an encrypted detail."""

    name = "openrouter-gpt"
    model = "openai/gpt-6"

    def details(self, step: int) -> list[Body]:
        text = THOUGHTS[step]
        kind = {"format": "openai-responses-v1"}
        return [
            {"type": "reasoning.summary", "summary": text, **kind, "index": 0},
            {"type": "reasoning.encrypted", "data": prove(text), "id": f"rs_{step}", **kind, "index": 1},
        ]

    def extra_events(self, step: int) -> list[Body]:
        first, second = self.details(step)
        text = first["summary"]
        pieces = [{**first, "summary": text[:5]}, {**first, "summary": text[5:]}, second]
        return [{"reasoning_details": [piece]} for piece in pieces]


class Gemini(Groq):
    """Its OpenAI API: the first of parallel calls has a signature, which must come back with it."""

    name = "gemini"
    field = "reasoning_content"
    model = "gemini-3-pro"

    def calls(self, step: int) -> list[Body]:
        calls = super().calls(step)
        if calls:
            calls[0]["extra_content"] = {"google": {"thought_signature": prove(THOUGHTS[step])}}
        return calls

    def check_turn(self, number: int, message: Body, body: Body) -> None:
        for call in (message.get("tool_calls") or ())[:1]:
            signature = call.get("extra_content", {}).get("google", {}).get("thought_signature")
            if not signature:
                raise Broken("Function call is missing a thought_signature in functionCall parts.")
            if signature not in (prove(THOUGHTS[0]), "skip_thought_signature_validator"):
                raise Broken("Thought signature is not valid.")


# Messages.


class Anthropic(Provider):
    """Thoughts are signed blocks, first in their turn and unchanged while calls are open; a signature must be true."""

    name = "anthropic"
    kind = "anthropic"
    path = "/v1/messages"
    model = "claude-sonnet-4-6"
    bound = False
    """Whether a signature is bound to everything before its block."""

    def check_headers(self, headers: dict[str, str]) -> None:
        if headers.get("x-api-key") != KEY or "authorization" in headers:
            raise Broken("invalid x-api-key", 401)
        if not headers.get("anthropic-version"):
            raise Broken("anthropic-version: header is required")

    def error(self, broken: Broken) -> Body:
        kind = "authentication_error" if broken.status == 401 else "invalid_request_error"
        return {"type": "error", "error": {"type": kind, "message": str(broken)}, "request_id": "req_1"}

    def models(self) -> Body:
        entry = {"type": "model", "id": self.model, "display_name": "C", "created_at": "2026-02-01T00:00:00Z"}
        return {"data": [entry], "has_more": False, "first_id": self.model, "last_id": self.model}

    def signature(self, thought: str, body: Body, messages: list[Body]) -> str:
        """The signature of a thought behind these messages."""
        before = [body.get("system"), body.get("tools"), _as_blocks(messages)] if self.bound else []
        return prove(self.model, thought, *map(_without_marks, before))

    def check(self, body: Body) -> None:
        if not isinstance(body.get("max_tokens"), int):
            raise Broken("max_tokens: Field required")
        messages = body["messages"]
        for number, (message, after) in enumerate(zip(messages, [*messages[1:], None], strict=True)):
            # Neighbours of the user are one turn to the provider; of the assistant, a turn would be torn apart.
            if after is not None and message["role"] == after["role"] == "assistant":
                raise Broken(f"messages: two turns of the assistant, at {number}")
            if message["role"] == "assistant":
                self._check_turn(body, number, message, after)

    def _check_turn(self, body: Body, number: int, message: Body, after: Body | None) -> None:
        blocks = message["content"] if isinstance(message["content"], list) else []
        ids = {block["id"] for block in blocks if block["type"] == "tool_use"}
        place = f"messages.{number}.content.0"
        if ids:
            content = after["content"] if after is not None else ()
            if ids != {block["tool_use_id"] for block in content if block["type"] == "tool_result"}:
                raise Broken(f"messages.{number}: `tool_use` ids were found without `tool_result` blocks")
            # Only while calls are open: after a new question the provider takes a turn without its thoughts.
            thinks = body.get("thinking", {}).get("type") != "disabled"
            last = number + 2 == len(body["messages"]) and all(block["type"] == "tool_result" for block in content)
            if thinks and last and not self.drops(body) and blocks[0]["type"] not in ("thinking", "redacted_thinking"):
                raise Broken(
                    f"{place}.type: Expected `thinking` or `redacted_thinking`, but found `{blocks[0]['type']}`"
                )
        for block in blocks:
            if block["type"] == "thinking" and not self.drops(body):
                signed = self.signature(block["thinking"], body, body["messages"][:number])
                if block["signature"] != signed:
                    why = (
                        "bound to a different conversation" if self.bound else "Invalid `signature` in `thinking` block"
                    )
                    raise Broken(f"{place}: {why}")
            if block["type"] == "redacted_thinking" and block["data"] != prove("redacted"):
                raise Broken(f"{place}: Invalid `data` in `redacted_thinking` block")

    def drops(self, body: Body) -> bool:
        """Whether it is told to leave out thoughts that are bound to another conversation."""
        return False

    def blocks(self, body: Body, step: int) -> list[Body]:
        """The blocks of a reply."""
        thought = THOUGHTS[step]
        found: list[Body] = [
            {"type": "thinking", "thinking": thought, "signature": self.signature(thought, body, body["messages"])}
        ]
        if step == 0 and not self.bound:
            found.append({"type": "redacted_thinking", "data": prove("redacted")})
        found.append({"type": "text", "text": TEXTS[step]})
        return found + [
            {"type": "tool_use", "id": id, "name": name, "input": arguments}
            for id, name, arguments in (CALLS if step == 0 else ())
        ]

    usage: Body = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}  # noqa: RUF012

    def whole(self, body: Body, step: int) -> Body:
        return {
            "id": f"msg_{step}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": self.blocks(body, step),
            "stop_reason": "tool_use" if step == 0 else "end_turn",
            "stop_sequence": None,
            "usage": {**self.usage, "output_tokens": 20, "output_tokens_details": {"thinking_tokens": 8}},
        }

    def events(self, body: Body, step: int) -> Iterator[tuple[str, Any]]:
        whole = self.whole(body, step)
        start = {**whole, "content": [], "stop_reason": None, "usage": {**self.usage, "output_tokens": 1}}
        yield "message_start", {"type": "message_start", "message": start}
        yield "ping", {"type": "ping"}
        for index, block in enumerate(whole["content"]):
            empty, deltas = _cut_block(block)
            yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
            for delta in deltas:
                yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
        end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        usage = {"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 8}}
        yield "message_delta", {"type": "message_delta", "delta": end, "usage": usage}
        yield "message_stop", {"type": "message_stop"}


class AnthropicBound(Anthropic):
    """The newest models: a thought is bound to everything before it, none can be switched off, and no call forced."""

    name = "anthropic-bound"
    model = "claude-opus-5-5"
    bound = True

    def check(self, body: Body) -> None:
        if body.get("thinking", {}).get("type") == "disabled":
            raise Broken("thinking.type: this model always thinks")
        if body.get("tool_choice", {}).get("type") in ("any", "tool"):
            raise Broken("tool_choice: no tool can be forced while the model thinks")
        beta = self.headers[-1].get("anthropic-beta", "")
        if "block_binding" in body.get("thinking", {}) and "thinking-binding-controls-2026-08-01" not in beta:
            raise Broken("thinking.block_binding: Extra inputs are not permitted")
        super().check(body)

    def drops(self, body: Body) -> bool:
        binding = body.get("thinking", {}).get("block_binding", {})
        return bool(binding.get("prefix_mismatch_behavior") == "drop_block")

    def whole(self, body: Body, step: int) -> Body:
        dropped: list[Body] = []
        for number, message in enumerate(body["messages"]):
            for place, block in enumerate(message["content"] if isinstance(message["content"], list) else ()):
                if block["type"] == "thinking":
                    signed = self.signature(block["thinking"], body, body["messages"][:number])
                    if block["signature"] != signed:
                        path = f"messages.{number}.content.{place}"
                        dropped.append({"type": "thinking_dropped", "path": path, "reason": "prefix_mismatch"})
        whole = super().whole(body, step)
        return whole | ({"input_transformations": dropped} if "block_binding" in body.get("thinking", {}) else {})


def _without_marks(value: Any) -> Any:
    """Without the marks of what shall be cached: clients move them, and they are no part of what is said."""
    if isinstance(value, list):
        return [_without_marks(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_marks(each) for name, each in value.items() if name != "cache_control"}
    return value


def _as_blocks(messages: list[Body]) -> list[Body]:
    """Messages with every content as blocks: a string is a text block to the provider."""
    return [
        {
            "role": message["role"],
            "content": [{"type": "text", "text": message["content"]}]
            if isinstance(message["content"], str)
            else message["content"],
        }
        for message in messages
    ]


def _cut_block(block: Body) -> tuple[Body, list[Body]]:
    match block["type"]:
        case "thinking":
            text = block["thinking"]
            pieces = [{"type": "thinking_delta", "thinking": text[at : at + 7]} for at in range(0, len(text), 7)]
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*pieces, signed]
        case "text":
            text = block["text"]
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": part} for part in (text[:3], text[3:])]
        case "tool_use":
            text = json.dumps(block["input"])
            pieces = [{"type": "input_json_delta", "partial_json": part} for part in ("", text[:6], text[6:])]
            return {**block, "input": {}}, pieces
    return block, []


# Responses.


class Responses(Provider):
    """Reasoning items go back whole before their calls; an id alone is not known, for nothing is stored."""

    name = "responses"
    kind = "responses"
    path = "/v1/responses"
    model = "gpt-6"

    paired = True
    """Whether no call is taken without the thought before it. The API's own words name the ids of both items."""

    def step(self, body: Body) -> int:
        return sum(item.get("role") == "assistant" for item in body["input"])

    def check(self, body: Body) -> None:
        if body.get("store") is not False or "reasoning.encrypted_content" not in (body.get("include") or ()):
            raise Broken("this script wants store: false, and reasoning.encrypted_content to be included")
        for name in ("stop", "seed", "n", "previous_response_id"):
            if name in body:
                raise Broken(f"Unknown parameter: '{name}'.")
        reasoned, calls = False, set()
        for item in body["input"]:
            kind = item.get("type", "message")
            if kind == "reasoning":
                if not item.get("encrypted_content"):
                    raise Broken(f"Item with id '{item.get('id')}' not found. Items are not persisted", 404)
                text = "".join(part["text"] for part in item["summary"])
                if item["encrypted_content"] != prove(self.model, text):
                    message = "The encrypted content could not be verified."
                    raise Broken(message, code="invalid_encrypted_content")
                reasoned = True
            elif kind == "function_call":
                calls.add(item["call_id"])
                if not reasoned and (self.paired or item.get("id")):
                    raise Broken("Item of type 'function_call' was provided without its required 'reasoning' item")
            elif kind == "function_call_output":
                if item["call_id"] not in calls:
                    raise Broken(f"No tool call found for function call output with call_id {item['call_id']}.")
            elif item["role"] != "assistant":
                reasoned = False

    def output(self, step: int) -> list[Body]:
        """The items of a reply."""
        thought = THOUGHTS[step]
        return [
            {
                "id": f"rs_{step}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": thought}],
                "encrypted_content": prove(self.model, thought),
            },
            {
                "id": f"msg_{step}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": TEXTS[step], "annotations": []}],
            },
            *(
                {
                    "id": f"fc_{id}",
                    "type": "function_call",
                    "call_id": id,
                    "name": name,
                    "arguments": json.dumps(arguments),
                    "status": "completed",
                }
                for id, name, arguments in (CALLS if step == 0 else ())
            ),
        ]

    def whole(self, body: Body, step: int) -> Body:
        usage = {
            "input_tokens": 17,
            "input_tokens_details": {"cached_tokens": 5},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 8},
            "total_tokens": 37,
        }
        return {
            "id": f"resp_{step}",
            "object": "response",
            "created_at": 1_790_000_000,
            "status": "completed",
            "model": self.model,
            "output": self.output(step),
            "usage": usage,
        }

    def events(self, body: Body, step: int) -> Iterator[tuple[str, Any]]:
        whole = self.whole(body, step)
        number = 0

        def event(kind: str, **fields: Any) -> tuple[str, Any]:
            nonlocal number
            number += 1
            return kind, {"type": kind, "sequence_number": number - 1, **fields}

        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        for index, item in enumerate(whole["output"]):
            place = {"item_id": item["id"], "output_index": index}
            empty = {"summary": [], "content": [], "arguments": ""}
            started = {name: empty.get(name, value) for name, value in item.items() if name != "encrypted_content"}
            yield event("response.output_item.added", output_index=index, item=started)
            if item["type"] == "reasoning":
                text = item["summary"][0]["text"]
                for part in (text[:9], text[9:]):
                    yield event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=part)
                yield event("response.reasoning_summary_text.done", **place, summary_index=0, text=text)
            elif item["type"] == "message":
                text = item["content"][0]["text"]
                for part in (text[:3], text[3:]):
                    yield event("response.output_text.delta", **place, content_index=0, delta=part, logprobs=[])
                yield event("response.output_text.done", **place, content_index=0, text=text, logprobs=[])
            else:
                text = item["arguments"]
                for part in (text[:6], text[6:]):
                    yield event("response.function_call_arguments.delta", **place, delta=part)
                yield event("response.function_call_arguments.done", **place, arguments=text)
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=whole)


class ResponsesPairedById(Responses):
    """A call needs its thought only where it has the id of its item: so a conversation of elsewhere can go on."""

    name = "responses-by-id"
    paired = False


def check_append_only(requests: list[Body]) -> None:
    """That each request begins with all that the one before it sent."""
    for before, after in pairwise(requests):
        turns = "input" if "input" in before else "messages"
        assert after[turns][: len(before[turns])] == before[turns]
        assert len(after[turns]) > len(before[turns])
        others = [{name: value for name, value in body.items() if name != turns} for body in (before, after)]
        assert others[0] == others[1]


PROVIDERS: tuple[type[Provider], ...] = (
    DeepSeek,
    Groq,
    OpenRouterClaude,
    OpenRouterGpt,
    Gemini,
    Anthropic,
    AnthropicBound,
    Responses,
)


class Served:
    """A provider while it serves."""

    def __init__(self, provider: Provider, url: str) -> None:
        self.provider = provider
        self.url = url

    @property
    def upstream(self) -> dict[str, Any]:
        """It as an upstream of a gateway."""
        return {"url": self.url, "name": self.provider.name, "kind": self.provider.kind, "key": KEY}


@contextmanager
def provider(kind: type[Provider]) -> Iterator[Served]:
    """A provider that serves as long as the block."""
    script = kind()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Nobody reads it."""

        def do_GET(self) -> None:
            """The list of models."""
            if self.path.partition("?")[0] == "/v1/models":
                self._send(200, script.models())
            else:
                self._send(404, {"error": {"message": "not found"}})

        def do_POST(self) -> None:
            """A reply, or why there is none."""
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            given = {name.lower(): value for name, value in self.headers.items()}
            script.requests.append(body)
            script.headers.append(given)
            try:
                if self.path != script.path:
                    raise Broken(f"no such path: {self.path}", 404)
                script.check_headers(given)
                script.check(body)
            except Broken as broken:
                script.refused.append(str(broken))
                self._send(broken.status, script.error(broken))
                return
            step = script.step(body)
            if not body.get("stream"):
                self._send(200, script.whole(body, step))
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for name, data in script.events(body, step):
                head = f"event: {name}\n" if name else ""
                self._chunk(f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())
            self._chunk(b"")

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

        def _send(self, status: int, data: Body) -> None:
            encoded = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(encoded)))
            self.send_header("anthropic-ratelimit-requests-remaining", "7")
            self.end_headers()
            self.wfile.write(encoded)

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing of a gateway that has read enough."""

    with Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield Served(script, f"http://127.0.0.1:{server.server_address[1]}")
        finally:
            server.shutdown()
            thread.join()
