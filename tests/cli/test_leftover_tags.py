"""A thought that `auto` has left in the answer is named after it, however the answer comes; a mention is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import asides
from asides._cli.leftover_tags import LeftoverTags
from tests.cli.running import run

LEFT = [
    ("b<thinking>c</thinking>d", "<thinking>"),
    ("Hello <internal>x</internal>", "<internal>"),
    ('Hello. <Scratchpad id="1">x\ny</scratchpad> more', '<Scratchpad id="1">'),
    ("Use `<thinking>` so.\n<internal>x</internal> tags.", "<internal>"),
    ("```xml\na\n```\n<reasoning>x</reasoning>\nso", "<reasoning>"),
    ("x" * 10_000 + "\n<thought>x</thought>", "<thought>"),
]
NOT_LEFT = [
    "Use `<thinking>` and `</thinking>` tags.",
    "```xml\n<internal>x</internal>\n```\nso",
    "a <internal> b",
    "</internal>",
    "<reason>It is right.</reason> <reflection>x</reflection>",  # fields of a judge's answer
    "List<Thought> thoughts; Map<Thinking, Internal>",
    "<thinker>a</thinker> <b>c</b>",
    "",
]


def _found(text: str, size: int) -> str:
    leftover = LeftoverTags()
    for start in range(0, len(text), size):
        leftover.add(text[start : start + size])
    return leftover.found


@pytest.mark.parametrize("size", [1, 3, 100_000])
@pytest.mark.parametrize(("text", "tag"), LEFT)
def test_a_thought_is_named(text: str, tag: str, size: int) -> None:
    assert asides.parse(f"<think>a</think>{text}").text == text  # so it is left there
    assert _found(text, size) == tag


@pytest.mark.parametrize("size", [1, 3, 100_000])
@pytest.mark.parametrize("text", NOT_LEFT)
def test_what_is_no_thought_is_not(text: str, size: int) -> None:
    assert _found(text, size) == ""


def test_the_filter_says_it_once_and_after_the_answer(tmp_path: Path) -> None:
    """With what to do; and what it says to do works. A format that was named gets no hint."""
    given = b"<think>a</think>b<thinking>c</thinking>d"
    done = run(given=given)
    assert done.stdout == b"b<thinking>c</thinking>d"
    thought, _, hint = done.stderr.partition(b"asides: ")
    assert thought == b"Thinking\n  a\n"
    assert hint.startswith(b"<thinking> was left in the answer: ")
    assert hint.endswith(b"Read such output with -f think_tag\n")
    named = run("-f", "think_tag", given=given)
    assert (named.stdout, named.stderr) == (b"bd", b"Thinking\n  a\n\nThinking 2\n  c\n")
    assert b"left" not in run("-f", "qwen3", given=given).stderr
    files = [tmp_path / "plain.txt", tmp_path / "a.txt", tmp_path / "b.txt"]
    files[0].write_bytes(b"Hello")
    for path in files[1:]:
        path.write_bytes(given)
    hints = [line for line in run("split", *files).stderr.decode().splitlines() if "left in the answer" in line]
    assert len(hints) == 1
    assert hints[0].startswith(f"asides: {files[1]}: <thinking> ")
