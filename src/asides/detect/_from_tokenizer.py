"""What a tokenizer's added tokens say: whose markers they are, and which ids they have.

Compares them with the registered formats' own markers; there is no second list of conventions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .._engine.format import Format
from ..errors import UsageError
from ..families._auto_markers import MARKERS
from ._markers import candidates, closers, counterparts, literals, openers, with_suffix_of
from ._result import Finding

ENOUGH = 0.34
"""How much of a format must be found among the tokens, and of the marker tokens in the format, for it to fit."""
CLOSE = 0.06
"""How near to the best another format must come to fit as well. One marker more or less makes that difference."""
_WORDS = re.compile(r"think|thought|reason", re.IGNORECASE)


def probe(added: Mapping[str, int]) -> Finding:
    """What added tokens say of their model."""
    tokens = {text.strip(): id for text, id in added.items() if len(text.strip()) > 2}
    formats = _candidates(tokens)
    pair = _pair(tokens, formats)
    fitting = _fitting(tokens, pair, formats)
    if pair is None:
        reason = "no added token is a thinking marker (a model may still write one in ordinary tokens)"
        return Finding(source="tokenizer", formats=_names(fitting), thinks=False, reasons=(reason,))
    opener, closer = pair
    ids = [f"{marker!r} is token {tokens[marker]}" for marker in pair if marker in tokens]
    if not any(opener in openers(format) or closer in closers(format) for format in fitting):
        made = _made(opener, closer, tokens)
        reason = f"{' and '.join(ids)}, and they fit no format that is known"
        return Finding(source="tokenizer", formats=made, thinks=True, reasons=(reason,))
    more = _message_tokens(fitting[0], tokens)
    reasons = (" and ".join(ids) or more, f"its marker tokens are those of the format {fitting[0].name}")
    return Finding(source="tokenizer", formats=_names(fitting), thinks=True, reasons=reasons)


def _candidates(tokens: Mapping[str, int]) -> list[Format]:
    """The formats to choose from. A suffix that no card names says nothing of which: those that allow any get it."""
    return [with_suffix_of(format, tokens) for format in candidates()]


def _names(fitting: list[Format]) -> tuple[str | Format, ...]:
    return tuple(format.name for format in fitting)


def _made(opener: str, closer: str, tokens: Mapping[str, int]) -> tuple[Format, ...]:
    """A format for a pair that nobody has, if the two can be ids apart."""
    stops = tuple(stop for stop in MARKERS.stops if stop in tokens)
    source = "made by detection from a tokenizer's added tokens"
    try:
        return (Format.tags(opener, closer, source=source, stops=stops, calls=MARKERS.syntaxes),)
    except UsageError:
        return ()


def _message_tokens(format: Format, tokens: Mapping[str, int]) -> str:
    """For formats whose thoughts are ids by headers: the tokens that headers are made of."""
    parts = [text for text in tokens if any(text in opener for opener in openers(format))]
    return "thinking is opened by " + " and ".join(f"{text!r} (token {tokens[text]})" for text in parts)


def _pair(tokens: Mapping[str, int], formats: list[Format]) -> tuple[str, str] | None:
    """The thinking markers among the tokens: a known pair, or one made of tokens, or one that names thinking itself."""
    for format in formats:
        opener = next((marker for marker in openers(format) if marker.strip() in tokens), None)
        closer = next((marker for marker in closers(format) if marker.strip() in tokens), None)
        if format.header is None and opener and closer:
            return opener, closer
    for format in formats:
        if _made_of(format, tokens):
            return openers(format)[0], closers(format)[0]
    for text in tokens:
        if _WORDS.search(text):
            closer = next((counterpart for counterpart in counterparts(text) if counterpart in tokens), None)
            if closer:
                return text, closer
    return None


def _made_of(format: Format, tokens: Mapping[str, int]) -> bool:
    """Whether a format's opener holds tokens and words, as in `<|channel|>analysis<|message|>`.

    Tokens like `<|message|>` are common; that most markers of a format are made of tokens is not.
    """
    opens = any(token in opener and token != opener for opener in openers(format) for token in tokens)
    markers = literals(format)
    built = [literal for literal in markers if any(token in literal for token in tokens)]
    return opens and bool(closers(format)) and len(built) * 2 > len(markers)


def _fitting(tokens: Mapping[str, int], pair: tuple[str, str] | None, formats: list[Format]) -> list[Format]:
    """The formats whose markers the tokens are, all that fit about equally well."""
    # Joined by what no marker holds, so that one search answers for all of them.
    everyones = "\0".join(literal for format in formats for literal in literals(format))
    known = [token for token in tokens if token in everyones]
    scores: dict[Format, float] = {}
    newest: dict[Format, int] = {}
    for format in formats:
        if pair is not None and pair[0] not in openers(format) and pair[1] not in closers(format):
            continue
        markers = literals(format)
        text = "\0".join(markers)
        explained = [token for token in known if token in text]
        built = [literal for literal in markers if any(token in literal for token in explained)]
        if len(explained) < 2:  # one token, such as `<|endoftext|>`, speaks for nobody
            continue
        # Tokens that a format does not explain weigh more than markers for which there is no token.
        precision, recall = len(built) / len(markers), len(explained) / len(known)
        scores[format] = 5 * precision * recall / (4 * precision + recall)
        newest[format] = max(tokens[token] for token in explained)
    best = max(scores, key=lambda format: scores[format], default=None)
    if best is None or scores[best] < ENOUGH:
        return []
    # Tokenizers keep old tokens, so of a family's generations the one that explains the newest token is meant.
    later = [format for format in scores if _family(format) == _family(best) and newest[format] > newest[best]]
    if later:
        last = max(newest[format] for format in later)
        return [format for format in later if newest[format] == last]
    return [format for format, found in scores.items() if found >= scores[best] - CLOSE]


def _family(format: Format) -> tuple[tuple[str, ...], ...]:
    return openers(format), closers(format), format.assistant
