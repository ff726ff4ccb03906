"""A real tokenizer of transformers whose tokens are the bytes and the markers: every text has ids and comes back."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tests.hf.replies import SPECIAL


def byte_tokenizer() -> Any:
    """A new one; each marker of the generated replies is one token."""
    tokenizers = import_module("tokenizers")
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {letter: number for number, letter in enumerate(sorted(alphabet))}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens([tokenizers.AddedToken(each, special=True, normalized=False) for each in SPECIAL])
    return import_module("transformers").PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|return|>")
