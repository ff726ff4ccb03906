"""Random ids, from bytes that are taken from the system many at a time: each call of it costs tens of microseconds."""

from __future__ import annotations

import os

SIZE = 16
AT_ONCE = 256
_numbers: list[bytes] = []
if hasattr(os, "register_at_fork"):  # pragma: no branch (Windows has no forks)
    os.register_at_fork(after_in_child=_numbers.clear)  # two processes must not give out the same


def random_bits(count: int) -> int:
    """A number of so many bits, at most 128, that nobody can guess; safe in threads."""
    try:
        found = _numbers.pop()
    except IndexError:
        data = os.urandom(SIZE * AT_ONCE)
        found, *rest = (data[start : start + SIZE] for start in range(0, len(data), SIZE))
        _numbers.extend(rest)
    return int.from_bytes(found, "big") >> (8 * SIZE - count)


def new_uuid() -> str:
    """A random UUID (version 4) as 32 hexadecimal digits."""
    return f"{random_bits(128) & ~(0xF000_C000 << 48) | 0x4000_8000 << 48:032x}"
