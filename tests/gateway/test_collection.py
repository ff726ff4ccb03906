"""The garbage collector of a gateway: it runs where memory has grown, and not before."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator

import pytest

from asides._gateway.collection import GROWTH, MemoryWatch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing there tells how much memory is used")


class Cycle:
    """What only the collector lets go of."""

    def __init__(self, size: int) -> None:
        self.itself = self
        self.data = b"x" * size


@pytest.fixture(autouse=True)
def _by_hand() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_memory_that_has_grown_is_collected() -> None:
    """Once: then it has not grown any more."""
    watch = MemoryWatch()
    small = weakref.ref(Cycle(1000))
    assert not watch.look()
    assert small() is not None
    large = weakref.ref(Cycle(2 * GROWTH))
    assert watch.look()
    assert small() is None
    assert large() is None
    assert not watch.look()
