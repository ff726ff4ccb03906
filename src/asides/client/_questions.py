"""What a client asks a server before the first request of its kind: what runs there, and how it ends its prompts.

The same questions as the gateway's (`asides.dialects`), within a second for all of them together, each once. A server
that does not answer in time, or refuses, is not asked again; its replies are read by other evidence.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from ..dialects._rendered_prompts import (
    MOST_BYTES,
    MOST_QUESTIONS,
    MOST_SECONDS,
    PromptQuestion,
    UnusableAnswer,
    ask_end,
)
from ..dialects._servers import Engine
from ._http import HttpExchange, Stopped, UpstreamError

Open = Callable[[str, str, Any, float], HttpExchange]
"""Makes an exchange: method, path below the server's root, body, and the seconds that it may take."""


class ServerQuestions:
    """Asks one server, and remembers."""

    def __init__(self, open: Open) -> None:
        self._open = open
        self._ends: dict[PromptQuestion, str | None] = {}

    def prompt_end(self, question: PromptQuestion, find_engine: Callable[[Asker], Engine | None]) -> str | None:
        """How the server ends the prompt of such a request; None where it does not say.

        `find_engine` says what runs there, and may ask for it.
        """
        if question not in self._ends and len(self._ends) < MOST_QUESTIONS:
            self._ends[question] = None  # also where it is given up below
            asker = Asker(self._open, time.monotonic() + MOST_SECONDS)
            engine = find_engine(asker)
            if engine is not None:
                self._ends[question] = _ask(asker, engine, question)
        return self._ends.get(question)


class Asker:
    """Asks small questions until a moment."""

    def __init__(self, open: Open, deadline: float) -> None:
        self._open = open
        self._deadline = deadline
        self.server: str = ""
        """The header `Server` of the last answer."""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer; None where there is none, or not in time."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            return None
        try:
            exchange = self._open(method, path, body, left)
            # A server that sends a byte now and then is not silent.
            timer = threading.Timer(left, exchange.stop)
            timer.daemon = True
            timer.start()
            try:
                with exchange:
                    self.server = exchange.server
                    data = exchange.read_whole(MOST_BYTES) if exchange.status == 200 else b""
            finally:
                timer.cancel()
            if exchange.stopped:
                raise Stopped("stopped")
            return msgspec.json.decode(data) if data else None
        except Stopped:
            if time.monotonic() < self._deadline:
                raise  # by the person who asks
            return None
        except (UpstreamError, msgspec.MsgspecError, UnicodeError, RecursionError):
            return None


def _ask(asker: Asker, engine: Engine, question: PromptQuestion) -> str | None:
    asking = ask_end(engine.prompt_endpoint, question)
    try:
        step = next(asking)
        while True:
            answer = asker.ask("POST", *step)
            if answer is None:
                return None
            step = asking.send(answer)
    except StopIteration as over:
        end: str = over.value
        return end
    except UnusableAnswer:
        return None
