"""Random ids: UUIDs that others accept, never the same twice, in threads and in forked processes either."""

from __future__ import annotations

import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from asides._gateway.randomness import AT_ONCE, new_uuid, random_bits


def test_uuids() -> None:
    """They are of version 4, and all bits but those that name it differ from one to the next."""
    found = [new_uuid() for _ in range(3 * AT_ONCE)]
    assert all(len(each) == 32 for each in found)
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in found} == {(4, uuid.RFC_4122)}
    assert len(set(found)) == len(found)
    varying = 0
    for each in found[1:]:
        varying |= int(each, 16) ^ int(found[0], 16)
    assert varying.bit_count() == 122


def test_so_many_bits() -> None:
    """No more than were asked for, and the highest is among them."""
    numbers = [random_bits(62) for _ in range(200)]
    assert max(numbers).bit_length() == 62
    assert len(set(numbers)) == len(numbers)


def test_threads_never_share_a_number() -> None:
    """Large requests are planned in threads."""
    with ThreadPoolExecutor(8) as threads:
        numbers = [
            number
            for some in threads.map(lambda _: [random_bits(128) for _ in range(500)], range(16))
            for number in some
        ]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason=f"{sys.platform} does not fork")
def test_a_forked_process_has_its_own() -> None:
    """What was taken from the system before the fork is given out by one of the two alone."""
    random_bits(128)  # so that some are left
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, f"{random_bits(128)}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = int(os.read(reading, 100))
    os.close(reading)
    os.close(writing)
    assert theirs not in [random_bits(128) for _ in range(2 * AT_ONCE)]
