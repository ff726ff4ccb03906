"""What detection hands back, and what its sources hand to it. Data only."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from .._engine.format import HEADER, THINKING, Format, State
from ..families._family import Switch

Start = Literal["text", "thinking"]
Confidence = Literal["known", "near", "guess"]
"""How well it is known where output begins: from the model itself, from the nearest older version, or from the format
alone."""
Source = Literal["prompt", "template", "tokenizer", "name"]


Begin = Literal["text", "thinking", "header"]
"""Where output begins: a `Start`, or the header of a message, which a parser reads by itself."""


BEGIN_NAMES: dict[Begin, str] = {"text": "text", "thinking": "thinking", "header": "a header"}
"""The same for a person."""


def begin_of(state: State) -> Begin:
    """What begins in a state of the engine."""
    return "header" if state == HEADER else "thinking" if state == THINKING else "text"


def own_begin(format: Format, thinks: bool | None) -> Begin:
    """Where output begins by the format alone. A model that does not think does not begin in thinking."""
    return "text" if thinks is False and format.start == THINKING else begin_of(format.start)


def start_of(begin: Begin) -> Start | None:
    """The `start` of a parser."""
    return None if begin == "header" else begin


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """What a model speaks, and why we think so.

    Examples:
        >>> found = asides.detect("Qwen/Qwen3-8B")
        >>> found.format, found.thinks, found.start
        ('qwen3', True, 'text')
    """

    format: str | Format
    """A name, `auto` if nothing is known; for markers never seen before, a format that was made for them."""
    thinks: bool | None
    """Whether the model thinks; None where nothing shows it."""
    start: Start | None
    """Where output begins after the generation prompt, with nothing switched. None where it begins in the header of a
    message, as in harmony: the header then says what the message is, and no `start` must be given."""
    confidence: Confidence = "guess"
    """How well `start` is known: `known`, `near` (as the nearest older version of the model begins), or a `guess`."""
    open: str = ""
    """The marker that opens thinking; empty where none does."""
    close: str = ""
    """The marker that closes it."""
    open_id: int | None = None
    """The opener's token id, where it is one token."""
    close_id: int | None = None
    """The closer's token id, where it is one token."""
    open_is_token: bool | None = None
    """Whether the opener is one token; None where no tokenizer was seen."""
    close_is_token: bool | None = None
    """Whether the closer is one token."""
    tokens: dict[str, int] = {}
    """Every token that is a marker of the format, or stands in one."""
    switch: str | None = None
    """The template's keyword that switches thinking, such as `enable_thinking`."""
    on: Any = None
    """The switch's value that asks for thinking."""
    off: Any = None
    """The switch's value that asks for none."""
    start_on: Start | None = None
    """Where output begins with the switch on."""
    start_off: Start | None = None
    """Where output begins with the switch off."""
    field: str | None = None
    """The field of a message in which the template looks for thoughts, such as `reasoning_content`."""
    framing: tuple[str, str] | None = None
    """The whitespace that the template itself writes before and behind such a thought."""
    equals: tuple[str, ...] = ()
    """Other formats that fit everything seen as well; with `auto`, those that it may turn out to be."""
    reasons: tuple[str, ...] = ()
    """What was seen, in words, the most direct first."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data. A format made for unknown markers is given by its name and its two markers."""
        values = msgspec.structs.asdict(self)
        if isinstance(self.format, Format):
            values["format"] = {"name": self.format.name, "open": self.open, "close": self.close}
        values["equals"] = list(self.equals)
        values["framing"] = list(self.framing) if self.framing is not None else None
        values["reasons"] = list(self.reasons)
        return values


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one source says."""

    source: Source
    formats: tuple[str | Format, ...] = ()
    """The formats that fit, all equally well, the likeliest first."""
    thinks: bool | None = None
    begin: Begin | None = None
    """Where output begins; None where this source does not know."""
    reasons: tuple[str, ...] = ()
    switch: Switch | None = None
    """How thinking is switched, where the name of the model decides it."""
    near: str = ""
    """The known version that this one is taken to begin like, where the version of the name is not known."""
    details: dict[str, Any] = {}
    """Fields of `Detection` that only this source can fill."""
