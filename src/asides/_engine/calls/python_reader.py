"""Reads calls written as Python. Literals become JSON as they come; nothing is evaluated.

    [get_weather(city='Paris', days=3), f(a={'b': (1, 2)})]

Every step reads one thing and writes its JSON. Two things are known only later and wait for it: whether a brace is a
dictionary or a set, and whether a parenthesis is a tuple or nothing (`_unsettled`, `_held`). Strings stream: runs of
ordinary characters and common escapes in one go, the rarer escapes one by one. A string that holds its own quote
without escaping it, as models write when they quote, is read on if what follows cannot follow a value (`_Inner`). Where
a family writes strings as they are, a quote or a line end in one that is not escaped shows that nothing in it is; so
from its first backslash such a string waits for one of these, or its end (`_doubtful`).
"""

from __future__ import annotations

import re
from enum import Enum
from typing import cast

from .python_calls import PythonCalls
from .reader import Sink, Status
from .steps import LONGEST_NAME, StepReader, escape, marker_at, skip, skip_some, wait
from .strings import PYTHON_BODIES, StringBody
from .values import Schema, StringWriter, is_whole, read_number

_NAME = re.compile(r"[^\W\d][\w.:\-]*+")
_KEYWORD = re.compile(r"([^\W\d][\w\-]*+)[ \t\n\r]*+=")
_KEYWORD_PARTIAL = re.compile(r"[^\W\d][\w\-]*+[ \t\n\r]*+\Z")
_ATOM = re.compile(r"[\w.+\-]*+")
_STRING_START = re.compile(r"""([rRuU]?)(\"\"\"|'''|\"|')""")
_STRING_PARTIAL = re.compile(r"""[rRuU]?(?:\"\"?|''?)?\Z""")
_RUNS = {
    quote: re.compile(rf"[^{quote[0]}\\]*+(?>(?:(?:\\[nrt'\"\\]{inner})[^{quote[0]}\\]*+)*)")
    for quote, inner in (
        ('"', ""),
        ("'", ""),
        ('"""', '|"(?="?[^"])'),
        ("'''", "|'(?='?[^'])"),
    )
}
"""For each quote, what may stand in a string and is read in one go: all but the rarer escapes."""
_RAW_RUNS = {quote: re.compile(rf"[^{quote}\\]*+") for quote in "\"'"}
_DOUBTFUL = {quote: re.compile(rf"(?>(?:[^{quote}\\\r\n]++|\\[^{quote}\r\n])*)") for quote in "\"'"}
"""What says nothing of whether a string is written with escapes."""
_LINE_END = re.compile(r"[\r\n]")
_COMMON_ESCAPE = re.compile(r"\\([nrt'\"\\])")
_COMMON = {"n": "\\n", "r": "\\r", "t": "\\t", "'": "'", '"': '\\"', "\\": "\\\\"}
_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|[xuU](?P<hex>(?<=x)[0-9a-fA-F]{2}|(?<=u)[0-9a-fA-F]{4}|(?<=U)[0-9a-fA-F]{8})"
    r"|N\{(?P<name>[^{}\n]{1,100})\}|(?P<line>\r\n|\r|\n)|(?P<one>[^0-7xuUN\r\n]))"
)
_LONGEST_ESCAPE = 104
_ONES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ONES |= {character: character for character in "\\'\""}
_WORDS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_INTEGER = re.compile(r"([+-]?)(0(?:_?0)*|[1-9](?:_?[0-9])*)")
_FLOAT = re.compile(r"([+-]?)([0-9](?:_?[0-9])*)?(?:(\.)([0-9](?:_?[0-9])*)?)?(?:[eE]([+-]?[0-9]+))?")
_OTHER_BASE = re.compile(r"([+-]?)(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+)")
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_OPENS_INNER = re.compile(r"[\s(\[{=:,;|&<>/\\][\"'][^\s\"'+%*.,)\]}]")
"""A quote inside a string that opens a quoted word of its own: `sed -n '1,5p'`. Operators behind it would make an
expression of two strings, which is not read."""
_APOSTROPHE = re.compile(r"\w'\w")
_ANOTHER = re.compile(r",\s{0,255}+[^\W\d][\w\-]{0,255}+\s{0,255}+=(?!=)")
"""Behind a string, when quotes were met inside it: another argument."""
_LAST = re.compile(r"\)\s{0,255}+(?:\]\s{0,255}+)?(?:<|[,;\n]\s{0,255}+[^\W\d][\w.:\-]{0,255}+\s{0,255}+\()")
"""The same: the end of the call, and behind it another call or a marker."""
_VERY_LAST = re.compile(r"\)\s{0,255}+(?:\]\s{0,255}+)?\Z")
"""The same where the input is over."""
_LAST_PARTIAL = re.compile(
    r"(?:,\s{0,255}+(?:[^\W\d][\w\-]{0,255}+\s{0,255}+=?)?"
    r"|\)\s{0,255}+(?:\]\s{0,255}+)?(?:[,;\n]\s{0,255}+(?:[^\W\d][\w.:\-]{0,255}+\s{0,255}+)?)?)?\Z"
)
"""What may still become one of these."""
_END = ")"
"""What is put behind a value that is read alone."""
_TYPES = {'"': "string", "[": "array", "{": "object", "t": "boolean", "f": "boolean", "n": "null"}
"""The type of a JSON value by its first character; any other begins a number."""


class _Inner(Enum):
    """Quotes that stand unescaped inside a string."""

    NONE = "none so far"
    OPEN = "one has opened a word that the next one closes"
    PAIRED = "each has its pair, or is an apostrophe"


class PythonReader(StepReader):
    """Reads calls up to the closing bracket or marker, and writes their arguments as JSON."""

    def __init__(self, syntax: PythonCalls, sink: Sink, opener: str) -> None:
        super().__init__(sink)
        self._bare = not opener
        self._syntax = syntax
        self._closers = syntax.close if opener else ()
        self._list = False
        self._calls = 0
        self._ended_at = 0
        self._clear("")

    def _clear(self, name: str) -> None:
        self._name = name
        self._headed = False
        self._schema: Schema | None = None
        self._key_name = ""
        self._expected: Schema | None = None
        self._typed: StringWriter | None = None
        self._type = ""
        self._members = 0
        self._frames: list[_Bracket] = []
        self._unsettled = 0
        self._held: list[str] = []
        self._quote = ""
        self._inner = _Inner.NONE
        self._raw = False
        self._in_key = False
        self._literal: bool | None = False
        self._doubtful: list[str] = []
        self._doubtful_size = 0

    # Up to a call.

    def _lead(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        self._step = self._item
        if text[at] == "[":
            self._list = True
            return at + 1
        return at

    def _item(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Where a call is expected."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if self._list and text[at] == "]" and (self._calls or not self._bare):
            self._step = self._close
            return at + 1
        match = _NAME.match(text, at, min(end, at + LONGEST_NAME))
        if match is None:
            return self._reject(at, "the name of a function is expected")
        self._sink.begin(base + at)
        place = skip_some(text, match.end(), end)
        if place == end:
            return wait(at)
        if text[place] != "(":
            return self._reject(place, "a parenthesis is expected behind the name")
        self._clear(match.group().removesuffix("." + self._syntax.method))
        self._step = self._argument
        if not self._bare:
            self._head()
            self._sink.arguments("{")
        return place + 1

    def _head(self) -> None:
        self._headed = True
        self._sink.head(self._name)
        tools = self._sink.tools
        parameters = tools.parameters(self._name) if tools is not None else None
        self._schema = Schema(parameters) if parameters else None

    # Arguments.

    def _argument(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """A keyword, or the end of the call."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        match = _KEYWORD.match(text, at, min(end, at + LONGEST_NAME))
        if match is None and text[at] != ")":
            if end - at < LONGEST_NAME and not final and _KEYWORD_PARTIAL.match(text, at, end):
                return wait(at)
            return self._reject(at, "an argument must be written with its name")
        before = ", " if self._members else ""
        if not self._headed:
            # A first call to a tool that was given shows what the others are.
            if not self._calls and self._unknown(self._name):
                return self._reject(at, "no such tool was given")
            self._head()
            before = "{"
        if match is None:
            self._sink.arguments("{" if before == "{" else "")
            return self._end(at, base)
        key = match.group(1)
        if not self._sink.accepts(key):
            return self._reject(at, f"the tool has no argument {key!r}")
        self._sink.member(key, base + match.end())
        self._put(f'{before}"{escape(key)}": ')
        self._members += 1
        self._key_name, self._type = key, ""
        self._expected = self._schema.member(key) if self._schema is not None else None
        self._step = self._value
        return match.end()

    def _end(self, at: int, base: int) -> int:
        self._sink.arguments("}")
        self._ended_at = base + at + 1
        self._sink.end(self._ended_at)
        self._calls += 1
        self._step = self._after_item
        return at + 1

    @property
    def string_ends(self) -> tuple[str, ...] | None:
        """Inside a string that is written as it comes."""
        return ("'",) if self._step == self._string and not self._unsettled and self._typed is None else None

    @property
    def string_body(self) -> StringBody | None:
        """Escapes that mean the same in JSON, in a string with one quote at each end."""
        return None if self._raw or self._literal is not False else PYTHON_BODIES.get(self._quote)

    def _put(self, text: str) -> None:
        """Write, or keep what stands inside a parenthesis that may or may not be a tuple."""
        if self._unsettled:
            self._held.append(text)
        elif self._typed is not None:
            self._typed.add(text)
        else:
            self._sink.arguments(text)

    # Values.

    def _value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if text[at] not in _CLOSING:
            return self._scalar(text, at, end, final, key=False)
        self._open(text[at])
        self._step = self._key if text[at] == "{" else self._element
        return at + 1

    def _open(self, bracket: str) -> None:
        frame = _Bracket(bracket)
        if bracket == "[":
            self._note_type(bracket)
            self._put(bracket)
            if not self._frames:
                self._check_type()
        else:
            # Only what follows tells a tuple from a parenthesis, and a set from a dictionary.
            self._unsettled += 1
            frame.place = len(self._held)
            self._held.append("")
        self._frames.append(frame)

    def _element(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """In a list or a tuple: a value, or its end."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        frame = self._frames[-1]
        if text[at] == _CLOSING[frame.bracket]:
            return self._shut(at)
        self._separate(frame)
        return self._value(text, at, end, base, final)

    def _separate(self, frame: _Bracket) -> None:
        # A step may be taken again when it had to wait, so the comma is written only once for each value.
        if frame.commas < frame.values:
            frame.commas += 1
            self._put(", ")

    def _key(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """In a dictionary: a key, or its end."""
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        frame = self._frames[-1]
        if text[at] == "}":
            return self._shut(at)
        if frame.place is not None and text[at] in _CLOSING:
            self._settle(frame, "[")  # no key begins so
            return self._value(text, at, end, base, final)
        self._separate(frame)
        return self._scalar(text, at, end, final, key=True)

    def _colon(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        frame = self._frames[-1]
        if frame.place is not None and text[at] in ",}":
            if frame.atom is not None:
                self._held[frame.atom] = self._held[frame.atom].strip('"')
            self._settle(frame, "[")
            self._step = self._after_value
            return at
        if text[at] != ":":
            return self._reject(at, "a colon is missing")
        if frame.place is not None:
            self._settle(frame, "{")
        self._put(": ")
        self._step = self._value
        return at + 1

    def _scalar(self, text: str, at: int, end: int, final: bool, key: bool) -> int:
        """A string, a number or a constant."""
        match = _STRING_START.match(text, at, end)
        if match is not None:
            quote = match.group(2)
            if len(quote) == 1 and not final and _STRING_PARTIAL.match(text, at, end):
                return wait(at)
            self._raw = match.group(1) in ("r", "R")
            stop = 0 if key or self._raw or len(quote) > 1 else self._plain_string(text, match.end(), end, quote)
            if stop:
                return stop
            self._open_string()
            self._in_key = key
            self._quote = quote
            self._inner = _Inner.NONE
            # Whether backslashes are characters as any; None while it is not known.
            doubted = self._syntax.unescaped and not (key or self._frames or self._raw or len(quote) > 1)
            self._literal = None if doubted else False
            self._step = self._string
            return match.end()
        match = _ATOM.match(text, at, min(end, at + LONGEST_NAME))
        stop = match.end() if match else at
        if stop == end:
            return wait(at)
        literal = read_atom(text[at:stop]) or read_number(text[at:stop])
        if literal is None:
            return self._reject(at, f"{text[at : max(stop, at + 1)][:40]!r} is no plain value")
        self._note_type(literal[0])
        if key and self._frames[-1].place is not None:
            self._frames[-1].atom = len(self._held)
        self._put(f'"{literal}"' if key else literal if self._frames else self._fitting(literal, text[at:stop]))
        self._step = self._colon if key else self._after_value
        return stop

    def _note_type(self, first: str) -> None:
        """The value of the argument, perhaps in parentheses, begins so in JSON."""
        if self._unsettled == len(self._frames):
            self._type = _TYPES.get(first, "number")

    def _check_type(self) -> None:
        """Tell a value that is not of its type: once, and as soon as any of it is written, for `repair` may end it."""
        if self._type and self._expected is not None and not self._expected.allows(self._type):
            self._sink.invalid(self._key_name)
        self._type = ""

    def _fitting(self, literal: str, written: str) -> str:
        """A number or constant as its schema wants it: a number may have to be a string."""
        expected = self._expected
        if expected is None or self._type != "number" or expected.types is None:
            return literal
        if expected.only_string:
            self._type = "string"
            return f'"{escape(written)}"'
        if expected.whole and not is_whole(literal):
            self._type = "fraction"
        return literal

    def _open_string(self) -> None:
        if self._is_typed():
            # The writer tells whether it fits.
            self._typed = StringWriter(self._sink, self._expected, self._key_name)
        else:
            self._note_type('"')
            self._put('"')

    def _plain_string(self, text: str, at: int, end: int, quote: str) -> int:
        """Behind a string that is whole, plainly ends and is written as it is; 0 where it must be read step by step."""
        match = _RUNS[quote].match(text, at, end)
        stop = match.end() if match else at
        if end - stop < 2 or text[stop] != quote or text[stop + 1] not in ",)" or self._is_typed():
            return 0
        if self._syntax.unescaped and _LINE_END.search(text, at, stop):
            return 0
        self._note_type('"')
        self._put(f'"{_encode(text[at:stop])}"')
        self._step = self._after_value
        return stop + 1

    def _is_typed(self) -> bool:
        """Whether the string that begins must be something else by its schema."""
        return not self._frames and self._expected is not None and self._expected.excludes_strings

    def _close_string(self) -> None:
        if self._typed is None:
            self._put('"')
        else:
            self._typed.close()
            self._typed = None

    def _string(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        quote = self._quote
        while True:
            run = _RUNS[quote] if self._literal is False and not self._raw else _RAW_RUNS[quote[0]]
            match = run.match(text, at, end)
            stop = match.end() if match else at
            if stop > at:
                self._put(_encode(text[at:stop]))
                if self._literal is None and _LINE_END.search(text, at, stop):
                    self._literal = True
            if stop == end:
                return wait(stop)
            if text[stop] == "\\" and self._literal is None:
                self._step = self._in_doubt
                return stop
            if text[stop] == "\\":
                at = self._escape(text, stop, end, final)
                if at < 0 or self.status is Status.REJECTED:
                    return at
            elif text.startswith(quote, stop, end):
                closes = self._closes(text, stop, end, final)
                if closes is None:
                    return wait(stop)
                if not closes:
                    inner = self._inner_at(text, stop, end)
                    if inner is None:
                        return self._reject(stop, "a string holds a quote that is not escaped")
                    if self._inner is _Inner.NONE:
                        self._sink.unescaped_quote(base + stop)
                    self._inner = inner
                    self._literal = self._literal is None or self._literal
                    self._put(escape(quote))
                    at = stop + 1
                    continue
                self._close_string()
                self._step = self._colon if self._in_key else self._after_value
                return stop + len(quote)
            elif not final and quote.startswith(text[stop:end]):
                return wait(stop)
            else:
                self._put(escape(quote[0]))
                at = stop + 1

    def _closes(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """Whether the quote at `at` ends the string of an argument; None when more must be seen.

        Models leave quotes unescaped: `command='sed -n '1,5p' x'`. Quotes inside come in pairs, or are apostrophes.
        Once one was met, only what can stand nowhere else tells the end: another argument, or the end of the call
        with nothing but another call, a marker or the end of input behind it.
        """
        if self._raw or self._frames or len(self._quote) > 1:
            return True
        if self._inner is _Inner.OPEN:
            return False
        place = skip_some(text, at + 1, end)
        if place == end and not final:
            return None
        if self._inner is _Inner.NONE:
            return place == end or text[place] in ",)" or self._inner_at(text, at, end) is None
        if _ANOTHER.match(text, place, end) or _LAST.match(text, place, end):
            return True
        if final and _VERY_LAST.match(text, place, end):
            return True
        return None if not final and _LAST_PARTIAL.match(text, place, end) else False

    def _inner_at(self, text: str, at: int, end: int) -> _Inner | None:
        """What the quotes inside the string are behind the one at `at`; None where that one makes no sense inside."""
        if self._inner is _Inner.OPEN or _APOSTROPHE.match(text, at - 1, end):
            return _Inner.PAIRED
        return _Inner.OPEN if _OPENS_INNER.match(text, at - 1, end) else None

    def _in_doubt(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """From the first backslash of a string that may be written as it is: what follows tells."""
        match = _DOUBTFUL[self._quote].match(text, at, min(end, at + self._sink.limit + 1 - self._doubtful_size))
        stop = match.end() if match else at
        self._doubtful.append(text[at:stop])
        self._doubtful_size += stop - at
        at = stop
        if self._doubtful_size >= self._sink.limit:
            self._sink.limited("a string that may be written without escapes is held for too long; read with them")
            return self._settle_doubt(False, at)
        escaped = text.startswith("\\", at, end)
        if at == end or (escaped and at + 1 == end):
            return wait(at)
        if text[at + escaped] in "\r\n":
            return self._settle_doubt(True, at)
        if escaped:
            return self._settle_doubt(False, at)  # the quote itself is escaped
        closes = self._closes(text, at, end, final)
        if closes is None:
            return wait(at)
        return self._settle_doubt(not closes and self._inner_at(text, at, end) is not None, at)

    def _settle_doubt(self, literal: bool, at: int) -> int:
        """It is known whether the backslashes of a string are characters as any: write what waited."""
        text = "".join(self._doubtful)
        self._doubtful, self._doubtful_size = [], 0
        self._literal = literal
        self._step = self._string
        if literal:
            self._put(escape(text))
            return at
        place = 0
        while place < len(text):
            match = _RUNS[self._quote].match(text, place)
            stop = match.end() if match else place
            self._put(_encode(text[place:stop]))
            place = stop if stop == len(text) else self._escape(text, stop, len(text), True)
            if self.status is Status.REJECTED:
                break
        return at

    def _escape(self, text: str, at: int, end: int, final: bool) -> int:
        """One escape, as Python reads it."""
        if self._literal:
            return self._backslash(text, at, end, final)
        if self._raw:
            if end - at < 2:
                return wait(at)
            self._put(escape(text[at : at + 2]))
            return at + 2
        match = _ESCAPE.match(text, at, end)
        short = end - at < (_LONGEST_ESCAPE if text.startswith("\\N", at, end) else 10)
        goes_on = _may_go_on(text[at + 1 : end]) if match is None else match.end() == end and not match["one"]
        if not final and short and goes_on:
            return wait(at)
        written = _meaning(match) if match is not None else None
        if match is None or written is None:
            return self._reject(at, "a string holds an escape that Python does not know")
        self._put(escape(written))
        return match.end()

    def _backslash(self, text: str, at: int, end: int, final: bool) -> int:
        """A backslash where nothing is escaped. A quote behind it is one of the text, or the end of the string."""
        quote = self._quote
        size = 1
        if not final and quote.startswith(text[at + 1 : at + 2]) and end - at < 3:
            return wait(at)
        if text.startswith(quote, at + 1, end):
            closes = self._closes(text, at + 1, end, final)
            if closes is None:
                return wait(at)
            if not closes and self._inner is _Inner.PAIRED and text.startswith(quote, at + 2, end):
                self._inner, size = _Inner.OPEN, 3  # as a shell writes a quote in a quoted word: 'it'\''s'
            elif not closes:
                size = 2
        self._put(escape(text[at : at + size]))
        return at + size

    def _after_value(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        if not self._frames:
            self._check_type()
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        if not self._frames:
            return self._after_argument(text, at, base)
        frame = self._frames[-1]
        if text[at] == ",":
            frame.values += 1
            if frame.place is not None:
                self._settle(frame, "[")
            self._step = self._key if frame.written == "{" else self._element
            return at + 1
        if text[at] == _CLOSING[frame.bracket]:
            frame.values += 1
            return self._shut(at)
        return self._reject(at, "a comma or a closing bracket is missing")

    def _after_argument(self, text: str, at: int, base: int) -> int:
        """Behind the value of an argument."""
        if text[at] not in ",)":
            return self._reject(at, "a comma or a parenthesis is missing")
        self._sink.member_end(base + at)
        if text[at] == ")":
            return self._end(at, base)
        self._step = self._argument
        return at + 1

    def _shut(self, at: int) -> int:
        """The end of a list, a tuple, a dictionary, or of a parenthesis around one value."""
        frame = self._frames[-1]
        if frame.place is not None:
            empty = {"(": "[", "{": "{"}[frame.bracket] if not frame.values else ""
            self._settle(frame, empty)
        self._frames.pop()
        self._put(_CLOSING.get(frame.written, ""))
        self._step = self._after_value
        return at + 1

    def _settle(self, frame: _Bracket, written: str) -> None:
        """It is known what a parenthesis or a brace is: written with this bracket, or with none."""
        if written:
            self._note_type(written)
        assert frame.place is not None
        self._held[frame.place] = frame.written = written
        frame.place = None
        self._unsettled -= 1
        if not self._unsettled:
            self._sink.arguments("".join(self._held))
            self._held.clear()
            self._check_type()

    # Behind a call.

    def _after_item(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Another call, or the end."""
        if self._list:
            return self._after_list_item(text, at, end, final)
        place = skip_some(text, at, end)
        marker = marker_at(text, place, end, self._closers, final)
        if marker is None:
            return wait(at)
        if marker:
            return self._done(place + len(marker))
        if place < end:
            place = skip_some(text, place + 1, end) if text[place] in ",;" else place
            if place == end and not final:
                return wait(at)
            another = self._another(text, place, end, final)
            if another is None:
                return wait(at)
            if another:
                self._step = self._item
                return place
        elif not final and not self._closers:
            return wait(at)
        if self._closers:
            self._sink.missing_close(base + at)
        return self._done(at)

    def _another(self, text: str, place: int, end: int, final: bool) -> bool | None:
        """Whether another call begins here; None when more must be seen."""
        if self._syntax.method:
            return self._syntax.calls_method(text, place, end, final)
        return _NAME.match(text, place, end) is not None

    def _after_list_item(self, text: str, at: int, end: int, final: bool) -> int:
        at = skip(text, at, end)
        marker = marker_at(text, at, end, self._closers, final)
        if marker is None or (at == end and not final):
            return wait(at)
        if marker or at == end:
            # The list has lost its bracket.
            self._sink.missing_close(self._ended_at)
            return self._done(at + len(marker))
        self._step = self._item if text[at] == "," else self._close
        return at + 1 if text[at] in ",]" else self._reject(at, "a comma or a closing bracket is missing")

    def _close(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind the list: the closing marker, if the syntax has one."""
        if not self._closers:
            return self._done(at)
        place = skip_some(text, at, end)
        marker = marker_at(text, place, end, self._closers, final)
        if marker is None:
            return wait(at)
        if marker:
            return self._done(place + len(marker))
        self._sink.missing_close(base + at)
        return self._done(at)


class _ValueReader(PythonReader):
    """Reads a value that stands alone. What follows it must be `_END`."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(PythonCalls(), sink, "")
        self._step = self._value

    def _after_argument(self, text: str, at: int, base: int) -> int:
        return self._done(at) if at == len(text) - 1 else self._reject(at, "something follows the value")


class _Written:
    """A sink that keeps what is written."""

    tools = None
    limit = 0
    calls = 0

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.arguments = self.pieces.append


class _Bracket:
    """An open bracket."""

    __slots__ = ("atom", "bracket", "commas", "place", "values", "written")

    def __init__(self, bracket: str) -> None:
        self.bracket = bracket
        self.written = bracket if bracket == "[" else ""
        """The bracket in JSON; none around a single value."""
        self.values = 0
        self.commas = 0
        self.place: int | None = None
        """For a parenthesis or a brace of which it is not known what it is: where its bracket stands in `_held`."""
        self.atom: int | None = None
        """Where the first key of a dictionary that may be a set stands there, if it is a number or a constant."""


def _encode(run: str) -> str:
    """Text with common escapes only, as it stands in a JSON string."""
    if "\\" not in run:
        return escape(run)
    # Every other piece is the character behind a backslash.
    pieces = _COMMON_ESCAPE.split(run)
    pieces[::2] = [escape(piece) for piece in pieces[::2]]
    pieces[1::2] = [_COMMON[piece] for piece in pieces[1::2]]
    return "".join(pieces)


def _may_go_on(escape: str) -> bool:
    """Whether what stands behind a backslash may be the beginning of an escape."""
    if not escape:
        return True
    digits = escape[1:]
    if escape[0] in "xuU":
        return all(character in "0123456789abcdefABCDEF" for character in digits)
    return escape[0] == "N" and "}" not in digits and "\n" not in digits and digits[:1] in ("", "{")


def _meaning(match: re.Match[str]) -> str | None:
    """What an escape stands for."""
    if match["octal"]:
        return chr(int(match["octal"], 8))
    if match["hex"]:
        code = int(match["hex"], 16)
        return chr(code) if code <= 0x10FFFF else None
    if match["name"]:
        import unicodedata  # here, because hardly any model writes one

        try:
            return unicodedata.lookup(match["name"])
        except KeyError:
            return None
    if match["line"]:
        return ""
    one = match["one"]
    return _ONES.get(one, "\\" + one)


def read_value(text: str) -> str | None:
    """A Python list, tuple or dictionary as JSON; None when it is none."""
    sink = _Written()
    reader = _ValueReader(cast(Sink, sink))
    # A value may end only where something follows it that is not part of it.
    reader.read(text + _END, 0, len(text) + len(_END), 0, True)
    return "".join(sink.pieces) if reader.status is Status.DONE else None


def read_atom(word: str) -> str | None:
    """A Python constant or number as JSON; None when it is neither."""
    if word in _WORDS:
        return _WORDS[word]
    if match := _INTEGER.fullmatch(word):
        digits = match.group(2).replace("_", "")
        return match.group(1).replace("+", "") + (digits if digits.strip("0") else "0")
    if match := _OTHER_BASE.fullmatch(word):
        try:
            return match.group(1).replace("+", "") + str(int(match.group(2), 0))
        except ValueError:
            return None
    match = _FLOAT.fullmatch(word)
    if match is None:
        return None
    sign, whole, dot, part, exponent = match.groups()
    if not (whole or part) or not (dot or exponent):
        return None
    written = sign.replace("+", "") + ((whole or "").replace("_", "").lstrip("0") or "0")
    written += "." + (part or "0").replace("_", "") if dot else ""
    return written + (f"e{exponent}" if exponent else "")
