"""One reply, asked for and shown as it comes: the answer, the thoughts, Ctrl-C. Keeps no conversation."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Self

import msgspec

from ...client.client import Client, Message, Reply, Think, UpstreamError
from ...events import Event, Notice, PartEnd, PartStart, TextDelta, ToolCallDelta
from ...policies import DEFAULTS, Policies
from ...reply.fold import Fold
from ...reply.items import ReplyEvent, ReplyItem
from ...terminal import Mode, Screen, Style, Thoughts
from ..show import Calls
from ..streams import STDERR, Streams

TICK = 0.1
"""Seconds between two turns of the spinner."""


class Choices(msgspec.Struct, kw_only=True):
    """How to ask and what to show. A conversation may change them as it goes."""

    model: str
    think: Think = None
    format: str | None = None
    policies: Policies = DEFAULTS
    """How to read the reply. Its `tools` are what the model is offered."""
    extra: dict[str, Any] = {}
    hide: bool = False
    """Whether thoughts are left unseen."""
    style: Style = Style()
    wrap: bool = True
    """Whether thoughts are wrapped to the terminal."""


class Outcome(msgspec.Struct, frozen=True):
    """How it went."""

    reply: Reply
    """What came."""
    stopped: bool = False
    """Whether Ctrl-C ended it."""
    error: UpstreamError | None = None
    """What ended it otherwise."""


def ask(client: Client, messages: Sequence[Message], choices: Choices, streams: Streams) -> Outcome:
    """Ask for a reply and show it."""
    show = Show(streams, choices)
    fold = Fold(clock=time.monotonic)
    error: UpstreamError | None = None
    with _Receiving(client, messages, choices) as receiving:
        show.wait()
        try:
            for item in receiving.items(show.tick):
                fold.add(item)
                if isinstance(item, ReplyEvent) and item.choice == 0:
                    show.show(item.event)
        except UpstreamError as failure:
            error = failure
        show.end()
    reply = fold.reply
    if error is None and not receiving.stopped:
        show.remark(reply)
    return Outcome(reply, receiving.stopped, error)


class _Receiving:
    """A reply that is read in a thread, so that the spinner turns and Ctrl-C is heard whatever the server does.

    The first Ctrl-C ends the reply, and all that had come is given. A second one ends the command.
    """

    def __init__(self, client: Client, messages: Sequence[Message], choices: Choices) -> None:
        self._client = client
        self._queue: SimpleQueue[ReplyItem | Exception | None] = SimpleQueue()
        self._asked = {name: getattr(choices, name) for name in ("model", "think", "format", "policies", "extra")}
        self._messages = list(messages)
        self.stopped = False
        """Whether Ctrl-C was pressed."""
        self._left = False

    def __enter__(self) -> Self:
        self._previous = signal.getsignal(signal.SIGINT)
        # A shell starts background work with SIGINT ignored. That stays so.
        if self._previous is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._stop)
        threading.Thread(target=self._receive, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._previous)
        self._left = True
        self._client.stop()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopped = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if not self._client.stop():
            self._queue.put(None)  # nothing has come that could be waited for

    def _receive(self) -> None:
        # Signals are for the main thread, which waits for the queue.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for item in self._client.talk(self._messages, **self._asked):
                self._queue.put(item)
                if self._left:
                    return  # the request was sent after all; nobody waits for its reply
        except Exception as error:  # to be raised where someone can tell it
            self._queue.put(error)
        self._queue.put(None)

    def items(self, tick: Callable[[], bool]) -> Iterator[ReplyItem]:
        """What comes, as it comes. `tick` is called while nothing does; it says whether it wants to be called again."""
        while True:
            try:
                item = self._queue.get(timeout=TICK if tick() else None)
            except Empty:
                continue
            if item is None:
                return
            if isinstance(item, Exception):
                raise item
            yield item


class Show:
    """The answer on standard output, and nothing else there; thoughts and calls on standard error."""

    def __init__(self, streams: Streams, choices: Choices) -> None:
        screen = Screen(STDERR)
        mode: Mode = "hide" if choices.hide else "show"
        self._streams = streams
        self._one_screen = streams.out.terminal and streams.err.terminal
        self._thoughts = Thoughts(
            self._write_aside,
            width=screen.width if screen.terminal and choices.wrap else None,
            style=choices.style,
            colour=screen.colour,
            cursor=screen.cursor,
            mode=mode,
            shared=self._one_screen,
            sanitize=streams.err.sanitizes,
        )
        self._calls: dict[int, Calls] = {}
        self._lone_close = False

    def _write_aside(self, text: str) -> None:
        self._streams.out.flush()
        self._streams.err.draw(text)
        self._streams.err.flush()
        if self._one_screen and text.endswith("\n"):
            self._streams.out.at_line_start = True

    def wait(self) -> None:
        """The server has been asked."""
        self._thoughts.wait()

    def tick(self) -> bool:
        """Time has passed. Says whether something moves."""
        self._thoughts.tick()
        return self._thoughts.spinning

    def show(self, event: Event) -> None:
        """Show what an event tells."""
        self._thoughts.show(event)
        if isinstance(event, TextDelta):
            self._streams.answer().write(event.text)
        elif isinstance(event, ToolCallDelta):
            self._calls[event.index].grow(event)
        elif isinstance(event, PartStart):
            if event.kind == "text":
                self._streams.answer().write(event.gap)
            elif event.kind == "tool_call":
                # By their index: calls that a server has split off may end together.
                self._calls[event.index] = Calls()
                self._calls[event.index].start(event)
        elif isinstance(event, PartEnd) and event.index in self._calls:
            self._line(self._calls.pop(event.index).end(event).in_words())
        elif isinstance(event, Notice) and event.code == "stray_close":
            self._lone_close = True
        self._streams.flush()

    def _line(self, words: str) -> None:
        self._thoughts.pause()
        self._streams.aside().write_line(words)
        self._thoughts.wrote_line()

    def end(self) -> None:
        """The reply is over, or was stopped. On a terminal the next line is begun."""
        self._thoughts.finish()
        if self._streams.out.terminal:
            self._streams.answer().end_line()
        self._streams.flush()

    def remark(self, reply: Reply) -> None:
        """What the person should know of a reply that has ended."""
        if reply.reason == "length":
            self._streams.say("cut off: the model has reached the most that it may write")
        elif not reply.text and not reply.tool_calls:
            self._streams.say(f"the model has {'thought and then ' if reply.thinking else ''}said nothing")
        if self._lone_close and not reply.thinking:
            self._streams.say(
                "a closing marker came that nothing had opened: what stands before it was thinking; "
                "read this model with --start thinking"
            )
        self._streams.flush()
