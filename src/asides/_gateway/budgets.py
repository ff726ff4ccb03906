"""Budgets of thinking: who keeps to one, and how the gateway does where the server does not.

A budget is never accepted and forgotten. Where the server has a field for it, the server keeps to it. Else the gateway
counts what is thought as it comes; when the budget is spent it asks the server to go on from a message of the
assistant that holds the thought, closed, and carries on with that second reply; the first is stopped as soon as the
second has begun. If the server cannot go on from there, the thought runs on, and the client was told so or is told the
next time. With `enforce: cut` the reply ends instead.

    budget = plan_budget(request, settings, profile, engine)         # None: no budget
    budget.by, budget.field                                          # "server", "thinking_token_budget"

A thought is only ever ended between two words of it, never inside a call that was begun in it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from .._config.schema import ModelSettings
from .._engine.format import TEXT, THINKING, Format
from ..dialects.base import Frames, StreamReader
from ..dialects.framing import to_json
from ..dialects.request import Request
from ..dialects.servers import Engine
from ..reply.items import Begin, Chunk, Usage
from ..reply.splitter import OpenThought, Splitter
from .model_profile import ModelProfile
from .pipeline import Pipeline

log = logging.getLogger("asides.gateway")

BYTES_PER_TOKEN: Final = 4
"""How many bytes count as a token where no tokenizer is configured."""
OUTCOMES: Final = ("server", "within", "continued", "cut", "not_enforced")
"""What became of a budget: the server keeps to it; the thought stayed within it; it was ended there; the reply was; the
thought may have gone beyond it."""
LIMITS = ("max_tokens", "max_completion_tokens")
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

    @property
    def closing_text(self) -> str:
        """What ends a thought that was stopped: the marker, and the whitespace that stands around it."""
        return f"{self.framing[1]}{self.closing}\n\n"

    @property
    def header(self) -> str:
        """What the client is told."""
        if self.by != "gateway":
            return "server" if self.by == "server" else "not-enforced"
        exact = bool(self.tokenizer) and tokenizer_of(self.tokenizer) is not None
        return f"gateway; count={'tokenizer' if exact else 'estimate'}"


def plan_budget(
    request: Request,
    settings: ModelSettings,
    profile: ModelProfile,
    engine: Engine | None,
    refused: Container[str] = (),
) -> BudgetPlan | None:
    """Who keeps to the budget of a request. `refused`: what the upstream would not take, `FIELD` or `CONTINUED`."""
    asked, configured = request.thinking, settings.budget
    tokens = asked.budget or configured.tokens
    if tokens is None or asked.think is False:
        return None
    known = engine if engine is not None and FIELD not in refused else None
    field = configured.field or (known.budget if known is not None else "")
    if configured.field or (known is not None and known.certain):
        return BudgetPlan(tokens=tokens, by="server", field=field)
    opening, closing = _markers(profile.format) if profile.format is not None else ("", "")
    # A prompt can always be continued; and of several choices only some may have spent the budget.
    continues = {} if request.prompt is not None else engine.continues if engine is not None else None
    possible = bool(closing) and continues is not None and CONTINUED not in refused
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
        tokenizer=configured.tokenizer,
    )


def may_have_budget(body: bytes) -> bool:
    """Whether a request may name a budget, by two searches of its bytes; wrong only in saying so."""
    return b"budget" in body or b'"reasoning"' in body


def _markers(format: Format) -> tuple[str, str]:
    """The pair around thoughts; empty where a header says what is one, or where none is known yet."""
    opening = [marker for marker, target in format.states.get(TEXT, {}).items() if target == THINKING]
    closing = [marker for marker, target in format.states.get(THINKING, {}).items() if target == TEXT]
    return (opening[0], closing[0]) if opening and closing and format.header is None else ("", "")


@lru_cache(maxsize=16)
def tokenizer_of(path: str) -> Callable[[str], int] | None:
    """What counts tokens with a `tokenizer.json`; None, with a line in the log, where that cannot be used."""
    try:
        from tokenizers import Tokenizer  # here, because it is an extra

        tokenizer = Tokenizer.from_file(path)
    except Exception as error:  # the package raises nothing more particular
        log.warning("budget.tokenizer %s cannot be used, tokens are estimated: %s", path, error)
        return None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


class ThoughtWatch:
    """Counts what a reply thinks, until the budget is spent."""

    def __init__(self, budget: BudgetPlan, splitter: Splitter) -> None:
        self.budget = budget
        self._splitter = splitter
        self._exact = tokenizer_of(budget.tokenizer) if budget.tokenizer else None
        # No token is shorter than a byte, and no character longer than four.
        self._next = budget.tokens if self._exact is None else -(-budget.tokens // 4)
        self.counted = 0
        """Tokens of thinking, when it was last counted."""
        self.thought: OpenThought | None = None
        """The thought that has spent the budget."""
        self.unread = b""
        """What came behind it in the same chunk."""

    def feed(self, pipeline: Pipeline, chunk: bytes) -> bytes:
        """Read bytes of the upstream, up to the line that spends the budget."""
        lines = chunk.splitlines(keepends=True)
        out: list[bytes] = []
        for number, line in enumerate(lines):
            out.append(pipeline.feed(line))
            if self.spent():
                self.unread = b"".join(lines[number + 1 :])
                break
        return b"".join(out)

    def spent(self) -> bool:
        """Whether the thought that is open has spent the budget, and can be ended here. Cheap until it may have."""
        thinking = self._splitter.thinking_characters
        if thinking < self._next:
            return False
        thought = self._splitter.thought(0)
        if thought is None:
            return False
        text = thought.text.rpartition(self.budget.opening)[2] if self.budget.opening else thought.text
        self.counted = self._exact(text) if self._exact is not None else -(-len(text.encode()) // BYTES_PER_TOKEN)
        left = self.budget.tokens - self.counted
        if left > 0:
            # So few characters cannot be more tokens than are left; the nearer the end, the more often it is counted.
            self._next = thinking + max(1, left if self._exact is None else left // 4)
            return False
        self.thought = thought
        return True


def continued_body(body: bytes, budget: BudgetPlan, thought: OpenThought, counted: int) -> bytes:
    """The request for the rest of a reply, behind the thought that has spent its budget."""
    asked: dict[str, Any] = msgspec.json.decode(body)
    written = thought.text.rstrip() + budget.closing_text
    if "prompt" in asked:
        asked["prompt"] += written
    else:
        # What opened the thought may have stood in the prompt, which is not written for a message that goes on.
        if thought.split or budget.opening not in thought.text:
            written = budget.opening + budget.framing[0] + written.lstrip()
        asked["messages"] = [*asked["messages"], {"role": "assistant", "content": written}]
    for name in LIMITS:
        if isinstance(asked.get(name), int):
            asked[name] = max(1, asked[name] - counted)
    if budget.field:
        asked.pop(budget.field.partition(".")[0], None)
    return to_json({**asked, **budget.continues})


class ContinuedReader:
    """Reads the second reply as the rest of the first: its beginning is left out, and its usage is that of both."""

    def __init__(self, reader: StreamReader, counted: int) -> None:
        self._reader = reader
        self._counted = counted
        self.text_frame = reader.text_frame

    @property
    def frames(self) -> Frames:
        """What cuts the bytes into frames."""
        return self._reader.frames

    def feed(self, chunk: bytes) -> list[Chunk]:
        """Read bytes."""
        return self._joined(self._reader.feed(chunk))

    def finish(self) -> list[Chunk]:
        """The stream is over."""
        return self._joined(self._reader.finish())

    def _joined(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        return [
            self._both(chunk) if isinstance(chunk, Usage) else chunk for chunk in chunks if not isinstance(chunk, Begin)
        ]

    def _both(self, usage: Usage) -> Usage:
        # The first reply was stopped before it could say what it cost: its prompt is the second's without the thought.
        thought = self._counted
        return Usage(
            input_tokens=max(0, usage.input_tokens - thought),
            output_tokens=usage.output_tokens + thought,
            reasoning_tokens=thought + (usage.reasoning_tokens or 0),
            estimated=True,
            cached_tokens=usage.cached_tokens,
            durations=usage.durations,
        )
