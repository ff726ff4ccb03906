"""The scoreboard's scripts are read as they say by hand, and its page holds what reports say."""

from __future__ import annotations

import json

import pytest

import asides
from asides.audit._audit import AuditReport
from asides.audit._verdicts import CheckResult
from tools.scoreboard import CONTESTANTS, OURS, Column, cell, write_page
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
    report = AuditReport(url="u", model="m", apis=["chat"], script="p", results=[wrong, right])
    page = write_page([Column(CONTESTANTS[0], report), Column(CONTESTANTS[-1], None, "not here")], "a machine")
    assert CONTESTANTS[0].name.startswith(OURS)
    assert "| two thoughts | **lost text** / right |" in page
    assert "First I look at the left side." in page
    assert "a \\| b" in page
    assert "not run" in page
    assert cell([]) == "-"
