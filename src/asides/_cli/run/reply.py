"""One reply: asked for, shown as it comes, stopped by Ctrl-C, saved. Holds no conversation.

The reply is read in a thread of its own and handed over by a queue, because the main thread must turn the spinner and
see Ctrl-C whatever the server does. The first Ctrl-C ends the reply, and what had come of it counts; a second one ends
the command. `fold` builds the record of the reply, the display writes it.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any, Self
from uuid import uuid4

import msgspec

from ..._engine.format import Format
from ...client._client import Client, Message, Reply, Think
from ...errors import Error
from ...policies import DEFAULTS, Policies
from ...reading import Reading
from ...reply._fold import Fold
from ...reply._items import ReplyEvent, ReplyItem
from ...terminal import Mode, Screen, Style
from ...terminal._answer import definitions
from ...terminal._thoughts import Folds
from ..display import ReplyDisplay, rows_of
from ..screen_rows import ScreenRows
from ..streams import STDERR, Streams
from .input import ReplyKeys

SECONDS_PER_LOOK = 0.1
"""How often keys are looked for while a reply comes."""


class Choices(msgspec.Struct, kw_only=True):
    """How to ask and what to show. A conversation may change them as it goes."""

    model: str
    think: Think = None
    format: str | Format | None = None
    policies: Policies = DEFAULTS
    """How to read the reply. Its `tools` are what the model is offered."""
    extra: dict[str, Any] = {}
    """Fields of the request that the configuration gives for this model."""
    options: dict[str, Any] = {}
    """Fields of the request that the person has set (`-o`, `/set`); they win."""
    verbose: bool = False
    """Whether figures are written behind each reply."""
    mode: Mode = "show"
    """What becomes of thoughts. On a terminal one that is not shown is a line."""
    style: Style = Style()
    wrap: bool = True
    """Whether thoughts and answers are wrapped to the terminal."""


class Outcome(msgspec.Struct, frozen=True):
    """How it went."""

    reply: Reply
    """What came."""
    stopped: bool = False
    """Whether Ctrl-C ended it."""
    error: Error | None = None
    """What ended it otherwise."""


class SummaryLines:
    """Hidden thoughts as lines that nobody can unfold: there is no conversation. As `terminal.thoughts.Folds`."""

    action = ""

    def begin(self) -> None:
        """Nothing: no place is remembered."""

    def end(self, text: str, summary: str, *, opened: bool) -> None:
        """Nothing: no thought is."""

    def add(self, text: str, summary: str) -> None:
        """Nothing: no thought is."""


def display_reply(streams: Streams, choices: Choices, folds: Folds | None = None, hint: str = "") -> ReplyDisplay:
    """The display for one reply. On a terminal a thought that is not shown is a line with its length."""
    if folds is None and choices.mode != "show" and streams.err.terminal:
        folds = SummaryLines()
    rows = folds if isinstance(folds, ScreenRows) else rows_of(streams)
    return ReplyDisplay(
        streams, mode=choices.mode, style=choices.style, wrap=choices.wrap, folds=folds, hint=hint, rows=rows
    )


def ask(
    client: Client,
    messages: Sequence[Message],
    choices: Choices,
    streams: Streams,
    display: ReplyDisplay | None = None,
    keys: ReplyKeys | None = None,
) -> Outcome:
    """Ask for a reply and show it. `keys` may act meanwhile."""
    display = display or display_reply(streams, choices)
    fold = Fold(clock=time.monotonic)
    error: Error | None = None

    def tick() -> float | None:
        if keys is not None:
            keys.poll()
        if display.idle is not None:
            display.show(())
        streams.flush()
        return display.idle if keys is None else SECONDS_PER_LOOK

    with _Receiving(client, messages, choices) as receiving:
        display.wait()
        streams.flush()
        try:
            for item in receiving.items(tick):
                fold.add(item)
                if isinstance(item, ReplyEvent) and item.choice == 0:
                    display.show((item.event,))
                    streams.flush()
        except Error as failure:
            error = failure
        display.end()
        streams.flush()
    if receiving.stopped and keys is not None:
        keys.drop()
    reply = fold.reply
    if error is None and not receiving.stopped:
        _remark(reply, streams)
    if choices.verbose:
        width = Screen(STDERR).width() - 1
        read = [] if client.reading is None else _how_it_was_read(client.reading)
        for line in ("", *definitions([*figures(reply), *read], width)):
            streams.line(line)
        streams.flush()
    return Outcome(reply, receiving.stopped, error)


class _Receiving:
    """A reply that is read in a thread, so that the spinner turns and Ctrl-C is heard whatever the server does.

    The first Ctrl-C ends the reply, and all that had come is given. A second one ends the command.
    """

    def __init__(self, client: Client, messages: Sequence[Message], choices: Choices) -> None:
        self._client = client
        self._queue: SimpleQueue[ReplyItem | Exception | None] = SimpleQueue()
        self._asked = {name: getattr(choices, name) for name in ("model", "think", "format", "policies")}
        self._asked["extra"] = choices.extra | choices.options
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

    def __exit__(self, *error: object) -> None:
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
        if sys.platform != "win32":  # which gives them to no other
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for item in self._client.talk(self._messages, **self._asked):
                self._queue.put(item)
                if self._left:
                    return  # the request was sent after all; nobody waits for its reply
        except Exception as error:  # to be raised where someone can tell it
            self._queue.put(error)
        self._queue.put(None)

    def items(self, tick: Callable[[], float | None]) -> Iterator[ReplyItem]:
        """What comes, as it comes. `tick` is called while nothing does, again after the seconds that it returns."""
        while True:
            try:
                item = self._queue.get(timeout=tick())
            except Empty:
                continue
            if item is None:
                return
            if isinstance(item, Exception):
                raise item
            yield item


def figures(reply: Reply) -> list[tuple[str, str]]:
    """What a reply cost: tokens, tokens per second, and how long each thing took."""
    usage, times = reply.usage, reply.times
    facts: dict[str, str] = {}
    if usage is not None:
        thinking = "" if usage.reasoning_tokens is None else f"{usage.reasoning_tokens:,} of them thinking, "
        about = "about " if usage.estimated and thinking else ""
        facts["tokens"] = f"{usage.output_tokens:,} ({about}{thinking}{usage.input_tokens:,} in the prompt)"
    else:
        facts["tokens"] = "not counted by the server"
    first = min((time for time in (times.first_thought, times.first_answer) if time is not None), default=None)
    if usage is not None and first is not None and times.seconds is not None and times.seconds > first:
        facts["speed"] = f"{usage.output_tokens / (times.seconds - first):,.1f} tokens/s"
    for name, seconds in (
        ("first thought", times.first_thought),
        ("first answer", times.first_answer),
        ("whole reply", times.seconds),
    ):
        if seconds is not None:
            facts[name] = f"{seconds:.2f} s"
    return [*facts.items()]


def _how_it_was_read(reading: Reading) -> list[tuple[str, str]]:
    return [("format", reading.format.name), ("begins in", str(reading.begins))]


def _remark(reply: Reply, streams: Streams) -> None:
    """Say what the person should know of a reply that has ended."""
    if reply.reason == "length":
        streams.message("cut off: the reply has reached its limit of tokens (-o max_tokens=N sets another)")
    elif not reply.text and not reply.tool_calls:
        streams.message(f"the model {'thought, but ' if reply.thinking else ''}gave no answer")
    if not reply.thinking and any(notice.code == "stray_close" for notice in reply.notices):
        streams.message(
            "a thought was closed that was not opened here: the prompt opened it, and everything before the closing "
            "marker is thinking. Read this model with --start thinking"
        )
    streams.flush()


class ReplySaver:
    """Saves the replies of one conversation after another in the history, with their thoughts."""

    def __init__(self, store: str, conversation: str = "") -> None:
        """`conversation`: the one to go on with; else a new one begins."""
        self._store = store
        self.failed = False
        """Whether a reply could not be saved; that was reported."""
        self._conversation = conversation or uuid4().hex

    def begin(self) -> None:
        """Another conversation begins."""
        self._conversation = uuid4().hex

    def save(self, asked: list[dict[str, Any]], outcome: Outcome, choices: Choices) -> None:
        """Save what came, and what was asked since the reply before."""
        if not outcome.reply.parts:
            return
        from ..._history import text_turn
        from ..history.save import save

        saved = save(
            outcome.reply,
            self._store,
            model=choices.model,
            source="run",
            conversation=self._conversation,
            format=choices.format.name if isinstance(choices.format, Format) else choices.format or "",
            asked=[text_turn(turn["role"], turn["content"], call_id=turn.get("tool_call_id", "")) for turn in asked],
        )
        self.failed = self.failed or not saved
