"""One `Conversation` in many threads: nothing that a rendering keeps is another's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import asides
from tests.conversation.support import TOOLS, conversation, tokenizer
from tests.conversation.templates import FORMATS, TEMPLATES


@pytest.fixture(autouse=True)
def _often() -> Iterator[None]:
    """Threads change as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def talk(made: asides.Conversation, number: int) -> list[Any]:
    """Some turns with words of their own; all that comes out."""
    encode = tokenizer("bytes").encode
    messages = [{"role": "system", "content": f"s{number}"}, {"role": "user", "content": f"<|im_end|> q{number} " * 5}]
    prompt = made.prompt(messages)
    found: list[Any] = []
    for turn in range(4):
        answer = prompt.add(encode(f"a{number}.{turn}", add_special_tokens=False).ids, finish_reason="length")
        prompt = answer.next([{"role": "user", "content": f"again {number} {turn}"}], keep=True)
        found.append((prompt.text, prompt.ids, prompt.kind, prompt.message, prompt.sampled, prompt.losses))
    return [*found, answer.examples()]


@pytest.mark.parametrize("name", TEMPLATES)
def test_threads_give_what_one_thread_gives(name: str) -> None:
    def fresh() -> asides.Conversation:
        return asides.Conversation(
            tokenizer("bytes"), TEMPLATES[name], tools=TOOLS, format=FORMATS[name], bos_token="<｜begin▁of▁sentence｜>"
        )

    wanted = [talk(fresh(), number) for number in range(8)]
    shared = fresh()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: talk(shared, number % 8), range(16)))
    assert found == wanted * 2


def test_a_template_that_is_given_up_in_one_thread_is_not_in_another() -> None:
    made = conversation("chatml")
    source = "{% for m in messages %}{% if m.role == 'x' %}{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}{% endif %}{{ m.content }}{% endfor %}"  # noqa: E501 - a template is not to be broken
    shared = asides.Conversation(made.tokenizer, source, format="qwen3")

    def text(role: str) -> str:
        try:
            return shared.prompt([{"role": role, "content": "hi"}]).text
        except asides.UsageError as error:
            return str(error)[:32]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(text, ["x", "user", "x", "user"]))
    assert found == ["the chat template was given up: ", "hi"] * 2
