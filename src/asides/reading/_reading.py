"""The record `Reading`, and the rules by which it is made.

Evidence ranks, the first that speaks decides: an explicit option; the prompt; the server's own word (the end of the
prompt that it renders, then its chat template); a chat template or tokenizer that is given; the exact name; what
earlier replies showed; the nearest older version; the format. One exception: for a request that asks for no thinking,
what replies showed stands above the exact name, because many models think all the same.

Thinking that is asked off is believed only where a switch is known that turns it off. Then a stream begins in text and
a whole reply is undecided, so that a lone close is still honoured; else the reply begins where the model always does.

Where a start is a guess, or text that only a name or a format says, a stream may correct it (`Policies.retype`), so
that it ends with the parts that the whole reply has.

Text after something that the server has separated by itself is the answer, wherever output would begin: `splitter`
gives such text a parser without `start` and `prompt`. This is the only place that says so.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import count
from typing import Any, Literal, NamedTuple, Unpack

import msgspec

from .._engine.calls.ids import seed_of
from .._engine.format import HEADER, TEXT, THINKING, Format
from .._engine.parser import Opening, Parser, format_of, read_prompt
from .._engine.shortcut import OrdinaryCut, log, parse_ordinary, shortcut_of
from .._engine.tokens import TokenParser
from .._engine.vocabulary import vocabulary_of
from .._engine.whole import read_whole
from ..detect import Detection, detect
from ..detect._result import Finding, begin_of, start_of
from ..errors import UsageError
from ..families import Family, Switch, get_format, switch_of
from ..families._registry import registered
from ..message import Message
from ..policies import DEFAULTS, Policies, PolicyOptions, Start
from ..reply._splitter import Splitter, WholeSplitter
from ._seen import Seen

EvidenceKind = Literal["option", "prompt", "server", "template", "name", "seen", "near", "format"]
"""What decided: see the module for their order."""
TurnsOff = Literal["known", "none", "unknown"]
"""Whether thinking can be turned off: by a known value, by nothing, or nobody knows."""
_DIRECT = frozenset({"option", "prompt", "server", "template"})
"""Evidence of the very prompt that is answered."""


_STARTS: dict[Opening, Start] = {Opening(TEXT): "text", Opening(THINKING, fresh=True): "thinking"}
"""Where prompts mostly leave the model, and the policy that has the same meaning."""


class Begins(NamedTuple):
    """Where a reply begins."""

    start: Start | None
    """None: in the header of a message, which says by itself what follows."""
    sure: bool
    """False for a guess, which what is seen may correct."""
    reason: str
    """Why, in words."""

    def __str__(self) -> str:
        return f"{self.start or 'a header'}{'' if self.sure else ' (a guess)'}: {self.reason}"


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the server that will answer has said and shown, as far as somebody has asked it."""

    prompt_end: str | None = None
    """The end of the prompt that it renders for a request like this one."""
    template: Detection | None = None
    """What its chat template was found to write."""
    separates: bool = False
    """Whether it was seen to separate thinking by itself: then its text is the answer."""
    unseen: bool = False
    """Whether it has not answered yet, so that it may separate thinking: a start inside a thought is then a guess."""


def start_after(format: Format, prompt: str) -> Start | None:
    """The start that has the same meaning as a prompt; None where none has, as inside a header or a call.

    Examples:
        >>> from asides.reading import start_after
        >>> start_after(asides.get_format("qwen3"), "<|im_start|>assistant\\n<think>\\n")
        'thinking'
    """
    return _STARTS.get(read_prompt(format, prompt))


def _after_prompt(format: Format, policies: Policies) -> Policies:
    """The same policies without the prompt, where a start has its meaning: most prompts end in one of two places."""
    start = start_after(format, policies.prompt or "")
    return policies if start is None else policies.but(start=start, prompt=None)


class RowReader:
    """Reads whole outputs one after another, in the same way."""

    __slots__ = ("_policies", "cut", "format", "limit")

    def __init__(self, format: Format, policies: Policies) -> None:
        self.format: Format = format
        """How the outputs are written."""
        self._policies = policies
        shortcut = None if log.isEnabledFor(logging.DEBUG) else shortcut_of(format, policies)
        self.cut: Callable[[str], OrdinaryCut | None] = _never if shortcut is None else shortcut.cut
        """The cut of a text of the ordinary shape that is no longer than `limit`."""
        self.limit: int = policies.limit
        """How many characters may be held back: the policy `limit`."""

    def read(self, text: str, place: int = 0) -> tuple[Message, Format]:
        """What the machine makes of a text. `place` as in `Reading.parse_row`."""
        parser = read_whole(text, self.format, _seeded(self._policies, text, place))
        return parser.message, format_of(parser)


def _seeded(policies: Policies, text: str, place: int) -> Policies:
    """The same policies, with a seed of the text's own where none was chosen."""
    return policies if policies.seed is not None else policies.but(seed=seed_of(text, place))


def _never(text: str) -> None:
    """No cut: the machine must read."""


def _check_model(model: object) -> None:
    if not isinstance(model, str):
        raise UsageError(f"a model is given by its name, such as 'Qwen/Qwen3-8B', not {type(model).__name__}")


class Reading(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """How one reply is read. `Reading.of` makes it.

    Examples:
        >>> reading = asides.Reading.of("Qwen/Qwen3-4B-Thinking-2507")
        >>> reading.format.name, reading.evidence
        ('qwen3_thinking', 'name')
        >>> reading.parse("hm</think>Four.").text
        'Four.'
    """

    format: Format
    """How the model writes."""
    policies: Policies
    """The policies for a stream; `whole` has those for a whole reply."""
    sure: bool
    """Whether it is more than a guess where the reply begins."""
    evidence: EvidenceKind
    """What says where it begins."""
    reason: str
    """The same in words."""
    format_evidence: EvidenceKind = "format"
    """What the format is from; `format` where nothing is known, so that it is `auto`."""
    model: str = ""
    """Its name; empty where nobody gave one."""
    thinks: bool | None = None
    """Whether the model thinks; None where nothing shows it."""
    switch: Switch | None = None
    """How its thinking is switched."""

    @staticmethod
    def of(
        model: str | None = None,
        *,
        format: str | Format | None = None,
        tokenizer: Any = None,
        chat_template: str | os.PathLike[str] | None = None,
        prompt: str | None = None,
        server: ServerFacts | None = None,
        seen: Seen | None = None,
        think: bool | None = None,
        switch: str = "",
        policies: Policies = DEFAULTS,
    ) -> Reading:
        """How a reply of this model is read. Give all that you have; nothing is asked and no file but these is opened.

        `think`: whether the request asks for thinking, for none, or (None) for neither. `switch`: the template's
        keyword for it, where somebody has configured one. `format="auto"` counts as no format.
        """
        if model is not None:
            _check_model(model)
        if prompt is not None:
            policies = policies.but(prompt=prompt)
        template = server.template if server is not None else None
        source: Literal["server", "template"] = "server"
        if template is None and (tokenizer is not None or chat_template is not None):
            template, source = detect(model, tokenizer=tokenizer, chat_template=chat_template), "template"
        named = _named(model, registered()) if model else None
        found, format_evidence = _choose_format(format, template, source, named, seen)
        known = _switch_of(model, found)
        if known is None and named is not None and named.near:
            known = named.switch  # of the nearest older version: the row of its name is none, its format `auto`
        chosen = _choose_switch(switch, template, known)
        facts = _Given(found, format_evidence == "option", policies, server, template, source, named, seen, chosen)
        start, sure, evidence, reason = _find_start(facts, think)
        if evidence == "prompt":
            policies = _after_prompt(found, policies)
        # What the very prompt shows is said outright, or a lone close might correct it.
        elif evidence != "option" and (start != found.start or (sure and evidence in _DIRECT)):
            policies = policies.but(start=start)
        if policies.retype is None and policies.prompt is None:
            policies = policies.but(retype=_may_retype(facts, start or found.start, sure, evidence))
        return Reading(
            format=found,
            policies=policies,
            sure=sure,
            evidence=evidence,
            reason=reason,
            format_evidence=format_evidence,
            model=model or "",
            thinks=_thinks(template, named),
            switch=chosen,
        )

    @staticmethod
    def named(model: str, format: str | Format = "auto", policies: Policies = DEFAULTS) -> Reading:
        """The same as `of` where there is nothing but names: the library asks for it with every output."""
        _check_model(model)
        if policies.start is not None or policies.prompt is not None:
            return Reading.of(model, format=format, policies=policies)
        reading = _by_names(model, get_format(format), registered())
        if policies is DEFAULTS:
            return reading
        # What a name says of policies is the start, and whether what is seen may correct it.
        own = reading.policies
        retype = own.retype if policies.retype is None else policies.retype
        return msgspec.structs.replace(reading, policies=policies.but(start=own.start, retype=retype))

    @property
    def begins(self) -> Begins:
        """Where the reply begins, how sure that is, and why."""
        state = self.format.start
        if self.policies.prompt is not None:
            state = read_prompt(self.format, self.policies.prompt).state
        return Begins(self.policies.start or start_of(begin_of(state)), self.sure, self.reason)

    @property
    def may_learn(self) -> bool:
        """Whether a reply that is read so shows where others begin: not where a caller or a prompt chose its start."""
        return self.evidence not in ("option", "prompt")

    @property
    def turns_off(self) -> TurnsOff:
        """Whether the model's thinking can be turned off."""
        if self.switch is None:
            return "unknown"
        return "none" if self.switch.off is None else "known"

    @property
    def earlier_keywords(self) -> tuple[str, ...]:
        """The template's keywords about thoughts of earlier turns, which say nothing of where the reply begins."""
        from ..detect._from_name import find_earlier  # here, because only who asks a server needs it

        earlier = find_earlier(self.model, self.format)
        return () if earlier is None else tuple(earlier.keywords)

    @property
    def calls(self) -> bool:
        """Whether the reply may call."""
        return self.policies.calls

    @property
    def whole(self) -> Policies:
        """The policies for a reply that comes in one piece: a start in text that nothing direct shows is undecided."""
        policies = self.policies
        if policies.prompt is not None or (self.sure and self.evidence in _DIRECT):
            return policies
        if (policies.start or self.format.start) != TEXT:
            return policies
        return policies.but(start="undecided", retype=None)

    def but(self, **options: Unpack[PolicyOptions]) -> Reading:
        """The same reading with some of its policies changed."""
        # A start that is chosen later is no guess.
        if options.get("start") is not None:
            options.setdefault("retype", False)
        return msgspec.structs.replace(self, policies=self.policies.but(**options))

    def as_whole(self) -> Reading:
        """The reading of a whole reply, for those who make a parser of it as for a stream."""
        return msgspec.structs.replace(self, policies=self.whole)

    # What reads: the only makers of these.

    def parse(self, text: str, finish_reason: str | None = None) -> Message:
        """Take a whole output apart. `finish_reason`: what the server says of its end."""
        policies = self.whole
        message = parse_ordinary(text, self.format, policies)
        if message is None:
            return read_whole(text, self.format, policies, finish_reason).message
        return message if finish_reason is None else message.ended(finish_reason)

    def parse_row(self, text: str, place: int = 0) -> Message:
        """Take an output apart that may be read again: without a seed, ids depend on the text, and on its place.

        `place`: how many other outputs stand before it in the same row (the turns of a conversation, say).
        """
        policies = self.whole
        message = parse_ordinary(text, self.format, policies)
        return read_whole(text, self.format, _seeded(policies, text, place)).message if message is None else message

    def row_parser(self) -> Callable[[str], Message]:
        """What reads the outputs of one row, one after another, by `parse_row`. An empty one has no place."""
        places = count()
        return lambda text: self.parse_row(text, next(places) if text else 0)

    def parser(self, *, whole: bool = False) -> Parser:
        """A parser for a stream; with `whole`, one that reads a whole output as `parse` does."""
        return Parser(self.format, self.whole if whole else self.policies)

    def token_parser(
        self, tokenizer: Any, *, prompt_ids: Sequence[int] | None = None, whole: bool = False
    ) -> TokenParser:
        """A parser of ids. `prompt_ids` say where the reply begins, if no start was chosen."""
        policies = self.whole if whole else self.policies
        if prompt_ids is not None and self.evidence != "option":
            policies = policies.but(start=None, retype=False)
        return TokenParser(tokenizer, self.format, policies, prompt_ids=prompt_ids)

    def splitter(
        self,
        *,
        whole: bool = False,
        choices: int | None = None,
        keep: int = 0,
        shortcut: bool = False,
        is_first: Callable[[], bool] | None = None,
        on_parser: Callable[[Parser], None] | None = None,
        tokenizer: Any = None,
    ) -> Splitter:
        """What takes a server's reply apart, which may have separated thinking already. See `Splitter` for the options.

        `shortcut`: replies in one piece, of the ordinary shape, are read without a parser. `is_first` is asked whether
        a text that begins is the first thing of the output, where the splitter does not see all of it. `on_parser` is
        called with each parser that is made. `tokenizer`: text that comes with its ids is read by these.
        """
        make = partial(self._make_parser, self.whole if whole else self.policies, is_first)
        if on_parser is not None:
            make = partial(_reported, make, on_parser)
        ordinary = None
        if whole and shortcut:
            ordinary = partial(parse_ordinary, format=self.format, policies=self.whole)
        kind = WholeSplitter if whole and self.whole.retype else Splitter
        return kind(
            self.format,
            make,
            seed=self.policies.seed,
            choices=choices,
            parse_ordinary=ordinary,
            keep=keep,
            make_tokens=partial(self._make_token_parser, tokenizer, whole) if tokenizer is not None else None,
        )

    def _make_token_parser(self, tokenizer: Any, whole: bool, prompt_ids: Sequence[int] | None) -> TokenParser:
        if prompt_ids is not None:
            prompt = vocabulary_of(tokenizer).text(prompt_ids)
            # Without the header of the turn, what stands there may be of another one.
            if not any(header in prompt for header in self.format.assistant):
                prompt_ids = None
        return self.but(collect=False).token_parser(tokenizer, prompt_ids=prompt_ids, whole=whole)

    def _make_parser(self, policies: Policies, is_first: Callable[[], bool] | None, format: Format) -> Parser:
        """A parser for text of a reply: of the reading's own format, or of another after something separated."""
        if format is not self.format or (is_first is not None and not is_first()):
            start: Start | None = "text" if format.start == THINKING else None
            policies = policies.but(start=start, prompt=None, retype=False, collect=False)
        elif policies.collect:
            policies = policies.but(collect=False)
        return Parser(format, policies)

    def rows(self) -> RowReader:
        """What reads many whole outputs in this way."""
        return RowReader(self.format, self.whole)


def _reported(make: Callable[[Format], Parser], report: Callable[[Parser], None], format: Format) -> Parser:
    parser = make(format)
    report(parser)
    return parser


class _Given(NamedTuple):
    """All that is known when the start is chosen."""

    format: Format
    given: bool
    """Whether the caller has named the format."""
    policies: Policies
    server: ServerFacts | None
    template: Detection | None
    template_source: Literal["server", "template"]
    named: Finding | None
    seen: Seen | None
    switch: Switch | None


_Start = tuple[Start | None, bool, EvidenceKind, str]


def _find_start(facts: _Given, think: bool | None) -> _Start:
    """Where a reply begins, whether that is sure, what says so, and in words."""
    if facts.policies.start is not None:
        return facts.policies.start, True, "option", "it was chosen"
    if facts.policies.prompt is not None:
        return None, True, "prompt", "the end of the prompt shows it"
    if facts.format.start == HEADER:
        return None, True, "format", f"in {facts.format.name} the header of each message says what it is"
    off = think is False and facts.switch is not None and facts.switch.off is not None
    server = facts.server
    if server is not None and server.separates:
        return "text", False, "server", "the server separates thinking by itself, so its text is the answer"
    if server is not None and server.prompt_end is not None:
        from ..detect._from_prompt import begin_after  # here, because only a gateway knows such a prompt

        start = start_of(begin_after(facts.format, server.prompt_end))
        reason = f"the prompt that the server writes ends with {server.prompt_end[-32:]!r}"
        found: _Start | None = (start, True, "server", reason)
    else:
        found = _by_template(facts, think, off)
        if found is None and think is False:
            found = _by_replies(facts)
    found = found or _by_name(facts, off) or _by_replies(facts) or _by_version(facts, off) or _by_format(facts, off)
    if server is not None and server.unseen and (found[0] or facts.format.start) == THINKING:
        return found[0], False, found[2], f"{found[3]}; but the server may separate it by itself"
    return found


def _may_retype(facts: _Given, start: str | None, sure: bool, evidence: EvidenceKind) -> bool:
    """Whether a stream may correct where it began: a guess may; so may text that only a name or a format says."""
    if facts.server is not None and facts.server.separates:
        return False
    return not sure or (start == TEXT and evidence not in _DIRECT)


def _by_template(facts: _Given, think: bool | None, off: bool) -> _Start | None:
    template = facts.template
    if template is None or template.confidence != "known" or template.start is None:
        return None
    where = "the server's chat template" if facts.template_source == "server" else "the chat template"
    if off:
        return template.start_off or "text", False, facts.template_source, f"{where} has a switch that turns it off"
    start = template.start_on if think and template.start_on is not None else template.start
    return (
        start,
        True,
        facts.template_source,
        f"{where} {'opens' if start == 'thinking' else 'does not open'} a thought",
    )


def _by_name(facts: _Given, off: bool) -> _Start | None:
    named = facts.named
    if named is None or named.near or named.begin is None or named.formats == ("auto",):
        return None
    reason = named.reasons[0] if named.reasons else "its name says so"
    if off:
        return "text", False, "name", f"{reason}; thinking was turned off"
    return start_of(named.begin), True, "name", reason


def _by_replies(facts: _Given) -> _Start | None:
    seen = facts.seen
    if seen is None or seen.start is None or facts.given:
        return None
    began = "in a thought" if seen.start == "thinking" else "in text"
    return seen.start, False, "seen", f"earlier replies began {began}"


def _by_version(facts: _Given, off: bool) -> _Start | None:
    named = facts.named
    if named is None or named.begin is None or facts.given:
        return None
    evidence: EvidenceKind = "near" if named.near else "name"
    return ("text" if off else start_of(named.begin)), False, evidence, named.reasons[0]


def _by_format(facts: _Given, off: bool) -> _Start:
    format = facts.format
    if off and format.start == THINKING:
        return "text", False, "format", f"{format.name} begins in thinking, which was turned off"
    known = format.settle is None
    reason = f"{format.name} begins so" if known else "nothing is known of the model, so its markers will show it"
    return None, known, "format", reason


def _choose_format(
    given: str | Format | None,
    template: Detection | None,
    source: Literal["server", "template"],
    named: Finding | None,
    seen: Seen | None,
) -> tuple[Format, EvidenceKind]:
    """The format, and what it is from."""
    everything = get_format("auto")
    if given is not None and (found := get_format(given)) is not everything:
        return found, "option"
    if template is not None and template.format != "auto":
        return get_format(template.format), source
    if named is not None and named.formats and named.formats != ("auto",):
        if seen is not None and seen.foreign:
            return everything, "seen"
        return get_format(named.formats[0]), "name"
    return everything, "format"


def _switch_of(model: str | None, format: Format) -> Switch | None:
    if not model:  # then nothing is looked up, and what packages add need not be known
        return switch_of(format)
    from ..detect._from_name import find_switch  # here, because most who filter name no model

    return find_switch(model, format)


def _choose_switch(configured: str, template: Detection | None, known: Switch | None) -> Switch | None:
    """The keyword that is configured, else the one of the template, else the family's.

    Where it is the family's too, the card's values count: the card has efforts, and the value for no thinking.
    """
    keyword = configured or (template.switch if template is not None else known and known.keyword) or ""
    if known is not None and known.keyword == keyword:
        return known
    switch = Switch.named(keyword)
    if switch is None or template is None or template.switch != keyword:
        return switch
    return msgspec.structs.replace(switch, on=template.on, off=template.off)


def _thinks(template: Detection | None, named: Finding | None) -> bool | None:
    if template is not None and template.thinks is not None:
        return template.thinks
    return named.thinks if named is not None else None


@lru_cache(maxsize=256)
def _by_names(model: str, format: Format, added: tuple[Family, ...]) -> Reading:
    return Reading.of(model, format=format)


@lru_cache(maxsize=4096)
def _named(name: str, added: tuple[Family, ...]) -> Finding:
    """What a name says. `added`: the families of users, because a new one may know the name."""
    from ..detect._from_name import probe  # here, because most who filter name no model

    return probe(name)
