"""The clients that are driven, each in each API that it speaks: versions, tools, errors, and limits of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tests.clients.model import FIND, LIMITED, REFUSED, Call

CHAT, RESPONSES, MESSAGES, OLLAMA = "Chat Completions", "Responses", "Messages", "Ollama"


@dataclass(frozen=True)
class Client:
    """One client in one API."""

    name: str
    api: str
    driver: str
    """Where its driver is: module and name."""
    packages: tuple[str, ...]
    """The packages whose versions the table names, the first of them the client's own."""
    errors: tuple[str, str] = ("", "")
    """The classes of its own errors: too many requests, a request that is refused. Programs have none."""
    messages: tuple[str, str] = (LIMITED, REFUSED)
    """What their messages hold."""
    calls: Sequence[Call] = FIND
    limits: Mapping[str, str] = field(default_factory=dict)
    """By column, what the client itself cannot do: the cell is then expected to fail, and this is its note."""
    npm: str = ""
    """The folder of `NPM` that it is installed into; empty for a Python package."""


NPM: dict[str, dict[str, str]] = {
    "codex": {"@openai/codex": "0.166.0"},
    "claude-code": {"@anthropic-ai/claude-code": "2.1.325"},
    "opencode": {"opencode-ai": "1.18.33"},
    "ai-sdk": {
        "ai": "7.0.169",
        "@ai-sdk/openai": "4.0.114",
        "@ai-sdk/openai-compatible": "3.0.90",
        "@ai-sdk/anthropic": "4.0.102",
        "zod": "4.6.7",
    },
}
"""By folder, the packages from npm, pinned. Python packages are pinned in `requirements.txt`."""
OPENAI_ERRORS = ("RateLimitError", "BadRequestError")


def _sdk(name: str, api: str, driver: str, errors: tuple[str, str] = OPENAI_ERRORS) -> Client:
    return Client(name, api, f"tests.clients.sdks:{driver}", (name,), errors)


SDKS = (
    _sdk("openai", CHAT, "OpenAIChat"),
    _sdk("openai", RESPONSES, "OpenAIResponses"),
    _sdk("anthropic", MESSAGES, "Anthropic"),
    _sdk("ollama", OLLAMA, "Ollama", ("ResponseError", "ResponseError")),
)


def _program(name: str, api: str, driver: str, folder: str, call: str, argument: str, **limits: str) -> Client:
    calls = [(call, {argument: f"cat {city}.txt"}) for city in ("rome", "oslo")]
    package = next(iter(NPM[folder]))
    named = {column.replace("_", " "): reason for column, reason in limits.items()}
    return Client(name, api, f"tests.clients.programs:{driver}", (package,), calls=calls, limits=named, npm=folder)


def _opencode(api: str, driver: str) -> Client:
    reason = "`opencode run` takes no schema."
    return _program("opencode", api, driver, "opencode", "bash", "command", structured_output=reason)


def _ai_sdk(api: str, package: str, provider: str) -> Client:
    errors = ("APICallError", "APICallError")
    return Client("AI SDK", api, f"ai_sdk.mjs:{provider}", ("ai", package), errors, npm="ai-sdk")


PROGRAMS = (
    # Of a 429 it shows the status, of a 400 the server's own message.
    replace(
        _program("Codex", RESPONSES, "Codex", "codex", "exec_command", "cmd"), messages=("last status: 429", REFUSED)
    ),
    _program("Claude Code", MESSAGES, "ClaudeCode", "claude-code", "Bash", "command"),
    _opencode(CHAT, "opencode_chat"),
    _opencode(RESPONSES, "opencode_responses"),
    _opencode(MESSAGES, "opencode_messages"),
    _ai_sdk(CHAT, "@ai-sdk/openai-compatible", "compatible"),
    _ai_sdk(RESPONSES, "@ai-sdk/openai", "openai"),
    _ai_sdk(MESSAGES, "@ai-sdk/anthropic", "anthropic"),
)


def _framework(name: str, api: str, driver: str, kinds: tuple[str, str] = OPENAI_ERRORS, **limits: str) -> Client:
    named = {column.replace("_", " "): reason for column, reason in limits.items()}
    return Client(name, api, f"tests.clients.frameworks:{driver}", (name,), kinds, limits=named)


UNREAD = (
    "It reads no field for thinking of Chat Completions, whoever sends it; the gateway puts the thought back at the "
    "next turn."
)
UNREAD_STREAM = "Streamed, it loses the summary's deltas; of a whole reply it shows the thought."
NO_CALLS = (
    "Over Ollama's API it leaves the calls out of the turn that it sends back; results and the thought are there."
)
ONE_ERROR = "Over Ollama's API every error of the server is an `APIConnectionError`, with the server's message."
PYDANTIC_ERRORS = ("ModelHTTPError", "ModelHTTPError")
FRAMEWORKS = (
    _framework("openai-agents", CHAT, "agents_chat"),
    _framework("openai-agents", RESPONSES, "agents_responses"),
    _framework("pydantic-ai-slim", CHAT, "pydantic_chat", PYDANTIC_ERRORS),
    _framework("pydantic-ai-slim", RESPONSES, "pydantic_responses", PYDANTIC_ERRORS),
    _framework("pydantic-ai-slim", MESSAGES, "pydantic_messages", PYDANTIC_ERRORS),
    _framework("langchain-openai", CHAT, "langchain_chat", thinking_seen=UNREAD),
    _framework("langchain-openai", RESPONSES, "langchain_responses"),
    _framework("langchain-anthropic", MESSAGES, "langchain_messages"),
    _framework("langchain-ollama", OLLAMA, "langchain_ollama", ("ResponseError", "ResponseError")),
    _framework("litellm", CHAT, "litellm_chat"),
    _framework("litellm", RESPONSES, "litellm_responses", thinking_seen=UNREAD_STREAM),
    _framework("litellm", MESSAGES, "litellm_messages"),
    _framework("litellm", OLLAMA, "litellm_ollama", parallel_calls=NO_CALLS, errors=ONE_ERROR),
    _framework("llm", CHAT, "llm_chat", thinking_seen=UNREAD),
    _framework("llm", RESPONSES, "llm_responses"),
    _framework("llm-ollama", OLLAMA, "llm_ollama", ("ResponseError", "ResponseError")),
)
CLIENTS: tuple[Client, ...] = (*PROGRAMS, *SDKS, *FRAMEWORKS)
