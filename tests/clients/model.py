"""The model behind the gateway while real clients are driven: it writes as Qwen3 does, markers and calls as plain text.

A question names its case (`case-plain`, `case-calls`, ...), so that one server serves every client at once and what
reached it can be told apart afterwards. A broken one sends other errors, and output that no client can read by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.gateway import speech
from tests.gateway.speech import Speech
from tests.gateway.upstream import JSON, SSE, Asked, Reply, Upstream, cut, json_reply, upstream

MODEL = "qwen3-test"
CASES = ("plain", "calls", "structured", "limited", "refused")
THOUGHT = "Two and two: I count on my fingers, <b>carefully</b>."
ANSWER = "It is **4**, as always."
CALLS_THOUGHT = "Both cities at once, that saves a turn."
LAST_THOUGHT = "Both results are here."
LAST_ANSWER = "Rome has 3 million people, Oslo has 1."
VALUE_THOUGHT = 'Perhaps {"city": "Oslo", "people": 1}? No.'
VALUE = {"city": "Rome", "people": 3}
LIMITED = "the model has too much to do"
REFUSED = "the prompt is longer than the model's window"
Call = tuple[str, dict[str, Any]]
FIND: tuple[Call, ...] = (("find", {"query": "Rome"}), ("find", {"query": "Oslo"}))
"""The calls of clients whose tools a test may choose; `find` answers with what `found` says."""


def question(case: str) -> str:
    """What a client is to ask."""
    return f"This is case-{case}. Answer it as ever."


def found(query: str) -> str:
    """The result of the tool `find`."""
    return f"{query}: {3 if query == 'Rome' else 1} million"


def _thought(thought: str, rest: str, opener: str = "<think>\n") -> str:
    return f"{opener}{thought}\n</think>\n\n{rest}"


def _written(calls: Sequence[Call]) -> str:
    shown = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
    return "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in shown)


class Model:
    """A scripted model and its server."""

    def __init__(self, server: Upstream, broken: bool) -> None:
        self.server = server
        self.broken = broken
        self.calls: Sequence[Call] = FIND
        """What it calls: clients that are programs have tools of their own."""
        server.send(self._reply, "/v1/chat/completions")

    def asked(self, case: str) -> list[dict[str, Any]]:
        """The bodies of the requests of a case, in order, without those that only look for a title."""
        bodies = [asked.body for asked in self.server.questions]
        return [body for body in bodies if case_of(body) == case]

    def _reply(self, asked: Asked) -> Reply:
        body = asked.body
        case = case_of(body)
        if case in ("limited", "refused"):
            return self._refusal(case)
        said = Speech(self._words(case, body))
        if not body.get("stream"):
            return Reply([speech.chat_whole(said, body)], headers=JSON, whole=True)
        return Reply(cut(speech.chat_stream(said, body), 200), headers=SSE)

    def _refusal(self, case: str) -> Reply:
        # Clients that try again do so at once, instead of waiting for minutes.
        again = {"Retry_After_Ms": "10"}
        if self.broken:
            error = {"message": "out of order", "type": "server_error", "code": "out_of_order"}
            return json_reply({"error": error}, 500, **again)
        if case == "limited":
            error = {"message": LIMITED, "type": "rate_limit_error", "code": "rate_limit_exceeded"}
            return json_reply({"error": error}, 429, **again)
        error = {"message": REFUSED, "type": "invalid_request_error", "code": "context_length_exceeded"}
        return json_reply({"error": error}, 400)

    def _words(self, case: str, body: dict[str, Any]) -> str:
        answered = any(message["role"] == "tool" for message in body["messages"])
        names = {tool["function"]["name"] for tool in body.get("tools") or ()}
        if case == "calls" and names >= {name for name, _ in self.calls}:
            if answered:
                return _thought(LAST_THOUGHT, LAST_ANSWER)
            return _thought(CALLS_THOUGHT, _written(self.calls))
        if case == "structured" and not answered:
            # A broken one leaves the opener out, as behind a prompt that has it: some clients read whole pairs.
            opener = "" if self.broken else "<think>\n"
            # Some clients have no field for a schema, or prefer a tool whose arguments are the value.
            filling = [tool for tool in body.get("tools") or () if "people" in json.dumps(tool["function"])]
            if filling and "response_format" not in body:
                return _thought(VALUE_THOUGHT, _written([(filling[0]["function"]["name"], VALUE)]), opener)
            return _thought(VALUE_THOUGHT, json.dumps(VALUE), opener)
        return _thought(THOUGHT, ANSWER)


def case_of(body: dict[str, Any]) -> str:
    """The case that a request belongs to: the one that the conversation names first."""
    shown = json.dumps([message for message in body["messages"] if message["role"] == "user"])
    places = {shown.find(f"case-{case}."): case for case in CASES}
    return next((places[place] for place in sorted(places) if place >= 0), "")


@contextmanager
def model(broken: bool = False) -> Iterator[Model]:
    """A model that is served as long as the block."""
    with upstream(models=[MODEL]) as server:
        yield Model(server, broken)
