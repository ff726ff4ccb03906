"""The choices that a caller may make about reading, as one frozen record.

`Policies` holds every policy with its default and checks it when it is made. Flags, configuration files, request
headers and keyword arguments all become this record, and the record is what the parser takes. `PolicyOptions` names
the same fields for callers who write them as keywords; the keywords change the record that they stand beside:

    Parser("qwen3", mentions="marker")                           # keywords: what most callers write
    Parser("qwen3", Policies(mentions="marker"))                 # a record that was made elsewhere
    Parser("qwen3", configured, start="thinking", seed=7)        # a record, and what differs for this reply
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypedDict, Unpack, get_args

import msgspec

from .errors import UsageError
from .events import NOTICES

CallsInThinking = Literal["resolve", "never", "always"]
"""What a call inside open thinking is: decided by what follows it, thinking, or a call."""
Start = Literal["text", "thinking", "undecided"]
"""Where output begins."""
Mentions = Literal["literal", "marker"]
"""What a quoted or fenced marker is: text, or a marker like any other."""
Whitespace = Literal["tidy", "exact"]
"""Whether whitespace beside a marker belongs to the marker, or to a part."""

_STARTS = (None, *get_args(Start))
_CALLS_IN_THINKING = (None, *get_args(CallsInThinking))
_MENTIONS = get_args(Mentions)
_WHITESPACE = get_args(Whitespace)


class SharedPolicyOptions(TypedDict, total=False):
    """The fields of `Policies` that hold for every reply of a column, as keyword arguments."""

    start: Start | None
    """Where the output begins: `"text"`, `"thinking"` or `"undecided"`; None leaves it to the format."""
    calls_in_thinking: CallsInThinking | None
    """What a call inside open thinking is: `"resolve"`, `"never"` or `"always"`; None leaves it to the format."""
    mentions: Mentions
    """What a marker in quotes or in a code block is: `"literal"` text or a `"marker"`."""
    whitespace: Whitespace
    """Where whitespace beside a marker goes: `"tidy"`, to the marker, or `"exact"`, into the part."""
    seed: int | None
    """What the ids of calls depend on where the model writes none; None: nothing, they are random."""
    strict: bool | Collection[str]
    """Which notices raise a `StrictError`: all (True), none (False), or those with these codes."""
    limit: int
    """How many characters may be held back; at least 1."""
    repair: bool
    """Whether the closing brackets that a cut-off call lacks are written."""
    calls: bool
    """Whether calls are read; with False they stay in the text."""


class PolicyOptions(SharedPolicyOptions, total=False):
    """The fields of `Policies` as keyword arguments."""

    retype: bool | None
    """Whether the first part may turn out to be of the other kind; None: where nothing says where the output begins."""
    prompt: str | None
    """The prompt's text, whose end shows where the output begins; None where it is not known."""
    tools: Sequence[Mapping[str, Any]] | None
    """OpenAI's list of tool definitions, which gives types to untyped arguments; None for none."""
    collect: bool
    """Whether text is stored for `message`; with False memory stays constant."""


class Policies(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """How to read a model's output. A value that is no choice of its policy raises `UsageError`.

    Examples:
        >>> policies = asides.Policies(start="thinking", whitespace="exact")
        >>> asides.parse("hm </think>Four.", policies=policies).thinking
        'hm '
    """

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
    seed: int | None = None
    """What the ids of calls depend on where the model writes none, beside their place in the message. None: they are
    random, because two replies of a conversation must not share an id."""
    strict: bool | Collection[str] = False
    """Which notices raise a `StrictError`: all of them, none, or those whose codes are named."""
    limit: int = 1_048_576
    """How many characters may be held back. Past it, what is held is decided as it stands, with a notice."""
    repair: bool = False
    """Whether the closing brackets that a cut-off call lacks are written, with a notice."""
    calls: bool = True
    """Whether calls are read. Without it call markers are text."""
    retype: bool | None = None
    """Whether a stream may correct where it began (`Retyped`): a lone close shows that the first text was a thought.
    None: where neither `start` nor `prompt` is given and the format starts in text. True: also where a start is given,
    which is then a guess; and a first thought that nothing closes was the answer. False: never."""
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
        if self.retype is not None and self.retype.__class__ is not bool:
            _refuse("retype", self.retype, (True, False))
        if self.seed is not None and not isinstance(self.seed, int):
            raise UsageError(f"seed must be a whole number or None, not {self.seed!r}")
        if self.limit < 1:
            raise UsageError(f"limit must be at least 1, not {self.limit}")
        if self.strict and self.strict is not True:
            unknown = sorted(set(self.strict) - NOTICES.keys())
            if unknown:
                raise UsageError(f"strict names unknown notices: {', '.join(unknown)}")

    def but(self, **options: Unpack[PolicyOptions]) -> Policies:
        """The same policies with some of them changed."""
        try:
            return msgspec.structs.replace(self, **options)
        except TypeError as error:
            raise _unknown(options) or error from None


DEFAULTS = Policies()
"""What holds where a caller chooses nothing."""


def _unknown(options: Iterable[str]) -> TypeError | None:
    """The error for the first of these that is no policy, with the name that may have been meant."""
    from difflib import get_close_matches  # here, because it is needed only to explain a mistake

    names = Policies.__struct_fields__
    for option in options:
        if option not in names:
            near = get_close_matches(option, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            return TypeError(f"there is no policy {option!r}; {hint}")
    return None


def _refuse(policy: str, value: object, choices: tuple[object, ...]) -> NoReturn:
    names = ", ".join(repr(choice) for choice in choices if choice is not None)
    raise UsageError(f"{policy} must be one of {names}, not {value!r}")
