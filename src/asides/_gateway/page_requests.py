"""Requests on the page: the live list of what passes, a look into one, and the end of a thought that takes too long.

Who sees which request: its own client always; an operator those of all clients, where `page.watch` is `all`. With
several workers the one that is asked asks the others too; watching is for one worker alone (`workers.refusal`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from .._page import traffic
from ..dialects._framing import to_json
from ..dialects._servers import CONTROL_PATH, END_THOUGHT
from . import headers
from .http_request import HttpRequest, while_there
from .inspection import InspectedRequest, Registry
from .page_access import NO_STORE, PageAccess, answer, names_of
from .refusals import Refusal
from .routes import Match
from .siblings import Siblings
from .state import State
from .upstreams import UpstreamLost

MOST_WATCHERS, MOST_OF_ONE = 50, 20
"""Those who watch at once, and those with one key: nobody takes the place of all others."""
WAIT = 5.0
"""Seconds that the end of a thought may take till it is reported."""
LOOKS = 0.05
LONGEST_ERROR = 1000


class PageRequests:
    """Answers the page's questions about requests, and holds what it is told of them."""

    def __init__(self, access: PageAccess) -> None:
        self._access = access
        self._registry = Registry(traffic.Traffic(), traffic.RecentRequests(), {}, set())
        self.siblings: Siblings | None = None
        """The other workers, where there are any."""
        self.answers: dict[str, Callable[..., bytes]] = {
            "requests": self._list_own,
            "request": self._find_own,
            "end_thought": self._end_own,
        }
        """What other workers may ask of this one."""

    def inspect(self, http: HttpRequest, state: State) -> InspectedRequest:
        """What will be shown of a request, to whoever may see it."""
        credential = headers.fingerprint(http.headers)
        return InspectedRequest(http, credential, names_of(state.config).get(credential, ""), self._registry)

    def end_watching(self) -> None:
        """Let the streams of all who watch end: the gateway stops, or who may watch has changed."""
        self._registry.traffic.close()

    def _watcher(self, http: HttpRequest, state: State) -> traffic.Watcher:
        self._access.owner(http, state)
        visitor = self._access.visitor(http, state.config)
        assert visitor is not None  # `owner` has refused it
        return traffic.Watcher(visitor.credential, everything=visitor.operator and state.config.page.watch == "all")

    # The live list.

    async def watch(self, http: HttpRequest, match: Match) -> None:
        """`GET /asides/traffic`."""
        state = self._access.open(http)
        watcher = self._watcher(http, state)
        if state.config.page.watch == "off":
            raise Refusal(404, "nothing is watched here; `page: {watch: own}` or `all` lets the page", code="watch_off")
        if http.method == "HEAD":
            raise Refusal(405, "this is a stream", headers=((b"allow", b"GET"),))
        others = self._registry.traffic.watchers
        same = sum(each.credential == watcher.credential for each in others)
        if len(others) >= MOST_WATCHERS or same >= MOST_OF_ONE:
            raise Refusal(429, f"{same} watch with this key, {len(others)} in all", headers=((b"retry-after", b"5"),))
        await while_there(http, self._send_events(http, watcher, state.config.limits.keep_alive))

    async def _send_events(self, http: HttpRequest, watcher: traffic.Watcher, keep_alive: float) -> None:
        with self._registry.traffic.watching(watcher):
            await http.begin(200, [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"), *NO_STORE])
            running = [each.summary() for each in self._registry.running.values() if watcher.sees(each.credential)]
            recent = [request.summary for request in self._registry.recent.seen_by(watcher)]
            found = traffic.event("hello", {"running": running, "recent": recent})
            while found:
                await http.write(found)
                found = await watcher.take(keep_alive)
        await http.end()

    # Single requests.

    async def read(self, http: HttpRequest, match: Match) -> None:
        """`GET /asides/requests` and `/asides/requests/ID`."""
        state = self._access.open(http)
        watcher = self._watcher(http, state)
        if match.rest:
            detail = self._find(match.rest, watcher)
            if not detail:
                detail = await self._first_of_siblings("request", match.rest, *_as_texts(watcher))
            if not detail:
                raise Refusal(404, f"no request {match.rest[:128]!r} is kept that this key may see", code="not_found")
            await http.answer(200, detail, headers=NO_STORE)
            return
        lists = [self._list(watcher)]
        if self.siblings is not None:
            lists += [msgspec.json.decode(found) for found in await self.siblings.ask("requests", *_as_texts(watcher))]
        times = sorted((summary for found in lists for summary in found), key=_time_of, reverse=True)
        await answer(http, {"requests": times[: traffic.MOST_REQUESTS]})

    def _running(self, watcher: traffic.Watcher) -> list[InspectedRequest]:
        """The latest first."""
        running = reversed(self._registry.running.values())
        return [each for each in running if watcher.sees(each.credential) and not each.private]

    def _list(self, watcher: traffic.Watcher) -> list[dict[str, Any]]:
        summaries = [each.summary() for each in self._running(watcher)]
        return [*summaries, *(request.summary for request in self._registry.recent.seen_by(watcher))]

    def _find(self, id: str, watcher: traffic.Watcher) -> bytes:
        """All that is known of a request, as JSON; empty where there is none that is shown."""
        for each in self._running(watcher):
            if each.record.id == id:
                return traffic.encode(each.detail())
        recent = self._registry.recent.find(id, watcher)
        return recent.detail if recent is not None else b""

    # Ending a thought.

    async def answer_now(self, http: HttpRequest, match: Match) -> None:
        """`POST /asides/requests/ID/answer-now`: for a reply of the same key alone, also where an operator asks.

        Nothing is read by it, and its id is known to whoever asked for the reply: that is proof enough.
        """
        state = self._access.open(http)
        id, _, action = match.rest.partition("/")
        if action != "answer-now":
            raise Refusal(404, f"a request has no {action[:100]!r}", code="not_found")
        credential = headers.fingerprint(http.headers)
        done = await self._end_thought(id, credential, by_server=True)
        if "control" in done and (why := await self._control(http, state, done)):
            done = await self._end_thought(id, credential, by_server=False)
            if "refused" in done:
                done = {"refused": why}
        if "refused" in done:
            raise Refusal(409, done["refused"], code="cannot_answer_now")
        await answer(http, {"by": "server" if "control" in done else "gateway", "pending": "pending" in done})

    async def _end_thought(self, id: str, credential: str, *, by_server: bool) -> dict[str, str]:
        found = self._own(id, credential)
        if found is not None:
            done = found.end_thought(by_server=by_server)
            return await _outcome(found) if "continued" in done else done
        answered = await self._first_of_siblings("end_thought", id, credential, "1" if by_server else "")
        if not answered:
            raise Refusal(404, f"no reply to a request {id[:128]!r} is being written for you", code="not_found")
        return msgspec.json.decode(answered, type=dict[str, str])

    def _own(self, id: str, credential: str) -> InspectedRequest | None:
        running = reversed(self._registry.running.values())
        return next((each for each in running if each.record.id == id and each.credential == credential), None)

    async def _control(self, http: HttpRequest, state: State, done: dict[str, str]) -> str:
        """Let the server end the thought; returns why it did not, empty where it did."""
        upstream = next((each for each in state.upstreams if each.name == done["upstream"]), None)
        if upstream is None:
            return "the upstream is not configured any more"
        body = to_json({"id": done["control"], "action": END_THOUGHT})
        sent = state.headers_for(http, upstream, same=True)
        try:
            owner = headers.fingerprint(http.headers)
            async with upstream.ask("POST", CONTROL_PATH, body, sent, owner=owner) as response:
                error = b"" if response.status < 300 else await response.read(LONGEST_ERROR)
        except (Refusal, UpstreamLost) as lost:
            return str(lost)
        return error.decode("utf-8", "replace")[:200] or ("" if response.status < 300 else "the server refused it")

    # What other workers ask.

    async def _first_of_siblings(self, question: str, *arguments: str) -> bytes:
        found = await self.siblings.ask(question, *arguments) if self.siblings is not None else []
        return next((each for each in found if each), b"")

    def _list_own(self, credential: str, everything: str) -> bytes:
        return traffic.encode(self._list(traffic.Watcher(credential, everything=bool(everything))))

    def _find_own(self, id: str, credential: str, everything: str) -> bytes:
        return self._find(id, traffic.Watcher(credential, everything=bool(everything)))

    def _end_own(self, id: str, credential: str, by_server: str) -> bytes:
        found = self._own(id, credential)
        return to_json(found.end_thought(by_server=bool(by_server))) if found is not None else b""


async def _outcome(request: InspectedRequest) -> dict[str, str]:
    """What became of a thought that was to be ended here: it ends with the next line that the server sends."""
    deadline = asyncio.get_running_loop().time() + WAIT
    while asyncio.get_running_loop().time() < deadline:
        if request.record.budget == "not_enforced":
            return {"refused": "the server cannot go on with its answer from a thought that was ended"}
        if request.record.budget == "continued":
            return {"continued": ""}
        await asyncio.sleep(LOOKS)
    return {"pending": ""}  # the server sends nothing, or the client reads nothing: it will end with the next line


def _as_texts(watcher: traffic.Watcher) -> tuple[str, str]:
    return watcher.credential, "1" if watcher.everything else ""


def _time_of(summary: dict[str, Any]) -> str:
    return str(summary["time"])  # of one length, so that the order of texts is that of time
