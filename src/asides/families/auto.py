"""`auto`: no family at first, settled step by step by what is met.

It holds the distinctive markers of the other families (`auto_markers.py` is made from them): no sentences, no bare JSON
or Python, no wrappers that are also common tags. The first thinking marker settles how thinking is written, the first
call how calls are.
"""

from __future__ import annotations

from functools import cache, partial

from msgspec.structs import replace

from .._engine.calls.syntax import CallSyntax
from .._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Format, Header, State, States
from .._engine.tag_markers import TagRule
from . import other_syntaxes as other
from . import tagged_syntaxes as tagged
from .auto_markers import ASSISTANT, PAIRS, STOPS, STRAYS, WRAPPERS
from .cohere import COHERE_COMMAND3
from .gemma import GEMMA4
from .generic import THINKING_TAGS, WEAK_TAGS
from .harmony import HARMONY
from .inkling import INKLING
from .kimi import KIMI_K3
from .lfm import LFM2
from .muse import MUSE
from .solar import SOLAR_OPEN

WHOLE = (COHERE_COMMAND3, GEMMA4, INKLING, KIMI_K3, SOLAR_OPEN)
"""Families whose markers tell the whole format at once. Harmony and Muse share markers; headers tell them apart."""
WEAK = tuple((f"<{name}>", f"</{name}>") for name in WEAK_TAGS)
"""Pairs that count only where output begins."""

TAG_RULES = {
    **{marker: TagRule() for name in THINKING_TAGS for marker in (f"<{name}>", f"</{name}>")},
    # Types and lists have these names in code, in lower case too: `vec<thought>`.
    **{f"<{name}>": TagRule(glued=False) for name in ("thought", "reasoning")},
    **{marker: TagRule(weak=True) for pair in WEAK for marker in pair},
}
"""Which tags have other spellings: any case, attributes."""

_DSML = replace(
    tagged.DSML_V32,
    section=tagged.DSML_V32.section + tagged.DSML_V4.section,
    section_close=tagged.DSML_V32.section_close + tagged.DSML_V4.section_close,
)
"""Either version: an invoke without its block does not tell which."""

SYNTAXES = (
    other.HERMES,
    tagged.QWEN_XML,
    tagged.GLM,
    other.GRANITE,
    other.TOOL_CALLS_LIST,
    tagged.hunyuan_keyed(""),
    tagged.hunyuan_keyed(":opensource"),
    tagged.SEED_XML,
    replace(tagged.MINIMAX_M2, open=(), close=()),
    tagged.MINIMAX_M3,
    replace(tagged.DOTS_XML, open=(), close=()),
    other.DOTS_JSON,
    tagged.MINICPM,
    _DSML,
    tagged.STEPTML,
    tagged.ATEM,
    tagged.KIMI_K3,
    other.LONGCAT,
    other.APERTUS,
    other.COHERE,
    other.GRANITE_20B,
    other.INTERNLM,
    replace(other.LLAMA3_JSON, bare=False),
    replace(other.PYTHONIC, bare=False),
    replace(other.GIGACHAT, open=("<|function_call|>",)),
    other.INKLING,
    other.NEMOTRON,
    other.MISTRAL_NAMED,
    other.MISTRAL_LIST,
    other.KIMI_K2,
    other.DEEPSEEK_V3,
    other.DEEPSEEK_V31,
    *LFM2.calls,
    other.OLMO3,
    other.GEMMA4,
    other.FUNCTIONGEMMA,
)
"""Every call syntax with openers of its own. Where several share one, the body's first characters decide."""


def _merge(*formats: Format) -> dict[State, dict[str, State]]:
    """The markers of several formats together; the first to have one says where it leads."""
    states: dict[State, dict[str, State]] = {TEXT: {}, THINKING: {}, HEADER: {}}
    for format in formats:
        for state, markers in format.states.items():
            for marker, target in markers.items():
                if marker not in format.plain:
                    states[state].setdefault(marker, target)
    return states


def _headers(*formats: Format) -> Header:
    """The header of the first, with the recipients of all."""
    headers = [format.header for format in formats if format.header is not None]
    recipients = {name: state for header in headers for name, state in header.recipients.items()}
    return replace(headers[0], recipients=recipients)


def _settle_channel(met: str | CallSyntax) -> Format:
    return HARMONY if met == "<|channel|>" else MESSAGES


MESSAGES = MUSE.but(
    name="auto",
    states=_merge(MUSE, HARMONY),
    header=replace(_headers(HARMONY, MUSE), calls=()),
    settle=_settle_channel,
)
"""After a header without a channel: Muse, unless a channel shows that it is Harmony after all."""


@cache  # tables are kept for each format object, so the same settling must give the same object
def _pair(opener: str, closer: str, syntax: CallSyntax | None) -> Format:
    """Thinking is settled on one pair of markers; calls perhaps too."""
    return Format.tags(
        opener,
        closer,
        name="auto",
        stops=STOPS,
        wrappers=WRAPPERS,
        strays=STRAYS,
        calls=SYNTAXES if syntax is None else (syntax,),
        assistant=ASSISTANT,
        tag_rules={marker: TAG_RULES[marker] for marker in (opener, closer) if marker in TAG_RULES},
        settle=partial(_settle_call, opener, closer) if syntax is None else None,
    )


def _settle_call(opener: str, closer: str, met: str | CallSyntax) -> Format:
    return _pair(opener, closer, None if isinstance(met, str) else met)


@cache
def _families() -> dict[str, Format | tuple[str, str]]:
    """For every marker that tells how thinking is written: the pair, or the whole format."""
    found: dict[str, Format | tuple[str, str]] = {}
    for pair in PAIRS + WEAK:
        found.update(dict.fromkeys(pair, pair))
    for family in WHOLE:
        for markers in family.states.values():
            for marker, target in markers.items():
                if target not in (END, OUTSIDE):
                    found.setdefault(marker, family)
    found["<|channel|>"] = HARMONY
    found["<|message|>"] = MESSAGES
    return found


@cache
def _any(syntax: CallSyntax | None) -> Format:
    """Thinking is not settled; calls perhaps."""
    pairs = [Format.tags(opener, closer) for opener, closer in PAIRS]
    # What closes a weak pair acts only when its opener did, and then the pair is settled.
    pairs += [Format.tags(opener, ()) for opener, _ in WEAK]
    stops: dict[str, State] = dict.fromkeys(STOPS, END)
    ends: States = {TEXT: {**stops, **dict.fromkeys(WRAPPERS, TEXT)}, THINKING: stops}
    return Format(
        name="auto",
        source="the distinctive markers of every family here",
        # Where a stop of one family only ends a message in another, the latter counts: more follows it.
        states=_merge(*pairs, HARMONY, MUSE, *WHOLE, Format(name="", states=ends)),
        strays=STRAYS,
        partial=frozenset(marker for family in WHOLE for marker in family.partial),
        calls=SYNTAXES if syntax is None else (syntax,),
        header=_headers(HARMONY, MUSE),
        tag_rules=TAG_RULES,
        assistant=ASSISTANT,
        settle=partial(_settle, syntax),
    )


def _settle(syntax: CallSyntax | None, met: str | CallSyntax) -> Format:
    if not isinstance(met, str):
        return _any(met)
    family = _families().get(met)
    if family is None:
        return _any(syntax)
    return family if isinstance(family, Format) else _pair(*family, syntax)


AUTO = _any(None)
FORMATS = (AUTO,)
