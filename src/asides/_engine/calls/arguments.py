"""A call's arguments where the model wrote JSON: its own characters, streamed as they come, never re-dumped.

`ArgumentsReader` reads the one value that holds them. An object passes through as it is while a scanner follows it to
its end; a string that holds JSON (`"{\\"a\\": 1}"`, which some models write) is unescaped as it comes; `null` is no
arguments; anything else is refused. `CallReader` is what every reader of such calls does around that: announcing the
call, a fence that may stand around the arguments, closing markers that come too early, how the call ends.
Neither knows what stands around the arguments; that is the syntax's.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .json_scan import LOOSE_BODY, JsonScanner, end_of_flat_object, read_body, repeated_key, unescape
from .reader import Sink
from .steps import SPACE, Step, StepReader, find_marker, skip, wait
from .strings import JSON_BODY, StringBody

_FENCE = re.compile(r"```[A-Za-z0-9_]{0,16}[ \t]{0,16}\r?\n?")
_UNPAIRED = re.compile("[\ud800-\udfff]")

_IN_STRING = "string"
"""The shape of arguments that are written as a string, before what the string holds has begun."""


class ArgumentsReader:
    """Reads the value that holds the arguments and writes it out as a JSON object."""

    __slots__ = (
        "_accepts",
        "_inner",
        "_keys",
        "_loose",
        "_meet_repeat",
        "_meet_string",
        "_scanner",
        "_shape",
        "_tail",
        "_write",
        "done",
        "error",
        "message",
    )

    def __init__(
        self,
        write: Callable[[str], None],
        meet_string: Callable[[], None],
        meet_repeat: Callable[[str], None],
        accepts: Callable[[str], bool] | None,
    ) -> None:
        self._write = write
        self._meet_string = meet_string
        self._meet_repeat = meet_repeat
        self._accepts = accepts
        self._keys: list[str] = []
        self._scanner: JsonScanner | None = None
        self._inner: JsonScanner | None = None
        self._shape = ""
        self._tail = ""
        self._loose = False
        self.done = False
        """Whether the value has ended."""
        self.error: str | None = None
        """Why the arguments cannot be used: `invalid_json` or `not_object`."""
        self.message = ""

    @property
    def in_plain_string(self) -> bool:
        """Whether reading stopped inside a sound string of an object that is written as it comes."""
        scanner = self._scanner if self._shape == "{" and self._inner is None else None
        return scanner is not None and scanner.in_plain_string

    @property
    def escaped(self) -> bool:
        """Whether the arguments are written as a string, so that places in them are no places in the text."""
        return self._inner is not None

    @property
    def in_string(self) -> bool:
        """Whether reading stopped inside a string."""
        return self._inner is not None or (self._scanner is not None and self._scanner.in_string)

    def read(self, text: str, at: int, end: int, final: bool) -> int:
        """Read `text[at:end]`; return where reading stopped.

        Where the value first is not JSON it stops too, with `error` set; the next call goes on from there.
        """
        if not self._shape:
            at = skip(text, at, end)
            if at == end:
                return at
            self._shape = text[at]
            if self._shape == '"':
                self._inner = JsonScanner(self._meet_key)
                self._shape = _IN_STRING
                at += 1
            elif self._shape == "{" and self._accepts is None:
                stop = end_of_flat_object(text, at, end)
                if stop:
                    self._write(text[at:stop])
                    self.done = True
                    return stop
        if self._inner is not None:
            return self._read_string(text, at, end)
        scanner = self._scanner
        if scanner is None:
            scanner = self._scanner = JsonScanner(self._meet_key)
        stop = scanner.scan(text, at, end, final)
        if self._shape == "{":
            if stop > at:
                self._write(text[at:stop])
        elif self._shape == "n" and scanner.done and scanner.error is None:
            self._write("{}")
        if scanner.error is not None:
            self._fail(scanner.error)
        elif scanner.done and self._shape not in "{n":
            self._refuse()
        self.done = scanner.done
        if self.done:
            self._check_keys()
        return stop

    def _meet_key(self, body: str) -> str | None:
        """A key of the arguments themselves, as it is written between its quotes; why it may not be one, if so."""
        self._keys.append(body)
        if self._accepts is None:
            return None
        key = unescape(body)
        return None if self._accepts(key) else f"the tool has no argument {key!r}"

    def _check_keys(self) -> None:
        key = repeated_key(self._keys)
        if key is not None:
            self._meet_repeat(key)

    def _fail(self, reason: str) -> None:
        if self.error is None:
            self.error, self.message = "invalid_json", f"the arguments are not valid JSON: {reason}"

    def _refuse(self) -> None:
        if self.error is None:
            self.error, self.message = "not_object", "the arguments are not a JSON object"

    def _read_string(self, text: str, at: int, end: int) -> int:
        """Arguments written as a string that holds JSON: unescaped as they stream."""
        if self._loose:
            match = LOOSE_BODY.match(text, at, end)
            at = match.end() if match else at
            if at < end and text[at] == '"':
                self.done = True
                return at + 1
            return at
        stop, cut = read_body(text, at, end, whole_pairs=True)
        self._take(unescape(text[at:stop]))
        if cut:
            return stop
        if text[stop] != '"':
            self._fail("a string holds what JSON does not allow")
            self._loose = True
            return stop
        self._end_string()
        return stop + 1

    def _take(self, words: str) -> None:
        """Read on in the text that the string holds."""
        inner = self._inner
        assert inner is not None
        words = self._tail + _UNPAIRED.sub(_escape_half, words)
        if self._shape == _IN_STRING:
            words = words.lstrip(" \t\n\r")
            if not words:
                return
            self._shape = words[0]
            if self._shape == "{":
                self._meet_string()
        stop = inner.scan(words, 0, len(words))
        if not inner.done:
            # It also stops where the text first is not JSON; what follows is the model's text all the same.
            stop = inner.scan(words, stop, len(words))
        if self._shape == "{" and stop:
            self._write(words[:stop])
        self._tail = words[stop:]
        if inner.error is not None:
            self._fail(inner.error)
        if inner.done and self._tail:
            if SPACE.fullmatch(self._tail) is None:
                self._fail("something follows the object")
            self._tail = ""

    def _end_string(self) -> None:
        inner = self._inner
        assert inner is not None
        inner.scan(self._tail, 0, len(self._tail), final=True)
        self.done = True
        if self._shape == _IN_STRING:
            self._write("{}")
        elif inner.error is not None or not inner.done:
            self._fail(inner.error or "it ends too early")
        elif self._shape == "n":
            self._write("{}")
        elif self._shape != "{":
            self._refuse()
        self._check_keys()


class CallReader(StepReader):
    """A reader of calls whose arguments are JSON. Subclasses say what stands around the arguments."""

    def __init__(self, sink: Sink, closers: tuple[str, ...]) -> None:
        super().__init__(sink)
        self._closers = closers
        self._passed = 0
        self._fence = False
        self._clear()

    @property
    def string_ends(self) -> tuple[str, ...] | None:
        """Inside a string of the arguments."""
        reading = self._headed and self._step == self._in_arguments
        return () if reading and self._arguments is not None and self._arguments.in_plain_string else None

    @property
    def string_body(self) -> StringBody | None:
        """The model's own JSON."""
        return JSON_BODY

    def _clear(self) -> None:
        """Forget the call before."""
        self._name: str | None = None
        self._id: str | None = None
        self._headed = False
        self._early: list[str] = []
        self._arguments: ArgumentsReader | None = None
        self._arguments_at = 0
        self._in_string = False
        self._left_out = False
        self._error: tuple[str, str] | None = None
        self._after_arguments: Step = self._lead

    def _head(self) -> None:
        """Announce the call, and tell what was kept until its name was known."""
        self._headed = True
        self._sink.head(self._name or "", self._id)
        if self._in_string:
            self._sink.string_arguments(self._arguments_at)
        self._sink.arguments("".join(self._early))
        self._early = []

    def _open_fence(self, text: str, at: int, end: int, final: bool) -> int:
        """Behind the line that opens a code block."""
        match = _FENCE.match(text, at, end)
        if not final and (end - at < 3 if match is None else match.end() == end and text[end - 1] != "\n"):
            return wait(at)
        if match is None:
            return self._reject(at, "a code block that is not JSON")
        self._fence = True
        return match.end()

    def _begin_arguments(self, offset: int, after: Step) -> None:
        sink = self._sink
        accepts = sink.accepts if sink.tentative else None
        self._arguments = ArgumentsReader(self._write, self._meet_string, sink.repeated, accepts)
        self._arguments_at = offset
        self._after_arguments = after
        self._step = self._in_arguments

    def _write(self, text: str) -> None:
        if self._headed:
            self._sink.arguments(text)
        else:
            self._early.append(text)

    def _meet_string(self) -> None:
        self._in_string = True
        if self._headed:
            self._sink.string_arguments(self._arguments_at)

    def _in_arguments(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Inside the value that holds the arguments."""
        arguments = self._arguments
        assert arguments is not None
        place, closes = end, False
        if arguments.error is not None:
            place, closes = find_marker(text, max(at, self._passed - base), end, self._closers, final)
        was_sound = arguments.error is None
        stop = arguments.read(text, at, place, final and place == end)
        if arguments.done:
            self._step = self._after_arguments
            return stop
        if was_sound and arguments.error is not None:
            if self._sink.tentative and not arguments.escaped:
                return self._reject(stop, arguments.message, arguments.error)
            return stop
        if closes and stop == place:
            return self._meet_closer(stop, base, arguments.in_string)
        return wait(stop)

    def _meet_closer(self, at: int, base: int, in_string: bool) -> int:
        """A closing marker in what has already turned out not to be JSON: an end, unless it stands in a string."""
        if in_string:
            self._passed = base + at + 1
            return at
        return self._end_broken(at, base)

    def _end_broken(self, at: int, base: int) -> int:
        """A call that is not JSON ends before the closing marker at `at`."""
        raise NotImplementedError

    def _end_call(self, offset: int, alone: bool = False) -> None:
        arguments = self._arguments
        error, message = self._error or ((arguments.error, arguments.message) if arguments else (None, ""))
        if error is None and not self._name:
            error = "no_name"
        self._sink.end(offset, alone=alone, error=error, message=message, cut=not self._left_out)


def _escape_half(match: re.Match[str]) -> str:
    # Half of a pair has no UTF-8; inside the string that holds it, it can be written as an escape.
    return f"\\u{ord(match.group()):04x}"
