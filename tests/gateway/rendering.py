"""Makes a scripted server say which prompt it renders, as vLLM, SGLang and llama.cpp do: with a real chat template."""

from __future__ import annotations

import re
from typing import Any

import jinja2.sandbox

from asides._engine.vocabulary import BYTE_LEVEL
from tests.gateway.upstream import Asked, Reply, Upstream, json_reply

CLOSED = "<think>\n\n</think>\n\n"
TEMPLATE = (
    "<|im_start|>system\nThink between <think> and </think>.{% if tools %} There are tools.{% endif %}<|im_end|>\n"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}" + CLOSED + "{% else %}<think>\n{% endif %}"
)
"""Opens the thought, unless it is switched off; its own words mention the tags."""
PATHS = {"vllm": "/tokenize", "sglang": "/tokenize", "llamacpp": "/apply-template"}
_TOKEN = re.compile(r"<[^<>\s]+>|\s?\w+|.", re.DOTALL)
_LETTERS = {byte: letter for letter, byte in BYTE_LEVEL.items()}


def rendered(body: dict[str, Any], template: str = TEMPLATE) -> str:
    """The prompt that a server makes of a body."""
    made = jinja2.sandbox.ImmutableSandboxedEnvironment().from_string(template)
    return made.render(messages=body["messages"], tools=body.get("tools"), **body.get("chat_template_kwargs", {}))


def as_listed(token: str) -> str:
    """A token as a byte-level vocabulary holds it; special ones as they are."""
    return token if token.startswith("<") else "".join(_LETTERS[byte] for byte in token.encode())


def render_prompts(server: Upstream, template: str = TEMPLATE) -> None:
    """From now on the server answers what it is asked about its prompts."""
    tokens: list[str] = []

    def ids(words: list[str]) -> list[int]:
        tokens.extend(word for word in dict.fromkeys(words) if word not in tokens)
        return [tokens.index(word) for word in words]

    def tokenize(asked: Asked) -> Reply:
        words: list[str] = _TOKEN.findall(rendered(asked.body, template))
        listed = list(map(as_listed, words)) if asked.body.get("return_token_strs") else None
        return json_reply({"count": len(words), "max_model_len": 4096, "tokens": ids(words), "token_strs": listed})

    def detokenize(asked: Asked) -> Reply:
        assert asked.body["skip_special_tokens"] is False
        return json_reply({"text": "".join(tokens[id] for id in asked.body["tokens"])})

    if server.owner == "llamacpp":
        server.send(lambda asked: json_reply({"prompt": rendered(asked.body, template)}), "/apply-template")
        return
    server.send(tokenize, "/tokenize")
    if server.owner == "sglang":
        server.send(detokenize, "/detokenize")


def asked_prompts(server: Upstream) -> list[Asked]:
    """The questions about prompts that the server was asked."""
    return [asked for asked in list(server.asked) if asked.path in PATHS.values()]
