"""What callers of conversations give by mistake: an error in words, and never other ids than were meant."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sized
from pathlib import Path
from typing import Any

import pytest

import asides
from asides._engine.token_markers import disguise
from asides._engine.vocabulary import vocabulary_of
from tests.conversation.support import conversation, tokenizer
from tests.conversation.templates import TEMPLATES

USER = {"role": "user", "content": "hi"}
HOLDS_ITSELF: dict[str, Any] = {"role": "user"}
HOLDS_ITSELF["content"] = [HOLDS_ITSELF]


def made(template: Any = TEMPLATES["chatml"], **options: Any) -> asides.Conversation:
    return asides.Conversation(tokenizer("bytes"), template, **{"format": "qwen3", **options})


def prompt(*contents: Any) -> asides.Prompt:
    return conversation("chatml").prompt([{"role": "user", "content": content} for content in contents])


def collate(*rows: Any, **options: Any) -> Any:
    return conversation("chatml").collator(**{"tensors": None, **options})(rows)


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a template that is no text": (lambda: made(3), "template is Jinja"),
    "a template in bytes": (lambda: made(b"{{ x }}"), "template is Jinja"),
    "a path as a text": (lambda: made("./chat_template.jinja"), "pathlib.Path"),
    "a folder as a template": (lambda: made(Path(__file__).parent), "holds neither"),
    "tools that are none": (lambda: made(tools=3), "tools are a list"),
    "one tool alone": (lambda: made(tools={"type": "function"}), "tools are a list"),
    "a model that is no name": (lambda: made(model=3), "model is a name"),
    "a format that is no name": (lambda: made(format=[]), "format is a name"),
    "stops that are no texts": (lambda: made(stop=[3]), "stop is a list"),
    "a role that nobody has": (lambda: made(protect=["usr"]), "protect names some of"),
    "the same for one prompt": (lambda: made().prompt([USER], protect=["developer"]), "protect names some of"),
    "no messages": (lambda: made().prompt(None), "messages are a list"),  # type: ignore[arg-type] # the mistake
    "one message alone": (lambda: made().prompt(USER), "messages are a list"),  # type: ignore[arg-type] # the mistake
    "a message that is none": (lambda: made().prompt([None, USER]), "message 0 is no dictionary"),  # type: ignore[list-item] # the mistake
    "a message that holds itself": (lambda: made().prompt([HOLDS_ITSELF]), "hold themselves"),
    "half of a surrogate pair": (lambda: prompt("a\ud800b"), r"U\+D800, after .*a'"),
    "the same beside a marker": (lambda: prompt("<|im_end|>", "\udc00"), r"U\+DC00"),
    "the same in a next prompt": (lambda: prompt("a").add([5]).next([{"role": "user", "content": "\ud800"}]), "D800"),
    "text for ids": (lambda: prompt("a").add("12"), "list of whole numbers"),  # type: ignore[arg-type] # the mistake
    "no ids": (lambda: prompt("a").add(None), "list of whole numbers"),  # type: ignore[arg-type] # the mistake
    "labels for ids": (lambda: prompt("a").add([5, -100]), "id 1 is -100, which no token has"),
    "an id beyond all": (lambda: prompt("a").add([10**30]), "id 0 is 1000"),
    "half an id": (lambda: prompt("a").add([1.5]), "whole number, not 1.5"),  # type: ignore[list-item] # the mistake
    "truth for an id": (lambda: prompt("a").add([True]), "whole number, not True"),
    "a batch for ids": (lambda: prompt("a").add([[5, 6]]), r"whole number, not \[5"),  # type: ignore[list-item] # the mistake
    "ids of a text": (lambda: made().text([-1]), "which no token has"),
    "log probabilities that lack one": (lambda: prompt("a").add([5], [None]), "logprobs are a list"),  # type: ignore[list-item] # the mistake
    "log probabilities as text": (lambda: prompt("a").add([5], "1"), "logprobs are a list"),  # type: ignore[arg-type] # the mistake
    "a reason that is none": (lambda: prompt("a").add([5], finish_reason=[]), "finish_reason must be"),  # type: ignore[arg-type] # the mistake
    "a next prompt of a text": (lambda: prompt("a").add([5]).next("hi"), "messages are a list"),  # type: ignore[arg-type] # the mistake
    "a next message that is none": (lambda: prompt("a").add([5]).next(["hi"]), "message 0 is no"),  # type: ignore[list-item] # the mistake
    "a loss that is none": (lambda: prompt("a").examples(None), "loss must be"),  # type: ignore[arg-type] # the mistake
    "a row that is none": (lambda: collate("hi"), "a row needs"),
    "half a row": (lambda: collate({"prompt": None, "completion": [USER]}), "a row needs"),
    "tools of a row that are no JSON": (lambda: collate({"messages": [USER], "tools": "{"}), "tools of a row"),
    "tools of a row that are no list": (lambda: collate({"messages": [USER], "tools": "3"}), "tools are a list"),
    "a length below zero": (lambda: collate(max_length=-1), "max_length is"),
    "a length in letters": (lambda: collate(max_length="3"), "max_length is"),
    "tensors of another kind": (lambda: collate(tensors="np"), "tensors is 'pt'"),
    "a loss of a collator": (lambda: collate(loss="all"), "loss must be"),
}


@pytest.mark.parametrize(("mistake", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_in_words(mistake: Callable[[], Any], words: str) -> None:
    with pytest.raises(asides.UsageError, match=words):
        mistake()


def test_one_role_alone_is_protected() -> None:
    asked = [{"role": "user", "content": "<|im_end|>"}]
    as_list, as_text = (made(protect=roles).prompt(asked) for roles in (["user"], "user"))
    assert as_text.ids == as_list.ids == made().prompt(asked, protect="user").ids
    assert as_text.ids != made(protect=()).prompt(asked).ids


def test_one_stop_alone_is_one() -> None:
    assert made(stop="<|eot|>").stops == made(stop=["<|eot|>"]).stops


def test_ids_that_no_token_has_are_not_remembered() -> None:
    """A server may send any number of them, and the tokenizer is held as long as the process."""
    talk = made()
    vocabulary = vocabulary_of(talk.tokenizer)
    parser = talk.reading.token_parser(vocabulary)
    tables: list[Sized] = [
        vocabulary._known,
        vocabulary.pieces,
        vocabulary.texts,
        disguise(talk.reading.format, vocabulary).pieces,
        disguise(talk.reading.format, vocabulary).texts,
        parser._plain,
    ]
    parser.feed(5)
    before = sum(map(len, tables))
    for id in range(1_000_000, 1_000_500):
        parser.feed(id)
        parser.feed([id])
        assert vocabulary.pieces[id] == ""
    assert sum(map(len, tables)) == before


def test_without_jinja_it_is_said_what_to_install() -> None:
    """By what needs it; the names are there."""
    script = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from asides import *\n"
        "from asides._conversation._template import chat_template\n"
        "try: chat_template('x')\n"
        "except Error as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("writing prompts needs jinja2: pip install"), done.stderr
