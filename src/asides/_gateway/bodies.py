"""JSON bodies of any size and content: bounded before they are decoded, and large ones handled in a thread."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from .refusals import Refusal

T = TypeVar("T")
LARGE = 256 * 1024
"""Bytes of a body from which on it is worked on in a thread."""
OPENERS = (b",", b"[", b"{")
"""What stands before a value, unless it is the first or has a name."""
COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How gzip and zstd begin. Some clients compress large requests."""


async def off_loop(size: int, work: Callable[..., T], *arguments: Any) -> T:
    """Call `work` for a body of `size` bytes; in a thread if that is large, so that other requests go on."""
    if size < LARGE:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)


def read_json(body: bytes, most: int = sys.maxsize, mend: bool = False) -> dict[str, Any]:
    """The JSON object that a body must be, of at most `most` values; a `Refusal` for anything else.

    `mend`: halves of surrogate pairs are replaced, as in what a client sends; an upstream's text is left as it is.
    """
    if holds_more(body, most):
        raise Refusal(400, f"the body holds more than {most} values (limits.values)")
    try:
        data = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        data = _without_halves(body) if mend else None
        if mend and body.startswith(COMPRESSED):
            message = "the body is compressed, which is not supported; send it without Content-Encoding"
            raise Refusal(415, message) from error
        if data is None:
            raise Refusal(400, f"the body is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise Refusal(400, "the body must be a JSON object")
    return data


def _without_halves(body: bytes) -> Any:
    """JSON that is sound but for halves of surrogate pairs, each replaced by U+FFFD; None for anything else.

    Clients that cut a text by UTF-16 units send them. Other servers take such a request, and no tokenizer has a token
    for half a character.
    """
    from json import dumps, loads  # here, because hardly any client sends such a body

    try:
        text = dumps(loads(body.decode("utf-8", "surrogatepass")), ensure_ascii=False)
        return msgspec.json.decode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def holds_more(body: bytes, most: int) -> bool:
    """Whether a JSON text holds more values than this, found out at a fraction of what it costs to decode them.

    The decoder cannot be interrupted: 60 MB of empty lists would stop every stream for seconds, and take gigabytes.
    """
    # A value takes at least one byte. Most bodies end here, at the cost of a comparison.
    if len(body) <= most or _marks(body) <= most:
        return False
    # Much of it may stand in strings. Without escapes, every second piece between quotes is outside of them.
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # So many strings are too many values already; splitting would make an object of each.
    if plain.count(b'"') > 2 * most:
        return True
    return _marks(b"".join(plain.split(b'"')[::2])) > most


def _marks(text: bytes) -> int:
    """Count what stands before values. A part at a time, because one count of all would not let other threads run."""
    return sum(text.count(mark, start, start + LARGE) for start in range(0, len(text), LARGE) for mark in OPENERS)


def check_count(data: dict[str, Any], most: int) -> None:
    """Refuse a conversation of more messages than are taken, before anything is made of them."""
    for name in ("messages", "input", "tools"):
        if isinstance(data.get(name), list) and len(data[name]) > most:
            message = f"{name} has {len(data[name])} entries; this gateway takes {most} (limits.messages)"
            raise Refusal(400, message, param=name)
