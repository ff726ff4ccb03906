"""Budgets of thinking: who keeps to one. How the gateway does where the server does not is in `enforcement.py`.

A budget is never accepted and forgotten. Where the server has a field for it, the server keeps to it; else the gateway
does, if it knows the marker that closes a thought and the server can go on from a message of the assistant, or if
`enforce: cut` lets the reply end there. Where nobody can, the client is informed by a header.

    budget = plan_budget(request, settings, profile, engine)         # None: no budget
    budget.by, budget.field                                          # "server", "thinking_token_budget"
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Container
from typing import Any, Final, Literal

import msgspec

from .._config.schema import BudgetSettings, ModelSettings
from .._engine.format import thinking_pair
from ..dialects._request import Request
from ..dialects._servers import OPENAI, Engine, ServerKind
from .model_profile import ModelProfile
from .token_ids import open_tokenizer

OUTCOMES: Final = ("server", "within", "continued", "cut", "not_enforced")
"""What became of a budget: the server keeps to it; the thought stayed within it; it was ended there; the reply was; the
thought may have gone beyond it."""
FIELD: Final = "field"
CONTINUED: Final = "continued"
By = Literal["server", "gateway", "nobody"]


class BudgetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The budget of one request."""

    tokens: int
    by: By
    """Who keeps to it."""
    field: str = ""
    """The field in which the upstream is sent it."""
    cut: bool = False
    """Whether the reply ends where it is spent."""
    opening: str = ""
    """The marker that opens a thought; empty where none is known."""
    closing: str = ""
    """The marker that closes it."""
    framing: tuple[str, str] = ("\n", "\n")
    """The whitespace inside them."""
    continues: dict[str, Any] = {}
    """The fields that let the upstream go on from a message of the assistant."""
    tokenizer: str = ""
    ratio: float | None = None
    """Bytes that this model's tokens have, where its server has counted some; 0 where that was tried in vain."""

    def closing_text(self, closing: str) -> str:
        """What ends a thought that was stopped: the marker, and the whitespace that stands around it."""
        return f"{self.framing[1]}{closing}\n\n"

    @property
    def header(self) -> str:
        """What the client is told."""
        if self.by != "gateway":
            return "server" if self.by == "server" else "not-enforced"
        exact = bool(self.tokenizer) and tokenizer_of(self.tokenizer) is not None
        return f"gateway; count={'tokenizer' if exact else 'calibrated' if self.ratio else 'estimate'}"


def plan_budget(
    request: Request,
    settings: ModelSettings,
    profile: ModelProfile,
    engine: Engine | None,
    refused: Container[str] = (),
    ratio: float | None = None,
    kind: ServerKind = OPENAI,
) -> BudgetPlan | None:
    """Who keeps to the budget of a request.

    `refused`: what the upstream would not take, `FIELD` or `CONTINUED`; `ratio`: as in a `BudgetPlan`.
    """
    asked, configured = request.thinking, settings.budget
    tokens = asked.budget or configured.tokens
    if tokens is None or asked.think is False:
        return None
    if kind.budgets:
        return BudgetPlan(tokens=tokens, by="server")
    # Servers know which part of a reply is a thought by the template of a conversation. For a bare prompt, and behind a
    # template without thoughts, llama.cpp takes the field and does nothing about it.
    known = engine if engine is not None and FIELD not in refused and request.prompt is None else None
    field = configured.field or (known.budget if known is not None else "")
    seen = known is not None and not (known.by_template and profile.shows_thinking is False)
    if configured.field or (known is not None and known.certain and seen):
        return BudgetPlan(tokens=tokens, by="server", field=field)
    opening, closing = thinking_pair(profile.format) if profile.format is not None else ("", "")
    # A prompt can always be continued; and of several choices only some may have spent the budget.
    continues = {} if request.prompt is not None else engine.continues if engine is not None else None
    settles = profile.format is not None and profile.format.settle is not None  # `auto` will have met the markers
    possible = (bool(closing) or settles) and continues is not None and CONTINUED not in refused
    enforce = configured.enforce or "continue"
    if enforce == "never" or request.choices > 1 or request.logprobs or not (possible or enforce == "cut"):
        return BudgetPlan(tokens=tokens, by="nobody", field=field)
    return BudgetPlan(
        tokens=tokens,
        by="gateway",
        field=field,
        cut=enforce == "cut",
        opening=opening,
        closing=closing,
        framing=profile.framing or ("\n", "\n"),
        continues=continues or {},
        tokenizer=configured.tokenizer or settings.tokenizer,
        ratio=ratio,
    )


def plan_on_demand(
    request: Request,
    settings: ModelSettings,
    profile: ModelProfile,
    engine: Engine | None,
    refused: Collection[str] = (),
) -> BudgetPlan | None:
    """A budget without bound that the gateway could keep to: its thought can be ended when the client asks for it."""
    boundless = msgspec.structs.replace(request.thinking, budget=sys.maxsize)
    request = msgspec.structs.replace(request, thinking=boundless)
    # As if the server kept to none, for the thought is to be ended here.
    plain = msgspec.structs.replace(settings, budget=BudgetSettings(enforce=settings.budget.enforce))
    found = plan_budget(request, plain, profile, engine, {FIELD, *refused})
    return found if found is not None and found.by == "gateway" and not found.cut else None


def may_have_budget(body: bytes) -> bool:
    """Whether a request may name a budget, by two searches of its bytes; wrong only in saying so."""
    return b"budget" in body or b'"reasoning"' in body


def tokenizer_of(path: str) -> Callable[[str], int] | None:
    """What counts tokens with a `tokenizer.json`; None, with a line in the log, where that cannot be used."""
    tokenizer = open_tokenizer(path)
    if tokenizer is None:
        return None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
