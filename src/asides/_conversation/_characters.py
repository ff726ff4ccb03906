"""A tokenizer for templates that come without one: each character is an id, and each marker is one."""

from __future__ import annotations

from collections.abc import Iterable

FIRST_MARKER = 0x110000
"""The first number that is no character."""


class CharacterTokenizer:
    """Has the methods by which a tokenizer of tiktoken is recognised."""

    def __init__(self, markers: Iterable[str], begin: str = "", stop: str = "") -> None:
        own = dict.fromkeys(text for text in (*markers, begin, stop) if text.strip())
        self.special_tokens: dict[str, int] = {text: FIRST_MARKER + place for place, text in enumerate(own)}
        self.bos_token: str = begin
        self.eos_token: str = stop
        self._markers = list(own)

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text in which no marker acts."""
        return [ord(character) for character in text]

    def decode_single_token_bytes(self, id: int) -> bytes:
        """What an id stands for."""
        if id >= FIRST_MARKER:
            return self._markers[id - FIRST_MARKER].encode()
        return chr(id).encode()
