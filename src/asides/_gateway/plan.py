"""The plan of a request: everything that is settled before the upstream is asked. Sends nothing.

A client's body becomes a `RequestPlan`: the request as the client's dialect reads it, the dialect and the body for the
upstream (thoughts that the client dropped put back, thinking asked for as the model's template wants it), and how the
reply will be read. Where several may decide something, the order is here: for the start of the reply a header, the
configuration, a request without thinking, the chat template, the format; for the field of thinking a header, then the
configuration. Large requests are planned in a thread, so nothing here waits for anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, get_args

import msgspec

from .._config.schema import ModelSettings, policies_of
from .._config.values import suggestion
from .._engine.format import HEADER, TEXT, Format
from .._engine.parser import Parser
from .._engine.shortcut import parse_ordinary
from ..dialects import Dialect
from ..dialects.arrange import arrange
from ..dialects.base import THINKING_CHOICES
from ..dialects.efforts import with_effort
from ..dialects.framing import to_json
from ..dialects.request import (
    CallPiece,
    Request,
    RequestError,
    ThinkingOptions,
    ThinkingPiece,
    Tool,
    WriteOptions,
    piece_kinds,
    without_seals,
)
from ..dialects.request_fields import LEFT_OUT
from ..dialects.servers import Engine, ServerKind
from ..families import get_format
from ..policies import Policies, Start
from ..reply.splitter import Splitter
from .bodies import check_count
from .budgets import BudgetPlan, plan_budget
from .http_request import HttpRequest
from .model_profile import ModelProfile
from .randomness import random_bits
from .refusals import Refusal
from .replay_cache import ConversationHash
from .state import MOST_NAMES, State
from .upstreams import Upstream

INSPECT, REASONING, START = REQUEST_HEADERS = ("x-asides-inspect", "x-asides-reasoning", "x-asides-start")
"""The headers of a request that are the gateway's own; any other of its kind is a mistake."""
STARTS: tuple[Start, ...] = get_args(Start)
_Chosen = TypeVar("_Chosen", bound=str)
PASSTHROUGH = get_format("passthrough")


class Target(msgspec.Struct, frozen=True):
    """Who is asked, for which model, and what is known of both."""

    upstream: Upstream
    kind: ServerKind
    settings: ModelSettings
    profile: ModelProfile
    engine: Engine | None = None
    """What runs the model, where a budget has to be passed on and it is known."""


class RequestPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How one request is carried out."""

    request: Request
    """As the client sent it."""
    target: Target
    upstream_dialect: Dialect
    body: bytes
    """What the upstream is sent."""
    policies: Policies
    """How the reply is read. Its `seed` is random: calls that the model gives no id get one that nobody can guess."""
    start_is_known: bool
    """Whether anything but the format decided where the reply begins."""
    reasoning: str
    """Where thinking is written; empty for the usual place of the client's dialect."""
    conversation: ConversationHash
    """Where the reply stands in its conversation, for the replay cache."""
    stops: tuple[str, ...] = ()
    """Stop strings that the gateway looks for, because the upstream would find them in thoughts too."""
    budget: BudgetPlan | None = None
    """How much the model may think, and who keeps to it."""
    missed: tuple[bytes, ...] = ()
    """Keys of earlier turns that the replay cache does not have."""
    effort: str | None = None
    """The effort that the upstream is asked for; not always the client's."""
    stops_thought: bool = False
    """Whether the gateway has to stop a thought that is too long."""
    streams: bool = False
    """Whether the upstream is asked to stream: also where the reply may have to be stopped before its end."""

    @property
    def format(self) -> Format:
        """How the model writes."""
        return self.target.profile.format or PASSTHROUGH

    def splitter(self, *, whole: bool, keep: int = 0, shortcut: bool = True) -> Splitter:
        """What takes the reply apart. `whole`: it comes in one piece; `keep`: characters of raw text that are kept.

        Without `shortcut` raw text is kept of replies of the ordinary shape too.
        """
        policies, own = self.policies, self.format

        def make(format: Format) -> Parser:
            chosen = policies
            if format is not own:
                # Behind what the upstream has split off comes the answer, wherever raw output would begin.
                chosen = policies.but(start=None, prompt=None, collect=policies.collect and not whole)
            elif whole:
                # A lone close is honoured where nothing has to flow.
                lone = not self.start_is_known and own.start == TEXT
                chosen = policies.but(start="undecided" if lone else policies.start, collect=False)
            undecided = format.start == HEADER and chosen.start == "undecided"  # a header decides it by itself
            return Parser(format, chosen.but(start=None) if undecided else chosen)

        # As `make` does, the shortcut takes a text that has neither start nor prompt for undecided.
        ordinary = partial(parse_ordinary, format=own, policies=policies) if whole and shortcut else None
        choices = max(1, self.request.choices)
        return Splitter(own, make, seed=policies.seed, choices=choices, parse_ordinary=ordinary, keep=keep)


def make_plan(
    state: State,
    http: HttpRequest,
    dialect: Dialect,
    path: str,
    data: dict[str, Any],
    target: Target,
    credential: str,
    echo: dict[str, Any] | None = None,
) -> RequestPlan:
    """Plan a request that came at a path (normalised) in a dialect. A `Refusal` says what is wrong with it.

    `echo`: what its reply repeats of it (`Request.echo`).
    """
    limits = state.config.limits
    check_count(data, limits.messages)
    _check_headers(http.headers)
    left_out: list[str] = []
    collecting = LEFT_OUT.set(left_out)
    try:
        request = dialect.read_request(data, path)
        if request.hosted and state.config.strict and not target.kind.speaks(dialect):
            request = msgspec.structs.replace(request, essential=(*request.essential, *request.hosted))
        if echo is not None:
            request = msgspec.structs.replace(request, echo=echo)
        kinds = piece_kinds(request)
        # Before the conversation is hashed: a line that differs from one request to the next would hide its thoughts.
        arranged = arrange(request)
        http.record.arranged = arranged.changes
        # Before the seals are taken off: an omitted thought is recognised by the signature that we gave it.
        restored = state.replay_cache.restore(credential, arranged.request, http.headers)
        http.record.replay_cache_hits, http.record.replay_cache_misses = restored.hits, restored.misses
        http.record.replay_cache_exact = restored.exact
        upstream_dialect = target.kind.dialect(request)
        asked = restored.request
        if ThinkingPiece in kinds or restored.hits:
            asked = without_seals(asked)
        # It may be a person's name; Anthropic's clients put ids of device, account and session there.
        if asked.user is not None and not state.config.forward_user:
            asked = msgspec.structs.replace(asked, user=None)
        if asked.thinking.effort is not None:
            # What the upstream has said itself counts more than what is known of the model.
            known = state.efforts.get((target.upstream.name, request.model)) or target.profile.efforts
            asked = with_effort(asked, known)
        key = (target.upstream.name, request.model)
        refused, ratio = state.budget_refusals.get(key, ()), state.token_ratios.get(key)
        budget = plan_budget(request, target.settings, target.profile, target.engine, refused, ratio)
        if budget is not None:
            thinking = msgspec.structs.replace(asked.thinking, budget=budget.tokens)
            asked = msgspec.structs.replace(asked, thinking=thinking)
        field = state.fields.get((target.upstream.name, request.model), "")
        start, start_is_known = find_start(http.headers, request, target)
        reasoning = find_reasoning(http.headers, target.settings, dialect)
        stops = request.stop if finds_stops(request, target.profile) else ()
        if stops:
            asked = msgspec.structs.replace(asked, stop=())
        body = to_json(write_request(asked, upstream_dialect, target, field, budget, stream=bool(stops)))
    except RequestError as error:
        raise Refusal(error.status, error.message, param=error.param) from error
    finally:
        LEFT_OUT.reset(collecting)
    # Also where it is nothing: the request may have been planned for another upstream before.
    http.record.left_out = _named(left_out, request.hosted) if left_out else ""
    stops_thought = budget is not None and budget.by == "gateway"
    streams = request.stream or bool(stops) or stops_thought
    return RequestPlan(
        request=msgspec.structs.replace(request, thinking=_effective(request.thinking, reasoning, target.settings)),
        target=target,
        upstream_dialect=upstream_dialect,
        body=body,
        policies=policies_of(
            target.settings,
            start=start,
            prompt=request.prompt if start is None else None,
            tools=[_definition(tool) for tool in request.tools] if request.tools else None,
            calls=reads_calls(request, target.settings, called=CallPiece in kinds),
            seed=random_bits(62),
            limit=limits.held,
            # The shortcut for whole replies makes a message. Nothing else needs what a parser would collect.
            collect=not streams,
        ),
        start_is_known=start_is_known,
        reasoning=reasoning,
        conversation=restored.conversation,
        stops=stops,
        budget=budget,
        missed=restored.missed,
        effort=asked.thinking.effort,
        stops_thought=stops_thought,
        streams=streams,
    )


def _definition(tool: Tool) -> dict[str, Any]:
    """A function as the parser is told of it."""
    return {"type": "function", "function": {"name": tool.name, "parameters": tool.parameters}}


_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
"""What no name of a field or type of a tool has; a client may write anything there, and it goes into a header."""


def _named(left_out: Sequence[str], hosted: Sequence[str]) -> str:
    """What the upstream is not sent, for a header and the log: tools of its API's own server, and fields."""
    tools = (place.rpartition(".")[2] for place in hosted if place in left_out)
    fields = (name for name in left_out if name not in hosted)
    names = list(dict.fromkeys(_UNFIT.sub("_", name[:64]) for name in (*tools, *fields)))
    more = [f"and {len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return ", ".join([*names[:MOST_NAMES], *more])


def _check_headers(headers: Mapping[str, str]) -> None:
    """Refuse a header that looks like one of the gateway's and is none: it would have no effect."""
    for name in headers:
        if name.startswith("x-asides-") and name not in REQUEST_HEADERS:
            known = suggestion(name, REQUEST_HEADERS)
            raise Refusal(400, f"{name[:64]} is not a header of the gateway{known}", param=name[:64])


def find_start(headers: Mapping[str, str], request: Request, target: Target) -> tuple[Start | None, bool]:
    """Where the reply begins (None: the format's own start), and whether anything but the format decided it."""
    if START in headers and (header := _choice(headers, START, STARTS)) is not None:
        return header, True
    if target.settings.start is not None:
        return target.settings.start, True
    profile, format = target.profile, target.profile.format
    # A format that begins in a header says by itself what follows; a start in text would show its header.
    # Nor does a model whose thinking nothing turns off begin in text because a request asks for none.
    stays_on = profile.switch is not None and profile.switch.off is None
    if request.thinking.think is False and format is not None and format.start != HEADER and not stays_on:
        return "text", True
    if request.prompt is not None:
        return None, True  # the end of the bare prompt says it
    # A template may open the thought only where thinking is asked for.
    if request.thinking.think and profile.start_on is not None:
        return profile.start_on, True
    if profile.start is not None and format is not None and format.start != HEADER:
        return profile.start, True
    return None, False


def find_reasoning(headers: Mapping[str, str], settings: ModelSettings, dialect: Dialect) -> str:
    """Where thinking is written; empty for the dialect's usual place."""
    if REASONING not in headers:
        return settings.reasoning or ""
    choices = tuple(dict.fromkeys((*THINKING_CHOICES, *dialect.THINKING_FIELDS)))
    return _choice(headers, REASONING, choices) or settings.reasoning or ""


def _effective(thinking: ThinkingOptions, reasoning: str, settings: ModelSettings) -> ThinkingOptions:
    """What holds for the reply, where the operator or a header leaves less than the request asks for."""
    # To the upstream it makes no difference who reads the thought, so its body was written without this.
    show = thinking.show and reasoning != "drop"
    # The reply repeats it, for clients that ask which of their thoughts the model has seen.
    kept = settings.replay != "drop" and settings.keep_thinking in (None, "all")
    return msgspec.structs.replace(thinking, show=show, keep=thinking.keep if kept else "current_turn")


def _choice(headers: Mapping[str, str], name: str, choices: tuple[_Chosen, ...]) -> _Chosen | None:
    """What a header chooses; None where it is not sent, a `Refusal` where it is none of the choices."""
    sent = headers.get(name, "").strip().lower().replace("-", "_")
    if sent and sent not in choices:
        raise Refusal(400, f"{name} must be one of {', '.join(choices)}", param=name)
    return choices[choices.index(sent)] if sent else None


def finds_stops(request: Request, profile: ModelProfile) -> bool:
    """Whether the gateway looks for stop strings itself: where the model thinks, and tokens need not be told apart."""
    return bool(request.stop) and profile.can_think and request.thinking.think is not False and not request.logprobs


def reads_calls(request: Request, settings: ModelSettings, *, called: bool) -> bool:
    """Whether calls are read. A client that names no tools may be reading them from the text by itself."""
    if settings.calls in ("always", "never"):
        return settings.calls == "always"
    if request.tool_choice == "none":
        return False
    # A later turn may come without the tools; the calls before it show that this client reads calls.
    return request.prompt is None and (bool(request.tools) or called)


def write_request(
    request: Request,
    dialect: Dialect,
    target: Target,
    field: str = "",
    budget: BudgetPlan | None = None,
    *,
    stream: bool = False,
) -> dict[str, Any]:
    """The body for the upstream, in its dialect. `field`: where it was seen to send thinking; empty: not seen yet."""
    settings, profile = target.settings, target.profile
    options = WriteOptions(
        replay=settings.replay,
        field=field or profile.field or "reasoning_content",
        keep_thinking=settings.keep_thinking or "all",
        framing=profile.framing,
        switch=profile.switch,
        budget=budget.field if budget is not None else "",
        # What the gateway has to stop must come as it is written.
        stream=True if stream or (budget is not None and budget.by == "gateway") else None,
        model=settings.name,
        usage=True,
        special_tokens=target.upstream.settings.skip_special_tokens and profile.special,
    )
    # Last, so that the operator can override whatever is written.
    return {**dialect.write_request(request, options), **settings.extra_body}
