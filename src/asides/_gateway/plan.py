"""The plan of a request: everything that is settled before the upstream is asked. Sends nothing.

A client's body becomes a `RequestPlan`: the request as the client's dialect reads it, the dialect and the body for the
upstream (thoughts that the client dropped put back, thinking asked for as the model's template wants it), and how the
reply will be read (`asides.reading` decides that; a header's start counts before the configuration's). For the field of
thinking a header counts before the configuration. What becomes of the client's request before it is written for the
upstream is a list of steps over one draft, `STEPS`, in the order that matters. Large requests are planned in a thread,
so nothing here waits for anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

import msgspec

from .._config.schema import ModelSettings, policies_of
from .._config.values import suggestion
from .._engine.format import HEADER, Format
from .._engine.vocabulary import Vocabulary
from ..dialects import Dialect
from ..dialects._arrange import arrange
from ..dialects._base import THINKING_CHOICES, StreamReader
from ..dialects._efforts import with_effort
from ..dialects._framing import to_json
from ..dialects._numbers import check_choices
from ..dialects._providers import Provider, card_of
from ..dialects._rendered_prompts import PromptQuestion
from ..dialects._request import (
    CallPiece,
    Request,
    RequestError,
    RequestPiece,
    ThinkingOptions,
    ThinkingPiece,
    WriteOptions,
    piece_kinds,
    without_seals,
)
from ..dialects._request_fields import LEFT_OUT
from ..dialects._servers import OPENAI, Engine, ServerKind
from ..dialects._thought_fields import asks_for_ids
from ..families import get_format
from ..policies import Policies, Start
from ..reading import Reading, Seen, ServerFacts
from ..reply._items import PlacedProof
from ..reply._splitter import Splitter
from .bodies import check_count
from .budgets import BudgetPlan, plan_budget
from .capsules import CapsuleOwner
from .headers import TOKEN
from .http_request import HttpRequest
from .model_profile import ModelProfile
from .proofs import may_carry, open_turn, waits_without_thought
from .randomness import random_bits
from .refusals import Refusal
from .replay_cache import ConversationHash, Restored, beginning_of
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

    @property
    def card(self) -> Provider:
        """What is known of the provider."""
        return card_of(self.kind.name, self.upstream.host)

    def issuer(self, request: Request) -> str:
        """Who makes the proofs of a reply to this request, and takes them back."""
        return f"{self.kind.name} {self.upstream.url} {self.settings.name or request.model}"


class RequestPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How one request is carried out."""

    request: Request
    """As the client sent it."""
    target: Target
    upstream_dialect: Dialect
    body: bytes
    """What the upstream is sent."""
    reading: Reading
    """How the reply is read."""
    seed: int
    """Its seed, drawn at random: calls that the model gives no id get one that nobody can guess, and the replay cache
    knows them again."""
    owner: CapsuleOwner
    """For whom the proofs of the reply are sealed."""
    headers: Mapping[str, str] = {}
    """Headers that the upstream must be sent with this body."""
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
    uncalled: bool = False
    """Whether the model wants the thoughts of turns without calls back, as it does those before calls."""
    effort: str | None = None
    """The effort that the upstream is asked for; not always the client's."""
    stops_thought: bool = False
    """Whether the gateway has to stop a thought that is too long."""
    question: PromptQuestion | None = None
    """What the upstream may be asked about the prompt that it makes; None where nothing depends on it."""
    prompt_end: str | None = None
    """What it has said to that, as far as the reading knows."""
    streams: bool = False
    """Whether the upstream is asked to stream: also where the reply may have to be stopped before its end."""
    vocabulary: Vocabulary | None = None
    """By which ids are read, where the upstream is asked for them."""
    id_field: str = ""
    """The request field by which it is asked."""

    @property
    def policies(self) -> Policies:
        """The policies of its reading."""
        return self.reading.policies

    @property
    def format(self) -> Format:
        """How the model writes."""
        return self.reading.format

    def splitter(self, *, whole: bool, keep: int = 0, shortcut: bool = True) -> Splitter:
        """What takes the reply apart. `whole`: it comes in one piece; `keep`: characters of raw text that are kept.

        Without `shortcut` raw text is kept of replies of the ordinary shape too.
        """
        choices = max(1, self.request.choices)
        return self.reading.splitter(
            whole=whole, choices=choices, keep=keep, shortcut=shortcut, tokenizer=self.vocabulary
        )

    def reader(self) -> StreamReader:
        """What reads a streamed reply."""
        return self.upstream_dialect.ReplyReader(ids=self.vocabulary is not None)


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
    check_count(data, state.config.limits.messages)
    _check_headers(http.headers)
    left_out: list[str] = []
    collecting = LEFT_OUT.set(left_out)
    try:
        request = _read(dialect, path, data, echo, strict=state.config.strict and not target.kind.speaks(dialect))
        check_choices(request, state.config.limits.choices)
        draft = _PlanDraft(
            state=state,
            http=http,
            dialect=dialect,
            target=target,
            credential=credential,
            request=request,
            kinds=piece_kinds(request),
            asked=request,
        )
        for step in STEPS:
            step(draft)
        written = _write(draft)
    except RequestError as error:
        raise Refusal(error.status, error.message, param=error.param) from error
    finally:
        LEFT_OUT.reset(collecting)
    # Also where it is nothing: the request may have been planned for another upstream before.
    http.record.left_out = _named(left_out, draft.request.hosted) if left_out else ""
    return _finish(draft, written)


class _PlanDraft(msgspec.Struct, kw_only=True):
    """A plan in the making: the client's request, which stays, and what the upstream is asked, which steps change."""

    state: State
    http: HttpRequest
    dialect: Dialect
    target: Target
    credential: str
    request: Request
    """As the client sent it."""
    kinds: set[type[RequestPiece]]
    """The kinds of pieces that its messages have."""
    asked: Request
    """What the upstream is asked."""
    uncalled: bool = False
    every_thought: bool = False
    """Whether every turn must have a thought, because the upstream has said so."""
    drop_bound: bool = False
    """Whether the upstream shall leave out thoughts that are bound to another conversation."""
    restored: Restored | None = None
    budget: BudgetPlan | None = None
    stops: tuple[str, ...] = ()
    vocabulary: Vocabulary | None = None
    id_field: str = ""
    """The request field by which ids are asked for, where there is a vocabulary."""

    @property
    def stops_thought(self) -> bool:
        """Whether the gateway has to stop a thought that is too long."""
        return self.budget is not None and self.budget.by == "gateway"

    @property
    def streams(self) -> bool:
        """Whether the upstream is asked to stream."""
        return self.request.stream or bool(self.stops) or self.stops_thought

    @property
    def owner(self) -> CapsuleOwner:
        """For whom what this client carries opens."""
        session = ConversationHash(self.credential, self.request, self.http.headers).session
        return CapsuleOwner(self.target.issuer(self.request), self.credential, session)

    @property
    def binds(self) -> bool:
        """Whether the model's thoughts are bound to everything before them, and the client leaves it to us what becomes
        of those that are not in their place."""
        name = self.target.settings.name or self.request.model
        return self.target.card.binds(name) and not self.request.thinking.reports_dropped

    @property
    def key(self) -> tuple[str, str]:
        """By which the state remembers what the upstream showed of the model."""
        return self.target.upstream.name, self.request.model

    @property
    def field(self) -> str:
        """The field in which the upstream was seen to send this model's thinking; empty where it was seen in none."""
        return self.state.fields.get(self.key, "")

    def ask(self, **changes: Any) -> None:
        """Change what the upstream is asked."""
        self.asked = msgspec.structs.replace(self.asked, **changes)


def _read(dialect: Dialect, path: str, data: dict[str, Any], echo: dict[str, Any] | None, *, strict: bool) -> Request:
    """The client's request. `strict`: tools that only the API's own server could run are refused."""
    request = dialect.read_request(data, path)
    changes: dict[str, Any] = {} if echo is None else {"echo": echo}
    if request.hosted and strict:
        changes["essential"] = (*request.essential, *request.hosted)
    return msgspec.structs.replace(request, **changes) if changes else request


def _arrange(draft: _PlanDraft) -> None:
    arranged = arrange(draft.asked)
    draft.http.record.arranged, draft.asked = arranged.changes, arranged.request


def _open_capsules(draft: _PlanDraft) -> None:
    record = draft.http.record
    record.thoughts_restored = record.thoughts_unopened = record.thoughts_moved = 0
    if not any(map(may_carry, draft.asked.turns)):
        return
    owner, capsules = draft.owner, draft.state.capsules
    conversation = ConversationHash(draft.credential, draft.asked, draft.http.headers)
    turns = list(draft.asked.turns)

    def open_here(text: str) -> PlacedProof | None:
        content = capsules.open(text, owner) if capsules is not None else None
        if content is None:
            return None
        record.thoughts_moved += content.before != conversation.before
        return content.proof

    for number, turn in enumerate(turns):
        if turn.role == "assistant" and may_carry(turn):
            found = open_turn(turn, open_here)
            turns[number] = found.turn
            record.thoughts_restored += found.opened
            record.thoughts_unopened += found.unopened
        conversation.add_turn(turn)
    draft.ask(turns=tuple(turns))
    # Elsewhere it is the client's own matter what it has written anew.
    draft.drop_bound = bool(record.thoughts_moved) and draft.binds


def _restore_thoughts(draft: _PlanDraft) -> None:
    draft.uncalled = wants_uncalled(draft.request, draft.target)
    cache, record = draft.state.replay_cache, draft.http.record
    issuer, headers = draft.target.issuer(draft.request), draft.http.headers
    restored = cache.restore(draft.credential, draft.asked, headers, uncalled=draft.uncalled, issuer=issuer)
    record.replay_cache_hits, record.replay_cache_misses = restored.hits, restored.misses
    record.replay_cache_exact = restored.exact
    draft.restored, draft.asked = restored, restored.request


def _recover(draft: _PlanDraft) -> None:
    """What the provider has refused of this conversation before is not sent again."""
    state, record = draft.state, draft.http.record
    record.thoughts_refused = False
    if not state.refused_thoughts:
        return
    recovery = state.refused_thoughts.get(beginning_of(draft.credential, draft.request, draft.http.headers))
    if recovery is None:
        return
    record.thoughts_refused = True
    draft.ask(turns=recovery.apply(draft.asked.turns))
    draft.every_thought = recovery.how == "empty"
    draft.drop_bound = draft.drop_bound or recovery.how == "drop_block"
    # Anthropic wants a thought before open calls, unless the model shall not think; some always do.
    if draft.target.kind.budgets and waits_without_thought(draft.asked.turns):
        if draft.binds:
            draft.drop_bound = True
        else:
            off = {"thinking": {"type": "disabled"}}
            draft.ask(thinking=msgspec.structs.replace(draft.asked.thinking, think=False, effort=None, sent=off))


def _take_off_seals(draft: _PlanDraft) -> None:
    if ThinkingPiece in draft.kinds or (draft.restored is not None and draft.restored.hits):
        draft.asked = without_seals(draft.asked)


def _leave_out_user(draft: _PlanDraft) -> None:
    # It may be a person's name; Anthropic's clients put ids of device, account and session there.
    if draft.asked.user is not None and not draft.state.config.forward_user:
        draft.ask(user=None)


def _fit_effort(draft: _PlanDraft) -> None:
    if draft.asked.thinking.effort is not None:
        # What the upstream has said itself counts more than what is known of the model.
        draft.asked = with_effort(draft.asked, draft.state.efforts.get(draft.key) or draft.target.profile.efforts)


def _bound_thinking(draft: _PlanDraft) -> None:
    state, target = draft.state, draft.target
    refused, ratio = state.budget_refusals.get(draft.key, ()), state.token_ratios.get(draft.key)
    settings = target.settings
    draft.budget = plan_budget(draft.request, settings, target.profile, target.engine, refused, ratio, target.kind)
    if draft.budget is not None:
        draft.ask(thinking=msgspec.structs.replace(draft.asked.thinking, budget=draft.budget.tokens))


def _take_over_stops(draft: _PlanDraft) -> None:
    if finds_stops(draft.request, draft.target.profile, draft.target.kind):
        draft.stops = draft.request.stop
        draft.ask(stop=())


def _ask_for_ids(draft: _PlanDraft) -> None:
    request, settings, state = draft.request, draft.target.settings, draft.state
    if settings.token_ids is False or not settings.tokenizer or draft.field or request.prompt is not None:
        return
    engine = state.engines.known(draft.target.upstream) if draft.target.kind is OPENAI else None
    # A server that looks for stop strings keeps text back that its ids have. What the gateway writes itself to end a
    # thought has none. A client that asks for ids is sent them as they come.
    if engine is None or draft.asked.stop or draft.stops_thought or asks_for_ids(request.extra):
        return
    if engine.token_ids and state.token_ids.may_ask(*draft.key, draft.streams):
        draft.vocabulary = state.token_ids.vocabulary(settings.tokenizer)
        draft.id_field = engine.token_ids if draft.vocabulary is not None else ""


STEPS: tuple[Callable[[_PlanDraft], None], ...] = (
    # Before the conversation is hashed: a line that differs from one request to the next would hide its thoughts.
    _arrange,
    # Before the cache is asked: what the client carries itself needs no looking up.
    _open_capsules,
    # Before the seals are taken off: an omitted thought is recognised by the signature that we gave it.
    _restore_thoughts,
    _recover,
    _take_off_seals,
    _leave_out_user,
    _fit_effort,
    _bound_thinking,
    _take_over_stops,
    # After the two before it: what ids are asked for depends on who ends thoughts and looks for stop strings.
    _ask_for_ids,
)
"""What becomes of a request before it is written for the upstream, in this order. The four before the last may stand in
any."""


def _write(draft: _PlanDraft) -> dict[str, Any]:
    dialect = draft.target.kind.dialect(draft.request)
    foreign = draft.state.config.continuity.foreign_thoughts
    options: dict[str, Any] = {"stream": bool(draft.stops), "foreign_thoughts": foreign}
    options |= {"drop_bound": draft.drop_bound, "every_thought": draft.every_thought}
    body = write_request(draft.asked, dialect, draft.target, draft.field, draft.budget, **options)
    return {draft.id_field: True, **body} if draft.id_field else body


def _finish(draft: _PlanDraft, written: dict[str, Any]) -> RequestPlan:
    """The plan, with how the reply is read."""
    state, target, request, restored = draft.state, draft.target, draft.request, draft.restored
    assert restored is not None  # a step has set it
    headers = draft.http.headers
    start = _choice(headers, START, STARTS) if START in headers else target.settings.start
    reasoning = find_reasoning(headers, target.settings, draft.dialect)
    # Where the start is chosen, or the server separates thoughts by itself, the prompt makes no difference.
    question = find_question(state, target, written) if start is None and not draft.field else None
    prompt_end = state.prompt_ends.get(target.upstream, question) if question is not None else None
    seed = random_bits(62)
    return RequestPlan(
        request=msgspec.structs.replace(request, thinking=_effective(request.thinking, reasoning, target.settings)),
        target=target,
        upstream_dialect=target.kind.dialect(request),
        body=to_json(written),
        reading=find_reading(
            target,
            request,
            policies_of(
                target.settings,
                start=start,
                prompt=request.prompt if start is None else None,
                tools=[tool.definition for tool in request.tools] if request.tools else None,
                calls=reads_calls(request, target.settings, called=CallPiece in draft.kinds),
                seed=seed,
                limit=state.config.limits.held,
                # The shortcut for whole replies makes a message. Nothing else needs what a parser would collect.
                collect=not draft.streams,
            ),
            separates=bool(draft.field),
            prompt_end=prompt_end,
            seen=state.learned.get(target.upstream.name, target.settings.name or request.model, request.thinking.think),
        ),
        seed=seed,
        owner=draft.owner,
        headers=target.kind.binding_headers if draft.drop_bound else {},
        reasoning=reasoning,
        conversation=restored.conversation,
        stops=draft.stops,
        budget=draft.budget,
        missed=restored.missed,
        uncalled=draft.uncalled,
        effort=draft.asked.thinking.effort,
        stops_thought=draft.stops_thought,
        question=question,
        prompt_end=prompt_end,
        streams=draft.streams,
        vocabulary=draft.vocabulary,
        id_field=draft.id_field,
    )


def wants_uncalled(request: Request, target: Target) -> bool:
    """Whether the model wants the thoughts of turns without calls back."""
    earlier = target.profile.earlier
    if target.kind.proved:
        return True
    if _wants_every(request, target):
        return True
    if earlier is None:
        return False
    asked: dict[str, Any] = {}
    extra = target.settings.extra_body
    # What the operator adds to a request wins over the client's own.
    for held in (request.thinking.sent.get("thinking"), request.template_arguments):
        asked |= held if isinstance(held, dict) else {}
    for held in (extra.get("thinking"), extra.get("chat_template_kwargs")):
        asked |= held if isinstance(held, dict) else {}
    return earlier.wants_all(asked)


def _wants_every(request: Request, target: Target) -> bool:
    """Whether each turn must have a thought: so the model's family says, or the provider's card."""
    earlier = target.profile.earlier
    return bool(request.tools) and (target.card.every_turn or (earlier is not None and earlier.with_tools))


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
        if name.startswith("x-asides-") and name not in REQUEST_HEADERS and name != TOKEN:
            known = suggestion(name, REQUEST_HEADERS)
            raise Refusal(400, f"{name[:64]} is not a header of the gateway{known}", param=name[:64])


def find_question(state: State, target: Target, body: dict[str, Any]) -> PromptQuestion | None:
    """What the upstream may be asked about the prompt that it makes of this body."""
    profile = target.profile
    if target.kind is not OPENAI or profile.format is None or profile.format.start == HEADER:
        return None
    if state.engines.known(target.upstream) is None:
        return None
    ignored = profile.earlier.keywords if profile.earlier is not None else ()
    return PromptQuestion.about(body, profile.switch, ignored)


def find_reading(
    target: Target,
    request: Request,
    policies: Policies,
    *,
    separates: bool = False,
    prompt_end: str | None = None,
    seen: Seen | None = None,
) -> Reading:
    """How the reply is read. `separates`: the upstream was seen to separate this model's thinking by itself;
    `prompt_end`: how it ends the prompt."""
    profile = target.profile
    return Reading.of(
        target.settings.name or request.model,
        format=PASSTHROUGH if profile.format is None else profile.given,
        server=ServerFacts(prompt_end=prompt_end, template=profile.template, separates=separates),
        seen=seen,
        think=request.thinking.think,
        switch=target.settings.switch,
        policies=policies,
    )


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
    return msgspec.structs.replace(
        thinking,
        show=show,
        keep=thinking.keep if kept else "current_turn",
        passed=settings.pass_reply_fields,
        reports_dropped=thinking.reports_dropped and kept,
    )


def _choice(headers: Mapping[str, str], name: str, choices: tuple[_Chosen, ...]) -> _Chosen | None:
    """What a header chooses; None where it is not sent, a `Refusal` where it is none of the choices."""
    sent = headers.get(name, "").strip().lower().replace("-", "_")
    if sent and sent not in choices:
        raise Refusal(400, f"{name} must be one of {', '.join(choices)}", param=name)
    return choices[choices.index(sent)] if sent else None


def finds_stops(request: Request, profile: ModelProfile, kind: ServerKind) -> bool:
    """Whether the gateway looks for stop strings itself: where the model thinks, or the server's API takes none, and
    tokens need not be told apart."""
    thinks = profile.can_think and request.thinking.think is not False
    return bool(request.stop) and (thinks or not kind.stops) and not request.logprobs


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
    foreign_thoughts: Literal["text", "drop"] = "drop",
    drop_bound: bool = False,
    every_thought: bool = False,
) -> dict[str, Any]:
    """The body for the upstream, in its dialect. `field`: where it was seen to send thinking; empty: not seen yet."""
    settings, profile = target.settings, target.profile
    options = WriteOptions(
        replay=settings.replay,
        field=field or profile.field or target.card.field or "reasoning_content",
        keep_thinking=settings.keep_thinking or "all",
        framing=profile.framing,
        every_thought=every_thought or _wants_every(request, target),
        switch=profile.switch,
        budget=budget.field if budget is not None else "",
        # What the gateway has to stop must come as it is written.
        stream=True if stream or (budget is not None and budget.by == "gateway") else None,
        model=settings.name,
        usage=True,
        special_tokens=target.upstream.settings.skip_special_tokens and profile.special,
        proved=target.kind.proved,
        foreign_thoughts=foreign_thoughts,
        drop_bound=drop_bound,
        stateless=target.kind.stateless,
    )
    # Last, so that the operator can override whatever is written.
    return {**dialect.write_request(request, options), **settings.extra_body}
