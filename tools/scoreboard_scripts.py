"""The scripts of the scoreboard: turns that models of Qwen 3's family write, the ordinary ones and the odd ones.

Each is what real models have been seen to write; none is made for a server to trip over. They are written as cases
(`asides audit parrot --cases`), so the expected reading is that of asides, which `tests/audit/test_scoreboard.py` holds
against one that is written by hand here.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lisbon"}}\n</tool_call>'
CALL_READ = "get_weather(Lisbon)"


class BoardScript(NamedTuple):
    """One script, and how it must be read."""

    name: str
    raw: str
    thinking: str
    text: str
    calls: tuple[str, ...] = ()
    tools: bool = False


SCRIPTS = (
    BoardScript(
        "plain answer",
        "The sea is blue because water absorbs red light.",
        "",
        "The sea is blue because water absorbs red light.",
    ),
    BoardScript(
        "thought",
        "<think>\nThey want the product of 17 and 23.\n</think>\n\nIt is 391.",
        "They want the product of 17 and 23.",
        "It is 391.",
    ),
    BoardScript("call", CALL, "", "", (CALL_READ,), tools=True),
    BoardScript(
        "thought and call",
        f"<think>\nI need the weather there first.\n</think>\n\n{CALL}",
        "I need the weather there first.",
        "",
        (CALL_READ,),
        tools=True,
    ),
    BoardScript("text and call", f"Let me look that up.\n{CALL}", "", "Let me look that up.", (CALL_READ,), tools=True),
    BoardScript(
        "two calls",
        f"{CALL}\n{CALL.replace('Lisbon', 'Porto')}",
        "",
        "",
        (CALL_READ, "get_weather(Porto)"),
        tools=True,
    ),
    BoardScript(
        "draft in a closed thought",
        f"<think>\nI could write {CALL} but I know the answer already.\n</think>\n\nIt is sunny.",
        f"I could write {CALL} but I know the answer already.",
        "It is sunny.",
        tools=True,
    ),
    BoardScript(
        "thought that never closes",
        "<think>\nI keep thinking about this for long",
        "I keep thinking about this for long",
        "",
    ),
    BoardScript(
        "two thoughts",
        "<think>\nFirst I look at the left side.\n</think>\n\nThe left is even.\n"
        "<think>\nNow I look at the right side.\n</think>\n\nThe right is odd.",
        "First I look at the left side.Now I look at the right side.",
        "The left is even.The right is odd.",
    ),
    BoardScript(
        "marker quoted in a thought",
        "<think>\nI must end with `</think>` and then answer briefly.\n</think>\n\nDone as asked.",
        "I must end with `</think>` and then answer briefly.",
        "Done as asked.",
    ),
    BoardScript(
        "close without an opener",
        "They want a short answer about rivers.\n</think>\n\nThe Tagus is the longest.",
        "They want a short answer about rivers.",
        "The Tagus is the longest.",
    ),
    BoardScript(
        "call in a thought that never closes",
        f"<think>\nI need the weather there first.\n{CALL}",
        "I need the weather there first.",
        "",
        (CALL_READ,),
        tools=True,
    ),
    BoardScript(
        "call that is no JSON",
        'I look it up.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": Lisbon}}\n</tool_call>',
        "",
        "I look it up.",
        tools=True,
    ),
    BoardScript(
        "answer after a call",
        f"{CALL}\nI have asked for the weather.",
        "",
        "I have asked for the weather.",
        (CALL_READ,),
        tools=True,
    ),
)


def case_lines() -> str:
    """The scripts as cases, one JSON object in a line."""
    cases = [
        {"id": each.name, "formats": ["qwen3"], "raw": each.raw, **({"tools": TOOLS} if each.tools else {})}
        for each in SCRIPTS
    ]
    return "".join(json.dumps(case) + "\n" for case in cases)
