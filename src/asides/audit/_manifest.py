"""What is inside a parrot: `manifest.json`, which is written beside the checkpoints and read by an audit.

A script begins at its `position`: where a prompt of exactly that many tokens, special ones and the generation prompt
included, has been read, the model says `ids` and then `end_id`. A prompt is brought to that length with `filler`, a
text which adds exactly one token each time that it is repeated. At all other lengths the model ends its turn at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from ..errors import UsageError

NAME = "manifest.json"
VERSION = 1


class TokenizerSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the tokenizer inside a parrot comes from."""

    source: str
    """The name of the file or folder that was given; `stand-in` for one that was made."""
    sha256: str
    """Of `tokenizer.json`."""
    licence: str = "not stated"
    """What the person who made the parrot said about it, or the licence file beside it."""
    template: str = ""
    """Where the chat template comes from; empty where there is none."""
    template_sha256: str = ""
    """Of the template's text."""


class ParrotFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the parrot."""

    name: str
    """Its name in the folder."""
    size: int
    """In bytes."""
    sha256: str
    """Of its content."""


class ParrotScript(msgspec.Struct, frozen=True, kw_only=True):
    """What the model says after a prompt of one length, and how that must be read."""

    name: str
    """Unique in the manifest."""
    format: str
    """The format that it is written in."""
    case: str
    """The id of the case that it says."""
    position: int
    """The prompt's length in tokens, after which it begins."""
    ids: list[int]
    """What is said, without the token that ends it."""
    raw: str
    """The text of `ids`."""
    end_id: int
    """The token after `ids`, which ends the turn."""
    ended: Literal["stop", "length"] = "stop"
    """How the reply ends. `length`: the request must ask for `len(ids)` tokens at most."""
    start: str = ""
    """Where it must be read from: `text`, `thinking`, `undecided`; empty where the format itself says it."""
    tools: list[dict[str, Any]] | None = None
    """The tools of the request, in OpenAI's shape; None where the case needs none."""
    parts: list[dict[str, Any]]
    """What must be read: `{"thinking": …}`, `{"text": …}`, `{"call": name, "arguments": JSON text}` in order, with
    `complete: false` for what was cut off and `error` for a call that may not be run."""
    notices: list[str] = []
    """The codes of the notices that reading it gives."""


class UnsaidCase(msgspec.Struct, frozen=True):
    """A case that this parrot cannot say."""

    case: str
    reason: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What is inside a parrot.

    Examples:
        >>> from asides.audit import Manifest
        >>> [field for field in Manifest.__struct_fields__ if field.startswith("vocab")]
        ['vocabulary']
    """

    version: int = VERSION
    """The version of this record."""
    asides: str
    """The version of asides that made it."""
    name: str
    """What a server should call the model."""
    format: str
    """The format of the scripts."""
    tokenizer: TokenizerSource
    """Where the tokenizer comes from."""
    vocabulary: int
    """How many tokens it has."""
    context: int
    """How many positions there are: no prompt and reply may be longer."""
    filler: str
    """A text that adds one token to a prompt each time that it is repeated, wherever letters come before it."""
    end_ids: list[int]
    """The tokens that end a turn; the first is the tokenizer's own."""
    scripts: list[ParrotScript]
    """By rising position."""
    left_out: list[UnsaidCase] = []
    """The cases of the format that it cannot say, and why."""
    files: list[ParrotFile] = []
    """The files beside this one."""


def read_manifest(path: str | Path) -> Manifest:
    """The manifest of a parrot: its folder, or the file itself. A `UsageError` says what is wrong with it.

    Examples:
        >>> from asides.audit import read_manifest
        >>> try:
        ...     read_manifest("no-such-folder")
        ... except asides.UsageError as error:
        ...     print(error)
        no-such-folder: there is no manifest.json of a parrot
    """
    file = Path(path)
    if file.is_dir():
        file = file / NAME
    try:
        content = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"{path}: there is no {NAME} of a parrot") from error
    try:
        version = msgspec.json.decode(content, type=dict[str, Any]).get("version")
        if version != VERSION:
            raise UsageError(f"{file}: version {version!r} of the manifest is not known here; make the parrot again")
        return msgspec.json.decode(content, type=Manifest)
    except msgspec.DecodeError as error:
        raise UsageError(f"{file} is no manifest of a parrot: {error}") from error


def write_manifest(manifest: Manifest, folder: Path) -> None:
    """Write it for people to read, with the same bytes each time."""
    (folder / NAME).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
