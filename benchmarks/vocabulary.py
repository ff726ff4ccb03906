"""Owns finding o200k_base, the vocabulary that openai-harmony needs and would otherwise download.

Knows file names and a checksum; must not know harmony or import any package that carries the file.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

FILE_NAME = "o200k_base.tiktoken"
CHECKSUM = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
# The name under which tiktoken caches the same file; litellm ships it so.
CACHED_NAME = "fb374d419588a4632f3f557e76b4b70aebbca790"


def o200k_base() -> bytes | None:
    """The file's content from any installed distribution that carries it, or None."""
    for path in _carriers():
        try:
            content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        except OSError:
            continue
        # Other files may bear the name. Harmony checks as well, but its error would name no file.
        if hashlib.sha256(content).hexdigest() == CHECKSUM:
            return content
    return None


def _carriers() -> Iterator[Path]:
    names = {FILE_NAME, f"{FILE_NAME}.gz", CACHED_NAME}
    for distribution in metadata.distributions():
        for file in distribution.files or ():
            if file.name in names:
                yield Path(str(file.locate()))
