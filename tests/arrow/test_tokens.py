"""With a tokenizer: where parts stand in the ids, and how many there are."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import asides
from asides._engine.vocabulary import vocabulary_of
from asides.arrow import figures, split, split_type
from tests.render import real

TEXTS = ["<think>Zwei und zwei: é 你好 𓂀.</think>\n\nEs sind vier.", "Nur das.", None, "", "𓂀𓂀"]


@pytest.mark.parametrize("name", ["deepseek_v4", "qwen3"])
def test_parts_have_their_place_in_the_ids(name: str) -> None:
    """The tokens of a span hold its text and touch nothing that is far from it."""
    tokenizer, vocabulary = real.tokenizer(name), real.vocabulary(name)
    found = split(pa.array(TEXTS), "deepseek_r1", start="text", tokenizer=tokenizer)
    found.validate(full=True)
    assert found.type == split_type(tokens=True)
    for text, row in zip(TEXTS, found.to_pylist(), strict=True):
        if text is None:
            assert row is None
            continue
        ids = vocabulary.encode_output(text)
        assert ids == real.encode(name, text)
        counts = {"thinking": 0, "text": 0, "tool_call": 0}
        for part in row["parts"]:
            written = text[part["start"] : part["end"]]
            held = vocabulary.text(ids[part["token_start"] : part["token_end"]])
            inner = vocabulary.text(ids[part["token_start"] + 1 : part["token_end"] - 1])
            assert written in held
            assert inner.strip("\ufffd") in written
            counts[part["kind"]] += part["token_end"] - part["token_start"]
        assert row["tokens"]["total"] == len(ids)
        assert row["tokens"]["thinking"] == counts["thinking"]
        assert row["tokens"]["text"] == counts["text"]


def test_spans_are_those_of_the_token_parser() -> None:
    """Where markers are tokens, the places are the same as those read from ids."""
    tokenizer = real.tokenizer("deepseek_v4")
    text = "<think>Zwei und zwei.</think>\n\nEs sind vier."
    parser = asides.TokenParser(tokenizer, "deepseek_r1", start="text")
    parser.feed(vocabulary_of(tokenizer).encode_output(text))
    parser.finish()
    (row,) = split(pa.array([text]), "deepseek_r1", start="text", tokenizer=tokenizer).to_pylist()
    spans = [(part["token_start"], part["token_end"]) for part in row["parts"]]
    assert spans == [part.tokens for part in parser.message.parts]


def test_a_tokenizer_that_rewrites_the_text_has_no_places() -> None:
    """The count is known, the places are not, and null says so."""

    class Lowers:
        def encode(self, text: str) -> list[int]:
            return [ord(character) for character in text.replace("ß", "ss")]

        def decode(self, ids: list[int]) -> str:
            return "".join(map(chr, ids))

    (row,) = split(pa.array(["<think>a</think>Gruß"]), "qwen3", tokenizer=Lowers()).to_pylist()
    assert row["tokens"] == {"total": 21, "thinking": None, "text": None, "calls": None}
    assert [part["token_start"] for part in row["parts"]] == [None, None]


def test_figures_count_tokens() -> None:
    """As `asides stats --tokenizer` does."""
    tokenizer = real.tokenizer("deepseek_v4")
    row = figures(pa.array(TEXTS[:1]), tokenizer=tokenizer).to_pylist()[0]
    message = asides.parse(TEXTS[0] or "")
    encode = vocabulary_of(tokenizer).encode
    assert row["thinking_tokens"] == len(encode(message.thinking))
    assert row["text_tokens"] == len(encode(message.text))
