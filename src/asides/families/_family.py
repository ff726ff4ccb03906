"""What a family's card is: frozen records that hold everything known about one family of models.

Every module of this package that declares a `FAMILY` is a card. It holds the family's formats, the names of its models,
how their thinking is switched, which of its markers other people write too, and which renderers write its prompts.
`auto`, detection, the switches of `asides run` and of the gateway, `asides formats` and the table of formats are
derived from the cards, so that a fact about a model is written once. Users declare cards of their own in the same way:

    from asides import Format, register
    from asides.families import Family, Model, Switch

    ZED = Format.tags("<zed>", "</zed>", name="zed", stops=("<|zed_end|>",))
    register(
        Family(
            name="Zed",
            formats=(ZED,),
            models=(Model(r"zed-?{}", "zed", True, versions="1 1.5"),),
            switch=Switch(keyword="enable_thinking"),
        )
    )
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec

from .._engine.calls.syntax import CallSyntax
from .._engine.format import Format
from .._engine.tag_markers import TagRule

EFFORT = "reasoning_effort"
"""The keyword of the effort in most templates."""
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
"""The efforts that requests name, weakest first."""
_OTHER_EFFORTS = {"ultra": "max"}
"""Those that few programs name, by what they are to all others."""
UNRANKED = 100
"""The rank of a family that is like most others."""


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """How a chat template is asked to think, to think more or less, or not to think: its keywords and their values.

    The keywords go into a request's `chat_template_kwargs`. Where one keyword does both, it is named twice:
    `Switch(keyword="reasoning_effort", on="high", off="no_think", efforts=("low", "high"))`.
    """

    keyword: str = "enable_thinking"
    """The keyword that turns thinking on and off."""
    on: Any = True
    """Its value for thinking; None: left out, because the model thinks anyway."""
    off: Any = False
    """Its value for no thinking; None: left out, because nothing turns it off."""
    effort: str = EFFORT
    """The keyword of the effort."""
    efforts: tuple[str, ...] = ()
    """The efforts that the template takes, weakest first; none where it reads no effort."""

    @staticmethod
    def named(keyword: str) -> Switch | None:
        """A switch of which only the keyword is known; None where it is empty."""
        if keyword != EFFORT:
            return Switch(keyword=keyword) if keyword else None
        return Switch(keyword=EFFORT, on=None, off="none", efforts=EFFORTS)

    def __str__(self) -> str:
        """For a person: the keyword, its values, the efforts."""
        if not self.keyword:
            return "none: it always thinks"
        meant = ((self.on, "thinks"), (self.off, "does not"))
        values = [f"{value!r} {what}" for value, what in meant if value is not None]
        if self.efforts:
            values.append(("" if self.effort == self.keyword else f"{self.effort} ") + "|".join(self.efforts))
        return f"{self.keyword}: {', '.join(values)}"

    def arguments(self, think: bool | None, effort: str | None = None) -> dict[str, Any]:
        """The template's arguments for a request that asks for thinking, for none, or (None) for neither."""
        value = None if think is None else self.on if think else self.off
        found = {} if value is None else {self.keyword: value}
        if think is False and self.off is None and self.efforts:
            found[self.effort] = self.efforts[0]  # what nothing turns off can be kept short
        elif think is not False and effort is not None and (nearest := self.nearest(effort)):
            found[self.effort] = nearest
        return found

    @property
    def requestable(self) -> tuple[str, ...]:
        """The efforts that a request may name; empty where the template takes none, so that any may pass.

        `none` is one of them where thinking can be turned off.
        """
        named = (self.on,) if self.keyword == EFFORT and self.on in EFFORTS else ()
        efforts = (*self.efforts, *(each for each in named if each not in self.efforts))
        return (*(("none",) if self.off is not None else ()), *efforts) if efforts else ()

    def nearest(self, effort: str) -> str:
        """The effort that the template takes for one that was asked for, the stronger of two; empty: none fits."""
        return nearest_effort(effort, self.efforts)


NO_SWITCH = Switch(keyword="", on=None, off=None)
"""For the row of a model whose template ignores the switch of its format: nothing turns its thinking off."""


def nearest_effort(effort: str, known: Collection[str]) -> str:
    """The effort among those that a template or an API takes for one that was asked for: see `Switch.nearest`."""
    effort = effort if effort in known else _OTHER_EFFORTS.get(effort, effort)
    # `none` is no weak effort, and names that are on no ladder cannot be compared.
    steps = [each for each in known if each in EFFORTS]
    if effort in known or effort not in EFFORTS or not steps:
        return effort if effort in known else ""
    wanted = EFFORTS.index(effort)
    return min(steps, key=lambda each: (abs(EFFORTS.index(each) - wanted), -EFFORTS.index(each)))


class EarlierThinking(msgspec.Struct, frozen=True, kw_only=True):
    """When a model wants the thoughts of all its earlier turns back, and not only those before calls.

    Every model wants the latter. For the others a template or a server's API mostly has a keyword:
    `EarlierThinking(keywords={"preserve_thinking": True})`.
    """

    with_tools: bool = False
    """Whether a request with tools must have a thought in every message of the assistant, be it an empty one."""
    keywords: Mapping[str, Any] = {}
    """Keywords of `chat_template_kwargs`, or of a request's `thinking`, each with the value that keeps all thoughts."""
    default: bool = False
    """Whether all are kept where a request has none of the keywords."""

    def wants_all(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a request with these arguments wants all of them back."""
        named = [arguments[keyword] == value for keyword, value in self.keywords.items() if keyword in arguments]
        return any(named) if named else self.default


class Model(msgspec.Struct, frozen=True):
    """What the names of some models look like, and what is known of these models.

    Names are compared in lower case, with hyphens for underscores and spaces. A row is added by looking at the model's
    own chat template.
    """

    pattern: str
    """A regular expression that is searched for. `{}` in it stands for the version, which must then be one of
    `versions`: a newer version of a known family may write quite differently, so no row speaks for it."""
    format: str
    """The name of the format that they write, of this family or another; `auto` where none is known."""
    thinks: bool | None
    """Whether they think; None where some do."""
    versions: str = ""
    """The versions that the row is for, separated by spaces."""
    who: str = ""
    """What they are called, where that is more than a family and a version."""
    start: Literal["text", "thinking"] | None = None
    """Where their output begins, if not where the format says."""
    line: str = ""
    """Their own family's name, where they are not of the card's: tunes, and makers that took over a format."""
    switch: Switch | None = None
    """How their thinking is switched, if not as the format's; `NO_SWITCH` where nothing does."""
    earlier: EarlierThinking | None = None
    """When they want the thoughts of all earlier turns back; None: never, those before calls apart."""


class RendererEntry(msgspec.Struct, frozen=True):
    """A renderer: its class in `asides.render`, how it writes, and the options that its name stands for."""

    cls: str
    template: str
    """All messages, in Jinja; `asides.render` says what it is given."""
    options: Mapping[str, Any] = {}


class MarkerIds(msgspec.Struct, frozen=True):
    """The ids that one tokenizer has for markers. What it has no token for is not here: it is spelled out."""

    formats: tuple[str, ...]
    """The formats of the models that have this tokenizer."""
    ids: Mapping[str, int]
    """By marker."""


class Family(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything that is known about one family of models.

    Examples:
        >>> zed = asides.Format.tags("<zed>", "</zed>", name="zed")
        >>> from asides.families import Family, Model
        >>> family = Family(name="Zed", formats=(zed,), models=(Model(r"zed-?{}", "zed", True, versions="1 2"),))
        >>> [model.format for model in family.models]
        ['zed']
    """

    name: str
    """The family's name as people write it: `Qwen`, `gpt-oss`."""
    formats: tuple[Format, ...] = ()
    """How its models write. Where several fit equally well, the first is the likeliest."""
    models: tuple[Model, ...] = ()
    """The names of its models. The first row that fits decides, so the particular stands before the general."""
    base: bool = False
    """Whether models of other families are made from this one's and carry its name too
    (`DeepSeek-R1-Distill-Qwen`): its rows are tried last."""
    switch: Switch | Mapping[str, Switch] | None = None
    """How thinking is switched, for all formats or by format; None where the templates read no keyword."""
    plain: Mapping[str, str] = {}
    """Markers that are not distinctive, each with the reason: words, common tags, another family's. `auto` leaves them
    out."""
    plain_calls: tuple[CallSyntax, ...] = ()
    """Call syntaxes that `auto` leaves out though their openers are distinctive, because others stand behind those."""
    tags: Mapping[str, TagRule] = {}
    """Markers that are tags of prompts: in `auto` they have other spellings. A weak one counts though it is plain."""
    decisive: Format | None = None
    """The format with which `auto` goes on as soon as it meets a marker of it, because nobody else writes those
    markers. None: the pairs around thinking, stops, wrappers and calls of all formats take part one by one."""
    rank: int = UNRANKED
    """Where formats of several families fit equally well, those of the lower rank come first: more people know them."""
    generic: bool = False
    """Whether these are formats of no family. Their names may be written anywhere in the code."""
    detectable: bool = True
    """Whether a model's tokens or template can speak for these formats."""
    renderers: Mapping[str, RendererEntry] = {}
    """The renderers of `asides.render` that write its prompts, by name."""
    marker_ids: Mapping[str, MarkerIds] = {}
    """The ids of its markers, by the name of the tokenizer, for each that was looked at."""

    def switch_of(self, format: str) -> Switch | None:
        """How thinking is switched for models that write this format."""
        return self.switch.get(format) if isinstance(self.switch, Mapping) else self.switch

    def rows(self) -> tuple[Model, ...]:
        """The rows of its models, each with the name of the family that it is of."""
        return tuple(msgspec.structs.replace(row, line=row.line or self.name) for row in self.models)
