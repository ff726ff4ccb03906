"""Capsules: proofs that clients carry, sealed so that only this gateway can open them, and only for the same client.

A provider's proof goes out in the field that a client returns anyway (a signature, `encrypted_content`, a detail) and
comes back with the next request, so a conversation survives a restart, and several workers and machines need no store.
The construction is that of `cryptography`: AES-256-GCM under a key that HKDF-SHA256 derives from the master key and a
random salt of each capsule. Version, key id, issuer, and keyed hashes of the credential and of the user and session
that the client names are authenticated with it. Inside, beside the proof, is a hash of what stood before the reply:
clients rewrite prompts, so it is only compared, and what differs is reported. As bytes, before base64:

    version (1) | key id (8) | salt (16) | nonce (12) | ciphertext and tag

What does not open is nobody's error: the thought counts as unknown. Master keys are those of `continuity.keys`, the
first seals and all open; where there are none, one is made in a file in the user's state folder when it is first
needed. Whoever has the key can read every thought in every saved conversation.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import logging
import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

import msgspec

from .._config.schema import ContinuitySettings
from .._extras import install_command
from ..reply._items import PlacedProof

log = logging.getLogger("asides.gateway")

PREFIX = "asides2."
"""How a capsule begins, so that it is known from anybody else's signature."""
VERSION = b"\x01"
KEY_ID, SALT, NONCE, TAG = 8, 16, 12, 16
"""Bytes of each."""
HEAD = len(VERSION) + KEY_ID + SALT + NONCE
SHORTEST_KEY = 32
"""Characters of a configured key; a shorter one could be guessed."""


class CapsuleOwner(msgspec.Struct, frozen=True):
    """For whom a capsule is: it opens for nobody else."""

    issuer: str
    """The upstream and the model that made what is in it."""
    credential: str
    """The client's credential, hashed."""
    session: bytes
    """The user and the session that the client names."""


class CapsuleContent(msgspec.Struct, frozen=True):
    """What is in a capsule."""

    proof: PlacedProof
    before: str = ""
    """A hash of the conversation before the reply that it came with."""


class Capsules:
    """Seals proofs for clients and opens what they bring back. Never raises for what a client sent."""

    def __init__(self, keys: Sequence[bytes], limit: int) -> None:
        """`keys`: the first seals, all open; `limit`: the most characters of a capsule."""
        self._keys = {_key_id(key): key for key in keys}
        self._first = keys[0]
        self._limit = limit

    def seal(self, content: CapsuleContent, owner: CapsuleOwner) -> str:
        """What a client may carry; empty where it would be too long."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # here: few gateways have such upstreams

        plain = msgspec.json.encode(content)
        if _encoded_length(HEAD + len(plain) + TAG) > self._limit:
            return ""
        key, salt, nonce = self._first, secrets.token_bytes(SALT), secrets.token_bytes(NONCE)
        head = VERSION + _key_id(key)
        sealed = AESGCM(_derive(key, salt)).encrypt(nonce, plain, _authenticated(head, key, owner))
        return PREFIX + base64.urlsafe_b64encode(head + salt + nonce + bytes(sealed)).decode().rstrip("=")

    def open(self, text: str, owner: CapsuleOwner) -> CapsuleContent | None:
        """What is in a capsule; None where it does not open for this owner."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if not text.startswith(PREFIX) or len(text) > self._limit:
            return None
        encoded = text[len(PREFIX) :]
        try:
            data = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        head, salt = data[: 1 + KEY_ID], data[1 + KEY_ID : HEAD - NONCE]
        # Another spelling of the same bytes would be another capsule to whoever compares texts.
        if base64.urlsafe_b64encode(data).decode().rstrip("=") != encoded:
            return None
        key = self._keys.get(head[1:])
        if len(data) < HEAD + TAG or head[:1] != VERSION or key is None:
            return None
        try:
            nonce, sealed = data[HEAD - NONCE : HEAD], data[HEAD:]
            plain = AESGCM(_derive(key, salt)).decrypt(nonce, sealed, _authenticated(head, key, owner))
            return msgspec.json.decode(bytes(plain), type=CapsuleContent)
        except (InvalidTag, msgspec.MsgspecError):
            return None


def make_capsules(settings: ContinuitySettings, limit: int) -> Capsules | None:
    """Capsules by the configured keys, or by that of the key file; None, with a line in the log, where neither can be
    used."""
    try:
        import cryptography  # noqa: F401  # of the extra `gateway`; an older installation may lack it

        keys = [key.encode() for key in settings.keys] or [read_key_file(key_file())]
        return Capsules(keys, limit)
    except ImportError:
        log.warning("thoughts are not given to clients to carry: %s", install_command("cryptography"))
    except (OSError, ValueError) as error:
        log.warning("thoughts are not given to clients to carry: %s; set continuity.keys", error)
    return None


def key_file() -> Path:
    """Where the key is that was made here: in the user's state folder, never in the current one."""
    folder = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification ignores relative paths: they would lie in the current folder.
    base = Path(folder) if os.path.isabs(folder) else Path.home() / ".local" / "state"
    return base / "asides" / "continuity.key"


def read_key_file(path: Path) -> bytes:
    """The key in a file, which is made if there is none. A `ValueError` for one that others may read, or that is none.

    Several processes may come here at once: the first to link its file under the name wins, and all read that one.
    """
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mine = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        handle = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_urlsafe(48))
            with contextlib.suppress(FileExistsError):
                os.link(mine, path)
        finally:
            mine.unlink()
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if os.name == "posix" and (not stat.S_ISREG(found.st_mode) or found.st_mode & 0o077):
            raise ValueError(f"{path} may be read by others (chmod 600)")
        if hasattr(os, "getuid") and found.st_uid != os.getuid():
            raise ValueError(f"{path} belongs to another user")
        key = file.read(4096).strip()
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"{path} holds no key of at least {SHORTEST_KEY} characters")
    return key


def _key_id(key: bytes) -> bytes:
    return hmac.digest(key, b"asides capsule key id", hashlib.sha256)[:KEY_ID]


def _derive(key: bytes, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return bytes(HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"asides capsule").derive(key))


def _authenticated(head: bytes, key: bytes, owner: CapsuleOwner) -> bytes:
    """What is authenticated with a capsule and not in it; fields with their lengths, so that no two look alike."""
    credential = hmac.digest(key, b"credential " + owner.credential.encode(), hashlib.sha256)
    session = hmac.digest(key, b"session " + owner.session, hashlib.sha256)
    issuer = owner.issuer.encode("utf-8", "surrogatepass")
    return b"".join(b"%d:%b" % (len(field), field) for field in (head, issuer, credential, session))


def _encoded_length(size: int) -> int:
    return len(PREFIX) + -(-size * 4 // 3)
