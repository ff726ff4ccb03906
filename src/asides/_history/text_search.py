"""Full-text search: what is indexed of a text, how a query is read, and which snippet to show. Knows no store."""

from __future__ import annotations

import re
import unicodedata

import msgspec

# Scripts without spaces between words: each character is indexed as a word, and several are searched as a phrase.
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
WORD = re.compile(r"[^\W_]+")
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
"""What databases refuse in a text: NUL, and halves of surrogate pairs."""
ACCENT = re.compile("[\u0300-\u0331]")
"""Combining accents: both indexes leave them out, so they must not split a word of a query."""
LONGEST_WORD = 200
"""Characters of a word that are indexed. Longer ones are data, not words, and PostgreSQL refuses them past 2 KB."""
SNIPPET = 160
"""Characters of a snippet."""
MOST_TERMS = 32
"""Terms of a query that are used; the rest of a longer one is ignored."""
MOST_PLACES = 200
"""Matches of each term that are considered for the snippet."""


class Term(msgspec.Struct, frozen=True):
    """One term of a query: words that must stand next to each other."""

    words: tuple[str, ...]
    prefix: bool
    """Whether the last word matches words that begin with it, too."""


class Snippet(msgspec.Struct, frozen=True):
    """The part of a text that shows why it matches."""

    text: str
    """One line: whitespace of every kind is a space."""
    marks: tuple[tuple[int, int], ...]
    """The ranges in it that match the query."""
    line: int
    """The line of the whole text in which the first match stands, counted from 1."""


def indexable(text: str) -> str:
    """The text as SQLite's index gets it. Changing this function needs a migration that rebuilds the index."""
    # Most thoughts: nothing to replace, and the text is not copied.
    if text.isascii() and "\0" not in text:
        return text
    return UNSPACED.sub(r" \g<0> ", UNSTORABLE.sub(" ", text))


def plain_words(text: str) -> list[str]:
    """The words of a text without case and accents, for PostgreSQL, whose index does not remove these itself."""
    if not text.isascii():
        text = UNSPACED.sub(r" \g<0> ", _bare(UNSTORABLE.sub(" ", text).casefold()))
    return [word[:LONGEST_WORD] for word in WORD.findall(text.casefold())]


def read_query(query: str) -> list[Term]:
    """The terms of a query: each word is one, and so is what stands in double quotes. Nothing in it is an error."""
    terms: list[Term] = []
    # Every second piece stood between quotes; a quote that is not closed quotes the rest.
    for place, piece in enumerate(ACCENT.sub("", UNSTORABLE.sub(" ", query)).split('"')):
        quoted = place % 2 == 1
        for phrase in [piece] if quoted else piece.split():
            words = tuple(word[:LONGEST_WORD] for word in WORD.findall(UNSPACED.sub(r" \g<0> ", phrase)))
            if words:
                # A single letter would match half of all words as a prefix.
                prefix = not quoted and len(words[-1]) > 1 and not UNSPACED.match(words[-1])
                terms.append(Term(words, prefix))
    return terms[:MOST_TERMS]


def contains_terms(text: str, terms: list[Term]) -> bool:
    """Whether all terms are in a text, as the indexes have it."""
    if text.isascii():
        # Most texts do not have the first word at all, and this is the quickest way to see it.
        folded = text.casefold()
        if not all(_bare(word).casefold() in folded for term in terms for word in term.words):
            return False
    bare = _unaccented(text)
    return all(_pattern(term).search(bare) for term in terms)


def find_snippet(text: str, terms: list[Term]) -> Snippet:
    """The part of the text that holds most of the terms."""
    bare = _unaccented(text)
    places: list[tuple[int, int, int]] = []
    for number, term in enumerate(terms):
        for count, found in enumerate(_pattern(term).finditer(bare)):
            if count == MOST_PLACES:
                break
            places.append((found.start(), found.end(), number))
    places.sort()
    best, most = 0, 0
    for start, _, _ in places:
        # Quadratic in the places, whose number `MOST_PLACES` bounds.
        held = len({number for begin, end, number in places if start <= begin and end <= start + SNIPPET})
        if held > most:
            best, most = start, held
    start = max(0, best - SNIPPET // 4)
    while start > 0 and not text[start - 1].isspace() and best - start < SNIPPET // 2:
        start -= 1
    end = min(len(text), start + SNIPPET)
    shown = re.sub(r"\s", " ", text[start:end])
    before, after = "…" if start else "", "…" if end < len(text) else ""
    marks: list[tuple[int, int]] = []
    for begin, stop, _ in places:
        begin, stop = max(begin - start, 0) + len(before), min(stop - start, end - start) + len(before)
        if begin < stop and (not marks or begin >= marks[-1][1]):
            marks.append((begin, stop))
    return Snippet(before + shown + after, tuple(marks), text.count("\n", 0, best) + 1)


def _bare(text: str) -> str:
    """The text without accents; some characters become several."""
    return "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each))


def _unaccented(text: str) -> str:
    """The text without accents, as the index ignores them; character by character, so that offsets stay right."""
    return text if text.isascii() else text.translate({ord(character): _letter(character) for character in set(text)})


def _letter(character: str) -> str:
    """A character without its accents, where that is one character."""
    bare = _bare(character)
    return bare if len(bare) == 1 else character


def _pattern(term: Term) -> re.Pattern[str]:
    # The word boundary of a pattern would ask for spaces that these scripts do not have.
    unspaced = UNSPACED.match(term.words[0]) is not None
    separator = r"[\W_]*" if unspaced else r"[\W_]+"
    begin = "" if unspaced else r"(?<![^\W_])"
    end = r"[^\W_]*" if term.prefix else "" if UNSPACED.match(term.words[-1]) else r"(?![^\W_])"
    return re.compile(begin + separator.join(re.escape(_bare(word)) for word in term.words) + end, re.IGNORECASE)
