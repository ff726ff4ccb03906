"""Counting in prose of any script: words, steps, questions. Knows no parts and no model; every cost is linear."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache

UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\u1780-\u17ff"  # Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # kana
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
"""Scripts that put no spaces between words, as ranges of a character class. Each letter of them counts as a word."""

_UNSPACED = re.compile(rf"[{UNSPACED}]")
_ASCII_WORD = re.compile(r"\w+(?:'\w+)*")
_STEP = re.compile(
    r"\n\s*\n"
    r"|\n(?=[ \t]*(?:\#{1,6}[ ])?(?:\*\*)?"
    r"(?:(?:step|schritt|étape|etape|paso|шаг|步骤|步驟|ステップ|단계)[ ]?)?\d{1,3}(?:[.)](?=\s)|:|）|、|．)"
    r"|[ \t]*(?:\*\*)?第[ ]?[0-9０-９一二三四五六七八九十]{1,3}[ ]?步)",
    re.IGNORECASE,
)
_SPEAKS = re.compile(r"[^\W_]")
_QUESTION = re.compile(r"""[?؟;՞⁇⁈⁉]+(?=[\s"'”’»)\]*_`]|\Z)|[？⁇⁈⁉]+""")


@cache
def _any_word() -> re.Pattern[str]:
    # `\w` knows no combining marks, which would cut words of many scripts in two.
    marks = "".join(
        chr(code) for code in range(min(sys.maxunicode, 0x1FFFF)) if unicodedata.category(chr(code)) in ("Mn", "Mc")
    )
    letter, mark = rf"[^\W{UNSPACED}]", rf"[{re.escape(marks)}\u200c\u200d]"
    spaced = rf"{letter}+(?:{mark}+{letter}*)*"
    return re.compile(rf"(?=\w)[{UNSPACED}]|{spaced}(?:['’]{spaced})*")


def words(text: str) -> list[str]:
    """The words, in order. Of scripts without spaces every letter is one; punctuation is none."""
    return (_ASCII_WORD if text.isascii() else _any_word()).findall(text)


def has_unspaced(text: str) -> bool:
    """Whether a script without spaces occurs."""
    return not text.isascii() and _UNSPACED.search(text) is not None


def count_steps(text: str) -> int:
    """Paragraphs and numbered lines that say anything."""
    return sum(1 for piece in _STEP.split(text) if _SPEAKS.search(piece))


def count_questions(text: str) -> int:
    """Question marks that end something: several in a row are one, one inside a link or an expression is none."""
    return sum(1 for _ in _QUESTION.finditer(text))
