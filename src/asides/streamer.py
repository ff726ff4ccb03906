"""A streamer for `generate(streamer=...)` of transformers: ids in as the model samples them, events out by a callback.

It has what `generate` asks of a streamer, `put` and `end`, and imports neither torch nor transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from ._engine.format import Format
from ._engine.tokens import TokenParser
from .errors import UsageError
from .events import Event
from .message import Message
from .policies import DEFAULTS, Policies, PolicyOptions
from .reading import Reading


class Streamer:
    """Give it to `generate`. Every event goes to `on_event`; `message` is what was generated.

    Examples:
        >>> from splintr import Tokenizer
        >>> from asides.streamer import Streamer
        >>> tokenizer = Tokenizer.from_pretrained("qwen3")
        >>> streamer = Streamer(tokenizer, "qwen3", skip_prompt=False)
        >>> streamer.put(tokenizer.encode_with_special("<think>2+2</think>Four.<|im_end|>"))
        >>> streamer.end()
        >>> streamer.message.text
        'Four.'
    """

    def __init__(
        self,
        tokenizer: Any,
        format: str | Format = "auto",
        on_event: Callable[[Event], object] | None = None,
        *,
        model: str | None = None,
        policies: Policies = DEFAULTS,
        skip_prompt: bool = True,
        **options: Unpack[PolicyOptions],
    ) -> None:
        """`model`: the name of the model, which says its format where none is given, and without a prompt also where
        its output begins."""
        self._tokenizer = tokenizer
        chosen = policies.but(**options)
        # What `on_event` was given is often on a screen already.
        self._reading = Reading.of(model, format=format, policies=chosen.but(retype=bool(chosen.retype)))
        self._on_event = on_event
        self._skip_prompt = skip_prompt
        self._parser: TokenParser | None = None
        self._ended = False
        self.events: list[Event] = []
        """The events of the present message, where there is no `on_event` to take them."""

    def put(self, value: Any) -> None:
        """Take ids: a tensor, an array, a list or a number.

        The first that `generate` gives is the prompt. It is no output, but tells where the output begins. With
        `skip_prompt=False` nothing is taken for a prompt.
        """
        ids = _ids(value)
        if self._parser is None or self._ended:
            self._ended = False
            self.events = []
            prompt = ids if self._skip_prompt else None
            self._parser = self._reading.token_parser(self._tokenizer, prompt_ids=prompt)
            if self._skip_prompt:
                return
        self._emit(self._parser.feed(ids))

    def end(self) -> None:
        """The message is over; the next `put` begins another."""
        if self._parser is not None and not self._ended:
            self._ended = True
            self._emit(self._parser.finish())

    @property
    def message(self) -> Message:
        """The message so far; the whole of it after `end`."""
        return self._parser.message if self._parser is not None else Message()

    def _emit(self, events: list[Event]) -> None:
        if self._on_event is None:
            self.events += events
            return
        for event in events:
            self._on_event(event)


def _ids(value: Any) -> list[int]:
    """Ids out of whatever holds them. One sequence only: the tokens of several cannot be told apart in a stream."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, int):
        return [value]
    found = list(value)
    if found and isinstance(found[0], list | tuple):
        if len(found) > 1:
            raise UsageError(f"a streamer reads one sequence, not a batch of {len(found)}")
        found = list(found[0])
    return [int(id) for id in found]
