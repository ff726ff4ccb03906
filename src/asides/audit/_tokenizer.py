"""A `tokenizer.json` as a parrot needs it: its tokens by id, what kind each is, its merges, its chat template.

Byte-level BPE is what GGUF's `gpt2` tokenizer is, and what nearly all newer models have. Other kinds are refused by
their name. How words are cut before merging has a name in llama.cpp, which is found by the patterns in the file; if
they are not known the name is `default`. That changes how a prompt is cut, never what a script says: prompts are
measured by who asks, and scripts are ids.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from .._engine.vocabulary import Vocabulary
from .._extras import install_command
from ..detect._facts import Facts, read
from ..detect._files import MOST_JSON, read_bytes, read_text
from ..errors import UsageError
from ._codes import MOST_TOKENS
from ._manifest import TokenizerSource

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5
"""GGUF's kinds of tokens."""

_PRE_TOKENIZERS = {
    "1ff7f4106489": "qwen2",
    "2d1b8dc11e89": "gpt-4o",
    "90803cbd0ebf": "deepseek-v3",
    "1d64a9a8eaf9": "tekken",
}
"""llama.cpp's name by the first digits of the SHA-256 of the patterns that words are cut with, one in each line."""
_THREE_DIGITS = "d98f9631be1e"
"""The patterns that two names share: `llama-bpe` takes a word that is a token as it is, `glm4` merges it."""
_OTHER_FILES = {
    "tekken.json": "Mistral's tekken.json",
    "tokenizer.model": "a SentencePiece tokenizer.model",
    "*.tiktoken": "tiktoken ranks",
    "*.gguf": "a GGUF",
    "vocab.txt": "a vocabulary of words (vocab.txt)",
}


class ParrotTokenizer(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken from a tokenizer's files."""

    source: TokenizerSource
    json: bytes
    """The file as it is."""
    config: dict[str, Any]
    """`tokenizer_config.json`, without its chat template."""
    template: str
    tokens: list[str]
    """By id; an id that has none is called `[UNUSED…]`."""
    kinds: list[int]
    merges: list[str]
    pre_tokenizer: str
    begin: int | None
    end: int | None
    begins_prompts: bool
    """Whether the tokenizer puts its beginning before a text."""
    vocabulary: Vocabulary

    def encode(self, text: str) -> list[int]:
        """The ids of a text, in which markers are their tokens."""
        ids: list[int] = self.vocabulary.tokenizer.encode(text, add_special_tokens=False).ids
        return ids


class _AddedToken(msgspec.Struct):
    id: int
    content: str
    special: bool = False


class _Bpe(msgspec.Struct):
    type: str = "BPE"
    vocab: dict[str, int] = {}
    merges: list[str | tuple[str, str]] = []
    byte_fallback: bool | None = False
    ignore_merges: bool | None = False


class _ModelKind(msgspec.Struct):
    type: str = "BPE"


class _Kind(msgspec.Struct):
    model: _ModelKind


class _File(msgspec.Struct):
    model: _Bpe
    added_tokens: list[_AddedToken] = []
    pre_tokenizer: dict[str, Any] | None = None
    post_processor: dict[str, Any] | None = None


def read_tokenizer(given: Path, template: Path | None = None, licence: str = "") -> ParrotTokenizer:
    """The tokenizer of a folder, or of a `tokenizer.json`; a `UsageError` says what cannot be used."""
    path = _find(given)
    content = read_bytes(path, MOST_JSON)
    facts = read(path.parent if path.name == "tokenizer.json" else path)
    config_file = path.with_name("tokenizer_config.json")
    config = _decode(config_file, read_bytes(config_file, MOST_JSON), dict[str, Any]) if config_file.exists() else {}
    text = read_text(template) if template is not None else facts.template or ""
    source = TokenizerSource(
        source=given.resolve().name,
        sha256=hashlib.sha256(content).hexdigest(),
        licence=licence or _licence_file(path.parent) or "not stated",
        template=(template.name if template is not None else given.resolve().name) if text else "",
        template_sha256=hashlib.sha256(text.encode()).hexdigest() if text else "",
    )
    return make_tokenizer(content, source, str(path), config=config, template=text, facts=facts)


def make_tokenizer(
    content: bytes, source: TokenizerSource, name: str, *, config: dict[str, Any], template: str, facts: Facts
) -> ParrotTokenizer:
    """The tokenizer that a file's content is. `name` is what errors call it."""
    kind = _decode(name, content, _Kind).model.type
    if kind != "BPE":
        raise UsageError(f"{name}: a {kind} tokenizer; a parrot can be made from byte-level BPE alone")
    file = _decode(name, content, _File)
    steps = _steps(file.pre_tokenizer)
    if file.model.byte_fallback or not any(step.get("type") == "ByteLevel" for step in steps):
        raise UsageError(
            f"{name}: BPE in the manner of SentencePiece (as in Llama 2 and Gemma); a parrot can be made from "
            "byte-level BPE alone"
        )
    tokens, kinds = _tokens(file, name)
    ids = {token: id for id, token in enumerate(tokens)}
    added = config.get("add_bos_token")
    return ParrotTokenizer(
        source=source,
        json=content,
        config={key: value for key, value in config.items() if key != "chat_template"},
        template=template,
        tokens=tokens,
        kinds=kinds,
        merges=[merge if isinstance(merge, str) else " ".join(merge) for merge in file.model.merges],
        pre_tokenizer=_pre_tokenizer(steps, bool(file.model.ignore_merges)),
        begin=ids.get(facts.begin) if facts.begin else None,
        end=ids.get(facts.stop) if facts.stop else None,
        begins_prompts=added
        if isinstance(added, bool)
        else bool(facts.begin) and facts.begin in str(file.post_processor),
        vocabulary=Vocabulary(_live(content, name)),
    )


def _find(given: Path) -> Path:
    """The `tokenizer.json` that is meant."""
    if given.is_dir():
        path = given / "tokenizer.json"
        if path.exists():
            return path
        others = [what for pattern, what in _OTHER_FILES.items() if any(given.glob(pattern))]
        there = f"; there is {' and '.join(others)}, which a parrot cannot be made from" if others else ""
        raise UsageError(f"{given}: holds no tokenizer.json{there}")
    if not given.exists():
        raise UsageError(f"{given}: no such file or folder")
    for pattern, what in _OTHER_FILES.items():
        if given.match(pattern):
            raise UsageError(f"{given}: {what}; a parrot is made from a tokenizer.json")
    return given


def _decode(name: Path | str, content: bytes, shape: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{name}: not the JSON that such a file has: {error}") from error


def _live(content: bytes, name: str) -> Any:
    try:
        from tokenizers import Tokenizer  # here, because it is an extra
    except ImportError as error:
        raise UsageError(f"a parrot needs tokenizers: {install_command('tokenizers')}") from error
    try:
        return Tokenizer.from_buffer(content)
    except Exception as error:  # it raises Exception itself
        raise UsageError(f"{name}: {error}") from error


def _tokens(file: _File, name: str) -> tuple[list[str], list[int]]:
    """Every id's text and kind. An added token counts more than one of the vocabulary."""
    by_id = {id: (token, NORMAL) for token, id in file.model.vocab.items()}
    by_id |= {each.id: (each.content, CONTROL if each.special else USER_DEFINED) for each in file.added_tokens}
    if not by_id:
        raise UsageError(f"{name}: has no tokens")
    if min(by_id) < 0 or max(by_id) >= MOST_TOKENS or max(by_id) >= 2 * len(by_id) + 65536:
        raise UsageError(f"{name}: ids from {min(by_id)} to {max(by_id)} for {len(by_id)} tokens")
    found = [by_id.get(id, (f"[UNUSED{id}]", UNUSED)) for id in range(max(by_id) + 1)]
    return [token for token, _ in found], [kind for _, kind in found]


def _steps(pre_tokenizer: dict[str, Any] | None) -> list[dict[str, Any]]:
    steps = (pre_tokenizer or {}).get("pretokenizers", [pre_tokenizer or {}])
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _pre_tokenizer(steps: list[dict[str, Any]], ignores_merges: bool) -> str:
    patterns = [step.get("pattern") for step in steps if step.get("type") == "Split"]
    written = "\n".join(str(pattern.get("Regex")) for pattern in patterns if isinstance(pattern, dict))
    digest = hashlib.sha256(written.encode()).hexdigest()[:12]
    if digest == _THREE_DIGITS:
        return "llama-bpe" if ignores_merges else "glm4"
    if not patterns:
        return "command-r" if any(step.get("type") == "Digits" for step in steps) else "gpt-2"
    return _PRE_TOKENIZERS.get(digest, "default")


def _licence_file(folder: Path) -> str:
    """The first line of a licence beside the tokenizer that says something."""
    for path in sorted([*folder.glob("LICENSE*"), *folder.glob("LICENCE*")]):
        if path.is_file():
            lines = [line.strip() for line in read_text(path).splitlines() if line.strip()]
            return f"{path.name}: {lines[0][:100]}" if lines else path.name
    return ""
