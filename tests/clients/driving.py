"""What every driver of a client shares: the cases it goes through, and what it reports of each.

A driver asks a client for the same things in the client's own way and reports what the client showed. It judges
nothing. Each runs in a process of its own (`python -m tests.clients.driving NAME URL`) and prints one JSON object, so
that a client that hangs, or cannot be imported, takes no other with it.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, Protocol

from tests.clients.model import CASES

KEY = "none"
FIND_PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
CITY = {
    "title": "City",
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
"""The schema of structured output."""


@dataclass
class Shown:
    """What a client showed of one reply, or of a conversation with calls."""

    thinking: str = ""
    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    value: Any = None
    """Structured output, as the client parsed it."""
    errors: list[str] = field(default_factory=list)
    """The names of the error's classes, its own first."""
    status: int | None = None
    message: str = ""
    failed: str = ""
    """Why the case could not be gone through."""


class Driver(Protocol):
    """One client in one of its APIs."""

    def plain(self) -> Iterable[Shown]:
        """A plain question, in each way that the client can ask it (whole, streamed)."""

    def calls(self) -> Shown:
        """A question whose answer takes two calls at once, with the turn after them."""

    def structured(self) -> Shown:
        """A question whose answer has a schema."""

    def ask(self, case: str) -> object:
        """A question that the server refuses."""


def observe(driver: Driver) -> dict[str, list[Shown]]:
    """What the client shows in each case."""
    return {
        "plain": _attempt(lambda: list(driver.plain())),
        "calls": _attempt(lambda: [driver.calls()]),
        "structured": _attempt(lambda: [driver.structured()]),
        "limited": [_refusal(driver, "limited")],
        "refused": [_refusal(driver, "refused")],
    }


def _attempt(go: Callable[[], list[Shown]]) -> list[Shown]:
    try:
        return go()
    except Exception as error:
        traceback.print_exc()
        return [Shown(failed=f"{type(error).__name__}: {error}"[:300])]


def _refusal(driver: Driver, case: str) -> Shown:
    try:
        driver.ask(case)
    except Exception as error:
        names = [each.__name__ for each in type(error).__mro__[:-3]]
        status = getattr(error, "status_code", None)
        return Shown(errors=names, status=status if isinstance(status, int) else None, message=str(error)[:500])
    return Shown(failed="no error was raised")


def report(name: str, url: str) -> str:
    """Drive a client that is named as module:function; what was seen, as JSON."""
    module, _, maker = name.partition(":")
    try:
        driver = getattr(import_module(module), maker)(url)
    except ImportError as error:
        return json.dumps({"missing": str(error)})
    with driver if hasattr(driver, "__exit__") else nullcontext():
        found = observe(driver)
    assert tuple(found) == CASES
    return json.dumps({case: [asdict(shown) for shown in each] for case, each in found.items()})


if __name__ == "__main__":
    print(report(*sys.argv[1:]))
