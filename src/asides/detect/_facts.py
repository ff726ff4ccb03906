"""Whatever holds a tokenizer, seen as facts: added tokens, chat template, names. Objects, files, folders, dicts.

Recognises a tokenizer by what it can do and imports nothing for it: an object of `tokenizers`, `transformers` or
another library, a folder as it was downloaded, a `tokenizer.json` or `tokenizer_config.json` (as a file or a dict), a
`.jinja`, a GGUF or its reader. Formats have no part in it.

    read("./Qwen3-8B")    Facts(added={"<think>": 151667, ...}, template="{%- if ...", names=("Qwen3-8B",))
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from .._engine.vocabulary import added_tokens
from .._extras import install_command
from ..errors import UsageError
from ._files import read_json, read_text
from ._from_gguf import is_gguf, read_metadata

SMALL = 16 << 20
"""Bytes of a `tokenizer.json` that is quickly loaded, to see how it splits a marker that it has no token for."""
WHOLE = (3, 4)
"""The kinds of tokens in a GGUF that stand for a whole string: control and user-defined."""

SPLINTRS_OWN = 54


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a tokenizer, or what holds one, says."""

    added: dict[str, int] | None = None
    """Tokens that stand for a whole string of their own; None where there is no tokenizer."""
    template: str | None = None
    begin: str = ""
    stop: str = ""
    names: tuple[str, ...] = ()
    """What it calls the model."""
    live: Any = None
    """The tokenizer itself, where there is one."""
    file: Path | None = None
    """The `tokenizer.json` that one could be made from."""

    def pieces(self, texts: list[str]) -> list[list[str]]:
        """How the tokenizer splits texts; nothing where loading it would cost much."""
        live = self.live
        if live is None and self.file is not None and self.file.stat().st_size <= SMALL:
            live = _load(self.file, needed=False)
        try:
            if hasattr(live, "token_to_id"):  # tokenizers
                return [list(live.encode(text, add_special_tokens=False).tokens) for text in texts]
            if hasattr(live, "tokenize"):  # transformers
                return [list(live.tokenize(text)) for text in texts]
        except Exception:  # a tokenizer of somebody else's; the pieces are only for the reader's eyes
            return []
        return []

    def loaded(self) -> Any:
        """A tokenizer that knows what ids mean."""
        if self.live is not None:
            return self.live
        if self.file is not None:
            return _load(self.file, needed=True)
        raise UsageError("prompt_ids needs a tokenizer that knows what the ids mean")


def _load(path: Path, *, needed: bool) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        if needed:
            raise UsageError(
                f"reading ids with {path.name} needs tokenizers: {install_command('tokenizers')}"
            ) from error
        return None
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # it raises Exception itself
        if needed:
            raise UsageError(f"{path}: {error}") from error
        return None


def read(tokenizer: Any) -> Facts:
    """What a tokenizer says, whatever it is."""
    if isinstance(tokenizer, Facts):
        return tokenizer
    if isinstance(tokenizer, str | os.PathLike):
        return _from_path(Path(tokenizer))
    if isinstance(tokenizer, Mapping):
        return _from_mapping(tokenizer)
    if isinstance(getattr(tokenizer, "fields", None), Mapping):
        return _from_metadata(_fields(tokenizer), ())
    template = choose_template(getattr(tokenizer, "chat_template", None))
    held = getattr(tokenizer, "tokenizer", None)
    if held is not None and not hasattr(tokenizer, "backend_tokenizer"):  # a processor
        tokenizer = held
    begin, stop = (getattr(tokenizer, name, None) for name in ("bos_token", "eos_token"))
    name = getattr(tokenizer, "name_or_path", None)
    return Facts(
        added=_added(tokenizer),
        template=template or choose_template(getattr(tokenizer, "chat_template", None)),
        begin=begin if isinstance(begin, str) else "",
        stop=stop if isinstance(stop, str) else "",
        names=(name,) if isinstance(name, str) and name else (),
        live=tokenizer,
    )


def _added(tokenizer: Any) -> dict[str, int] | None:
    """The added tokens; None where there are none to be seen, which says nothing."""
    added = added_tokens(tokenizer)
    if hasattr(tokenizer, "streaming_decoder_with_special"):
        # splintr puts tokens of its own behind every vocabulary, `<|think|>` among them. No model knows them.
        added = {text: id for text, id in added.items() if id < tokenizer.vocab_size - SPLINTRS_OWN}
    return added or None


def choose_template(value: Any) -> str | None:
    """The template among several: a string, a dict of them, or a list of `{"name", "template"}`."""
    if isinstance(value, list | tuple):
        pairs = [item for item in value if isinstance(item, Mapping)]
        value = {item.get("name"): item.get("template") for item in pairs}
    if isinstance(value, Mapping):
        value = value.get("default") or next((one for one in value.values() if isinstance(one, str)), None)
    return value if isinstance(value, str) and value.strip() else None


class _Token(msgspec.Struct):
    id: int
    content: str


class _TokenizerFile(msgspec.Struct):
    added_tokens: list[_Token] = []
    model: msgspec.Raw = msgspec.Raw(b"")


class _Content(msgspec.Struct):
    content: str


class _TokenizerConfig(msgspec.Struct):
    """`tokenizer_config.json`."""

    added_tokens_decoder: dict[str, _Content] = {}
    chat_template: Any = None
    bos_token: str | _Content | None = None
    eos_token: str | _Content | None = None


class _ModelConfig(msgspec.Struct):
    """`config.json`."""

    model_type: Any = None
    name_or_path: Any = msgspec.field(default=None, name="_name_or_path")


class _TemplateFile(msgspec.Struct):
    """`chat_template.json`, as processors of images write it."""

    chat_template: Any = None


def _from_path(path: Path) -> Facts:
    if path.is_dir():
        return _from_folder(path)
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder")
    if path.suffix in (".jinja", ".j2", ".jinja2"):
        return Facts(template=read_text(path), names=_names_of(path.stem))
    if path.suffix == ".gguf" or is_gguf(path):
        return _from_metadata(read_metadata(path), _names_of(path.stem))
    if path.name in ("tokenizer_config.json", "chat_template.json"):
        return _from_config(read_json(path, _TokenizerConfig))
    file = read_json(path, _TokenizerFile)
    if not file.model and not file.added_tokens:
        raise UsageError(f"{path}: no tokenizer.json: it has neither a model nor added tokens")
    return Facts(added={token.content: token.id for token in file.added_tokens}, file=path)


def _from_folder(folder: Path) -> Facts:
    found = Facts(names=_names_of_folder(folder))
    file, config = folder / "tokenizer.json", folder / "tokenizer_config.json"
    if config.exists():
        found = _merge(found, _from_config(read_json(config, _TokenizerConfig)))
    if file.exists():
        # After the configuration: the tokenizer is made from this file, so its ids are right where the two differ.
        found = _merge(found, _from_path(file))
    # A template in a file of its own counts more than one in the configuration, and the Jinja file most.
    for name in ("chat_template.json", "chat_template.jinja"):
        path = folder / name
        if path.exists():
            jinja = path.suffix == ".jinja"
            template = read_text(path) if jinja else choose_template(read_json(path, _TemplateFile).chat_template)
            found = _merge(found, Facts(template=template))
    if found.added is None and found.template is None:
        ggufs = sorted(folder.glob("*.gguf"))
        hint = f"; there is {ggufs[0].name}, which can be probed itself" if ggufs else ""
        raise UsageError(f"{folder}: holds neither tokenizer.json, tokenizer_config.json nor chat_template.jinja{hint}")
    return found


def _merge(one: Facts, other: Facts) -> Facts:
    """Both together; of what both say, the latter."""
    added = {**(one.added or {}), **(other.added or {})}
    return Facts(
        added=added if one.added is not None or other.added is not None else None,
        template=other.template or one.template,
        begin=other.begin or one.begin,
        stop=other.stop or one.stop,
        names=one.names + other.names,
        live=other.live or one.live,
        file=other.file or one.file,
    )


def _from_config(config: _TokenizerConfig) -> Facts:
    decoder = {token.content: int(id) for id, token in config.added_tokens_decoder.items() if id.isdecimal()}
    return Facts(
        added=decoder or None,
        template=choose_template(config.chat_template),
        begin=_content(config.bos_token),
        stop=_content(config.eos_token),
    )


def _content(token: str | _Content | None) -> str:
    return token.content if isinstance(token, _Content) else token or ""


def _from_mapping(tokenizer: Mapping[str, Any]) -> Facts:
    """The content of a `tokenizer.json` or a `tokenizer_config.json`, as a dict."""
    try:
        config = msgspec.convert(dict(tokenizer), _TokenizerConfig)
        file = msgspec.convert({"added_tokens": tokenizer.get("added_tokens", [])}, _TokenizerFile)
    except msgspec.ValidationError as error:
        raise UsageError(f"a dict, but not that of a tokenizer.json: {error}") from error
    if not {"added_tokens", "model", "added_tokens_decoder", "chat_template"} & set(tokenizer):
        raise UsageError("a dict, but not that of a tokenizer.json: it has neither a model nor added tokens")
    found = _from_config(config)
    if "added_tokens" in tokenizer or "model" in tokenizer:
        found = _merge(found, Facts(added={token.content: token.id for token in file.added_tokens}))
    return found


def _from_metadata(fields: Mapping[str, Any], names: tuple[str, ...]) -> Facts:
    """The metadata of a GGUF."""
    tokens = fields.get("tokenizer.ggml.tokens") or []
    kinds = fields.get("tokenizer.ggml.token_type") or []
    added = {_text(token): id for id, (token, kind) in enumerate(zip(tokens, kinds, strict=False)) if kind in WHOLE}
    named = [fields.get(f"general.{name}") for name in ("basename", "name")]
    template = fields.get("tokenizer.chat_template")
    return Facts(
        added=added if tokens else None,
        template=choose_template(_text(template) if template is not None else None),
        begin=_at(tokens, fields.get("tokenizer.ggml.bos_token_id")),
        stop=_at(tokens, fields.get("tokenizer.ggml.eos_token_id")),
        names=(*names, *(_text(name) for name in named if name)),
    )


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _at(tokens: list[Any], id: Any) -> str:
    return _text(tokens[id]) if isinstance(id, int) and 0 <= id < len(tokens) else ""


def _fields(reader: Any) -> dict[str, Any]:
    """The fields of a `gguf.GGUFReader`."""
    return {name: field.contents() for name, field in reader.fields.items() if hasattr(field, "contents")}


def _names_of(stem: str) -> tuple[str, ...]:
    return (stem,) if stem not in ("chat_template", "template", "tokenizer", "model") else ()


def _names_of_folder(folder: Path) -> tuple[str, ...]:
    """What a folder says of the model: the hub's cache, `config.json`, the folder's own name."""
    # In the hub's cache the folder itself is called by a commit.
    names = [part.removeprefix("models--").replace("--", "/") for part in folder.parts if part.startswith("models--")]
    config = folder / "config.json"
    if not names and not re.fullmatch(r"[0-9a-f]{40}", folder.name):
        names.append(folder.resolve().name)
    if config.exists():
        found = read_json(config, _ModelConfig)
        names += [str(name) for name in (found.name_or_path, found.model_type) if name]
    return tuple(names)
