"""One request for a reply: planned, sent to an upstream, its reply carried back as it comes.

`Exchange.run` finds the upstream and the model's profile, makes the plan (`plan.py`), and sends it. The reply goes
through the pipeline (`pipeline.py`), streamed or whole as the client asked, and at its end it is offered to the replay
cache and put into history. Where nothing is to be split and both sides speak the same dialect, bytes pass untouched.

Errors: a `Refusal` is raised as long as nothing of the answer has been sent; after that a stream ends with an error in
the client's dialect. A client that leaves cancels the task; what had come of the reply goes into history all the same.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from .._config.values import hide_url
from ..dialects import Dialect
from ..dialects._arrange import arrange, may_need_arranging
from ..dialects._efforts import allowed_efforts
from ..dialects._errors import UPSTREAM_ENDED
from ..dialects._framing import read_odd_json, to_json
from ..dialects._numbers import check_numbers
from ..dialects._request import RequestError
from ..dialects._servers import OPENAI
from ..reply._items import Begin, Chunk, Ended, Failed, PlacedProof, Proof, ReplyEvent, ReplyItem
from . import headers
from .bodies import holds_more, off_loop, read_json
from .budgets import FIELD, BudgetPlan, may_have_budget
from .capsules import CapsuleContent
from .enforcement import EnforcedBudget, ThoughtWatch, refuse_budget, report_budget
from .http_request import Headers, HttpRequest
from .inspection import MOST_CHARACTERS, InspectedRequest
from .keepalive import KeepAlive
from .pipeline import HEAD, CollectedItems, ItemFilter, Pipeline, explained, malformed, split_whole
from .plan import RequestPlan, Target, make_plan
from .proofs import ThoughtRecovery
from .refusals import Refusal
from .replay_cache import beginning_of
from .state import State
from .stops import StopStrings
from .stored_responses import Recalled
from .to_history import conversation_of, kept_replies
from .token_ids import open_tokenizer
from .upstreams import Upstream, UpstreamLost, UpstreamResponse

log = logging.getLogger("asides.gateway")

LONGEST_ERROR = 16 * 1024
"""Bytes of an upstream's error that are searched for efforts."""
STOPPED = Refusal(503, "the gateway was stopped", code="stopped")


class BrokenOff(Exception):
    """An answer that had begun and cannot be ended: closing the connection is all that is left."""


class Exchange:
    """Carries one request to an upstream and its reply back."""

    def __init__(self, state: State, http: HttpRequest, dialect: Dialect, path: str) -> None:
        """`path` is the request's, normalised: a dialect may have several."""
        self._state = state
        self._http = http
        self._dialect = dialect
        self._path = path
        self._record = http.record
        self._inspected: InspectedRequest | None = http.record.inspected
        """What the page shows of it; None where it is neither watched nor looked into."""
        key = headers.key_of(http.headers)
        self._credential = headers.hashed(key)
        self._key = "" if state.guarded else headers.as_text(key)
        """The client's key for an upstream that has none configured."""
        self._recalled: Recalled | None = None
        """What it has to do with kept replies; None where that is nothing."""
        self._enforced: EnforcedBudget | None = None
        """Ends the reply's thought at its budget, where that is the gateway's to do."""
        self._private = False
        """Whether the client does not want its reply stored, the replay cache included."""

    async def run(self, body: bytes) -> None:
        """Do it. A `Refusal` is raised while nothing of the answer has been sent."""
        state, record = self._state, self._record
        data = await off_loop(len(body), read_json, body, state.config.limits.values, True)
        # First of all: the line of a request that is refused below names the model too.
        record.model = model = data["model"] if isinstance(data.get("model"), str) else ""
        stream = data.get("stream")  # null is how SDKs write what was not set
        record.stream = self._dialect.STREAMS_BY_DEFAULT if stream is None else bool(stream)
        try:
            check_numbers(data, state.config.limits.choices)
        except RequestError as error:
            raise Refusal(error.status, error.message, param=error.param) from error
        key = self._key
        upstreams = await state.route(model, key)
        api = self._dialect.KEPT
        if api is not None:
            self._private = api.stands_alone(data, body)
            # Few clients say so, and those ask often: they are not to pay for what others store.
            if not self._private:
                self._recalled = recalled = await state.responses.recall(api, self._credential, data, len(body))
                data, self._private = recalled.body, recalled.private
            if self._inspected is not None:
                self._inspected.private = self._private
        await state.ask_any(upstreams, record, partial(self._ask, body, data, key))

    async def _ask(self, body: bytes, data: dict[str, Any], key: str, upstream: Upstream) -> None:
        """Ask this upstream."""
        state, model = self._state, self._record.model
        settings = state.settings(model)
        # Before the profile: how a server is asked for its template depends on what it is.
        kind = upstream.kind or await upstream.find_kind()
        profile = await state.profiles.resolve(upstream, model, settings, key)
        # What runs there matters to the end of thoughts alone, and has to be asked for.
        budgeted = settings.budget.tokens is not None or may_have_budget(body)
        ends = self._inspected is not None and self._inspected.asked_for  # its thought may be ended on demand
        engine = await state.engines.find(upstream, key) if (budgeted or ends) and kind is OPENAI else None
        if budgeted and (tokenizer := settings.budget.tokenizer or settings.tokenizer):
            await asyncio.to_thread(open_tokenizer, tokenizer)  # large; read once
        if settings.token_ids is not False and settings.tokenizer and state.token_ids.sends_raw(upstream.name, model):
            await state.token_ids.load(settings.tokenizer)
        target = Target(upstream, kind, settings, profile, engine)
        # Between two dialects bytes cannot pass; then `format: none` still means that no marker acts.
        if profile.format is None and kind.speaks(self._dialect):
            await self._pass(target, data, body)
            return
        recalled = self._recalled
        size, echo = (len(body), None) if recalled is None else (recalled.size, recalled.echo)
        arguments = (state, self._http, self._dialect, self._path, data, target, self._credential, echo)
        plan = await off_loop(size, make_plan, *arguments)
        # Only now is it known what the server is sent, and so what is to be asked about it.
        if plan.question is not None and plan.prompt_end != await state.prompt_ends.ask(upstream, plan.question, key):
            plan = await off_loop(size, make_plan, *arguments)
        shared = state.shared_thoughts
        if shared is not None and plan.missed and await shared.fetch(self._credential, plan.missed):
            plan = await off_loop(size, make_plan, *arguments)
        answers = any(turn.role == "assistant" for turn in plan.request.turns)
        learn = plan.effort is not None or plan.budget is not None or bool(plan.id_field) or answers
        if not await self._send(plan, learn=learn):
            await self._send(await off_loop(size, make_plan, *arguments), learn=False)

    async def _pass(self, target: Target, data: dict[str, Any], body: bytes) -> None:
        """Byte for byte: nothing is split and both sides speak the same dialect."""
        settings = target.settings
        if self._inspected is not None:
            self._inspected.passed(partial(self._dialect.read_request, data, self._path))
        changed = {**({"model": settings.name} if settings.name else {}), **settings.extra_body}
        if may_need_arranging(body):
            changed = await off_loop(len(body), self._arranged, data) | changed
        if may_have_budget(body) or settings.budget.tokens is not None:
            self._report_passed_budget(target, {**data, **changed})
        if changed:
            body = to_json({**data, **changed})
        sent = self._state.headers_for(self._http, target.upstream, same=True, key=self._key)
        await pass_on(self._state, self._http, target.upstream, self._dialect.PATHS[self._path], body, sent)

    def _report_passed_budget(self, target: Target, data: dict[str, Any]) -> None:
        """Tell the client of a body that is passed on whether its budget reaches a server that keeps to it."""
        try:
            request = self._dialect.read_request(data, self._path)
        except RequestError:
            return  # the upstream's to refuse
        asked = request.thinking
        tokens = None if asked.think is False else asked.budget or target.settings.budget.tokens
        if tokens is not None:
            engine = target.engine if request.prompt is None else None
            field = target.settings.budget.field or (engine.budget if engine is not None and engine.certain else "")
            known = bool(field) and field.partition(".")[0] in data
            report_budget(self._http, BudgetPlan(tokens=tokens, by="server" if known else "nobody"))

    def _arranged(self, data: dict[str, Any]) -> dict[str, Any]:
        """The fields of a body that is passed on which must change for chat templates; all else stays as it came."""
        try:
            request = self._dialect.read_request(data, self._path)
        except RequestError:
            return {}  # not ours to refuse: the upstream may take it
        arranged = arrange(request)
        self._record.arranged = arranged.changes
        if not arranged.changes or not isinstance(data.get("messages"), list):
            return self._dialect.write_request(arranged.request) if arranged.changes else {}
        # Each message as the client wrote it. Only one of instructions is ever new.
        sent = {id(turn): message for turn, message in zip(request.turns, data["messages"], strict=True)}
        for turn in arranged.request.turns:
            if id(turn) not in sent:
                alone = msgspec.structs.replace(request, turns=(turn,))
                sent[id(turn)] = self._dialect.write_request(alone)["messages"][0]
        return {"messages": [sent[id(turn)] for turn in arranged.request.turns]}

    async def _send(self, plan: RequestPlan, *, learn: bool) -> bool:
        """Send the request and carry the reply back. False: something was learned, and it is to be planned again."""
        inspected = self._inspected
        if inspected is not None:
            plan = inspected.planned(plan)
        same = plan.target.kind.speaks(self._dialect)
        sent = self._state.headers_for(self._http, plan.target.upstream, same=same, key=self._key)
        for name, value in plan.headers.items():
            sent[name] = f"{sent[name]},{value}" if name in sent else value
        sent["accept"] = "text/event-stream, application/x-ndjson" if plan.streams else "application/json"
        path = plan.upstream_dialect.upstream_path(plan.request)
        ask = partial(plan.target.upstream.ask, "POST", path, headers=sent, owner=self._credential)
        budget = plan.budget if plan.stops_thought else None
        if budget is None and inspected is not None:
            refused = self._state.budget_refusals.get((plan.target.upstream.name, plan.request.model), ())
            budget = inspected.on_demand(plan, refused)
        if budget is not None:
            key = headers.own_key(self._http.headers, self._state.guarded)
            self._enforced = EnforcedBudget(self._state, self._record, plan, ask, budget, key)
        else:
            self._enforced = None
        async with self._enforced or ask(plan.body) as answer:
            return await self._take(answer, plan, same=same, learn=learn)

    async def _take(self, answer: UpstreamResponse, plan: RequestPlan, *, same: bool, learn: bool) -> bool:
        """Carry an upstream's answer back, whatever it is. False: something was learned from it instead."""
        self._record.upstream_status = answer.status
        self._record.answered = time.monotonic()
        if 300 <= answer.status < 400:
            raise moved(answer)
        back = self._state.headers_back(answer.headers, same=same)
        error = await answer.read(self._state.config.limits.body) if answer.status >= 400 else b""
        if learn and self._learn(answer.status, error, plan):
            return False
        if plan.effort != plan.request.thinking.effort:
            self._report_effort(plan.effort or "default")
        if plan.budget is not None:
            report_budget(self._http, plan.budget)
        if answer.status >= 400:
            await self._pass_error(answer, error, plan, back)
        elif not plan.streams or "application/json" in answer.headers.get("content-type", ""):
            if self._record.budget == "within":
                self._record.budget = "not_enforced"  # it does not stream, so nothing could be stopped
            await self._whole(answer, plan, back)
        elif plan.request.stream:
            await self._stream(answer, plan, back)
        else:
            await self._collected(answer, plan, back)
        return True

    def _report_effort(self, effort: str) -> None:
        """Tell the client, and the log, of an effort that is not the one that it asked for."""
        self._record.effort = effort
        self._http.set_header(b"x-asides-effort", effort)

    def _learn(self, status: int, body: bytes, plan: RequestPlan) -> bool:
        """Whether an upstream's error shows how it can be asked: with another effort, without the budget's field, or
        without the thoughts of earlier turns."""
        if status not in (400, 404, 422):
            return False
        error = body[:LONGEST_ERROR].decode("utf-8", "replace").replace('\\"', '"')
        upstream, model = plan.target.upstream.name, plan.request.model
        if self._recover(plan, error):
            return True
        if status == 404:
            return False
        field = plan.budget.field if plan.budget is not None else ""
        # One that the operator has named is the operator's to put right, and one of the client's own stays.
        if field and not plan.target.settings.budget.field and field.rpartition(".")[2] in error:
            log.warning("%s takes no %s for %r", upstream, field, model[:200])
            refuse_budget(self._state, plan, FIELD)
            return True
        if plan.id_field and plan.id_field in error:
            self._state.token_ids.refuse(upstream, model, plan.streams, f"the server refuses {plan.id_field}")
            return True
        known = allowed_efforts(error, plan.effort) if plan.effort is not None else ()
        if not known:
            return False
        log.warning("%s takes no effort %r for %r; it takes: %s", upstream, plan.effort, model[:200], ", ".join(known))
        self._state.efforts[upstream, model] = known
        return True

    def _recover(self, plan: RequestPlan, error: str) -> bool:
        """Whether an error is about a thought of an earlier turn, so that the request may be sent once more."""
        turns = sum(turn.role == "assistant" for turn in plan.request.turns)
        how = plan.target.card.recovery(error) if turns else None
        # A client that decides itself what becomes of thoughts that are bound elsewhere wants to hear of them.
        if how is None or (how == "drop_block" and plan.request.thinking.reports_dropped):
            return False
        beginning = beginning_of(self._credential, plan.request, self._http.headers)
        if how == "drop_block" and plan.headers:
            how = "without"  # it was told to leave them out already
        log.warning("%s refuses a thought of an earlier turn; it is asked again: %s", plan.target.upstream.name, how)
        self._state.refused_thoughts[beginning] = ThoughtRecovery(how, turns)
        return True

    async def _collected(self, answer: UpstreamResponse, plan: RequestPlan, back: Headers) -> None:
        """A reply that the client wants in one piece, and that is read as a stream so that its thought can be ended."""
        collected = CollectedItems()
        filter, watch = self._begin_reply(plan, whole=False)
        writer = collected if self._inspected is None else self._inspected.tee(collected)
        pipeline = Pipeline(plan.reader(), filter, writer, on_error=self._log_failure)

        def carry(chunk: bytes) -> bool:
            if watch is None:
                pipeline.feed(chunk)
            else:
                watch.feed(pipeline, chunk)
            return not pipeline.over and (watch is None or watch.thought is None)

        try:
            while not pipeline.over and await answer.deliver(carry):
                if self._enforced is not None and watch is not None and watch.thought is not None:
                    answer, _ = await self._enforced.end_thought(answer, pipeline)
                    watch = watch if watch.thought is None else None
        except UpstreamLost as error:
            raise error.refusal from error
        pipeline.finish()
        await self._answer_whole(collected.items, plan, back, 0)

    async def _pass_error(self, answer: UpstreamResponse, body: bytes, plan: RequestPlan, back: Headers) -> None:
        """The upstream's own error: unchanged for a client of its dialect if it is JSON, else in the client's shape."""
        self._record.upstream_error = "status_5xx" if answer.status >= 500 else "status_4xx"
        if self._inspected is not None:
            self._inspected.reason = plan.upstream_dialect.read_error(answer.status, body).message
        kind = "application/json"
        if plan.target.kind.speaks(self._dialect) and body.lstrip().startswith((b"{", b"[")):
            given = answer.headers.get("content-type", kind)
            kind = given if "json" in headers.safe_media_type(given) else kind
        else:
            body = to_json(self._dialect.write_error(plan.upstream_dialect.read_error(answer.status, body)))
        await self._http.answer(answer.status, body, kind, back)

    async def _stream(self, answer: UpstreamResponse, plan: RequestPlan, back: Headers) -> None:
        """A streamed reply."""
        http, record, running = self._http, self._record, self._state.running
        filter, watch = self._begin_reply(plan, whole=False)
        # Before the head of the answer is sent: what goes wrong here is still an error with a status.
        writer = self._dialect.ReplyWriter(plan.request, **self._writer_options(plan))
        if self._inspected is not None:
            writer = self._inspected.tee(writer)
        pipeline = Pipeline(plan.reader(), filter, writer, on_error=self._log_failure)
        await self._begin_stream(back)
        keep_alive = KeepAlive(http, self._dialect, plan.request, self._state.config)
        push = http.pusher()
        reply_id, unsent = "", b""

        def carry(chunk: bytes) -> bool:
            # Called where the chunk is received, once for each frame of the stream.
            nonlocal reply_id, unsent
            out = pipeline.feed(chunk) if watch is None else watch.feed(pipeline, chunk)
            # The client learns this id from the frame that is written next, and may end the reply's thinking by it.
            if record.reply_id and not reply_id:
                reply_id = record.reply_id
                running[reply_id] = (self._credential, plan.target.upstream)
            if out:
                keep_alive.busy = True
                if not push(out):
                    unsent = out
                    return False
            return not pipeline.over and (watch is None or watch.thought is None)

        try:
            while not pipeline.over and await answer.deliver(carry):
                if unsent:
                    await http.write(unsent)
                    unsent = b""  # only now: until a slow client has taken it, a cancelled task has it to send
                if self._enforced is not None and watch is not None and watch.thought is not None:
                    answer, out = await self._enforced.end_thought(answer, pipeline)
                    watch = watch if watch.thought is None else None
                    if out:
                        await http.write(out)
            last = pipeline.finish()
        except UpstreamLost as error:
            record.fail(str(error), error.reason)
            last = pipeline.lose(error.refusal.failed)
        # Cancelled by the client's leaving, or by the shutdown after `limits.shutdown`: only the latter has somebody to
        # tell.
        except asyncio.CancelledError:
            if record.cancelled:
                pipeline.abandon()
                self._save(plan)  # what a person stopped is often what they look for
                raise
            last = pipeline.lose(STOPPED.failed)  # open streams had their time: say why no more comes
        finally:
            keep_alive.stop()
            running.pop(reply_id, None)
        await self._finish_reply(plan)  # before the client can know that it may ask again
        if self._recalled is not None:
            await self._keep(plan, self._recalled, writer.written)
        await http.end(unsent + last)

    async def _whole(self, answer: UpstreamResponse, plan: RequestPlan, back: Headers) -> None:
        """A reply in one piece."""
        try:
            body = await answer.read(self._state.config.limits.body)
        except UpstreamLost as error:
            raise error.refusal from error
        filter, _ = self._begin_reply(plan, whole=True)
        items = await off_loop(len(body), self._read_items, body, filter, plan)
        if self._inspected is not None:
            self._inspected.show(items)
        await self._answer_whole(items, plan, back, len(body))

    async def _answer_whole(self, items: list[ReplyItem], plan: RequestPlan, back: Headers, size: int) -> None:
        """Send a reply of which all items are there; `size` is that of the upstream's, in bytes."""
        # Said here, before its status is: a writer would find it out, and write an error as if it were the reply.
        if self._record.failed is None and not any(isinstance(item, Ended) for item in items):
            self._record.add(UPSTREAM_ENDED)
            items = [*items, UPSTREAM_ENDED]
        await self._finish_reply(plan)
        failed = self._record.failed
        if plan.request.stream and failed is None:  # an upstream that does not stream
            writer = self._dialect.ReplyWriter(plan.request, **self._writer_options(plan))
            await self._begin_stream(back)
            written = await off_loop(size, lambda: b"".join(map(writer.feed, items)) + writer.finish())
            if self._recalled is not None:
                await self._keep(plan, self._recalled, writer.written)
            await self._http.end(written)
            return
        response, written = await off_loop(size, self._write_whole, items, plan)
        if self._recalled is not None and failed is None:
            await self._keep(plan, self._recalled, response)
        await self._http.answer(failed.status if failed is not None else 200, written, headers=back)

    def _begin_reply(self, plan: RequestPlan, *, whole: bool) -> tuple[ItemFilter, ThoughtWatch | None]:
        """What the items of the reply pass, and what counts its thinking; how much text is kept is settled here."""
        config, settings = self._state.config, plan.target.settings
        # Who refused to see thinking is not given it as the answer either.
        fills = settings.empty_answer == "thinking" and plan.request.thinking.show
        # A stream that may be corrected puts a thought into the client's text, which comes back there.
        cacheable = plan.policies.calls or plan.uncalled or (plan.policies.retype and not whole)
        cached = self._state.replay_cache.limit if cacheable and not self._private else 0
        all_of_it = fills or self._state.keeps_text
        limit = config.limits.body if all_of_it else cached
        enforced, inspected = self._enforced if not whole else None, self._inspected
        keep = config.limits.body if enforced is not None else cached
        if inspected is not None:
            keep, limit = max(keep, MOST_CHARACTERS), max(limit, MOST_CHARACTERS)
        splitter = plan.splitter(whole=whole, keep=keep, shortcut=inspected is None)
        watch = enforced.watch(splitter) if enforced is not None else None
        if inspected is not None:
            inspected.watch = watch
        self._record.begin_reply(splitter, collect=limit > 0, limit=limit)
        model = plan.request.model if settings.name else ""
        filter = ItemFilter(
            splitter,
            self._record,
            limits=config.limits,
            model=model,
            fill_empty=fills,
            stops=StopStrings(plan.stops) if plan.stops else None,
            choices=max(1, plan.request.choices),
            whole=whole,
            seal=self._seal_for(plan),
        )
        return filter, watch

    def _seal_for(self, plan: RequestPlan) -> Callable[[Proof, PlacedProof], str] | None:
        """What makes of a proof what the client shall carry; None for a client that has no field for it."""
        state, thinking = self._state, plan.request.thinking
        if self._dialect.CARRIES is None or not state.config.continuity.carry or thinking.think is False:
            return None
        # Within one API the upstream's own fields pass, as far as the client is shown thoughts.
        passed = plan.target.kind.speaks(self._dialect) and thinking.show
        passes = self._dialect.CARRIES if passed and plan.reasoning != "details" else "everything" if passed else ""

        def seal(proof: Proof, placed: PlacedProof) -> str:
            if passes == "everything" or (passes == "calls" and proof.call):
                return ""
            capsules = state.capsules
            if capsules is None:
                return ""
            return capsules.seal(CapsuleContent(placed, plan.conversation.before), plan.owner)

        return seal

    async def _begin_stream(self, back: Headers) -> None:
        kind = self._dialect.FRAMING.media_type.encode()
        # nginx collects a response before it passes it on unless `x-accel-buffering` forbids it.
        own = [(b"content-type", kind), (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
        await self._http.begin_stream([*own, *back])

    def _read_items(self, body: bytes, filter: ItemFilter, plan: RequestPlan) -> list[ReplyItem]:
        """The items of a whole reply."""
        chunks = read_whole(plan.upstream_dialect, body, self._state.config.limits.values)
        return split_whole(chunks, filter, on_error=self._log_failure)

    def _write_whole(self, items: list[ReplyItem], plan: RequestPlan) -> tuple[dict[str, Any], bytes]:
        """A whole reply in the client's dialect; without what cannot be written of it, if that is what it takes."""
        options = self._writer_options(plan)
        try:
            written = self._dialect.write_reply(items, plan.request, **options)
            return written, to_json(written)
        except Exception as error:
            self._log_failure(error)
        # What comes from the upstream unchecked are its own fields and its usage; the reply itself is worth more than
        # these.
        kept = [item for item in items if isinstance(item, Begin | ReplyEvent | Ended | Failed)]
        written = self._dialect.write_reply(kept, plan.request, **options)
        return written, to_json(written)

    def _writer_options(self, plan: RequestPlan) -> dict[str, Any]:
        return {"reasoning": plan.reasoning} if plan.reasoning in self._dialect.THINKING_FIELDS else {}

    def _log_failure(self, error: Exception) -> None:
        """A reader or a writer of ours failed on what the upstream sent."""
        log.exception("request %s: the upstream's reply could not be carried over whole", self._record.id)
        self._record.error = f"{type(error).__name__}: {error}"

    async def _finish_reply(self, plan: RequestPlan) -> None:
        """The reply is over: what is learned from it, and who gets it besides the client."""
        record, state = self._record, self._state
        splitter = record.splitter
        assert splitter is not None
        for field in splitter.fields:
            state.fields[plan.target.upstream.name, plan.request.model] = field
        if splitter.surplus:
            log.warning("request %s: left out %d pieces of choices that nobody asked for", record.id, splitter.surplus)
        if record.failed is None:
            name, asked = plan.target.upstream.name, plan.vocabulary is not None
            state.token_ids.see(name, plan.request.model, plan.streams, splitter, asked=asked)
        record.issuer = issuer = plan.target.issuer(plan.request)
        fold = record.folds.get(0)
        # Where ids were read, they have said where the reply begins, whatever the plan knew.
        guessed = not splitter.fields and splitter.id_use == "none"
        if fold is not None and guessed and record.failed is None and not plan.stops_thought:
            source = self._credential if state.guarded else plan.conversation.key((), "").hex()
            state.learned.add(plan.target.upstream.name, plan.request, plan.reading, fold, source)
        # A part of a thought would be put back as if it were the whole.
        if fold is None or not fold.collect or record.truncated or self._private:
            fold = None
        elif plan.request.stream:  # else nothing went out before it was known what it is
            for each in record.folds.values():
                if "retyped" in each.notices:
                    state.replay_cache.put_retyped(plan.conversation, each.reply)
        # Most models want back what they thought before a call, nothing else.
        if fold is not None and (fold.calls or plan.uncalled):
            framing, raw = plan.target.profile.framing, splitter.written(0)
            place = (plan.conversation, fold.reply, plan.seed)
            entry = state.replay_cache.put(*place, raw, framing, uncalled=plan.uncalled, issuer=issuer)
            if entry is not None and state.shared_thoughts is not None:
                await state.shared_thoughts.put(self._credential, plan.request.model, entry)
        if state.spans is not None or state.history_writer is not None:
            self._save(plan)

    async def _keep(self, plan: RequestPlan, recalled: Recalled, response: dict[str, Any] | None) -> None:
        """Keep a reply that the client may refer to, unless it shall not be kept. None: one that failed."""
        api = self._dialect.KEPT
        if api is None or response is None or not recalled.keep:
            return
        request, credential = plan.request, self._credential
        labels = {"model": request.model, "conversation": conversation_of(request, credential)}
        await self._state.responses.keep(api, credential, recalled, response, **labels)

    def _save(self, plan: RequestPlan) -> None:
        """Put each choice of the reply into history and into the request's span, where there are such."""
        if self._state.spans is not None:
            self._state.spans.add_content(self._record, plan.request)
        if self._state.history_writer is not None and not self._private:
            for reply in kept_replies(plan, self._record, self._credential):
                self._state.history_writer.put(reply)


def read_whole(upstream_dialect: Dialect, body: bytes, most: int = sys.maxsize) -> list[Chunk]:
    """The chunks of a reply that came in one piece, whatever the upstream made of it; at most so many JSON values."""
    if holds_more(body, most):
        return [malformed(f"the upstream's reply holds more than {most} values (limits.values)")]
    try:
        # First: a JSON object is also how a stream of JSON lines begins.
        data = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        data = read_odd_json(body)
    if isinstance(data, dict):
        return upstream_dialect.read_reply(data)
    if body.lstrip().startswith(upstream_dialect.FRAMING.starts):
        reader = upstream_dialect.ReplyReader()  # some servers stream whatever they are asked for
        return [*reader.feed(body), *reader.finish()]
    return [explained(malformed("the upstream's reply is empty"), body[:HEAD])]


def _another_kind(http: HttpRequest, answer: UpstreamResponse, kinds: Sequence[str]) -> Refusal:
    """An answer that is not what is passed on here. Whether there is something at all is the upstream's to say."""
    found = answer.headers.get("content-type", "no type")[:100]
    message = (
        f"the upstream answered {answer.status} with {found!r} at {http.path[:200]}, and only {' and '.join(kinds)}"
    )
    status = answer.status if answer.status >= 400 else 502
    return Refusal(status, f"{message} are passed on here", code="not_passed_on")


def moved(answer: UpstreamResponse) -> Refusal:
    """A redirect is no answer, and to follow it would send the request, and its key, somewhere else."""
    location = answer.headers.get("location", "")
    message = (
        f"the upstream answered {answer.status}, a redirect{f' to {hide_url(location)[:200]}' if location else ''}"
    )
    return Refusal(502, f"{message}; is its address right?", code="upstream_lost")


async def pass_on(
    state: State,
    http: HttpRequest,
    upstream: Upstream,
    path: str,
    body: bytes | None,
    sent: dict[str, str],
    kinds: Sequence[str] = (),
) -> None:
    """Send a request as it is and hand the answer on as it comes. `kinds`: only an answer whose type begins so."""
    owner = headers.fingerprint(http.headers)
    async with upstream.ask(http.method, path, body, sent, raw=True, owner=owner) as answer:
        http.record.upstream_status = answer.status
        http.record.answered = time.monotonic()
        back = state.headers_back(answer.headers, same=True, raw=True)
        if answer.status in (204, 304):  # has no body, whatever it says about one
            back = [header for header in back if header[0] not in (b"content-length", b"content-type")]
        elif 300 <= answer.status < 400:
            raise moved(answer)
        elif kinds and not answer.headers.get("content-type", "").lower().startswith(tuple(kinds)):
            raise _another_kind(http, answer, kinds)
        await http.begin(answer.status, back)
        push, unsent = http.pusher(), b""

        def carry(chunk: bytes) -> bool:
            nonlocal unsent
            if push(chunk):
                return True
            unsent = chunk
            return False

        try:
            while await answer.deliver(carry):
                await http.write(unsent)
        except UpstreamLost as error:
            http.record.fail(str(error), error.reason)
            # The bytes are the upstream's own: an error of ours among them would be taken for a part of the answer.
            raise BrokenOff from error
        await http.end()
