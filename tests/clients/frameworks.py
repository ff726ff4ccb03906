"""Drivers of the frameworks in Python: openai-agents, pydantic-ai, LangChain, LiteLLM and llm.

They are imported by name, since only the environment of `make test-clients` has them.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tests.clients.driving import CITY, FIND_PARAMETERS, KEY, Shown
from tests.clients.model import MODEL, found, question


class City(BaseModel):
    """The structured output."""

    city: str
    people: int


def find(query: str) -> str:
    """Find a city."""
    return found(query)


# openai-agents.


class _Agents:
    """An agent that runs its own loop; with Responses it goes on by `previous_response_id`."""

    def __init__(self, url: str, responses: bool) -> None:
        self._agents = import_module("agents")
        self._agents.set_tracing_disabled(True)
        client = import_module("openai").AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
        kind = "OpenAIResponsesModel" if responses else "OpenAIChatCompletionsModel"
        self._model = getattr(self._agents, kind)(model=MODEL, openai_client=client)
        self._more = {"auto_previous_response_id": True} if responses else {}
        self._loop = asyncio.Runner()

    def _run(self, case: str, **settings: Any) -> Any:
        agent = self._agents.Agent(name="a", model=self._model, **settings)
        return self._loop.run(self._agents.Runner.run(agent, question(case), **self._more))

    def plain(self) -> Iterable[Shown]:
        result = self._run("plain")
        yield Shown(self._thinking(result), result.final_output)
        agent = self._agents.Agent(name="a", model=self._model)

        async def stream() -> Any:
            streamed = self._agents.Runner.run_streamed(agent, question("plain"), **self._more)
            async for _ in streamed.stream_events():
                pass
            return streamed

        result = self._loop.run(stream())
        yield Shown(self._thinking(result), result.final_output)

    def _thinking(self, result: Any) -> str:
        items = [item.raw_item for item in result.new_items if item.type == "reasoning_item"]
        return "".join(part.text for item in items for part in item.summary or item.content or ())

    def calls(self) -> Shown:
        result = self._run("calls", tools=[self._agents.function_tool(find)])
        items = [item.raw_item for item in result.new_items if item.type == "tool_call_item"]
        calls = [(item.name, json.loads(item.arguments)) for item in items]
        return Shown(self._thinking(result), result.final_output, calls)

    def structured(self) -> Shown:
        return Shown(value=self._run("structured", output_type=City).final_output.model_dump())

    def ask(self, case: str) -> Any:
        return self._run(case)


def agents_chat(url: str) -> _Agents:
    """openai-agents, Chat Completions."""
    return _Agents(url, responses=False)


def agents_responses(url: str) -> _Agents:
    """openai-agents, Responses."""
    return _Agents(url, responses=True)


# pydantic-ai.


class _PydanticAI:
    """An agent of pydantic-ai."""

    def __init__(self, model: Any) -> None:
        self._ai = import_module("pydantic_ai")
        self._model = model
        self._loop = asyncio.Runner()

    def _run(self, case: str, **settings: Any) -> Any:
        return self._loop.run(self._ai.Agent(self._model, **settings).run(question(case)))

    def plain(self) -> Iterable[Shown]:
        result = self.ask("plain")
        yield Shown(self._thinking(result), result.output)

        async def stream() -> tuple[Any, str]:
            async with self._ai.Agent(self._model).run_stream(question("plain")) as streamed:
                return streamed, await streamed.get_output()

        streamed, text = self._loop.run(stream())
        yield Shown(self._thinking(streamed), text)

    def _parts(self, result: Any, kind: str) -> list[Any]:
        return [part for message in result.all_messages() for part in message.parts if part.part_kind == kind]

    def _thinking(self, result: Any) -> str:
        return "".join(part.content for part in self._parts(result, "thinking"))

    def calls(self) -> Shown:
        result = self._run("calls", tools=[find])
        calls = [(part.tool_name, part.args_as_dict()) for part in self._parts(result, "tool-call")]
        return Shown(self._thinking(result), result.output, calls)

    def structured(self) -> Shown:
        result = self._run("structured", output_type=self._ai.NativeOutput(City))
        return Shown(value=result.output.model_dump())

    def ask(self, case: str) -> Any:
        return self._run(case)


def _openai_provider(url: str) -> Any:
    client = import_module("openai").AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
    return import_module("pydantic_ai.providers.openai").OpenAIProvider(openai_client=client)


def pydantic_chat(url: str) -> _PydanticAI:
    """pydantic-ai, Chat Completions."""
    models = import_module("pydantic_ai.models.openai")
    return _PydanticAI(models.OpenAIChatModel(MODEL, provider=_openai_provider(url)))


def pydantic_responses(url: str) -> _PydanticAI:
    """pydantic-ai, Responses; the second turn goes on by `previous_response_id`."""
    models = import_module("pydantic_ai.models.openai")
    settings = {"openai_previous_response_id": "auto"}
    return _PydanticAI(models.OpenAIResponsesModel(MODEL, provider=_openai_provider(url), settings=settings))


def pydantic_messages(url: str) -> _PydanticAI:
    """pydantic-ai, Messages."""
    client = import_module("anthropic").AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0)
    provider = import_module("pydantic_ai.providers.anthropic").AnthropicProvider(anthropic_client=client)
    # Without the profile it takes a model of an unknown name for one without structured output.
    profile = {"supports_json_schema_output": True}
    models = import_module("pydantic_ai.models.anthropic")
    return _PydanticAI(models.AnthropicModel(MODEL, provider=provider, profile=profile))


# LangChain.


class _LangChain:
    """A chat model of LangChain's; its messages go back as it gave them."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def plain(self) -> Iterable[Shown]:
        whole = self.ask("plain")
        yield Shown(_reasoning(whole), whole.text)
        chunks = list(self._model.stream(question("plain")))
        message = chunks[0]
        for chunk in chunks[1:]:
            message += chunk
        yield Shown(_reasoning(message), message.text)

    def calls(self) -> Shown:
        model = self._model.bind_tools([find])
        first = model.invoke(question("calls"))
        calls = [(call["name"], call["args"]) for call in first.tool_calls]
        made = import_module("langchain_core.messages")
        results = [made.ToolMessage(find(**call["args"]), tool_call_id=call["id"]) for call in first.tool_calls]
        last = model.invoke([made.HumanMessage(question("calls")), first, *results])
        return Shown(_reasoning(first), last.text, calls)

    def structured(self) -> Shown:
        model = self._model.with_structured_output(City, method="json_schema")
        return Shown(value=model.invoke(question("structured")).model_dump())

    def ask(self, case: str) -> Any:
        return self._model.invoke(question(case))


def _reasoning(message: Any) -> str:
    return "".join(block.get("reasoning", "") for block in message.content_blocks if block["type"] == "reasoning")


def langchain_chat(url: str) -> _LangChain:
    """`ChatOpenAI`, Chat Completions."""
    kind = import_module("langchain_openai").ChatOpenAI
    return _LangChain(kind(base_url=f"{url}/v1", api_key=KEY, model=MODEL, max_retries=0))


def langchain_responses(url: str) -> _LangChain:
    """`ChatOpenAI`, Responses; the second turn goes on by `previous_response_id`."""
    kind = import_module("langchain_openai").ChatOpenAI
    settings = {"use_responses_api": True, "use_previous_response_id": True, "output_version": "v1"}
    return _LangChain(kind(base_url=f"{url}/v1", api_key=KEY, model=MODEL, max_retries=0, **settings))


def langchain_messages(url: str) -> _LangChain:
    """`ChatAnthropic`."""
    kind = import_module("langchain_anthropic").ChatAnthropic
    return _LangChain(kind(base_url=url, api_key=KEY, model=MODEL, max_tokens=999, max_retries=0))


def langchain_ollama(url: str) -> _LangChain:
    """`ChatOllama`."""
    return _LangChain(import_module("langchain_ollama").ChatOllama(base_url=url, model=MODEL, reasoning=True))


# LiteLLM.


class _LiteLLM:
    """`litellm.completion`, whose replies have OpenAI's shape whatever the API behind."""

    def __init__(self, prefix: str, address: str) -> None:
        # Prices of models would be fetched when it is imported.
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
        self._litellm: Any = import_module("litellm")
        self._fixed = {"model": f"{prefix}/{MODEL}", "api_base": address, "api_key": KEY, "num_retries": 0}

    def _ask(self, messages: list[Any], **fields: Any) -> Any:
        return self._litellm.completion(messages=messages, max_retries=0, **self._fixed, **fields)

    def plain(self) -> Iterable[Shown]:
        message = self.ask("plain").choices[0].message
        yield Shown(getattr(message, "reasoning_content", None) or "", message.content or "")
        deltas = [chunk.choices[0].delta for chunk in self._ask(_user("plain"), stream=True) if chunk.choices]
        thinking = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
        yield Shown(thinking, "".join(delta.content or "" for delta in deltas))

    def calls(self) -> Shown:
        function = {"name": "find", "description": "find a city", "parameters": FIND_PARAMETERS}
        tools = [{"type": "function", "function": function}]
        messages = _user("calls")
        first = self._ask(messages, tools=tools).choices[0].message
        calls = [(call.function.name, json.loads(call.function.arguments)) for call in first.tool_calls or ()]
        results = [
            {"role": "tool", "tool_call_id": call.id, "name": "find", "content": find(**arguments)}
            for call, (_, arguments) in zip(first.tool_calls or (), calls, strict=True)
        ]
        last = self._ask([*messages, first.model_dump(), *results], tools=tools).choices[0].message
        return Shown(getattr(first, "reasoning_content", None) or "", last.content, calls)

    def structured(self) -> Shown:
        reply = self._ask(_user("structured"), response_format=City)
        return Shown(value=City.model_validate_json(reply.choices[0].message.content).model_dump())

    def ask(self, case: str) -> Any:
        return self._ask(_user(case))


def _user(case: str) -> list[Any]:
    return [{"role": "user", "content": question(case)}]


def litellm_chat(url: str) -> _LiteLLM:
    """LiteLLM, Chat Completions."""
    return _LiteLLM("openai", f"{url}/v1")


def litellm_responses(url: str) -> _LiteLLM:
    """LiteLLM's bridge from its completions to Responses."""
    return _LiteLLM("openai/responses", f"{url}/v1")


def litellm_messages(url: str) -> _LiteLLM:
    """LiteLLM, Messages."""
    return _LiteLLM("anthropic", url)


def litellm_ollama(url: str) -> _LiteLLM:
    """LiteLLM, Ollama."""
    return _LiteLLM("ollama_chat", url)


# llm.


class _LLM:
    """`llm` as a library: a model by name, and chains that run tools."""

    def __init__(self, name: str) -> None:
        self._model = import_module("llm").get_model(name)
        self._model.key = KEY

    def plain(self) -> Iterable[Shown]:
        for stream in (False, True):
            response = self._model.prompt(question("plain"), stream=stream)
            text = response.text()
            yield Shown(_thought(response), text)

    def calls(self) -> Shown:
        made: list[tuple[str, dict[str, Any]]] = []
        chain = self._model.chain(
            question("calls"), tools=[find], before_call=lambda tool, call: made.append((call.name, call.arguments))
        )
        responses = list(chain.responses())
        return Shown(_thought(responses[0]), responses[-1].text(), made)

    def structured(self) -> Shown:
        return Shown(value=json.loads(self._model.prompt(question("structured"), schema=CITY).text()))

    def ask(self, case: str) -> Any:
        return self._model.prompt(question(case)).text()


def _thought(response: Any) -> str:
    parts = [part for message in response.messages() for part in message.parts]
    return "".join(part.text for part in parts if type(part).__name__ == "ReasoningPart")


def _llm_openai(url: str, responses: bool) -> _LLM:
    """A model of llm's configuration file."""
    abilities = ("supports_tools", "supports_schema", "reasoning", *(("responses",) if responses else ()))
    model = {"model_id": MODEL, "model_name": MODEL, "api_base": f"{url}/v1", "api_key_name": "gateway"}
    models = [{**model, **dict.fromkeys(abilities, True)}]
    Path.home().joinpath("extra-openai-models.yaml").write_text(json.dumps(models), encoding="utf-8")
    os.environ["LLM_USER_PATH"] = str(Path.home())
    return _LLM(MODEL)


def llm_chat(url: str) -> _LLM:
    """llm, Chat Completions."""
    return _llm_openai(url, responses=False)


def llm_responses(url: str) -> _LLM:
    """llm, Responses."""
    return _llm_openai(url, responses=True)


def llm_ollama(url: str) -> _LLM:
    """llm with llm-ollama."""
    os.environ.update(LLM_USER_PATH=str(Path.home()), OLLAMA_HOST=url)
    import_module("llm_ollama")
    return _LLM(f"ollama/{MODEL}")
