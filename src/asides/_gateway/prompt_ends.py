"""Where servers end the prompts that they make: asked of those whose engine can be asked, and remembered.

    end = await prompt_ends.ask(upstream, question, key)     # "<|im_end|>\n<|im_start|>assistant\n<think>\n"
    prompt_ends.get(upstream, question)                      # the same, for who cannot wait

One question for each model, way of asking for thinking, effort, and with or without tools; `MOST_QUESTIONS` for a
model. It holds requests up for at most `MOST_SECONDS` after it was first asked, and later ones not at all. A refusal is
remembered like an answer; both are asked for again after an hour, and after the server was lost. An answer is only
believed where it holds the message that was sent, and what is asked again while requests go on is used when it comes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from ..dialects._framing import to_json
from ..dialects._rendered_prompts import (
    MOST_BYTES,
    MOST_QUESTIONS,
    MOST_SECONDS,
    PromptEndpoint,
    PromptQuestion,
    UnusableAnswer,
    ask_end,
)
from .bounded import BoundedDict
from .engines import HOUR, Engines
from .headers import hashed
from .questions import NO_SUCH_PATH, JsonAnswer, ask_json
from .refusals import Refusal
from .upstreams import ASK_AGAIN, Upstream, UpstreamLost

log = logging.getLogger("asides.gateway")

LONGEST = 30.0
"""Seconds after which an answer is waited for no longer by anybody."""
MOST_MODELS = 1000
"""Models that are remembered; their names come from clients."""
_KEY_STATUSES = (401, 403)
"""Statuses that are about who asks."""
_LATER = (408, 425, 429)
"""Statuses below 500 that may be another one a moment later."""


class _KnownEnd:
    """What is known of one question."""

    __slots__ = ("absent", "ask_again", "end", "first", "losses", "refused_key", "task")

    def __init__(self) -> None:
        self.end: str | None = None
        self.first = time.monotonic()
        """When it was asked first."""
        self.ask_again = 0.0
        self.losses = -1
        """`Upstream.losses` when it was answered or refused; -1 where it was neither."""
        self.absent = False
        """Whether the server has no such path, or no such model."""
        self.refused_key: str | None = None
        """The hash of the key that was not let in."""
        self.task: asyncio.Task[None] | None = None


class _Unanswered(Exception):
    """An answer that says nothing."""

    def __init__(self, why: str, status: int = 200) -> None:
        super().__init__(why)
        self.status = status

    @property
    def final(self) -> bool:
        """Whether the server will say the same again."""
        return self.status < 500 and self.status not in (*_KEY_STATUSES, *_LATER)


class PromptEnds:
    """Asks and remembers. `on_changed` is called with upstream and model where an answer is not what it was."""

    def __init__(self, engines: Engines, on_changed: Callable[[str, str], None] = lambda upstream, model: None) -> None:
        self._engines = engines
        self._on_changed = on_changed
        self._models: BoundedDict[tuple[str, str], dict[PromptQuestion, _KnownEnd]] = BoundedDict(MOST_MODELS)
        self._tasks: set[asyncio.Task[None]] = set()

    def get(self, upstream: Upstream, question: PromptQuestion) -> str | None:
        """The end that is known already; None where none is."""
        answer = self._models.get((upstream.name, question.model), {}).get(question)
        return None if answer is None else answer.end

    async def ask(self, upstream: Upstream, question: PromptQuestion, key: str = "") -> str | None:
        """The prompt's end for such a question; None where the server does not say, or not in time.

        `key`: what the server is sent where it has none configured.
        """
        engine = self._engines.known(upstream)
        if engine is None:
            return None
        about = self._models.get((upstream.name, question.model))
        if about is None:
            about = self._models[upstream.name, question.model] = {}
        answer = about.get(question)
        if answer is None:
            if len(about) >= MOST_QUESTIONS or any(_is_absent(each, upstream) for each in about.values()):
                return None
            answer = about[question] = _KnownEnd()
        now = time.monotonic()
        if answer.task is None and _is_due(answer, upstream, key, now):
            answer.task = asyncio.create_task(self._ask(upstream, engine.prompt_endpoint, question, key, answer))
            self._tasks.add(answer.task)
            answer.task.add_done_callback(self._tasks.discard)
        left = answer.first + MOST_SECONDS - now
        if answer.task is not None and left > 0:
            # `wait` and not `wait_for`: the task is shared by all requests like this one.
            await asyncio.wait([answer.task], timeout=left)
        return answer.end

    async def _ask(
        self, upstream: Upstream, endpoint: PromptEndpoint, question: PromptQuestion, key: str, answer: _KnownEnd
    ) -> None:
        before, again, losses = answer.end, ASK_AGAIN, -1
        answer.refused_key, answer.absent = None, False
        try:
            async with asyncio.timeout(LONGEST):
                answer.end = await _fetch(upstream, endpoint, question, key)
            again, losses = HOUR, upstream.losses
            log.debug("%s ends prompts of %r with %r", upstream.name, question.model[:200], answer.end[-64:])
        except (Refusal, UpstreamLost, TimeoutError) as error:
            log.debug("%s does not say how it ends prompts of %r: %s", upstream.name, question.model[:200], error)
        except _Unanswered as error:
            if error.final:
                answer.end, again, losses = None, HOUR, upstream.losses
                answer.absent = error.status in NO_SUCH_PATH
            elif error.status in _KEY_STATUSES:
                answer.refused_key = hashed(key)
            log.debug("%s does not say how it ends prompts of %r: %s", upstream.name, question.model[:200], error)
        finally:
            answer.ask_again, answer.losses, answer.task = time.monotonic() + again, losses, None
        if before is not None and answer.end != before:
            log.info("%s ends prompts of %r otherwise than before", upstream.name, question.model[:200])
            self._on_changed(upstream.name, question.model)

    async def close(self) -> None:
        """Ask no more."""
        for task in list(self._tasks):
            task.cancel()


def _is_due(answer: _KnownEnd, upstream: Upstream, key: str, now: float) -> bool:
    if answer.refused_key is not None and answer.refused_key != hashed(key):
        return True
    return now >= answer.ask_again or answer.losses not in (-1, upstream.losses)


def _is_absent(answer: _KnownEnd, upstream: Upstream) -> bool:
    """Whether the server will not answer other questions about this model either."""
    return answer.absent and answer.losses == upstream.losses and time.monotonic() < answer.ask_again


async def _fetch(upstream: Upstream, endpoint: PromptEndpoint, question: PromptQuestion, key: str) -> str:
    """The end of a prompt, or a `_Unanswered`."""
    asking = ask_end(endpoint, question)
    try:
        path, body = next(asking)
        while True:
            path, body = asking.send((await _post(upstream, path, body, key)).data)
    except StopIteration as over:
        end: str = over.value
        return end
    except UnusableAnswer as error:
        raise _Unanswered(str(error)) from error


async def _post(upstream: Upstream, path: str, body: dict[str, object], key: str) -> JsonAnswer:
    answer = await ask_json(upstream, "POST", path, to_json(body), key, most=MOST_BYTES)
    if answer.status != 200:
        raise _Unanswered(f"{path} is answered with status {answer.status}", answer.status)
    return answer
