"""The page's files, as they are served: read once from the package, each with its type, its hash and safe headers."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

INDEX = "index.html"
TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}
"""By the end of a name. A file of any other kind is not served: sources of the vendored modules, say."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
"""The content security policy: whatever a model writes, nothing is loaded from elsewhere and no script in it runs; and
no text becomes markup but through the sanitizer."""
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
)
"""Sent with every file of the page."""


class StaticFile(msgspec.Struct, frozen=True):
    """A file of the page."""

    body: bytes
    media_type: str
    etag: str
    """Its hash in quotes, as HTTP wants it."""


@cache
def static_files() -> dict[str, StaticFile]:
    """Every file of the page by its name, `vendor/x.js` for one in a folder. Names are looked up, no path is opened."""
    return dict(_found(resources.files(__package__) / "static", ""))


def _found(folder: Traversable, prefix: str) -> list[tuple[str, StaticFile]]:
    found: list[tuple[str, StaticFile]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _found(entry, f"{prefix}{entry.name}/")
        elif media_type := TYPES.get(entry.name.rpartition(".")[2]):
            body = entry.read_bytes()
            etag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
            found.append((prefix + entry.name, StaticFile(body, media_type, etag)))
    return found
