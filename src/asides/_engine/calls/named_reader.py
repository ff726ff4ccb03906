"""Reads calls whose name stands in a header, and bodies of messages whose header named the call.

    [TOOL_CALLS]f[CALL_ID]abc[ARGS]{"a": 1}          NamedReader: name, perhaps an id, a separator, arguments
    to=functions.f<|message|>{"a": 1}<|call|>        BodyReader: the name is known, only the arguments come

A header is short, so nothing of it is taken until it is whole. Some families number their calls in the name
(`functions.f:0`), which is then the id; some models write only the number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .arguments import CallReader
from .named_calls import NAME, BodyCalls, NamedCalls
from .reader import Sink, Status
from .steps import LONGEST_NAME, escape, find_marker, marker_at, skip, skip_some, starts, wait

_NUMBERED = re.compile(r"(?:functions\.)?(?P<name>.+?)(?P<number>:\d+)?", re.DOTALL)
_TAG = re.compile(r"<[\w.:\-]{1,40}+")
_PARAMETERS = re.compile(r"(?:parameter|param|arg_key|invoke|function)\Z")
_COUNTER = re.compile(r"(?:functions\.)?(?:call_?)?:?\d+")


class NamedReader(CallReader):
    """Reads one call, or the calls of a section."""

    def __init__(self, syntax: NamedCalls, sink: Sink, opener: str) -> None:
        super().__init__(sink, syntax.closers)
        self._syntax = syntax
        self._opener = opener
        self._section = opener in syntax.section
        self._led = opener == syntax.before_name  # whether what stands before a name was the opener
        self._calls = 0
        self._ended_at = 0
        self._behind_inner = False  # whether what closes the arguments has been looked for
        if self._section:
            self._step = self._between

    def recover(self, marker: str) -> None:
        """Behind a broken call its section goes on."""
        if self._section and marker in self._syntax.close:
            self._calls += 1
            self.status, self._step = Status.READING, self._between
        else:
            self.status = Status.DONE

    def _between(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """In a section: another call or the section's end."""
        place = skip_some(text, at, end)
        marker = marker_at(text, place, end, self._syntax.open + self._syntax.section_close, final)
        if place == end or marker is None:
            return wait(at)
        if marker in self._syntax.section_close:
            return self._done(place + len(marker))
        if marker:
            self._clear()
            self._sink.begin(base + place)
            self._led = marker == self._syntax.before_name
            self._step = self._header
            return place + len(marker)
        if self._calls:
            # What follows is not part of the section, which has lost its end.
            return self._done(at)
        return self._reject(place, "a call is expected")

    def _lead(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """A call that stands alone."""
        self._sink.begin(base + at - len(self._opener))
        self._step = self._header
        return at

    def _header(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Up to the arguments. Nothing of a header is taken until it is whole: it is short."""
        syntax = self._syntax
        place = skip_some(text, at, end)
        if syntax.before_name and not self._led:
            led = starts(text, place, end, syntax.before_name, final)
            if led is None:
                return wait(at)
            if not led:
                return self._reject(place, f"{syntax.before_name!r} is expected")
            place = skip_some(text, place + len(syntax.before_name), end)
        match = NAME.match(text, place, min(end, place + LONGEST_NAME))
        stop = match.end() if match else place
        if stop == end:
            return wait(at)
        if stop - place >= LONGEST_NAME:
            return self._reject(place, "a name is too long")
        name = text[place:stop]
        stop = skip_some(text, stop, end)
        if syntax.call_id and stop < end:
            led = starts(text, stop, end, syntax.call_id, final)
            if led is None:
                return wait(at)
            if led:
                match = NAME.match(text, stop + len(syntax.call_id), min(end, stop + LONGEST_NAME))
                found = match.end() if match else stop + len(syntax.call_id)
                self._id = text[stop + len(syntax.call_id) : found] or None
                stop = skip_some(text, found, end)
        if stop == end:
            return wait(at)
        separator = marker_at(text, stop, end, syntax.separators, final)
        if separator is None:
            return wait(at)
        if not separator and not (syntax.direct and text[stop] in "{`"):
            return self._reject(stop, "what follows the name is not its arguments")
        if not name and not separator:
            return self._reject(stop, "the call names no function", "no_name")
        self._settle_name(name)
        self._head()
        self._step, self._behind_inner = self._before_arguments, False
        return stop + len(separator)

    def _settle_name(self, name: str) -> None:
        self._name = name
        if not self._syntax.numbered:
            return
        if _COUNTER.fullmatch(name):
            # The model left the name out. If there is one tool, it can only mean that.
            tools = self._sink.tools
            names = tuple(tools.names) if tools is not None else ()
            self._id, self._name = name, names[0] if len(names) == 1 else ""
        elif match := _NUMBERED.fullmatch(name):
            self._name = match["name"]
            self._id = name if match["number"] else None

    def _before_arguments(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        at = skip(text, at, end)
        if at == end:
            return wait(at)
        expected = tuple(filter(None, (self._syntax.before_arguments, self._syntax.behind_arguments)))
        marker = marker_at(text, at, end, (*self._closers, *expected), final)
        if marker is None:
            return wait(at)
        if marker and marker == self._syntax.before_arguments:
            return at + len(marker)
        if marker:
            self._sink.arguments("{}")
            self._ended_at = base + at
            self._step = self._after
            return at
        if self._syntax.fenced and text[at] == "`" and not self._fence:
            return self._open_fence(text, at, end, final)
        self._begin_arguments(base + at, self._behind_arguments)
        return at

    def _behind_arguments(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        arguments = self._arguments
        if arguments is not None and arguments.error is not None and self._syntax.close:
            return self._reject(at, arguments.message, arguments.error)
        return self._end_broken(at, base)

    def _end_broken(self, at: int, base: int) -> int:
        self._ended_at = base + at
        self._step = self._after
        return at

    def _after(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind the arguments: the end of the code block, and the closing marker."""
        place = skip_some(text, at, end)
        if self._fence:
            closed = starts(text, place, end, "```", final)
            if closed is None:
                return wait(at)
            self._fence = False
            if closed:
                self._ended_at = base + place + 3
                return place + 3
        inner = self._syntax.behind_arguments
        if inner and not self._behind_inner:
            closed = starts(text, place, end, inner, final)
            if closed is None:
                return wait(at)
            self._behind_inner = True
            if closed:
                self._ended_at = base + place + len(inner)
                return place + len(inner)
        close = self._syntax.close
        if close:
            marker = marker_at(text, place, end, close, final)
            if marker is None:
                return wait(at)
            if marker:
                at = place + len(marker)
                self._ended_at = base + at
            else:
                self._sink.missing_close(self._ended_at)
        self._end_call(self._ended_at, alone=not self._section)
        self._calls += 1
        if not self._section:
            return self._done(at)
        self._step = self._between
        return at


class BodyReader(CallReader):
    """Reads one body."""

    def __init__(self, syntax: BodyCalls, sink: Sink, recipient: str) -> None:
        super().__init__(sink, syntax.close)
        self._marked = syntax.marked
        self._name = recipient.removeprefix(syntax.prefix)
        self._json_only = bool(syntax.prefix) and recipient.startswith(syntax.prefix)
        self._space: list[str] = []
        self._last = 0

    def _lead(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """The header has named the function: this is a call."""
        self._sink.begin(base + at)
        self._head()
        self._last = base + at
        self._step = self._first
        return at

    def _first(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """JSON begins with a brace, and a quote or a brace behind it."""
        place = skip_some(text, at, end)
        marker = marker_at(text, place, end, self._closers, final)
        if place == end or marker is None:
            return wait(at)
        if marker:
            self._sink.arguments("{}")
            return self._finish(base + at, place)
        # Functions take JSON; words as input are for the tools that have no such prefix (a browser, an interpreter).
        if self._json_only and text[place] != "{":
            return self._reject(place, "the body is not a JSON object", "invalid_json")
        if text[place] == "{":
            after = skip_some(text, place + 1, end)
            if after == end:
                return wait(at)
            # Code may begin with a brace as well. A JSON object goes on with a key or ends.
            if text[after] in '"}' or self._json_only:
                self._begin_arguments(base + place, self._behind)
                return place
        tag = _TAG.match(text, place, end)
        if tag is not None and tag.end() == end and not final:
            return wait(at)
        # Another family's call syntax in the body: as `input` it would be run with tags for arguments.
        if tag is not None and _PARAMETERS.search(tag.group()):
            return self._reject(place, "the body is neither JSON nor text but arguments in tags", "invalid_json")
        if not self._takes_input():
            return self._reject(place, "the body is not a JSON object, and the tool takes no 'input'", "invalid_json")
        self._sink.arguments('{"input": "')
        self._step = self._free
        return at

    def _takes_input(self) -> bool:
        """Whether plain text may become the argument `input`: not where the tool's arguments have other names."""
        tools = self._sink.tools
        parameters = tools.parameters(self._name or "") if tools is not None else None
        names = parameters.get("properties") if parameters is not None else None
        return not isinstance(names, Mapping) or not names or "input" in names

    def _free(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Words for a tool that reads no JSON. Whitespace before the end is not part of them."""
        place, closes = find_marker(text, at, end, self._closers, final)
        words = text[at:place].rstrip()
        if words:
            self._sink.arguments(escape("".join(self._space) + words))
            self._space.clear()
            self._last = base + at + len(words)
        if len(words) < place - at:
            self._space.append(text[at + len(words) : place])
        if not closes:
            return wait(place)
        self._sink.arguments('"}')
        return self._finish(self._last, place)

    def _behind(self, text: str, at: int, end: int, base: int, final: bool) -> int:
        """Behind the object nothing but a closing marker is expected."""
        place = skip_some(text, at, end)
        marker = marker_at(text, place, end, self._closers, final)
        if marker is None:
            return wait(at)
        if not marker and (self._marked or place < end):
            self._sink.missing_close(base + at)
        return self._finish(base + at, place if marker else at)

    def _end_broken(self, at: int, base: int) -> int:
        return self._finish(base + at, at)

    def _finish(self, offset: int, at: int) -> int:
        """The call ends at `offset`, and reading goes on at `at`."""
        self._end_call(offset, alone=True)
        return self._done(at)
