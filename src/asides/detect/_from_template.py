"""What a chat template shows of its model, from what it writes. Formats are tried by `reading`, not matched by name.

Turns the evidence (`_evidence.py`) into a verdict with reasons: which formats read it back, whether the model thinks,
where its output begins, and which keyword switches that. Where no registered format fits, one is made (`_ad_hoc.py`).

    a template that writes `<think>` + reasoning_content + `</think>`   thinks, and a format that reads that back
    a prompt that ends with `<think>` unless a keyword is false         starts in thinking, and that keyword switches it
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from .._engine.format import Format
from ..families import get_format
from ..families._registry import registered
from . import _ad_hoc as ad_hoc
from . import _from_name as from_name
from ._evidence import Echo, Evidence, RenderedPrompt, gather
from ._from_prompt import begin_after
from ._markers import call_openers, candidates, closers, openers
from ._result import Begin, Finding, start_of
from ._trial import RenderedTurn, Score, score

KEYWORDS = ("enable_thinking", "thinking", "reasoning_effort", "thinking_mode")
"""Switches in the order of preference where several do the same."""
_OFF = re.compile(r"no|none|off|false|disabled?|chat|/?no[-_ ]?think", re.IGNORECASE)
"""What a switch's value is called when it means no thinking."""
_AGAINST = re.compile(r"skip|disable|no_")
"""Names of switches that switch thinking off."""
_INTRODUCTION = re.compile(r"(?:You are|Your name is) (?:an? )?([A-Z][\w.-]*(?: [A-Z0-9][\w.-]*)*)")


class TemplateVerdict(NamedTuple):
    """What a template shows."""

    formats: tuple[Format, ...]
    thinks: bool | None
    reasons: list[str]


class PromptSwitch(msgspec.Struct, frozen=True, kw_only=True):
    """A keyword that switches thinking, the values that do, and the prompts that they give."""

    keyword: str
    on: Any
    off: Any
    on_prompt: RenderedPrompt
    off_prompt: RenderedPrompt | None


def probe(template: str, *, begin: str = "", stop: str = "") -> Finding:
    """What a template shows of its model. `begin` and `stop` are the tokenizer's own tokens, where they are known."""
    return conclude(gather(template, begin=begin, stop=stop))


def conclude(seen: Evidence) -> Finding:
    """What the evidence means."""
    known = candidates()
    plain = seen.prompts[0].written if seen.prompts else ""
    endings = {ending for prompt in seen.prompts if (ending := _ending(prompt.written, known))}

    def judge(format: Format) -> Score:
        return score(format, seen.turns, plain, endings, seen.instructions, seen.source)

    scores = [(judge(format), format) for format in known]
    best = max(found for found, _ in scores)
    fitting = tuple(format for found, format in scores if found == best)
    formats, thinks, reasons = _verdict(seen, best, fitting)
    details: dict[str, Any] = {}
    if formats:
        details, more = _prompts(seen, formats[0])
        reasons += more if thinks is not False else []
    # A format that was made for this template has chosen its calls already.
    if formats is fitting:
        # A format of which no marker is named here has nothing to say, or one that somebody registers would vote on
        # the models of others. Where none is named at all, ours stand for what models mostly write.
        added = {format.name for family in registered() for format in family.formats}
        rivals = tuple(
            format
            for found, format in scores
            if found.seen == best.seen and (found.cover or not (best.cover or format.name in added))
        )
        everything = get_format("auto")
        if _calls_stay_open(seen, best, rivals) and _as_well(judge(everything), best):
            formats = (everything, *rivals)
            names = ", ".join(format.name for format in rivals)
            reasons.append(f"how it writes calls does not show, so auto reads it; it may be {names}")
    if seen.echoes:
        details["field"] = seen.echoes[0].field
        details["framing"] = _framing(seen.echoes[0].turn)
    begin = details.pop("begin", None)
    return Finding(
        source="template",
        formats=tuple(format if format not in known and format.settle is None else format.name for format in formats),
        thinks=thinks,
        begin=begin,
        reasons=tuple(reasons),
        details=details,
    )


def _framing(turn: RenderedTurn) -> tuple[str, str]:
    """The whitespace around the thought of a turn."""
    before, _, behind = turn.written.partition(turn.thought)
    return before[len(before.rstrip()) :], behind[: len(behind) - len(behind.lstrip())]


def _calls_stay_open(seen: Evidence, best: Score, rivals: tuple[Format, ...]) -> bool:
    """Whether formats that differ in their calls fit all that shows, or none reads the calls that the template wrote.

    A header alone, which others may share that are not known here, is no evidence for anyone's calls.
    """
    if best.calls:
        # Calls were written and read back: nothing is open.
        return False
    # Either calls were written that nobody reads, or all that fits is a header, which families share.
    if any(turn.function for turn in seen.turns) or not any((best.thoughts, best.endings, best.instructed, best.named)):
        return True
    begun = {call_openers(format) for format in rivals}
    named = {frozenset(opener for opener in openers if opener and opener in seen.source) for openers in begun}
    return len(begun) > 1 and (len(named) > 1 or not all(named))


def _as_well(found: Score, best: Score) -> bool:
    """Whether `auto` gives back as much as the best format does."""
    # Not its calls: that these do not show is why `auto` is asked.
    return found.thoughts >= best.thoughts and found.answers >= best.answers


def _ending(prompt: str, known: list[Format]) -> str:
    """The thinking marker that ends a prompt, the longest if several do. Formats with headers have none."""
    tail = prompt.rstrip()
    found = [
        marker
        for format in known
        if format.header is None
        for marker in (*openers(format), *closers(format))
        if tail.endswith(marker.rstrip())
    ]
    return max(found, key=len, default="")


def _verdict(seen: Evidence, best: Score, fitting: tuple[Format, ...]) -> TemplateVerdict:
    """What shows thinking, the strongest evidence first; else whether anything at all is known."""
    if seen.echoes:
        # A thought that came out where it was put in is proof; the end of a prompt may be a marker by chance, and what
        # a template tells the model need not be what the model does.
        return _echoed(seen.echoes[0], seen, best, fitting)
    if best.endings:
        return TemplateVerdict(fitting, True, ["a prompt of it ends with a thinking marker", _read_back(best, fitting)])
    for prompt in seen.prompts:
        pair = ad_hoc.opened(prompt.written, seen.source, seen.turns)
        made = ad_hoc.make(*pair, seen) if pair is not None else None
        if pair is not None and made is not None:
            return TemplateVerdict(
                (made,), True, [f"a prompt of it ends with {pair[0]!r}, for which a format was made"]
            )
    if best.instructed:
        marker = next(marker for marker in openers(fitting[0]) if marker in seen.instructions)
        return TemplateVerdict(fitting, True, [f"tells the model to think in {marker!r}", _read_back(best, fitting)])
    return _silent(seen, best, fitting)


def _echoed(echo: Echo, seen: Evidence, best: Score, fitting: tuple[Format, ...]) -> TemplateVerdict:
    """The template writes thoughts. What stands around them is the marker, known or not."""
    plain = seen.prompts[0].written if seen.prompts else ""
    opener, closer = _around(echo.turn, fitting[0]) if best.thoughts else ad_hoc.around(echo.turn, plain)
    reason = f"writes {echo.field} of a message between {opener!r} and {closer!r}"
    spoken = any(turn.answer for turn in seen.turns)
    if best.thoughts and (best.header or best.answers or not spoken):
        return TemplateVerdict(fitting, True, [reason, _read_back(best, fitting)])
    made = ad_hoc.make(opener, closer, seen, fitting[0].calls if best.calls else None)
    if made is not None:
        whose = "its turns as well" if best.thoughts else "these markers"
        return TemplateVerdict((made,), True, [reason, f"no known format has {whose}: one was made for it"])
    if best.thoughts:
        return TemplateVerdict(fitting, True, [reason, _read_back(best, fitting)])
    return TemplateVerdict((), True, [reason, "no known format reads that, and none could be made for it"])


def _silent(seen: Evidence, best: Score, fitting: tuple[Format, ...]) -> TemplateVerdict:
    """Nothing that the template writes shows thinking."""
    formats = fitting if best.header else ()
    fits = _read_back(best, fitting) if formats else "no known format fits what it writes"
    if not seen.prompts:
        fits = f"could not be rendered ({seen.failure}), so only its source was read"
    introduced = _introduction(seen)
    if introduced:
        return TemplateVerdict(formats, True, [f"calls the model {introduced}, which is known to think", fits])
    named = _named_in_source(seen.source)
    if named:
        return TemplateVerdict(
            formats, None, [f"names {named!r} in its source, but writes it in no turn that was tried", fits]
        )
    if not seen.prompts:
        return TemplateVerdict(formats, None, [fits])
    return TemplateVerdict(formats, False, ["shows no sign of thinking", fits])


def _around(turn: RenderedTurn, format: Format) -> tuple[str, str]:
    """The format's own markers on both sides of a thought."""
    before, _, after = turn.written.partition(turn.thought)
    opens = [marker for marker in openers(format) if before.rstrip().endswith(marker.rstrip())]
    closes = [marker for marker in closers(format) if after.lstrip().startswith(marker.lstrip())]
    return max(opens, key=len, default=""), max(closes, key=len, default="")


def _read_back(best: Score, fitting: tuple[Format, ...]) -> str:
    read = [
        word for word, found in (("thoughts", best.thoughts), ("answers", best.answers), ("calls", best.calls)) if found
    ]
    what = f"reads back its {' and '.join(read)}" if read else "fits best"
    return f"the format {fitting[0].name} {what}"


def _named_in_source(source: str) -> str:
    """A thinking marker in a template's source."""
    for format in candidates():
        if format.header is None:
            for marker in (*openers(format), *closers(format)):
                if marker in source and marker not in format.leading:
                    return marker
    return ""


def _introduction(seen: Evidence) -> str:
    """What the template calls the model, if that is one that is known to think."""
    for name in _INTRODUCTION.findall(seen.prompts[0].before if seen.prompts else seen.source):
        found = from_name.look_up(name)
        if found is not None and found.thinks:
            return str(name)
    return ""


def _prompts(seen: Evidence, format: Format) -> tuple[dict[str, Any], list[str]]:
    """Where output begins, by default and switched, and how to switch it."""
    if not seen.prompts:
        return {}, []
    details: dict[str, Any] = {"begin": _begin(format, seen.prompts[0])}
    reasons = [f"its generation prompt {_does(format, seen.prompts[0])}"]
    switch = _switch(seen, format)
    if switch is not None:
        details |= {"switch": switch.keyword, "on": switch.on, "off": switch.off}
        details["start_on"] = start_of(_begin(format, switch.on_prompt))
        reason = f"with {switch.keyword}={switch.on!r} it {_does(format, switch.on_prompt)}"
        if switch.off_prompt is not None:
            details["start_off"] = start_of(_begin(format, switch.off_prompt))
            reason += f", with {switch.off!r} it {_does(format, switch.off_prompt)}"
        reasons.append(reason)
    return details, reasons


def _begin(format: Format, prompt: RenderedPrompt) -> Begin:
    return begin_after(format, prompt.written)


def _closes(format: Format, prompt: RenderedPrompt) -> bool:
    """Whether a prompt ends with the end of a thought."""
    return any(prompt.written.rstrip().endswith(closer.rstrip()) for closer in closers(format))


def _level(format: Format, prompt: RenderedPrompt) -> int:
    """2 where a prompt opens thinking, 0 where it closes it, 1 where it leaves it to the model."""
    if _begin(format, prompt) == "thinking":
        return 2
    return 0 if _closes(format, prompt) else 1


def _does(format: Format, prompt: RenderedPrompt) -> str:
    return ("closes thinking", "leaves thinking to the model", "opens thinking")[_level(format, prompt)]


def _switch(seen: Evidence, format: Format) -> PromptSwitch | None:
    """The keyword that switches thinking: one that changes where output begins, or else one that changes the prompt."""
    plain = seen.prompts[0]
    found: list[tuple[tuple[bool, int, str], PromptSwitch]] = []
    for keyword in seen.switches:
        prompts = [prompt for prompt in seen.prompts if list(prompt.switches) == [keyword]]
        # A variable may be named like a switch and decide about earlier turns only.
        if not any((prompt.before, prompt.written) != (plain.before, plain.written) for prompt in prompts):
            continue
        levels = [_level(format, prompt) for prompt in [plain, *prompts]]
        switch = _by_level(keyword, plain, prompts, format) if len(set(levels)) > 1 else _by_value(keyword, prompts)
        if switch is not None:
            place = KEYWORDS.index(keyword) if keyword in KEYWORDS else len(KEYWORDS)
            # One that moves where output begins is better than one that only changes the prompt's text; then the usual
            # name.
            found.append(((len(set(levels)) == 1, place, keyword), switch))
    return min(found, key=lambda item: item[0])[1] if found else None


def _by_level(keyword: str, plain: RenderedPrompt, prompts: list[RenderedPrompt], format: Format) -> PromptSwitch:
    """The values that lead furthest towards thinking and away from it; None is the keyword left out."""
    # The plain prompt last: `max` and `min` take the first of equals, and a value that is set is better than none.
    by_level = [*prompts, plain]
    highest = max(by_level, key=lambda prompt: _level(format, prompt))
    lowest = min(by_level, key=lambda prompt: _level(format, prompt))
    return PromptSwitch(
        keyword=keyword,
        on=highest.switches.get(keyword),
        off=lowest.switches.get(keyword),
        on_prompt=highest,
        off_prompt=lowest,
    )


def _by_value(keyword: str, prompts: list[RenderedPrompt]) -> PromptSwitch | None:
    """Where every prompt leaves thinking to the model, a value's own word must say what it means."""
    against = _AGAINST.search(keyword) is not None
    values = {repr(prompt.switches[keyword]): prompt for prompt in prompts}
    off = [prompt for value, prompt in values.items() if (_OFF.fullmatch(value.strip("'")) is not None) != against]
    on = [prompt for prompt in values.values() if prompt not in off]
    if not on:
        return None
    on.sort(key=lambda prompt: prompt.switches[keyword] != "high")
    return PromptSwitch(
        keyword=keyword,
        on=on[0].switches[keyword],
        off=off[0].switches[keyword] if off else None,
        on_prompt=on[0],
        off_prompt=off[0] if off else None,
    )
