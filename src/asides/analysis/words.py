"""Counting in prose of any script: words, steps, questions. Knows no parts and no model; every cost is linear."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Scripts that put no spaces between words, as ranges of a character class. Each letter of them counts as a word."""

JOINERS = "\u200c\u200d"
"""Characters without a width that hold letters together or apart inside a word."""

_PLAIN_WORD = re.compile(r"\w+(?:['’]+\w*)*")
_ASCII_SPACES = bytes(code if chr(code).isalnum() or chr(code) in "_'" else 32 for code in range(128)) + bytes(128)
_STEP = re.compile(
    r"\n\s*\n"
    r"|\n(?=[ \t]*(?:\#{1,6}[ ])?(?:\*\*)?"
    r"(?:(?:step|schritt|étape|etape|paso|шаг|步骤|步驟|ステップ|단계)[ ]?)?\d{1,3}(?:[.)](?=\s)|:|）|、|．)"
    r"|[ \t]*(?:\*\*)?第[ ]?[0-9０-９一二三四五六七八九十]{1,3}[ ]?步)",
    re.IGNORECASE,
)
_SPEAKS = re.compile(r"[^\W_]")
_MARKS = "?؟՞⁇⁈⁉？"
# The character comes before the look behind it, because a class is what a search finds fast.
_QUESTION = re.compile(rf"""[{_MARKS}](?<![{_MARKS}][{_MARKS}])[{_MARKS}]*+(?=[\s"'”’»)\]*_`]|\Z|(?<=？))""")
_UNSPACED = re.compile(rf"[{UNSPACED}]")


@cache
def _is_hard(character: str) -> bool:
    """Whether words with this character need the careful pattern: it joins letters, or its script has no spaces."""
    return (
        unicodedata.category(character) in ("Mn", "Mc")
        or character in JOINERS
        or _UNSPACED.match(character) is not None
    )


@cache
def _careful_word() -> re.Pattern[str]:
    # `\w` knows no combining marks and would cut many words in two. Those of rare scripts beyond the first plane are
    # left out: with them the class is looked through one by one, with the others it is a table.
    codes = (code for code in range(0x300, 0x10000) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    inner = f"['’{JOINERS}{re.escape(''.join(map(chr, codes)))}]"
    letter = rf"[^\W{UNSPACED}]"
    return re.compile(rf"(?=\w)[{UNSPACED}]|{letter}+(?:{inner}+{letter}*)*")


def words(text: str) -> list[str]:
    """The words, in order. Of scripts without spaces every letter is one; punctuation is none."""
    # Three ways to the same words; the plainer the text, the faster.
    if text.isascii():
        spaced = text.encode().translate(_ASCII_SPACES).decode()
        found = spaced.split()
        # Apostrophes alone are no word. One that begins a word is rare, and only there one could stand alone.
        if spaced.startswith("'") or " '" in spaced:
            return [word for word in found if word[0] != "'" or word.strip("'")]
        return found
    # A text has few different characters, so asking each is cheap.
    return (_careful_word() if any(map(_is_hard, set(text))) else _PLAIN_WORD).findall(text)


def count_steps(text: str) -> int:
    """Paragraphs and numbered lines that say anything."""
    return sum(1 for piece in _STEP.split(text) if _SPEAKS.search(piece))


def count_questions(text: str) -> int:
    """Question marks that end something: several in a row are one, one inside a link or an expression is none."""
    if text.isascii() and "?" not in text:
        return 0
    return sum(1 for _ in _QUESTION.finditer(text))
