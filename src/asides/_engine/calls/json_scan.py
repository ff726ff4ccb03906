"""A JSON value read a stretch at a time: where it ends, and whether it is JSON. Knows nothing of calls.

Reading is strict until something is not JSON; from then on only strings and depth are followed, so that the end is
found all the same. Whole runs of flat members are taken by one regular expression; only brackets cost a step each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import msgspec

# `(?>(?:...)*)` and not `(?:...)*+`: before 3.11.5 a possessive repeat of a group loses its place (CPython gh-106052).
_BODY = r'[^"\\\x00-\x1f]*+(?>(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*)'
_STRING = rf'"{_BODY}"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_SPACE = r"[ \t\n\r]*+"
_SCALAR = rf"(?:{_STRING}|(?:{_NUMBER}|true|false|null)(?=[ \t\n\r,\]}}]))"


def _or_container(value: str) -> str:
    """A pattern for a scalar, or a list or object of such values."""
    members = rf"\{{{_SPACE}(?>(?:{_STRING}{_SPACE}:{_SPACE}{value}{_SPACE}(?:,{_SPACE}(?!\}})|(?=\}})))*)\}}"
    elements = rf"\[{_SPACE}(?>(?:{value}{_SPACE}(?:,{_SPACE}(?!\])|(?=\])))*)\]"
    return rf"(?:{_SCALAR}|{members}|{elements})"


STRING_BODY = re.compile(_BODY)
"""What may stand in a string; stops before a quote, an escape that is cut off, or something that is not JSON."""
LOOSE_BODY = re.compile(r'[^"\\]*+(?>(?:\\.[^"\\]*+)*)', re.DOTALL)
"""The same for text that only looks like JSON."""
LITERAL = re.compile(rf"{_NUMBER}|true|false|null")
"""A JSON value that is no string, list or object."""
_ESCAPE_START = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
"""An escape that is cut off."""
_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
_SPACE_RUN = re.compile(_SPACE)
_LOOSE = re.compile(r'(?>(?:[^"{}\[\]]++|"[^"\\]*+(?>(?:\\.[^"\\]*+)*)")*)', re.DOTALL)
_ATOM_CHARACTERS = re.compile(r"[-+.0-9A-Za-z_]*+")


@cache
def _runs(of: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns for the members of an object or the elements of a list: those with a comma, and the last with its end.

    A flat list or object is taken whole, like a string or a number. More levels would not pay for their patterns.
    Made when first needed: compiling them costs more than starting up.
    """
    small = _or_container(_SCALAR)
    item = rf"{_STRING}{_SPACE}:{_SPACE}{small}" if of == "{" else small
    closing = r"\}" if of == "{" else r"\]"
    return re.compile(rf"(?>(?:{_SPACE}{item}{_SPACE},)*){_SPACE}"), re.compile(rf"{item}{_SPACE}{closing}")


@cache
def _member() -> re.Pattern[str]:
    """A pattern for one member of an object and the comma or the brace behind it; its first group is the key."""
    return re.compile(rf'{_SPACE}"({_BODY})"{_SPACE}:{_SPACE}{_or_container(_SCALAR)}{_SPACE}([,}}])')


_FURTHEST = 262_144
"""How far the end of a flat object is looked for, so that looking costs no more than a fixed amount for each."""
_LONG = 1024
"""Objects that are longer than this are decoded only if their members are short; long strings are scanned faster."""
_SHORT_MEMBER = 40
_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def end_of_flat_object(text: str, at: int, end: int) -> int:
    """Behind the object at `at`, where it is whole, holds no other, is JSON and has no key twice. Else 0: not known.

    What the scanner would find too, step by step; this is one step, and calls are mostly such objects.
    """
    brace = text.find("}", at, min(end, at + _FURTHEST))
    colons = text.count(":", at, brace) if brace >= 0 else 0
    if not colons or brace - at > _LONG + _SHORT_MEMBER * colons:
        return 0
    whole = text[at : brace + 1]
    try:
        members = len(_MEMBERS.decode(whole))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return 0
    # The decoder keeps the last of equal keys without a word. As many members as colons says that there were none; more
    # colons may also stand in strings, which the second count sorts out where they do not look like a key's.
    return brace + 1 if members == colons or members == _most_members(whole) else 0


def _most_members(whole: str) -> int:
    """No object has more members than this: colons behind a quote or whitespace, where the colon of a key stands."""
    return sum(whole.count(before + ":") for before in '" \t\n\r')


# What is expected next.
_VALUE, _FIRST_KEY, _KEY, _COLON, _FIRST_VALUE, _NEXT, _IN_KEY, _IN_STRING, _IN_ATOM = range(9)


class JsonScanner:
    """Finds the end of one JSON value.

    `meet_key` is called with each key of the object itself, as it is written. Where it returns a reason to refuse the
    key, that is the value's error, directly behind the key.
    """

    __slots__ = (
        "_atom",
        "_expect",
        "_key",
        "_loose",
        "_loose_string",
        "_meet_key",
        "_stack",
        "_told_depth",
        "done",
        "error",
    )

    def __init__(self, meet_key: Callable[[str], str | None] | None = None) -> None:
        self.done = False
        """Whether the value has ended."""
        self.error: str | None = None
        """What is wrong with it, in words, when it is not JSON."""
        self._expect = _VALUE
        self._stack: list[str] = []
        self._atom: list[str] = []
        self._meet_key = meet_key
        self._told_depth = -1 if meet_key is None else 1  # how deep the keys stand that are told
        self._key: list[str] = []
        self._loose = False
        self._loose_string = False

    @classmethod
    def inside_object(cls, error: str) -> JsonScanner:
        """A scanner for the rest of an object that has turned out not to be JSON."""
        scanner = cls()
        scanner._stack.append("{")
        scanner._fail(error)
        return scanner

    @property
    def in_string(self) -> bool:
        """Whether reading stopped inside a string."""
        return self._loose_string if self._loose else self._expect in (_IN_STRING, _IN_KEY)

    @property
    def in_plain_string(self) -> bool:
        """Whether reading stopped inside a valid string that is no key for `meet_key`."""
        if self._loose:
            return False
        return self._expect == _IN_STRING or (self._expect == _IN_KEY and len(self._stack) != self._told_depth)

    def scan(self, text: str, at: int, end: int, final: bool = False) -> int:
        """Read `text[at:end]`; return where reading stopped: behind the value, or where more is needed.

        Where the value first is not JSON it stops too, with `error` set; the next call goes on from there.
        """
        sound = self.error is None
        while at < end and not self.done:
            before = (at, self._expect, self._loose)
            at = self._scan_loose(text, at, end) if self._loose else self._scan_strict(text, at, end)
            # Nothing moved: more is needed. At the first error it returns too, so that the caller knows where that was.
            if before == (at, self._expect, self._loose) or (sound and self.error is not None):
                break
        # A number at the top has no end of its own: only the end of the text shows that it is whole.
        if final and not self.done and self._expect == _IN_ATOM and not self._stack:
            self._end_atom()
        return at

    def completion(self) -> str | None:
        """The closing brackets that are missing; None where more than that is missing, or a value may be cut off."""
        if self.error is not None or self._expect not in (_NEXT, _FIRST_KEY, _FIRST_VALUE):
            return None
        return "".join("}" if bracket == "{" else "]" for bracket in reversed(self._stack))

    def _scan_strict(self, text: str, at: int, end: int) -> int:
        expect = self._expect
        if expect in (_IN_STRING, _IN_KEY):
            stop, cut = read_body(text, at, end)
            if expect == _IN_KEY and len(self._stack) == self._told_depth:
                self._key.append(text[at:stop])
            at = stop
            if cut:
                return at
            if text[at] == '"':
                if expect == _IN_KEY:
                    self._end_key()
                else:
                    self._expect = self._after_value()
                return at + 1
            return self._give_up(at, "a string holds what JSON does not allow", in_string=True)
        if expect == _IN_ATOM:
            match = _ATOM_CHARACTERS.match(text, at, end)
            stop = match.end() if match else at
            self._atom.append(text[at:stop])
            if stop < end:
                self._end_atom()
            return stop
        if expect in (_FIRST_KEY, _KEY):
            return self._scan_run(text, at, end, "{", _KEY)
        if self._stack and self._stack[-1] == "[" and expect in (_FIRST_VALUE, _VALUE):
            return self._scan_run(text, at, end, "[", _VALUE)
        match = _SPACE_RUN.match(text, at, end)
        at = match.end() if match else at
        return self._token(text, at, expect) if at < end else at

    def _scan_run(self, text: str, at: int, end: int, of: str, after_comma: int) -> int:
        """As many whole members or elements as there are; else one character."""
        if of == "{" and len(self._stack) == self._told_depth:
            return self._scan_members(text, at, end)
        run, last = _runs(of)
        match = run.match(text, at, end)
        if match is not None and match.end() > at:
            if "," in text[at : match.end()]:
                self._expect = after_comma
            at = match.end()
        match = last.match(text, at, end)
        if match is not None:
            return self._pop(match.end() - 1)
        return self._token(text, at, self._expect) if at < end else at

    def _scan_members(self, text: str, at: int, end: int) -> int:
        """The same for members whose keys `meet_key` is called with."""
        meet_key = self._meet_key
        assert meet_key is not None
        member = _member()
        while (match := member.match(text, at, end)) is not None:
            refusal = meet_key(match[1])
            if refusal:
                return self._give_up(match.end(1) + 1, refusal)
            at = match.end()
            if match[2] == "}":
                return self._pop(at - 1)
            self._expect = _KEY
        match = _SPACE_RUN.match(text, at, end)
        at = match.end() if match else at
        return self._token(text, at, self._expect) if at < end else at

    def _end_key(self) -> None:
        self._expect = _COLON
        if len(self._stack) == self._told_depth:
            assert self._meet_key is not None
            refusal = self._meet_key("".join(self._key))
            self._key.clear()
            if refusal:
                self._fail(refusal)

    def _token(self, text: str, at: int, expect: int) -> int:
        """One character of structure."""
        character = text[at]
        stack = self._stack
        if expect in (_FIRST_KEY, _KEY):
            if character == '"':
                self._expect = _IN_KEY
                return at + 1
            if character == "}" and expect == _FIRST_KEY:
                return self._pop(at)
            return self._give_up(at, "a key must be a string in double quotes")
        if expect == _COLON:
            if character == ":":
                self._expect = _VALUE
                return at + 1
            return self._give_up(at, "a colon is missing")
        if expect == _NEXT:
            if character == ",":
                self._expect = _KEY if stack[-1] == "{" else _VALUE
                return at + 1
            if character == ("}" if stack[-1] == "{" else "]"):
                return self._pop(at)
            return self._give_up(at, "a comma or a closing bracket is missing")
        if character == '"':
            self._expect = _IN_STRING
        elif character == "{" or character == "[":
            stack.append(character)
            self._expect = _FIRST_KEY if character == "{" else _FIRST_VALUE
        elif character == "]" and expect == _FIRST_VALUE:
            return self._pop(at)
        elif character.isascii() and (character.isalnum() or character == "-"):
            self._expect, self._atom = _IN_ATOM, []
            return at
        else:
            return self._give_up(at, "a value is missing")
        return at + 1

    def _pop(self, at: int) -> int:
        self._stack.pop()
        self._expect = self._after_value()
        return at + 1

    def _after_value(self) -> int:
        if not self._stack:
            self.done = True
        return _NEXT

    def _end_atom(self) -> None:
        atom = "".join(self._atom)
        if not LITERAL.fullmatch(atom):
            self._fail(f"{atom[:40]!r} is no JSON value")
        self._expect = self._after_value()

    def _fail(self, message: str) -> None:
        self.error = self.error or message
        self._loose = True

    def _give_up(self, at: int, message: str, in_string: bool = False) -> int:
        self._fail(message)
        self._loose_string = in_string
        if not self._stack and not in_string:
            self.done = True
        return at

    def _scan_loose(self, text: str, at: int, end: int) -> int:
        """Only strings and depth count."""
        if self._loose_string:
            match = LOOSE_BODY.match(text, at, end)
            at = match.end() if match else at
            if at < end and text[at] == '"':
                self._loose_string = False
                self.done = not self._stack
                return at + 1
            return at
        match = _LOOSE.match(text, at, end)
        at = match.end() if match else at
        if at < end:
            character = text[at]
            at += 1
            if character == '"':
                self._loose_string = True
            elif character in "{[":
                self._stack.append(character)
            else:
                self._stack.pop()
                self.done = not self._stack
        return at


def read_body(text: str, at: int, end: int, whole_pairs: bool = False) -> tuple[int, bool]:
    """Where the body of a string stops that goes on at `at`, and whether that is only because the text ends.

    `whole_pairs`: stop before the first half of an escaped pair, because both must be unescaped together.
    """
    match = STRING_BODY.match(text, at, end)
    stop = match.end() if match else at
    if stop < end and (text[stop] != "\\" or _ESCAPE_START.match(text, stop, end) is None):
        return stop, False
    if whole_pairs and stop - at >= 6 and _HALF.match(text, stop - 6, stop) is not None:
        before = text[at : stop - 6]
        # Behind an odd number of backslashes `\ud83d` is no escape but a written backslash and letters.
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            stop -= 6
    return stop, True


def unescape(body: str) -> str:
    """What the body of a JSON string stands for."""
    if "\\" not in body:
        return body
    import json  # here, because few models need it and importing it costs start-up

    value: str = json.loads(f'"{body}"')
    return value


def repeated_key(keys: list[str]) -> str | None:
    """The first of the keys, each as it is written, that stands for the same as one before it."""
    # Keys may be equal though they are written differently, by an escape.
    if len(set(keys)) == len(keys) and "\\" not in "".join(keys):
        return None
    known: set[str] = set()
    for key in map(unescape, keys):
        if key in known:
            return key
        known.add(key)
    return None
