"""The choices that a caller may make about reading, as one frozen record.

`Policies` holds every policy with its default and checks it when it is made. Flags, configuration files, request
headers and keyword arguments all become this record, and the record is what the parser takes. `PolicyOptions` names
the same fields for callers who write them as keywords; the keywords change the record that they stand beside:

    Parser("qwen3", mentions="marker")                           # keywords: what most callers write
    Parser("qwen3", Policies(mentions="marker"))                 # a record that was made elsewhere
    Parser("qwen3", configured, start="thinking", seed=7)        # a record, and what differs for this reply
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypedDict, Unpack, get_args

import msgspec

from .errors import UsageError
from .events import NOTICES

CallsInThinking = Literal["resolve", "never", "always"]
Start = Literal["text", "thinking", "undecided"]
Mentions = Literal["literal", "marker"]
Whitespace = Literal["tidy", "exact"]

_STARTS = (None, *get_args(Start))
_CALLS_IN_THINKING = (None, *get_args(CallsInThinking))
_MENTIONS = get_args(Mentions)
_WHITESPACE = get_args(Whitespace)


class SharedPolicyOptions(TypedDict, total=False):
    """The fields of `Policies` that hold for every reply of a column, as keyword arguments."""

    start: Start | None
    calls_in_thinking: CallsInThinking | None
    mentions: Mentions
    whitespace: Whitespace
    seed: int
    strict: bool | Collection[str]
    limit: int
    repair: bool
    calls: bool


class PolicyOptions(SharedPolicyOptions, total=False):
    """The fields of `Policies` as keyword arguments."""

    prompt: str | None
    tools: Sequence[Mapping[str, Any]] | None
    collect: bool


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """How to read a model's output. A value that is no choice of its policy raises `UsageError`."""

    start: Start | None = None
    """Where the output begins: in text, in thinking, or `"undecided"`, which holds everything back until a thinking
    marker, a stop marker or the end shows it. None: as `prompt` says, else as the format does."""
    calls_in_thinking: CallsInThinking | None = None
    """What a call inside open thinking is. `"resolve"`: a call if the turn ends with it, else a draft that stays
    thinking. `"never"`: a draft. `"always"`: a call. None: as the format says, mostly `"resolve"`."""
    mentions: Mentions = "literal"
    """What a marker in quotes or in a fenced code block is: words about it (`"literal"`), or a `"marker"` that acts."""
    whitespace: Whitespace = "tidy"
    """`"tidy"`: whitespace beside a marker belongs to the marker. `"exact"`: every character outside markers is in a
    part."""
    seed: int = 0
    """What the ids of calls depend on where the model writes none."""
    strict: bool | Collection[str] = False
    """Which notices raise a `StrictError`: all of them, none, or those whose codes are named."""
    limit: int = 1_048_576
    """How many characters may be held back. Past it, what is held is decided as it stands, with a notice."""
    repair: bool = False
    """Whether the closing brackets that a cut-off call lacks are written, with a notice."""
    calls: bool = True
    """Whether calls are read. Without it call markers are text."""
    prompt: str | None = None
    """The prompt's text: where the output begins is read off its end. `start` wins over it."""
    tools: Sequence[Mapping[str, Any]] | None = None
    """OpenAI's list of tool definitions. Gives types to arguments that a call's syntax leaves untyped."""
    collect: bool = True
    """Whether text is kept. Without it memory stays constant, and `message` is not available."""

    def __post_init__(self) -> None:
        # Written out, not looped over: a parser is made for every reply, also for those of a few words.
        if self.start not in _STARTS:
            _refuse("start", self.start, _STARTS)
        if self.calls_in_thinking not in _CALLS_IN_THINKING:
            _refuse("calls_in_thinking", self.calls_in_thinking, _CALLS_IN_THINKING)
        if self.mentions not in _MENTIONS:
            _refuse("mentions", self.mentions, _MENTIONS)
        if self.whitespace not in _WHITESPACE:
            _refuse("whitespace", self.whitespace, _WHITESPACE)
        if self.limit < 1:
            raise UsageError(f"limit must be at least 1, not {self.limit}")
        if self.strict and self.strict is not True:
            unknown = sorted(set(self.strict) - NOTICES.keys())
            if unknown:
                raise UsageError(f"strict names unknown notices: {', '.join(unknown)}")

    def but(self, **options: Unpack[PolicyOptions]) -> Policies:
        """The same policies with some of them changed."""
        return msgspec.structs.replace(self, **options)


DEFAULTS = Policies()
"""What holds where a caller chooses nothing."""


def _refuse(policy: str, value: object, choices: tuple[object, ...]) -> NoReturn:
    names = ", ".join(repr(choice) for choice in choices if choice is not None)
    raise UsageError(f"{policy} must be one of {names}, not {value!r}")
