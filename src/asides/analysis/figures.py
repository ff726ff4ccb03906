"""The figures of one reply: what can be counted in its thinking, its answer and its calls. Reads no file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from .._api import parse
from .._engine.format import Format
from ..message import Message
from ..parts import Text, Thinking, ToolCall
from .empty import count_empty
from .grading import Quality, grade
from .repetition import Loop, repetition
from .turns import TurnKind, count_turns
from .words import count_questions, count_steps, words

CountTokens = Callable[[str], int]


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted in one reply."""

    blocks: int
    """Thoughts with anything in them."""
    steps: int
    """Paragraphs and numbered lines of the thoughts."""
    thinking_characters: int
    thinking_words: int
    thinking_tokens: int | None = None
    """None where no tokenizer was given; so too for the answer."""
    text_characters: int
    text_words: int
    text_tokens: int | None = None
    call_characters: int = 0
    """What was written as calls, with their own markers; their arguments alone where the raw text is not known."""
    share: float | None
    """Characters of thinking in those of thinking, answer and calls; None where there are none at all."""
    questions: int
    """Question marks in the thoughts that end something."""
    turns: int
    """Turns of mind, of every kind."""
    turn_kinds: dict[TurnKind, int]
    repetition: float
    """Of the thoughts' n-grams of 8 words, the share that had occurred before."""
    loop: Loop | None
    """The longest passage that was written again and again, where there is one."""
    unclosed: int
    """Thoughts that a stop or the end of the output cut off."""
    empty: int
    """Thoughts with nothing in them."""
    drafts: int
    """Calls that were drafted in thinking and not meant to run."""
    calls: int
    """Calls, the broken ones too."""
    broken_calls: int
    """Calls that may not be run."""
    seconds: float | None = None
    """Time spent thinking, where it is known."""
    quality: Quality


def analyze(
    message: Message,
    *,
    format: str | Format = "auto",
    tokens: CountTokens | None = None,
    seconds: float | None = None,
) -> Figures:
    """The figures of a message. `format` is the one it was parsed with; it tells what an empty thought looks like."""
    thoughts = [part for part in message.parts if isinstance(part, Thinking)]
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    codes = [notice.code for notice in message.notices]
    return _figures(
        thoughts=[thought.text for thought in thoughts],
        text="".join(part.text for part in message.parts if isinstance(part, Text)),
        calls=calls,
        # A thought that was cut off before its first word is no part, but there is a notice.
        unclosed=max(sum(not thought.complete for thought in thoughts), codes.count("unclosed_thinking")),
        empty=count_empty(message, format),
        drafts=codes.count("draft_call"),
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


def quality(thoughts: Sequence[str | Thinking]) -> Quality:
    """The quality score of some thoughts and its parts: a heuristic of form, not of truth."""
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
) -> Figures:
    said = [thought for thought in thoughts if not thought.isspace() and thought]
    empty += len(thoughts) - len(said)
    # A blank line between them, so that no word, step or n-gram reaches across by accident.
    thinking = "\n\n".join(said)
    found = words(thinking)
    repeats = repetition(thinking, found)
    kinds = count_turns(thinking)
    steps, questions, turns = count_steps(thinking), count_questions(thinking), sum(kinds.values())
    thinking_characters, call_characters = sum(map(len, said)), sum(len(call.raw or call.arguments) for call in calls)
    written = thinking_characters + len(text) + call_characters
    return Figures(
        blocks=len(said),
        steps=steps,
        thinking_characters=thinking_characters,
        thinking_words=len(found),
        thinking_tokens=None if tokens is None else sum(map(tokens, said)),
        text_characters=len(text),
        text_words=len(words(text)),
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
        quality=grade(
            thoughts=len(said) + empty,
            words=len(found),
            steps=steps,
            questions=questions,
            turns=turns,
            repetition=repeats.share,
            unclosed=unclosed,
        ),
    )
