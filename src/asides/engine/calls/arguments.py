"""A call's arguments where the model wrote JSON: its own characters, streamed as they come, never re-dumped."""

from __future__ import annotations

from collections.abc import Callable

from .json_scan import SPACE, STRING_BODY, JsonScanner


class ArgumentsReader:
    """Reads the value that holds the arguments and writes it out as a JSON object."""

    __slots__ = ("_inner", "_scanner", "_shape", "_write", "done", "error", "message", "was_string")

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._scanner = JsonScanner()
        self._inner: JsonScanner | None = None
        self._shape = ""
        self.done = False
        """Whether the value has ended."""
        self.error: str | None = None
        """Why the arguments cannot be used: `invalid_json` or `not_object`."""
        self.message = ""
        self.was_string = False
        """Whether the object was written inside a string."""

    def read(self, text: str, at: int, end: int, final: bool) -> int:
        """Read `text[at:end]`; return where reading stopped."""
        if not self._shape:
            match = SPACE.match(text, at, end)
            at = match.end() if match else at
            if at == end:
                return at
            self._shape = text[at]
            if self._shape == '"':
                self.was_string = True
                self._inner = JsonScanner()
                at += 1
        if self._inner is not None:
            return self._read_string(text, at, end)
        stop = self._scanner.scan(text, at, end, final)
        if self._shape == "{":
            self._write(text[at:stop])
        elif self._shape == "n" and self._scanner.done and self._scanner.error is None:
            self._write("{}")
        if self._scanner.done:
            self._finish(self._scanner)
        return stop

    def _finish(self, scanner: JsonScanner) -> None:
        self.done = True
        if scanner.error is not None:
            self.error, self.message = "invalid_json", f"the arguments are not valid JSON: {scanner.error}"
        elif self._shape not in '{"n':
            self.error, self.message = "not_object", "the arguments are not a JSON object"

    def _read_string(self, text: str, at: int, end: int) -> int:
        """Arguments written as a string that holds JSON: unescaped as they stream."""
        from json.decoder import scanstring  # here, because few models need it and importing json costs start-up

        match = STRING_BODY.match(text, at, end)
        stop = match.end() if match else at
        closed = stop < end and text[stop] == '"'
        if not closed and stop < end and end - stop >= 6:
            self.done = True
            self.error, self.message = "invalid_json", "the arguments are a string that is not JSON"
            return stop
        if not closed:
            # Both halves of an escaped pair must be unescaped together.
            half = text.rfind("\\u", at, stop)
            if half >= 0 and stop - half == 6 and text[half + 2 : half + 4].lower() in ("d8", "d9", "da", "db"):
                stop = half
        words, _ = scanstring(text[at:stop] + '"', 0, False)
        inner = self._inner
        assert inner is not None
        if words:
            if self._shape == '"':
                self._shape = words.lstrip()[:1] or '"'
            if not inner.done:
                inner.scan(words, 0, len(words))
            elif words.strip():
                inner.error = inner.error or "something follows the object"
            self._write(words)
        if closed:
            stop += 1
            if not inner.done:
                inner.error = inner.error or "it ends too early"
            self._finish(inner)
            if self._shape != "{" and self.error is None:
                self.error, self.message = "not_object", "the arguments are not a JSON object"
        return stop
