"""What a format is: frozen data. States, the markers legal in each and where each leads, and the call syntaxes.

A format answers three questions: which markers act in a text and in thinking (`states`: marker -> state it leads to),
in which state an output starts, and how calls are written (`calls`). Headers are states too, with a `Header` that says
which channel means what. Everything else is what one family does and others do not, each a field with its reason.
Knows nothing of reading. A family that differs from another only by its markers differs only by data here, and is made
from it with `but`.

    Format.tags("<think>", "</think>", name="mine", stops=("<|end|>",))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..errors import UsageError
from ..policies import CallsInThinking, Policies
from .calls.syntax import CallSyntax
from .states import END as END
from .states import HEADER as HEADER
from .states import OUTSIDE as OUTSIDE
from .states import TEXT as TEXT
from .states import THINKING as THINKING
from .states import TO as TO
from .states import BareHeader as BareHeader
from .states import Header as Header
from .states import State as State
from .states import States as States
from .suffixes import split_suffix
from .tag_markers import TagRule


class Format(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """How one model family writes its parts.

    Examples:
        >>> plan = asides.Format.tags("<plan>", "</plan>", name="plan")
        >>> asides.parse("<plan>first this</plan>Done.", plan).thinking
        'first this'
    """

    name: str
    """The canonical name."""
    source: str = ""
    """Where the facts come from."""
    aliases: tuple[str, ...] = ()
    """Other names with the same start state and the same call syntax."""
    start: State = TEXT
    """Where output begins when neither prompt nor caller says otherwise."""
    states: States
    """For every state, the markers that act in it and where each leads."""
    calls: tuple[CallSyntax, ...] = ()
    """How calls are written; where several share an opener, the body's first characters decide."""
    calls_in_thinking: CallsInThinking = "resolve"
    """What a call inside open thinking is."""
    calls_in_thinking_ids: CallsInThinking | None = None
    """The same where ids are read and every opener of a call is a token, which nobody writes in a draft."""
    behind_calls: frozenset[str] = frozenset()
    """Markers that may follow calls inside open thinking without making them drafts, as a stop marker may."""
    ignore_case: bool = False
    """Whether markers match whatever their ASCII case."""
    attributes: bool = False
    """Whether an opener such as `<think>` may carry attributes: `<think id="1">`."""
    tag_rules: Mapping[str, TagRule] = {}
    """Markers that are tags with other spellings: any case, attributes, but not where the same stands in code."""
    ignored: tuple[str, ...] = ()
    """Markers that stand around words of a text or a thought and mean nothing to a reader (citations): left out, the
    words stay. One that ends in `>` may say more before it: `</co:>` is also `</co: 0:[1]>`."""
    strays: tuple[str, ...] = ()
    """Tokens of the family that have no business in a text: left out there, with a notice."""
    partial: frozenset[str] = frozenset()
    """Markers that lack a part which the server or the model has left out: they act, with a notice."""
    foreign: bool = True
    """Whether a marker of another family that is left in a text gives a notice (see `foreign.py`)."""
    leading: frozenset[str] = frozenset()
    """Openers that act only before any text (Granite's sentences)."""
    plain: Mapping[str, str] = {}
    """Markers that are also words or common tags of everybody's, each with the reason: `auto` leaves them out."""
    header: Header | None = None
    """How headers are read, for formats that have them."""
    goes_on: frozenset[str] = frozenset()
    """Stop markers that do not end the turn: what closes a call, what separates messages."""
    last_stops: tuple[str, ...] = ()
    """Markers that are also common tags, or end only a message elsewhere: stops if they are an output's last thing."""
    documents: bool = False
    """Whether an output that begins as one JSON value or one element is a document, in which markers are words."""
    other_turns: tuple[str, ...] = ()
    """What the template writes before a message of the user, the system, a tool, or the assistant's next one. Directly
    after a stop marker it says that the turn is over; where messages have headers, only one of another role does."""
    other_turns_after: Mapping[str, tuple[str, ...]] = {}
    """The same for each stop marker, for `auto` alone: only the headers of the families whose stop it is count."""
    assistant: tuple[str, ...] = ()
    """What opens the assistant's turn in a prompt; the start state is read off what follows the last one."""
    prompt_markers: tuple[str, ...] = ()
    """Markers that stand in prompts alone, around the list of tools for example. They show whose template it is."""
    suffixed: Callable[[str], Format] | None = None
    """For families whose checkpoints each put a suffix of their own to every tag (`<think:6124c78e>`): the same format
    with a suffix. This one then takes any; the first that it meets decides (see `suffixes.py`)."""
    settle: Callable[[str | CallSyntax], Format] | None = None
    """For `auto` alone: the format to go on with after this marker, or this call syntax, was met."""

    @classmethod
    def tags(
        cls,
        open: str | tuple[str, ...],
        close: str | tuple[str, ...],
        *,
        stops: tuple[str, ...] = (),
        wrappers: tuple[str, ...] = (),
        name: str = "",
        **fields: Any,
    ) -> Format:
        """A format that puts thinking between two markers.

        `stops` end the turn. `wrappers` stand around the answer and mean nothing (`<answer>`, `</answer>`).
        """
        opens = (open,) if isinstance(open, str) else open
        closes = (close,) if isinstance(close, str) else close
        ends: dict[str, State] = dict.fromkeys(stops, END)
        around: dict[str, State] = dict.fromkeys(wrappers, TEXT)
        states: States = {
            TEXT: {**dict.fromkeys(opens, THINKING), **around, **ends},
            THINKING: {**dict.fromkeys(closes, TEXT), **ends},
        }
        format = cls(name=name or (opens + closes)[0], states=states, **fields)
        format.check()
        return format

    def check(self) -> None:
        """Raise a `UsageError` if the markers could not be told apart."""
        markers = [*self.ignored, *self.strays, *(marker for state in self.states.values() for marker in state)]
        markers += [marker for syntax in self.calls for marker in syntax.openers + syntax.closers]
        insides = "\0".join(marker[1:-1] for marker in markers)
        for marker in markers:
            if not marker.strip():
                raise UsageError(f"{marker!r} cannot be a marker: it is blank")
            if marker in insides:  # it would act before the other is whole
                other = next((other for other in markers if marker in other[1:-1]), "")
                if other:
                    raise UsageError(f"{marker!r} cannot be a marker: it stands inside the marker {other!r}")
            if self.attributes and marker.startswith("<") and any(map(str.isspace, marker)):
                raise UsageError(f"{marker!r} cannot be a marker of a format with attributes: it holds whitespace")

    def __repr__(self) -> str:
        """Its name: all that it holds would fill pages, and stand in whatever holds a format."""
        return f"<Format {self.name!r}>"

    def for_tokens(self, tokens: Iterable[str]) -> Format:
        """The same format with the suffix that a tokenizer's added tokens have, where it allows one."""
        if self.suffixed is not None:
            own = {marker for state in self.states.values() for marker in state}
            for plain, suffix in map(split_suffix, tokens):
                if suffix and plain in own:
                    return self.suffixed(suffix)
        return self

    def structural_tag(
        self, tools: Sequence[Mapping[str, Any]], *, start: Literal["text", "thinking"] | None = None
    ) -> dict[str, Any]:
        """What an output of this format may be, for xgrammar: a structural tag, from the same data that reads it.

        `tools` are OpenAI's definitions, or those that name `input_schema`. `start` is where the output starts, if the
        prompt opens or closes thinking other than the format says. Raises a `UsageError` where the calls of the
        format, or a tool's schema, cannot be said in a structural tag.
        """
        from .constraints.output import Outline, structural_tag

        fields = {name: getattr(self, name) for name in Outline.__struct_fields__}
        return structural_tag(Outline(**(fields | {"start": start or self.start})), tools)

    def but(self, **changes: Any) -> Format:
        """The same format with some fields changed. Aliases are never inherited."""
        return msgspec.structs.replace(self, **{"aliases": (), **changes})


def thinking_pair(format: Format) -> tuple[str, str]:
    """The first pair of markers around thoughts; empty where a header says what is one, or where none is known yet."""
    opening = [marker for marker, target in format.states.get(TEXT, {}).items() if target == THINKING]
    closing = [marker for marker, target in format.states.get(THINKING, {}).items() if target == TEXT]
    return (opening[0], closing[0]) if opening and closing and format.header is None else ("", "")


def _find_nothing(name: str) -> Format:
    raise LookupError(f"no family says what {name!r} is")  # pragma: no cover - the package itself sets another


_find: Callable[[str], Format] = _find_nothing


def find_format(format: str | Format) -> Format:
    """The format of a name, or the format itself. Names are the families' business (`look_up_with`)."""
    return format if isinstance(format, Format) else _find(format)


def look_up_with(find: Callable[[str], Format]) -> None:
    """From here on names are looked up with this function."""
    global _find
    _find = find


ReadModel = Callable[[str, "str | Format", Policies], tuple[Format, Policies]]
"""How output of the model of this name is read, with what the caller has chosen."""


def _read_nothing(model: str, format: str | Format, policies: Policies) -> tuple[Format, Policies]:
    raise LookupError(f"nobody says how {model!r} writes")  # pragma: no cover - the package itself sets another


_read_model: ReadModel = _read_nothing


def read_model(model: str, format: str | Format, policies: Policies) -> tuple[Format, Policies]:
    """The format and the policies for a model's output. Models are known above the engine (`read_models_with`)."""
    return _read_model(model, format, policies)


def read_models_with(read: ReadModel) -> None:
    """From here on names of models are looked up with this function."""
    global _read_model
    _read_model = read
