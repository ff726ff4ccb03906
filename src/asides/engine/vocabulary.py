"""From token ids to bytes, for any tokenizer people hold: which bytes an id stands for, which ids are whole markers.

Knows no format. Nothing is imported here: a tokenizer is recognised by what it can do.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import UsageError


class Vocabulary:
    """A tokenizer, seen from its ids."""

    def __init__(self, tokenizer: Any) -> None:
        inner = getattr(tokenizer, "backend_tokenizer", None) or tokenizer  # transformers' fast tokenizers
        self.added: Mapping[str, int] = _added_tokens(tokenizer, inner)
        """Tokens that stand for a whole string of their own, special or not."""
        self._names = {id: text for text, id in self.added.items()}
        self._bytes_of = _bytes_reader(tokenizer, inner)
        self._known: dict[int, bytes] = {}

    def bytes_of(self, id: int) -> bytes:
        """The bytes of one token."""
        found = self._known.get(id)
        if found is None:
            name = self._names.get(id)
            found = self._known[id] = name.encode() if name is not None else self._bytes_of(id)
        return found

    def decoder(self) -> codecs.IncrementalDecoder:
        """A decoder that waits for the rest of a character and replaces what never becomes one."""
        return codecs.getincrementaldecoder("utf-8")("replace")

    def text(self, ids: Iterable[int]) -> str:
        """The text of several tokens."""
        return b"".join(map(self.bytes_of, ids)).decode("utf-8", "replace")


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
        return lambda id: _token_bytes(inner.id_to_token(id), byte_level)
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        byte_level = hasattr(tokenizer, "byte_decoder")
        return lambda id: _token_bytes(tokenizer.convert_ids_to_tokens(id), byte_level)
    if hasattr(tokenizer, "decode"):
        return lambda id: str(tokenizer.decode([id])).encode("utf-8", "surrogatepass")
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
