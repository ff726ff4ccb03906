"""For an agent: run the calls that a model wrote, and only those that may be run.

    pip install .
    python examples/agent.py

It prints:

    get_weather {'city': 'Oslo', 'days': 2}: rain
    not run: delete_everything, there is no such tool
    not run: get_weather, the output ended before the call did
    answer: Pack an umbrella.
"""

import json
from typing import Any

import asides

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS: list[Any] = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
CALL = (
    "<tool_call>\n<function={}><parameter=city>Oslo</parameter><parameter=days>2</parameter></function>\n</tool_call>"
)
REPLIES = [
    # A draft in a thought is no call. Then: a call, one of a tool that does not exist, and one that is cut off.
    f"<think>Or {CALL.format('draft')}? No.</think>" + CALL.format("get_weather") + CALL.format("delete_everything"),
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nBer",
    "<think>Rain on both days.</think>Pack an umbrella.",
]


def get_weather(city: str, days: int) -> str:
    """A tool. Its arguments have the types that `TOOLS` gives them: `days` is a number, though the model wrote text."""
    return ["sun", "rain"][days % 2 == 0]


def run(call: asides.ToolCall) -> str:
    """What a call gives. `error` is None exactly when it is what the model wrote, whole and well-formed."""
    if call.error is not None or call.name != "get_weather":
        return f"not run: {call.name}, {call.error_message or 'there is no such tool'}"
    return f"{call.name} {(arguments := json.loads(call.arguments))}: {get_weather(**arguments)}"


def main() -> None:
    """Three turns of a scripted model."""
    history: list[dict[str, Any]] = [{"role": "user", "content": "What should I pack for two days in Oslo?"}]
    for reply in REPLIES:
        message = asides.parse(reply, "qwen3_coder", tools=TOOLS)
        history.append(message.to_dict())  # OpenAI's shape, with the calls that may be run; it goes back to the model
        for call in message.tool_calls:
            print(result := run(call))
            if call.error is None:  # others are not in the dictionary's `tool_calls`, so nothing answers them
                history.append({"role": "tool", "tool_call_id": call.id, "content": result})
        if message.text:
            print("answer:", message.text)


if __name__ == "__main__":
    main()
