"""Known scripts, said by real servers and read through the gateway: `make test-servers`. Not named `test_*`, because
the ordinary tests have no servers.

A parrot makes the server say a case's text token by token. What must be seen through the gateway is our reading of
what the server itself sends, asked directly: the very text of the case in most cells, or what the server has made
of it where it reads calls itself, trims, or fails. So whatever differs here is the gateway's. How many scripts came
out as they were written is checked too, so that nothing passes because nothing was said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import anthropic
import msgspec
import ollama
import openai
import pytest

from asides import Policies, Reading
from asides.audit import Manifest, ParrotScript
from tests.gateway.clients import Dialect, Seen, ask, post
from tests.gateway.running import gateway
from tests.servers.parrots import FAMILIES, ParrotFamily, missing, write_parrot
from tests.servers.running_servers import llama_cpp, transformers_serve

MATERIAL = Path(".venv-servers", "material")
SERVERS = {"llama.cpp": ("xllamacpp", llama_cpp), "transformers": ("transformers", transformers_serve)}
APIS: tuple[Dialect, ...] = ("chat", "responses", "messages", "ollama_chat", "completions")
LIMITS = {"chat": "max_tokens", "completions": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}
"""The field for the number of tokens in each API; Ollama has an option."""
TURNS = 3
FAILED = (openai.APIError, anthropic.APIError, ollama.ResponseError)


class Served:
    """A parrot in a server, and the gateway in front of it."""

    def __init__(
        self, server: str, family: ParrotFamily, folder: Path, manifest: Manifest, direct: str, url: str
    ) -> None:
        self.server = server
        self.family = family
        self.folder = folder
        self.manifest = manifest
        self.direct = direct
        self.url = url
        self.generation_prompt = self._generation_prompt()
        self._lengths: dict[str, int] = {}
        self._said: list[ParrotScript] | None = None

    def _generation_prompt(self) -> str:
        """A prompt as the server shows it, whose end says where a reply begins; empty where it shows none."""
        if self.server != "llama.cpp":
            return ""
        messages = [{"role": "user", "content": "Hi"}]
        prompt: str = post(self.direct, "/apply-template", {"messages": messages}).json()["prompt"]
        return prompt

    def say(self, url: str, api: Dialect, script: ParrotScript, tools: list[dict[str, Any]], stream: bool) -> Seen:
        """Ask for a script, with a question that brings the prompt to the length after which it is said."""
        key = json.dumps([url, api, tools])
        if key not in self._lengths:
            seen = ask(api, url, model=str(self.folder), question=f"Hello{self.manifest.filler * 10}", tools=tools)
            self._lengths[key] = prompt_tokens(seen.raw) - 10
        need = script.position - self._lengths[key]
        assert need > 0, f"the prompt has {self._lengths[key]} tokens, {script.name} begins after {script.position}"
        limit: dict[str, Any] = {}
        if script.ended == "length":
            most = len(script.ids)
            limit = {"options": {"num_predict": most}} if api == "ollama_chat" else {LIMITS[api]: most}
        question = f"Hello{self.manifest.filler * need}"
        return ask(api, url, stream=stream, model=str(self.folder), question=question, tools=tools, **limit)

    def said(self) -> list[ParrotScript]:
        """The scripts with a text and without calls that the server itself says as they are written."""
        if self._said is None:
            self._said = []
            for script in self.manifest.scripts:
                text = any("text" in part for part in script.parts)
                if text and script.ended == "stop" and not tools_of(script):
                    with suppress(*FAILED):
                        seen = self.say(self.direct, "chat", script, [], False)
                        self._said += [script] * seen.text.endswith(script.raw)
        return self._said

    def reading(self, api: Dialect, tools: list[dict[str, Any]]) -> Reading:
        """How a reply of this server is read."""
        named = [{"type": "function", "function": tool} for tool in tools]
        policies = Policies(calls=bool(tools), tools=named or None)
        prompt = self.generation_prompt if api == "chat" else ""
        return Reading.of(self.family.model, format=self.family.format, prompt=prompt or None, policies=policies)


def prompt_tokens(raw: Any) -> int:
    """The prompt's length as a reply's usage has it."""
    usage = getattr(raw, "usage", None)
    if usage is None:
        count: int = raw.prompt_eval_count
        return count
    # Anthropic's API counts what came from the cache apart.
    cached: int = getattr(usage, "cache_read_input_tokens", 0) or 0
    found: int = usage.prompt_tokens if hasattr(usage, "prompt_tokens") else usage.input_tokens + cached
    return found


def tools_of(script: ParrotScript) -> list[dict[str, Any]]:
    """The functions of the request: those of the case, or ones that its calls would be calls of."""
    if script.tools:
        return [tool.get("function", tool) for tool in script.tools]
    found: dict[str, dict[str, Any]] = {}
    for part in script.parts:
        if "call" in part:
            try:
                arguments = json.loads(part["arguments"])
            except ValueError:
                arguments = {}
            names = arguments if isinstance(arguments, dict) else {}
            schema = {"type": "object", "properties": {name: {} for name in names}}
            found[part["call"] or "find"] = {"description": "do it", "parameters": schema}
    return [{"name": name, **function} for name, function in found.items()]


@pytest.fixture(scope="module", params=[(server, family) for family in FAMILIES for server in SERVERS], ids="-".join)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server with one family's parrot."""
    server, name = request.param
    package, serve = SERVERS[server]
    family = FAMILIES[name]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed here")
    if gone := missing(family, MATERIAL):
        pytest.skip(f"not in {MATERIAL}: {gone}")
    folder = tmp_path_factory.mktemp("parrot")
    manifest = write_parrot(family, MATERIAL, folder)
    with serve(folder / family.model, folder / "log") as address, gateway({}, "--upstream", f"{address}/v1") as running:
        yield Served(server, family, folder / family.model, manifest, address, running.url)


class Shown(msgspec.Struct):
    """What is compared."""

    thinking: str
    text: str
    calls: list[Any]
    broken: bool = False
    """Whether a call may not be run. Each API has its own place for such a one, often the text."""

    def differs(self, other: Shown, api: Dialect) -> bool:
        """Whether another is not the same. Where parts are blocks of their own, nobody joins them with whitespace."""
        texts = [(self.thinking, other.thinking)]
        texts += [] if self.broken else [(self.text, other.text)]
        if api != "chat":
            texts = [("".join(one.split()), "".join(another.split())) for one, another in texts]
        return self.calls != other.calls or any(one != another for one, another in texts)


def runnable_calls(script: ParrotScript) -> list[Any]:
    """The calls of a script that may be run."""
    calls = [part for part in script.parts if "call" in part and "error" not in part]
    return [(call["call"], json.loads(call["arguments"])) for call in calls]


def expected(served: Served, api: Dialect, seen: Seen, tools: list[dict[str, Any]], stream: bool) -> Shown:
    """What the gateway must make of what the server sends."""
    parser = served.reading(api, tools).parser()
    reason: Literal["length", "stop"] = "length" if seen.reason == "length" else "stop"
    if stream:  # which cannot wait to see where it began
        parser.feed(seen.text)
        parser.finish(reason)
    message = parser.message if stream else served.reading(api, tools).parse(seen.text, finish_reason=reason)
    runnable = [call for call in message.tool_calls if call.error is None]
    calls = [(call.name, json.loads(call.arguments)) for call in runnable]
    broken = len(runnable) < len(message.tool_calls)
    return Shown(seen.thinking + message.thinking, message.text, [*calls, *seen.calls], broken)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS)
def test_scripts(served: Served, api: Dialect, stream: bool) -> None:
    """Every script is shown as we read what the server sends; some at least are sent as they are written."""
    wrong: list[str] = []
    written = failed = 0
    scripts = served.manifest.scripts[:: 1 if api == "chat" else 3]
    plain: Dialect = "completions" if api == "completions" else "chat"
    for script in scripts:
        tools = tools_of(script) if api != "completions" else []
        try:
            alone = served.say(served.direct, plain, script, tools, stream)
            wanted = expected(served, plain, alone, tools, stream)
        except (*FAILED, ValueError):  # the server fails, or sends arguments that are no JSON
            failed += 1
            continue
        if alone.calls and list(alone.calls) != runnable_calls(script):
            failed += 1  # not sayable: the server's grammar for calls forbids a token, and any other may come
            continue
        written += alone.text.endswith(script.raw)  # llama.cpp repeats an opener of the prompt
        try:
            seen = served.say(served.url, api, script, tools, stream)
        except (*FAILED, ValueError) as error:
            if wanted.broken and isinstance(error, ValueError):
                continue  # a call that may not be run has arguments that nobody can take for a JSON object
            wrong.append(f"{script.name}: {script.raw!r}\n    wanted {wanted}\n    failed {error!r}")
            continue
        found = Shown(seen.thinking, seen.text, list(seen.calls))
        if wanted.differs(found, api):
            wrong.append(f"{script.name}: {script.raw!r}\n    wanted {wanted}\n    found  {found}")
    print(
        f"{served.server} {served.family.model} {api}: {len(scripts)} scripts, {written} as written, {failed} not said"
    )
    assert not wrong, f"{len(wrong)} of {len(scripts)}:\n" + "\n".join(wrong)
    assert written > 0, "no script was said as it is written"


def turn(api: Dialect, question: str, seen: Seen) -> list[Any]:
    """A question and its reply, as a client of this API sends them back."""
    asked: dict[str, Any] = {"role": "user", "content": question}
    if api == "responses":
        return [asked, *(item.model_dump(exclude_none=True) for item in seen.raw.output)]
    if api == "messages":
        return [asked, {"role": "assistant", "content": seen.raw.content}]
    thinking = "thinking" if api == "ollama_chat" else "reasoning_content"
    return [asked, {"role": "assistant", "content": seen.text, thinking: seen.thinking}]


@pytest.mark.parametrize("api", APIS[:-1])
def test_several_turns(served: Served, api: Dialect) -> None:
    """Three turns, each sent back as the client got it: every one is read as the first."""
    said = served.said()
    if len(said) < TURNS:
        pytest.skip(f"{served.server} says only {len(said)} scripts of {served.family.model} as they are written")
    field = "input" if api == "responses" else "messages"
    history: list[Any] = []
    after = 0

    def say(count: int) -> tuple[str, Seen]:
        question = f"Hello{served.manifest.filler * count}"
        messages: dict[str, Any] = {field: [*history, {"role": "user", "content": question}]}
        return question, ask(api, served.url, model=str(served.folder), **messages)

    for _ in range(TURNS):
        length = prompt_tokens(say(1)[1].raw) - 1
        script = next((script for script in said if script.position > max(length, after) + 1), None)
        assert script is not None, f"no script begins after {length} tokens"
        after = script.position
        question, seen = say(script.position - length)
        message = served.reading("chat", []).parse(script.raw)
        wanted = Shown(message.thinking, message.text, [])
        found = Shown(seen.thinking, seen.text, list(seen.calls))
        assert not wanted.differs(found, "responses"), f"{script.name}: {wanted}, {found}"
        history += turn(api, question, seen)
