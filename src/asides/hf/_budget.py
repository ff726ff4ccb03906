"""Time for patterns that others wrote: a response template comes with a model, and one pattern can search for ever.

Every run of a foreign pattern draws on a budget, which grows with the text that is read. A pattern that has used it up
still has `LEAST` for each run, so that one place that took too long does not take the others with it; and the whole
stays linear in the text. Only the package `regex` can stop a search, so no foreign pattern runs without it.

    budget = PatternBudget()
    budget.grow(len(chunk))
    budget.run(pattern.match, text, start, stop)      a match, None, or PatternTimeout
"""

from __future__ import annotations

import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

from .._extras import install_command
from ..errors import UsageError

SECONDS = 0.5
"""What the runs of a pattern may take in one output, beside what its length gives."""
REGION_SECONDS = 0.002
"""The same where the budget is for one region of an output, of which there may be many."""
PER_CHARACTER = 5e-6
"""Seconds for each character that is read: some fifty times what patterns that were made with care take."""
LEAST = 0.001
"""Seconds for one run when all else is used up: a thousand times what such a pattern takes."""


class PatternTimeout(Exception):
    """A run was stopped."""


class PatternBudget:
    """What runs of one pattern may still take."""

    __slots__ = ("_left",)

    def __init__(self, seconds: float | None = None) -> None:
        self._left = SECONDS if seconds is None else seconds

    def grow(self, characters: int) -> None:
        """So many characters more are read."""
        self._left += characters * PER_CHARACTER

    def run(self, method: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a method of a pattern."""
        started = perf_counter()
        try:
            return method(*arguments, timeout=max(self._left, LEAST), **options)
        except TimeoutError as error:
            raise PatternTimeout("it takes too long, as patterns with nested or repeated quantifiers do") from error
        finally:
            self._left = max(0.0, self._left - (perf_counter() - started))

    def find_all(self, pattern: Any, text: str) -> list[Any]:
        """Every match."""
        if isinstance(pattern, re.Pattern):
            raise needs_regex("content_args.tag_pattern")
        return self.run(lambda **options: list(pattern.finditer(text, **options)))  # type: ignore[no-any-return]


def needs_regex(key: str) -> UsageError:
    """The error where a pattern cannot be stopped."""
    return UsageError(
        f"{key}: a pattern that is more than literals needs the package regex, which can stop one that never ends: "
        f"{install_command('hf')}"
    )
