"""The figures of one reply: what can be counted in its thinking, its answer and its calls, and the quality score.

A reply is counted from its `Message` (`analyze`), whose raw text also shows thoughts with nothing in them, which are no
parts; or from thoughts that are already apart (`analyze_thoughts`), as the history keeps them. The score is a heuristic
of how thinking looks, never of whether it is right; docs/reference/figures.md says what each of its parts measures, and
the two must change together.

    figures = analyze(asides.parse(text))
    figures.steps, figures.turns, figures.quality.score

Reads no file and knows formats as data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from .._api import parse
from .._engine.format import HEADER, TEXT, THINKING, Format
from ..families import get_format
from ..message import Message
from ..parts import Text, Thinking, ToolCall
from ._repetition import Loop, repetition
from ._turns import TurnKind, count_turns
from ._words import count_questions, count_steps, count_words, words

if TYPE_CHECKING:
    from ..reply._reply import Reply

CountTokens = Callable[[str], int]
ENOUGH_WORDS = 20
"""Words of a thought from which on it has full substance."""
STEP_WORDS = 120
"""Words of a step up to which thinking is fully structured."""
CHECK_WORDS = 200
"""One question or backtrack in so many words is full checking."""
STEADY_TURNS = 3.0
"""Turns in a hundred words up to which thinking is fully steady."""
RESTLESS_TURNS = 10.0
"""Turns in a hundred words from which on it is not steady at all."""

PARTS = ("substance", "structure", "checking", "steadiness", "freshness", "closed")
"""Each from 0 to 1."""


class Quality(msgspec.Struct, frozen=True):
    """A score and what it is made of. It unpacks: `score, parts = quality(thoughts)`."""

    score: float
    """The score of the thinking, from 0 (poor) to 1."""
    parts: dict[str, float]
    """What the score is made of: `substance`, `structure`, `checking`, `steadiness`, `freshness` and `closed`, each
    from 0 to 1."""

    def __iter__(self) -> Iterator[Any]:
        return iter((self.score, self.parts))


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted in one reply."""

    blocks: int
    """How many thoughts have text in them."""
    steps: int
    """Paragraphs and numbered lines of the thoughts."""
    thinking_characters: int
    """Characters (code points) of all thoughts together."""
    thinking_words: int
    """Words of all thoughts together."""
    thinking_tokens: int | None = None
    """Tokens of all thoughts together; None where no tokenizer was given."""
    text_characters: int
    """Characters (code points) of the answer."""
    text_words: int
    """Words of the answer."""
    text_tokens: int | None = None
    """Tokens of the answer; None where no tokenizer was given."""
    call_characters: int = 0
    """Characters written as calls, with their own markers; of their arguments alone where the raw text is not known."""
    share: float | None
    """Characters of thinking divided by those of thinking, answer and calls, from 0 to 1; None where all are empty."""
    questions: int
    """Question marks in the thoughts that end a sentence."""
    turns: int
    """Backtracking of every kind: places where the thinking stops, corrects itself, checks, or tries another way."""
    turn_kinds: dict[TurnKind, int]
    """Backtracking by kind: `stop`, `correction`, `check` and `alternative`, 0 included."""
    repetition: float
    """How much of the thinking repeats itself, from 0 to 1: of its runs of 8 words, the share that occurred before."""
    loop: Loop | None
    """The longest passage that was repeated directly behind itself; None where there is none."""
    unclosed: int
    """Thoughts that a stop or the end of the output cut off."""
    empty: int
    """How many thoughts have nothing in them."""
    drafts: int
    """Calls that were drafted in thinking and not meant to run."""
    calls: int
    """How many calls there are, those that may not be run included."""
    broken_calls: int
    """How many calls may not be run."""
    seconds: float | None = None
    """Seconds spent thinking; None where the times are not known."""
    quality: Quality
    """The quality score of the thinking and its parts."""
    beyond: int = 0
    """Characters after the turn's end that are another turn's and not read; 0 where the raw text is not known."""


def analyze(
    message: Message,
    *,
    format: str | Format = "auto",
    tokens: CountTokens | None = None,
    seconds: float | None = None,
) -> Figures:
    """The figures of a message. `format` is the one it was parsed with; it tells what an empty thought looks like.

    Examples:
        >>> from asides.analysis import analyze
        >>> figures = analyze(asides.parse("<think>2+2 is 4.</think>It is 4."))
        >>> figures.thinking_words, figures.text_words
        (4, 3)
    """
    thoughts = [part for part in message.parts if isinstance(part, Thinking)]
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    codes = [notice.code for notice in message.notices]
    return _figures(
        thoughts=[thought.text for thought in thoughts],
        text="".join(part.text for part in message.parts if isinstance(part, Text)),
        calls=calls,
        # A thought that was cut off before its first word is no part, but there is a notice.
        unclosed=max(sum(not thought.complete for thought in thoughts), codes.count("unclosed_thinking")),
        empty=_count_empty(message, format),
        drafts=codes.count("draft_call"),
        beyond=0 if message.beyond is None else message.beyond[1] - message.beyond[0],
        tokens=tokens,
        seconds=seconds,
    )


def analyze_thoughts(
    thoughts: Sequence[str | Thinking],
    text: str = "",
    calls: Sequence[ToolCall] = (),
    *,
    drafts: int | None = None,
    tokens: CountTokens | None = None,
    seconds: float | None = None,
) -> Figures:
    """The figures of thoughts that are already apart from the answer and the calls.

    A string counts as a thought that was closed. Calls drafted in the thoughts are looked for, unless `drafts` says how
    many there are.

    Examples:
        >>> from asides.analysis import analyze_thoughts
        >>> figures = analyze_thoughts(["2+2 is 4.", "Wait, is it? Yes."])
        >>> figures.blocks, figures.questions
        (2, 1)
    """
    found = [Thinking(thought) if isinstance(thought, str) else thought for thought in thoughts]
    if drafts is None:
        drafts = sum(len(parse(thought.text, start="text").tool_calls) for thought in found)
    return _figures(
        thoughts=[thought.text for thought in found],
        text=text,
        calls=calls,
        unclosed=sum(not thought.complete for thought in found),
        empty=0,
        drafts=drafts,
        tokens=tokens,
        seconds=seconds,
    )


def analyze_reply(reply: Reply, tokens: CountTokens | None = None) -> Figures:
    """The figures of a reply that a server sent, or that history kept."""
    known = [seconds for seconds in reply.times.thoughts if seconds is not None]
    figures = analyze_thoughts(
        reply.thoughts,
        reply.text,
        reply.tool_calls,
        drafts=sum(notice.code == "draft_call" for notice in reply.notices),
        tokens=tokens,
        seconds=sum(known) if known else None,
    )
    return msgspec.structs.replace(figures, beyond=reply.beyond)


def quality(thoughts: Sequence[str | Thinking]) -> Quality:
    """The quality score of some thoughts and its parts: a heuristic of form, not of truth.

    Examples:
        >>> from asides.analysis import quality
        >>> found = quality(["Wait, is it four? Let me check: 2 + 2 = 4."])
        >>> 0 < found.score <= 1, sorted(found.parts)
        (True, ['checking', 'closed', 'freshness', 'steadiness', 'structure', 'substance'])
    """
    return analyze_thoughts(thoughts).quality


def _figures(
    *,
    thoughts: list[str],
    text: str,
    calls: Sequence[ToolCall],
    unclosed: int,
    empty: int,
    drafts: int,
    tokens: CountTokens | None,
    seconds: float | None,
    beyond: int = 0,
) -> Figures:
    filled = [thought for thought in thoughts if thought and not thought.isspace()]
    empty += len(thoughts) - len(filled)
    # A blank line between them, so that no word, step or n-gram reaches across by accident.
    thinking = "\n\n".join(filled)
    found = words(thinking)
    repeats = repetition(thinking, found)
    kinds = count_turns(thinking)
    steps, questions, turns = count_steps(thinking), count_questions(thinking), sum(kinds.values())
    thinking_characters, call_characters = sum(map(len, filled)), sum(len(call.raw or call.arguments) for call in calls)
    written = thinking_characters + len(text) + call_characters
    return Figures(
        blocks=len(filled),
        steps=steps,
        thinking_characters=thinking_characters,
        thinking_words=len(found),
        thinking_tokens=None if tokens is None else sum(map(tokens, filled)),
        text_characters=len(text),
        text_words=count_words(text),
        text_tokens=None if tokens is None else tokens(text),
        call_characters=call_characters,
        share=thinking_characters / written if written else None,
        questions=questions,
        turns=turns,
        turn_kinds=kinds,
        repetition=repeats.share,
        loop=repeats.loop,
        unclosed=unclosed,
        empty=empty,
        drafts=drafts,
        calls=len(calls),
        broken_calls=sum(call.error is not None for call in calls),
        seconds=seconds,
        beyond=beyond,
        quality=grade(
            thoughts=len(filled) + empty,
            words=len(found),
            steps=steps,
            questions=questions,
            turns=turns,
            repetition=repeats.share,
            unclosed=unclosed,
        ),
    )


def grade(
    *, thoughts: int, words: int, steps: int, questions: int, turns: int, repetition: float, unclosed: int
) -> Quality:
    """The quality of thinking with these figures. `thoughts` counts the empty ones too."""
    if not words:
        return Quality(0.0, dict.fromkeys(PARTS, 0.0))
    restless = 100 * turns / max(words, 100)
    substance = min(1.0, words / (ENOUGH_WORDS * max(thoughts, 1)))
    structure = min(1.0, STEP_WORDS * max(steps, 1) / words)
    checking = min(1.0, CHECK_WORDS * (questions + turns) / max(words, CHECK_WORDS))
    steadiness = min(1.0, max(0.0, (RESTLESS_TURNS - restless) / (RESTLESS_TURNS - STEADY_TURNS)))
    freshness = 1.0 - repetition
    closed = 1.0 - min(1.0, unclosed / max(thoughts, 1)) if unclosed else 1.0
    manner = (substance + structure + checking + steadiness) / 4
    # These multiply: a thought that loops or was cut off is spoiled as a whole, however it began.
    score = manner * freshness * (0.5 + 0.5 * closed)
    parts = (substance, structure, checking, steadiness, freshness, closed)
    # Most are whole, and a comparison is less than a call of `round`.
    rounded = [part if part == 1.0 else round(part, 4) for part in parts]
    return Quality(round(score, 4), dict(zip(PARTS, rounded, strict=True)))


def _count_empty(message: Message, format: str | Format = "auto") -> int:
    """How many thoughts were opened and closed with nothing but whitespace between."""
    pattern = _pattern(get_format(format))
    return sum(1 for gap in _gaps(message) for _ in pattern.finditer(gap))


def _gaps(message: Message) -> Iterator[str]:
    """What stands in no part; the first as if on a line of its own, so that the very beginning can be told."""
    at = 0
    for part in message.parts:
        start, end = part.span
        if start > at:
            yield message.raw[at:start] if at else "\0" + message.raw[:start]
        at = max(at, end)
    if at < len(message.raw):
        yield message.raw[at:] if at else "\0" + message.raw


@lru_cache(maxsize=64)
def _pattern(format: Format) -> re.Pattern[str]:
    text, thinking = format.states.get(TEXT, {}), format.states.get(THINKING, {})
    opens = [_marker(marker, format) for marker, state in text.items() if state == THINKING]
    closes = [_marker(marker, format) for marker, state in thinking.items() if state == TEXT]
    shapes = []
    if opens and closes:
        # A close before any text ends a thought that the prompt had opened.
        shapes.append(rf"(?:\0|{'|'.join(opens)})\s*(?:{'|'.join(closes)})")
    header = format.header
    if header is not None and header.channel_marker and header.body:
        channels = "|".join(re.escape(name) for name, state in header.channels.items() if state == THINKING)
        ends = "|".join(re.escape(marker) for marker, state in thinking.items() if state not in (TEXT, HEADER))
        if channels and ends:
            opener = rf"{re.escape(header.channel_marker)}(?:{channels})\b[^<]{{0,64}}{re.escape(header.body)}"
            shapes.append(rf"{opener}\s*(?:{ends})")
    return re.compile("|".join(shapes) or r"(?!)", re.IGNORECASE if format.ignore_case else 0)


def _marker(marker: str, format: Format) -> str:
    if marker in format.tag_rules:
        return rf"(?ai:{re.escape(marker[:-1])})(?:\s[^<>]{{0,200}})?>"
    if format.attributes and marker.startswith("<") and marker.endswith(">"):
        return rf"{re.escape(marker[:-1])}(?:\s[^<>]{{0,256}})?>"
    return re.escape(marker)
