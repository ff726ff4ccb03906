"""Generated conversations: what people, models and tools write to each other, in the shape that chat templates take.

System or none, tools or none, thoughts that are there, empty or missing, calls in any place and several at once,
results in another order than their calls, letters of all kinds, whitespace at the edges, and markers spelled out by
users and tools.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from functools import cache
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

Item = TypeVar("Item")
Message = dict[str, Any]
Tools = list[dict[str, Any]] | None

WORDS = (
    *("Hello", " 2+2?", "\n", "\n\n", " ", "\t", "Zürich", "你好", "🤔", "e\u0301", "𓂀", "ß"),
    *(
        "<b>&amp;</b>",
        "{}",
        '"quoted"',
        "'",
        "C:\\path",
        "1.5",
        "null",
        "True",
        "a\nb",
        ". ",
        "the answer",
        "%s",
        "{{ x }}",
    ),
)
NAMES = ("f", "get_weather", "search.web", "größe")
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where: „here“ or <there>."},
        "days": {"type": "integer", "default": 3},
        "unit": {"type": "string", "enum": ["C", "F"]},
    },
    "required": ["city"],
}


def texts(extra: Sequence[str] = (), least: int = 0) -> st.SearchStrategy[str]:
    """Some words; `extra`: others that may stand among them."""
    return st.lists(st.sampled_from([*WORDS, *extra, *extra]), min_size=least, max_size=6).map("".join)


def arguments() -> st.SearchStrategy[dict[str, Any]]:
    values = st.one_of(texts(), st.integers(-5, 10**6), st.booleans(), st.none(), st.just([1, "a"]), st.just({"b": {}}))
    return st.dictionaries(st.sampled_from(["city", "days", "unit", "größe"]), values, max_size=3)


def tools() -> st.SearchStrategy[Tools]:
    def tool(name: str) -> dict[str, Any]:
        return {
            "type": "function",
            "function": {"name": name, "description": f"Does {name}.", "parameters": PARAMETERS},
        }

    return st.one_of(
        st.none(),
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(lambda some: [*map(tool, some)]),
    )


@st.composite
def answers(draw: st.DrawFn, thinking: str, number: int, calls: bool) -> Message:
    """What a model said; `thinking`: the field of its thoughts, `number`: how many calls there were before."""
    message: Message = {"role": "assistant", "content": draw(texts())}
    thought = draw(st.one_of(st.none(), texts(), texts(least=1)))
    if thinking and thought is not None:
        message[thinking] = thought
    if calls:
        some = draw(st.lists(st.tuples(st.sampled_from(NAMES), arguments()), min_size=1, max_size=3))
        message["tool_calls"] = [
            {"id": f"call{number + at:05}", "type": "function", "function": {"name": name, "arguments": given}}
            for at, (name, given) in enumerate(some)
        ]
    elif not message["content"] and draw(st.booleans()):
        message["content"] = draw(texts(least=1))
    return message


@st.composite
def conversations(
    draw: st.DrawFn,
    thinking: str = "reasoning_content",
    spelled: Sequence[str] = (),
    *,
    call: bool = True,
    end: Sequence[str] = ("user", "tool", "assistant"),
    parallel: bool = True,
) -> tuple[list[Message], Tools]:
    """A conversation that ends with a message of one of the roles `end`, and its tools."""
    messages: list[Message] = []
    system = draw(st.one_of(st.none(), texts()))
    if system is not None:
        messages.append({"role": "system", "content": system})
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(texts(spelled))})
        for _ in range(draw(st.integers(0, 2)) if call else 0):
            answer = draw(answers(thinking, number, True))
            if not parallel:
                del answer["tool_calls"][1:]
            number += len(answer["tool_calls"])
            messages.append(answer)
            for made in draw(st.permutations(answer["tool_calls"])):
                result = {"role": "tool", "content": draw(texts(spelled)), "tool_call_id": made["id"]}
                messages.append({**result, "name": made["function"]["name"]})
        messages.append(draw(answers(thinking, number, False)))
    while messages[-1]["role"] not in end:
        messages.pop()
    ends = [at for at, message in enumerate(messages, 1) if message["role"] in end]
    return messages[: draw(st.sampled_from(ends)) if ends else None], draw(tools()) if call else None


def sample(strategy: st.SearchStrategy[Item], count: int) -> list[Item]:
    """Some of what a strategy generates, the same ones each time."""
    found: list[Item] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(each: Item) -> None:
        found.append(each)

    collect()
    return found


def with_text_arguments(conversation: tuple[list[Message], Tools]) -> tuple[list[Message], Tools]:
    """The same, the arguments of calls as JSON text: some templates take only one of the two."""
    messages, tools = copy.deepcopy(conversation)
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    return messages, tools


def with_parts(conversation: tuple[list[Message], Tools]) -> tuple[list[Message], Tools]:
    """The same, contents as lists of parts."""
    messages, tools = copy.deepcopy(conversation)
    for message in messages:
        message["content"] = [{"type": "text", "text": message["content"]}]
    return messages, tools


@cache
def corpus(thinking: str, spelled: tuple[str, ...] = (), count: int = 30) -> list[tuple[list[Message], Tools]]:
    """Conversations in every shape that templates take."""
    found = sample(conversations(thinking, spelled), count)
    alone = sample(conversations(thinking, spelled, parallel=False), count)
    return [*found, *map(with_text_arguments, alone), *map(with_parts, found[::3])]


@cache
def finished(thinking: str, count: int = 16) -> list[tuple[list[Message], Tools]]:
    """Conversations that end with an answer, in every shape that templates take."""
    found = sample(conversations(thinking, end=("assistant",)), count)
    plain = sample(conversations(thinking, end=("assistant",), call=False), count)
    return [*found, *plain, *map(with_text_arguments, found[::2]), *map(with_parts, plain[::2])]
