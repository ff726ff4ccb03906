"""The outline of a thought: its steps, each with a span, a kind and a title. Rules about words, no guess beyond them.

A thought is read sentence by sentence; a line's end ends a sentence too. A step begins

- after an empty line, and at a numbered line or a heading;
- at a sentence that begins with a turn ("wait", "actually", "let me check", "alternatively") or with a conclusion.

Its kind is what the first words of its first sentence say; "Wait." alone says less than the sentence after it. Code in
fences has no sentences, and what has no letter or digit (a rule, a bracket of a formula) begins no step. Where no words
say what a step does its kind is `unknown`.

    >>> [(step.kind, step.title) for step in outline("We are given 17.\\n\\nWait, is it prime? So the answer is yes.")]
    [('restate', 'We are given 17.'), ('turn', 'Wait, is it prime?'), ('conclude', 'So the answer is yes.')]

While a thought streams, an `Outliner` takes the pieces as they come. Every sentence is looked at once, so the work
grows with the thought, and how it was cut changes nothing.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

import msgspec

from ._outline_phrases import PATTERNS, CueKind
from ._turns import TurnKind

StepKind = Literal["restate", "plan", "try", "check", "turn", "correct", "conclude", "unknown"]
"""What a step does, as far as its words show."""
STEP_KINDS: dict[StepKind, str] = {
    "restate": "says again what was asked or given",
    "plan": "says what will be done",
    "try": "carries something out, or supposes it",
    "check": "goes over it again: let me check, let me verify",
    "turn": "stops short or takes another way: wait, alternatively",
    "correct": "takes something back: actually, no, I was wrong",
    "conclude": "says what follows: so the answer is, therefore",
    "unknown": "its words do not say",
}
"""Every kind of step and what it means."""

_OF_PHRASE: dict[TurnKind | CueKind, StepKind] = {
    "stop": "turn",
    "correction": "correct",
    "check": "check",
    "alternative": "turn",
    "restate": "restate",
    "plan": "plan",
    "try": "try",
    "conclude": "conclude",
}
_BEGINS_A_STEP = frozenset(("turn", "correct", "check", "conclude"))
"""Kinds that begin a step in the middle of a paragraph."""

FIRST_WORDS = 160
"""Characters of a sentence in which its kind is looked for: what comes later is about something else."""
FEW_BYTES = 10
"""A turn of no more bytes ("Hmm.", "Wait, no.") is of the kind that the next sentence says."""
LONGEST = 1000
"""Characters of a sentence, at most: what has no end is cut here."""
TITLE = 72
"""Characters of a title, at most."""

_END = re.compile(
    r"\n|(?<!\b[A-Z])(?<!\bNo)(?<!\bvs)(?<!\be\.g)(?<!\bi\.e)(?<!\bDr)(?<!\bMr)(?<!\bFig)[.!?…]+[\"'”’»)\]*_`]*(?=\s)|[。！？]+[」』”’）]*"
)
"""Where a sentence ends: not after an initial or a common abbreviation, nor inside a number."""
_ENDING = ".!?…。！？\"'”’»)]*_`」』）"
"""What the end of a sentence is made of."""
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_NUMBERED = re.compile(
    r"[ \t]*(?:\#{1,6}[ ]|(?:\#{1,6}[ ])?(?:\*\*)?"
    r"(?:(?:step|schritt|étape|etape|paso|шаг|步骤|步驟|ステップ|단계)[ ]?)?\d{1,3}(?:[.)](?=\s)|:|）|、|．)"
    r"|(?:\*\*)?第[ ]?[0-9０-９一二三四五六七八九十]{1,3}[ ]?步)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[\s#*_>-]*\d{1,3}[.)]")
"""The number of an item, whose full stop ends no sentence."""
_SPEAKS = re.compile(r"[^\W_]")
_MARK = re.compile(r"^(?:[\s#>*_`\-–—•\[\]|]|\d{1,3}[.)、．](?=\s)|\\[\[(])+")


class Step(msgspec.Struct, frozen=True):
    """A step of a thought. Steps follow one another without a gap; the first begins at 0."""

    span: tuple[int, int]
    """Where it stands in the thought, half open."""
    kind: StepKind
    """What it does, as far as its words show."""
    title: str
    """Its first words, shortened."""


def outline(thought: str) -> tuple[Step, ...]:
    """The steps of a thought, in order; none where it has no words.

    Examples:
        >>> from asides.analysis import outline
        >>> steps = outline("We are given 17.\\n\\nWait, is it prime? So the answer is yes.")
        >>> [(step.kind, step.title) for step in steps]
        [('restate', 'We are given 17.'), ('turn', 'Wait, is it prime?'), ('conclude', 'So the answer is yes.')]
    """
    outliner = Outliner()
    outliner.feed(thought)
    return outliner.finish()


class Outliner:
    """Makes the outline of a thought while it is written: `feed` what comes, and look at `steps`."""

    def __init__(self) -> None:
        self._text = ""
        """What is not read yet: at most a sentence that has not ended."""
        self._at = 0
        """Where `_text` begins in the thought."""
        self._seen = 0
        """How much of `_text` was searched for an end."""
        self._done: list[Step] = []
        self._open: _OpenStep | None = None
        self._fenced = False
        self._fresh = True
        """An empty line, or the beginning, stands before what comes."""
        self._line_begins = True

    def feed(self, text: str) -> None:
        """Read more of the thought."""
        self._text += text
        read = 0
        while length := self._next_end(self._text[read : read + LONGEST]):
            self._sentence(self._text[read : read + length])
            read += length
            self._seen = 0
        self._text = self._text[read:]

    def _next_end(self, text: str) -> int:
        """Where the sentence ends that a text begins with; 0 where that is not known yet."""
        for end in _END.finditer(text, self._seen):
            # What ends a sentence may be longer than what has come of it.
            if (end.end() < len(text) or end[0] == "\n") and not _NUMBER.fullmatch(text, 0, end.end()):
                return end.end()
        if len(text) == LONGEST:
            return LONGEST
        # An end that has not ended yet is searched for once more, from its first character.
        self._seen = len(text.rstrip(_ENDING))
        return 0

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps so far; the last may still grow, and get another kind."""
        if self._open is None:
            return tuple(self._done)
        return (*self._done, self._open.step(self._at + len(self._text)))

    def finish(self) -> tuple[Step, ...]:
        """The steps of the whole thought."""
        if self._text:
            rest, self._text, self._seen = self._text, "", 0
            self._sentence(rest)
        return self.steps

    def _sentence(self, sentence: str) -> None:
        start = self._at
        self._at += len(sentence)
        fence = self._line_begins and _FENCE.match(sentence) is not None
        self._line_begins = sentence.endswith("\n")
        speaks = _SPEAKS.search(sentence) is not None
        if self._fenced or fence:
            self._fenced ^= fence
            if self._open is None:
                self._open = _OpenStep(0, "unknown", sentence)
            self._fresh = False
            return
        if not speaks:
            self._fresh = self._fresh or not sentence.strip()
            return
        kind = kind_of(sentence)
        step, fresh = self._open, self._fresh
        self._fresh = False
        if step is not None and step.waits_for_more and not fresh:
            step.kind = kind if kind != "unknown" else step.kind
            step.title = f"{step.title.strip()} {sentence.strip()}"
            step.waits_for_more = False
        elif step is None or fresh or kind in _BEGINS_A_STEP or _NUMBERED.match(sentence):
            if step is not None:
                self._done.append(step.step(start))
            self._open = _OpenStep(start if self._done else 0, kind, sentence)


class _OpenStep:
    """The last step, while it grows."""

    def __init__(self, start: int, kind: StepKind, title: str) -> None:
        self.start, self.kind, self.title = start, kind, title
        self.waits_for_more = kind in ("turn", "correct") and len(title.strip().encode(errors="replace")) <= FEW_BYTES

    def step(self, end: int) -> Step:
        """This step, if it ends here."""
        return Step((self.start, end), self.kind, shorten(self.title))


def kind_of(sentence: str) -> StepKind:
    """What the first words of a sentence say that it does."""
    if "\\boxed" in sentence:
        return "conclude"
    words = _MARK.sub("", sentence[: FIRST_WORDS * 2])[:FIRST_WORDS].lower().replace("’", "'")
    return next((_OF_PHRASE[kind] for kind, pattern in _compiled() if pattern.match(words)), "unknown")


@cache
def _compiled() -> list[tuple[TurnKind | CueKind, re.Pattern[str]]]:
    return [(kind, re.compile(pattern)) for kind, pattern in PATTERNS]


def shorten(sentence: str) -> str:
    """A sentence as a title: without the marks before it, on one line, at most `TITLE` characters."""
    title = " ".join(_MARK.sub("", sentence[: TITLE * 3]).split()).rstrip("*_ ")
    if len(title) <= TITLE:
        return title
    cut = title[: TITLE - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[TITLE // 2 :] else cut).rstrip(" ,;:") + "…"
