"""The scoreboard's scripts are read as they say by hand, and its page holds what reports say."""

from __future__ import annotations

import json

import pytest

import asides
from asides.audit._verdicts import CheckResult
from tools.scoreboard import CONTESTANTS, OURS, Column, cell, parser_column, write_page
from tools.scoreboard_scripts import SCRIPTS, TOOLS, BoardScript, case_lines


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_is_read_as_it_says(script: BoardScript) -> None:
    """Whitespace aside: what is thinking, text and a call that may be run."""
    message = asides.parse(script.raw, "qwen3", tools=TOOLS if script.tools else None)
    calls = [f"{call.name}({json.loads(call.arguments)['city']})" for call in message.tool_calls if call.error is None]
    found = ("".join(message.thinking.split()), "".join(message.text.split()), tuple(calls))
    assert found == ("".join(script.thinking.split()), "".join(script.text.split()), script.calls)


def test_cases_are_lines_of_json() -> None:
    """As `asides audit parrot --cases` reads them."""
    assert [json.loads(line)["id"] for line in case_lines().splitlines()] == [script.name for script in SCRIPTS]


def test_the_page() -> None:
    """Ours come first, a failure has its reason and what was said, and no path of this machine is there."""
    wrong = CheckResult(
        check="two thoughts", api="chat", how="whole", result="fail", code="text_missing", detail="a | b"
    )
    right = CheckResult(check="two thoughts", api="chat", how="streamed", result="pass")
    page = write_page([Column(CONTESTANTS[0], [wrong, right]), Column(CONTESTANTS[-1], None, "not here")], "a machine")
    assert CONTESTANTS[0].name.startswith(OURS)
    assert "| two thoughts | **lost text** / right |" in page
    assert "First I look at the left side." in page
    assert "a \\| b" in page
    assert "not run" in page
    assert cell([]) == "-"


def test_parsers_alone_are_marked() -> None:
    """Their column says so, has no row of what only a server can show, and a quoted marker that acts is a choice."""
    shared = {"peer": "vLLM", "version": "1.2", "flags": ["qwen3", "hermes"], "how": "whole", "detail": "seen"}
    codes = {"two thoughts": "thought_in_text", "marker quoted in a thought": "marker_reading", "thought": ""}
    column = parser_column("vLLM", [shared | {"check": name, "code": code} for name, code in codes.items()])
    server = Column(CONTESTANTS[0], [CheckResult(check="cut", api="chat", result="pass")])
    page = write_page([server, column, parser_column("SGLang", [])], "a machine")
    assert "| vLLM, its parsers alone | 1.2 | `vllm serve --reasoning-parser qwen3 --tool-call-parser hermes` |" in page
    assert "| two thoughts | - | **leaked thought** |" in page
    assert "| marker quoted in a thought | - | differs |" in page
    assert f"| case | {CONTESTANTS[0].name} |" in page
    assert "SGLang, its parsers alone | not here (not run: " in page
