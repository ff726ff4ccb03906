"""The turns of `make test-peers` that are generated: asides reads each as it was drawn, and the seed gives the same."""

from __future__ import annotations

from pathlib import Path

import asides
from asides import Format, Reading, get_format
from tests.peers.page import Found, write_page
from tests.peers.parsers import Flags
from tests.peers.turns import SHAPES, generated, thinking_markers

FORMATS: list[Format] = [get_format(name) for name in asides.formats() if get_format(name).settle is None]


def test_a_turn_is_read_as_it_was_drawn() -> None:
    """Of every format and shape: thoughts, texts and calls, whitespace aside."""
    shapes = set()
    for format in FORMATS:
        for drawn in generated(format):
            case = drawn.case
            policies = asides.Policies(start=case.start, tools=case.tools)  # type: ignore[arg-type] # text or thinking
            message = Reading.of(format=format.name, policies=policies).parse(case.raw)
            read = "".join("".join(part.split()) for part in (message.thinking, message.text))
            words = [part.get("thinking", "") for part in drawn.parts] + [part.get("text", "") for part in drawn.parts]
            where = f"{format.name}, {case.id}: {case.raw!r} gives {message.parts}"
            assert read == "".join("".join(word.split()) for word in words), where
            calls = [call.name for call in message.tool_calls if call.error is None]
            assert calls == [part["call"] for part in drawn.parts if "call" in part], where
            shapes.add(drawn.shape)
    assert shapes == set(SHAPES)


def test_the_seed_gives_the_same_turns() -> None:
    """So a disagreement that is known can be found again."""
    format = get_format("qwen3")
    assert [drawn.case for drawn in generated(format)] == [drawn.case for drawn in generated(format)]
    assert thinking_markers(format) == ("<think>", "</think>")


def test_the_page_keeps_the_counts_apart(tmp_path: Path) -> None:
    """One table for each source, whole and streamed; what was recorded stays where nothing new was read."""
    found = [
        Found("asides", "qwen3", "generated", "two thoughts 0", "two thoughts", how, "", "")
        for how in ("whole", "streamed")
    ]
    found += [
        Found("vllm", "qwen3", "generated", "two thoughts 0", "two thoughts", "whole", "thought_in_text", "seen"),
        Found("vllm", "qwen3", "generated", "two thoughts 0", "two thoughts", "streamed", "", ""),
        Found("asides", "qwen3", "recorded", "a 1", "", "whole", "", ""),
        Found("asides", "qwen3", "recorded", "a 1", "", "streamed", "", ""),
    ]
    versions = {"vllm": "1.2", "sglang": "3.4"}
    flags = {"vllm": {"qwen3": Flags("qwen3", "")}, "sglang": {}}
    page = tmp_path / "page.md"
    page.write_text(write_page(found, versions, flags, {"sglang": {"glm45": "no token <x>"}}, page))
    text = page.read_text()
    assert "| two thoughts | 1 of 1 | 0 of 1 / 1 of 1 | - |" in text
    assert "| vLLM | words of the thought are in the answer (`thought_in_text`) | 1 | qwen3 |" in text
    assert "| qwen3 | `qwen3`, - | not compared |" in text
    assert "SGLang, glm45: no token &lt;x>" in text
    again = write_page(found[:4], versions, flags, {}, page)
    assert "| qwen3 | 1 of 1 | - | - |" in again
