"""A tokenizer seen from its ids: which bytes an id stands for, which ids are whole markers, which ids spell a text.

Knows no format. Nothing is imported here: a tokenizer is recognised by what it can do, so `tokenizers`, `transformers`,
`splintr`, `tiktoken` and whatever has the methods of one of them all serve.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

from ..errors import UsageError

Encode = Callable[[str], list[int]]


class Pieces(dict[int, str | None]):
    """The text of each token that is made of whole characters, found when it is first asked for; None for others."""

    def __init__(self, bytes_of: Callable[[int], bytes]) -> None:
        super().__init__()
        self._bytes_of = bytes_of

    def __missing__(self, id: int) -> str | None:
        try:
            found: str | None = self._bytes_of(id).decode()
        except UnicodeDecodeError:
            found = None
        self[id] = found
        return found


class Vocabulary:
    """A tokenizer, seen from its ids."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        inner = getattr(tokenizer, "backend_tokenizer", None) or tokenizer  # transformers' fast tokenizers
        self._inner = inner
        self.added: Mapping[str, int] = _added_tokens(tokenizer, inner)
        """Tokens that stand for a whole string of their own, special or not."""
        self._names = {id: text.encode("utf-8", "replace") for text, id in self.added.items()}
        self._bytes_of = _bytes_reader(tokenizer, inner)
        self._known: dict[int, bytes] = {}
        self.pieces = Pieces(self.bytes_of)
        """For each id its text, or None where its bytes alone are no whole characters."""

    def bytes_of(self, id: int) -> bytes:
        """The bytes of one token; none for an id that the tokenizer does not have."""
        found = self._known.get(id)
        if found is None:
            name = self._names.get(id)
            found = self._known[id] = name if name is not None else self._bytes_of(id)
        return found

    def decoder(self) -> codecs.IncrementalDecoder:
        """A decoder that waits for the rest of a character and replaces what never becomes one."""
        return codecs.getincrementaldecoder("utf-8")("replace")

    def text(self, ids: Iterable[int]) -> str:
        """The text of several tokens."""
        return b"".join(map(self.bytes_of, ids)).decode("utf-8", "replace")

    def encode(self, text: str) -> list[int]:
        """The ids of ordinary text. A marker that is spelled out in it stays words: no added token comes out."""
        if not text:
            return []
        ids = self._encode(text)
        if self._forbidden.isdisjoint(ids):
            return ids
        ids = self._encode_words(text)
        if self._forbidden.isdisjoint(ids):
            return ids
        # Cut inside every marker, so that no piece holds a whole one.
        cuts = [0, *(match.start() + 1 for match in self._marker.finditer(text)), len(text)]
        ids = [id for start, stop in pairwise(cuts) for id in self._encode(text[start:stop])]
        return [id for id in ids if id not in self._forbidden]

    def marker(self, text: str) -> list[int]:
        """The ids of a marker: its own token, or where the tokenizer has none, the ids that spell it."""
        id = self.added.get(text)
        return [id] if id is not None else self.encode(text)

    @cached_property
    def _forbidden(self) -> frozenset[int]:
        # Some vocabularies have added tokens for runs of spaces, which are words like any other.
        return frozenset(id for text, id in self.added.items() if text.strip())

    @cached_property
    def _marker(self) -> re.Pattern[str]:
        texts = sorted((text for text in self.added if len(text) > 1 and text.strip()), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, texts)) or r"(?!)")

    @cached_property
    def _encode(self) -> Encode:
        """Text to ids, whatever the tokenizer makes of markers in it."""
        tokenizer, inner = self.tokenizer, self._inner
        ordinary = getattr(tokenizer, "encode_ordinary", None)  # tiktoken, splintr
        if ordinary is not None:
            return lambda text: list(ordinary(text))
        if hasattr(inner, "id_to_token") and hasattr(inner, "encode"):  # tokenizers
            return lambda text: list(inner.encode(text, add_special_tokens=False).ids)
        if hasattr(tokenizer, "convert_ids_to_tokens"):  # transformers, slow
            return lambda text: list(tokenizer.encode(text, add_special_tokens=False))
        if hasattr(tokenizer, "encode"):
            return lambda text: list(tokenizer.encode(text))
        raise UsageError(f"a {type(tokenizer).__name__} has no encode, so it cannot be used for writing prompts")

    @cached_property
    def _encode_words(self) -> Encode:
        """Text to ids by a tokenizer that knows no markers."""
        tokenizer, inner = self.tokenizer, self._inner
        if hasattr(inner, "to_str") and hasattr(type(inner), "from_str"):  # tokenizers: a copy without added tokens
            description = json.loads(inner.to_str())
            tokens = description.get("added_tokens") or []
            description["added_tokens"] = [token for token in tokens if not token["content"].strip()]
            plain = type(inner).from_str(json.dumps(description))
            return lambda text: list(plain.encode(text, add_special_tokens=False).ids)
        if hasattr(tokenizer, "convert_ids_to_tokens"):
            return lambda text: list(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))
        return self._encode


def vocabulary_of(tokenizer: Any) -> Vocabulary:
    """The vocabulary of a tokenizer, kept for the next time where the tokenizer can be kept."""
    if isinstance(tokenizer, Vocabulary):
        return tokenizer
    try:
        return _kept(tokenizer)
    except TypeError:  # a tokenizer that cannot be hashed
        return Vocabulary(tokenizer)


@lru_cache(maxsize=64)
def _kept(tokenizer: Any) -> Vocabulary:
    return Vocabulary(tokenizer)


def _added_tokens(tokenizer: Any, inner: Any) -> dict[str, int]:
    if hasattr(inner, "get_added_tokens_decoder"):  # tokenizers
        return {token.content: id for id, token in inner.get_added_tokens_decoder().items()}
    if hasattr(tokenizer, "get_added_vocab"):  # transformers, slow
        return dict(tokenizer.get_added_vocab())
    special = getattr(tokenizer, "special_tokens", None)
    if callable(special):  # splintr
        special = special()
    if isinstance(special, Mapping):
        return {str(text): int(id) for text, id in special.items()}
    special = getattr(tokenizer, "_special_tokens", None)  # tiktoken
    if isinstance(special, Mapping):
        return {str(text): int(id) for text, id in special.items()}
    return {}


def _bytes_reader(tokenizer: Any, inner: Any) -> Callable[[int], bytes]:
    for name in ("decode_single_token_bytes", "decode_token_bytes"):  # tiktoken, splintr
        read = getattr(tokenizer, name, None)
        if read is not None:
            return _quiet(read)
    if hasattr(inner, "id_to_token"):
        byte_level = "ByteLevel" in str(getattr(inner, "decoder", ""))
        return _quiet(lambda id: _token_bytes(inner.id_to_token(id), byte_level))
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        byte_level = hasattr(tokenizer, "byte_decoder")
        return _quiet(lambda id: _token_bytes(tokenizer.convert_ids_to_tokens(id), byte_level))
    if hasattr(tokenizer, "decode"):
        return _quiet(lambda id: str(tokenizer.decode([id])).encode("utf-8", "replace"))
    raise UsageError(
        f"a {type(tokenizer).__name__} is no tokenizer that can be read: it has neither id_to_token, "
        "decode_single_token_bytes, convert_ids_to_tokens nor decode"
    )


def _quiet(read: Callable[[int], Any]) -> Callable[[int], bytes]:
    """Ids that a tokenizer does not know are no bytes, not an error of its own kind."""

    def bytes_of(id: int) -> bytes:
        try:
            return bytes(read(id) or b"")
        except Exception:
            return b""

    return bytes_of


def _token_bytes(token: str | None, byte_level: bool) -> bytes:
    if token is None:
        return b""
    if byte_level:
        try:
            return bytes(BYTE_LEVEL[character] for character in token)
        except KeyError:
            return token.encode()
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        try:
            return bytes([int(token[3:5], 16)])
        except ValueError:
            return token.encode()
    return token.replace("▁", " ").encode()


def _byte_level() -> dict[str, int]:
    """The letters that byte-level vocabularies write for bytes: printable ones themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    rest = (byte for byte in range(256) if byte not in printable)
    table.update({chr(256 + number): byte for number, byte in enumerate(rest)})
    return table


BYTE_LEVEL = _byte_level()
