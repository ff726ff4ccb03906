"""The numbers of a request and their bounds: one table for every API. What a client writes there costs it nothing.

    check_numbers({"n": 1_000_000}, choices=128)    # "n is 1000000; this gateway takes 128 (limits.choices)"

The names are those of all APIs together, because none means two things. A number of any other name is passed on as it
was: it changes nothing here. So are those in messages and in the schemas of tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ._request import Request, RequestError

TOKENS = 2**31 - 1
"""The most tokens of anything: servers count them in 32 bits."""
LOGPROBS = 1000
"""The most log probabilities of each token. OpenAI's servers give 20, vLLM as many by default."""
CHOICES = "choices"


class Bound(NamedTuple):
    """The smallest and the largest number of a field; `CHOICES` for the setting `limits.choices`."""

    least: int
    most: int | str


# Below zero is how servers write: without a bound.
_TOKENS = Bound(-TOKENS, TOKENS)
_LOGPROBS = Bound(-1, LOGPROBS)
BOUNDS: Mapping[str, Bound] = {
    "n": Bound(1, CHOICES),
    "best_of": Bound(0, CHOICES),
    "seed": Bound(-(2**63), 2**64 - 1),  # 64 bits, with a sign or without
    **dict.fromkeys(("logprobs", "n_probs", "prompt_logprobs", "top_logprobs"), _LOGPROBS),
    **dict.fromkeys(
        (
            *("max_tokens", "max_completion_tokens", "max_output_tokens", "max_tool_calls", "min_tokens"),
            *("n_predict", "num_ctx", "num_predict", "top_k", "truncate_prompt_tokens"),
            *("budget_tokens", "reasoning_budget", "reasoning_budget_tokens"),
            *("thinking_budget", "thinking_budget_tokens", "thinking_token_budget"),
        ),
        _TOKENS,
    ),
}
"""By the name of a field, wherever it stands."""
WITHIN = ("chat_template_kwargs", "options", "reasoning", "thinking")
"""Fields whose own fields are numbers too."""


def check_numbers(body: Mapping[str, Any], choices: int) -> None:
    """Refuse the first number of a request that is out of its bounds; `choices` is `limits.choices`."""
    for place, name, value in _numbers(body):
        least, most = BOUNDS[name]
        if value < least:
            raise RequestError(f"{place} must be at least {least}", place)
        if isinstance(most, str):
            _check(place, value, choices, " (limits.choices)")
        else:
            _check(place, value, most, "")


def check_choices(request: Request, choices: int) -> None:
    """Refuse a request for more choices than this: each of its prompts has as many as it asks for."""
    _check("n for each prompt", request.choices, choices, " (limits.choices)", "n")


def _check(place: str, value: float, most: int, setting: str, param: str | None = None) -> None:
    if value > most:
        # A number may have thousands of digits.
        message = f"{place} is {str(value)[:40]}; this gateway takes {most}{setting}"
        raise RequestError(message, param or place)


def _numbers(body: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    """The numbers of a request that have bounds: place, name and value."""
    for name in body.keys() & BOUNDS.keys():
        if type(body[name]) in (int, float):  # true is no number
            yield name, name, body[name]
    for place in WITHIN:
        if type(inner := body.get(place)) is dict:
            for name in inner.keys() & BOUNDS.keys():
                if type(inner[name]) in (int, float):
                    yield f"{place}.{name}", name, inner[name]
