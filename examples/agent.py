"""An agent with tools over OpenAI's SDK: runs a call only if it is whole and its tool exists, and tells the model else.

    pip install . openai
    export OPENAI_BASE_URL=http://127.0.0.1:8000/v1 OPENAI_API_KEY=none      # vLLM, llama.cpp, Ollama...
    python examples/agent.py

With a model that answers like this it prints the same whether the server reads calls or not. It prints:

    get_weather {'city': 'Oslo', 'days': 2}: rain
    delete_everything {'city': 'Oslo', 'days': 2}: there is no such tool
    get_weather: the call could not be run
    answer: Pack an umbrella.
"""

import json
from typing import Any

import openai

import asides

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
MOST_TURNS = 10


def get_weather(city: str, days: int) -> str:
    """A tool. Its arguments have the types that `TOOLS` gives them, also where the model wrote nothing but text."""
    return ["sun", "rain"][days % 2 == 0]


def run(call: asides.ToolCall) -> str:
    """What a call gives."""
    if call.name != "get_weather":
        return "there is no such tool"
    try:
        return get_weather(**json.loads(call.arguments))
    except (TypeError, ValueError) as error:
        return f"wrong arguments: {error}"  # for the model: it may call again


def main() -> None:
    """Ask, run what is called, and ask again, until there is an answer."""
    with openai.OpenAI() as client:
        model = client.models.list().data[0].id  # or the name of yours
        messages: list[Any] = [{"role": "user", "content": "What should I pack for two days in Oslo?"}]
        for _ in range(MOST_TURNS):
            turn = asides.turn(client, messages, model=model, tools=TOOLS)  # its events come in a `for`
            results = {}
            for call in turn.reply.tool_calls:
                if call.error is not None:  # the model is told what was wrong with it
                    print(f"{call.name}: the call could not be run")
                    continue
                results[call.id] = run(call)  # it is what the model wrote, whole and well-formed
                print(f"{call.name} {json.loads(call.arguments)}: {results[call.id]}")
            messages += turn.messages(results)
            if not turn.reply.tool_calls:
                print("answer:", turn.reply.text)
                return


if __name__ == "__main__":
    main()
