"""Kept replies, from Python: `open` a store, `keep` messages, find their thoughts again.

docs/how-to/history.md has more.

    with history.open() as store:
        store.keep(asides.parse(output), model="qwen3")
        store.search("a half-remembered word").hits
"""

from __future__ import annotations

from ._history import *  # noqa: F403  # the store's own package lists what is public
from ._history import __all__ as __all__
