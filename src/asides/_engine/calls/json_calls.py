"""Calls written as JSON: an object with a name and arguments, a list of such, or objects in a row. Data only.

How they are read is in `json_reader.py`, which is loaded when a call is met.
"""

from __future__ import annotations

from .reader import Reader, Sink
from .steps import skip_some, starts
from .syntax import CallSyntax


class JsonCalls(CallSyntax, frozen=True, kw_only=True):
    """`{"name": "f", "arguments": {...}}`, alone, in a row or in a list."""

    names: tuple[str, ...] = ("name",)
    """Keys that hold the function's name."""
    arguments: tuple[str, ...] = ("arguments", "parameters")
    """Keys that hold the arguments."""
    ids: tuple[str, ...] = ("id", "tool_call_id")
    """Keys that hold the call's id."""
    listed: bool = False
    """Whether the family writes its calls as one list. Either is read; what we write for others has to choose."""
    keyed: bool = False
    """Whether the object's one key is the name and its value the arguments: `{"f": {...}}`."""
    separators: str = ",;"
    """What may stand between objects in a row."""
    fenced: bool = False
    """Whether the family writes the JSON in a fenced code block."""
    fenced_behind_prose: bool = False
    """Whether a code block may be a call behind prose too, where others write examples so."""
    pseudo: tuple[str, ...] = ()
    """Names that stand for calling nothing; a tool that was given may still be called so."""
    lead: str = ""
    """A further marker that may stand between the opener and the JSON."""

    @property
    def may_be_fenced(self) -> bool:
        """Whether a fenced code block is read: models put one behind a marker too, where no family writes it."""
        return self.fenced or (bool(self.open) and not self.bare)

    @property
    def bare_starts(self) -> tuple[str, ...]:
        """An object or a list; the fence of a code block where the family writes calls in one."""
        return ("{", "[", "```") if self.fenced_behind_prose else ("{", "[")

    def sniff(self, text: str, at: int, end: int, final: bool) -> bool | None:
        """A brace, or a bracket with a brace in it."""
        at = skip_some(text, at, end)
        if self.lead and at < end:
            led = starts(text, at, end, self.lead, final)
            if led is None:
                return None
            at = skip_some(text, at + len(self.lead), end) if led else at
        if at == end:
            return True if final else None
        character = text[at]
        if character == "[":
            after = skip_some(text, at + 1, end)
            if after == end:
                return True if final else None
            return text[after] in "{]"
        if character == "{":
            return True
        if any(opener.endswith("[") for opener in self.open) and character == "]":
            return True
        return starts(text, at, end, "```", final) if self.may_be_fenced else False

    def reader(self, sink: Sink, opener: str) -> Reader:
        """A reader for the objects."""
        from .json_reader import JsonReader

        return JsonReader(self, sink, opener)
