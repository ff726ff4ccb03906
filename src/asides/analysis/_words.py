"""Counting in prose of any script: words, steps, questions. Knows no parts and no model; every cost is linear.

A pattern for words looks at every character, and a text is mostly plain ones. So characters that separate words become
spaces first, by tables and replacements that run over a whole text at once, and `str.split` finds the words; only
where letters of several scripts, marks or joiners meet inside such a piece is a pattern asked.
"""

from __future__ import annotations

import re
import unicodedata
from enum import Enum, auto
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
_ASCII = bytes(range(128))
_BEYOND = bytes(range(128, 256))
_ASCII_SPACES = bytes(code if chr(code).isalnum() or chr(code) in "_'" else 32 for code in _ASCII) + _BEYOND
"""What separates words, as spaces; characters beyond ASCII, in UTF-8, stay as they are."""
_ASCII_SHAPES = bytes(97 if chr(code).isalnum() or chr(code) == "_" else code for code in _ASCII_SPACES)
"""The same, and each letter an `a`."""
_ASCII_RUN = re.compile(r"([!-~]+)")
MOST_SEPARATORS = 50
"""Kinds of separators beyond ASCII up to which each is replaced by itself."""
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
_PLAIN_QUESTION = re.compile(r"""\?(?<!\?\?)\?*+(?=[\s"'”’»)\]*_`]|\Z)""")
_UNSPACED = re.compile(rf"[{UNSPACED}]")


def beyond_ascii(text: str) -> str:
    """The text without its ASCII characters: what is left of most is short."""
    return text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass")


class _Role(Enum):
    """What a character beyond ASCII does to words."""

    LETTER = auto()
    UNSPACED = auto()
    """A letter that is a word by itself."""
    INNER = auto()
    """It joins letters: a mark, or one of `JOINERS`."""
    QUOTE = auto()
    """An apostrophe, or the end of a quotation."""
    SEPARATOR = auto()


@cache
def _role(character: str) -> _Role:
    if unicodedata.category(character) in ("Mn", "Mc") or character in JOINERS:
        return _Role.INNER
    if character.isalnum():
        return _Role.LETTER if _UNSPACED.match(character) is None else _Role.UNSPACED
    return _Role.QUOTE if character == "’" else _Role.SEPARATOR


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
    # Several ways to the same words; the plainer the text, the faster.
    if text.isascii():
        spaced = text.encode().translate(_ASCII_SPACES).decode()
        found = spaced.split()
        # Apostrophes alone are no word. One that begins a word is rare, and only there one could stand alone.
        if spaced.startswith("'") or " '" in spaced:
            return [word for word in found if word[0] != "'" or word.strip("'")]
        return found
    # A text has few different characters, so asking each is cheap.
    by_role: dict[_Role, list[str]] = {}
    for character in set(beyond_ascii(text)):
        by_role.setdefault(_role(character), []).append(character)
    separators = by_role.pop(_Role.SEPARATOR, [])
    easy = by_role.keys() <= {_Role.LETTER, _Role.QUOTE}
    if len(separators) > MOST_SEPARATORS:
        return (_PLAIN_WORD if easy else _careful_word()).findall(text)
    for separator in separators:
        text = text.replace(separator, " ")
    spaced = text.encode().translate(_ASCII_SPACES).decode()
    if by_role.keys() == {_Role.UNSPACED}:
        return _unspaced_words(spaced)
    if not easy:
        return _careful_words(spaced.split(), frozenset(by_role.get(_Role.UNSPACED, ())))
    if spaced.startswith(("'", "’")) or " '" in spaced or " ’" in spaced:
        return [word for each in spaced.split() if (word := each.lstrip("'’"))]
    return spaced.split()


def _unspaced_words(spaced: str) -> list[str]:
    """The words of a text that has spaces, ASCII, and letters that are words each."""
    found: list[str] = []
    for number, piece in enumerate(_ASCII_RUN.split(spaced)):
        if not number % 2:
            found += piece.replace(" ", "")
        elif word := piece.lstrip("'"):
            found.append(word)
    return found


def _careful_words(pieces: list[str], unspaced: frozenset[str]) -> list[str]:
    """The words of pieces between which there are separators; `unspaced` are the letters that are words each."""
    found: list[str] = []
    for piece in pieces:
        if unspaced.issuperset(piece):
            found += piece
        elif piece.isascii() and piece[0] != "'":
            found.append(piece)
        else:
            found += _careful_word().findall(piece)
    return found


def count_words(text: str) -> int:
    """How many words there are."""
    if text.isascii():
        shape = b" " + text.encode().translate(_ASCII_SHAPES)
        if b" '" not in shape:
            return shape.count(b" a")
    return len(words(text))


def count_steps(text: str) -> int:
    """Paragraphs and numbered lines that say anything."""
    return sum(1 for piece in _STEP.split(text) if _SPEAKS.search(piece))


def count_questions(text: str) -> int:
    """Question marks that end something: several in a row are one, one inside a link or an expression is none."""
    if text.isascii() or not any(map(text.__contains__, _MARKS[1:])):
        # A pattern that begins with one character is searched for fastest.
        return len(_PLAIN_QUESTION.findall(text)) if "?" in text else 0
    return len(_QUESTION.findall(text))
