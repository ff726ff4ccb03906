"""`model=` wherever `format=` is: one reading, looked up once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

import asides
from asides.plugins.evals import answer_of
from asides.reading import Reading
from tests.support import count_calls

THINKER = "Qwen/Qwen3-4B-Thinking-2507"
TEXT = "hm so</think>Four."


def test_every_function_takes_a_model() -> None:
    assert asides.parse(TEXT, model=THINKER).thinking == "hm so"
    assert asides.clean(TEXT, model=THINKER) == "Four."
    events = list(asides.split([TEXT], model=THINKER))
    assert events[0] == asides.PartStart(0, "thinking")

    async def stream() -> AsyncIterator[str]:
        yield TEXT

    async def read() -> list[asides.Event]:
        return [event async for event in asides.asplit(stream(), model=THINKER)]

    assert asyncio.run(read()) == events
    parser = asides.Parser(model=THINKER)
    assert parser.feed(TEXT) + parser.finish() == events


def test_a_thought_that_never_closed_is_no_answer_of_a_model_that_begins_in_one() -> None:
    assert asides.clean("hm so", model=THINKER) == ""
    assert asides.clean("hm so", model="Qwen/Qwen3-8B") == "hm so"
    assert asides.parse("hm so", model=THINKER, finish_reason="length").termination == "cut"
    assert asides.parse("hm so", model="Qwen/Qwen3-8B", finish_reason="stop").termination == "stop"


def test_what_the_caller_says_counts_more_than_the_name() -> None:
    """`format` is how it writes, the model adds where it begins; a start or a prompt wins over both."""
    assert asides.parse("a[/THINK]b", "magistral", model=THINKER).thinking == "a"
    assert asides.parse("hm so", model=THINKER, start="text").text == "hm so"
    assert asides.parse("hm so", model="Qwen/Qwen3-8B", prompt="<|im_start|>assistant\n<think>\n").thinking == "hm so"
    assert asides.parse("hm <b>so", model=THINKER, seed=3).thinking == "hm <b>so"


@pytest.mark.parametrize("model", ["nobody/knows-this-one", "", "gpt-4o-mini"])
def test_an_unknown_model_is_auto(model: str) -> None:
    for text in (TEXT, "<think>a</think>b", "plain"):
        assert asides.parse(text, model=model) == asides.parse(text)
        assert list(asides.split(text, model=model)) == list(asides.split(text))


def test_a_reading_of_names_is_the_one_that_of_makes() -> None:
    for model in (THINKER, "Qwen/Qwen3-8B", "openai/gpt-oss-20b", "unknown"):
        for format in ("auto", "qwen3", "deepseek_r1"):
            assert Reading.named(model, format) == Reading.of(model, format=format)
            policies = asides.Policies(seed=7, calls=False)
            assert Reading.named(model, format, policies) == Reading.of(model, format=format, policies=policies)


def test_a_name_is_looked_up_once() -> None:
    asides.parse(TEXT, model=THINKER)
    plain = count_calls(lambda: asides.parse(TEXT, "qwen3_thinking", seed=1))
    assert count_calls(lambda: asides.parse(TEXT, model=THINKER, seed=1)) < plain + 20


def test_a_family_that_is_registered_later_counts() -> None:
    """In a process of its own, because a family stays registered."""
    code = """if True:
        import asides
        from asides.families import Model
        before = asides.parse("<b>a</b>c", model="ours-1").text
        own = asides.Format.tags("<b>", "</b>", name="ours")
        asides.register(asides.Family(name="ours", formats=(own,), models=(Model("ours-1", "ours", True),)))
        print(before, asides.parse("<b>a</b>c", model="ours-1").text)
    """
    assert _printed(code) == "<b>a</b>c c\n"


def test_without_a_model_nothing_of_it_is_imported() -> None:
    assert _printed(
        "import sys, asides; asides.parse('<think>a</think>b'); print('asides.reading' in sys.modules)"
    ) == ("False\n")


def _printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_answer_of_evaluations_is_clean() -> None:
    assert answer_of is asides.clean
