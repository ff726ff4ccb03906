"""The filter of lm-evaluation-harness: a step of a task's `filter_list` that leaves the answer of each response."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from .._engine.format import Format
from ..policies import DEFAULTS, PolicyOptions
from ..reading import Reading
from ._hosts import require_host

require_host("lm-eval")

from lm_eval.api.filter import Filter
from lm_eval.api.registry import register_filter


@register_filter("asides")
class AnswerFilter(Filter):
    """Each response without thoughts, calls and markers. The keys of its step in the task are the arguments here."""

    def __init__(
        self, model: str | None = None, format: str | Format = "auto", **options: Unpack[PolicyOptions]
    ) -> None:
        # Once, and not for each response: a task may have a hundred thousand.
        self._reading = Reading.of(model, format=format, policies=DEFAULTS.but(**options))

    def apply(self, resps: Iterable[Iterable[str]], docs: Any) -> list[list[str]]:
        """The answers, in the order of the responses."""
        return [[self._answer(response) for response in responses] for responses in resps]

    def _answer(self, response: str) -> str:
        # A task of another type gives log-likelihoods.
        if not isinstance(response, str):
            raise TypeError(
                "the filter 'asides' reads generated text: it must stand first in the filters of a task whose "
                f"output_type is generate_until, not behind or beside one that gives {type(response).__name__}"
            )
        return self._reading.parse(response).text
