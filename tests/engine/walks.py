"""Strings that a structural tag allows, found by random walks through the token masks of xgrammar's compiled grammar.

The vocabulary is small and our own: single characters, a few words, every marker of the format and every text that the
tag itself names, so that a walk meets each fork of the grammar often and ends soon. Of the tokens that a mask allows,
one is drawn by weight; behind a number of steps those that close something weigh more, so that the walk comes to an
end. Needs xgrammar, and numpy, which it brings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy

from asides import Format

xgrammar: Any = import_module("xgrammar")  # by name: a type checker does not have it

END = "<walk's end>"
WORDS = (
    " the", "ing", "\n\n", "  ", '": "', '", "', "{}", "[]", "null", "true", "True", "None", "12", "007", "0.5", "é",
    "🤔", "```", "&amp;", "</", "<![CDATA[", "]]>", "\\n", "\\u00e9", "<function=", "<parameter=", '<invoke name="',
)  # fmt: skip
CHARACTERS = [*map(chr, range(32, 127)), "\n", "\t"]
CLOSING = ('"', "'", "}", "]", ")", ">", "\n")
SOON, LONGEST = 40, 600


class Walker:
    """Draws strings that a structural tag allows."""

    def __init__(self, formats: Iterable[Format], tag: dict[str, Any], seed: int = 0) -> None:
        texts = list(dict.fromkeys((*_texts(tag), *(marker for format in formats for marker in _markers(format)))))
        self._vocabulary = [*dict.fromkeys((*CHARACTERS, *"".join(texts), *WORDS, *texts)), END]
        stop = len(self._vocabulary) - 1
        info = xgrammar.TokenizerInfo(self._vocabulary, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[stop])
        self.grammar = xgrammar.GrammarCompiler(info).compile_structural_tag(json.dumps(tag))
        self._matcher = xgrammar.GrammarMatcher(self.grammar)
        self._mask = xgrammar.allocate_token_bitmask(1, len(self._vocabulary))
        self._bits = self._mask.numpy().view(numpy.uint8)[0]
        self._stop = stop
        self._random = numpy.random.default_rng(seed)
        chosen = set(texts)
        # Early, then by turns what the tag names (a marker ends free text) and what closes JSON.
        early, late = self._weigh(chosen, 25.0, 2.0, 1.0), self._weigh(chosen, 30.0, 1.0, 0.05)
        self._weights = early, late, self._weigh(chosen, 0.1, 30.0, 0.05)
        for weights, stopping in zip(self._weights, (40.0, 1e6, 1e6), strict=True):
            weights[stop] = stopping

    def _weigh(self, chosen: set[str], named: float, closing: float, others: float) -> Any:
        """A weight for each token: those that the tag names, those that close something, the others."""
        weights = [named if token in chosen else closing if token in CLOSING else others for token in self._vocabulary]
        return numpy.array(weights)

    def accepts(self, text: str) -> bool:
        """Whether the whole of a text is allowed."""
        self._matcher.reset()
        return bool(self._matcher.accept_string(text)) and self._matcher.is_completed()

    def walk(self) -> str | None:
        """One string; None if it came to no end."""
        matcher = self._matcher
        written: list[str] = []
        matcher.reset()
        for step in range(LONGEST):
            matcher.fill_next_token_bitmask(self._mask)
            allowed = numpy.unpackbits(self._bits, bitorder="little")[: len(self._vocabulary)]
            sums = numpy.cumsum(self._weights[0 if step < SOON else 1 + step % 2] * allowed)
            assert sums[-1], f"nothing may follow {''.join(written)!r}"
            token = int(numpy.searchsorted(sums, self._random.random() * sums[-1], side="right"))
            assert matcher.accept_token(token), (written, self._vocabulary[token])
            if token == self._stop:
                return "".join(written)
            written.append(self._vocabulary[token])
        return None


def _texts(piece: Any) -> Iterator[str]:
    """Every text that a tag names."""
    if isinstance(piece, dict):
        for key in ("value", "begin", "end"):
            value = piece.get(key)
            yield from (
                text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str) and text
            )
        for key, value in piece.items():
            if key != "json_schema":
                yield from _texts(value)
    elif isinstance(piece, list):
        for value in piece:
            yield from _texts(value)


def _markers(format: Format) -> Iterator[str]:
    """Every marker of a format."""
    for state in format.states.values():
        yield from state
    for syntax in format.calls:
        yield from (*syntax.openers, *syntax.closers)
    yield from (*format.strays, *format.ignored)
